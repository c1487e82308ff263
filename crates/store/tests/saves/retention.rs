//! Which sessions stay on a shelf, and what is left when deleting is cut short.

use std::collections::BTreeSet;

use sametick_sim::{BuildId, Tick};
use sametick_store::saves::{
    ColdLog, Condition, Faults, MemoryShelf, Piece, Retention, SessionKey, Shelf, at_once, delete_session,
    describe_save, list_sessions, retain,
};

use crate::kit::save;

const HOUR_MS: u64 = 60 * 60 * 1000;
const NOW_MS: u64 = 1_000 * HOUR_MS;

fn session(number: u64) -> SessionKey {
    SessionKey::of(BuildId::from_bytes([number as u8 % 2; 16]), "den", number)
}

/// A session that was written to `age_ms` ago: a save, and a log in three segments.
fn put_session(shelf: &MemoryShelf, number: u64, age_ms: u64) {
    shelf.set_unix_ms(NOW_MS - age_ms);
    let (key, save) = (session(number), save(number as u32, 0).to_bytes().unwrap());
    at_once(shelf.put(&key.save(), &save, Condition::New, None)).unwrap();
    for at in 0..3 {
        let piece = Piece { at, anew: false, first: Tick(at as u32), ticks: 1, bytes: b"x" };
        at_once(ColdLog::new(shelf, &key).append(piece)).unwrap();
    }
}

fn numbers(shelf: &MemoryShelf) -> Vec<u64> {
    let sessions = at_once(list_sessions(shelf)).unwrap();
    sessions.iter().map(|session| session.key.id().strip_prefix("den-").unwrap().parse().unwrap()).collect()
}

#[test]
fn the_newest_stay_and_those_that_may_run() {
    let shelf = MemoryShelf::new();
    for number in 0..15 {
        put_session(&shelf, number, (20 - number) * HOUR_MS);
    }
    put_session(&shelf, 99, HOUR_MS / 2);
    assert_eq!(numbers(&shelf)[..3], [99, 14, 13], "the newest first");
    let first = &at_once(list_sessions(&shelf)).unwrap()[0];
    assert!(first.has_save && first.has_log && !first.is_left_over() && first.bytes > 100);
    let described = at_once(describe_save(&shelf, &first.key)).unwrap().unwrap().unwrap();
    assert_eq!(described.tick, Tick(99));

    let running = BTreeSet::from([session(2)]);
    let deleted = at_once(retain(&shelf, Retention::default(), &running, NOW_MS)).unwrap();
    assert_eq!(deleted, [5, 4, 3, 1, 0].map(session));
    assert_eq!(numbers(&shelf), [99, 14, 13, 12, 11, 10, 9, 8, 7, 6, 2]);
    // None, except what was written to within the hour, and what runs.
    at_once(retain(&shelf, Retention { sessions: 0 }, &running, NOW_MS)).unwrap();
    assert_eq!(numbers(&shelf), [99, 2]);
    at_once(delete_session(&shelf, &session(2))).unwrap();
    assert_eq!(numbers(&shelf), [99]);
    assert_eq!(at_once(describe_save(&shelf, &session(2))), Ok(None));
}

#[test]
fn deleting_that_is_cut_short_leaves_nothing_that_looks_whole_and_is_finished_later() {
    let mut cut_short = 0;
    for seed in 0..200 {
        let shelf = MemoryShelf::with_faults(seed, Faults::default());
        put_session(&shelf, 1, 5 * HOUR_MS);
        put_session(&shelf, 2, 4 * HOUR_MS);
        shelf.set_faults(Faults { trouble: 300, ..Faults::default() });
        let keep_one = Retention { sessions: 1 };
        while at_once(retain(&shelf, keep_one, &BTreeSet::new(), NOW_MS)).is_err() {
            shelf.set_faults(Faults::default());
            cut_short += 1;
            let key = session(1);
            let manifest = at_once(shelf.get(&key.log())).unwrap();
            let save = at_once(shelf.get(&key.save())).unwrap();
            let log = at_once(ColdLog::new(&shelf, &key).read());
            assert!(
                manifest.is_none() || log.is_ok_and(|log| log.is_some()),
                "a manifest names what is there"
            );
            assert!(save.is_none() || manifest.is_some(), "the save goes first");
            shelf.set_faults(Faults { trouble: 300, ..Faults::default() });
        }
        shelf.set_faults(Faults::default());
        assert_eq!(numbers(&shelf), [2], "seed {seed}");
        assert_eq!(at_once(shelf.list(&session(1).prefix())).unwrap(), []);
    }
    assert!(cut_short > 100);
}
