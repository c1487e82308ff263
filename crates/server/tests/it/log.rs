//! Tests of `sametick log`: it shows, verifies, compares and exports logs.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Output, Stdio};

use proptest::prelude::*;
use sametick::games::{AnyGame, Games};
use sametick::logs::{self, LogFile};
use sametick_sim::record::{Record, TickInputs};
use sametick_sim::{BuildId, Row, SchemaHash, Seat, StateHash, Tick};
use serde_json::Value;

use crate::process::{Folder, command, run};
use crate::recorded::{header, inputs_of, session, with_input, write};
use crate::trial;

fn pong(games: &Games) -> &dyn AnyGame {
    games.named("pong").unwrap()
}

/// Runs the command. Returns whether it succeeded, its output and its errors.
pub fn sametick(args: &[&str]) -> (bool, String, String) {
    let Output { status, stdout, stderr } = run(&mut command(args));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.success(), text(stdout), text(stderr))
}

fn json(args: &[&str]) -> (bool, Value) {
    let (ok, out, err) = sametick(&[args, &["--json"]].concat());
    assert_eq!(out.lines().count(), 1, "one line: {out}{err}");
    (ok, serde_json::from_str(&out).unwrap())
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn info_summarises_a_log() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "a.log", pong(&games), 3, 1_200);
    let (ok, info) = json(&["log", "info", text(&path)]);
    assert!(ok);
    let wanted: [(&str, Value); 9] = [
        ("game", "pong".into()),
        ("session", "den".into()),
        ("known", true.into()),
        ("last_tick", 1_200.into()),
        ("seconds", 20.0.into()),
        ("checks", 40.into()),
        ("ended", true.into()),
        ("torn_bytes", 0.into()),
        ("bytes", std::fs::metadata(&path).unwrap().len().into()),
    ];
    for (field, value) in wanted {
        assert_eq!(info[field], value, "{field} of {info}");
    }
    assert!(info["setup_fields"]["skill"].is_string() && !info["players"].as_array().unwrap().is_empty());
    let (ok, page, _) = sametick(&["log", "info", text(&path)]);
    assert!(ok && page.contains("2025-11-15 06:30:00 UTC") && page.contains("20.0 s"), "{page}");
}

#[test]
fn an_input_that_cannot_have_arrived_is_not_late() {
    let (folder, games) = (Folder::new(), trial::games());
    let rehearsal = pong(&games).rehearse(3, 1).unwrap();
    let (tick, seat) = (Tick(1), Seat(0));
    let mut records = vec![Record::Joined { tick, seat, name: "Ada".into(), commit: String::new() }];
    for tick in (1..=60).map(Tick) {
        // The first ten inputs cannot have arrived yet, and the 50th is late.
        let input = (tick > Tick(10) && tick != Tick(50)).then_some(&[0u8][..]);
        let mut inputs = TickInputs::new();
        inputs.set(tick, [Row { seat, joined: tick == Tick(1), left: false, input }]);
        records.push(Record::Inputs(inputs));
    }
    let path = folder.path().join("a.log");
    write(&path, &header(pong(&games), &rehearsal), &records);
    let (ok, info) = json(&["log", "info", text(&path)]);
    let player = &info["players"][0];
    assert_eq!((ok, &player["arriving"], &player["omissions"]), (true, &9.into(), &1.into()), "{info}");
    assert_eq!(info["omissions"], 1);
}

#[test]
fn cat_and_export_print_every_record() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "a.log", pong(&games), 4, 600);
    let (ok, lines, _) = sametick(&["log", "cat", text(&path), "--json"]);
    let (exported, out, _) = sametick(&["log", "export", "--jsonl", text(&path)]);
    assert!(ok && exported);
    assert_eq!(lines, out);
    let file = folder.path().join("a.jsonl");
    assert!(sametick(&["log", "export", text(&path), "-o", text(&file)]).0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), out);
    let (_, page, _) = sametick(&["log", "cat", text(&path), "--from", "90", "--to", "90"]);
    assert!(page.lines().any(|line| line.contains("  check ")), "{page}");
    assert!(!page.contains("      91  "), "{page}");
}

