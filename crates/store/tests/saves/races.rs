//! Several uploaders of one save with every kind of fault: in virtual time, from seeds.

#![allow(clippy::disallowed_methods, reason = "the number of seeds comes from the environment")]

use std::collections::BTreeMap;

use sametick_sim::{Rng, Tick, Time};
use sametick_store::saves::{
    Commit, Condition, Content, Faults, MemoryStore, ObjectStore, Outcome, PutError, Save, SaveInfo,
    SaveSync, StoreError, Tag, Todo, Version, at_once,
};

use crate::kit::{bring, key, save};

/// Worlds in the test command; `SAMETICK_SEEDS` sets another number.
const SEEDS: u64 = 300;
const CLIENTS: u64 = 5;
const SAVES_EACH: u32 = 12;

/// An uploader: each knows a session that goes on.
struct Client {
    maker: u64,
    tick: u32,
    left: u32,
    now: Time,
    sync: Option<(SaveSync, Vec<u8>)>,
    outcomes: Vec<(SaveInfo, Outcome)>,
}

impl Client {
    fn new(maker: u64) -> Client {
        Client { maker, tick: 0, left: SAVES_EACH, now: Time::ZERO, sync: None, outcomes: vec![] }
    }

    fn begin(&mut self, rng: &mut Rng) {
        self.left -= 1;
        self.tick += 1 + rng.below(6) as u32;
        // Most agree on the state of a tick; now and then one is desynced.
        let state_of = if rng.chance(1, 10) { self.maker } else { 0 };
        let mut save = save(self.tick, state_of);
        save.info.saved_unix_ms += self.maker;
        let bytes = save.to_bytes().unwrap();
        self.sync = Some((SaveSync::new(save.info, rng.next_u64()), bytes));
    }

    /// Takes one step. Returns whether there are more.
    fn step(&mut self, store: &MemoryStore, rng: &mut Rng) -> bool {
        let Some((sync, bytes)) = &mut self.sync else {
            if self.left > 0 {
                self.begin(rng);
            }
            return self.sync.is_some();
        };
        match sync.todo(self.now) {
            Todo::WaitUntil(until) => self.now = until,
            Todo::Done(outcome) => {
                self.outcomes.push((sync.ours().clone(), outcome));
                self.sync = None;
            }
            _ => {
                let clock = self.now;
                assert!(at_once(sync.advance(store, &key().save(), bytes, &|| clock)));
            }
        }
        true
    }
}

#[test]
fn no_update_is_lost_and_no_older_save_replaces_a_newer_one() {
    let seeds = std::env::var("SAMETICK_SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let mut counts = BTreeMap::<&str, u64>::new();
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let store = MemoryStore::with_faults(seed, Faults::all(rng.below(250)));
        let mut clients: Vec<Client> = (1..=CLIENTS).map(Client::new).collect();
        let mut idle = 0;
        while idle < 100 {
            let at = rng.below(CLIENTS) as usize;
            idle = if clients[at].step(&store, &mut rng) { 0 } else { idle + 1 };
        }
        // Delayed requests may still arrive.
        store.set_faults(Faults::default());
        let outcomes: Vec<_> = clients.into_iter().flat_map(|client| client.outcomes).collect();
        assert_eq!(outcomes.len(), (CLIENTS as u32 * SAVES_EACH) as usize, "seed {seed}");
        check(seed, &store.history(), &outcomes);
        for (_, outcome) in &outcomes {
            *counts.entry(name_of(outcome)).or_default() += 1;
        }
    }
    println!("{seeds} worlds: {counts:?}");
    assert!(["written", "there", "newer", "different"].iter().all(|name| counts.contains_key(name)));
}

fn name_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Written => "written",
        Outcome::AlreadyThere => "there",
        Outcome::NewerIsThere(_) => "newer",
        Outcome::DifferentAtSameTick { .. } => "different",
        Outcome::Unreadable(_) => "unreadable",
    }
}

/// Compares the outcomes of the clients with the history.
pub fn check(seed: u64, history: &[Commit], outcomes: &[(SaveInfo, Outcome)]) {
    let saves: Vec<SaveInfo> =
        history.iter().map(|commit| Save::from_bytes(commit.bytes.as_ref().unwrap()).unwrap().info).collect();
    for pair in saves.windows(2) {
        assert!(pair[0].tick < pair[1].tick, "seed {seed}: {} after {}", pair[1].tick.0, pair[0].tick.0);
    }
    let last = saves.last().map_or(Tick::ZERO, |save| save.tick);
    let find = |tick: Tick| saves.binary_search_by_key(&tick, |save| save.tick).ok().map(|at| &saves[at]);
    for (ours, outcome) in outcomes {
        let there = find(ours.tick);
        match outcome {
            Outcome::Written => assert_eq!(there, Some(ours), "seed {seed}: an update is lost"),
            Outcome::AlreadyThere => assert_eq!(there.map(|save| save.hash), Some(ours.hash), "seed {seed}"),
            Outcome::NewerIsThere(tick) => {
                assert!(*tick > ours.tick && find(*tick).is_some(), "seed {seed}");
            }
            Outcome::DifferentAtSameTick { theirs } => {
                assert!(*theirs != ours.hash && there.map(|save| save.hash) == Some(*theirs), "seed {seed}");
            }
            Outcome::Unreadable(bad) => panic!("seed {seed}: {bad}"),
        }
        assert!(last >= ours.tick, "seed {seed}: the stored save is older than an uploaded one");
    }
}

#[test]
fn an_object_that_is_no_save_is_left_alone() {
    let store = MemoryStore::new();
    at_once(store.put(&key().save(), b"something else", Condition::New, None)).unwrap();
    let ours = save(5, 0);
    let outcome = bring(&ours, 1, &store);
    assert!(matches!(outcome, Outcome::Unreadable(_)), "{outcome:?}");
    assert_eq!(at_once(store.get(&key().save())).unwrap().unwrap().bytes, b"something else");
}

#[test]
fn a_save_without_a_tick_beside_it_is_read() {
    for (there, expected) in
        [(4, Outcome::Written), (5, Outcome::AlreadyThere), (6, Outcome::NewerIsThere(Tick(6)))]
    {
        let store = MemoryStore::new();
        let bytes = save(there, 0).to_bytes().unwrap();
        at_once(store.put(&key().save(), &bytes, Condition::New, None)).unwrap();
        let ours = save(5, 0);
        assert_eq!(bring(&ours, 1, &store), expected);
    }
}

#[test]
fn a_put_repeated_after_a_lost_answer_is_recognised_as_ours() {
    let ours = save(5, 0);
    let tag = |version: &str, tick| Ok(Some(Tag { version: Version(version.into()), tick }));
    let silence = || Err(PutError::MaybeDone(StoreError("-".into())));
    let mut sync = SaveSync::new(ours.info.clone(), 1);
    let now = Time::ZERO;
    sync.on_head(now, Ok(None));
    assert_eq!(sync.todo(now), Todo::Put(Condition::New));
    sync.on_put(now, silence());
    let Todo::WaitUntil(later) = sync.todo(now) else { panic!("nothing is known: it waits") };
    assert!(sync.trouble().is_some());
    assert_eq!(sync.todo(later), Todo::Head);
    sync.on_head(later, tag("1", Some(Tick(5))));
    assert_eq!(sync.todo(later), Todo::Peek);
    sync.on_peek(later, Ok(Some(Content { bytes: ours.to_bytes().unwrap(), version: Version("1".into()) })));
    assert_eq!(sync.todo(later), Todo::Done(Outcome::Written));
}
