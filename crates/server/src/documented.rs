//! Tests that docs/ name every message kind, event and code that the code lists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sametick_lockstep::message::{ToPeer, ToRelay};
use sametick_room::message::{ToHost, ToView};
use sametick_session::lobby::{Ask, Reply};
use sametick_session::message::{Closing, Ending, Event, Parting, Phase, Refusal, Request};
use sametick_sim::replica::{Entity, Hosted};
use sametick_wire::closing::{LEAVING, OVER_A_LIMIT, THROWN_OUT};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::rooms::command::command_of;
use crate::rooms::envelope::{Code, Encoding, Incoming, parse};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn doc(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// The part of a document below a heading, up to the next heading of its rank or above.
fn below<'a>(text: &'a str, heading: &str) -> &'a str {
    let start = text.find(&format!("{heading}\n")).unwrap_or_else(|| panic!("there is no {heading:?}"));
    let rest = &text[start + heading.len()..];
    let rank = heading.chars().take_while(|letter| *letter == '#').count();
    let is_end = |line: &str| {
        let hashes = line.chars().take_while(|letter| *letter == '#').count();
        (1..=rank).contains(&hashes) && line[hashes..].starts_with(' ')
    };
    let lines = rest.match_indices('\n').map(|(at, _)| at + 1);
    let end = lines.into_iter().find(|at| is_end(rest[*at..].lines().next().unwrap_or_default()));
    &rest[..end.unwrap_or(rest.len())]
}

#[track_caller]
fn assert_named<'a>(names: impl IntoIterator<Item = &'a str>, text: &str, place: &str) {
    let is_there =
        |name: &&str| [format!("`{name}`"), format!("\"{name}\"")].iter().any(|form| text.contains(form));
    let missing: Vec<&str> = names.into_iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "{place} does not name {missing:?}");
}

/// The names of an enum's variants, in order, as serde reads them.
fn variants<T: DeserializeOwned>() -> Vec<String> {
    let none = ["?".into(), json!({ "action": "?" })];
    let found = none.into_iter().find_map(|none| {
        let said = serde_json::from_value::<T>(none).err()?.to_string();
        let (_, names) = said.split_once("unknown variant `?`, expected ")?;
        Some(names.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect())
    });
    found.unwrap_or_else(|| panic!("{} lists nothing", std::any::type_name::<T>()))
}

/// Checks a table of messages by number.
#[track_caller]
fn assert_numbered<T: DeserializeOwned>(table: &str) {
    let text = doc("protocol.md");
    let from = text.find(&format!("| {table} | fields |")).unwrap_or_else(|| panic!("there is no {table}"));
    let rows = text[from..].lines().skip(2).take_while(|line| line.starts_with('|'));
    let heads: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect();
    let wanted: Vec<String> =
        variants::<T>().iter().enumerate().map(|(number, name)| format!("{number} `{name}`")).collect();
    assert_eq!(heads, wanted, "the table \"{table}\" of docs/protocol.md");
}

fn sources(folder: &Path, see: &mut impl FnMut(&str)) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => sources(&path, see),
            path if path.extension().is_some_and(|ending| ending == "rs") => {
                see(&fs::read_to_string(path).unwrap());
            }
            _ => {}
        }
    }
}

#[test]
fn binary_messages_are_documented_by_number() {
    assert_numbered::<ToRelay>("to the relay");
    assert_numbered::<ToPeer>("to a peer");
    assert_numbered::<ToHost>("to the host");
    assert_numbered::<ToView>("to a view");
}

#[test]
fn kinds_of_envelopes_are_documented() {
    const KIND: &str = "const KIND: &'static str = \"";
    let mut kinds = BTreeSet::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut |text| {
        let said = text.split(KIND).skip(1).filter_map(|rest| rest.split('"').next());
        kinds.extend(said.filter(|kind| kind.chars().all(char::is_alphabetic)).map(ToOwned::to_owned));
    });
    assert!(kinds.len() >= 11, "{kinds:?}");
    let (protocol, sessions) = (doc("protocol.md"), doc("sessions.md"));
    let text = [below(&protocol, "### To a script"), below(&sessions, "## Messages")].concat();
    assert_named(kinds.iter().map(String::as_str), &text, "\"To a script\" or \"Messages\"");
}

