//! Token-bucket rate limiter: a burst after a pause, then a steady rate. For one source, or for each of many.

use alloc::collections::BTreeMap;

use sametick_sim::Time;

/// Sources that have paused long enough are forgotten no more often than this, however many there are.
const MAX_SWEEP_NS: u64 = 1_000_000_000;

/// A rate and a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    every_ns: u64,
    burst: u64,
}

impl RateLimit {
    /// One every so many microseconds, and so many at once after a pause.
    pub const fn every_us(every_us: u64, burst: u64) -> RateLimit {
        RateLimit { every_ns: every_us * 1_000, burst }
    }

    /// So many a second, and so many at once after a pause.
    pub const fn per_second(per_second: u32, burst: u32) -> RateLimit {
        RateLimit { every_ns: 1_000_000_000 / per_second as u64, burst: burst as u64 }
    }

    /// How many at once after a pause.
    pub const fn burst(self) -> u64 {
        self.burst
    }

    /// How many microseconds after one the next is there.
    pub const fn interval_us(self) -> u64 {
        self.every_ns / 1_000
    }

    const fn burst_ns(self) -> u64 {
        self.every_ns.saturating_mul(self.burst)
    }
}

/// The tokens of one source; full at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    full_at_ns: u64,
}

impl TokenBucket {
    /// Takes one token if it is there.
    pub fn try_take(&mut self, now: Time, limit: RateLimit) -> bool {
        let after = self.after(now, limit, 1);
        let is_there = after - ns(now) <= limit.burst_ns();
        if is_there {
            self.full_at_ns = after;
        }
        is_there
    }

    /// Takes `amount` tokens, also those that are not there yet. Returns for how many microseconds to wait until they are.
    pub fn take(&mut self, now: Time, limit: RateLimit, amount: u64) -> Option<u64> {
        self.full_at_ns = self.after(now, limit, amount);
        let debt_ns = (self.full_at_ns - ns(now)).saturating_sub(limit.burst_ns());
        (debt_ns > 0).then_some(debt_ns.div_ceil(1_000))
    }

    /// When the bucket is full again if so many are taken now. Never before now.
    fn after(self, now: Time, limit: RateLimit, amount: u64) -> u64 {
        self.full_at_ns.max(ns(now)).saturating_add(limit.every_ns.saturating_mul(amount))
    }

    fn is_full(self, now: Time) -> bool {
        self.full_at_ns <= ns(now)
    }
}

fn ns(now: Time) -> u64 {
    now.as_micros().saturating_mul(1_000)
}

/// A bucket for each of many sources. When there are too many, the rest share one.
#[derive(Clone, Debug)]
pub struct TokenBuckets<K> {
    limit: RateLimit,
    most: usize,
    buckets: BTreeMap<K, TokenBucket>,
    others: TokenBucket,
    swept_at_ns: u64,
}

impl<K: Ord> TokenBuckets<K> {
    /// This limit for each source, and at most so many buckets.
    pub fn new(limit: RateLimit, most: usize) -> TokenBuckets<K> {
        let (buckets, others) = (BTreeMap::new(), TokenBucket::default());
        TokenBuckets { limit, most, buckets, others, swept_at_ns: 0 }
    }

    /// Takes one token of a source if it is there.
    pub fn try_take(&mut self, now: Time, source: K) -> bool {
        if let Some(bucket) = self.buckets.get_mut(&source) {
            return bucket.try_take(now, self.limit);
        }
        self.sweep(now);
        if self.buckets.len() >= self.most {
            return self.others.try_take(now, self.limit);
        }
        self.buckets.entry(source).or_default().try_take(now, self.limit)
    }

    /// How many sources have a bucket of their own.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether no source has.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Forgets full buckets, if there are too many and some may have become full.
    fn sweep(&mut self, now: Time) {
        let is_due = ns(now).saturating_sub(self.swept_at_ns) >= self.limit.burst_ns().min(MAX_SWEEP_NS);
        if self.buckets.len() >= self.most && is_due {
            self.swept_at_ns = ns(now);
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: RateLimit = RateLimit::every_us(10, 3);

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn a_burst_after_a_pause_then_a_steady_rate() {
        let mut bucket = TokenBucket::default();
        let mut taken = |now| bucket.try_take(at(now), LIMIT);
        assert_eq!([1_000; 4].map(&mut taken), [true, true, true, false]);
        assert_eq!([1_009, 1_010, 1_010].map(&mut taken), [false, true, false]);
        assert_eq!([9_000; 4].map(&mut taken), [true, true, true, false], "no more after a longer pause");
    }

    #[test]
    fn what_is_taken_on_credit_is_waited_for() {
        let mut bucket = TokenBucket::default();
        assert_eq!(bucket.take(at(0), LIMIT, 3), None);
        assert_eq!(bucket.take(at(0), LIMIT, 5), Some(50));
        assert_eq!(bucket.take(at(50), LIMIT, 0), None);
        assert_eq!(bucket.take(at(50), LIMIT, u64::MAX), Some((u64::MAX - 80_000).div_ceil(1_000)));
    }

    #[test]
    fn sources_do_not_disturb_each_other() {
        let mut buckets = TokenBuckets::new(LIMIT, 4);
        for source in 0..4 {
            assert!((0..3).all(|_| buckets.try_take(at(0), source)));
            assert!(!buckets.try_take(at(0), source));
        }
        assert_eq!([4, 5, 6, 7].map(|source| buckets.try_take(at(0), source)), [true, true, true, false]);
        assert_eq!(buckets.len(), 4, "the rest share one bucket");
        assert!(buckets.try_take(at(30), 9));
        assert_eq!(buckets.len(), 1, "full buckets are forgotten");
    }
}
