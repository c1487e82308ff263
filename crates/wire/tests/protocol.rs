//! The examples in docs/protocol.md are the bytes that the code writes.

use std::fmt::Write;

use sametick_sim::{BuildId, SchemaHash, Time};
use sametick_wire::access::{AccessKey, Source};
use sametick_wire::block::{Until, put_redundant};
use sametick_wire::frame::{put_message, put_ordered_head};
use sametick_wire::hello::{Answer, Hello, HelloOutcome, HelloVerifier, Identity, Intent, Refusal, Stamp};
use sametick_wire::packet::{Ack, Head, Newest};
use sametick_wire::{Carrier, Channel, Input, Link, Output};

const DOCUMENT: &str = include_str!("../../../docs/protocol.md");
const NOW_S: u64 = 1_800_000_000;

/// Bytes as the document writes them: two digits each, 32 bytes a line.
fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        let before = if at == 0 {
            ""
        } else if at % 32 == 0 {
            "\n"
        } else {
            " "
        };
        write!(out, "{before}{byte:02x}").unwrap();
    }
    out
}

#[track_caller]
fn documented(bytes: &[u8]) {
    let hex = hex(bytes);
    assert!(DOCUMENT.contains(&hex), "docs/protocol.md lacks:\n{hex}");
}

#[test]
fn the_packet() {
    let mut packet = vec![];
    let ack = Ack { newest: Newest::Long(0x1234), delay: Some(200), missing: 0b101 };
    Head { number: 5, ack: Some(ack) }.put(&mut packet);
    put_message(&mut packet, Channel::State, b"hi");
    put_ordered_head(&mut packet, Channel::Chunks, 300, 3);
    packet.extend_from_slice(b"xyz");
    put_redundant(&mut packet, Until::new(0x0104, 2, true), [&b"a"[..], b""].into_iter());
    documented(&packet);
}

#[test]
fn a_packet_of_a_relay() {
    let mut packet = vec![];
    Head { number: 5, ack: Some(Ack { newest: Newest::Short(0x14), delay: Some(9), missing: 0 }) }
        .put(&mut packet);
    put_redundant(&mut packet, Until::new(12, 1, true), [&b"ticks"[..]].into_iter());
    documented(&packet);
}

#[test]
fn the_first_packet_of_a_link() {
    let mut link = Link::new(Time::ZERO, Carrier::Datagrams);
    let mut first = vec![];
    assert_eq!(link.poll_output(&mut first), Output::Datagram);
    documented(&first);
    link.handle(Time::ZERO, Input::Datagram(&first)).unwrap();
}

#[test]
fn the_first_message_and_its_answers() {
    let identity = Identity { build: BuildId::from_bytes([2; 16]), schema: SchemaHash::from_bytes([2; 32]) };
    let intent = Intent::Join { session: "den".into() };
    let hello = Hello { identity, intent, name: "ada".into(), pass: None };
    let stamp = Stamp { unix_s: NOW_S, nonce: [9; 16] };
    let bytes = hello.to_bytes(&AccessKey::open(), stamp).unwrap();
    documented(&bytes);
    let source = Source::proven(core::net::Ipv4Addr::LOCALHOST.into());
    assert!(matches!(
        HelloVerifier::new(AccessKey::open()).knock(NOW_S, source, &bytes),
        HelloOutcome::Proven(_)
    ));
    documented(&Answer::Welcome.to_bytes());
    documented(&Answer::Refused(Refusal::Version { server: 1, client: 300 }).to_bytes());
}

#[test]
fn the_keys() {
    documented(&AccessKey::open().noise_psk());
    let key = AccessKey::from_passphrase("correct horse");
    documented(&key.noise_psk());
    documented(&key.connection_id(NOW_S, [1, 2, 3, 4, 5, 6]));
    documented(&AccessKey::open().connection_id(NOW_S, [1, 2, 3, 4, 5, 6]));
}
