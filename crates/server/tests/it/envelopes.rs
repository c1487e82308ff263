//! Checks the examples in docs/protocol.md against the code that sends and parses them.

use std::collections::{BTreeMap, BTreeSet};

use sametick::rooms::envelope::{Code, Encoding, Fault, Outgoing, encode};
use sametick::rooms::outgoing::{
    Ack, Cast, Feature, Happened, Known, Mode, Pace, Player, Pong, Rates, Saved, Snapshot, Welcome,
};
use sametick_arena::{Arena, Event, Setup};
use sametick_sim::replica::{Entity, Hosted, markdown};
use serde_json::{Value, json};

use crate::stage::Stage;

const DOCUMENT: &str = include_str!("../../../../docs/protocol.md");

fn section() -> &'static str {
    DOCUMENT.split("## Envelope protocol v2").nth(1).expect("the document has the section")
}

/// The examples, in order.
fn examples() -> Vec<Value> {
    let blocks = section().split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| serde_json::from_str(block).unwrap_or_else(|why| panic!("{why}: {block}"))).collect()
}

fn said<M: Outgoing>(message: &M) -> Value {
    let mut bytes = Vec::new();
    encode(Encoding::Json, message, &mut bytes);
    serde_json::from_slice(&bytes).unwrap()
}

/// A player's own state: every field of the game's declaration.
fn own() -> Value {
    let own = json!({
        "number": 1, "at": [4224, 6784], "aim": 0, "walk": 0, "firing": false, "cooldown": 0, "health": 100,
        "respawn": 0, "built": 0, "busy": 0, "touched": [0, 0], "removed": false, "shield": 0, "frozen": 0
    });
    let declared: BTreeSet<&str> =
        <Arena as Hosted>::Own::KIND.fields.iter().map(|field| field.name).collect();
    assert_eq!(own.as_object().unwrap().keys().map(String::as_str).collect::<BTreeSet<_>>(), declared);
    own
}

fn snapshots() -> [Snapshot<Value>; 2] {
    let player = |seat, name: &str| Player { seat, name: name.into() };
    let me = |at: [i32; 2]| json!({"at": at, "aim": 0, "health": 100, "shielded": false});
    let mut features: BTreeMap<_, Feature<Value>> =
        ["build", "movement", "presence", "projectile"].map(|name| (name, Feature::default())).into();
    let ground = BTreeMap::from([(
        "0".to_owned(),
        json!({"size": 48, "points": 0, "won": null, "round": 1, "wait": 0}),
    )]);
    features.get_mut("presence").unwrap().kinds.insert("ground", ground);
    let avatars =
        [("0".to_owned(), json!({"at": [9000, 6784], "aim": 0})), ("1".to_owned(), me([4224, 6784]))];
    features.get_mut("movement").unwrap().kinds.insert("avatar", avatars.into());
    let full = Snapshot {
        mode: Mode::Full,
        tick: 303,
        server_time: 10_100.5,
        ack_seq: None,
        players: Some(vec![player(0, "Bob"), player(1, "Ada")]),
        own: Some(Some(own())),
        features,
    };
    let moved = Feature {
        kinds: BTreeMap::from([("avatar", BTreeMap::from([("1".to_owned(), me([4254, 6754]))]))]),
        removed: BTreeMap::from([("avatar", vec![0])]),
    };
    let delta = Snapshot {
        mode: Mode::Delta,
        tick: 306,
        server_time: 10_200.5,
        ack_seq: Some(42),
        players: None,
        own: None,
        features: BTreeMap::from([("movement", moved)]),
    };
    [full, delta]
}

fn welcome() -> Welcome {
    let mut features = BTreeMap::<_, BTreeMap<_, _>>::new();
    for kind in Arena::KINDS {
        let fields = kind.fields.iter().map(|field| field.name).collect();
        features.entry(kind.feature).or_default().insert(kind.name, fields);
    }
    Welcome {
        room: "den".into(),
        game: "arena",
        player_id: Some("1".into()),
        seat: Some(1),
        name: "Ada".into(),
        rates: Rates { step: Arena::UPDATES.per_second() * 3, update: Arena::UPDATES.per_second() },
        resume_token: (0..24).map(|byte: u8| format!("{byte:02x}")).collect(),
        tick: 300,
        server_time: 10_000.5,
        features,
    }
}

#[test]
fn messages_to_scripts_are_documented() {
    let [full, delta] = snapshots();
    let killed = Happened { tick: 305, event: Event::Killed { killer: 1, victim: 0 } };
    let pong = Pong { seq: Some(7), client_time: Some(1_234.56), server_time: 10_150.25 };
    let all = [
        said(&welcome()),
        said(&full),
        said(&delta),
        said(&Ack { seq: 42, tick: 304 }),
        said(&pong),
        said(&killed),
        said(&Known { token: (0..16).map(|byte: u8| format!("{byte:02x}")).collect() }),
        said(&Saved { tick: 330 }),
        said(&Pace { percent: 40 }),
        said(&Cast {
            active: Arena::CHARACTERS[0].into(),
            all: Arena::CHARACTERS.iter().map(|name| (*name).into()).collect(),
        }),
        said(&Fault::new(Code::BadPayload, "`x` is missing").of(43)),
    ];
    let examples = examples();
    for message in &all {
        assert!(examples.contains(message), "docs/protocol.md lacks:\n{message}");
    }
    let is_ours = |example: &&Value| {
        !["command", "ping", "character", "resync"].contains(&example["kind"].as_str().unwrap())
    };
    assert_eq!(examples.iter().filter(is_ours).count(), all.len(), "an example is of yesterday");
    for code in Code::ALL {
        let row = format!("| `{}` |", json!(code).as_str().unwrap());
        assert!(section().contains(&row), "docs/protocol.md lacks the code {row}");
    }
}

#[test]
fn messages_of_scripts_are_parsed_as_documented() {
    let mut stage = Stage::new(Setup { bots: 0, ..Setup::default() });
    let ada = stage.enter("Ada");
    stage.run_millis(500);
    let is_theirs =
        |example: &Value| ["command", "ping", "resync"].contains(&example["kind"].as_str().unwrap());
    let mut count = 0;
    for example in examples().into_iter().filter(is_theirs) {
        stage.actors[ada].told.clear();
        stage.say(ada, &example);
        stage.say_packed(ada, &example);
        stage.run_millis(300);
        let told: Vec<Value> = stage.actors[ada].told.drain(..).map(|(_, message)| message).collect();
        assert!(told.iter().all(|message| message["kind"] != "error"), "{example}: {told:?}");
        let answer = match example["kind"].as_str().unwrap() {
            "command" => "ack",
            "ping" => "pong",
            _ => "snapshot",
        };
        assert!(told.iter().any(|message| message["kind"] == answer), "{example}: {told:?}");
        count += 1;
    }
    assert_eq!(count, 9);
}

#[test]
fn the_table_of_visibility_in_arena_is_up_to_date() {
    let table = markdown(Arena::KINDS);
    assert!(section().contains(&table), "docs/protocol.md lacks:\n{table}");
}
