//! Attacks that once filled the server's memory, its disk or its journal of used proofs, at their original size; with
//! `cargo xtask long attacks`, at ten times that size.
//!
//! Each attack is a function that takes the server and returns how many bytes it has sent. In a [`Stage`] two players
//! play over UDP meanwhile; it measures what the attack has cost: omissions, memory, bytes of log, and whether new
//! players can join on every transport.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use sametick_client::{Carried, Client, Input, Output, Plan, Status};
use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_pong::{Pong, Setup};
use sametick_transport::clock::{Clock, random, unix_seconds};
use sametick_transport::noise::{Calling, Psk};
use sametick_wire::access::{AccessKey, ProofId};
use sametick_wire::codec::put_varint;
use sametick_wire::frame::{MAX_CHUNK, put_chunk_head};
use sametick_wire::{Carrier, Channel, LaneId};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::doors::hello;
use crate::process::{Folder, command, run};
use crate::web::{IN_VAIN, Up};

/// How much memory a server may use above what it has before the attack.
const MEMORY_KB: u64 = 100 << 10;

/// For how long players play in the test command, and how long an attack goes on meanwhile.
const PLAY_S: u64 = 6;

/// The factor on an attack's original size.
fn times() -> usize {
    std::env::var("SAMETICK_ATTACK_TIMES").map_or(1, |times| times.parse().expect("a number of times"))
}

fn play_s() -> u64 {
    PLAY_S * times().div_ceil(2) as u64
}

fn attack_for() -> Duration {
    Duration::from_secs(play_s() - 2)
}

/// A server, and its memory and log before the attack.
struct Stage {
    up: Up,
    folder: Folder,
    memory_kb: u64,
}

/// The cost of an attack.
#[derive(Debug)]
struct Cost {
    sent: u64,
    logged: u64,
    memory_kb: u64,
    omissions: u64,
    ticks: u64,
}

impl Stage {
    fn start() -> Stage {
        let folder = Folder::new();
        let up = Up::start(&folder, &["--host-ports", "off"], None);
        // Memory for pages and the first players does not count as the attack's.
        get_in(&up);
        let memory_kb = memory_of(&up, "VmRSS");
        Stage { up, folder, memory_kb }
    }

    /// Attacks while two players play. A long run first measures play without an attack.
    fn attack(&self, name: &str, attack: impl FnOnce(&Up) -> u64) -> Cost {
        if times() > 1 {
            self.measure("nothing", |_| 0);
        }
        self.measure(name, attack)
    }

    fn measure(&self, name: &str, attack: impl FnOnce(&Up) -> u64) -> Cost {
        let logged = Up::log_in(&self.folder).len() as u64;
        let url = self.up.native("udp");
        let session = name.replace(' ', "-");
        let players = std::thread::spawn(move || bots(&url, &session, play_s()));
        let sent = attack(&self.up);
        let report = players.join().unwrap();
        assert_eq!(report["agree"], true, "{report}");
        let of = |name: &str| {
            let values = report["bots"].as_array().unwrap().iter().map(|bot| bot[name].as_u64().unwrap());
            values.collect::<Vec<u64>>()
        };
        let cost = Cost {
            sent,
            logged: Up::log_in(&self.folder).len() as u64 - logged,
            memory_kb: memory_of(&self.up, "VmHWM").saturating_sub(self.memory_kb),
            omissions: of("omissions").iter().sum(),
            ticks: of("tick").iter().sum(),
        };
        eprintln!("{name}, {} times: {cost:?}", times());
        cost
    }

    /// Asserts what holds under every attack.
    fn assert_held(&self, cost: &Cost) {
        get_in(&self.up);
        assert!(cost.memory_kb < MEMORY_KB, "memory: {cost:?}");
        // A few clients that only connect and disconnect are logged with more bytes than they send; ten times as many
        // are not.
        let few = if times() > 1 { 0 } else { 64 << 10 };
        assert!(cost.logged < cost.sent.max(few), "log: {cost:?}");
        // A busy machine may be late now and then.
        assert!(cost.ticks >= 2 * (play_s() - 2) * 60 && cost.omissions <= cost.ticks / 10, "play: {cost:?}");
    }
}

