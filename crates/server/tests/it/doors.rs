//! Attacks on the transports that browsers use, while others play on the same relay: attackers are disconnected or
//! slowed down, and no player's tick is late because of them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{JoinHandle, scope};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use sametick_pong::Pong;
use sametick_sim::{Game, schema_hash_of};
use sametick_transport::clock::{random, unix_seconds};
use sametick_transport::tls::{Trust, client_config};
use sametick_transport::websocket::MAX_MESSAGE;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Hello, Identity, Intent, Stamp};
use sametick_wire::packet::MAX_QUIC_DATAGRAM;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream as AsyncStream};
use tokio_tungstenite::tungstenite::Message;
use wtransport::endpoint::ConnectOptions;

use crate::process::{Folder, command, run};
use crate::web::{IN_VAIN, Up};

/// For how long the others play, and for how long a flood lasts.
const PLAY_S: u64 = 10;
const FLOOD: Duration = Duration::from_secs(4);

/// How much the system may accept in a flood: some 4 MB in socket buffers, and what a server reads in that time.
/// Without a limit it reads more than 200 MB.
const FLOOD_BYTES: usize = 48 << 20;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(IN_VAIN, future).await.expect("the server ends it") })
}

/// Two regular players, over UDP.
fn players(up: &Up) -> JoinHandle<Value> {
    let url = up.native("udp");
    std::thread::spawn(move || {
        let seconds = PLAY_S.to_string();
        let bots = run(&mut command(&["bot", "pong", "--connect", &url, "--seconds", &seconds, "--json"]));
        serde_json::from_slice(&bots.stdout).unwrap_or_else(|_| panic!("{bots:?}"))
    })
}

/// Asserts that the players were not disturbed: ticks went on, and inputs were in time.
fn assert_unharmed(players: JoinHandle<Value>) {
    let report = players.join().unwrap();
    assert_eq!(report["agree"], true, "{report}");
    for bot in report["bots"].as_array().unwrap() {
        let (tick, omissions) = (bot["tick"].as_u64().unwrap(), bot["omissions"].as_u64().unwrap());
        assert!(tick >= (PLAY_S - 2) * 60, "the ticks went on: {bot}");
        // A busy machine may be late now and then.
        assert!(omissions <= tick / 10, "inputs were in time: {omissions} of {tick} were not");
    }
}

pub fn hello() -> Vec<u8> {
    let identity = Identity { build: Pong::BUILD, schema: schema_hash_of::<Pong>() };
    let intent = Intent::Join { session: "attack".into() };
    let hello = Hello { identity, intent, name: "attacker".into(), pass: None };
    hello.to_bytes(&AccessKey::open(), Stamp { unix_s: unix_seconds(), nonce: random() }).unwrap()
}

/// A WebSocket on which the hello was sent, as a plain stream.
async fn opened(to: SocketAddr) -> AsyncStream {
    let stream = AsyncStream::connect(to).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(format!("ws://{to}/ws"), stream).await.unwrap();
    socket.send(Message::binary(hello())).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_binary(), "the answer");
    socket.into_inner()
}

/// A client's frame, from its first byte and its payload.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).unwrap();
    [&[first, 0x80 | len, 0, 0, 0, 0][..], payload].concat()
}

const BEGIN: u8 = 0x02;
const MORE: u8 = 0x00;
const PING: u8 = 0x89;

/// Writes the same bytes again and again, until the flood's time is up or the server closes; returns how many were
/// written.
async fn flood(stream: &mut AsyncStream, bytes: &[u8]) -> usize {
    let start = Instant::now();
    let many = bytes.repeat(64 * 1024 / bytes.len());
    let mut written = 0;
    while start.elapsed() < FLOOD {
        match tokio::time::timeout(
            FLOOD.saturating_sub(start.elapsed()),
            stream.write(&many[written % many.len()..]),
        )
        .await
        {
            Ok(Ok(len)) => written += len,
            _ => break,
        }
    }
    written
}

/// Waits until the server has closed the connection.
async fn until_closed(stream: &mut AsyncStream) {
    let mut rest = [0; 4_096];
    while let Ok(1..) = stream.read(&mut rest).await {}
}

