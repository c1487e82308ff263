//! Which moment is shown: a little behind what has arrived, never backwards, and still when there is nothing to show.

use sametick_sim::{Tick, TickRate, Time};

/// Later than it should be by more than this, and the shown moment jumps; by less, and it runs a little faster (B12).
const TOLERATED_US: i64 = 150_000;

/// It runs faster or slower by at most one part in this many.
const GENTLY: i64 = 10;

/// The earliest arrivals are forgotten after this long, twice over: clocks drift, and paths change.
const REMEMBERED_US: u64 = 15_000_000;

/// The moment that is shown.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    rate: TickRate,
    delay_us: i64,
    /// Our time less the host's at which updates arrive when they are quickest, over this span of time and the last.
    earliest_us: [Option<i64>; 2],
    span_began: Time,
    newest: Tick,
    shown_us: Option<i64>,
    looked_at: Time,
    frozen_us: u64,
}

impl Timeline {
    pub fn new(rate: TickRate, delay_ms: u32) -> Timeline {
        Timeline {
            rate,
            delay_us: i64::from(delay_ms) * 1_000,
            earliest_us: [None; 2],
            span_began: Time::ZERO,
            newest: Tick::ZERO,
            shown_us: None,
            looked_at: Time::ZERO,
            frozen_us: 0,
        }
    }

    /// An update of this tick has arrived.
    pub fn on_update(&mut self, now: Time, tick: Tick) {
        if now.micros_since(self.span_began) >= REMEMBERED_US {
            self.earliest_us = [None, self.earliest_us[0]];
            self.span_began = now;
        }
        let early_us = now.as_micros() as i64 - self.due_us(tick);
        let earliest = self.earliest_us[0].get_or_insert(early_us);
        *earliest = early_us.min(*earliest);
        self.newest = self.newest.max(tick);
    }

    fn due_us(&self, tick: Tick) -> i64 {
        self.rate.due_micros(tick) as i64
    }

    /// Time passes.
    pub fn look(&mut self, now: Time) {
        let passed_us = now.micros_since(self.looked_at) as i64;
        self.looked_at = self.looked_at.max(now);
        let Some(earliest_us) = self.earliest_us.iter().flatten().min() else { return };
        let wanted_us = now.as_micros() as i64 - earliest_us - self.delay_us;
        let newest_us = self.due_us(self.newest);
        let Some(shown_us) = self.shown_us else {
            self.shown_us = Some(wanted_us.min(newest_us));
            return;
        };
        let behind_us = wanted_us - (shown_us + passed_us);
        let moved_us = if behind_us > TOLERATED_US {
            shown_us + passed_us + behind_us
        } else {
            shown_us + passed_us + behind_us.clamp(-passed_us / GENTLY, passed_us / GENTLY)
        };
        let next_us = moved_us.min(newest_us);
        if moved_us > newest_us {
            self.frozen_us += (moved_us - next_us.max(moved_us - passed_us)).max(0) as u64;
        }
        self.shown_us = Some(next_us);
    }

    /// The shown moment in the host's time, in microseconds.
    pub fn shown_us(&self) -> Option<i64> {
        self.shown_us
    }

    /// How much there is to show yet.
    pub fn buffer_us(&self) -> i64 {
        self.shown_us.map_or(0, |shown_us| self.due_us(self.newest) - shown_us)
    }

    /// For how long nothing moved because nothing came.
    pub fn frozen_us(&self) -> u64 {
        self.frozen_us
    }

    /// The newest tick there is an update of.
    pub fn newest(&self) -> Tick {
        self.newest
    }
}
