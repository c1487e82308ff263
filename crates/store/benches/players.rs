//! Benchmarks of the players database: the cost of a save on the tick thread, and rows per second to the disk; each
//! beside its reference.
//!
//! `cargo bench -p sametick-store --bench players`; `-- ratios` alternates between ours and the reference and prints
//! how they compare.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures time, and waits for another thread"
)]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use rtrb::{Producer, RingBuffer};
use rusqlite::{Connection, TransactionBehavior, params};
use sametick_store::players::{
    Answer, Found, Kept, Opened, Opener, PlaceId, PlayerId, PlayerWriter, PlayerWriterOptions, Purpose,
    Question, Sqlite, SqliteOptions, Storage, StorageError, Write,
};
use tempfile::TempDir;

/// Fewer than half of the queue's capacity: the thread sleeps meanwhile.
const PUSHES: u32 = 1000;
const QUEUE: usize = 4096;
/// Roughly an arena player's data.
const KEPT_BYTES: usize = 64;
const HOUR: Duration = Duration::from_secs(3600);

fn main() {
    if std::env::args().any(|word| word == "ratios") { print_ratios() } else { divan::main() }
}

fn checkpoint(player: u32, tick: u32) -> Write {
    let kept = Kept::new(&[tick as u8; KEPT_BYTES]).unwrap();
    // Ids are hashes: spread over the table, not one after the other.
    let player = PlayerId(u128::from(player).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    Write::Checkpoint { place: PlaceId(7), player, seat: 1, tick, kept, unix_ms: tick.into() }
}

/// Items are pushes of a checkpoint into an empty queue.
#[divan::bench(sample_count = 500, sample_size = 1)]
fn push_raw(bencher: Bencher<'_, '_>) {
    let raw = RefCell::new(RawQueue::new());
    let empty = || raw.borrow_mut().drain();
    let push = |()| raw.borrow_mut().push();
    bencher.counter(ItemsCount::new(PUSHES)).with_inputs(empty).bench_local_values(push);
}

/// The same through a writer.
#[divan::bench(sample_count = 500, sample_size = 1)]
fn push_writer(bencher: Bencher<'_, '_>) {
    let ours = RefCell::new(Ours::idle());
    let empty = || ours.borrow_mut().wait();
    let push = |()| ours.borrow_mut().push(PUSHES);
    bencher.counter(ItemsCount::new(PUSHES)).with_inputs(empty).bench_local_values(push);
}

/// Items are rows on disk, in one synced transaction.
#[divan::bench(args = [1000, 10_000], sample_count = 20)]
fn rows_raw(bencher: Bencher<'_, '_>, rows: u32) {
    let mut raw = RawTable::new();
    bencher.counter(ItemsCount::new(rows)).bench_local(|| raw.round(rows));
}

/// The same through a writer, from the first save to the answer.
#[divan::bench(args = [1000, 10_000], sample_count = 20)]
fn rows_writer(bencher: Bencher<'_, '_>, rows: u32) {
    let mut ours = Ours::sqlite();
    bencher.counter(ItemsCount::new(rows)).bench_local(|| ours.round(rows));
}

/// The plain queue, emptied by another thread as ours is.
struct RawQueue {
    producer: Producer<Write>,
    empty: Sender<()>,
    emptied: Receiver<()>,
}

impl RawQueue {
    fn new() -> RawQueue {
        let (producer, mut consumer) = RingBuffer::new(QUEUE);
        let ((empty, asked), (done, emptied)) = (channel(), channel());
        std::thread::spawn(move || {
            while asked.recv().is_ok() {
                while let Ok(write) = consumer.pop() {
                    black_box(write);
                }
                done.send(()).unwrap();
            }
        });
        RawQueue { producer, empty, emptied }
    }

    fn push(&mut self) {
        (0..PUSHES).for_each(|player| assert!(self.producer.push(checkpoint(player, 1)).is_ok()));
    }

    /// How long the pushes take; the queue is empty before.
    fn pushing(&mut self) -> Duration {
        self.drain();
        let start = Instant::now();
        self.push();
        start.elapsed()
    }

    fn drain(&mut self) {
        self.empty.send(()).unwrap();
        self.emptied.recv().unwrap();
    }
}

/// A writer, and its waker.
struct Ours {
    writer: PlayerWriter,
    woken: Receiver<()>,
    tick: u32,
    path: PathBuf,
    _folder: TempDir,
}

impl Ours {
    /// On a database that accepts everything and does nothing.
    fn idle() -> Ours {
        Ours::start(QUEUE, |_| Box::new(|_| Ok(Opened { storage: Box::new(Nowhere), note: None })))
    }

    fn sqlite() -> Ours {
        Ours::sqlite_with(1 << 15)
    }

    fn sqlite_with(queue: usize) -> Ours {
        Ours::start(queue, |path| Sqlite::opener(path, SqliteOptions::default()))
    }

    /// One tick of a thirtieth of a second; returns how long its saves take.
    fn tick(&mut self) -> Duration {
        let start = Instant::now();
        self.push(1000);
        while self.writer.poll().is_some() {}
        let took = start.elapsed();
        std::thread::sleep(Duration::from_millis(33).saturating_sub(took));
        took
    }

    fn start(queue: usize, opener: impl FnOnce(&Path) -> Opener) -> Ours {
        let (folder, path) = folder();
        let (wake, woken) = channel();
        let options = PlayerWriterOptions {
            queue,
            usual: HOUR,
            hurried: Duration::from_secs(1),
            ..PlayerWriterOptions::default()
        };
        let writer =
            PlayerWriter::start(opener(&path), options, Box::new(move || wake.send(()).unwrap_or_default()));
        let mut ours = Ours { writer, woken, tick: 0, path, _folder: folder };
        ours.wait();
        ours
    }

    fn push(&mut self, rows: u32) {
        self.tick += 1;
        (0..rows).for_each(|player| self.writer.save(checkpoint(player, self.tick)));
    }

    /// Waits until everything is on disk.
    fn wait(&mut self) {
        let ticket = self.writer.flush();
        loop {
            match self.writer.poll() {
                Some(Answer::Saved(saved)) if saved == ticket => return,
                Some(Answer::Saved(_)) => {}
                Some(other) => panic!("{other:?}"),
                None => self.woken.recv().unwrap(),
            }
        }
    }

    /// How long the pushes take; the queue is empty before.
    fn pushing(&mut self) -> Duration {
        self.wait();
        let start = Instant::now();
        self.push(PUSHES);
        start.elapsed()
    }

    fn round(&mut self, rows: u32) -> Duration {
        let start = Instant::now();
        self.push(rows);
        self.wait();
        start.elapsed()
    }
}

struct Nowhere;

impl Storage for Nowhere {
    fn write(&mut self, batch: &[Write]) -> Result<(), StorageError> {
        black_box(batch);
        Ok(())
    }

    fn look_up(&mut self, _question: &Question) -> Result<Found, StorageError> {
        Ok(Found::default())
    }
}

/// The table of checkpoints, written by plain SQLite.
struct RawTable {
    connection: Connection,
    tick: u32,
    _folder: TempDir,
}

impl RawTable {
    fn new() -> RawTable {
        let (folder, path) = folder();
        drop(Sqlite::open(&path, &SqliteOptions::default(), Purpose::Writing).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        RawTable { connection, tick: 0, _folder: folder }
    }

    fn round(&mut self, rows: u32) -> Duration {
        self.tick += 1;
        let start = Instant::now();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let mut upsert = transaction.prepare_cached(UPSERT).unwrap();
        for player in 0..rows {
            let Write::Checkpoint { place, player, seat, tick, kept, unix_ms } =
                checkpoint(player, self.tick)
            else {
                continue;
            };
            let (place, unix_ms) = (place.0.cast_signed(), unix_ms.cast_signed());
            upsert.execute(params![place, player.to_bytes(), seat, tick, kept.as_bytes(), unix_ms]).unwrap();
        }
        drop(upsert);
        transaction.commit().unwrap();
        start.elapsed()
    }
}

const UPSERT: &str = "INSERT INTO checkpoints (place, player, seat, tick, kept, unix_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT DO UPDATE SET seat = excluded.seat, tick = excluded.tick, kept = excluded.kept, unix_ms = excluded.unix_ms";

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("players.sqlite");
    (folder, path)
}

/// Alternates between ours and the reference, so that both have the same machine.
fn print_ratios() {
    let (mut raw, mut ours) = (RawQueue::new(), Ours::idle());
    let (raw, ours) = by_turns(4000, || raw.pushing(), || ours.pushing());
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(PUSHES);
    let (raw, ours) = (each(raw), each(ours));
    println!("push of a checkpoint: raw rtrb {raw:.1} ns, writer {ours:.1} ns: {:.2} times", ours / raw);
    for rows in [1000, 10_000] {
        print_rows(rows);
    }
    print_a_crowd();
    print_ticks("that works", |_| None);
    print_ticks("that another program has locked", |path| {
        let other = Connection::open(path).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        Some(other)
    });
}

/// How long a tick's saves take, for 1,000 players at 30 ticks a second, with a prepared database: far more than rooms
/// save, and more than the queue holds in between.
fn print_ticks(how: &str, prepare: impl FnOnce(&Path) -> Option<Connection>) {
    let mut ours = Ours::sqlite_with(QUEUE);
    let other = prepare(&ours.path);
    let mut ticks: Vec<Duration> = (0..150).map(|_| ours.tick()).collect();
    let stats = ours.writer.stats();
    drop(other);
    ticks.sort();
    let us = |share: usize| ticks[(ticks.len() - 1) * share / 100].as_micros();
    println!(
        "1,000 saves and a poll, on a database {how}: {} µs in the middle, 99 % {} µs, longest {} µs; {} overflows",
        us(50),
        us(99),
        us(100),
        stats.overflows
    );
}

fn print_rows(rows: u32) {
    let (mut raw, mut ours) = (RawTable::new(), Ours::sqlite());
    let (mut raw_cpu, mut ours_cpu) = (Duration::ZERO, Duration::ZERO);
    let (raw, ours) = by_turns(
        100,
        || with_cpu(&mut raw_cpu, || raw.round(rows)),
        || with_cpu(&mut ours_cpu, || ours.round(rows)),
    );
    let a_second = |time: Duration| f64::from(rows) / time.as_secs_f64();
    let percent = |one: Duration, other: Duration| 100.0 * one.as_secs_f64() / other.as_secs_f64();
    println!(
        "rows a second, {rows} a batch: raw rusqlite {:.0}, writer {:.0}: {:.0} % by the clock, {:.0} % by processor time",
        a_second(raw),
        a_second(ours),
        percent(raw, ours),
        percent(raw_cpu, ours_cpu),
    );
}

/// Adds the CPU time of all threads of this process.
fn with_cpu<T>(sum: &mut Duration, run: impl FnOnce() -> T) -> T {
    let before = cpu_time();
    let result = run();
    *sum += cpu_time().saturating_sub(before);
    result
}

/// The CPU time so far, where the system reports it.
fn cpu_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let times = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    });
    times.sum()
}

/// A thousand players at a checkpoint a second each, for twenty simulated seconds.
fn print_a_crowd() {
    let mut ours = Ours::sqlite();
    for _ in 0..20 {
        black_box(ours.round(1000));
    }
    let stats = ours.writer.stats();
    let (rows, last, longest) = (stats.mean_rows(), stats.last_flush_us, stats.max_flush_us);
    println!("1,000 players: {rows} rows a flush, the last took {last} µs, the longest {longest} µs");
}

/// The fastest tenth of both: other work on the machine can only slow down a round.
fn by_turns(
    rounds: usize,
    mut one: impl FnMut() -> Duration,
    mut other: impl FnMut() -> Duration,
) -> (Duration, Duration) {
    let (mut ones, mut others): (Vec<_>, Vec<_>) = (0..rounds).map(|_| (one(), other())).unzip();
    ones.sort();
    others.sort();
    (ones[rounds / 10], others[rounds / 10])
}
