//! Every limit of the public listeners and of clients with the passphrase, and peers that try to break it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use futures_util::{FutureExt, SinkExt, StreamExt};
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::endpoint::{Arrival, Endpoint, Gone, LinkId};
use sametick_transport::hub::Ended;
use sametick_transport::noise::{Calling, Psk};
use sametick_transport::proof_journal::ProofJournal;
use sametick_transport::tls::{Trust, client_config};
use sametick_transport::udp::UdpEndpoint;
use sametick_transport::websocket::MAX_MESSAGE;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::MAX_HELLO;
use sametick_wire::packet::MAX_QUIC_DATAGRAM;
use sametick_wire::{Carrier, Channel, Closed, LaneId, Link, Output, Time};
use tokio_tungstenite::tungstenite::Message;

use crate::echo::{Client, LOCALHOST, Server, block_on, hello, run_client};
use crate::raw::{RawQuic, RawWebSocket, blob, first_message};
use crate::stranger::{hello_of, sealed_first, seconds_from_now};

/// Longer than any deadline: an event that has not happened by then does not happen.
const IN_VAIN: Duration = Duration::from_secs(10);

/// How the next link of the server ends.
pub fn next_end(server: &Server) -> Ended {
    server.ended.lock().unwrap().recv_timeout(IN_VAIN).expect("the server ends the link")
}