/// Sends a message over the size limit: in one frame with that length, and in frames of one byte each.
async fn long_messages(to: SocketAddr) {
    let mut stream = opened(to).await;
    let too_long = u64::try_from(MAX_MESSAGE).unwrap() + 1;
    let head = [&[0x82, 0x80 | 127][..], &too_long.to_be_bytes(), &[0; 4]].concat();
    stream.write_all(&head).await.unwrap();
    until_closed(&mut stream).await;

    let mut stream = opened(to).await;
    stream.write_all(&frame(BEGIN, &[0])).await.unwrap();
    let pieces = frame(MORE, &[0]).repeat(2 * MAX_MESSAGE);
    let _ = stream.write_all(&pieces).await;
    until_closed(&mut stream).await;
}

/// Sends a message that never ends, in empty frames; and pings without end.
async fn floods(to: SocketAddr) {
    let mut stream = opened(to).await;
    stream.write_all(&frame(BEGIN, &[])).await.unwrap();
    let (mut pinging, mut asking) = (opened(to).await, AsyncStream::connect(to).await.unwrap());
    let (empty, ping) = (frame(MORE, &[]), frame(PING, b"are you there?"));
    let request = format!("GET /api/sessions HTTP/1.1\r\nHost: {to}\r\n\r\n");
    let written = tokio::join!(
        flood(&mut stream, &empty),
        flood(&mut pinging, &ping),
        flood(&mut asking, request.as_bytes()),
    );
    for written in [written.0, written.1, written.2] {
        assert!(written < FLOOD_BYTES, "it was taken at a pace: {written}");
    }
}

