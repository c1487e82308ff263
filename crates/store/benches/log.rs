//! Benchmarks of the log: the cost of writing a tick, the speed of reading, and opening an hour of four players.
//!
//! `cargo bench -p sametick-store --bench log`

#[path = "../tests/it/sessions.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod sessions;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sametick_sim::Tick;
use sametick_store::disk::FsSource;
use sametick_store::log::{LogEncoder, LogReader};

use sessions::{Play, header, play, played};

const HOUR: u32 = 60 * 60 * 60;
const MINUTE: u32 = 60 * 60;

fn main() {
    divan::main();
}

/// Items are ticks of four players.
#[divan::bench(args = [Play::Buttons, Play::Idle, Play::Sticks])]
fn encode(bencher: Bencher<'_, '_>, how: Play) {
    let mut records = vec![];
    play(how, 4, MINUTE, |record| records.push(record.clone()));
    let mut frame = vec![];
    bencher.counter(ItemsCount::new(MINUTE)).bench_local(|| {
        let mut encoder = LogEncoder::new(&header()).unwrap();
        for record in &records {
            encoder.push(record).unwrap();
            while encoder.poll_frame(&mut frame).is_some() {
                black_box(&frame);
            }
        }
    });
}

/// Items are ticks of four players; real time is 60 of them a second.
#[divan::bench(args = [Play::Buttons, Play::Idle, Play::Sticks])]
fn decode(bencher: Bencher<'_, '_>, how: Play) {
    let bytes = played(how, 4, 10 * MINUTE);
    bencher.counter(ItemsCount::new(10 * MINUTE)).bench_local(|| {
        let mut reader = LogReader::open(&bytes[..]).unwrap();
        let mut ticks = reader.ticks();
        while let Some(tick) = ticks.next().unwrap() {
            black_box(tick);
        }
    });
}

/// An hour of four players, from a file.
#[divan::bench]
fn open(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    std::fs::write(&path, played(Play::Buttons, 4, HOUR)).unwrap();
    bencher.bench_local(|| LogReader::open(FsSource::open(&path).unwrap()).unwrap().tail());
}

/// An hour of four players, from a file: open it, and read one tick in the middle.
#[divan::bench]
fn open_and_seek(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    std::fs::write(&path, played(Play::Buttons, 4, HOUR)).unwrap();
    bencher.bench_local(|| {
        let mut reader = LogReader::open_file(&path).unwrap();
        let found = reader.ticks_from(Tick(HOUR / 2 + 1234)).next().unwrap().is_some();
        assert!(found);
    });
}
