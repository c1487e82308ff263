//! A server's memory for clients that finish nothing: handshakes, messages, first packets.

use std::net::UdpSocket;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use sametick_transport::clock::random;
use sametick_transport::connection_slots::ConnectionSlots;
use sametick_transport::dial::Scheme;
use sametick_transport::hub::Ended;
use sametick_transport::noise::{Calling, Psk, Seal};
use sametick_transport::proof_journal::ProofJournal;
use sametick_transport::site::Site;
use sametick_transport::websocket;
use sametick_wire::access::AccessKey;
use sametick_wire::codec::put_varint;
use sametick_wire::frame::{put_chunk_head, put_ordered_head};
use sametick_wire::{Carrier, Channel, Closed, Link, Output, Reason, Time};
use tokio_tungstenite::tungstenite::Message;

use crate::echo::{Client, LOCALHOST, Server, block_on, hello, run_client};
use crate::raw::{RawQuic, RawWebSocket, first_message};

const IN_VAIN: Duration = Duration::from_secs(10);

fn open() -> ProofJournal {
    ProofJournal::in_memory(AccessKey::open())
}

/// A piece of a message of 16 MiB that never ends, as lanes carry it; the first begins it.
fn piece(channel: Channel, is_first: bool) -> Vec<u8> {
    let mut inside = vec![];
    if is_first {
        put_varint(&mut inside, 16 << 20);
    }
    inside.resize(3_000, 7);
    let mut bytes = vec![];
    put_chunk_head(&mut bytes, channel, inside.len());
    bytes.extend_from_slice(&inside);
    bytes
}

/// How the next link of a server ends: closed from this side, if it was over its budget.
fn closed_here(server: &Server) -> bool {
    server.ended.lock().unwrap().recv_timeout(IN_VAIN) == Ok(Ended::Link(Closed::Here))
}

#[test]
fn an_unjoined_websocket_link_over_budget_is_told_why() {
    let server = Server::start_strict(open());
    block_on(async {
        let mut raw = RawWebSocket::open(&server).await;
        for number in 0..4 {
            let _ = raw.socket.send(Message::binary(piece(Channel::Chunks, number == 0))).await;
        }
        let mut told = vec![];
        while let Some(Ok(message)) = raw.socket.next().await {
            told.extend_from_slice(&message.into_data());
        }
        assert!(closed_here(&server));
        assert!(String::from_utf8_lossy(&told).contains("has not joined"), "{told:?}");

        // One that has joined may send a megabyte before it is whole.
        let mut raw = RawWebSocket::open(&server).await;
        raw.send(Channel::Chat, b"join me").await.unwrap();
        for number in 0..300 {
            raw.socket.send(Message::binary(piece(Channel::Chunks, number == 0))).await.unwrap();
        }
        raw.send(Channel::Chat, b"still there?").await.unwrap();
        while raw.receive().await == 0 {}
    });
}

#[test]
fn an_unjoined_quic_link_holds_little() {
    let server = Server::start_strict(open());
    block_on(async {
        let (raw, mut lanes) = RawQuic::open(server.locator(Scheme::Quic)).await;
        for number in 0..4 {
            let _ = lanes[3].0.write_all(&piece(Channel::Chunks, number == 0)).await;
        }
        tokio::time::timeout(IN_VAIN, raw.connection.closed()).await.unwrap();
        assert!(closed_here(&server));
    });
}

