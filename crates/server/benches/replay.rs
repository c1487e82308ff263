//! Benchmark of replays: an hour of pong with four players from end to end, and seeking to any of its ticks.
//!
//! `cargo bench -p sametick --bench replay`. Items are ticks: real time is 60 of them a second.
#![allow(clippy::disallowed_methods, reason = "a benchmark has files")]

use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::ItemsCount;
use sametick::games;
use sametick::games::{AnyGame, Games};
use sametick::logs::LogFile;
use sametick::replay::{Keep, Playback, play_twice};
use sametick_pong::{Pong, Setup, autopilot};
use sametick_sim::record::{Record, TickInputs};
use sametick_sim::{Game, Rng, Row, Seat, StateHash, Tick, to_canonical};
use sametick_store::disk::MemDisk;
use sametick_store::log::{Header, LogWriter};

const HOUR_TICKS: u32 = 60 * 60 * 60;
const CHECK_TICKS: u32 = 30;
const SEATS: u8 = 4;

fn main() {
    divan::main();
}

/// A folder of its own, deleted on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind is better than a panic in a drop.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Records an hour that four autopilots have played.
fn hour(name: &str) -> (Folder, PathBuf, Games) {
    let folder = std::env::temp_dir().join(format!("sametick-bench-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("hour.log");
    let games = games![Pong => autopilot];
    std::fs::write(&path, log_of_an_hour(games.named("pong").unwrap())).unwrap();
    (Folder(folder), path, games)
}

fn log_of_an_hour(game: &dyn AnyGame) -> Vec<u8> {
    let setup = to_canonical(&Setup { players: SEATS, seed: 1, ..Setup::default() }).unwrap();
    let header = Header {
        build: Pong::BUILD,
        schema: game.schema(),
        setup: setup.clone(),
        ..Header::new("pong", "bench")
    };
    let mut log = LogWriter::new(MemDisk::new(), &header).unwrap();
    let mut pong = Pong::new(&sametick_sim::from_canonical(&setup).unwrap());
    let mut run = game.begin(&setup).unwrap();
    let (mut inputs, mut decoded) = (TickInputs::new(), sametick_sim::Inputs::new());
    for tick in (1..=HOUR_TICKS).map(Tick) {
        let joined = tick == Tick(1);
        inputs.clear(tick);
        for seat in (0..u16::from(SEATS)).map(Seat) {
            if joined {
                let name = format!("player {seat}");
                log.push(&Record::Joined { tick, seat, name, commit: String::new() }).unwrap();
            }
            let input = to_canonical(&autopilot(&pong, seat)).unwrap();
            inputs.push(Row { seat, joined, left: false, input: Some(&input) });
        }
        inputs.decode(&mut decoded);
        pong.step(&decoded);
        run.step(&inputs);
        log.push_inputs(&inputs).unwrap();
        if tick.0.is_multiple_of(CHECK_TICKS) {
            log.push(&Record::Check { tick, hash: StateHash::of(&pong) }).unwrap();
        }
    }
    assert_eq!(run.hash(), StateHash::of(&pong));
    log.push(&Record::End).unwrap();
    log.flush().unwrap();
    log.disk().bytes().to_vec()
}

fn play(path: &Path, games: &Games, to: u32, keep: Keep) {
    let mut playback = Playback::open(path, games, keep).unwrap();
    playback.go_to(Tick(to)).unwrap();
    playback.keep_states();
    assert_eq!(playback.covered().first_bad, None);
}

/// Every tick and every check, from the file; no state is kept.
#[divan::bench]
fn replay_an_hour(bencher: Bencher<'_, '_>) {
    let (_folder, path, games) = hour("replay");
    bencher
        .counter(ItemsCount::new(HOUR_TICKS))
        .bench_local(|| play(&path, &games, HOUR_TICKS, Keep::InMemory));
}

/// The same, with the states kept in a file.
#[divan::bench]
fn replay_an_hour_and_keep_states(bencher: Bencher<'_, '_>) {
    let (_folder, path, games) = hour("keep");
    bencher
        .counter(ItemsCount::new(HOUR_TICKS))
        .bench_local(|| play(&path, &games, HOUR_TICKS, Keep::Afresh));
}

/// The same on two threads, with every state compared.
#[divan::bench]
fn replay_an_hour_twice(bencher: Bencher<'_, '_>) {
    let (_folder, path, games) = hour("twice");
    bencher.counter(ItemsCount::new(HOUR_TICKS)).bench_local(|| {
        let found = play_twice(&LogFile::open(&path).unwrap(), &games, Tick(HOUR_TICKS)).unwrap();
        assert_eq!(found, None);
    });
}

/// Opens the log and seeks to a random tick, with kept states: the whole of `sametick replay LOG --to TICK`.
#[divan::bench(sample_count = 1_000, sample_size = 1)]
fn open_and_go_to_any_tick(bencher: Bencher<'_, '_>) {
    let (_folder, path, games) = hour("seek");
    play(&path, &games, HOUR_TICKS, Keep::Afresh);
    let mut rng = Rng::new(1);
    bencher.with_inputs(|| rng.below(u64::from(HOUR_TICKS)) as u32 + 1).bench_local_values(|tick| {
        play(&path, &games, tick, Keep::InFile);
    });
}

/// The same in an open log, as stepping does.
#[divan::bench(sample_count = 1_000, sample_size = 1)]
fn go_to_any_tick(bencher: Bencher<'_, '_>) {
    let (_folder, path, games) = hour("step");
    play(&path, &games, HOUR_TICKS, Keep::Afresh);
    let mut playback = Playback::open(&path, &games, Keep::InFile).unwrap();
    let mut rng = Rng::new(1);
    bencher.with_inputs(|| rng.below(u64::from(HOUR_TICKS)) as u32 + 1).bench_local_values(|tick| {
        playback.go_to(Tick(tick)).unwrap();
    });
}
