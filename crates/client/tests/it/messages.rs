//! The message log of a client (L7): all messages over all its links, without secrets, within its limit.

use sametick_client::Side;
use sametick_lockstep::peer::Peer;
use serde_json::Value;

use crate::hosted::Room;
use crate::relayed::Relayed;
use crate::world::{Server, World};

/// The Unix time at the start of the client's clock.
const UNIX_US: u64 = 1_700_000_000_000_000;

/// The recorded lines as JSON: the number of dropped messages, then every message.
fn lines<S: Server>(world: &World<S>, number: usize) -> (Vec<Value>, Vec<Value>) {
    let (mut dropped, mut messages) = (vec![], vec![]);
    world.players[number].client.message_lines(
        |at| UNIX_US + at.as_micros(),
        |line| dropped.push(serde_json::to_value(line).unwrap()),
        |line| messages.push(serde_json::to_value(line).unwrap()),
    );
    (dropped, messages)
}

/// Two playing clients, the first of them with a log from the start.
fn world_with_log<S: Server>(max_bytes: usize) -> World<S> {
    let mut world = World::new("rtt=100ms,jitter=20ms,loss=5%", 7);
    world.add();
    world.players[0].client.keep_messages(max_bytes);
    world.add();
    world.run_until(5_000, "both play", |world| world.plays(0) && world.plays(1));
    world.run_millis(2_000);
    world
}

fn count(messages: &[Value], direction: &str, kind: &str) -> usize {
    messages.iter().filter(|line| line["direction"] == direction && line["kind"] == kind).count()
}

#[track_caller]
fn assert_no_secrets(messages: &[Value], secret_kinds: &[&str]) {
    for line in messages {
        let is_secret = secret_kinds.iter().any(|kind| line["kind"] == *kind);
        let payload = line["payload"].as_str().unwrap();
        let bytes = line["bytes"].as_u64().unwrap() as usize;
        assert_eq!(payload.len(), if is_secret { 0 } else { bytes * 2 }, "{line}");
    }
}

#[test]
fn a_log_of_lockstep_has_both_directions_over_all_links() {
    let mut world = world_with_log::<Relayed>(1 << 20);
    world.swallow(0);
    world.run_until(6_000, "another link", |world| world.losses(0) == 1 && world.plays(0));
    world.run_millis(1_000);
    let (dropped, messages) = lines(&world, 0);
    assert!(dropped.is_empty(), "{dropped:?}");
    for (direction, kind, least) in [
        ("send", "join", 2),
        ("recv", "welcome", 2),
        ("send", "inputs", 100),
        ("recv", "ticks", 100),
        ("send", "check", 4),
        ("send", "diagnostics", 1),
    ] {
        let count = count(&messages, direction, kind);
        assert!(count >= least, "{direction} {kind}: {count}");
    }
    assert_no_secrets(&messages, &["join", "welcome"]);
    // In order, with the client's times, and with its seat once it is known.
    let time = |line: &Value| line["unix_us"].as_u64().unwrap();
    assert!(messages.is_sorted_by_key(time));
    assert!(messages.iter().all(|line| line["session"] == "den"));
    assert_eq!(messages[0]["seat"], Value::Null);
    let seat = world.players[0].client.side().and_then(Peer::seat).unwrap().0;
    let last = messages.last().unwrap();
    assert_eq!(last["seat"], seat);
    let second_us = 1_000_000;
    assert!((time(last) - UNIX_US).abs_diff(world.now.as_micros()) < second_us, "{last}");
    // An input is for a tick ahead of the newest confirmed one before it.
    let ticks = messages.iter().filter(|line| line["kind"] == "inputs");
    let ticks: Vec<u64> = ticks.map(|line| line["tick"].as_u64().unwrap()).collect();
    assert!(ticks.last() > ticks.first() && *ticks.last().unwrap() > 200, "{ticks:?}");
}

#[test]
fn a_log_of_a_room_has_updates_reports_and_no_token() {
    let world = world_with_log::<Room>(4 << 20);
    let (_, messages) = lines(&world, 0);
    for (direction, kind, least) in [
        ("send", "join", 1),
        ("recv", "welcome", 1),
        ("recv", "roster", 1),
        ("send", "inputs", 40),
        ("send", "report", 10),
        ("recv", "update", 10),
    ] {
        let count = count(&messages, direction, kind);
        assert!(count >= least, "{direction} {kind}: {count}");
    }
    assert_eq!(count(&messages, "recv", "unreadable") + count(&messages, "send", "unknown"), 0);
    assert_no_secrets(&messages, &["join", "welcome", "token"]);
    let updates = messages.iter().filter(|line| line["kind"] == "update");
    assert!(updates.map(|line| line["tick"].as_u64().unwrap()).is_sorted_by(|one, two| one != two));
}

#[test]
fn a_log_keeps_the_newest_and_counts_the_dropped() {
    let mut world = world_with_log::<Relayed>(4_000);
    let (dropped, messages) = lines(&world, 0);
    assert_eq!(dropped[0]["kind"], "dropped");
    assert!(dropped[0]["messages"].as_u64().unwrap() > 100, "{dropped:?}");
    assert!((20..120).contains(&messages.len()), "{}", messages.len());
    let reached = u64::from(world.players[0].client.side().unwrap().reached().0);
    let newest = messages.iter().rfind(|line| line["kind"] == "ticks").unwrap();
    assert!(newest["tick"].as_u64().unwrap().abs_diff(reached) < 10, "{newest}, {reached}");
    world.players[0].client.forget_messages();
    assert_eq!(lines(&world, 0), (vec![], vec![]));
}