/// A figure of the server's memory, in KiB.
fn memory_of(up: &Up, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", up.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Two bots play for so long; returns their report.
fn bots(url: &str, session: &str, seconds: u64) -> Value {
    let seconds = seconds.to_string();
    let args = ["bot", "pong", "--connect", url, "--session", session, "--seconds", &seconds, "--json"];
    let bots = run(&mut command(&args));
    serde_json::from_slice(&bots.stdout).unwrap_or_else(|_| panic!("{url}: {bots:?}"))
}

/// Asserts that new players can join on every transport.
fn get_in(up: &Up) {
    let urls = [up.native("udp"), up.native("quic"), format!("ws://{}", up.addr)];
    std::thread::scope(|scope| {
        for url in &urls {
            scope.spawn(move || {
                let report = bots(url, url.split(':').next().unwrap(), 1);
                assert_eq!(report["agree"], true, "{report}");
            });
        }
    });
}

fn port_of(url: &str) -> SocketAddr {
    url.split("://").nth(1).unwrap().split('?').next().unwrap().parse().unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Sends first packets of QUIC from one socket, with connection ids that any client can make for a server without a
/// passphrase, and nothing after them. They could as well claim to come from any address.
fn initials(up: &Up) -> u64 {
    let to = port_of(&up.native("quic"));
    let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
    let mut packet = vec![0x5a; 1_200];
    packet[..6].copy_from_slice(&[0xc0, 0, 0, 0, 1, 20]);
    let mut sent = 0;
    for number in 0..70_000 * times() {
        packet[6..26].copy_from_slice(&AccessKey::open().connection_id(unix_seconds(), random()));
        packet[26..30].copy_from_slice(&[0, 0, 0x44, 0x90]);
        sent += socket.send_to(&packet, to).unwrap_or(0) as u64;
        // As fast as the server reads, otherwise most of them would never reach it.
        if number % 64 == 0 {
            std::thread::sleep(Duration::from_micros(500));
        }
    }
    sent
}

#[test]
fn first_packets_without_a_handshake_lock_no_player_out() {
    let stage = Stage::start();
    let cost = stage.attack("initials", initials);
    stage.assert_held(&cost);
    let journal = stage.folder.path().join("sametick-data/used-proofs");
    let records = std::fs::metadata(&journal).unwrap().len() / 24;
    assert!(records < 100, "only those who came in are written down: {records}");
}

#[test]
fn used_proofs_of_yesterday_lock_no_player_out() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().join("sametick-data")).unwrap();
    let yesterday = unix_seconds() - 86_400;
    let records: Vec<u8> =
        (0..70_000).flat_map(|_| ProofId { id: random(), stamped_s: yesterday }.to_record()).collect();
    std::fs::write(folder.path().join("sametick-data/used-proofs"), records).unwrap();
    let up = Up::start(&folder, &["--host-ports", "off"], None);
    get_in(&up);
    assert!(std::fs::metadata(folder.path().join("sametick-data/used-proofs")).unwrap().len() < 1_000);
}

/// Opens a WebSocket and sends the hello.
async fn link(to: SocketAddr) -> Option<WebSocketStream<TcpStream>> {
    let stream = TcpStream::connect(to).await.ok()?;
    let (mut socket, _) = tokio_tungstenite::client_async(format!("ws://{to}/ws"), stream).await.ok()?;
    socket.send(Message::binary(hello())).await.ok()?;
    socket.next().await?.ok()?.is_binary().then_some(socket)
}