#[test]
fn a_connection_without_a_hello_has_a_small_window() {
    let server = Server::open();
    block_on(async {
        let raw = RawQuic::connect(server.locator(Scheme::Quic)).await;
        let (mut writer, _reader) = raw.lane(&[1]).await;
        let mut written = 0;
        let writing = async {
            while let Ok(len) = writer.write(&[7; 1_024]).await {
                written += len;
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(300), writing).await;
        assert!(written <= 16 << 10, "{written} bytes in flight");
    });
}

/// A client that speaks UDP by hand.
struct Raw {
    socket: UdpSocket,
    seal: Seal,
    number: u16,
}

impl Raw {
    fn open(server: &Server, socket: UdpSocket) -> Raw {
        let mut calling = Calling::new(&Psk::new(&AccessKey::open()), &first_message()).ok().unwrap();
        socket.set_read_timeout(Some(IN_VAIN)).unwrap();
        socket.send_to(calling.first(), server.addr(Scheme::Udp)).unwrap();
        let mut answer = [0; 1_500];
        let len = socket.recv(&mut answer).unwrap();
        calling.on_answer(&answer[..len]).unwrap();
        Raw { socket, seal: calling.seal().ok().unwrap(), number: 0 }
    }

    fn send(&mut self, server: &Server, frames: &[u8]) {
        let mut packet = vec![];
        self.seal.seal(&[&self.number.to_le_bytes()[..], &[0], frames].concat(), &mut packet);
        self.number += 1;
        self.socket.send_to(&packet, server.addr(Scheme::Udp)).unwrap();
    }
}

#[test]
fn an_unjoined_udp_link_holds_little() {
    let server = Server::start_strict(open());
    let mut raw = Raw::open(&server, UdpSocket::bind(LOCALHOST).unwrap());
    for number in 0..20u64 {
        let mut frames = vec![];
        // Too early, with a hole before each: none of it can be delivered.
        put_ordered_head(&mut frames, Channel::Chunks, 1 + number * 2_000, 1_000);
        frames.extend_from_slice(&[7; 1_000]);
        raw.send(&server, &frames);
    }
    assert!(closed_here(&server));
}

#[test]
fn first_packets_alone_leave_no_state_and_end_no_link() {
    let folder = std::env::temp_dir().join(format!("sametick-strain-{:016x}", u64::from_le_bytes(random())));
    std::fs::create_dir_all(&folder).unwrap();
    let journal = folder.join("used-proofs");
    let records = || std::fs::metadata(&journal).unwrap().len() / 24;
    let server = Server::start(ProofJournal::open(AccessKey::open(), &journal).unwrap());
    let mut player = Raw::open(&server, UdpSocket::bind(LOCALHOST).unwrap());
    // A ping: it shows that the player received the answer.
    player.send(&server, &[0x50, 0, 0]);
    let client = Client::new(vec![(Channel::Chat, b"hello".to_vec())]);
    let come = |client| run_client(server.locator(Scheme::Udp), &AccessKey::open(), &hello(), client);
    assert_eq!(come(client).got.len(), 1);
    assert_eq!(records(), 2);
    // Clients that forge the player's address, and others.
    let made_up = player.socket.try_clone().unwrap();
    for _ in 0..50 {
        let calling = Calling::new(&Psk::new(&AccessKey::open()), &first_message()).ok().unwrap();
        made_up.send_to(calling.first(), server.addr(Scheme::Udp)).unwrap();
        let other = UdpSocket::bind("127.0.0.3:0").unwrap();
        other.send_to(calling.first(), server.addr(Scheme::Udp)).unwrap();
    }
    // The player's link is still there: its message is answered under its own keys.
    let mut asking = Link::new(Time::ZERO, Carrier::Datagrams);
    asking.send(Time::ZERO, Channel::State, b"still there?").unwrap();
    let mut datagram = vec![];
    assert_eq!(asking.poll_output(&mut datagram), Output::Datagram);
    player.send(&server, &datagram[3..]);
    let mut plain = vec![];
    let answered = (0..200).any(|_| {
        let mut packet = [0; 1_500];
        let len = player.socket.recv(&mut packet).unwrap();
        player.seal.open(&packet[..len], &mut plain) && plain.windows(12).any(|part| part == b"still there?")
    });
    assert!(answered);
    assert_eq!(come(Client::new(vec![(Channel::Chat, b"hello".to_vec())])).got.len(), 1);
    assert_eq!(records(), 3, "only those who came in are written down");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn connections_are_limited_per_address_before_the_hello_too() {
    block_on(async {
        let site = Site { places: ConnectionSlots::of_each(3), ..Site::default() };
        let endpoint = websocket::listen(LOCALHOST.parse().unwrap(), None, site).await.unwrap();
        let to = sametick_transport::endpoint::Endpoint::local_addr(&endpoint).unwrap();
        let mut sockets = vec![];
        for _ in 0..3 {
            let stream = tokio::net::TcpStream::connect(to).await.unwrap();
            let (mut socket, _) =
                tokio_tungstenite::client_async(format!("ws://{to}/"), stream).await.unwrap();
            socket.send(Message::binary(first_message())).await.unwrap();
            sockets.push(socket);
        }
        let stream = tokio::net::TcpStream::connect(to).await.unwrap();
        assert!(tokio_tungstenite::client_async(format!("ws://{to}/"), stream).await.is_err());
    });
}

#[test]
fn a_reason_stays_on_its_line() {
    let text = "bye\n2026-01-01 ERROR all is lost\u{1b}[31m".into();
    let ended = Ended::Link(Closed::There(Reason { code: 0, text }));
    assert_eq!(ended.to_string(), "closed from the other side: bye 2026-01-01 ERROR all is lost [31m");
}
