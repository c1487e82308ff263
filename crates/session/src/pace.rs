//! How often somebody may do something: so many at once after a pause, then one every so often. A number for each, and no more
//! of them than is said.

use alloc::collections::BTreeMap;

use sametick_sim::Time;

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// One every so often.
    pub every_us: u64,
    /// So many at once after a pause.
    pub burst: u64,
}

/// How far somebody has used up a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// When it is as if nothing had been done.
    rested_at: Time,
}

impl Pace {
    /// Takes one if it is there.
    pub fn try_take(&mut self, now: Time, limit: Limit) -> bool {
        let after = self.rested_at.max(now).plus_micros(limit.every_us);
        let is_there = after.micros_since(now) <= limit.every_us.saturating_mul(limit.burst);
        if is_there {
            self.rested_at = after;
        }
        is_there
    }

    fn is_rested(self, now: Time) -> bool {
        self.rested_at <= now
    }
}

/// A pace for each of many; whoever finds no place shares one with all who find none.
#[derive(Clone, Debug)]
pub struct Paces<K> {
    limit: Limit,
    most: usize,
    table: BTreeMap<K, Pace>,
    others: Pace,
}

impl<K: Ord> Paces<K> {
    /// This limit for each, and so many with a pace of their own.
    pub fn new(limit: Limit, most: usize) -> Paces<K> {
        Paces { limit, most, table: BTreeMap::new(), others: Pace::default() }
    }

    /// Takes one for somebody if it is there.
    pub fn try_take(&mut self, now: Time, who: K) -> bool {
        if let Some(pace) = self.table.get_mut(&who) {
            return pace.try_take(now, self.limit);
        }
        if self.table.len() >= self.most {
            self.table.retain(|_, pace| !pace.is_rested(now));
        }
        if self.table.len() >= self.most {
            return self.others.try_take(now, self.limit);
        }
        self.table.entry(who).or_default().try_take(now, self.limit)
    }

    /// How many have a pace of their own.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether nobody has.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { every_us: 10, burst: 3 };

    #[test]
    fn so_many_at_once_and_then_one_every_so_often() {
        let mut pace = Pace::default();
        let mut try_at = |us| pace.try_take(Time::from_micros(us), LIMIT);
        assert!(try_at(100) && try_at(100) && try_at(100) && !try_at(100) && !try_at(109));
        assert!(try_at(110) && !try_at(110));
        assert!(
            try_at(1_000) && try_at(1_000) && try_at(1_000) && !try_at(1_000),
            "a long pause counts once"
        );
    }

    #[test]
    fn memory_is_bounded_and_nobodys_haste_costs_who_came_before() {
        let mut paces = Paces::new(LIMIT, 4);
        let at = Time::from_micros;
        assert!(paces.try_take(at(0), 0));
        for who in 1..1_000 {
            paces.try_take(at(1), who);
        }
        assert!(paces.len() <= 4);
        assert!(paces.try_take(at(1), 0), "has a pace of its own");
        assert!(!paces.try_take(at(1), 5_000), "the others have used theirs up together");
        assert!(paces.try_take(at(10_000), 5_000), "whoever rests is forgotten");
    }
}