/// Four messages that never end, one for each channel.
fn unfinished(chunk: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for channel in [Channel::Control, Channel::Chat, Channel::Diagnostics, Channel::Chunks] {
        let mut piece = vec![7; MAX_CHUNK - 64];
        if chunk == 0 {
            piece.clear();
            put_varint(&mut piece, 16 << 20);
        }
        put_chunk_head(&mut bytes, channel, piece.len());
        bytes.extend_from_slice(&piece);
    }
    bytes
}

/// Writes until the server closes the connection, or time is up.
async fn hoard(socket: Option<WebSocketStream<TcpStream>>, until: Instant) -> u64 {
    let Some(mut socket) = socket else { return 0 };
    let mut sent = 0;
    let writing = async {
        for chunk in 0.. {
            let bytes = unfinished(chunk);
            sent += bytes.len() as u64;
            if socket.send(Message::binary(bytes)).await.is_err() {
                break;
            }
        }
    };
    let _ = tokio::time::timeout_at(until.into(), writing).await;
    tokio::time::sleep_until(until.into()).await;
    sent
}

/// Opens links that never join, each with four messages of 16 MiB that never end.
fn hoards(up: &Up) -> u64 {
    let (to, until) = (up.addr, Instant::now() + attack_for());
    sum_of((0..30 * times()).map(|_| async move { hoard(link(to).await, until).await }))
}

/// Runs all links at once. Returns how many bytes they have sent together.
fn sum_of(links: impl Iterator<Item = impl Future<Output = u64> + Send + 'static>) -> u64 {
    block_on(async move {
        let links: Vec<_> = links.map(tokio::spawn).collect();
        let mut sent = 0;
        for link in links {
            sent += link.await.unwrap();
        }
        sent
    })
}

#[test]
fn messages_without_an_end_take_no_memory() {
    let stage = Stage::start();
    let cost = stage.attack("unfinished messages", hoards);
    stage.assert_held(&cost);
}

/// A WebSocket whose link plays in a session of its own, and how many bytes that took.
async fn joined(to: SocketAddr, session: String) -> Option<(WebSocketStream<TcpStream>, u64)> {
    let clock = Clock::start();
    let join = JoinAs {
        setup: Setup::default(),
        seed: 0,
        seats: 2,
        wait_for: 1,
        name: "attacker".into(),
        commit: String::new(),
        watch: false,
        listed: false,
    };
    let plan = Plan {
        session,
        join,
        key: AccessKey::open(),
        pass: None,
        routes: vec![Carrier::Stream],
        unix_s: unix_seconds(),
        random: random(),
    };
    let mut client: Client<Peer<Pong>> = Client::new(clock.now(), plan).unwrap();
    let (mut socket, mut buf, mut is_answered, mut sent) = (None, Vec::new(), false, 0);
    while client.status() != Status::Playing {
        match client.poll_output(&mut buf) {
            Output::Dial(..) => {
                let stream = TcpStream::connect(to).await.ok()?;
                let opened = tokio_tungstenite::client_async(format!("ws://{to}/ws"), stream).await.ok()?.0;
                socket = Some(opened);
                sent += buf.len() as u64;
                socket.as_mut()?.send(Message::binary(buf.clone())).await.ok()?;
            }
            Output::Stream(..) => {
                sent += buf.len() as u64;
                socket.as_mut()?.send(Message::binary(buf.clone())).await.ok()?;
            }
            Output::WantInput(_) => client.handle(clock.now(), Input::Local(Default::default())),
            Output::WakeAt(at) => {
                let heard = tokio::time::timeout_at(clock.instant(at).into(), socket.as_mut()?.next()).await;
                let Ok(heard) = heard else {
                    client.handle(clock.now(), Input::Timeout);
                    continue;
                };
                let Message::Binary(bytes) = heard?.ok()? else { continue };
                let carried =
                    if is_answered { Carried::Stream(LaneId(0), &bytes) } else { Carried::Answer(&bytes) };
                is_answered = true;
                client.handle(clock.now(), Input::Carrier(client.attempt(), carried));
            }
            Output::Datagram(_) | Output::HangUp(_) | Output::Done => return None,
        }
    }
    Some((socket?, sent))
}

