//! Generates the committed seeds of the target `session` and compares them, as `seeds.rs` does for the wire. After a
//! change, `SEEDS=write cargo test --manifest-path fuzz/Cargo.toml --test session_seeds` writes them anew.

#![allow(
    clippy::disallowed_methods,
    reason = "a test that writes files asks the environment whether it should"
)]

use std::fs;
use std::path::Path;

use sametick_session::id::{HostId, Incarnation, Key, SessionId, Source};
use sametick_session::name::Name;
use sametick_session::placing::{FromHost, ToHost};
use sametick_session::session::{Founding, Session};
use sametick_session::settings::{Difficulty, Mode, Settings};
use sametick_sim::{Seat, Time};
use sametick_wire::control;
use sametick_wire::identity::PlayerId;

#[test]
fn seeds_are_of_this_protocol() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/session");
    let write = std::env::var_os("SEEDS").is_some_and(|what| what == "write");
    for (name, bytes) in [("evening", evening()), ("asked", asked()), ("stored", stored())] {
        let path = folder.join(name);
        if write {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).is_ok_and(|read| read == bytes), "session/{name} differs");
    }
}

/// A step with a message.
fn said(step: u8, message: &[u8]) -> Vec<u8> {
    let len = message.len() as u16;
    let len = if len < 0xf8 { vec![len as u8] } else { vec![0xf8 | (len >> 8) as u8, len as u8] };
    [&[step], &len[..], message].concat()
}

/// A session is created, played, cut off, resumed, moved and ended.
fn evening() -> Vec<u8> {
    let settings = r#"{"name":"x","game":"bridge","mode":"room","scenario":null,"difficulty":3,"groups":2,"listed":true}"#;
    let create = format!(
        r#"{{"action":"create","payload":{{"key":"{}","name":"Ada","settings":{settings},"password":"p"}}}}"#,
        "0".repeat(32)
    );
    let say = |what: &str| said(3, what.as_bytes());
    let take = br#"{"action":"take","payload":{"seat":1}}"#;
    [
        vec![0],
        said(4, create.as_bytes()),
        vec![6],
        said(0x13, take),
        // The member is the one that came four steps before.
        said(0x33, br#"{"action":"ready","payload":{"ready":true}}"#),
        said(0x43, br#"{"action":"start","payload":{}}"#),
        say(r#"{"action":"chat","payload":{"line":"hello"}}"#),
        vec![10, 8, 7, 14, 7, 9, 0x10, 12, 0x10, 13, 0x10, 0x20, 0x30, 0x30],
    ]
    .concat()
}

fn settings() -> Settings {
    Settings {
        name: Name::parse("x").unwrap(),
        game: Name::parse("bridge").unwrap(),
        mode: Mode::Room,
        scenario: None,
        difficulty: Difficulty::default(),
        groups: 1,
        listed: true,
    }
}

const ID: SessionId = SessionId { host: HostId(1), born: Incarnation(1), mark: 7 };

/// The requests between gateways and hosts.
fn asked() -> Vec<u8> {
    let name = Name::parse("Ada").unwrap();
    let place = ToHost::Place {
        key: Key([1; 16]),
        player: PlayerId(1),
        name: name.clone(),
        settings: settings(),
        password: None,
    };
    let reserve = ToHost::Reserve {
        ask: 1,
        session: ID,
        player: PlayerId(2),
        name,
        password: None,
        seat: Some(Seat(1)),
        source: Source(3),
    };
    let offer =
        FromHost::Offer { session: ID, life: Incarnation(1), settings: settings(), stored: vec![1, 2, 3] };
    let adopt = ToHost::Adopt { from: ID, life: Incarnation(1), stored: vec![1, 2, 3] };
    [
        said(1, &control::to_bytes(&place)),
        said(1, &control::to_bytes(&reserve)),
        said(2, &control::to_bytes(&offer)),
        said(1, &control::to_bytes(&adopt)),
        said(5, b"00112233"),
    ]
    .concat()
}

/// The file of a session, without version and checksum.
fn stored() -> Vec<u8> {
    let plan = sametick_session::plan::Plan::uniform("Ship", 2, &["helm", "guns"]).unwrap();
    let founding = Founding { id: ID, key: Key([2; 16]), plan, settings: settings(), lock: None };
    let bytes = Session::new(Time::ZERO, &[1; 32], founding).unwrap().snapshot();
    said(11, &bytes[1..bytes.len() - 8])
}
