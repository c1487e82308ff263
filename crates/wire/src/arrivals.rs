//! Tracks which packets have arrived: drops duplicates, counts gaps, and builds acks.

use sametick_sim::Time;

use crate::packet::{ACK_SPAN, Ack, DELAY_UNIT_US, Newest, SHORT_SPAN, widen};

/// How far behind the newest packet one may still arrive. Older ones are dropped, since we can no longer tell
/// whether they are repeats: this is also the replay window of raw UDP.
pub const ARRIVAL_WINDOW: u64 = 1_024;

/// The size of the recent range before the newest number. Three later packets make one suspect, and some of them may be
/// lost too.
const RECENT: u64 = 8;

const WORDS: usize = (ARRIVAL_WINDOW / 64) as usize;

/// The result of noting a packet's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The first time we see it.
    New {
        /// The full number.
        number: u64,
        /// Whether it is the newest so far.
        newest: bool,
    },
    /// It is a duplicate, or too old to tell.
    Repeat,
}

/// The numbers that have arrived on one link.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// One past the newest number.
    next: u64,
    /// Bit `n % ARRIVAL_WINDOW` set: number `n` of the last window has arrived.
    seen: [u64; WORDS],
    newest_at: Time,
    /// A number of which the other side knows that it was the newest to have arrived at some time.
    known: Option<u64>,
    received: u64,
    repeated: u64,
}

impl Arrivals {
    /// Notes a packet whose number ends in `low`.
    pub fn note(&mut self, now: Time, low: u16) -> Arrival {
        let number = widen(low, self.next);
        if number + ARRIVAL_WINDOW < self.next || number < self.next && self.has(number) {
            self.repeated += 1;
            return Arrival::Repeat;
        }
        let newest = number >= self.next;
        if newest {
            self.advance(number + 1);
            self.newest_at = now;
        }
        self.seen[word(number)] |= bit(number);
        self.received += 1;
        Arrival::New { number, newest }
    }

    fn has(&self, number: u64) -> bool {
        self.seen[word(number)] & bit(number) != 0
    }

    fn advance(&mut self, next: u64) {
        if next - self.next >= ARRIVAL_WINDOW {
            self.seen = [0; WORDS];
        } else {
            (self.next..next).for_each(|number| self.seen[word(number)] &= !bit(number));
        }
        self.next = next;
    }

