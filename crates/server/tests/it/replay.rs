//! Tests of `sametick replay`: every state of every tick, kept states, and the first difference.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use proptest::prelude::*;
use sametick::games::{AnyGame, Games};
use sametick::logs::LogFile;
use sametick::replay::{Keep, Playback, ReplayError, compare, play_twice};
use sametick_sim::record::Record;
use sametick_sim::{StateHash, Tick};
use serde_json::Value;

use crate::log::{sametick, text};
use crate::process::{Folder, command};
use crate::recorded::{append, header, inputs_of, session, with_input, write};
use crate::trial;

/// A state is kept every second.
const INTERVAL: u64 = 60;

fn game<'a>(games: &'a Games, name: &str) -> &'a dyn AnyGame {
    games.named(name).unwrap()
}

/// The hashes of every tick, from the start, as computed without a log.
fn hashes(game: &dyn AnyGame, seed: u64, ticks: u32) -> Vec<StateHash> {
    let rehearsal = game.rehearse(seed, ticks).unwrap();
    let mut run = game.begin(&rehearsal.setup).unwrap();
    let mut hashes = vec![run.hash()];
    for inputs in &rehearsal.ticks {
        run.step(inputs);
        hashes.push(run.hash());
    }
    hashes
}

/// Goes to a tick. Returns the hash of its state, and how many steps that took.
fn seek(path: &Path, games: &Games, tick: u32) -> (StateHash, u64) {
    trial::take_steps();
    let mut playback = Playback::open(path, games, Keep::InFile).unwrap();
    playback.go_to(Tick(tick)).unwrap();
    playback.keep_states();
    (playback.run().hash(), trial::take_steps())
}

fn states_of(log: &Path) -> PathBuf {
    let mut name = log.file_name().unwrap().to_owned();
    name.push(".states");
    log.with_file_name(name)
}

#[test]
fn a_replay_comes_to_every_hash_again() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "a.log", game(&games, "pong"), 21, 1_500);
    let (ok, out, err) = sametick(&["replay", text(&path), "--hashes"]);
    assert!(ok && err.is_empty(), "{err}");
    let wanted = hashes(game(&games, "pong"), 21, 1_500);
    let wanted: Vec<String> = (1..=1_500).map(|tick| format!("{tick} {}", wanted[tick])).collect();
    assert!(out.lines().eq(&wanted));
    let (ok, out, _) = sametick(&["replay", text(&path), "--hashes", "--json", "--to", "100"]);
    let checks: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(ok && checks.len() == 3 && checks.iter().all(|check| check["hash"] == check["logged"]), "{out}");
}

#[test]
fn the_state_of_a_tick_is_printed_with_the_names_of_its_fields() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "a.log", game(&games, "pong"), 22, 900);
    let (ok, out, _) = sametick(&["replay", text(&path), "--to", "700", "--state", "--json"]);
    assert!(ok && out.lines().count() == 1);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert!(report["state"]["tick"] == 700 && report["state"]["ball"]["at"]["x"].is_i64(), "{report}");
    assert_eq!(report["hash"], hashes(game(&games, "pong"), 22, 900)[700].to_string());
    let (ok, _, err) = sametick(&["replay", text(&path), "--to", "901"]);
    assert!(!ok && err.contains("there is no tick 901; the log ends with tick 900"), "{err}");
}

#[test]
fn kept_states_make_seeking_fast() {
    let (folder, games) = (Folder::new(), trial::games());
    let ticks = 6_000;
    let path = session(folder.path(), "slow.log", game(&games, "slow"), 23, ticks);
    let wanted = hashes(game(&games, "slow"), 23, ticks);
    let (hash, steps) = seek(&path, &games, ticks);
    assert_eq!(
        (hash, steps),
        (wanted[ticks as usize], u64::from(ticks)),
        "the first time, all of it is played"
    );
    for tick in (0..=ticks).step_by(97) {
        let (hash, steps) = seek(&path, &games, tick);
        assert_eq!(hash, wanted[tick as usize], "tick {tick}");
        assert!(steps < INTERVAL, "{steps} steps to tick {tick}");
    }
}