/// The same for a client whose connection needs the runtime meanwhile.
async fn next_end_meanwhile(server: &Server) -> Ended {
    let ended = async {
        loop {
            if let Ok(ended) = server.ended.lock().unwrap().try_recv() {
                return ended;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(IN_VAIN, ended).await.expect("the server ends the link")
}

fn limit(what: &'static str) -> Ended {
    Ended::Carrier(Gone::Limit(what))
}

/// Another client connects, is served, and leaves.
pub fn others_are_served(server: &Server, scheme: Scheme) {
    let client = Client::new(vec![(Channel::Chat, b"still there?".to_vec())]);
    let client = run_client(server.locator(scheme), &AccessKey::open(), &hello(), client);
    assert_eq!(client.got.len(), 1, "{scheme:?}: {:?}", client.ended);
    assert!(matches!(next_end(server), Ended::Link(Closed::There(_))));
}

#[test]
fn a_too_long_or_text_websocket_message_ends_the_link() {
    let server = Server::open();
    for (message, why) in [
        (Message::binary(vec![0; MAX_MESSAGE + 1]), "a message is too long"),
        (Message::text("hello"), "only binary messages are taken"),
    ] {
        block_on(async {
            let mut raw = RawWebSocket::open(&server).await;
            let _ = raw.socket.send(message).await;
            assert_eq!(next_end(&server), limit(why));
        });
        others_are_served(&server, Scheme::Ws);
    }
}

#[test]
fn a_too_long_or_text_first_message_opens_no_link() {
    let server = Server::open();
    for message in [Message::binary(vec![0; MAX_HELLO + 1]), Message::text("hello"), Message::binary(vec![])]
    {
        block_on(async {
            let mut socket = RawWebSocket::connect(&server).await;
            socket.send(message).await.unwrap();
            assert!(!matches!(socket.next().await, Some(Ok(Message::Binary(_)))), "no answer");
        });
    }
    others_are_served(&server, Scheme::Ws);
}

/// Asks for a WebSocket as a page of this origin; returns the status line.
fn status_for(to: SocketAddr, origin: &str) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(IN_VAIN)).unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {to}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{origin}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into()
}

#[test]
fn pages_of_other_sites_may_not_connect() {
    let server = Server::open();
    let to = server.addr(Scheme::Ws);
    let origin = |origin: &str| status_for(to, &format!("Origin: {origin}\r\n"));
    assert_eq!(origin("https://stranger.example"), "HTTP/1.1 403");
    assert_eq!(origin("https://friend.example.stranger.example"), "HTTP/1.1 403");
    assert_eq!(origin("null"), "HTTP/1.1 403");
    assert_eq!(origin("https://friend.example"), "HTTP/1.1 101");
    assert_eq!(origin(&format!("http://{to}")), "HTTP/1.1 101");
    assert_eq!(status_for(to, ""), "HTTP/1.1 101");
}

/// How long a connection lives that sends these bytes at intervals.
fn lives_for(to: SocketAddr, trickle: &[u8]) -> Duration {
    let start = Instant::now();
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut trickle = trickle.iter();
    while start.elapsed() < IN_VAIN {
        match stream.read(&mut [0; 64]) {
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
        if let Some(byte) = trickle.next() {
            let _ = stream.write_all(&[*byte]);
        }
    }
    start.elapsed()
}

#[test]
fn a_silent_or_slow_client_is_cut_off() {
    let server = Server::open();
    let [ws, wss] = [Scheme::Ws, Scheme::Wss].map(|scheme| server.addr(scheme));
    let slow = b"GET / HTTP/1.1\r\nHost: a-very-long-name-that-takes-its-time-to-be-spelled-out-entirely.example\r\n\r\n";
    let slow_tls = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[0; 200]].concat();
    let opened = |secs: f64| secs - 1.0..secs + 3.0;
    std::thread::scope(|scope| {
        let headers = [(ws, &slow[..]), (ws, &[]), (wss, &slow_tls[..]), (wss, &[])];
        let headers = headers.map(|(to, bytes)| scope.spawn(move || lives_for(to, bytes)));
        let server = &server;
        let hello = scope.spawn(move || {
            block_on(async {
                let start = Instant::now();
                let mut socket = RawWebSocket::connect(server).await;
                while let Some(Ok(_)) = socket.next().await {}
                start.elapsed()
            })
        });
        let lanes = scope.spawn(move || {
            block_on(async {
                let start = Instant::now();
                let raw = RawQuic::connect(server.locator(Scheme::Quic)).await;
                // Half a hello.
                let _lane = raw.lane(&[0, 200, 0, 1]).await;
                raw.connection.closed().await;
                start.elapsed()
            })
        });
        for cut in headers {
            let lived = cut.join().unwrap();
            assert!(opened(5.0).contains(&lived.as_secs_f64()), "{lived:?}");
        }
        for cut in [hello, lanes] {
            let lived = cut.join().unwrap();
            assert!(opened(3.0).contains(&lived.as_secs_f64()), "{lived:?}");
        }
    });
    others_are_served(&server, Scheme::Ws);
    others_are_served(&server, Scheme::Quic);
}

#[test]
fn a_flood_of_messages_is_rate_limited_without_harming_others() {
    let server = Server::open();
    block_on(async {
        let mut raw = RawWebSocket::open(&server).await;
        let start = Instant::now();
        let flood: Vec<Vec<u8>> =
            (0..1_000u16).map(|n| raw.encode(Channel::Input, &n.to_le_bytes())).collect();
        for bytes in flood {
            raw.socket.feed(Message::binary(bytes)).await.unwrap();
        }
        raw.socket.flush().await.unwrap();
        others_are_served(&server, Scheme::Ws);
        let mut answers = 0;
        while answers < 840 {
            answers += raw.receive().await;
        }
        // 600 at once, then 120 a second.
        assert!(start.elapsed() >= Duration::from_millis(1_900), "{:?}", start.elapsed());
    });
}

#[test]
fn a_client_that_does_not_read_is_dropped_alone() {
    let server = Server::open();
    block_on(async {
        let mut raw = RawWebSocket::open(&server).await;
        raw.send(Channel::Chat, b"flood me").await.unwrap();
        others_are_served_after(&server, Scheme::Ws);
        let ends = [next_end(&server), next_end(&server)];
        assert!(ends.contains(&limit("too much waits to be written")), "{ends:?}");
        // Its connection ends too, although its final bytes were never read.
        let closed = async { while let Some(Ok(_)) = raw.socket.next().await {} };
        tokio::time::timeout(IN_VAIN, closed).await.unwrap();
    });
}

fn is_violation(ended: &Ended) -> bool {
    matches!(ended, Ended::Link(Closed::Violation(_)))
}

#[test]
fn nonsense_after_the_hello_ends_the_link_and_nothing_else() {
    let server = Server::open();
    block_on(async {
        let mut raw = RawWebSocket::open(&server).await;
        raw.socket.send(Message::binary(vec![0xff; 100])).await.unwrap();
        assert!(is_violation(&next_end(&server)));
        others_are_served(&server, Scheme::Ws);

        let (_raw, mut lanes) = RawQuic::open(server.locator(Scheme::Quic)).await;
        lanes[2].0.write_all(&[0xff; 100]).await.unwrap();
        assert!(is_violation(&next_end_meanwhile(&server).await));
        let (raw, _lanes) = RawQuic::open(server.locator(Scheme::Quic)).await;
        raw.connection.send_datagram(vec![0xff; 100].into()).unwrap();
        assert!(is_violation(&next_end_meanwhile(&server).await));
        others_are_served(&server, Scheme::Quic);
    });
    let socket = UdpSocket::bind(LOCALHOST).unwrap();
    socket.connect(server.addr(Scheme::Udp)).unwrap();
    socket.set_read_timeout(Some(IN_VAIN)).unwrap();
    let mut calling = Calling::new(&Psk::new(&AccessKey::open()), &first_message()).ok().unwrap();
    socket.send(calling.first()).unwrap();
    let mut answer = [0; 1_500];
    let len = socket.recv(&mut answer).unwrap();
    calling.on_answer(&answer[..len]).unwrap();
    let mut packet = vec![];
    calling.seal().ok().unwrap().seal(&[&[0, 0][..], &[0xff; 100]].concat(), &mut packet);
    socket.send(&packet).unwrap();
    assert!(is_violation(&next_end(&server)));
    others_are_served(&server, Scheme::Udp);
}

#[test]
fn quic_lanes_and_datagrams_keep_to_their_form() {
    let server = Server::open();
    let to = server.locator(Scheme::Quic);
    block_on(async {
        let long = [&[0][..], &blob(&[1; MAX_HELLO + 1])].concat();
        for first in [&[9][..], &long] {
            let raw = RawQuic::connect(to).await;
            let _lane = raw.lane(first).await;
            tokio::time::timeout(IN_VAIN, raw.connection.closed()).await.unwrap();
        }
        let raw = RawQuic::connect(to).await;
        let _lanes = [raw.lane(&[1]).await, raw.lane(&[1]).await];
        tokio::time::timeout(IN_VAIN, raw.connection.closed()).await.unwrap();

        let (raw, _lanes) = RawQuic::open(to).await;
        let more = [raw.connection.open_bi().now_or_never(), raw.connection.open_bi().now_or_never()];
        assert!(more.iter().all(Option::is_none), "no more streams than lanes");
        assert!(raw.connection.open_uni().now_or_never().is_none(), "no streams but lanes");
        raw.connection.send_datagram(vec![0; MAX_QUIC_DATAGRAM + 1].into()).unwrap();
        assert_eq!(next_end_meanwhile(&server).await, limit("a datagram is too long"));
    });
    others_are_served(&server, Scheme::Quic);
}

#[test]
fn a_lane_that_the_other_side_stops_ends_the_link() {
    let server = Server::open();
    block_on(async {
        let (_raw, mut lanes) = RawQuic::open(server.locator(Scheme::Quic)).await;
        lanes[1].1.stop(quinn::VarInt::from_u32(0)).unwrap();
        let mut link = Link::new(Time::ZERO, Carrier::DatagramsAndStreams);
        let mut bytes = vec![];
        let asking = async {
            loop {
                link.send(Time::ZERO, Channel::Chat, b"hear me").unwrap();
                while link.poll_output(&mut bytes) != Output::Stream(LaneId(1)) {}
                if lanes[1].0.write_all(&bytes).await.is_err() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            ended = next_end_meanwhile(&server) => assert!(matches!(ended, Ended::Carrier(Gone::Failed(_))), "{ended:?}"),
            () = asking => {}
        }
    });
    others_are_served(&server, Scheme::Quic);
}

#[test]
fn pages_of_other_sites_may_not_connect_over_webtransport() {
    let server = Server::open();
    block_on(async {
        let to = server.locator(Scheme::Wt);
        let tls = client_config(Trust::Pinned(to.cert.unwrap()), &[b"h3"]).unwrap();
        let config = wtransport::ClientConfig::builder().with_bind_default().with_custom_tls(tls).build();
        let endpoint = wtransport::Endpoint::client(config).unwrap();
        let url = format!("https://{}/", to.authority());
        for (origin, welcome) in [
            ("https://stranger.example".to_owned(), false),
            ("https://friend.example".to_owned(), true),
            (format!("https://{}", to.authority()), true),
        ] {
            let request =
                wtransport::endpoint::ConnectOptions::builder(&url).add_header("origin", &origin).build();
            assert_eq!(endpoint.connect(request).await.is_ok(), welcome, "{origin}");
        }
    });
}

/// Resolves every name to one address, as DNS rebinding does.
#[derive(Debug)]
struct Pointed(SocketAddr);

impl wtransport::config::DnsResolver for Pointed {
    fn resolve(&self, _: &str) -> std::pin::Pin<Box<dyn wtransport::config::DnsLookupFuture>> {
        let to = self.0;
        Box::pin(async move { Ok(Some(to)) })
    }
}

#[test]
fn a_foreign_name_that_points_here_gets_no_webtransport() {
    let server = Server::open();
    block_on(async {
        let to = server.locator(Scheme::Wt);
        let tls = client_config(Trust::Pinned(to.cert.unwrap()), &[b"h3"]).unwrap();
        let mut config = wtransport::ClientConfig::builder().with_bind_default().with_custom_tls(tls).build();
        config.set_dns_resolver(Pointed(server.addr(Scheme::Wt)));
        let endpoint = wtransport::Endpoint::client(config).unwrap();
        for (name, is_known) in [("evil.example", false), ("friend.example", true), ("box.local", true)] {
            let url = format!("https://{name}:{}/", to.port);
            let request = wtransport::endpoint::ConnectOptions::builder(&url)
                .add_header("origin", format!("https://{name}:{}", to.port))
                .build();
            assert_eq!(endpoint.connect(request).await.is_ok(), is_known, "{name}");
        }
    });
}

/// Like [`others_are_served`], when links of earlier clients may still end meanwhile.
fn others_are_served_after(server: &Server, scheme: Scheme) {
    let client = Client::new(vec![(Channel::Chat, b"still there?".to_vec())]);
    let client = run_client(server.locator(scheme), &AccessKey::open(), &hello(), client);
    assert_eq!(client.got.len(), 1, "{scheme:?}: {:?}", client.ended);
}

#[test]
fn a_tls_mismatch_fails_cleanly() {
    let server = Server::open();
    let (ws, wss) = (server.locator(Scheme::Ws), server.locator(Scheme::Wss));
    let crossed = [
        Locator { scheme: Scheme::Wss, cert: wss.cert, ..ws.clone() },
        Locator { scheme: Scheme::Ws, cert: None, ..wss.clone() },
    ];
    for locator in crossed {
        let client = run_client(&locator, &AccessKey::open(), &hello(), Client::new(vec![]));
        assert!(matches!(client.ended, Some(Ended::Carrier(_))), "{locator}: {:?}", client.ended);
    }
    others_are_served(&server, Scheme::Ws);
    others_are_served(&server, Scheme::Wss);
}

/// A UDP listener in virtual time.
struct Listener {
    endpoint: UdpEndpoint,
    now: Time,
    key: AccessKey,
    made: u64,
}

impl Listener {
    fn new(max_links: usize) -> Listener {
        let key = AccessKey::open();
        let endpoint = UdpEndpoint::listen(LOCALHOST.parse().unwrap(), ProofJournal::in_memory(key.clone()));
        let endpoint = endpoint.unwrap().with_max_links(max_links);
        Listener { endpoint, now: Time::ZERO, key, made: 0 }
    }

    /// A first packet unlike all others.
    fn first(&mut self) -> Vec<u8> {
        self.made += 1;
        sealed_first(&self.key, &hello_of(&self.key, seconds_from_now(0), self.made))
    }

    /// Sends these packets, and returns the links that they would become.
    async fn receive(&mut self, from: &UdpSocket, packets: &[Vec<u8>]) -> Vec<LinkId> {
        let mut links = vec![];
        for volley in packets.chunks(32) {
            for packet in volley {
                from.send_to(packet, self.endpoint.local_addr().unwrap()).unwrap();
            }
            // Lets the runtime see the socket.
            tokio::task::yield_now().await;
            for _ in 0..3 {
                let mut cx = Context::from_waker(Waker::noop());
                let _ = self.endpoint.poll(&mut cx, self.now, &mut |arrival| {
                    if let Arrival::Hello { link, .. } = arrival {
                        links.push(link);
                    }
                });
                tokio::task::yield_now().await;
            }
        }
        links
    }
}

#[test]
fn first_packets_are_limited_per_address_and_replays_are_free() {
    block_on(async {
        let mut listener = Listener::new(10_000);
        let [one, other] = [LOCALHOST, "127.0.0.2:0"].map(|at| UdpSocket::bind(at).unwrap());
        let first = listener.first();
        let replays = vec![first; 500];
        assert_eq!(listener.receive(&one, &replays).await.len(), 1);
        let many: Vec<Vec<u8>> = (0..300).map(|_| listener.first()).collect();
        assert_eq!(listener.receive(&one, &many).await.len(), 255);
        assert_eq!(listener.receive(&other, &many[255..]).await.len(), 45, "another address has its own");
        listener.now = Time::from_millis(1_000);
        let more: Vec<Vec<u8>> = (0..50).map(|_| listener.first()).collect();
        assert_eq!(listener.receive(&one, &more).await.len(), 32, "so many a second");
        let again = more[32..].to_vec();
        listener.now = Time::from_millis(2_000);
        assert_eq!(
            listener.receive(&one, &again).await.len(),
            18,
            "those that were turned away may try again"
        );
    });
}

#[test]
fn a_full_table_admits_no_client_until_one_leaves() {
    block_on(async {
        let mut listener = Listener::new(3);
        let mut sockets: Vec<UdpSocket> = (0..5).map(|_| UdpSocket::bind(LOCALHOST).unwrap()).collect();
        let last = sockets.pop().unwrap();
        let mut links = vec![];
        for socket in &sockets {
            let first = [listener.first()];
            for link in listener.receive(socket, &first).await {
                listener.endpoint.answer(link, b"welcome", true);
                links.push(link);
            }
        }
        assert_eq!(links.len(), 3);
        let first = [listener.first()];
        assert!(listener.receive(&last, &first).await.is_empty());
        listener.endpoint.drop_link(links[1]);
        assert_eq!(listener.receive(&last, &first).await.len(), 1);
    });
}

#[test]
fn a_repeated_first_packet_is_answered_for_a_limited_time() {
    block_on(async {
        for open in [false, true] {
            let mut listener = Listener::new(3);
            let socket = UdpSocket::bind(LOCALHOST).unwrap();
            socket.set_nonblocking(true).unwrap();
            let first = [listener.first()];
            let link = listener.receive(&socket, &first).await[0];
            listener.endpoint.answer(link, b"here I am", open);
            listener.endpoint.flush();
            let mut buffer = [0; 200];
            let mut answers = vec![];
            for at_ms in [0, 4_900, 5_100, 60_000] {
                while let Ok(len) = socket.recv(&mut buffer) {
                    answers.push((at_ms, len));
                }
                listener.now = Time::from_millis(at_ms);
                assert!(listener.receive(&socket, &first).await.is_empty());
            }
            assert!(socket.recv(&mut buffer).is_err());
            let at: Vec<u64> = answers.iter().map(|(at_ms, _)| *at_ms).collect();
            assert_eq!(at, [0, 4_900, 5_100], "the answer, and one for each repetition in time");
        }
    });
}
