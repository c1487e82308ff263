//! The examples in docs/sessions.md are the messages that are read and written, in JSON and in MessagePack.

use std::collections::BTreeSet;
use std::fmt::Debug;

use sametick_session::lobby::{Ask, Reply};
use sametick_session::message::{Closing, Ending, Event, Parting, Phase, Refusal, Request};
use sametick_session::placing::{FromHost, ToHost};
use sametick_sim::Seat;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const DOCS: &str = include_str!("../../../../docs/sessions.md");

fn examples() -> Vec<Value> {
    let blocks = DOCS.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| serde_json::from_str(block).unwrap_or_else(|why| panic!("{why}: {block}"))).collect()
}

/// Checks that a value is written as it was read, in both encodings.
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &Value) -> T {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|why| panic!("{why}: {value}"));
    assert_eq!(&serde_json::to_value(&read).unwrap(), value);
    let packed = rmp_serde::to_vec_named(&read).unwrap();
    assert_eq!(rmp_serde::from_slice::<T>(&packed).unwrap(), read);
    assert_eq!(&rmp_serde::from_slice::<Value>(&packed).unwrap(), value, "the same in MessagePack");
    read
}

fn first_key(value: &Value) -> String {
    value.as_object().and_then(|fields| fields.keys().next()).unwrap().clone()
}

#[test]
fn every_documented_message_is_read_and_written() {
    let mut seen = BTreeSet::new();
    for example in examples() {
        assert_eq!(example["v"], 2);
        let command = json!({"action": example["action"], "payload": example["payload"]});
        let name = match (example["kind"].as_str().unwrap(), example["feature"].as_str().unwrap()) {
            ("command", "session") => {
                same::<Request>(&command);
                example["action"].to_string()
            }
            ("command", "lobby") => {
                same::<Ask>(&command);
                example["action"].to_string()
            }
            ("event", "session") => {
                same::<Event>(&example["event"]);
                first_key(&example["event"])
            }
            ("closing", "session") => {
                same::<Closing>(&example["closing"]);
                continue;
            }
            ("answer", "lobby") => {
                same::<Reply>(&example["answer"]);
                first_key(&example["answer"])
            }
            other => panic!("{other:?}"),
        };
        assert!(seen.insert(name), "{example} is there once");
    }
    // Eleven requests, four questions, nine events, three answers: all that exist.
    assert_eq!(seen.len(), 27, "{seen:?}");
}

#[test]
fn golden_bytes_of_message_pack() {
    let bytes = rmp_serde::to_vec_named(&Request::Take { seat: Seat(0) }).unwrap();
    let text: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(DOCS.contains(&text.join(" ")), "{}", text.join(" "));
}

#[test]
fn every_code_is_documented() {
    let word = |value: Value| format!("`{}`", value.as_str().unwrap());
    for refusal in Refusal::ALL {
        assert!(DOCS.contains(&word(serde_json::to_value(refusal).unwrap())), "{refusal:?}");
        assert!(refusal.message().len() > 10);
    }
    let endings = [
        Ending::Unclaimed,
        Ending::Idle,
        Ending::Abandoned,
        Ending::Finished,
        Ending::Quarantined,
        Ending::Moved,
        Ending::Stopped,
    ];
    for ending in endings {
        assert!(DOCS.contains(&word(serde_json::to_value(ending).unwrap())), "{ending:?}");
    }
    for parting in [Parting::Left, Parting::Released, Parting::Kicked, Parting::Banned] {
        assert!(DOCS.contains(&word(serde_json::to_value(parting).unwrap())), "{parting:?}");
    }
    assert_eq!(serde_json::to_value(Phase::Running).unwrap(), "running");
}

#[test]
fn an_invalid_message_is_refused() {
    let long = "x".repeat(100);
    let bad = [
        json!({"action": "take", "payload": {}}),
        json!({"action": "take", "payload": {"seat": -1}}),
        json!({"action": "take", "payload": {"seat": 70_000}}),
        json!({"action": "fly", "payload": {}}),
        json!({"action": "rename", "payload": {"name": ""}}),
        json!({"action": "rename", "payload": {"name": long}}),
        json!({"action": "chat", "payload": {"line": "\u{202e}\u{200b}"}}),
        json!({"action": "kick", "payload": {"player": "1", "ban": false}}),
        json!({"action": "start"}),
        json!([]),
    ];
    for value in bad {
        assert!(serde_json::from_value::<Request>(value.clone()).is_err(), "{value}");
    }
    let settings = json!({"name": "x", "game": "pong", "mode": "room", "scenario": null, "difficulty": 12, "groups": 1,
        "listed": true});
    let value = json!({"action": "settings", "payload": {"settings": settings}});
    assert!(serde_json::from_value::<Request>(value).is_err(), "difficulty");
}

/// A client may be newer than the server.
#[test]
fn unknown_fields_are_ignored() {
    let mut settings = serde_json::to_value(crate::stage::settings(1)).unwrap();
    settings["setup"] = json!("\u{1}".repeat(1_024));
    let value = json!({"action": "settings", "payload": {"settings": settings}});
    let expected = Request::Settings { settings: crate::stage::settings(1) };
    assert_eq!(serde_json::from_value::<Request>(value.clone()).unwrap(), expected);
    let packed = rmp_serde::to_vec_named(&value).unwrap();
    assert_eq!(rmp_serde::from_slice::<Request>(&packed).unwrap(), expected);
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = rmp_serde::from_slice::<Request>(&bytes);
        let _ = rmp_serde::from_slice::<Ask>(&bytes);
        let _ = sametick_wire::control::from_bytes::<ToHost>(&bytes);
        let _ = sametick_wire::control::from_bytes::<FromHost>(&bytes);
    }
}

/// Messages between gateways and hosts also travel as canonical bytes.
#[test]
fn messages_of_gateways_and_hosts_round_trip() {
    let ask = ToHost::Reserve {
        ask: 300,
        session: crate::stage::ID,
        player: crate::stage::ADA,
        name: crate::stage::name("Ada"),
        password: None,
        seat: Some(Seat(2)),
        source: sametick_session::id::Source(7),
    };
    let bytes = sametick_wire::control::to_bytes(&ask);
    let start = [&[1, 0xac, 2, 32][..], b"0000000100000001000000000000004d", &[32]].concat();
    assert!(bytes.starts_with(&start), "{bytes:?}");
    assert!(bytes.ends_with(&[3, b'A', b'd', b'a', 0, 1, 2, 7]), "{bytes:?}");
    assert_eq!(sametick_wire::control::from_bytes::<ToHost>(&bytes), Ok(ask));
}
