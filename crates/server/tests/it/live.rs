//! Tests of rooms over real sockets: bots on every transport in one room, its report and its end.

use std::thread::JoinHandle;

use serde_json::Value;

use crate::process::{Folder, Server, command, run};
use crate::web::Up;

fn bot(url: &str, args: &[&str]) -> (bool, Value) {
    let output = run(command(&["bot", "arena", "--connect", url, "--json"]).args(args));
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| err.into()))
}

/// Bots that play until the server stops.
fn stayers(url: String, room: &'static str) -> JoinHandle<(bool, Value)> {
    std::thread::spawn(move || {
        bot(&url, &["--room", room, "--count", "2", "--seconds", "600", "--patience", "0"])
    })
}

fn players(up: &Up, room: &str) -> usize {
    let sessions = up.api("/api/sessions")["sessions"].take();
    let found = sessions.as_array().unwrap().iter().find(|session| session["name"] == room);
    found.map_or(0, |room| room["players"].as_array().unwrap().len())
}

#[test]
fn bots_of_every_transport_share_a_room_and_its_log_verifies() {
    let folder = Folder::new();
    let up = Up::start(&folder, &["--data", "data"], None);
    let room = &up.api("/api/server")["games"][1];
    assert_eq!((&room["name"], &room["modes"]), (&"arena".into(), &serde_json::json!(["lockstep", "room"])));
    let stay = [
        stayers(up.native("quic"), "den"),
        stayers(format!("ws://{}", up.addr), "den"),
        stayers(up.native("udp"), "another"),
    ];
    while players(&up, "den") < 4 || players(&up, "another") < 2 {
        std::thread::yield_now();
    }
    let bad = ["--netem", "rtt=60ms,jitter=5ms,loss=2%", "--seed", "3"];
    let trace = folder.path().join("messages.jsonl");
    let trace = trace.to_str().unwrap();
    let args = [&["--room", "den", "--count", "1", "--seconds", "3", "--trace", trace][..], &bad].concat();
    let (ok, report) = bot(&up.native("udp"), &args);
    assert!(ok && report["played"] == true, "{report}");
    let own = &report["bots"][0];
    assert_eq!(own["players"], 5, "the others of this room, and none of the other: {report}");
    assert!(own["updates"].as_u64().unwrap() > 10 && own["entities"].as_u64().unwrap() > 5, "{report}");
    let lines = std::fs::read_to_string(trace).unwrap();
    let updates = lines.lines().filter(|line| line.contains(r#""direction":"recv","kind":"update""#)).count();
    assert_eq!(own["updates"], updates, "every update is in the message log");

    // Light bots receive as much as others.
    let (ok, report) =
        bot(&up.native("udp"), &["--room", "den", "--light", "--count", "3", "--seconds", "2"]);
    assert!(ok && report["played"] == true, "{report}");
    for light in report["bots"].as_array().unwrap() {
        assert!(light["updates"].as_u64().unwrap() > 10 && light["updates_lost"] == 0, "{report}");
        // Some inputs of the beginning may be missing, and more on a busy machine; not most.
        assert!(light["omissions"].as_u64().unwrap() < 30, "{report}");
    }

    let shown = up.api("/api/sessions")["sessions"].take();
    let den = shown.as_array().unwrap().iter().find(|session| session["name"] == "den").unwrap();
    assert_eq!((&den["mode"], &den["game"]), (&"room".into(), &"arena".into()), "{shown}");
    assert_eq!(up.api("/api/health")["sessions"], 2);

    up.signal("-TERM");
    let (clean, out) = up.end();
    assert!(clean && out.ends_with("the logs are written\n"), "{out}");
    for bots in stay {
        let (ok, told) = bots.join().unwrap();
        assert!(!ok && told.as_str().unwrap().contains("the server stops"), "{told}");
    }
    assert_eq!(verified(&folder), 2);
}

/// Verifies and replays every log in the folder. Returns how many there are.
fn verified(folder: &Folder) -> usize {
    let list = |folder: &std::path::Path| -> Vec<_> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let builds = list(&folder.path().join("data/sessions"));
    let logs: Vec<_> =
        builds.iter().flat_map(|build| list(build)).map(|session| session.join("log")).collect();
    for log in &logs {
        let log = log.to_str().unwrap();
        let output = run(&mut command(&["log", "verify", log, "--json"]));
        let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(output.status.success() && verdict["ended"] == true, "{verdict}");
        assert!(verdict["replayed"] == true && verdict["first_bad"].is_null(), "{verdict}");
        assert!(verdict["checks_compared"].as_u64().unwrap() > 0, "{verdict}");
        assert!(run(&mut command(&["replay", log, "--to", "40"])).status.success());
    }
    logs.len()
}

#[test]
fn a_relay_has_no_rooms_and_arena_plays_in_lockstep_there() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &["--data", "data"], None);
    let (ok, told) = bot(relay.url("udp"), &["--room", "den"]);
    assert!(!ok && told.as_str().unwrap().contains("this is a relay: join a session"), "{told}");
    let (ok, report) = bot(relay.url("udp"), &["--count", "3", "--seconds", "2"]);
    assert!(ok && report["agree"] == true && report["compared"].as_u64().unwrap() > 10, "{report}");
    relay.signal("-INT");
    assert!(relay.end().0);
    assert_eq!(verified(&folder), 1);
}

#[test]
fn a_full_room_refuses_bots_with_a_reason() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let (ok, told) = bot(&up.native("udp"), &["--room", &"x".repeat(65)]);
    assert!(!ok && told.as_str().unwrap().contains("at most 64 bytes"), "{told}");
    let stay = stayers(up.native("udp"), "den");
    while players(&up, "den") < 2 {
        std::thread::yield_now();
    }
    let (ok, told) = bot(&up.native("udp"), &["--room", "den", "--count", "15", "--seconds", "1"]);
    assert!(!ok && told.as_str().unwrap().contains("the room is full"), "{told}");
    up.signal("-INT");
    assert!(up.end().0 && !stay.join().unwrap().0);
}
