//! The queue: newest by key, nothing lost when it is full, and tickets that are answered exactly when due.

use std::path::Path;
use std::time::Duration;

use sametick_store::players::{Answer, PlayerId, PlayerWriterOptions, Ticket};

use crate::kit::{Kit, Strings, checkpoint, folder};

/// A queue that is full at once, and a database that is written only on a flush.
fn small() -> PlayerWriterOptions {
    PlayerWriterOptions { queue: 8, usual: Duration::from_secs(3600), ..PlayerWriterOptions::default() }
}

/// A writer whose database has begun a write and blocks until it is released; the ticket is that of the write.
fn held_up(path: &Path) -> (Kit, Strings, Ticket) {
    let strings = Strings::default();
    let mut kit = Kit::start(strings.sqlite(path), small());
    kit.flush();
    strings.stop();
    kit.writer.save(checkpoint(0, 1));
    let ticket = kit.writer.flush();
    strings.await_begun(0);
    (kit, strings, ticket)
}

#[test]
fn the_newest_state_of_each_player_is_on_disk_after_a_flush() {
    let (_folder, path) = folder();
    let mut kit = Kit::open(&path);
    for tick in 1..=100 {
        (0..10).for_each(|player| kit.writer.save(checkpoint(player, tick)));
    }
    kit.flush();
    (0..10).for_each(|player| assert_eq!(kit.tick_of(PlayerId(player)), Some(100)));
    kit.flush();
    let stats = kit.writer.stats();
    assert_eq!((stats.queue_depth, stats.overflows, stats.errors), (0, 0, 0));
    assert!(stats.rows >= 10 && stats.flushes >= 1 && stats.coalesced > 0, "{stats:?}");
    assert!(kit.writer.close(Duration::from_secs(60)));
}

#[test]
fn a_much_faster_producer_loses_no_newest_state() {
    const PLAYERS: u128 = 100;
    let (_folder, path) = folder();
    let (mut kit, strings, first) = held_up(&path);
    // The database is blocked, and none of this waits for it.
    for tick in 2..=1000 {
        (0..PLAYERS).for_each(|player| kit.writer.save(checkpoint(player, tick)));
        kit.writer.tend();
    }
    let stats = kit.writer.stats();
    assert!(stats.overflows > 99_000 && stats.coalesced > 98_000, "{stats:?}");
    assert!(stats.overflowing as u128 <= PLAYERS, "memory grows with players: {stats:?}");
    assert!(stats.warning().is_some_and(|words| words.contains("keep up")));
    let tickets = [first, kit.writer.flush(), kit.writer.flush(), kit.writer.flush()];
    strings.go();
    for ticket in tickets {
        assert_eq!(kit.next(), Answer::Saved(ticket), "each ticket is answered, once and in order");
    }
    (0..PLAYERS).for_each(|player| assert_eq!(kit.tick_of(PlayerId(player)), Some(1000)));
    kit.flush();
    assert_eq!(kit.writer.stats().warning(), None);
}

#[test]
fn a_ticket_amid_an_overflow_is_not_answered_early() {
    let (_folder, path) = folder();
    let (mut kit, strings, first) = held_up(&path);
    (1..100).for_each(|player| kit.writer.save(checkpoint(player, 1)));
    let middle = kit.writer.flush();
    (0..200).for_each(|player| kit.writer.save(checkpoint(player, 2)));
    strings.go();
    kit.await_saved(first);
    kit.await_saved(middle);
    (1..100).for_each(|player| assert!(kit.tick_of(PlayerId(player)).is_some(), "player {player}"));
    kit.flush();
    (0..200).for_each(|player| assert_eq!(kit.tick_of(PlayerId(player)), Some(2)));
}

#[test]
fn writes_without_a_flush_are_written_after_the_usual_time() {
    let (_folder, path) = folder();
    let strings = Strings::default();
    let options = PlayerWriterOptions { usual: Duration::from_millis(1), ..PlayerWriterOptions::default() };
    let mut kit = Kit::start(strings.sqlite(&path), options);
    kit.writer.save(checkpoint(1, 1));
    strings.await_begun(0);
}

#[test]
fn a_queue_that_is_half_full_is_written_sooner() {
    let (_folder, path) = folder();
    let strings = Strings::default();
    let options = PlayerWriterOptions { queue: 64, hurried: Duration::ZERO, ..small() };
    let mut kit = Kit::start(strings.sqlite(&path), options);
    (0..60).for_each(|player| kit.writer.save(checkpoint(player, 1)));
    strings.await_begun(0);
}

#[test]
fn closing_writes_everything_and_gives_up_when_it_cannot() {
    let (_folder, path) = folder();
    let strings = Strings::default();
    let mut kit = Kit::start(strings.sqlite(&path), small());
    (0..100).for_each(|player| kit.writer.save(checkpoint(player, 9)));
    assert!(kit.writer.close(Duration::from_secs(60)));
    let mut kit = Kit::start(strings.sqlite(&path), small());
    (0..100).for_each(|player| assert_eq!(kit.tick_of(PlayerId(player)), Some(9)));
    strings.stop();
    kit.writer.save(checkpoint(0, 10));
    assert!(!kit.writer.close(Duration::from_millis(20)), "it is not on disk, and that is said");
    strings.go();
}
