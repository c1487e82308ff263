//! When a player's next tick is due: just early enough that its inputs reach the server before their tick closes (L4).
//! Follows what the server reports by running a little faster or slower, never in a burst.

use sametick_sim::{Tick, TickRate, Time};

use crate::LinkStats;

/// How often a server reports how inputs arrive, in ticks.
pub const PACE_EVERY: u32 = 15;

/// Inputs should come at least this long before their tick closes: the noise of a calm path.
pub const MIN_SLACK_US: i64 = 4_000;

/// However bad the path, this much is enough: half of the prediction window.
pub const MAX_SLACK_US: i64 = 400_000;

/// An omission makes the wanted slack this much longer at once.
const LONGER_US: i64 = 10_000;

/// Without omissions that gets shorter by this much with each report: a millisecond in five seconds. Faster, and a machine
/// that is busy now and then would lose an input each time.
const SHORTER_US: i64 = 50;

/// More slack than wanted is left alone up to this: chasing every millisecond would make time wobble.
const TOLERANCE_US: i64 = 6_000;

/// Time runs faster or slower by at most one part in this many.
const GENTLY: i64 = 12;

/// The least slack of this many reports counts at most.
const REPORTS: usize = 80;

/// At lower rates it is fewer: what was more than so many seconds ago says little about now.
const REMEMBERED_SECONDS: usize = 20;

/// Whoever has not waited for the relay for this long, and has to, has lost touch: what was reported before is void.
const LOST_TOUCH_US: u64 = 3_000_000;

/// Slack is given back only after so many reports that showed more than enough.
const SURE: usize = 6;

/// One input in so many may be lost with all the packets that carried it in time.
const RARE: f64 = 1e-9;

/// After so many packets without a loss a path counts as one that loses nothing.
const CLEAN_PACKETS: f64 = 600.0;

/// Losses are remembered for about as many packets: a minute at 60 Hz.
const REMEMBERED_PACKETS: f64 = 3_600.0;

/// No path is believed to need more packets than this for an input.
const MAX_COPIES: u32 = 16;

/// Another tick is put into each packet for every so many ticks of latency: what it adds to the latency is hardly felt then.
const LATENCY_PER_BATCHED: u64 = 10;

/// The most ticks that go into one packet where latency decides.
pub const MAX_BATCH: u32 = 4;

/// How many ticks go into one packet on a path with this round trip, either way.
pub fn batch_at(rate: TickRate, rtt_us: u64) -> u32 {
    let ticks = rtt_us / rate.tick_micros().max(1);
    (1 + ticks / LATENCY_PER_BATCHED).min(u64::from(MAX_BATCH)) as u32
}

/// What is known of the path to the relay: what its link counts, from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// A round trip.
    pub rtt_us: u64,
    /// How much that varies.
    pub jitter_us: u64,
    /// Packets sent; none if the link has no packets that can be lost.
    pub sent: u64,
    /// Of those, how many never arrived.
    pub lost: u64,
    /// Packets that the other side sent.
    pub expected: u64,
    /// Of those, how many arrived.
    pub received: u64,
}

/// What a round trip is taken to be while none has been measured.
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

/// How much is lost, as far as can be told from a few packets.
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

    /// How many packets an input has to be in so that one of them arrives.
    fn copies(&self) -> u32 {
        if self.sent >= CLEAN_PACKETS && self.lost < 0.2 {
            return 1;
        }
        // Few packets prove little: at first a path is taken for one that loses one in a hundred.
        let chance = ((self.lost + 0.5) / (self.sent + 50.0)).clamp(0.0, 0.9);
        let (mut copies, mut all_lost) = (1, chance);
        while all_lost > RARE && copies < MAX_COPIES {
            all_lost *= chance;
            copies += 1;
        }
        copies
    }
}

/// How a server has seen inputs arrive since it last said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Up to which tick.
    pub tick: Tick,
    /// The least time by which a fresh input came before its tick was closed; negative if it was late.
    pub least_slack_us: Option<i32>,
    /// Inputs that were missing when their tick was closed, since the first one.
    pub omissions: u32,
}

/// The clock of a player's ticks.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: TickRate,
    next_at: Time,
    /// How much earlier ticks should come than they do; made up for bit by bit.
    debt_us: i64,
    extra_us: i64,
    omissions: u32,
    /// Reports about ticks up to this one say nothing about the last correction.
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

    /// The slack that is aimed for.
    pub fn wanted_us(&self) -> i64 {
        let packets = i64::from(self.copies * self.batch - 1) * self.rate.tick_micros() as i64;
        (MIN_SLACK_US + packets + self.extra_us).min(MAX_SLACK_US)
    }

    /// How many ticks' inputs go into one message.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// So many ticks can still be handed in at once after a delay: what is older comes too late anyway.
    pub fn useful_ticks(&self) -> u32 {
        (self.wanted_us() as u64 / self.rate.tick_micros().max(1)) as u32 + 1
    }

    /// How long before its tick closes an input has to be sent, if all that is known of the path was sent a transit ago.
    pub fn lead_us(&self) -> u64 {
        self.path.rtt_us + 2 * self.path.jitter_us + self.wanted_us() as u64
    }

    /// How far ahead of the relay's tick, as it was when what we hear now was sent, own ticks have to be.
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

    /// Ticks were not taken for a while: the clock goes on from now.
    pub fn restart(&mut self, now: Time) {
        self.next_at = self.next_at.max(now);
        let lost_touch = self.waited_at.is_none_or(|at| now.micros_since(at) >= LOST_TOUCH_US);
        self.waited_at = Some(now);
        if lost_touch || self.debt_us > 0 {
            // Whoever has to wait is early enough, whatever was reported before.
            self.debt_us = self.debt_us.min(0);
            self.reported = 0;
        }
    }

    /// Ticks begin anew with this one, at a place that was chosen by [`Pacer::lead_ticks`].
    pub fn launch(&mut self, now: Time, tick: Tick) {
        self.next_at = now;
        self.debt_us = 0;
        self.settled = tick;
        self.reported = 0;
    }

    /// What the link counts now.
    pub fn on_path(&mut self, path: Path) {
        let (sent, lost) =
            (path.sent - self.path.sent.min(path.sent), path.lost - self.path.lost.min(path.lost));
        self.losses.add(sent, lost);
        self.path = path;
        // A stream loses nothing.
        self.copies = if path.sent == 0 { 1 } else { self.losses.copies() };
        // Where something is lost an input is repeated rather than held back.
        self.batch = if self.copies == 1 { batch_at(self.rate, path.rtt_us) } else { 1 };
    }

    /// The server has seen inputs arrive. A report about ticks before the last correction is late news.
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
            // Gives back half: the least slack of a few ticks is not the least there is.
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
