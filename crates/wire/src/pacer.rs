//! Schedules a player's ticks just early enough that inputs reach the server before their tick closes (L4). Follows the
//! server's reports by running a little faster or slower, never in a burst.

use sametick_sim::{Tick, TickRate, Time};

use crate::LinkStats;

/// How often a server reports how inputs arrive, in ticks.
pub const PACE_EVERY: u32 = 15;

/// The least wanted slack of an input before its tick closes: the noise of a calm path.
pub const MIN_SLACK_US: i64 = 4_000;

/// The most wanted slack, however bad the path: half of the prediction window.
pub const MAX_SLACK_US: i64 = 400_000;

/// An omission increases the wanted slack by this much at once.
const LONGER_US: i64 = 10_000;

/// Without omissions the wanted slack decreases by this much with each report: a millisecond in five seconds. If it
/// were faster, a machine that is busy now and then would lose an input each time.
const SHORTER_US: i64 = 50;

/// Excess slack below this is tolerated: following every millisecond would make the tick rate unsteady.
const TOLERANCE_US: i64 = 6_000;

/// Time runs faster or slower by at most one part in this many.
const GENTLY: i64 = 12;

/// The most reports over which the least slack is taken.
const REPORTS: usize = 80;

/// At lower rates it is fewer: reports older than this many seconds say little about now.
const REMEMBERED_SECONDS: usize = 20;

/// A player that has to wait for the relay after this long without waiting has lost synchronisation: earlier reports
/// are void.
const LOST_TOUCH_US: u64 = 3_000_000;

/// Slack is reduced only after this many reports that showed more than enough.
const SURE: usize = 6;

/// The accepted chance that an input is lost with all packets that carried it in time.
const RARE: f64 = 1e-9;

/// After this many packets without a loss a path counts as lossless.
const CLEAN_PACKETS: f64 = 600.0;

/// Losses are averaged over about this many packets: a minute at 60 Hz.
const REMEMBERED_PACKETS: f64 = 3_600.0;

/// The most packets that an input is assumed to need.
const MAX_COPIES: u32 = 16;

/// Each packet carries one more tick for every this many ticks of latency: the added latency is hardly noticeable then.
const LATENCY_PER_BATCHED: u64 = 10;

/// The most ticks in one packet where latency decides.
pub const MAX_BATCH: u32 = 4;

/// The number of ticks in one packet on a path with this round trip, in either direction.
pub fn batch_at(rate: TickRate, rtt_us: u64) -> u32 {
    let ticks = rtt_us / rate.tick_micros().max(1);
    (1 + ticks / LATENCY_PER_BATCHED).min(u64::from(MAX_BATCH)) as u32
}

/// Statistics of the path to the relay, from its link, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// A round trip.
    pub rtt_us: u64,
    /// Its variation.
    pub jitter_us: u64,
    /// Packets sent; none if the link has no packets that can be lost.
    pub sent: u64,
    /// Those of them that never arrived.
    pub lost: u64,
    /// Packets that the other side sent.
    pub expected: u64,
    /// Those of them that arrived.
    pub received: u64,
}

/// The assumed round trip before the first measurement.
const UNKNOWN_RTT_US: u64 = 50_000;

impl From<LinkStats> for Path {
    fn from(stats: LinkStats) -> Path {
        Path {
            rtt_us: stats.rtt_us.unwrap_or(UNKNOWN_RTT_US),
            jitter_us: stats.jitter_us,
            sent: stats.packets_sent,
            lost: stats.packets_lost,
            expected: stats.packets_expected,
            received: stats.packets_received,
        }
    }
}

/// An estimate of the loss rate.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    sent: f64,
    lost: f64,
}

impl Losses {
    fn add(&mut self, sent: u64, lost: u64) {
        self.sent += sent as f64;
        self.lost += lost as f64;
        if self.sent > REMEMBERED_PACKETS {
            self.sent /= 2.0;
            self.lost /= 2.0;
        }
    }

    /// The number of packets an input has to be in so that one of them arrives.
    fn copies(&self) -> u32 {
        if self.sent >= CLEAN_PACKETS && self.lost < 0.2 {
            return 1;
        }
        // A few packets prove little: at first a loss rate of one in a hundred is assumed.
        let chance = ((self.lost + 0.5) / (self.sent + 50.0)).clamp(0.0, 0.9);
        let (mut copies, mut all_lost) = (1, chance);
        while all_lost > RARE && copies < MAX_COPIES {
            all_lost *= chance;
            copies += 1;
        }
        copies
    }
}

/// A server's report on the arrival of inputs since its last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The last tick of the report.
    pub tick: Tick,
    /// The least time by which a new input came before its tick was closed; negative if it was late.
    pub least_slack_us: Option<i32>,
    /// Inputs that were missing when their tick was closed, in total.
    pub omissions: u32,
}

/// The clock of a player's ticks.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: TickRate,
    next_at: Time,
    /// How much earlier ticks should be due; corrected gradually.
    debt_us: i64,
    extra_us: i64,
    omissions: u32,
    /// Reports about ticks up to this one do not reflect the last correction.
    settled: Tick,
    reports: [i64; REPORTS],
    reported: usize,
    /// When ticks last had to wait for the relay.
    waited_at: Option<Time>,
    path: Path,
    losses: Losses,
    copies: u32,
    batch: u32,
}

