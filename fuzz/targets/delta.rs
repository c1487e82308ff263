//! Any bytes as deltas, one built on the other, are refused or make a snapshot that can be coded again.
//!
//! The input: deltas as parts, each after a byte that says how many ticks later it was made.
#![cfg_attr(fuzzing, no_main)]

use sametick_fuzz::Craft;
use sametick_room::delta::{self, MAX_ENTITIES};
use sametick_room::models::Models;
use sametick_room::snapshot::{Layout, Snapshot};
use sametick_sim::replica::Entity;

/// The most entities of a decoder, with their motion, in a few snapshots and models.
const ALLOWANCE: usize = 64 << 20;

sametick_fuzz::target!(allowing ALLOWANCE, |bytes: &[u8]| {
    let layout = Layout::new(&[Craft::KIND]);
    let (mut base, mut models) = (Snapshot::new(&layout), Models::new(&layout));
    let mut rest = bytes;
    while let [ticks, after @ ..] = rest {
        let (delta, next) = sametick_fuzz::part(after);
        rest = next;
        let tick = base.tick + u32::from(*ticks);
        let (mut target, mut learnt) = (Snapshot::new(&layout), models.clone());
        if delta::decode(&mut learnt, &base, tick, delta, &mut target).is_err() {
            continue;
        }
        assert!(target.tables[0].marks().len() <= MAX_ENTITIES);
        let (mut again, mut read) = (vec![], Snapshot::new(&layout));
        delta::encode(&mut models.clone(), &base, &target, &mut again);
        delta::decode(&mut models, &base, tick, &again, &mut read).expect("it was encoded a moment ago");
        assert_eq!(read, target);
        base = target;
    }
});
