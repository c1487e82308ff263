//! Tests of `sametick sessions`: the sessions that a relay has kept are listed, shown and deleted.

use serde_json::Value;

use crate::process::{Folder, Server, command, run};

/// Whether the command succeeded, and its output.
fn sessions(folder: &Folder, args: &[&str]) -> (bool, String) {
    let store = folder.path().join("data");
    let mut command = command(&[&["sessions"], args, &["--store", store.to_str().unwrap()]].concat());
    let output = run(&mut command);
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn kept_sessions_are_listed_shown_and_deleted() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &["--data", "data"], None);
    for name in ["friday", "ada's den"] {
        let args = ["bot", "pong", "--connect", relay.url("udp"), "--seconds", "1", "--session", name];
        assert!(run(&mut command(&args)).status.success());
    }
    relay.signal("-INT");
    assert!(relay.end().0);

    let (ok, listed) = sessions(&folder, &["list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let all = listed["sessions"].as_array().unwrap();
    assert!(ok && all.len() == 2, "{listed}");
    let id = |name: &str| -> String {
        let ids = all.iter().map(|session| session["id"].as_str().unwrap());
        ids.filter(|id| id.starts_with(name)).collect()
    };
    let (friday, den) = (id("friday-"), id("ada_s_den-"));
    let (ok, table) = sessions(&folder, &["list"]);
    assert!(ok && table.contains(&friday) && table.contains(&den) && table.lines().count() == 3, "{table}");

    let (ok, shown) = sessions(&folder, &["show", &friday]);
    assert!(ok && shown.contains("game      pong") && shown.contains("the session ended there"), "{shown}");
    let (ok, shown) = sessions(&folder, &["show", &den, "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert!(ok && shown["session"] == "ada's den" && shown["last_tick"].as_u64() > Some(30), "{shown}");

    let copy = folder.path().join("copy");
    let fetch = ["fetch", &friday, "--into", copy.to_str().unwrap()];
    let (ok, said) = sessions(&folder, &fetch);
    assert!(ok && said.starts_with(&format!("fetched {friday}\n")), "{said}");
    assert!(run(&mut command(&["log", "verify", copy.to_str().unwrap()])).status.success());
    let (ok, why) = sessions(&folder, &fetch);
    assert!(!ok && why.contains("cannot write") && why.contains("exists"), "{why}");

    let build = shown["build"].as_str().unwrap();
    let (ok, said) = sessions(&folder, &["delete", &format!("{}/{den}", &build[..8])]);
    assert!(ok && said.starts_with(&format!("deleted {den} (")), "{said}");
    for gone in [den.as_str(), "nobody", "../data"] {
        let (ok, why) = sessions(&folder, &["show", gone]);
        assert!(!ok && why.contains("there is no session") && why.lines().count() == 1, "{why}");
    }
    let (_, table) = sessions(&folder, &["list"]);
    assert!(table.contains(&friday) && !table.contains(&den), "{table}");
}

#[test]
fn invalid_places_are_refused() {
    let output = run(&mut command(&["sessions", "list", "--store", "ftp://example.org"]));
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && why.contains("kept in a folder or at s3://"), "{why}");
}

#[test]
fn a_server_that_stops_saves_its_sessions() {
    let folder = Folder::new();
    let relay = Server::start_as(&["relay"], &folder, &["--data", "data", "--store", "cloud"], None);
    let url = relay.url("udp").to_owned();
    let args = ["bot", "pong", "--seconds", "600", "--session", "den", "--patience", "0", "--connect"];
    let bots = std::thread::spawn(move || run(&mut command(&[&args[..], &[&url]].concat())));
    let log = folder.path().join("data");
    let played = || {
        let (_, listed) = sessions(&folder, &["list", "--json"]);
        let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
        let id = listed["sessions"][0]["id"].as_str().unwrap_or_default().to_owned();
        let (_, shown) = sessions(&folder, &["show", &id, "--json"]);
        (id, serde_json::from_str::<Value>(&shown).unwrap_or_default())
    };
    while log.exists() && played().1["last_tick"].as_u64().unwrap_or(0) < 360 {
        std::thread::yield_now();
    }
    relay.signal("-TERM");
    assert!(relay.end().0);
    assert!(!bots.join().unwrap().status.success());
    let (id, shown) = played();
    assert_eq!(shown["saved_tick"], shown["last_tick"], "{shown}");
    // The same files are in the other place, and the log names it.
    let cloud = folder.path().join("cloud");
    let output = run(&mut command(&["sessions", "show", &id, "--json", "--store", cloud.to_str().unwrap()]));
    let there: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&there["saved_hash"], &there["game"]), (&shown["saved_hash"], &"pong".into()), "{there}");
    assert_eq!((&there["last_tick"], &there["has_ended"]), (&shown["last_tick"], &true.into()), "{there}");
    let path = folder.path().join("data/sessions").join(shown["build"].as_str().unwrap()).join(&id);
    let output = run(&mut command(&["log", "info", path.to_str().unwrap(), "--json"]));
    let info: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&info["snapshots"], &info["ended"]), (&1.into(), &true.into()), "{info}");
    assert!(run(&mut command(&["log", "verify", path.to_str().unwrap()])).status.success());
}
