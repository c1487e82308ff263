//! The received updates that may still be the base of another.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::Tick;
use sametick_wire::Malformed;

use crate::delta;
use crate::message::{Head, MASK_BITS};
use crate::models::{Family, Models};
use crate::snapshot::{Layout, Snapshot};

/// The most updates that are kept: more than a host keeps.
const MAX_KEPT: usize = 64;

struct Update {
    snapshot: Snapshot,
    models: Models,
}

/// The received updates.
pub(crate) struct Received {
    /// Oldest first.
    kept: VecDeque<Update>,
    spare: Vec<Update>,
    nothing: Snapshot,
    family: Family,
    mask: u64,
    /// The number of ticks between two updates.
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

    /// Removes all updates.
    pub fn forget(&mut self) {
        self.spare.extend(self.kept.drain(..));
        self.mask = 0;
    }

    /// The snapshot of the newest update.
    pub fn newest(&self) -> Option<&Snapshot> {
        self.kept.back().map(|update| &update.snapshot)
    }

    /// Bit n: the update n + 1 ticks before the newest has arrived, too.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Updates that never came, or could not be used.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Decodes an update. Returns whether it could be used: not if it is old, or its base is missing.
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

    /// Drops the updates older than this one's base: the host's bases never go back.
    fn prune(&mut self, head: &Head) {
        let oldest = head.base.unwrap_or(Tick::ZERO);
        while self.kept.len() > MAX_KEPT
            || self.kept.front().is_some_and(|update| update.snapshot.tick < oldest)
        {
            self.spare.extend(self.kept.pop_front());
        }
    }
}
