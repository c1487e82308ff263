//! Databases that are locked, full, failing or panicking: reported once, retried until they work, nothing lost.

use std::time::Duration;

use rusqlite::Connection;
use sametick_store::players::{Answer, PlayerId, PlayerWriterOptions, Purpose, StorageError};

use crate::kit::{Kit, Mishap, Strings, checkpoint, folder};

fn quick() -> PlayerWriterOptions {
    PlayerWriterOptions {
        first_retry: Duration::from_millis(1),
        max_retry: Duration::from_millis(4),
        ..PlayerWriterOptions::default()
    }
}

fn trouble(answer: Answer) -> String {
    match answer {
        Answer::Failing(words) => words,
        other => panic!("{other:?} is no trouble"),
    }
}

#[test]
fn a_database_that_another_program_has_locked_is_waited_for() {
    let (_folder, path) = folder();
    let mut kit = Kit::open(&path);
    kit.writer.save(checkpoint(1, 1));
    kit.flush();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    kit.writer.save(checkpoint(1, 2));
    kit.writer.save(checkpoint(2, 2));
    let ticket = kit.writer.flush();
    assert!(trouble(kit.next()).contains("in use by another program"));
    assert_eq!(kit.tick_of(PlayerId(1)), Some(1), "who comes in meanwhile is looked up");
    kit.writer.save(checkpoint(1, 3));
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(kit.next(), Answer::Recovered);
    assert_eq!(kit.next(), Answer::Saved(ticket));
    kit.flush();
    assert_eq!((kit.tick_of(PlayerId(1)), kit.tick_of(PlayerId(2))), (Some(3), Some(2)));
    assert!(kit.writer.stats().errors >= 1);
}

#[test]
fn a_database_that_is_locked_at_the_start_is_waited_for_too() {
    let (_folder, path) = folder();
    assert!(Kit::open(&path).writer.close(Duration::from_secs(60)));
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let mut kit = Kit::open(&path);
    kit.writer.save(checkpoint(1, 1));
    let ticket = kit.writer.flush();
    assert!(trouble(kit.next()).contains("in use by another program"));
    assert!(kit.ask(&crate::kit::about(PlayerId(1))).is_err(), "who comes in is told that it does not work");
    drop(other);
    assert_eq!(kit.next(), Answer::Recovered);
    assert_eq!(kit.next(), Answer::Saved(ticket));
    assert_eq!(kit.tick_of(PlayerId(1)), Some(1));
}

#[test]
fn a_full_disk_holds_nothing_up_and_loses_nothing() {
    const PLAYERS: u128 = 2_000;
    let (_folder, path) = folder();
    let strings = Strings::default();
    let mut kit = Kit::start(strings.sqlite(&path), quick());
    kit.writer.save(checkpoint(0, 1));
    kit.flush();
    strings.limit_pages(20);
    (0..PLAYERS).for_each(|player| kit.writer.save(checkpoint(player, 2)));
    let ticket = kit.writer.flush();
    assert!(trouble(kit.next()).contains("no room"));
    assert_eq!(kit.tick_of(PlayerId(0)), Some(1), "nothing of a batch that did not fit");
    (0..PLAYERS).for_each(|player| kit.writer.save(checkpoint(player, 3)));
    strings.limit_pages(1 << 20);
    assert_eq!(kit.next(), Answer::Recovered);
    assert_eq!(kit.next(), Answer::Saved(ticket));
    kit.flush();
    (0..PLAYERS).for_each(|player| assert_eq!(kit.tick_of(PlayerId(player)), Some(3)));
}

#[test]
fn a_storage_that_panics_is_restarted_with_its_batch() {
    let (_folder, path) = folder();
    let strings = Strings::default();
    let mut kit = Kit::start(strings.sqlite(&path), quick());
    kit.flush();
    (0..3).for_each(|_| strings.mishap(Mishap::Panic));
    (0..100).for_each(|player| kit.writer.save(checkpoint(player, 7)));
    let ticket = kit.writer.flush();
    assert!(trouble(kit.next()).contains("restarted: on purpose"));
    assert_eq!(kit.next(), Answer::Recovered);
    assert_eq!(kit.next(), Answer::Saved(ticket));
    (0..100).for_each(|player| assert_eq!(kit.tick_of(PlayerId(player)), Some(7)));
    let stats = kit.writer.stats();
    assert_eq!((stats.restarts, stats.errors), (3, 3));
}

#[test]
fn after_a_failed_sync_everything_is_closed_and_opened_anew() {
    let (_folder, path) = folder();
    let strings = Strings::default();
    let mut kit = Kit::start(strings.sqlite(&path), quick());
    kit.writer.save(checkpoint(1, 1));
    kit.flush();
    assert_eq!(kit.tick_of(PlayerId(1)), Some(1));
    assert_eq!((strings.opened(), strings.closed()), (vec![Purpose::Writing, Purpose::Reading], 0));
    strings.mishap(Mishap::Error(StorageError::Io("fsync".into())));
    kit.writer.save(checkpoint(1, 2));
    let ticket = kit.writer.flush();
    assert!(trouble(kit.next()).contains("the disk fails"));
    assert_eq!(kit.next(), Answer::Recovered);
    assert_eq!(kit.next(), Answer::Saved(ticket));
    assert_eq!(strings.closed(), 2, "the reader's too: only then is everything read from the disk again");
    assert_eq!(kit.tick_of(PlayerId(1)), Some(2));
    assert_eq!(strings.opened().len(), 4);
}

#[test]
fn a_busy_database_stays_open_and_gets_the_newest_writes() {
    let (_folder, path) = folder();
    let strings = Strings::default();
    let mut kit = Kit::start(strings.sqlite(&path), quick());
    kit.flush();
    (0..20).for_each(|_| strings.mishap(Mishap::Error(StorageError::Busy("locked".into()))));
    let ticket = kit.writer.flush();
    kit.await_saved(ticket);
    kit.writer.save(checkpoint(1, 1));
    let ticket = kit.writer.flush();
    for tick in 2..50 {
        kit.writer.save(checkpoint(1, tick));
        strings.await_begun(strings.begun().min(20).saturating_sub(1));
    }
    trouble(kit.next());
    assert_eq!(kit.next(), Answer::Recovered, "trouble is said once");
    kit.await_saved(ticket);
    kit.flush();
    assert_eq!(kit.tick_of(PlayerId(1)), Some(49));
    assert_eq!((kit.writer.stats().errors, strings.closed()), (20, 0));
}