impl Pacer {
    /// A clock whose first tick is due at `first_at`.
    pub fn new(rate: TickRate, first_at: Time, path: Path) -> Pacer {
        let losses = Losses::default();
        Pacer {
            rate,
            next_at: first_at,
            debt_us: 0,
            extra_us: 0,
            omissions: 0,
            settled: Tick::ZERO,
            reports: [0; REPORTS],
            reported: 0,
            waited_at: None,
            path,
            losses,
            copies: losses.copies(),
            batch: 1,
        }
    }

    /// When the next tick is due.
    pub fn next_at(&self) -> Time {
        self.next_at
    }

    /// The ticks that are overdue.
    pub fn overdue_ticks(&self, now: Time) -> u32 {
        (now.micros_since(self.next_at) / self.rate.tick_micros().max(1)) as u32
    }

    /// The wanted slack.
    pub fn wanted_us(&self) -> i64 {
        let packets = i64::from(self.copies * self.batch - 1) * self.rate.tick_micros() as i64;
        (MIN_SLACK_US + packets + self.extra_us).min(MAX_SLACK_US)
    }

    /// The number of ticks whose inputs go into one message.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// The number of ticks that can still be sent at once after a delay: older ones are too late anyway.
    pub fn useful_ticks(&self) -> u32 {
        (self.wanted_us() as u64 / self.rate.tick_micros().max(1)) as u32 + 1
    }

    /// How long before its tick closes an input has to be sent, given that all knowledge of the path is one transit
    /// old.
    pub fn lead_us(&self) -> u64 {
        self.path.rtt_us + 2 * self.path.jitter_us + self.wanted_us() as u64
    }

    /// How far own ticks have to be ahead of the relay's tick, as it was when the newest packet from it was sent.
    pub fn lead_ticks(&self) -> u32 {
        (self.lead_us() / self.rate.tick_micros().max(1)) as u32 + 2
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

    /// Ticks were not taken for a while: the clock restarts now.
    pub fn restart(&mut self, now: Time) {
        self.next_at = self.next_at.max(now);
        let lost_touch = self.waited_at.is_none_or(|at| now.micros_since(at) >= LOST_TOUCH_US);
        self.waited_at = Some(now);
        if lost_touch || self.debt_us > 0 {
            // A player that has to wait is early enough, whatever was reported before.
            self.debt_us = self.debt_us.min(0);
            self.reported = 0;
        }
    }

    /// Ticks restart with this one, at a place that was chosen by [`Pacer::lead_ticks`].
    pub fn launch(&mut self, now: Time, tick: Tick) {
        self.next_at = now;
        self.debt_us = 0;
        self.settled = tick;
        self.reported = 0;
    }

    /// Takes the link's present statistics.
    pub fn on_path(&mut self, path: Path) {
        let (sent, lost) =
            (path.sent - self.path.sent.min(path.sent), path.lost - self.path.lost.min(path.lost));
        self.losses.add(sent, lost);
        self.path = path;
        // A stream has no loss.
        self.copies = if path.sent == 0 { 1 } else { self.losses.copies() };
        // On a path with loss, inputs are repeated rather than batched.
        self.batch = if self.copies == 1 { batch_at(self.rate, path.rtt_us) } else { 1 };
    }

    /// Handles a server's report. A report about ticks before the last correction is outdated.
    pub fn on_report(&mut self, report: &Arrived) {
        if report.omissions > self.omissions {
            self.omissions = report.omissions;
            self.extra_us = (self.extra_us + LONGER_US).min(MAX_SLACK_US);
        } else {
            self.extra_us = (self.extra_us - SHORTER_US).max(0);
        }
        let Some(least_us) = report.least_slack_us else { return };
        if self.debt_us != 0 || report.tick < self.settled + PACE_EVERY {
            return;
        }
        let most = REMEMBERED_SECONDS * self.rate.per_second() as usize / PACE_EVERY as usize;
        let most = most.clamp(SURE, REPORTS);
        self.reports[self.reported % most] = i64::from(least_us);
        self.reported += 1;
        let known = self.reported.min(most);
        let least_us = self.reports[..known].iter().copied().min().unwrap_or(0);
        let missing_us = self.wanted_us() - least_us;
        if missing_us > 0 {
            self.correct(missing_us);
        } else if -missing_us > TOLERANCE_US && known >= SURE {
            // Corrects by half: the least slack of a few ticks is not the least of all.
            self.correct(missing_us / 2);
        }
    }

    fn correct(&mut self, earlier_us: i64) {
        self.debt_us = earlier_us;
        self.reports.iter_mut().for_each(|least_us| *least_us += earlier_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(sent: u64, lost: u64) -> u32 {
        let mut losses = Losses::default();
        losses.add(sent, lost);
        losses.copies()
    }

    #[test]
    fn an_input_is_in_as_many_packets_as_the_path_needs() {
        assert_eq!(copies(0, 0), 5, "nothing is known yet");
        assert_eq!(copies(600, 0), 1, "ten seconds without a loss");
        assert_eq!(copies(1_000, 1), 4);
        assert_eq!(copies(1_000, 50), 7);
        assert_eq!(copies(1_000, 100), 9);
        assert_eq!(copies(1_000, 900), MAX_COPIES);
    }

    #[test]
    fn time_never_runs_in_bursts() {
        let rate = TickRate::hz(60);
        let mut pacer = Pacer::new(rate, Time::ZERO, Path::default());
        pacer.correct(300_000);
        let mut before = pacer.next_at();
        for tick in 1..600 {
            pacer.advance(Tick(tick));
            let step_us = pacer.next_at().micros_since(before);
            assert!((15_200..=16_700).contains(&step_us), "tick {tick}: {step_us}");
            before = pacer.next_at();
        }
        assert_eq!(pacer.debt_us, 0);
    }
}
