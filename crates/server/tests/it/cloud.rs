//! Tests of sessions in S3-compatible storage, with the user's commands: uploaded by a relay, listed, fetched, replayed
//! and deleted, with failures on the way.

use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::log::text;
use crate::process::{Folder, Server, command, run};
use crate::stand::{Stand, Wrongs};

/// So many ticks are played before the server is stopped.
const PLAYED_TICKS: u64 = 360;

/// How often a command is repeated at most on a storage that fails.
const TRIES: usize = 200;

/// How often a stop may run out of time on a storage that fails.
const STOPS: u64 = 4;

/// A stop waits for a store for ten seconds. Machines may be busy.
const BOUND: Duration = Duration::from_secs(60);

/// A storage that runs for as long as this lives.
pub struct Cloud {
    pub stand: Stand,
    _runtime: tokio::runtime::Runtime,
}

impl Cloud {
    pub fn start(seed: u64, wrongs: Wrongs) -> Cloud {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let stand = runtime.block_on(Stand::start(seed, wrongs));
        Cloud { stand, _runtime: runtime }
    }

    /// The place of a session in it, as an argument.
    fn session(&self, build: &str, id: &str) -> String {
        self.stand.place().replace('?', &format!("/sessions/{build}/{id}?"))
    }
}

fn ask(args: &[&str]) -> Output {
    run(command(args).envs(Stand::environment()))
}

/// Repeats a command until it succeeds. Every error on the way must be a sentence.
fn answer(args: &[&str]) -> String {
    for _ in 0..TRIES {
        let output = ask(args);
        let said = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap();
        }
        assert!(said.starts_with("sametick: ") && said.lines().count() == 1, "{args:?}: {said}");
    }
    panic!("no answer to {args:?}");
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&answer(&[args, &["--json"]].concat())).unwrap()
}

