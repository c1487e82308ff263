//! Back-off of reconnect attempts: quick at first, since most outages are short, then ever slower, with jitter so that
//! clients do not reconnect at the same moment.
//!
//! ```
//! use sametick_sim::Time;
//! use sametick_wire::backoff::Backoff;
//!
//! let mut backoff = Backoff::new(7);
//! let failed = Time::from_millis(5_000);
//! let again = backoff.next(failed);
//! assert!((50_000..=100_000).contains(&again.micros_since(failed)));
//! ```

use sametick_sim::{Rng, Time};

/// The longest first pause: a lost packet or a restarted process is often over by then, and a player hardly sees it.
pub const FIRST_PAUSE_US: u64 = 100_000;

/// No pause is shorter: below it, a server that refuses at once would be flooded by its own players.
pub const SHORTEST_PAUSE_US: u64 = 50_000;

/// The time after the first failure during which a player is assumed to wait in front of the screen.
pub const EAGER_FOR_US: u64 = 30_000_000;

/// The longest pause while a player waits: a server that is back is found within a second.
pub const EAGER_PAUSE_US: u64 = 1_000_000;

/// The longest pause: a client left alone over night costs its server two packets a minute and still reconnects.
pub const LONGEST_PAUSE_US: u64 = 30_000_000;

/// Each pause may be this many times as long as the one before.
const GROWTH: u64 = 2;

/// The schedule of one client's attempts. Pauses are drawn from the upper half of a bound that doubles from
/// [`FIRST_PAUSE_US`] to [`EAGER_PAUSE_US`], and from [`EAGER_FOR_US`] after the first failure on to
/// [`LONGEST_PAUSE_US`].
#[derive(Clone, Debug)]
pub struct Backoff {
    rng: Rng,
    first_failure: Option<Time>,
    bound_us: u64,
}

impl Backoff {
    /// A schedule before any failure. Clients need different seeds, or they all reconnect at the same moment.
    pub const fn new(seed: u64) -> Backoff {
        Backoff { rng: Rng::new(seed), first_failure: None, bound_us: FIRST_PAUSE_US }
    }

    /// When to try again, after an attempt (or the connection itself) failed at `now`.
    pub fn next(&mut self, now: Time) -> Time {
        let first_failure = *self.first_failure.get_or_insert(now);
        let is_eager = now.micros_since(first_failure) < EAGER_FOR_US;
        let longest_us = if is_eager { EAGER_PAUSE_US } else { LONGEST_PAUSE_US };
        let bound_us = self.bound_us.min(longest_us);
        self.bound_us = bound_us * GROWTH;
        now.plus_micros(self.draw_pause(bound_us))
    }

    /// The connection is established: the schedule starts anew.
    pub fn reset(&mut self) {
        self.first_failure = None;
        self.bound_us = FIRST_PAUSE_US;
    }

    fn draw_pause(&mut self, bound_us: u64) -> u64 {
        let least_us = (bound_us / 2).max(SHORTEST_PAUSE_US);
        least_us + self.rng.below(bound_us - least_us + 1)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use proptest::prelude::*;

    use super::*;

    /// The moments of failure, each attempt failing `attempt_us` after it started.
    fn failures(seed: u64, start: Time, attempt_us: u64, count: usize) -> Vec<(Time, Time)> {
        let mut backoff = Backoff::new(seed);
        let mut failed = start;
        let attempts = (0..count).map(|_| {
            let noticed = failed;
            let attempt = backoff.next(noticed);
            failed = attempt.plus_micros(attempt_us);
            (noticed, attempt)
        });
        attempts.collect()
    }

    proptest! {
        #[test]
        fn pauses_keep_their_bounds(seed: u64, start in 0..u64::MAX / 2, attempt_us in 0..5_000_000u64) {
            let start = Time::from_micros(start);
            for (failed, attempt) in failures(seed, start, attempt_us, 200) {
                let pause_us = attempt.micros_since(failed);
                let is_eager = failed.micros_since(start) < EAGER_FOR_US;
                prop_assert!(pause_us >= SHORTEST_PAUSE_US);
                let longest_us = if is_eager { EAGER_PAUSE_US } else { LONGEST_PAUSE_US };
                prop_assert!(pause_us <= longest_us);
            }
        }

        #[test]
        fn the_first_pauses_double_and_the_last_are_long(seed: u64) {
            let pauses = failures(seed, Time::ZERO, 0, 200);
            let pause_us = |n: usize| pauses[n].1.micros_since(pauses[n].0);
            for n in 0..4 {
                let bound_us = FIRST_PAUSE_US << n;
                prop_assert!((bound_us / 2..=bound_us).contains(&pause_us(n)));
            }
            prop_assert!((100..200).all(|n| pause_us(n) >= LONGEST_PAUSE_US / 2));
        }

        #[test]
        fn thirty_attempts_at_least_in_the_first_thirty_seconds(seed: u64) {
            let pauses = failures(seed, Time::ZERO, 0, 100);
            let eager = pauses.iter().filter(|(_, attempt)| attempt.as_micros() <= EAGER_FOR_US).count();
            prop_assert!((30..=70).contains(&eager), "{} attempts", eager);
        }

        #[test]
        fn one_seed_gives_one_schedule_and_reset_begins_anew(seed: u64, later in 0..1_000_000_000u64) {
            prop_assert_eq!(failures(seed, Time::ZERO, 0, 50), failures(seed, Time::ZERO, 0, 50));
            let mut backoff = Backoff::new(seed);
            let mut now = Time::ZERO;
            for _ in 0..100 {
                now = backoff.next(now);
            }
            backoff.reset();
            let failed = now.plus_micros(later);
            prop_assert!(backoff.next(failed).micros_since(failed) <= FIRST_PAUSE_US);
        }
    }

    #[test]
    fn a_thousand_clients_do_not_reconnect_together() {
        let mut tries: Vec<u64> =
            (0..1_000).map(|seed| Backoff::new(seed).next(Time::ZERO).as_micros()).collect();
        tries.sort_unstable();
        let most_in_a_millisecond = tries.chunk_by(|a, b| a / 1_000 == b / 1_000).map(<[u64]>::len).max();
        assert!(most_in_a_millisecond < Some(50), "{most_in_a_millisecond:?}");
    }

    #[test]
    fn the_end_of_time_does_not_overflow() {
        let mut backoff = Backoff::new(1);
        let end = Time::from_micros(u64::MAX);
        assert!((0..100).all(|_| backoff.next(end) == end));
    }
}
