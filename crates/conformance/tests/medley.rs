//! The conformance game itself is deterministic, and its results are pinned.

use sametick_conformance::{Medley, Setup, fill, identity, record, record_room, replay, room, run, session};
use sametick_sim::sync_test::sync_test;
use sametick_sim::{Rng, StateHash};

#[test]
fn the_game_passes_the_sync_test() {
    for seed in 0..4 {
        let mut players = Rng::new(!seed);
        let result =
            sync_test::<Medley>(&Setup { seed }, 150, 4, |tick, inputs| fill(tick, &mut players, inputs));
        match result {
            Ok(hash) => assert_eq!(hash, run(seed, 150).last),
            Err(desync) => panic!("seed {seed}: {desync}"),
        }
    }
}

#[test]
fn results_are_pinned() {
    // If this fails on one machine only, that machine computes differently. If it fails everywhere, sim or the
    // game has changed: old logs will not replay with the new build.
    assert_eq!(run(1, 600).chain, StateHash(0xc823_ca10_de7f_1351));
}

#[test]
fn every_seed_is_another_run() {
    let distinct: std::collections::BTreeSet<_> = (0..20).map(|seed| run(seed, 3).chain).collect();
    assert_eq!(distinct.len(), 20);
}

#[test]
fn the_identity_is_in_place() {
    let (build, schema) = identity();
    assert_ne!(build, sametick_sim::BUILD);
    assert_ne!(schema.as_bytes(), &[0; 32]);
}

#[test]
fn a_session_depends_only_on_its_seed() {
    assert_eq!(session(1, 300), session(1, 300));
    assert_ne!(session(1, 300), session(2, 300));
}

#[test]
fn a_room_depends_only_on_its_seed() {
    assert_eq!(room(1, 150), room(1, 150));
    assert_ne!(room(1, 150), room(2, 150));
}

#[test]
fn a_recorded_room_replays_to_the_hashes_of_its_host() {
    let log = record_room(3, 300);
    let done = replay(&log).unwrap();
    assert!(done.hashes.len() >= 300 && done.checks >= 9, "{} ticks, {}", done.hashes.len(), done.checks);
    assert_eq!(log, record_room(3, 300));
}

#[test]
fn a_recorded_session_replays_to_the_agreed_hashes() {
    let log = record(3, 300);
    let done = replay(&log).unwrap();
    assert!(done.hashes.len() >= 300 && done.checks >= 9, "{} ticks, {}", done.hashes.len(), done.checks);
    assert_eq!(log, record(3, 300));
    assert!(replay(&log[..10]).is_err());
}
