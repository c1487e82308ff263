//! A set of byte ranges, sorted and merged, for bytes that have arrived, are acknowledged, or have to be sent again.

use alloc::vec::Vec;
use core::ops::Range;

/// Disjoint, sorted, non-empty ranges that do not touch each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    sorted: Vec<Range<u64>>,
}

impl Ranges {
    /// Adds a range, merging it with its neighbours.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let from = self.sorted.partition_point(|r| r.end < range.start);
        let to = self.sorted.partition_point(|r| r.start <= range.end);
        let merged = match self.sorted.get(from..to) {
            Some([first, .., last]) => first.start.min(range.start)..last.end.max(range.end),
            Some([only]) => only.start.min(range.start)..only.end.max(range.end),
            _ => range,
        };
        // Not `splice`: it allocates when the gap is too small, also when the vector has room.
        match to - from {
            0 => self.sorted.insert(from, merged),
            _ => {
                self.sorted[from] = merged;
                self.sorted.drain(from + 1..to);
            }
        }
    }

    /// Removes a range.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let mut at = self.sorted.partition_point(|r| r.end <= range.start);
        while let Some(found) = self.sorted.get_mut(at).filter(|r| r.start < range.end) {
            match (found.start < range.start, found.end > range.end) {
                (true, true) => {
                    let tail = range.end..found.end;
                    found.end = range.start;
                    self.sorted.insert(at + 1, tail);
                    return;
                }
                (true, false) => {
                    found.end = range.start;
                    at += 1;
                }
                (false, true) => {
                    found.start = range.end;
                    return;
                }
                (false, false) => {
                    self.sorted.remove(at);
                }
            }
        }
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.sorted.first().cloned()
    }

    /// The part of `range` from its first byte that is not in the set up to the next one that is.
    pub fn first_gap(&self, range: Range<u64>) -> Option<Range<u64>> {
        let mut start = range.start;
        let at = self.sorted.partition_point(|r| r.end <= range.start);
        for held in &self.sorted[at..] {
            if held.start > start {
                return (start < range.end).then(|| start..held.start.min(range.end));
            }
            start = held.end;
        }
        (start < range.end).then_some(start..range.end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_numbers(ops in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..12), 0..60)) {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for (add, start, len) in ops {
                let range = start..start + len;
                if add {
                    ranges.insert(range.clone());
                    model.extend(range);
                } else {
                    ranges.remove(range.clone());
                    range.for_each(|n| { model.remove(&n); });
                }
                let flat: BTreeSet<u64> = ranges.sorted.iter().cloned().flatten().collect();
                prop_assert_eq!(&flat, &model);
                prop_assert!(ranges.sorted.windows(2).all(|pair| pair[0].end < pair[1].start));
                let gap = ranges.first_gap(20..40);
                let first = (20..40).find(|n| !model.contains(n));
                prop_assert_eq!(gap.clone().map(|g| g.start), first);
                if let Some(gap) = gap {
                    prop_assert!(gap.clone().all(|n| !model.contains(&n)));
                    prop_assert!(gap.end == 40 || model.contains(&gap.end));
                }
            }
        }
    }
}
