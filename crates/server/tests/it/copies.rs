//! Tests of copies of sessions: players keep them, and bring one back when the server has lost everything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sametick_store::saves::Save;
use serde_json::Value;

use crate::process::{Folder, Server, command, run};

fn relay_in(folder: &Folder) -> Server {
    Server::start_as(&["relay"], folder, &["--data", "data", "--store", "cloud"], None)
}

fn stop(relay: Server) -> String {
    relay.signal("-TERM");
    let (clean, _, log) = relay.end();
    assert!(clean && !log.contains("ERROR"), "{log}");
    log
}

/// The report of bots of a session.
fn bots(relay: &Server, args: &[&str]) -> Value {
    let output =
        run(command(&["bot", "pong", "--json", "--connect", relay.url("udp"), "--players", "3"]).args(args));
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{wrong}");
    serde_json::from_str(&said).unwrap()
}

fn tick_of(report: &Value) -> u64 {
    report["bots"].as_array().unwrap().iter().map(|bot| bot["tick"].as_u64().unwrap()).max().unwrap()
}

/// The only session below a folder.
fn session_in(folder: &Path) -> PathBuf {
    let inside = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let builds: Vec<PathBuf> = inside(&folder.join("sessions")).collect();
    let sessions: Vec<PathBuf> = builds.iter().flat_map(|build| inside(build)).collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    sessions.into_iter().next().unwrap()
}

fn copy_in(folder: &Path) -> (PathBuf, Save) {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut saves = files.filter(|path| path.extension().is_some_and(|it| it == "save"));
    let path = saves.next().expect("a copy was kept");
    assert_eq!(saves.next(), None);
    let save = Save::from_bytes(&fs::read(&path).unwrap()).unwrap();
    (path, save)
}

fn ask(words: &[&str], path: &Path) -> Value {
    let output = run(command(words).arg(path).arg("--json"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).unwrap()
}

#[test]
fn a_session_lost_by_the_server_goes_on_from_a_copy() {
    let folder = Folder::new();
    let [data, cloud, copies] = ["data", "cloud", "copies"].map(|name| folder.path().join(name));
    let save = ["--save", copies.to_str().unwrap()];
    let relay = relay_in(&folder);
    let played = bots(&relay, &[&["--session", "den", "--seconds", "2"][..], &save].concat());
    stop(relay);
    let (path, copy) = copy_in(&copies);
    let kept = u64::from(copy.info.tick.0);
    assert!(copy.is_true() && kept == tick_of(&played) && kept > 60, "{kept}: {played}");
    assert!(played["saved"].as_str().unwrap().contains(path.to_str().unwrap()), "{played}");
    let old = folder.path().join("old.save");
    fs::copy(&path, &old).unwrap();
    let before = session_in(&data);
    fs::remove_dir_all(&data).unwrap();
    fs::remove_dir_all(&cloud).unwrap();

    // Only the copy is left: two bots bring it, and a third joins late.
    let mut relay = relay_in(&folder);
    let bring = ["--bring", copies.to_str().unwrap(), "--save", copies.to_str().unwrap()];
    let url = relay.url("udp").to_owned();
    let first = command(&["bot", "pong", "--json", "--seconds", "3", "--connect", &url])
        .args(bring)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    relay.await_log("a session goes on from a copy that a player has brought");
    let late = bots(&relay, &["--session", "den", "--count", "1", "--seconds", "1"]);
    let first = first.wait_with_output().unwrap();
    let first: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert!(first["agree"] == true && tick_of(&first) > kept + 100, "{first}");
    assert!(first["brought"].as_str().unwrap().contains(&format!("after tick {kept}")), "{first}");
    assert!(tick_of(&late) > kept && late["brought"].is_null(), "{late}");

    // From now on the server's state counts, also for a bot that brings an older copy.
    let again = bots(&relay, &["--bring", old.to_str().unwrap(), "--seconds", "1"]);
    assert!(again["brought"].as_str().unwrap().contains("was not needed"), "{again}");
    stop(relay);
    let session = session_in(&data);
    assert_eq!(session, before, "it is the same session");
    assert_eq!(session_in(&cloud).file_name(), session.file_name());
    assert!(copy_in(&copies).1.info.tick.0 > copy.info.tick.0 + 100);

    // The log alone is enough to replay everything after the copy (L8).
    let alone = folder.path().join("alone.log");
    fs::copy(session.join("log"), &alone).unwrap();
    let verified = ask(&["log", "verify"], &alone);
    assert_eq!((&verified["replayed"], verified["replayed_from"].as_u64()), (&true.into(), Some(kept)));
    assert!(verified["first_bad"].is_null() && verified["checks_compared"].as_u64() > Some(2), "{verified}");
    let replayed = ask(&["replay"], &alone);
    assert!(replayed["tick"].as_u64() > Some(tick_of(&again)), "{replayed}");
    // So is the log in the store.
    let cold = ask(&["log", "verify"], &session_in(&cloud));
    assert_eq!(cold["replayed"], true, "{cold}");
}

#[test]
fn a_copy_is_kept_also_when_the_server_is_gone_for_good() {
    let folder = Folder::new();
    let mut relay = relay_in(&folder);
    let file = folder.path().join("den.save");
    let mut long = command(&["bot", "pong", "--session", "den", "--players", "3", "--patience", "0"]);
    long.args(["--seconds", "60", "--connect", relay.url("udp"), "--save"]).arg(&file);
    let long = long.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A second process has played with them for a while when the server is killed.
    relay.await_log("a session has begun");
    let other = bots(&relay, &["--session", "den", "--count", "1", "--seconds", "1"]);
    drop(relay);
    let output = long.wait_with_output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && wrong.contains("the connection was lost"), "{wrong}");
    assert!(wrong.contains("a copy of session den at tick "), "{wrong}");
    let copy = Save::from_bytes(&fs::read(&file).unwrap()).unwrap();
    assert!(copy.is_true() && u64::from(copy.info.tick.0) + 60 > tick_of(&other), "{:?}", copy.info);
}

#[test]
fn bad_copy_arguments_fail_before_connecting() {
    let folder = Folder::new();
    let nothing = folder.path().join("nothing.save");
    fs::write(&nothing, "dear diary").unwrap();
    let nothing = nothing.to_str().unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["arena", "--room", "den", "--save", "copies"], "a player never has all of its state"),
        (&["arena", "--room", "den", "--bring", nothing], "a player never has all of its state"),
        (&["pong", "--bring", nothing], "not a save of a session"),
        (&["pong", "--bring", "nowhere.save"], "nowhere.save: No such file"),
        (&["pong", "--pass", "00", "--bring", nothing], "decided by its host"),
    ];
    for (args, words) in cases {
        let output = run(command(&["bot"]).args(args).args(["--connect", "udp://127.0.0.1:9"]));
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && wrong.contains(words), "{args:?}: {wrong}");
    }
}
