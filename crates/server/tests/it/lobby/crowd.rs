//! Test of many sessions at once, begun, played by bots and ended, over and over: no memory, file or process is left
//! over.

use std::collections::BTreeSet;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use super::table::{Place, until};
use crate::process::{command, run};

/// Sessions at once in the test command, each played once.
const SESSIONS: u32 = 5;

/// In the long run: `SAMETICK_LOBBY_SECONDS` sets the time, and memory is measured.
const MANY: u32 = 50;

/// Hosts that stay without sessions.
const SPARE: usize = 2;

/// How much more memory may be in use at the end: an allocator keeps some.
const MEMORY_KB: u64 = 8 << 10;

fn load(place: &Place, sessions: u32, seconds: u64) -> Value {
    let gateway = place.gateway().to_string();
    let (sessions, seconds) = (sessions.to_string(), seconds.to_string());
    let args = ["load", "sessions", "--gateway", &gateway, "--json"];
    let more = ["--sessions", &sessions, "--seconds", &seconds];
    let Output { status, stdout, stderr } = run(&mut command(&[&args[..], &more].concat()));
    let report: Value = serde_json::from_slice(&stdout).expect("a report");
    assert!(status.success(), "{report} {}", String::from_utf8_lossy(&stderr));
    assert_eq!((&report["failures"], &report["created"]), (&json!({}), &report["played"]), "{report}");
    report
}

/// The memory of a process that is in use, in kB.
fn memory_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

#[test]
fn many_played_sessions_leave_nothing_behind() {
    let long: Option<u64> = std::env::var("SAMETICK_LOBBY_SECONDS").ok().and_then(|text| text.parse().ok());
    let mut place = Place::start_on("21200-21299", &[]);
    let gateway = place.up.as_ref().unwrap().pid();
    let (base_kb, report) = match long {
        None => (None, load(&place, SESSIONS, 1)),
        Some(seconds) => {
            // Once before, so that one-time allocations are done.
            load(&place, MANY, 1);
            let (gateway_kb, began) = (memory_kb(gateway), place.hosts().len());
            let report = load(&place, MANY, seconds);
            println!("{}", serde_json::to_string_pretty(&report).unwrap());
            println!(
                "gateway: {gateway_kb} kB before, {} kB after; {began} hosts before",
                memory_kb(gateway)
            );
            (Some(gateway_kb), report)
        }
    };
    assert!(report["played"].as_u64().unwrap() >= u64::from(SESSIONS));
    let up = place.up.as_ref().unwrap();
    until("all sessions are over", || up.api("/api/lobby")["sessions"] == json!([]));
    until("nothing of them is stored", || place.stored().is_empty());
    // Hosts without sessions end after half a minute; the next hosts take over their files.
    until("hosts have ended", || place.hosts().len() <= SPARE);
    until("nothing is counted", || {
        let health = up.api("/api/health");
        health["hosted_sessions"] == 0 && health["hosted_players"] == 0
    });
    if let Some(base_kb) = base_kb {
        let (gateway_kb, hosts) = (memory_kb(gateway), place.hosts());
        let hosts_kb: Vec<u64> = hosts.iter().map(|pid| memory_kb(*pid)).collect();
        println!("gateway: {gateway_kb} kB in the end; hosts: {hosts_kb:?} kB");
        assert!(gateway_kb < base_kb + MEMORY_KB, "{base_kb} kB became {gateway_kb} kB");
    }
    up.signal("-INT");
    assert!(place.up.take().unwrap().end().0);
    assert_eq!(place.hosts(), Vec::<u32>::new());
    for port in 21_200..21_300 {
        std::net::TcpListener::bind(("127.0.0.1", port))
            .unwrap_or_else(|error| panic!("port {port}: {error}"));
    }
}

/// The ports of hosts that have sessions.
fn ports_with_sessions(place: &Place) -> BTreeSet<u16> {
    let port = |path: std::path::PathBuf| path.parent()?.parent()?.file_name()?.to_str()?.parse().ok();
    place.stored().into_iter().filter_map(port).collect()
}

#[test]
fn players_of_a_killed_host_resume_and_are_reported() {
    let place = Place::start_on("21600-21619", &[]);
    let gateway = place.gateway().to_string();
    let args = ["load", "sessions", "--gateway", &gateway, "--json", "--sessions", "2", "--seconds", "1"];
    let load = command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let up = place.up.as_ref().unwrap();
    until("both games are played", || {
        let lobby = up.api("/api/lobby");
        let sessions = lobby["sessions"].as_array().cloned().unwrap_or_default();
        sessions.len() == 2 && sessions.iter().all(|session| session["phase"] == "running")
    });
    let ports = ports_with_sessions(&place);
    assert!(!ports.is_empty());
    ports.iter().for_each(|port| place.kill_host(*port));
    let output = load.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert!(output.status.success() && report["failures"] == json!({}), "{report}");
    assert_eq!((&report["created"], &report["played"]), (&json!(2), &json!(2)), "{report}");
    let number = |name: &str| report[name].as_u64().unwrap();
    assert!(number("cut") >= 4 && number("resumed") == number("cut"), "{report}");
    assert!(number("games_resumed") >= 4 && report["resume"].is_object(), "{report}");
}