#[test]
fn a_log_that_has_grown_uses_what_was_kept() {
    let (folder, games) = (Folder::new(), trial::games());
    let slow = game(&games, "slow");
    let rehearsal = slow.rehearse(24, 4_000).unwrap();
    let records = rehearsal.records(slow);
    let half = records.iter().position(|record| record.tick() == Some(Tick(2_001))).unwrap();
    let path = folder.path().join("a.log");
    write(&path, &header(slow, &rehearsal), &records[..half]);
    assert_eq!(seek(&path, &games, 2_000).1, 2_000);
    append(&path, &header(slow, &rehearsal), &records[half..]);
    let (hash, steps) = seek(&path, &games, 4_000);
    assert_eq!(hash, hashes(slow, 24, 4_000)[4_000]);
    assert!((2_000..2_000 + INTERVAL).contains(&steps), "{steps} steps");
    assert!(seek(&path, &games, 3_999).1 < INTERVAL && seek(&path, &games, 1_999).1 < INTERVAL);
}

#[test]
fn states_undone_by_a_rewind_are_not_used() {
    let (folder, games) = (Folder::new(), trial::games());
    let slow = game(&games, "slow");
    let [first, second] = [25, 26].map(|seed| slow.rehearse(seed, 3_000).unwrap());
    let path = folder.path().join("a.log");
    // No player joins or leaves: the ticks before and after fit together.
    let calm = |rehearsal: &sametick::games::Rehearsal| -> Vec<Record> {
        let mut records = vec![];
        for inputs in &rehearsal.ticks {
            let mut alone = inputs.clone();
            alone.clear(inputs.tick());
            records.push(Record::Inputs(alone));
        }
        records
    };
    let mut head = header(slow, &first);
    head.setup = second.setup.clone();
    write(&path, &head, &calm(&first)[..1_500]);
    assert_eq!(seek(&path, &games, 1_500).1, 1_500);
    // Rewinds to tick 900, and goes on with a player.
    let mut after = vec![Record::Rewind { to: Tick(900) }];
    let name = "late".to_owned();
    let (tick, seat) = (Tick(901), sametick_sim::Seat(3));
    after.push(Record::Joined { tick, seat, name, commit: head.commit.clone() });
    for number in 901..=1_500 {
        let mut inputs = sametick_sim::record::TickInputs::new();
        let joined = number == 901;
        inputs.set(Tick(number), [sametick_sim::Row { seat, joined, left: false, input: Some(&[9][..]) }]);
        after.push(Record::Inputs(inputs));
    }
    append(&path, &head, &after);
    let (hash, steps) = seek(&path, &games, 1_500);
    assert!((600..600 + INTERVAL).contains(&steps), "{steps} steps");
    let mut fresh = Playback::open(&path, &games, Keep::InMemory).unwrap();
    fresh.go_to(Tick(1_500)).unwrap();
    assert_eq!(fresh.run().hash(), hash);
}

#[test]
fn states_of_another_log_are_not_used() {
    let (folder, games) = (Folder::new(), trial::games());
    let slow = game(&games, "slow");
    let [a, b] = [27, 28].map(|seed| session(folder.path(), &format!("{seed}.log"), slow, seed, 1_200));
    seek(&a, &games, 1_200);
    std::fs::copy(states_of(&a), states_of(&b)).unwrap();
    assert_eq!(seek(&b, &games, 1_200), (hashes(slow, 28, 1_200)[1_200], 1_200));
    // Now they are its own.
    assert!(seek(&b, &games, 1_199).1 < INTERVAL);
}

#[cfg(unix)]
#[test]
fn states_are_kept_beside_the_log_itself_and_not_beside_a_link() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "a.log", game(&games, "slow"), 35, 1_200);
    let link = folder.path().join("link.log");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    seek(&link, &games, 1_200);
    assert!(states_of(&path).exists() && !states_of(&link).exists());
    assert!(seek(&path, &games, 1_199).1 < INTERVAL);
}

