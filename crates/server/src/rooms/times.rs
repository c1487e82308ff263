//! Recent durations as a histogram.

use std::time::Duration;

use sametick_sim::Time;
use serde::Serialize;

/// The length of a span. Results cover the present and the previous span: at least the last half minute and at most a
/// minute.
const SPAN_US: u64 = 30_000_000;

/// Each power of two is split into this many buckets (as a logarithm): results are at most an eighth too long.
const PARTS_LOG2: u32 = 3;

/// The number of buckets, enough for times of up to a minute.
const COUNTS: usize = 24 << PARTS_LOG2;

/// Percentiles of recent tick times, in microseconds. At most an eighth too long; the longest is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// The number of ticks.
    pub ticks: u64,
    /// The median.
    pub p50_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The longest.
    pub max_us: u64,
}

#[derive(Clone)]
struct Span {
    counts: [u32; COUNTS],
    max_us: u64,
}

const EMPTY: Span = Span { counts: [0; COUNTS], max_us: 0 };

/// Histogram of recent tick times.
#[derive(Clone)]
pub struct TickTimes {
    /// The present span and the previous one.
    spans: [Span; 2],
    began: Time,
}

impl Default for TickTimes {
    fn default() -> TickTimes {
        TickTimes { spans: [EMPTY; 2], began: Time::ZERO }
    }
}

impl TickTimes {
    /// Adds the time of a tick that ended now.
    pub fn add(&mut self, now: Time, took: Duration) {
        if now.micros_since(self.began) >= SPAN_US {
            self.began = now;
            self.spans.swap(0, 1);
            self.spans[0] = EMPTY;
        }
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let span = &mut self.spans[0];
        span.counts[place_of(took_us)] += 1;
        span.max_us = span.max_us.max(took_us);
    }

    /// The recent times.
    pub fn lately(&self) -> Times {
        let [now, before] = &self.spans;
        let count = |place: usize| u64::from(now.counts[place]) + u64::from(before.counts[place]);
        let (ticks, max_us) = ((0..COUNTS).map(count).sum::<u64>(), now.max_us.max(before.max_us));
        let share = |percent: u64| {
            let mut left = (ticks * percent).div_ceil(100);
            let place = (0..COUNTS).find(|place| {
                left = left.saturating_sub(count(*place));
                left == 0
            });
            place.map_or(0, longest_in).min(max_us)
        };
        Times { ticks, p50_us: share(50), p99_us: share(99), max_us }
    }
}

/// The bucket of a time, by its leading bit and the next bits.
fn place_of(time_us: u64) -> usize {
    let log2 = time_us.max(1).ilog2();
    let Some(shift) = log2.checked_sub(PARTS_LOG2) else { return time_us as usize };
    let place = ((shift + 1) << PARTS_LOG2) as usize + (time_us >> shift) as usize - (1 << PARTS_LOG2);
    place.min(COUNTS - 1)
}

/// The longest time of a bucket.
fn longest_in(place: usize) -> u64 {
    let Some(shift) = (place >> PARTS_LOG2).checked_sub(1) else { return place as u64 };
    let part = (place & ((1 << PARTS_LOG2) - 1)) as u64 + (1 << PARTS_LOG2);
    ((part + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_at_most_an_eighth_too_long() {
        for time_us in (0..5_000).chain((1..200).map(|step| step * step * step)) {
            let longest = longest_in(place_of(time_us));
            assert!(time_us <= longest && longest <= time_us + time_us / 8, "{time_us}: {longest}");
        }
        assert_eq!(place_of(u64::MAX), COUNTS - 1);
    }

    #[test]
    fn percentiles_cover_the_last_minute() {
        let mut times = TickTimes::default();
        let add = |times: &mut TickTimes, second: u64, us| {
            times.add(Time::from_micros(second * 1_000_000), Duration::from_micros(us));
        };
        assert_eq!(times.lately(), Times::default());
        (0..99).for_each(|_| add(&mut times, 1, 100));
        add(&mut times, 2, 9_000);
        let told = times.lately();
        assert_eq!((told.ticks, told.max_us), (100, 9_000));
        assert!((100..=112).contains(&told.p50_us) && (100..=112).contains(&told.p99_us), "{told:?}");
        add(&mut times, 3, 9_000);
        assert!(times.lately().p99_us >= 9_000);
        add(&mut times, 40, 5);
        assert_eq!(times.lately().ticks, 102);
        add(&mut times, 80, 5);
        assert_eq!(times.lately(), Times { ticks: 2, p50_us: 5, p99_us: 5, max_us: 5 });
    }
}
