//! Which way to dial next: another one at once where one does not work, then a pause, and first the one that worked last.

use sametick_sim::Time;
use sametick_wire::backoff::Backoff;

/// An answer that has not come by then will not come on this route; there is another one.
const ELSEWHERE_US: u64 = 2_000_000;

/// The same where there is no other.
const NO_ANSWER_US: u64 = 5_000_000;

/// A dialled carrier. What comes of one that was given up is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt(pub u32);

/// The routes to a server, and which comes next.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    count: usize,
    /// The one that worked last; at first the one that is wished for most.
    best: usize,
    /// How many were tried since one worked or a pause was made.
    tried: usize,
    backoff: Backoff,
}

impl Routes {
    pub fn new(count: usize, seed: u64) -> Routes {
        Routes { count, best: 0, tried: 0, backoff: Backoff::new(seed) }
    }

    /// The one to dial now.
    pub fn current(&self) -> usize {
        (self.best + self.tried) % self.count
    }

    /// How long to wait for its answer.
    pub fn patience_us(&self) -> u64 {
        if self.tried + 1 < self.count { ELSEWHERE_US } else { NO_ANSWER_US }
    }

    /// It works.
    pub fn on_open(&mut self) {
        self.best = self.current();
        self.tried = 0;
    }

    /// The session goes on: the next failure is a first one again.
    pub fn on_joined(&mut self) {
        self.backoff.reset();
    }

    /// No answer came on it. When to dial the next one.
    pub fn on_unanswered(&mut self, now: Time) -> Time {
        self.tried += 1;
        if self.tried < self.count { now } else { self.on_lost(now) }
    }

    /// An open link was lost. When to dial again.
    pub fn on_lost(&mut self, now: Time) -> Time {
        self.tried = 0;
        self.backoff.next(now)
    }
}
