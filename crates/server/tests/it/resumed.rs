//! Tests that a session goes on days later, with other players, from a relay's folder or a store, by the newer of the
//! two.

use std::fs;
use std::path::{Path, PathBuf};

use sametick_store::disk::FsDisk;
use serde_json::Value;

use crate::process::{Folder, Server, command, run};

/// Long enough to be saved when the relay stops.
const SAVED_S: &str = "6";

/// Starts a relay, has two bots play in "den", and stops it. Returns what it has logged.
fn evening(folder: &Folder, args: &[&str], seconds: &str) -> String {
    let relay = Server::start_as(&["relay"], folder, &[&["--data", "data"], args].concat(), None);
    let bots = ["bot", "pong", "--session", "den", "--seconds", seconds, "--connect", relay.url("udp")];
    let output = run(&mut command(&bots));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    relay.signal("-TERM");
    let (clean, _, log) = relay.end();
    assert!(clean, "{log}");
    log
}

/// The folder of the only session below a folder.
fn session_in(folder: &Folder, place: &str) -> PathBuf {
    let inside = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let builds: Vec<PathBuf> = inside(&folder.path().join(place).join("sessions")).collect();
    let sessions: Vec<PathBuf> = builds.iter().flat_map(|build| inside(build)).collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    sessions.into_iter().next().unwrap()
}

fn ask(words: &[&str], path: &Path) -> Value {
    let output = run(&mut command(&[words, &[path.to_str().unwrap(), "--json"]].concat()));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).unwrap()
}

/// The log's last tick and how often it was resumed; its replay must match all checks.
fn log_of(session: &Path) -> (u64, u64) {
    ask(&["log", "verify"], session);
    let replayed = ask(&["replay"], session);
    let info = ask(&["log", "info"], session);
    assert!(info["checks"].as_u64() > Some(0) && info["ended"] == true, "{info}");
    assert_eq!(replayed["tick"], info["last_tick"], "{replayed}");
    (info["last_tick"].as_u64().unwrap(), info["rewinds"].as_u64().unwrap())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_session_goes_on_when_others_come_later() {
    let folder = Folder::new();
    evening(&folder, &[], "1");
    let (first, _) = log_of(&session_in(&folder, "data"));
    // Without a save, from its log.
    evening(&folder, &[], SAVED_S);
    let (second, rewinds) = log_of(&session_in(&folder, "data"));
    assert!(second > first + 300 && rewinds == 1, "{first} {second} {rewinds}");
    // From its save.
    assert!(session_in(&folder, "data").join("save").exists());
    let log = evening(&folder, &[], "1");
    assert!(log.contains("a session goes on") && !log.contains("ERROR"), "{log}");
    let (third, rewinds) = log_of(&session_in(&folder, "data"));
    assert!(third > second + 30 && rewinds == 2, "{second} {third} {rewinds}");
}

#[test]
fn the_newer_of_two_copies_counts() {
    let folder = Folder::new();
    let [data, cloud, old] = ["data", "cloud", "old"].map(|name| folder.path().join(name));
    let store = ["--store", "cloud"];
    evening(&folder, &store, SAVED_S);
    let (first, _) = log_of(&session_in(&folder, "data"));
    copy(&data.join("sessions"), &old.join("sessions"));

    // A machine without files takes all of them from the store.
    fs::remove_dir_all(data.join("sessions")).unwrap();
    evening(&folder, &store, "1");
    let (second, rewinds) = log_of(&session_in(&folder, "data"));
    assert!(second > first + 30 && rewinds == 1, "{first} {second} {rewinds}");
    assert_eq!(log_of(&session_in(&folder, "cloud")), (second, 1), "the store has it as well");

    // One whose own copy is older takes the newer files, and overwrites nothing.
    fs::remove_dir_all(data.join("sessions")).unwrap();
    copy(&old.join("sessions"), &data.join("sessions"));
    evening(&folder, &store, "1");
    let (third, rewinds) = log_of(&session_in(&folder, "data"));
    assert!(third > second + 30 && rewinds == 2, "{second} {third} {rewinds}");
    let set_aside = |entry: &fs::DirEntry| entry.file_name().to_str().unwrap().starts_with("log-until-");
    let files = fs::read_dir(session_in(&folder, "data")).unwrap();
    assert_eq!(files.filter(|entry| set_aside(entry.as_ref().unwrap())).count(), 1);

    // One whose own copy is newer goes on from that, and uploads it to the store.
    evening(&folder, &[], "1");
    let (fourth, _) = log_of(&session_in(&folder, "data"));
    assert_eq!(log_of(&session_in(&folder, "cloud")), (third, 2));
    evening(&folder, &store, "1");
    let (fifth, rewinds) = log_of(&session_in(&folder, "data"));
    assert!(fifth > fourth + 30 && rewinds == 4, "{fourth} {fifth} {rewinds}");
    assert_eq!(log_of(&session_in(&folder, "cloud")), (fifth, 4));
    assert!(cloud.join("sessions").exists());
}

#[test]
fn a_session_whose_log_is_damaged_goes_on_from_its_save() {
    let folder = Folder::new();
    evening(&folder, &[], SAVED_S);
    let session = session_in(&folder, "data");
    let saved = ask(&["log", "info"], &session)["last_tick"].as_u64().unwrap();
    let mut log = fs::read(session.join("log")).unwrap();
    let middle = log.len() / 2;
    log[middle] ^= 1;
    fs::write(session.join("log"), &log).unwrap();
    let said = evening(&folder, &[], "1");
    assert!(said.contains("not everything of a session can be used"), "{said}");
    let info = ask(&["log", "info"], &session.join("log"));
    assert_eq!(info["first_tick"].as_u64(), Some(saved + 1), "{info}");
    assert!(info["last_tick"].as_u64() > Some(saved + 30), "{info}");
    let kept = fs::read_dir(&session).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("log-until-"));
    assert_eq!(kept.map(|path| fs::read(path).unwrap()).collect::<Vec<_>>(), [log], "nothing is lost");
}

#[test]
fn a_session_locked_by_another_server_is_left_to_it() {
    let folder = Folder::new();
    let start = || Server::start_as(&["relay"], &folder, &["--data", "data"], None);
    let play = |relay: &Server| {
        let args = ["bot", "pong", "--session", "den", "--seconds", "3", "--connect", relay.url("udp")];
        let bots = run(&mut command(&args));
        (bots.status.success(), String::from_utf8_lossy(&bots.stderr).into_owned())
    };
    let one = start();
    let (played, wrong) = play(&one);
    one.signal("-TERM");
    let (clean, _, log) = one.end();
    assert!(played && clean, "{wrong}\n{log}");
    // Hosts of the lobby write to the same folder as the server that has started them.
    let sessions = folder.path().join("data/sessions");
    let below = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).next().unwrap();
    let held = FsDisk::open(below(&below(&sessions)).join("log")).unwrap();
    let other = start();
    let (played, wrong) = play(&other);
    other.signal("-TERM");
    let (clean, _, log) = other.end();
    assert!(played && clean, "{wrong}\n{log}");
    assert!(log.contains("another server has this session"), "{log}");
    drop(held);
    let list = command(&["sessions", "list", "--json", "--store"]).arg(folder.path().join("data")).output();
    let listed: Value = serde_json::from_slice(&list.unwrap().stdout).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2, "{listed}");
}