/// Joins players, each with four messages of 16 MiB that never end.
fn joined_hoards(up: &Up) -> u64 {
    let (to, until) = (up.addr, Instant::now() + attack_for());
    let links = (0..20 * times()).map(|number| async move {
        let socket = joined(to, format!("hoard-{number}")).await.map(|(socket, _)| socket);
        hoard(socket, until).await
    });
    sum_of(links)
}

#[test]
fn messages_of_players_without_an_end_take_no_memory() {
    let stage = Stage::start();
    let cost = stage.attack("unfinished messages of players", joined_hoards);
    assert!(cost.sent > 30 << 20, "they are players, who may send much: {cost:?}");
    stage.assert_held(&cost);
}

/// Joins players who read nothing, while the server has more and more to send.
fn deaf_spectators(up: &Up) -> u64 {
    let (to, until) = (up.addr, Instant::now() + attack_for());
    let got_in = Arc::new(AtomicUsize::new(0));
    let links = (0..40 * times()).map(|number| {
        let got_in = Arc::clone(&got_in);
        async move {
            let Some((socket, sent)) = joined(to, format!("deaf-{number}")).await else { return 0 };
            got_in.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep_until(until.into()).await;
            drop(socket);
            sent
        }
    });
    let sent = sum_of(links);
    let got_in = got_in.load(Ordering::Relaxed);
    assert!(got_in >= 30, "only {got_in} got in");
    sent
}

#[test]
fn players_who_do_not_read_take_no_memory() {
    let stage = Stage::start();
    let cost = stage.attack("players who do not listen", deaf_spectators);
    stage.assert_held(&cost);
}

/// Sends empty control messages, thousands in each message of the socket, on links that are closed after the first of
/// them.
fn empty_messages(up: &Up) -> u64 {
    let (to, until) = (up.addr, Instant::now() + attack_for());
    let mut bytes = Vec::new();
    for _ in 0..3 {
        put_chunk_head(&mut bytes, Channel::Control, MAX_CHUNK);
        bytes.extend_from_slice(&[0; MAX_CHUNK]);
    }
    let most = 9_300_000 * times() as u64;
    block_on(async move {
        let mut sent = 0;
        while Instant::now() < until && sent < most {
            let Some(mut socket) = link(to).await else { continue };
            // As much as the socket accepts before the server's close is read.
            for _ in 0..40 {
                if socket.feed(Message::binary(bytes.clone())).await.is_err() {
                    break;
                }
                sent += bytes.len() as u64;
            }
            let _ = socket.flush().await;
            let _ = socket.get_mut().shutdown().await;
        }
        sent
    })
}

#[test]
fn empty_messages_make_no_log() {
    let stage = Stage::start();
    let cost = stage.attack("empty messages", empty_messages);
    stage.assert_held(&cost);
    assert!(cost.logged < cost.sent / 20, "{cost:?}");
}