#[test]
fn a_wrong_check_is_found_whether_or_not_states_were_kept() {
    let (folder, games) = (Folder::new(), trial::games());
    let pong = game(&games, "pong");
    let rehearsal = pong.rehearse(29, 1_800).unwrap();
    let mut records = rehearsal.records(pong);
    records.iter_mut().for_each(|record| {
        if let Record::Check { tick: Tick(600), hash } = record {
            *hash = StateHash(1);
        }
    });
    let path = folder.path().join("a.log");
    write(&path, &header(pong, &rehearsal), &records);
    let words = "at tick 600 the players agreed on 0000000000000001";
    for args in
        [&["replay"][..], &["replay", "--to", "1700"], &["replay", "--no-cache"], &["replay", "--to", "600"]]
    {
        let (ok, out, _) = sametick(&[args, &[text(&path)]].concat());
        assert!(!ok && out.contains(words), "{args:?}: {out}");
    }
    assert!(states_of(&path).exists());
    assert!(sametick(&["replay", text(&path), "--to", "599"]).0, "before it, all is well");
    let (ok, _, err) = sametick(&["replay", text(&path), "--hashes"]);
    assert!(!ok && err.contains(words), "{err}");
}

#[test]
fn stepping_takes_lines_from_a_pipe() {
    let (folder, games) = (Folder::new(), trial::games());
    let path = session(folder.path(), "a.log", game(&games, "pong"), 30, 900);
    let mut child = command(&["replay", text(&path), "--step", "--to", "399"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"\nd\ns\n10\n901\nwhat\nq\n\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let wanted = hashes(game(&games, "pong"), 30, 900);
    for tick in [399, 400, 10] {
        assert!(out.contains(&format!("tick {tick}  {}", wanted[tick])), "{tick} in {out}");
    }
    assert!(output.status.success() && out.contains("  tick: 399 -> 400\n"), "{out}");
    assert!(out.contains("\"tick\": 400") && out.contains("no tick 901") && out.contains("Enter"), "{out}");
    assert!(!out.contains("tick 11 "), "nothing is read after q: {out}");
}

#[test]
fn two_instances_of_one_log_reveal_nondeterminism() {
    let (folder, games) = (Folder::new(), trial::games());
    let good = session(folder.path(), "a.log", game(&games, "pong"), 31, 900);
    let (ok, out, _) = sametick(&["replay", text(&good), "--twice"]);
    assert!(ok && out.contains("the same state after each of 900 ticks"), "{out}");

    let bad = session(folder.path(), "b.log", game(&games, "threaded"), 31, 900);
    let found = play_twice(&LogFile::open(&bad).unwrap(), &games, Tick(900)).unwrap().unwrap();
    assert_eq!((found.tick, found.differences[0].path.as_str()), (Tick(40), "here"));
    assert_eq!(play_twice(&LogFile::open(&bad).unwrap(), &games, Tick(39)).unwrap(), None);
}

#[test]
fn a_game_that_panics_does_so_in_a_tick_that_is_named() {
    let (folder, games) = (Folder::new(), trial::games());
    let fragile = game(&games, "fragile");
    let seed = (0..).find(|seed| fragile.rehearse(*seed, 400).unwrap().ticks.len() < 400).unwrap();
    let path = session(folder.path(), "a.log", fragile, seed, 400);
    let last = fragile.rehearse(seed, 400).unwrap().ticks.len() as u32;
    let mut playback = Playback::open(&path, &games, Keep::InMemory).unwrap();
    let error = playback.go_to(Tick(last)).unwrap_err();
    assert!(matches!(error, ReplayError::Panicked { tick, .. } if tick == Tick(last)), "{error}");
    let twice = play_twice(&LogFile::open(&path).unwrap(), &games, Tick(last));
    assert!(matches!(twice, Err(ReplayError::Panicked { .. })));
}

#[test]
fn a_part_of_a_log_cannot_be_played_alone() {
    let (folder, games) = (Folder::new(), trial::games());
    let pong = game(&games, "pong");
    let rehearsal = pong.rehearse(32, 10).unwrap();
    let path = folder.path().join("part.log");
    let head = sametick_store::log::Header { first_tick: Tick(500), ..header(pong, &rehearsal) };
    write(&path, &head, &[]);
    let (ok, _, err) = sametick(&["replay", text(&path)]);
    assert!(!ok && err.contains("begins at tick 500"), "{err}");
    let (ok, out, _) = sametick(&["log", "verify", text(&path)]);
    assert!(ok && out.contains("only the structure was verified"), "{out}");
}

#[test]
fn two_logs_diverge_where_an_input_was_changed() {
    let (folder, games) = (Folder::new(), trial::games());
    let pong = game(&games, "pong");
    let rehearsal = pong.rehearse(33, 900).unwrap();
    let [a, b] = ["a.log", "b.log"].map(|name| folder.path().join(name));
    write(&a, &header(pong, &rehearsal), &rehearsal.records(pong));
    let mut other = rehearsal.clone();
    let moving = |at: &usize| rehearsal.ticks[*at].iter().any(|row| row.seat.0 == 0 && row.input.is_some());
    let at = (300..900).find(moving).unwrap();
    let row = rehearsal.ticks[at].get(sametick_sim::Seat(0)).unwrap();
    let new = if row.input == Some(&[1]) { [2] } else { [1] };
    other.ticks[at] = with_input(&rehearsal.ticks[at], row.seat, &new);
    write(&b, &header(pong, &other), &other.records(pong));
    let (ok, out, _) = sametick(&["replay", text(&a), "--against", text(&b)]);
    let first = format!("inputs that differ, first in tick {}:\n  seat 0: ", at + 1);
    assert!(!ok && out.contains("PART WAYS") && out.contains(&first), "{out}");
    assert!(out.contains("paddles[0]."), "{out}");
    let (ok, out, _) = sametick(&["replay", text(&a), "--against", text(&a), "--json"]);
    assert!(ok && out.contains("\"same\":true"), "{out}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_first_tick_that_differs_is_found(seed in 0u64..1_000, at in 60usize..800, value: u16) {
        let (folder, games) = (Folder::new(), trial::games());
        let slow = game(&games, "slow");
        let rehearsal = slow.rehearse(seed, 800).unwrap();
        let Some(row) = rehearsal.ticks[at - 1].iter().next() else { return Ok(()) };
        let input = sametick_sim::to_canonical(&value).unwrap();
        prop_assume!(row.input != Some(&input[..]));
        let (mut first, mut second) = (rehearsal.records(slow), rehearsal.records(slow));
        let changed = with_input(inputs_of(&mut first, Tick(at as u32)), row.seat, &input);
        *inputs_of(&mut second, Tick(at as u32)) = changed;
        let [a, b] = ["a.log", "b.log"].map(|name| folder.path().join(name));
        write(&a, &header(slow, &rehearsal), &first);
        write(&b, &header(slow, &rehearsal), &second);
        let [mut ours, mut theirs] = [&a, &b].map(|path| Playback::open(path, &games, Keep::InMemory).unwrap());
        let found = compare(&mut ours, &mut theirs, Tick(800)).unwrap();
        // An input that was late counts as 1.
        let same = row.input.is_none() && value == 1;
        prop_assert_eq!(found.as_ref().map(|found| found.tick), (!same).then_some(Tick(at as u32)));
        if let Some(found) = found {
            prop_assert_eq!(found.inputs.unwrap().ours.tick(), Tick(at as u32));
            prop_assert!(!found.differences.is_empty());
        }
    }

    #[test]
    fn damaged_states_change_no_answer(place: prop::sample::Index, bit in 0u8..8, cut: bool, tick in 0u32..=1_500) {
        let (folder, games) = (Folder::new(), trial::games());
        let slow = game(&games, "slow");
        let path = session(folder.path(), "a.log", slow, 34, 1_500);
        seek(&path, &games, 1_500);
        let mut bytes = std::fs::read(states_of(&path)).unwrap();
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if cut {
            bytes.truncate(at);
        }
        std::fs::write(states_of(&path), &bytes).unwrap();
        prop_assert_eq!(seek(&path, &games, tick).0, hashes(slow, 34, 1_500)[tick as usize]);
    }
}
