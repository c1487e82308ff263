//! Tests of a session from end to end: played through the relay, recorded, replayed, recited against a live relay,
//! desynced and repaired.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{Folder, Server, command, run};

/// Runs the command, which must succeed, and reads the line of JSON it prints.
fn ask(args: &[&str]) -> Value {
    let output = run(command(args).arg("--json"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}: {out}{err}");
    serde_json::from_str(out.lines().next().unwrap_or("")).unwrap_or_else(|_| panic!("{args:?}: {out}"))
}

/// The folders of the sessions with this name.
fn sessions(data: &Path, name: &str) -> Vec<PathBuf> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries =
            std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let builds = list(&data.join("sessions"));
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&format!("{name}-"));
    builds.iter().flat_map(|build| list(build)).filter(named).collect()
}

fn session(data: &Path, name: &str) -> PathBuf {
    let mut found = sessions(data, name);
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found.remove(0)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_session_is_recorded_replayed_and_recited() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let relay = Server::start_as(&["relay"], &folder, &["--data", "data"], None);
    let url = relay.url("udp").to_owned();
    let bots = ["--count", "4", "--seconds", "4", "--netem", "rtt=60ms,jitter=5ms,loss=2%", "--seed", "3"];
    let played = ask(&[&["bot", "pong", "--connect", &url, "--session", "first"][..], &bots].concat());
    assert_eq!(played["agree"], true, "{played}");

    // The inputs of that session, sent by headless players to a live relay, make the same session (V8).
    let first = session(&data, "first").join("log");
    let recited = ask(&["recite", text(&first), "--connect", &url, "--session", "second"]);
    let ticks = recited["ticks"].as_u64().unwrap();
    assert!(ticks > 120 && recited["checks"].as_u64().unwrap() >= 4 * (ticks / 30), "{recited}");
    assert_eq!((&recited["different"], &recited["players"]), (&0.into(), &4.into()), "{recited}");
    relay.signal("-INT");
    assert!(relay.end().0);

    let second = session(&data, "second").join("log");
    for log in [&first, &second] {
        let verified = ask(&["log", "verify", text(log)]);
        assert_eq!(
            (&verified["replayed"], &verified["first_bad"]),
            (&true.into(), &Value::Null),
            "{verified}"
        );
    }
    // The last check may not have been agreed on when the players left.
    let to = (ticks - 60).to_string();
    let same = ask(&["log", "diff", text(&first), text(&second), "--to", &to]);
    assert_eq!(same["count"], 0, "{same}");

    // A live relay that receives another input is detected by the same comparison.
    let stream = folder.path().join("second.jsonl");
    let exported = run(&mut command(&["log", "export", "--jsonl", text(&second), "-o", text(&stream)]));
    assert!(exported.status.success());
    let lines = std::fs::read_to_string(&stream).unwrap().replace("\"tick\":77", "\"tick\":78");
    std::fs::write(&stream, lines).unwrap();
    let other = run(&mut command(&["log", "diff", text(&first), text(&stream), "--to", &to]));
    assert!(!other.status.success());
    assert!(String::from_utf8_lossy(&other.stdout).contains("tick 77"), "{other:?}");
}

#[test]
fn a_flipped_bit_is_found_reported_and_repaired() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let relay = Server::start_as(&["relay"], &folder, &["--data", "data"], None);
    for (count, name, decided) in [("4", "four", "majority"), ("2", "two", "replay")] {
        let bots = ["--count", count, "--seconds", "5", "--flip-bit", "100"];
        let url = relay.url("udp");
        let played = ask(&[&["bot", "pong", "--connect", url, "--session", name][..], &bots].concat());
        assert_eq!(played["agree"], true, "{played}");
        let resyncs: u64 =
            { played["bots"].as_array().unwrap().iter() }.map(|bot| bot["resyncs"].as_u64().unwrap()).sum();
        assert_eq!(resyncs, 1, "{played}");

        let reports: Vec<PathBuf> = { std::fs::read_dir(session(&data, name)).unwrap() }
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect();
        let [report] = &reports[..] else { panic!("{reports:?}") };
        let told = std::fs::read_to_string(report.join("report.json")).unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["decided"], &told["resynced"]), (&decided.into(), &true.into()), "{told}");
        // The bot flips after the first tick it confirms from 100 on.
        let tick = told["tick"].as_u64().unwrap();
        assert!((101..=110).contains(&tick), "{told}");
        assert_eq!((&told["witnesses"][1]["seat"], &told["witnesses"][1]["odd"]), (&0.into(), &true.into()));
        assert_eq!(told["fields"][0]["path"], "rng.s[1]", "{told}");
        assert_eq!(told["parts"][0], "rng");
        for file in ["report.txt", "log", "state-seat0-odd.bin"] {
            assert!(std::fs::metadata(report.join(file)).unwrap().len() > 0, "{file}");
        }
        // The majority's state in the report equals that of a replay of the log beside it.
        let good = told["witnesses"][0]["state"].clone();
        let log = report.join("log");
        let replayed = ask(&["replay", text(&log), "--to", &good["tick"].to_string()]);
        assert_eq!(replayed["hash"], good["hash"], "{replayed}");
    }
    relay.signal("-INT");
    assert!(relay.end().0);
    for name in ["four", "two"] {
        let verified = ask(&["log", "verify", text(&session(&data, name).join("log"))]);
        assert_eq!(
            (&verified["replayed"], &verified["first_bad"]),
            (&true.into(), &Value::Null),
            "{verified}"
        );
    }
}