/// Sends first packets of UDP, each from an address of its own, and nothing after them: all loopback addresses are
/// usable.
fn first_packets(up: &Up) -> u64 {
    let to = port_of(&up.native("udp"));
    let psk = Psk::new(&AccessKey::open());
    let mut sent = 0;
    for number in 0..3_000 * times() as u32 {
        let [_, high, middle, low] = number.to_be_bytes();
        let socket = UdpSocket::bind(SocketAddr::from(([127, 1 + high, middle, low.max(1)], 0))).unwrap();
        let calling = Calling::new(&psk, &hello()).ok().unwrap();
        sent += socket.send_to(calling.first(), to).unwrap_or(0) as u64;
        if number % 16 == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    sent
}

#[test]
fn first_packets_of_many_addresses_leave_nothing() {
    let stage = Stage::start();
    let cost = stage.attack("first packets", first_packets);
    stage.assert_held(&cost);
    let log = Up::log_in(&stage.folder);
    assert!(!log.contains("attacker"), "nobody has come: {log}");
}

/// Sends a request with these headers; returns the status and the rest of the answer.
pub fn asked(to: SocketAddr, path: &str, headers: &str) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(IN_VAIN)).unwrap();
    std::io::Write::write_all(&mut stream, format!("GET {path} HTTP/1.1\r\n{headers}\r\n").as_bytes())
        .unwrap();
    let (mut answer, mut piece) = (String::new(), [0; 1_024]);
    while let Ok(len @ 1..) = std::io::Read::read(&mut stream, &mut piece) {
        answer.push_str(&String::from_utf8_lossy(&piece[..len]));
        if answer.contains("\r\n\r\n") && answer.starts_with("HTTP/1.1 101") {
            break;
        }
    }
    (answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0), answer)
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const CLOSE: &str = "Connection: close\r\n";

/// Every path over HTTP: pages, API, links, scripts, the lobby.
const WAYS: [(&str, &str); 5] = [
    ("/", CLOSE),
    ("/api/server", CLOSE),
    ("/ws", UPGRADE),
    ("/api/rooms/den/ws", UPGRADE),
    ("/api/lobby/ws", UPGRADE),
];

#[test]
fn a_foreign_name_that_points_here_gets_nothing() {
    let folder = Folder::new();
    let up = Up::start(&folder, &["--host-ports", "off", "--origin", "https://play.example.org"], None);
    let port = up.addr.port();
    for (path, kind) in WAYS {
        let evil = format!("Host: evil.example:{port}\r\nOrigin: http://evil.example:{port}\r\n{kind}");
        let (status, answer) = asked(up.addr, path, &evil);
        assert_eq!(status, 421, "{path}: {answer}");
        assert!(answer.contains("evil.example") && answer.contains("--origin"), "{path}: {answer}");
        assert_eq!(asked(up.addr, path, kind).0, 400, "{path} without a host");
        let twice = format!("Host: 127.0.0.1:{port}\r\nHost: 127.0.0.1:{port}\r\n{kind}");
        assert_eq!(asked(up.addr, path, &twice).0, 400, "{path} with two hosts");
        for own in ["127.0.0.1", "192.168.7.7", "localhost", "box.local", "play.example.org"] {
            let own = format!("Host: {own}:{port}\r\nOrigin: http://{own}:{port}\r\n{kind}");
            assert!(matches!(asked(up.addr, path, &own).0, 200 | 101), "{path}: {own}");
        }
    }
    assert!(Up::log_in(&folder).contains("evil.example"), "the operator is told");
}

#[test]
fn behind_a_proxy_the_name_of_origin_passes() {
    let folder = Folder::new();
    let args = ["--host-ports", "off", "--behind-proxy", "--origin", "https://play.example.org"];
    let up = Up::start(&folder, &args, None);
    for (path, kind) in WAYS {
        // Headers as the nginx of docs/operations.md sends them, and as a proxy does that names the host in another
        // header.
        let nginx =
            "Host: play.example.org\r\nOrigin: https://play.example.org\r\nX-Forwarded-For: 203.0.113.9\r\n";
        let other = "Host: 127.0.0.1:8080\r\nOrigin: https://play.example.org\r\nX-Forwarded-Host: play.example.org\r\n";
        for headers in [nginx, other] {
            assert!(
                matches!(asked(up.addr, path, &format!("{headers}{kind}")).0, 200 | 101),
                "{path}: {headers}"
            );
        }
        let evil = "Host: evil.example\r\nX-Forwarded-Host: play.example.org\r\n";
        assert_eq!(asked(up.addr, path, &format!("{evil}{kind}")).0, 421, "{path}");
    }
}