#[test]
fn a_good_log_is_verified_and_a_wrong_check_is_named() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "a.log", pong(&games), 5, 900);
    let (ok, verdict) = json(&["log", "verify", text(&path)]);
    assert!(ok && verdict["checks_compared"] == 30 && verdict["replayed"] == true, "{verdict}");

    let rehearsal = pong(&games).rehearse(5, 900).unwrap();
    let mut records = rehearsal.records(pong(&games));
    for record in &mut records {
        if let Record::Check { tick: Tick(120 | 300), hash } = record {
            *hash = StateHash(7);
        }
    }
    write(&path, &header(pong(&games), &rehearsal), &records);
    let (ok, out, _) = sametick(&["log", "verify", text(&path)]);
    assert!(!ok && out.contains("at tick 120 the players agreed on 0000000000000007"), "{out}");
}

#[test]
fn a_log_of_another_build_says_which_commit_to_check_out() {
    let (folder, games) = (Folder::new(), trial::games());
    let rehearsal = pong(&games).rehearse(6, 300).unwrap();
    let other = BuildId::from_bytes([0xab; 16]);
    let header = sametick_store::log::Header { build: other, ..header(pong(&games), &rehearsal) };
    let path = folder.path().join("old.log");
    write(&path, &header, &rehearsal.records(pong(&games)));
    let needed = [other.to_string(), pong(&games).build().to_string(), header.commit];
    let (ok, out, _) = sametick(&["log", "verify", text(&path)]);
    assert!(ok && out.contains("only the structure was verified"), "{out}");
    let (played, _, err) = sametick(&["replay", text(&path)]);
    assert!(!played);
    for word in &needed {
        assert!(out.contains(word) && err.contains(word), "{word} in {out} and {err}");
    }
    assert_eq!(json(&["log", "info", text(&path)]).1["known"], false);
    assert!(sametick(&["log", "cat", text(&path)]).1.contains("0x"), "inputs nobody can read are bytes");
}

#[test]
fn a_log_of_another_build_says_so_if_its_commit_is_no_help() {
    let (folder, games) = (Folder::new(), trial::games());
    let rehearsal = pong(&games).rehearse(6, 30).unwrap();
    let path = folder.path().join("old.log");
    let refused = |commit: &str| {
        let build = BuildId::from_bytes([0xab; 16]);
        let header =
            sametick_store::log::Header { build, commit: commit.into(), ..header(pong(&games), &rehearsal) };
        write(&path, &header, &rehearsal.records(pong(&games)));
        sametick(&["replay", text(&path)]).2
    };
    for nothing in ["", "browser"] {
        let err = refused(nothing);
        assert!(err.contains("the log does not say which commit to check out"), "{err}");
    }
    let ours = games.commit();
    if !ours.is_empty() {
        let err = refused(ours);
        assert!(err.contains(&format!("this program (commit {ours}) has")), "{err}");
        assert!(err.contains("one was built with changes to it"), "{err}");
    }
}