/// Sends requests of a page of another site.
fn foreign_page(to: SocketAddr) {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(IN_VAIN)).unwrap();
    let request = format!(
        "GET /ws HTTP/1.1\r\nHost: {to}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nOrigin: https://evil.example\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

/// Sends a byte of a request now and then; the server listens for 5 s.
async fn slow_headers(to: SocketAddr) {
    let (start, mut stream) = (Instant::now(), AsyncStream::connect(to).await.unwrap());
    for byte in b"GET / HTTP/1.1\r\nHost: ".iter().chain(std::iter::repeat(&b'a')) {
        let mut answer = [0; 256];
        match tokio::time::timeout(Duration::from_millis(100), stream.read(&mut answer)).await {
            Ok(Ok(0) | Err(_)) => break,
            _ => drop(stream.write_all(&[*byte]).await),
        }
    }
    assert!((4..9).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

/// Opens more connections than one address may have, and sends nothing; some request much and read nothing.
async fn idlers(to: SocketAddr) {
    let mut idle = Vec::new();
    for number in 0..700 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        if number < 100 {
            let _ = stream.write_all(&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(30)).await;
        }
        idle.push(stream);
    }
    for mut stream in idle {
        until_closed(&mut stream).await;
    }
}

#[test]
fn attackers_on_websocket_and_http_do_not_disturb_players() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let (players, to) = (players(&up), up.addr);
    scope(|scope| {
        scope.spawn(move || block_on(long_messages(to)));
        scope.spawn(move || block_on(floods(to)));
        scope.spawn(move || block_on(slow_headers(to)));
        scope.spawn(move || block_on(idlers(to)));
        scope.spawn(move || foreign_page(to));
    });
    assert_eq!(up.api("/api/health")["status"], "ok");
    assert_unharmed(players);
    let log = Up::log_in(&folder);
    assert_eq!(log.matches("a message is too long").count(), 2, "{log}");
}

/// A WebTransport session on which nothing was sent.
struct Transport {
    _endpoint: wtransport::Endpoint<wtransport::endpoint::endpoint_side::Client>,
    session: wtransport::Connection,
}

impl Transport {
    async fn connect(url: &str, cert: &str, origin: Option<&str>) -> Option<Transport> {
        let tls = client_config(Trust::Pinned(cert.parse().unwrap()), &[b"h3"]).unwrap();
        let config = wtransport::ClientConfig::builder().with_bind_default().with_custom_tls(tls).build();
        let endpoint = wtransport::Endpoint::client(config).unwrap();
        let mut request = ConnectOptions::builder(url);
        if let Some(origin) = origin {
            request = request.add_header("origin", origin);
        }
        let session = endpoint.connect(request.build()).await.ok()?;
        Some(Transport { _endpoint: endpoint, session })
    }

    async fn lane(&self, first: &[u8]) -> (wtransport::SendStream, wtransport::RecvStream) {
        let (mut writer, reader) = self.session.open_bi().await.unwrap().await.unwrap();
        writer.write_all(first).await.unwrap();
        (writer, reader)
    }

    /// Opens all lanes and sends the hello.
    async fn open(&self) -> Vec<(wtransport::SendStream, wtransport::RecvStream)> {
        let hello = hello();
        let len = u16::try_from(hello.len()).unwrap().to_le_bytes();
        let mut lanes = vec![self.lane(&[&[0][..], &len, &hello].concat()).await];
        for lane in 1..4 {
            lanes.push(self.lane(&[lane]).await);
        }
        let mut answer = [0; 3];
        lanes[0].1.read_exact(&mut answer).await.unwrap();
        lanes
    }

    /// How long the session stays open.
    async fn lives_for(&self) -> Duration {
        let start = Instant::now();
        self.session.closed().await;
        start.elapsed()
    }
}

/// Sends no hello, half a hello, or one on a lane that does not exist.
async fn without_hello(url: &str, cert: &str) {
    let [silent, slow, wrong] = [(); 3].map(|()| Transport::connect(url, cert, None));
    let (silent, slow, wrong) = tokio::join!(silent, slow, wrong);
    let (silent, slow, wrong) = (silent.unwrap(), slow.unwrap(), wrong.unwrap());
    let _half = slow.lane(&[0, 200, 0, 1]).await;
    let _none = wrong.lane(&[9]).await;
    let lived = tokio::join!(silent.lives_for(), slow.lives_for(), wrong.lives_for());
    for lived in [lived.0, lived.1] {
        assert!((2..6).contains(&lived.as_secs()), "{lived:?}");
    }
    assert!(lived.2 < Duration::from_secs(2), "{:?}", lived.2);
}

/// Opens more streams than there are lanes, then sends a datagram that is too long.
async fn too_much(url: &str, cert: &str) {
    let greedy = Transport::connect(url, cert, None).await.unwrap();
    let _lanes = greedy.open().await;
    let mut more = Vec::new();
    let opening = async {
        while let Ok(opening) = greedy.session.open_bi().await {
            let Ok((mut writer, _reader)) = opening.await else { break };
            let _ = writer.write_all(&[1]).await;
            more.push(writer);
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), opening).await;
    assert!(more.len() <= 4, "{} streams besides the lanes", more.len());
    // A datagram may be lost.
    while greedy.session.send_datagram(vec![0; MAX_QUIC_DATAGRAM + 1]).is_ok()
        && tokio::time::timeout(Duration::from_millis(100), greedy.lives_for()).await.is_err()
    {}
}

/// Sends the same ping again and again, which is a duplicate from the second time on.
async fn datagram_flood(url: &str, cert: &str) -> usize {
    let flooding = Transport::connect(url, cert, None).await.unwrap();
    let _lanes = flooding.open().await;
    let (start, mut sent) = (Instant::now(), 0);
    while start.elapsed() < FLOOD && flooding.session.send_datagram([0, 0, 0, 0x50, 0, 0]).is_ok() {
        sent += 1;
        if sent % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    sent
}

#[test]
fn attackers_on_webtransport_do_not_disturb_players() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let server = up.api("/api/server");
    let (port, cert) = (&server["webtransport"]["port"], server["webtransport"]["cert"].as_str().unwrap());
    let url = format!("https://127.0.0.1:{port}/");
    let (url, players) = (&url[..], players(&up));
    scope(|scope| {
        scope.spawn(move || {
            block_on(async {
                assert!(Transport::connect(url, cert, Some("https://evil.example")).await.is_none());
                for host in ["127.0.0.1", "localhost"] {
                    let own = format!("http://{host}:{}", up.addr.port());
                    assert!(Transport::connect(url, cert, Some(&own)).await.is_some(), "its own pages may");
                }
            });
        });
        scope.spawn(move || block_on(without_hello(url, cert)));
        scope.spawn(move || block_on(too_much(url, cert)));
        let sent = scope.spawn(move || block_on(datagram_flood(url, cert)));
        assert!(sent.join().unwrap() > 5_000, "that was a flood");
    });
    assert_unharmed(players);
    assert!(Up::log_in(&folder).contains("a datagram is too long"), "{}", Up::log_in(&folder));
}