    /// The newest number that has arrived.
    pub fn newest(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// Whether any of the last few numbers before the newest is missing: the other side may be about to send its
    /// contents again.
    pub fn has_recent_gap(&self) -> bool {
        let newest = self.newest().unwrap_or(0);
        !self.seen_before(newest) & lowest_bits(newest.min(RECENT)) != 0
    }

    /// The other side has received an ack whose newest number ends in `low`.
    pub fn on_known(&mut self, low: u16) {
        let known =
            self.newest().map(|newest| newest - u64::from((newest as u16).wrapping_sub(low)).min(newest));
        self.known = self.known.max(known);
    }

    /// The ack for the other side, if anything has arrived; with the delay only if it is wanted, or the ack long.
    pub fn ack(&self, now: Time, with_delay: bool) -> Option<Ack> {
        let newest = self.newest()?;
        let short = self.known.is_some_and(|known| newest - known < SHORT_SPAN);
        let delay = now.micros_since(self.newest_at).div_ceil(DELAY_UNIT_US);
        Some(Ack {
            newest: if short { Newest::Short(newest as u8 & 31) } else { Newest::Long(newest as u16) },
            delay: (with_delay || !short).then_some(delay),
            missing: !self.seen_before(newest) & lowest_bits(newest),
        })
    }

    /// Bit `i` set: number `end - 1 - i` has arrived. Bits of numbers below zero mean nothing.
    fn seen_before(&self, end: u64) -> u64 {
        let first = end.wrapping_sub(ACK_SPAN);
        let (low, high) = (self.seen[word(first)], self.seen[word(end)]);
        let seen = match first % 64 {
            0 => low,
            shift => low >> shift | high << (64 - shift),
        };
        seen.reverse_bits()
    }

    /// Packets that arrived, duplicates not counted.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Duplicates, and packets that were too old to tell.
    pub const fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Packets that the other side has sent, judged by the newest number.
    pub const fn expected(&self) -> u64 {
        self.next
    }
}

const fn word(number: u64) -> usize {
    (number % ARRIVAL_WINDOW / 64) as usize
}

/// All ones in the lowest `n` bits; in all of them if there are fewer.
const fn lowest_bits(n: u64) -> u64 {
    if n < ACK_SPAN { (1 << n) - 1 } else { u64::MAX }
}

const fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn an_ack_names_what_is_missing() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.ack(Time::ZERO, true), None);
        for low in [0, 1, 3, 6] {
            arrivals.note(Time::from_micros(100), low);
        }
        let then = Time::from_micros(100 + 129);
        let long = Ack { newest: Newest::Long(6), delay: Some(3), missing: 0b1011 };
        assert_eq!(arrivals.ack(then, false), Some(long));
        arrivals.on_known(3);
        assert!(arrivals.has_recent_gap());
        let short = Ack { newest: Newest::Short(6), delay: None, missing: 0b1011 };
        assert_eq!(arrivals.ack(then, false), Some(short));
        assert_eq!(arrivals.ack(then, true), Some(Ack { delay: Some(3), ..short }));
        assert_eq!((arrivals.received(), arrivals.expected()), (4, 7));
    }

    #[test]
    fn a_gap_is_recent_for_eight_packets() {
        let mut arrivals = Arrivals::default();
        assert!(!arrivals.has_recent_gap());
        for (number, expected) in
            (0..40u16).filter(|number| *number != 20).zip((0..39).map(|n| (20..28).contains(&n)))
        {
            arrivals.note(Time::ZERO, number);
            assert_eq!(arrivals.has_recent_gap(), expected, "{number}");
        }
    }

    proptest! {
        #[test]
        fn every_number_counts_once(numbers in prop::collection::vec(0u64..900, 1..400)) {
            let mut arrivals = Arrivals::default();
            let mut seen = BTreeSet::new();
            for number in numbers {
                let newest = seen.last().is_none_or(|last| number > *last);
                let expected =
                    if seen.insert(number) { Arrival::New { number, newest } } else { Arrival::Repeat };
                prop_assert_eq!(arrivals.note(Time::ZERO, number as u16), expected);
            }
            let newest = *seen.last().unwrap();
            let ack = arrivals.ack(Time::ZERO, true).unwrap();
            let missing: Vec<u64> = (0..64).filter(|i| ack.missing >> i & 1 == 1).map(|i| newest - 1 - i).collect();
            let really: Vec<u64> = (newest.saturating_sub(64)..newest).rev().filter(|n| !seen.contains(n)).collect();
            prop_assert_eq!(missing, really);
        }

        #[test]
        fn an_ack_is_short_only_while_the_other_side_can_tell(known in 0u64..70_000, ahead in 0u64..200) {
            let mut arrivals = Arrivals::default();
            (0..=known).for_each(|number| { arrivals.note(Time::ZERO, number as u16); });
            arrivals.on_known(known as u16);
            prop_assert_eq!(arrivals.known, Some(known));
            (known..=known + ahead).for_each(|number| { arrivals.note(Time::ZERO, number as u16); });
            arrivals.on_known((known + ahead / 2) as u16);
            prop_assert_eq!(arrivals.known, Some(known + ahead / 2));
            let short = matches!(arrivals.ack(Time::ZERO, false).unwrap().newest, Newest::Short(_));
            prop_assert_eq!(short, ahead - ahead / 2 < SHORT_SPAN);
        }

        #[test]
        fn a_packet_older_than_the_window_is_refused(start in 2_000u64..100_000, back in 1_025u64..30_000) {
            let mut arrivals = Arrivals::default();
            // Walk there, since a number can only be told within half of the 16-bit range.
            (0..=start).step_by(10_000).chain([start]).for_each(|n| { arrivals.note(Time::ZERO, n as u16); });
            if let Some(old) = start.checked_sub(back) {
                prop_assert_eq!(arrivals.note(Time::ZERO, old as u16), Arrival::Repeat);
            }
        }
    }
}