#[test]
fn codes_are_documented() {
    let protocol = doc("protocol.md");
    let script = below(&protocol, "## Envelope protocol v2 (rooms for any language)");
    assert_named(variants::<Code>().iter().map(String::as_str), script, "the envelope protocol");
    let sessions = doc("sessions.md");
    let refused = variants::<Refusal>();
    let place = "\"What is refused\" of docs/sessions.md";
    assert_named(refused.iter().map(String::as_str), below(&sessions, "### What is refused"), place);
    assert_eq!((variants::<Code>().len(), refused.len()), (Code::ALL.len(), Refusal::ALL.len()));
    let source = include_str!("identity/refusal.rs");
    let code = source.split("fn code").nth(1).and_then(|rest| rest.split("fn sentence").next()).unwrap();
    let signing_in: Vec<&str> = code.split('"').skip(1).step_by(2).collect();
    assert!(signing_in.len() >= 10, "{signing_in:?}");
    let exchange = include_str!("pages/session.rs");
    let answered = exchange.split("StatusCode::").skip(1).filter_map(|rest| rest.split('"').nth(1));
    let answered: Vec<&str> = answered.filter(|word| word.contains('_')).collect();
    assert_eq!(answered.len(), 3, "{answered:?}");
    let identity = doc("identity.md");
    let codes = signing_in.into_iter().chain(answered);
    assert_named(codes, below(&identity, "## The exchange"), "\"The exchange\" of docs/identity.md");
    let closes = below(&protocol, "### Close codes");
    for code in [LEAVING, THROWN_OUT, OVER_A_LIMIT] {
        assert!(closes.contains(&format!("| {code} | server |")), "{code}");
    }
}

#[test]
fn session_messages_are_documented() {
    let sessions = doc("sessions.md");
    let mut names = Vec::new();
    names.extend(variants::<Request>());
    names.extend(variants::<Event>());
    names.extend(variants::<Ask>());
    names.extend(variants::<Reply>());
    for words in [variants::<Parting>(), variants::<Ending>(), variants::<Closing>(), variants::<Phase>()] {
        names.extend(words);
    }
    assert_named(names.iter().map(String::as_str), &sessions, "docs/sessions.md");
}

#[test]
fn arena_events_are_documented() {
    let arena = doc("arena.md");
    let events = variants::<sametick_arena::Event>();
    assert_named(
        events.iter().map(String::as_str),
        below(&arena, "## Events"),
        "\"Events\" of docs/arena.md",
    );
    let denied = variants::<sametick_arena::Denied>();
    assert_named(
        denied.iter().map(String::as_str),
        below(&arena, "### What a refused action looks like"),
        "\"What a refused action looks like\"",
    );
    for kind in sametick_arena::Arena::KINDS {
        assert_named([kind.name], below(&arena, "## What there is to see"), "\"What there is to see\"");
        let fields = kind.fields.iter().map(|field| field.name);
        assert_named(fields, below(&arena, "## What there is to see"), kind.name);
    }
    let Value::Object(setup) = json!(sametick_arena::Setup::default()) else {
        panic!("a setup is an object")
    };
    assert_named(
        setup.keys().map(String::as_str),
        below(&arena, "## A room's setup"),
        "\"A room's setup\" of docs/arena.md",
    );
    let own = <sametick_arena::Arena as Hosted>::Own::KIND;
    assert_named(
        own.fields.iter().map(|field| field.name),
        below(&arena, "## What only you know: `own`"),
        "own",
    );
}

#[test]
fn commands_in_the_example_of_arena_are_understood() {
    let arena = doc("arena.md");
    let example = below(&arena, "## An example");
    let commands: Vec<&str> = example.lines().filter(|line| line.contains("\"kind\":\"command\"")).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        let Ok(Incoming::Command(command)) = parse(Encoding::Json, command.as_bytes()) else {
            panic!("{command} is no command")
        };
        command_of::<<sametick_arena::Arena as Hosted>::Command>(command).unwrap();
    }
}

#[test]
fn the_inputs_and_the_setup_of_pong_are_documented() {
    use sametick_pong::{Input, Motion, Setup};
    let pong = doc("pong.md");
    let bytes = |input: Input| sametick_sim::to_canonical(&input).unwrap();
    let bits = [
        Input::moving(Motion::Less),
        Input::moving(Motion::More),
        Input::default().and_serve(),
        Input::default().and_rematch(),
    ];
    for (bit, input) in bits.into_iter().enumerate() {
        assert_eq!(bytes(input), [1 << bit]);
        assert!(below(&pong, "## Input").contains(&format!("| {bit} | {} |", 1 << bit)), "bit {bit}");
    }
    let setup = sametick_sim::to_canonical(&Setup::default()).unwrap();
    let defaults: Vec<String> = setup.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = below(&pong, "## Setup");
    assert!(text.contains(&format!("`{}`", defaults.join(" "))), "{defaults:?}");
    let Value::Object(fields) = json!(Setup::default()) else { panic!("a setup is an object") };
    for field in fields.keys() {
        assert!(text.contains(&format!("| {field} |")), "{field}");
    }
}

/// A table of close texts in docs/protocol.md, and the code that sends them.
#[test]
fn close_texts_are_documented() {
    let protocol = doc("protocol.md");
    let closes = below(&protocol, "### Close codes");
    for text in [sametick_room::host::CAME_BACK, sametick_room::host::SEAT_GIVEN] {
        assert!(closes.contains(&format!("| `{text}` |")), "{text}");
    }
}