/// The details of the one session in a data folder.
fn local(data: &Path) -> Value {
    let listed = json(&["sessions", "list", "--store", text(data)]);
    let Some(id) = listed["sessions"][0]["id"].as_str() else { return Value::Null };
    let output = ask(&["sessions", "show", id, "--store", text(data), "--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Two bots play for some seconds on a relay with this store, which is then stopped. Returns its log, how long it took
/// to stop, and the details of the session in its data folder.
fn play_and_stop(folder: &Folder, store: &str) -> (String, Duration, Value) {
    let args = ["--data", "data", "--store", store];
    let relay = Server::start_in(&["relay"], folder, &args, &Stand::environment());
    let url = relay.url("udp").to_owned();
    let bot = ["bot", "pong", "--seconds", "600", "--session", "den", "--patience", "0", "--connect"];
    let bots = std::thread::spawn(move || run(&mut command(&[&bot[..], &[&url]].concat())));
    let data = folder.path().join("data");
    while local(&data)["last_tick"].as_u64().unwrap_or(0) < PLAYED_TICKS {
        std::thread::yield_now();
    }
    let since = Instant::now();
    relay.signal("-TERM");
    let (_, _, said) = relay.end();
    let took = since.elapsed();
    assert!(!bots.join().unwrap().status.success());
    (said, took, local(&data))
}

/// Asserts by every command that the store has the same session as the data folder.
fn check_kept(cloud: &Cloud, folder: &Folder, here: &Value) {
    let (place, data) = (cloud.stand.place(), folder.path().join("data"));
    let (id, build) = (here["id"].as_str().unwrap(), here["build"].as_str().unwrap());
    let listed = json(&["sessions", "list", "--store", &place]);
    assert_eq!((&listed["sessions"][0]["id"], &listed["sessions"][1]), (&here["id"], &Value::Null));
    let there = json(&["sessions", "show", id, "--store", &place]);
    for field in ["saved_tick", "saved_hash", "last_tick", "has_ended", "session", "game", "torn_bytes"] {
        assert_eq!(there[field], here[field], "{field}");
    }
    assert_eq!(here["saved_tick"], here["last_tick"]);

    let mine = json(&["replay", id, "--store", text(&data), "--no-cache"]);
    let url = cloud.session(build, id);
    for args in [&["replay", id, "--store", &place][..], &["replay", &url]] {
        let replayed = json(args);
        assert_eq!((&replayed["hash"], &replayed["tick"]), (&mine["hash"], &mine["tick"]), "{replayed}");
        assert_eq!((&replayed["hash"], &replayed["first_bad"]), (&there["saved_hash"], &Value::Null));
        assert_eq!(replayed["checks_compared"], mine["checks_compared"]);
    }
    // The save is of the last tick: nothing is left to play.
    let last = here["last_tick"].to_string();
    let from_save = json(&["replay", &url, "--to", &last]);
    assert_eq!((&from_save["hash"], &from_save["ticks_played"]), (&mine["hash"], &0.into()), "{from_save}");
    assert!(answer(&["log", "verify", &url]).contains("all match"));
    assert_eq!(json(&["log", "info", &url])["ended"], true);

    for number in 0.. {
        let copy = folder.path().join(format!("copy-{number}"));
        if ask(&["sessions", "fetch", id, "--store", &place, "--into", text(&copy)]).status.success() {
            assert_eq!(json(&["replay", text(&copy), "--no-cache"])["hash"], mine["hash"]);
            break;
        }
        assert!(!copy.exists() && number < TRIES, "all of it or nothing");
    }
}

fn check_deleted(cloud: &Cloud, here: &Value) {
    let (place, id) = (cloud.stand.place(), here["id"].as_str().unwrap());
    assert!(answer(&["sessions", "delete", id, "--store", &place]).starts_with(&format!("deleted {id}")));
    assert_eq!(answer(&["sessions", "list", "--store", &place]), "no sessions\n");
    let output = ask(&["replay", id, "--store", &place]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("there is no session"), "{said}");
}

#[test]
fn a_stopped_server_has_saved_to_s3() {
    let (folder, cloud) = (Folder::new(), Cloud::start(1, Wrongs::default()));
    let (said, _, here) = play_and_stop(&folder, &cloud.stand.place());
    assert!(!said.contains("WARN") && !said.contains("ERROR"), "{said}");
    check_kept(&cloud, &folder, &here);
    check_deleted(&cloud, &here);
}

#[test]
fn a_stopped_server_has_saved_to_an_s3_that_fails_often() {
    let wrongs = Wrongs { slow: 0, ..Wrongs::all(20) };
    let (folder, cloud, here) = (1..=STOPS)
        .find_map(|seed| {
            let (folder, cloud) = (Folder::new(), Cloud::start(seed, wrongs));
            let (said, _, here) = play_and_stop(&folder, &cloud.stand.place());
            // Ten seconds are not always enough; then the log says so.
            (!said.contains("not everything could be written")).then_some((folder, cloud, here))
        })
        .expect("it comes there as a rule");
    check_kept(&cloud, &folder, &here);
    println!("{}", cloud.stand.happened());
    cloud.stand.set_wrongs(Wrongs::default());
    check_deleted(&cloud, &here);
}

#[test]
fn a_stop_with_a_dead_store_ends_and_the_local_copy_is_whole() {
    // A server that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = |port| format!("s3://bucket?endpoint=http://127.0.0.1:{port}");
    // A port without a listener.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let stores = [dead(silent.local_addr().unwrap().port()), dead(closed)];
    let stops = stores.map(|store| {
        std::thread::spawn(move || {
            let folder = Folder::new();
            let (said, took, here) = play_and_stop(&folder, &store);
            assert!(took < BOUND, "{took:?}");
            assert!(
                said.contains("not everything could be written") && said.contains("in the store"),
                "{said}"
            );
            assert_eq!(
                (&here["saved_tick"], &here["has_ended"]),
                (&here["last_tick"], &true.into()),
                "{here}"
            );
            let (data, id) = (folder.path().join("data"), here["id"].as_str().unwrap().to_owned());
            let replayed = json(&["replay", &id, "--store", text(&data)]);
            assert_eq!((&replayed["hash"], &replayed["first_bad"]), (&here["saved_hash"], &Value::Null));
        })
    });
    stops.into_iter().for_each(|stop| stop.join().unwrap());
    drop(silent);
}

#[test]
fn missing_or_wrong_credentials_are_an_error() {
    let cloud = Cloud::start(3, Wrongs::default());
    let list = ["sessions", "list", "--store", &cloud.stand.place()];
    let said = |output: Output| {
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    // The machine may have a role; the test must not ask for it.
    let without = said(run(command(&list).env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")));
    assert!(without.contains("AWS_ACCESS_KEY_ID") && without.lines().count() == 1, "{without}");
    let environment = [("AWS_ACCESS_KEY_ID", "stand"), ("AWS_SECRET_ACCESS_KEY", "something else")];
    let wrong = said(run(command(&list).envs(environment)));
    assert!(wrong.contains("403") && !wrong.contains("something else"), "{wrong}");
}
