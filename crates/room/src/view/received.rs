//! The updates that have arrived, as far as something may still be coded against them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_wire::Malformed;

use crate::delta;
use crate::message::{Head, MASK_BITS, MAX_BACK};
use crate::models::Models;
use crate::snapshot::{Layout, Snapshot};

/// Updates that are kept at most: as far as a head can speak of.
const MAX_KEPT: usize = MAX_BACK as usize + 1;

struct Update {
    number: u32,
    snapshot: Snapshot,
    models: Models,
}

/// The updates that have arrived.
pub(crate) struct Received {
    /// The oldest first.
    kept: VecDeque<Box<Update>>,
    spare: Vec<Box<Update>>,
    nothing: Snapshot,
    newest: u32,
    mask: u32,
    lost: u64,
}

impl Received {
    pub fn new(layout: &Layout) -> Received {
        Received {
            kept: VecDeque::new(),
            spare: Vec::new(),
            nothing: Snapshot::new(layout),
            newest: 0,
            mask: 0,
            lost: 0,
        }
    }

    /// Numbers begin anew.
    pub fn forget(&mut self) {
        self.spare.extend(self.kept.drain(..));
        (self.newest, self.mask) = (0, 0);
    }

    /// What the newest update says.
    pub fn newest(&self) -> Option<&Snapshot> {
        self.kept.back().map(|update| &update.snapshot)
    }

    /// Its number.
    pub fn newest_number(&self) -> u32 {
        self.newest
    }

    /// Bit n: the update n + 1 before the newest has arrived, too.
    pub fn mask(&self) -> u32 {
        self.mask
    }

    /// Updates that never came, or were of no use.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes an update. Returns whether it was understood: not if it is old, or what it is coded against is not there.
    pub fn take(&mut self, layout: &Layout, head: &Head, delta: &[u8]) -> Result<bool, Malformed> {
        if head.number <= self.newest && !self.kept.is_empty() {
            return Ok(false);
        }
        let base = self.kept.iter().find(|update| Some(update.number) == head.base);
        if base.is_none() && head.base.is_some() {
            self.lost += 1;
            return Ok(false);
        }
        let mut fresh = self.spare.pop().unwrap_or_else(|| {
            Box::new(Update { number: 0, snapshot: self.nothing.clone(), models: Models::new(layout) })
        });
        match base {
            Some(base) => fresh.models.copy_from(&base.models),
            None => fresh.models.reset(),
        }
        let known = base.map_or(&self.nothing, |base| &base.snapshot);
        delta::decode(&mut fresh.models, known, head.tick, delta, &mut fresh.snapshot)?;
        fresh.number = head.number;
        self.note(head.number);
        self.kept.push_back(fresh);
        self.prune(head);
        Ok(true)
    }

    fn note(&mut self, number: u32) {
        let ahead = number - self.newest;
        if self.newest > 0 {
            self.lost += u64::from(ahead - 1);
            let moved = self.mask.checked_shl(ahead).unwrap_or(0);
            self.mask = if ahead <= MASK_BITS { moved | 1 << (ahead - 1) } else { 0 };
        }
        self.newest = number;
    }

    /// Nothing is coded against what is older than what this one spoke of: the host never goes back.
    fn prune(&mut self, head: &Head) {
        let oldest = head.base.unwrap_or(0);
        while self.kept.len() > MAX_KEPT || self.kept.front().is_some_and(|update| update.number < oldest) {
            self.spare.extend(self.kept.pop_front());
        }
    }
}
