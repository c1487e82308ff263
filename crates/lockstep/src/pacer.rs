//! When a peer's next tick is due: just early enough that its inputs reach the relay before their tick closes (L4).
//! Follows what the relay reports by running a little faster or slower, never in a burst.

use sametick_sim::{Tick, TickRate, Time};

use crate::message::Pace;

/// Inputs should come at least this long before their tick closes: the noise of a calm path.
pub const MIN_SLACK_US: i64 = 4_000;

/// However bad the path, this much is enough: half of the prediction window.
pub const MAX_SLACK_US: i64 = 400_000;

/// An omission makes the wanted slack this much longer at once.
const LONGER_US: i64 = 10_000;

/// Without omissions it gets shorter by this much with each report: a millisecond in a second.
const SHORTER_US: i64 = 250;

/// More slack than wanted is left alone up to this: chasing every millisecond would make time wobble.
const TOLERANCE_US: i64 = 6_000;

/// Time runs faster or slower by at most one part in this many.
const GENTLY: i64 = 12;

/// The clock of a peer's ticks.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: TickRate,
    next_at: Time,
    /// How much earlier ticks should come than they do; made up for bit by bit.
    debt_us: i64,
    wanted_us: i64,
    omissions: u32,
    /// Reports about ticks up to this one say nothing about the last correction.
    settled: Tick,
}

impl Pacer {
    /// A clock whose first tick is due at `first_at`. `jitter_us` is what the link has measured so far.
    pub fn new(rate: TickRate, first_at: Time, jitter_us: u64) -> Pacer {
        let wanted_us = (MIN_SLACK_US + 2 * jitter_us as i64).min(MAX_SLACK_US);
        Pacer { rate, next_at: first_at, debt_us: 0, wanted_us, omissions: 0, settled: Tick::ZERO }
    }

    /// When the next tick is due.
    pub fn next_at(&self) -> Time {
        self.next_at
    }

    /// The slack that is aimed for.
    pub fn wanted_us(&self) -> i64 {
        self.wanted_us
    }

    /// A tick has been taken.
    pub fn advance(&mut self, tick: Tick) {
        let tick_us = (self.rate.due_micros(tick.next()) - self.rate.due_micros(tick)) as i64;
        let step = self.debt_us.clamp(-tick_us / GENTLY, tick_us / GENTLY);
        self.debt_us -= step;
        self.next_at = self.next_at.plus_micros((tick_us - step) as u64);
        if step != 0 {
            self.settled = tick;
        }
    }

    /// Ticks were not taken for a while: the clock goes on from now.
    pub fn restart(&mut self, now: Time) {
        self.next_at = self.next_at.max(now);
    }

    /// The relay has seen inputs arrive. A report about ticks before the last correction is late news.
    pub fn on_report(&mut self, report: &Pace) {
        if report.omissions > self.omissions {
            self.omissions = report.omissions;
            self.wanted_us = (self.wanted_us + LONGER_US).min(MAX_SLACK_US);
        } else {
            self.wanted_us = (self.wanted_us - SHORTER_US).max(MIN_SLACK_US);
        }
        if self.debt_us != 0 || report.tick <= self.settled {
            return;
        }
        let missing_us = self.wanted_us - i64::from(report.least_slack_us);
        if missing_us > 0 {
            self.debt_us = missing_us;
        } else if -missing_us > TOLERANCE_US {
            // Gives back half: the least slack of a few ticks is not the least there is.
            self.debt_us = missing_us / 2;
        }
    }
}