#[test]
fn every_message_can_be_traced_on_both_ends() {
    let folder = Folder::new();
    let [at_relay, at_bots] = ["relay.jsonl", "bots.jsonl"].map(|name| folder.path().join(name));
    let status = folder.path().join("status.json");
    let relay = ["--trace", text(&at_relay), "--status", text(&status)];
    let relay = Server::start_as(&["relay"], &folder, &relay, None);
    let bots = ["--count", "2", "--seconds", "3", "--trace", text(&at_bots)];
    let played = ask(&[&["bot", "pong", "--connect", relay.url("udp")][..], &bots].concat());
    assert_eq!(played["agree"], true, "{played}");
    // Written every two seconds: at least once while they played.
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&status).unwrap()).unwrap();
    assert_eq!(told["sessions"][0]["game"], "pong", "{told}");
    relay.signal("-INT");
    assert!(relay.end().0);
    let read = |path: &Path| -> Vec<Value> {
        let lines = std::fs::read_to_string(path).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let [relay, bots] = [&at_relay, &at_bots].map(|path| read(path));
    // Every message that one end sent was received by the other, with the same bytes, and closed ticks too.
    let payloads = |lines: &[Value], direction: &str, kind: &str| -> Vec<String> {
        let picked = lines.iter().filter(|line| line["direction"] == direction && line["kind"] == kind);
        let mut all: Vec<String> =
            picked.map(|line| format!("{} {} {}", line["seat"], line["tick"], line["payload"])).collect();
        all.sort();
        all
    };
    let (sent, received) = (payloads(&bots, "send", "inputs"), payloads(&relay, "recv", "inputs"));
    assert!(received.len() > 40 && received.iter().all(|line| sent.contains(line)), "{received:?}");
    let (sent, received) = (payloads(&relay, "send", "ticks"), payloads(&bots, "recv", "ticks"));
    assert!(received.len() > 40 && received.iter().all(|line| sent.contains(line)), "{received:?}");
    let closed: Vec<&Value> = relay.iter().filter(|line| line["kind"] == "closed").collect();
    let waited = |line: &&&Value| line["present"][0]["waited_us"].as_u64().is_some_and(|us| us < 2_000_000);
    assert!(closed.iter().filter(waited).count() > 40, "{closed:?}");
    for kind in ["join", "check", "diagnostics"] {
        assert!(!payloads(&relay, "recv", kind).is_empty(), "{kind}");
        assert!(!payloads(&bots, "send", kind).is_empty(), "{kind}");
    }
    // A claim lets its holder take the player's seat: neither end writes it to the trace.
    let secret = relay.iter().chain(&bots).filter(|line| line["kind"] == "join" || line["kind"] == "welcome");
    assert!(secret.into_iter().all(|line| line["payload"] == ""));
}

/// For how long bots play: as long as `cargo xtask long bots` sets, or a short time.
fn bot_seconds() -> String {
    std::env::var("SAMETICK_BOT_SECONDS").unwrap_or_else(|_| "3".into())
}

#[test]
fn bots_agree_on_every_network_and_so_does_the_replay() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let relay = Server::start_as(&["relay"], &folder, &["--data", "data"], None);
    let networks = [
        ("clean", "rtt=0ms"),
        ("far", "rtt=100ms,jitter=20ms,loss=5%"),
        ("bad", "rtt=250ms,loss=10%,reorder=10%"),
    ];
    let seconds = bot_seconds();
    let play = |(name, network): &(&str, &str)| {
        let bots = ["--count", "4", "--seconds", &seconds, "--netem", network, "--seed", "7"];
        ask(&[&["bot", "pong", "--connect", relay.url("udp"), "--session", name][..], &bots].concat())
    };
    let played: Vec<Value> = networks.iter().map(play).collect();
    relay.signal("-INT");
    assert!(relay.end().0);
    for ((name, network), report) in networks.iter().zip(&played) {
        assert_eq!(report["agree"], true, "{report}");
        let log = session(&data, name).join("log");
        let verified = ask(&["log", "verify", text(&log)]);
        assert_eq!(
            (&verified["replayed"], &verified["first_bad"]),
            (&true.into(), &Value::Null),
            "{verified}"
        );
        let bots = report["bots"].as_array().unwrap();
        for bot in bots {
            let replayed = ask(&["replay", text(&log), "--to", &bot["tick"].to_string()]);
            assert_eq!(replayed["hash"], bot["hash"], "{name}: {bot}");
        }
        let sum = |field: &str| bots.iter().map(|bot| bot[field].as_u64().unwrap()).sum::<u64>();
        println!(
            "{network}: 4 bots, {seconds} s, ticks {}, hash {}, checks {}, omissions {}, rollbacks {}",
            bots[0]["tick"],
            bots[0]["hash"],
            verified["checks_compared"],
            sum("omissions"),
            sum("rollbacks"),
        );
    }
}
