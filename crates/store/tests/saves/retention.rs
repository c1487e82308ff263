//! Retention of sessions in a store, and deletions that are interrupted.

use std::collections::BTreeSet;

use sametick_sim::{BuildId, Tick};
use sametick_store::saves::{
    ColdLog, Condition, Faults, MemoryStore, ObjectStore, Piece, Retention, SessionKey, at_once,
    delete_session, describe_save, list_sessions, retain,
};

use crate::kit::save;

const HOUR_MS: u64 = 60 * 60 * 1000;
const NOW_MS: u64 = 1_000 * HOUR_MS;

fn session(number: u64) -> SessionKey {
    SessionKey::of(BuildId::from_bytes([number as u8 % 2; 16]), "den", number)
}

/// A session that was last written `age_ms` ago: a save, and a log in three segments.
fn put_session(store: &MemoryStore, number: u64, age_ms: u64) {
    store.set_unix_ms(NOW_MS - age_ms);
    let (key, save) = (session(number), save(number as u32, 0).to_bytes().unwrap());
    at_once(store.put(&key.save(), &save, Condition::New, None)).unwrap();
    for at in 0..3 {
        let piece = Piece { at, anew: false, first: Tick(at as u32), ticks: 1, bytes: b"x" };
        at_once(ColdLog::new(store, &key).append(piece)).unwrap();
    }
}

fn numbers(store: &MemoryStore) -> Vec<u64> {
    let sessions = at_once(list_sessions(store)).unwrap();
    sessions.iter().map(|session| session.key.id().strip_prefix("den-").unwrap().parse().unwrap()).collect()
}

#[test]
fn the_newest_and_possibly_running_sessions_stay() {
    let store = MemoryStore::new();
    for number in 0..15 {
        put_session(&store, number, (20 - number) * HOUR_MS);
    }
    put_session(&store, 99, HOUR_MS / 2);
    assert_eq!(numbers(&store)[..3], [99, 14, 13], "the newest first");
    let first = &at_once(list_sessions(&store)).unwrap()[0];
    assert!(first.has_save && first.has_log && !first.is_left_over() && first.bytes > 100);
    let described = at_once(describe_save(&store, &first.key)).unwrap().unwrap().unwrap();
    assert_eq!(described.tick, Tick(99));

    let running = BTreeSet::from([session(2)]);
    let deleted = at_once(retain(&store, Retention::default(), &running, NOW_MS)).unwrap();
    assert_eq!(deleted, [5, 4, 3, 1, 0].map(session));
    assert_eq!(numbers(&store), [99, 14, 13, 12, 11, 10, 9, 8, 7, 6, 2]);
    // None, except sessions written within the hour, and running ones.
    at_once(retain(&store, Retention { sessions: 0 }, &running, NOW_MS)).unwrap();
    assert_eq!(numbers(&store), [99, 2]);
    at_once(delete_session(&store, &session(2))).unwrap();
    assert_eq!(numbers(&store), [99]);
    assert_eq!(at_once(describe_save(&store, &session(2))), Ok(None));
}

#[test]
fn an_interrupted_deletion_looks_incomplete_and_is_finished() {
    let mut cut_short = 0;
    for seed in 0..200 {
        let store = MemoryStore::with_faults(seed, Faults::default());
        put_session(&store, 1, 5 * HOUR_MS);
        put_session(&store, 2, 4 * HOUR_MS);
        store.set_faults(Faults { trouble: 300, ..Faults::default() });
        let keep_one = Retention { sessions: 1 };
        while at_once(retain(&store, keep_one, &BTreeSet::new(), NOW_MS)).is_err() {
            store.set_faults(Faults::default());
            cut_short += 1;
            let key = session(1);
            let manifest = at_once(store.get(&key.log())).unwrap();
            let save = at_once(store.get(&key.save())).unwrap();
            let log = at_once(ColdLog::new(&store, &key).read());
            assert!(
                manifest.is_none() || log.is_ok_and(|log| log.is_some()),
                "a manifest names what is there"
            );
            assert!(save.is_none() || manifest.is_some(), "the save goes first");
            store.set_faults(Faults { trouble: 300, ..Faults::default() });
        }
        store.set_faults(Faults::default());
        assert_eq!(numbers(&store), [2], "seed {seed}");
        assert_eq!(at_once(store.list(&session(1).prefix())).unwrap(), []);
    }
    assert!(cut_short > 100);
}
