//! The updates that have arrived, as far as something may still be coded against them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::Tick;
use sametick_wire::Malformed;

use crate::delta;
use crate::message::{Head, MASK_BITS};
use crate::models::{Family, Models};
use crate::snapshot::{Layout, Snapshot};

/// Updates that are kept at most: more than a host keeps.
const MAX_KEPT: usize = 64;

struct Update {
    snapshot: Snapshot,
    models: Models,
}

/// The updates that have arrived.
pub(crate) struct Received {
    /// The oldest first.
    kept: VecDeque<Update>,
    spare: Vec<Update>,
    nothing: Snapshot,
    family: Family,
    mask: u64,
    /// How many ticks lie between two updates.
    every: u32,
    lost: u64,
}

impl Received {
    pub fn new(layout: &Layout, every: u32) -> Received {
        Received {
            kept: VecDeque::new(),
            spare: Vec::new(),
            nothing: Snapshot::new(layout),
            family: Family::new(layout),
            mask: 0,
            every,
            lost: 0,
        }
    }

    /// Begins anew.
    pub fn forget(&mut self) {
        self.spare.extend(self.kept.drain(..));
        self.mask = 0;
    }

    /// What the newest update says.
    pub fn newest(&self) -> Option<&Snapshot> {
        self.kept.back().map(|update| &update.snapshot)
    }

    /// Bit n: an update of n + 1 ticks before the newest has arrived, too.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Updates that never came, or were of no use.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes an update. Returns whether it was understood: not if it is old, or what it is coded against is not there.
    pub fn take(&mut self, head: &Head, delta: &[u8]) -> Result<bool, Malformed> {
        if self.newest().is_some_and(|newest| head.tick <= newest.tick) {
            return Ok(false);
        }
        let base = self.kept.iter().find(|update| Some(update.snapshot.tick) == head.base);
        if base.is_none() && head.base.is_some() {
            self.lost += 1;
            return Ok(false);
        }
        let mut fresh = self
            .spare
            .pop()
            .unwrap_or_else(|| Update { snapshot: self.nothing.clone(), models: Models::of(&self.family) });
        match base {
            Some(base) => fresh.models.copy_from(&base.models),
            None => fresh.models.reset(),
        }
        let known = base.map_or(&self.nothing, |base| &base.snapshot);
        delta::decode(&mut fresh.models, known, head.tick, delta, &mut fresh.snapshot)?;
        self.note(head.tick);
        self.kept.push_back(fresh);
        self.prune(head);
        Ok(true)
    }

    fn note(&mut self, tick: Tick) {
        let Some(newest) = self.newest() else { return };
        let ahead = tick.ticks_since(newest.tick);
        self.lost += u64::from((ahead / self.every).saturating_sub(1));
        let moved = self.mask.checked_shl(ahead).unwrap_or(0);
        self.mask = if ahead <= MASK_BITS { moved | 1 << (ahead - 1) } else { 0 };
    }

    /// Nothing is coded against what is older than what this one spoke of: the host never goes back.
    fn prune(&mut self, head: &Head) {
        let oldest = head.base.unwrap_or(Tick::ZERO);
        while self.kept.len() > MAX_KEPT
            || self.kept.front().is_some_and(|update| update.snapshot.tick < oldest)
        {
            self.spare.extend(self.kept.pop_front());
        }
    }
}
