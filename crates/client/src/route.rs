//! Chooses the next route to dial: another one at once after a failure, then a pause, and first the route that worked
//! last.

use sametick_sim::Time;
use sametick_wire::backoff::Backoff;

/// The time-out for an answer if there is another route.
const ELSEWHERE_US: u64 = 2_000_000;

/// The time-out for an answer if there is no other route.
const NO_ANSWER_US: u64 = 5_000_000;

/// The number of a dialled carrier. Events of carriers that were given up are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt(pub u32);

/// The routes to a server, and the next one to dial.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    count: usize,
    /// The route that worked last; at first the preferred one.
    best: usize,
    /// The number of routes tried since one worked or a pause was made.
    tried: usize,
    backoff: Backoff,
}

impl Routes {
    pub fn new(count: usize, seed: u64) -> Routes {
        Routes { count, best: 0, tried: 0, backoff: Backoff::new(seed) }
    }

    /// The route to dial now.
    pub fn current(&self) -> usize {
        (self.best + self.tried) % self.count
    }

    /// The time-out for its answer.
    pub fn patience_us(&self) -> u64 {
        if self.tried + 1 < self.count { ELSEWHERE_US } else { NO_ANSWER_US }
    }

    /// The route works.
    pub fn on_open(&mut self) {
        self.best = self.current();
        self.tried = 0;
    }

    /// The player has joined: the back-off starts anew.
    pub fn on_joined(&mut self) {
        self.backoff.reset();
    }

    /// The route gave no answer. Returns when to dial the next one.
    pub fn on_unanswered(&mut self, now: Time) -> Time {
        self.tried += 1;
        if self.tried < self.count { now } else { self.on_lost(now) }
    }

    /// An open link was lost. Returns when to dial again.
    pub fn on_lost(&mut self, now: Time) -> Time {
        self.tried = 0;
        self.backoff.next(now)
    }
}
