//! Interpolation delay: which moment is shown, a little behind what has arrived, and never backwards.
//!
//! The delay adapts to arrivals, like the jitter buffer of a call: long enough that the next update arrives in time,
//! also when it is late or the one before it was lost, and no longer. It grows at once and shrinks slowly; the shown
//! moment never runs more than an eighth faster or slower.

use sametick_sim::{Tick, TickRate, Time};

/// If the shown moment is later than it should be by more than this, it jumps; otherwise it runs a little faster. Twice
/// what has to be tolerated (B12): after a few updates lost in a row it catches up without a visible jump.
const TOLERATED_US: i64 = 300_000;

/// It runs faster or slower by at most one part in this many.
const GENTLY: i64 = 8;

/// The longest delay. Longer gaps between updates are visible: with more delay, players could not react to others.
pub(crate) const MAX_DELAY_US: i64 = 350_000;

/// The margin of the delay above the measured need.
const SPARE_US: i64 = 10_000;

/// The delay shrinks by one part of the elapsed time in this many: half a second takes ten.
const SHRINKS: i64 = 20;

/// How long arrivals count, in spans: for the transit of updates, and for gaps caused by losses, which are rarer.
const SPAN_US: u64 = 500_000;
const LATE_SPANS: usize = 10;
const GAP_SPANS: usize = 20;
/// The number of spans whose quickest update the delay is measured from: few, as a path may become longer.
const QUICK_SPANS: usize = 2;

/// The arrivals in a span of time. The lateness of an update is our time minus the host's; clocks differ, so only
/// differences are meaningful.
#[derive(Clone, Copy, Debug)]
struct Span {
    earliest_us: i64,
    latest_us: i64,
    /// The longest time between two consecutive updates, by the host's clock.
    gap_us: i64,
}

/// The moment that is shown.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    rate: TickRate,
    least_delay_us: i64,
    /// The current span first.
    spans: [Option<Span>; GAP_SPANS],
    span_began: Time,
    /// Our time minus the host time of the moment to be shown; none before the first look.
    behind_us: Option<i64>,
    newest: Tick,
    shown_us: Option<i64>,
    looked_at: Time,
    frozen_us: u64,
}

impl Timeline {
    pub fn new(rate: TickRate, least_delay_ms: u32) -> Timeline {
        Timeline {
            rate,
            least_delay_us: (i64::from(least_delay_ms) * 1_000).min(MAX_DELAY_US),
            spans: [None; GAP_SPANS],
            span_began: Time::ZERO,
            behind_us: None,
            newest: Tick::ZERO,
            shown_us: None,
            looked_at: Time::ZERO,
            frozen_us: 0,
        }
    }

    /// An update of this tick has arrived.
    pub fn on_update(&mut self, now: Time, tick: Tick) {
        let passed = (now.micros_since(self.span_began) / SPAN_US).min(GAP_SPANS as u64);
        if passed > 0 {
            self.spans.rotate_right(passed as usize);
            self.spans[..passed as usize].fill(None);
            self.span_began = now;
        }
        let late_us = now.as_micros() as i64 - self.due_us(tick);
        let gap_us = match self.newest {
            Tick::ZERO => 0,
            newest => self.due_us(tick) - self.due_us(newest),
        };
        let span = self.spans[0].get_or_insert(Span { earliest_us: late_us, latest_us: late_us, gap_us: 0 });
        span.earliest_us = span.earliest_us.min(late_us);
        span.latest_us = span.latest_us.max(late_us);
        // No delay can bridge a longer gap.
        if gap_us <= MAX_DELAY_US {
            span.gap_us = span.gap_us.max(gap_us);
        }
        self.newest = self.newest.max(tick);
    }

    fn due_us(&self, tick: Tick) -> i64 {
        self.rate.due_micros(tick) as i64
    }

    /// The lateness of the quickest recent update. A span begins with an update, so the first span is never empty.
    fn earliest_us(&self) -> Option<i64> {
        self.spans[..QUICK_SPANS].iter().flatten().map(|span| span.earliest_us).min()
    }

    /// The lag behind our time at which the next update arrives in time; the least and the most.
    fn wanted_us(&self) -> Option<(i64, i64)> {
        let earliest_us = self.earliest_us()?;
        let latest_us = self.spans[..LATE_SPANS].iter().flatten().map(|span| span.latest_us).max();
        let gap_us = self.spans.iter().flatten().map(|span| span.gap_us).max();
        let needed_us = latest_us.unwrap_or(earliest_us) + gap_us.unwrap_or(0) + SPARE_US;
        let most_us = earliest_us + MAX_DELAY_US;
        Some((needed_us.clamp(earliest_us + self.least_delay_us, most_us), most_us))
    }

    /// Adapts the lag of the shown moment: at once if more is needed, slowly if less is, faster if it is too large.
    fn adapt(&mut self, passed_us: i64) -> Option<i64> {
        let (wanted_us, most_us) = self.wanted_us()?;
        let behind_us = match self.behind_us {
            Some(behind_us) if behind_us > wanted_us => {
                let shrinks_us = passed_us / if behind_us > most_us { GENTLY } else { SHRINKS };
                wanted_us.max(behind_us - shrinks_us)
            }
            _ => wanted_us,
        };
        self.behind_us = Some(behind_us);
        Some(behind_us)
    }

    /// Advances the time.
    pub fn look(&mut self, now: Time) {
        let passed_us = now.micros_since(self.looked_at) as i64;
        self.looked_at = self.looked_at.max(now);
        let Some(behind_us) = self.adapt(passed_us) else { return };
        let wanted_us = now.as_micros() as i64 - behind_us;
        let newest_us = self.due_us(self.newest);
        let Some(shown_us) = self.shown_us else {
            self.shown_us = Some(wanted_us.min(newest_us));
            return;
        };
        let late_us = wanted_us - (shown_us + passed_us);
        let moved_us = if late_us > TOLERATED_US {
            shown_us + passed_us + late_us
        } else {
            shown_us + passed_us + late_us.clamp(-passed_us / GENTLY, passed_us / GENTLY)
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

    /// The lag of the shown moment behind the quickest recent update.
    pub fn delay_us(&self) -> i64 {
        self.behind_us
            .zip(self.earliest_us())
            .map_or(self.least_delay_us, |(behind, earliest)| behind - earliest)
    }

    /// How much received time is not shown yet.
    pub fn buffer_us(&self) -> i64 {
        self.shown_us.map_or(0, |shown_us| self.due_us(self.newest) - shown_us)
    }

    /// The total time that the shown state stood still because nothing had arrived.
    pub fn frozen_us(&self) -> u64 {
        self.frozen_us
    }

    /// The newest tick with an update.
    pub fn newest(&self) -> Tick {
        self.newest
    }
}
