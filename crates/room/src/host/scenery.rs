//! The current scene, and since when each entity is unchanged: computed once per tick for all views.

use alloc::vec::Vec;
use core::mem;

use sametick_sim::Tick;
use sametick_sim::replica::{Hosted, Scene, Table};

/// The scene of the last tick that was read.
pub(crate) struct Scenery {
    now: Scene,
    before: Scene,
    /// For each kind, since when each of its entities has had its codes.
    since: Vec<Vec<Tick>>,
    since_before: Vec<Vec<Tick>>,
}

impl Scenery {
    pub fn of<G: Hosted>() -> Scenery {
        let ticks = || G::KINDS.iter().map(|_| Vec::new()).collect();
        Scenery {
            now: Scene::new(G::KINDS),
            before: Scene::new(G::KINDS),
            since: ticks(),
            since_before: ticks(),
        }
    }

    /// Reads the scene of a state.
    pub fn look<G: Hosted>(&mut self, tick: Tick, state: &G) {
        mem::swap(&mut self.now, &mut self.before);
        mem::swap(&mut self.since, &mut self.since_before);
        self.now.clear();
        state.show(&mut self.now);
        let tables = self.now.tables().iter().zip(self.before.tables());
        for ((now, before), (since, was)) in tables.zip(self.since.iter_mut().zip(&self.since_before)) {
            compare(tick, now, before, was, since);
        }
    }

    /// The entities of a kind.
    pub fn table(&self, kind: usize) -> &Table {
        &self.now.tables()[kind]
    }

    /// Since when the entity of a kind at an index is unchanged.
    pub fn since(&self, kind: usize, index: usize) -> Tick {
        self.since[kind][index]
    }
}

fn compare(tick: Tick, now: &Table, before: &Table, was: &[Tick], since: &mut Vec<Tick>) {
    since.clear();
    let mut at = 0;
    for (index, row) in now.rows().iter().enumerate() {
        while before.rows().get(at).is_some_and(|old| old.id < row.id) {
            at += 1;
        }
        let same = before.rows().get(at).is_some_and(|old| {
            old.id == row.id && old.owner == row.owner && before.slots_at(at) == now.slots_at(index)
        });
        since.push(if same { was[at] } else { tick });
    }
}