#[test]
fn diff_reports_what_is_missing_different_and_drifted() {
    let (folder, games) = (Folder::new(), trial::games());
    let game = pong(&games);
    let rehearsal = game.rehearse(8, 600).unwrap();
    let good = rehearsal.records(game);
    let [a, b, c] = ["a.log", "b.log", "c.log"].map(|name| folder.path().join(name));
    write(&a, &header(game, &rehearsal), &good);
    assert_eq!(json(&["log", "diff", text(&a), text(&a)]).1["count"], 0);

    let mut changed = good.clone();
    let there = inputs_of(&mut changed, Tick(400)).iter().find(|row| row.input.is_some()).unwrap().seat;
    let inputs = inputs_of(&mut changed, Tick(400));
    *inputs = with_input(inputs, there, &[8 | 4]);
    changed.retain(|record| !matches!(record, Record::Check { tick: Tick(450), .. }));
    write(&b, &header(game, &rehearsal), &changed);
    let (ok, report) = json(&["log", "diff", text(&a), text(&b)]);
    let kinds: Vec<&str> =
        report["differences"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert!(!ok && report["first_tick"] == 400 && kinds == ["different", "missing"], "{report}");
    let stream = folder.path().join("a.jsonl");
    assert!(sametick(&["log", "export", text(&a), "-o", text(&stream)]).0);
    assert!(sametick(&["log", "diff", text(&stream), text(&a)]).0, "a log and its own export");
    assert_eq!(json(&["log", "diff", text(&stream), text(&b)]).1["first_tick"], 400);

    let drifted =
        sametick_store::log::Header { schema: SchemaHash::from_bytes([1; 32]), ..header(game, &rehearsal) };
    write(&c, &drifted, &good);
    let (ok, report) = json(&["log", "diff", text(&a), text(&c)]);
    assert!(!ok && report["drift"] == true && report["count"] == 1, "{report}");
}

#[test]
fn a_file_that_is_no_log_is_refused_by_name() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "good.log", pong(&games), 9, 300);
    let bytes = std::fs::read(&path).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        folder.path().join(name)
    };
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 0x40;
    let bad = [
        (folder.path().join("none.log"), "there is no such file"),
        (folder.path().to_owned(), "there is no log in this folder"),
        (file("empty.log", b""), "the file is empty"),
        (file("text.log", b"hello\n"), "not a log of a session"),
        (file("binary.log", &[0xff, 0xfe, 0, 1]), "not a log of a session"),
        (file("short.log", &bytes[..9]), "nothing was recorded"),
        (file("header.log", &bytes[..30]), "nothing was recorded"),
        (file("damaged.log", &damaged), "the log is damaged"),
    ];
    let good = text(&path);
    for (path, words) in &bad {
        let name = text(path);
        let commands: [&[&str]; 8] = [
            &["log", "info", name],
            &["log", "cat", name],
            &["log", "verify", name],
            &["log", "export", name],
            &["replay", name],
            &["replay", name, "--twice"],
            &["replay", good, "--against", name],
            &["log", "diff", good, name],
        ];
        for args in commands {
            let (ok, _, err) = sametick(args);
            let said = err.contains(words) || err.contains("neither a log nor lines of JSON");
            assert!(!ok && said && err.lines().count() == 1 && err.contains(name), "{args:?}: {err}");
        }
    }
}

#[test]
fn a_torn_log_is_read_up_to_the_tear() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "a.log", pong(&games), 10, 600);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let (ok, verdict) = json(&["log", "verify", text(&path)]);
    assert!(!ok && verdict["torn_bytes"].as_u64() > Some(0) && verdict["structure"] == true, "{verdict}");
    assert!(verdict["first_bad"].is_null() && verdict["checks_compared"].as_u64() > Some(10), "{verdict}");
    let (ok, out, _) = sametick(&["replay", text(&path)]);
    assert!(ok && out.contains("are torn"), "{out}");
    assert_eq!(json(&["log", "info", text(&path)]).1["ended"], false);
}

#[test]
fn a_closed_output_pipe_is_no_error() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "a.log", pong(&games), 11, 20_000);
    for args in
        [["log", "cat", text(&path)], ["log", "export", text(&path)], ["replay", text(&path), "--hashes"]]
    {
        let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut complaint = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert!(child.wait().unwrap().success() && complaint.is_empty(), "{args:?}: {complaint}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_flipped_bit_passes_verification(place: prop::sample::Index, bit in 0u8..8) {
        let (folder, games) = (Folder::new(), trial::games());
        let path = session(folder.path(), "a.log", pong(&games), 12, 300);
        prop_assert!(logs::verify(LogFile::open(&path).unwrap(), &games).unwrap().is_good());
        let mut bytes = std::fs::read(&path).unwrap();
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        std::fs::write(&path, &bytes).unwrap();
        let verdict = LogFile::open(&path).ok().and_then(|log| logs::verify(log, &games).ok());
        prop_assert!(!verdict.is_some_and(|verdict| verdict.is_good()), "bit {bit} of byte {at}");
    }
}
