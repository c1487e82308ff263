//! Measures the figures of [`Diagnostics`]: prediction depth, deficits and round trips.

use sametick_sim::{Tick, TickRate, Time};

use crate::diagnostics::Diagnostics;
use crate::message::Pace;
use crate::peer::PeerStats;
use sametick_wire::pacer::Path;

/// The number of ticks for which the send time of an input is remembered.
const SENT: usize = 128;

/// The best network delay grows by this much per tick, because clocks drift.
const DRIFT_US: i64 = 2;

/// The usual round trip is the mean of about this many.
const USUAL_SAMPLES: i64 = 1_024;

/// The figures of the current second, and those carried over from one second to the next.
#[derive(Clone, Debug)]
pub struct Meter {
    rate: TickRate,
    now: Diagnostics,
    sent_at: [Option<Time>; SENT],
    /// The least delay of a confirmed tick after the relay's clock; it includes the difference of the clocks.
    best_us: Option<i64>,
    /// The number of ticks in the last run.
    run_ticks: u32,
    low_depth: Option<u32>,
    samples: i64,
    stats: PeerStats,
    path: Path,
    counted: Path,
    last: Diagnostics,
}

impl Meter {
    /// Nothing measured yet.
    pub fn new(rate: TickRate, path: Path) -> Meter {
        Meter {
            rate,
            now: Diagnostics::default(),
            sent_at: [None; SENT],
            best_us: None,
            run_ticks: 1,
            low_depth: None,
            samples: 0,
            stats: PeerStats::default(),
            path,
            counted: path,
            last: Diagnostics { ticks_per_second: rate.per_second(), ..Diagnostics::default() },
        }
    }

    /// Begins measuring another path; counts go on.
    pub fn restart(&mut self, path: Path) {
        let now = Diagnostics { mismatches: self.now.mismatches, ..Diagnostics::default() };
        *self = Meter { now, stats: self.stats, last: self.last, ..Meter::new(self.rate, path) };
    }

    /// The figures of the last full second.
    pub fn last(&self) -> Diagnostics {
        self.last
    }

    /// An input was passed in.
    pub fn on_sent(&mut self, now: Time, tick: Tick) {
        self.sent_at[tick.0 as usize % SENT] = Some(now);
    }

    /// A run of ticks was confirmed: its last tick, its length, and whether that tick had an own input.
    pub fn on_confirmed(&mut self, now: Time, tick: Tick, ticks: u32, own: bool) {
        self.run_ticks = ticks;
        let sent_at = self.sent_at[tick.0 as usize % SENT].take();
        if let Some(at) = sent_at.filter(|_| own) {
            self.sample(now.micros_since(at) as u32);
        }
        let transit_us = now.as_micros() as i64 - self.rate.due_micros(tick) as i64;
        let best_us = self
            .best_us
            .map_or(transit_us, |best_us| (best_us + DRIFT_US * i64::from(ticks)).min(transit_us));
        self.best_us = Some(best_us);
        self.note_deficit((transit_us - best_us) as u64 / self.rate.tick_micros().max(1));
    }

    fn note_deficit(&mut self, ticks: u64) {
        let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
        self.now.network_deficit_ticks = self.now.network_deficit_ticks.max(ticks);
    }

    fn sample(&mut self, rtt_us: u32) {
        let Diagnostics { input_rtt_us, usual_input_rtt_us, jitter_us, .. } = &mut self.now;
        if *input_rtt_us == 0 {
            (*input_rtt_us, *usual_input_rtt_us) = (rtt_us, rtt_us);
        }
        *jitter_us = nearer(*jitter_us, rtt_us.abs_diff(*input_rtt_us), 16);
        *input_rtt_us = nearer(*input_rtt_us, rtt_us, 8);
        self.samples += 1;
        *usual_input_rtt_us = nearer(*usual_input_rtt_us, rtt_us, self.samples.min(USUAL_SAMPLES));
    }

    /// A tick was simulated locally, `overdue` ticks late, with the state on screen `depth` ahead.
    pub fn on_tick(&mut self, now: Time, confirmed: Tick, depth: u32, overdue: u32) {
        self.now.depth_ticks = depth;
        self.now.depth_range_ticks.1 = self.now.depth_range_ticks.1.max(depth);
        self.low_depth = Some(self.low_depth.map_or(depth, |low| low.min(depth)));
        self.now.cpu_deficit_ticks = self.now.cpu_deficit_ticks.max(overdue);
        if let Some(best_us) = self.best_us {
            let since_us = now.as_micros() as i64 - best_us - self.rate.due_micros(confirmed) as i64;
            let ticks = since_us.max(0) as u64 / self.rate.tick_micros().max(1);
            self.note_deficit(ticks.saturating_sub(u64::from(self.run_ticks)));
        }
    }

    /// The link's counters have changed.
    pub fn on_path(&mut self, path: Path) {
        self.path = path;
    }

    /// Handles a pace report.
    pub fn on_report(&mut self, report: &Pace) {
        self.now.agreed = self.now.agreed.max(report.agreed);
        self.now.mismatches = report.mismatches;
    }

    /// Closes a second and returns its figures.
    pub fn close(&mut self, stats: PeerStats) -> Diagnostics {
        let (path, counted) = (self.path, self.counted);
        let lost =
            (path.lost - counted.lost.min(path.lost)) + missing(&path).saturating_sub(missing(&counted));
        let of = path.sent.saturating_sub(counted.sent) + path.expected.saturating_sub(counted.expected);
        let since = |now: u64, before: u64| now.saturating_sub(before) as u32;
        self.last = Diagnostics {
            depth_range_ticks: (self.low_depth.unwrap_or(0), self.now.depth_range_ticks.1),
            link_rtt_us: path.rtt_us as u32,
            omissions: stats.omissions.saturating_sub(self.stats.omissions),
            total_omissions: stats.omissions,
            loss_permille: (lost * 1_000).checked_div(of).unwrap_or(0) as u32,
            rollbacks: since(stats.rollbacks, self.stats.rollbacks),
            resimulated_ticks: since(stats.resimulated, self.stats.resimulated),
            resyncs: stats.resyncs,
            ticks_per_second: self.rate.per_second(),
            ..self.now
        };
        self.counted = path;
        self.stats = stats;
        self.low_depth = None;
        self.now = Diagnostics {
            depth_range_ticks: (0, 0),
            network_deficit_ticks: 0,
            cpu_deficit_ticks: 0,
            ..self.now
        };
        self.last
    }
}

/// Packets of the other side that were lost.
fn missing(path: &Path) -> u64 {
    path.expected.saturating_sub(path.received)
}

/// `from`, moved by one part in so many towards `to`.
fn nearer(from: u32, to: u32, parts: i64) -> u32 {
    (i64::from(from) + (i64::from(to) - i64::from(from)) / parts) as u32
}
