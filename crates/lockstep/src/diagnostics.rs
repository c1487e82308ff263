//! Diagnostics of a player's connection and machine: figures with normal ranges and plain-language verdicts (L5).

use alloc::format;
use alloc::string::String;
use core::fmt;

use sametick_sim::Tick;
use serde::{Deserialize, Serialize};

/// The figures of one peer over about the last second; figures counted since the peer joined say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// How far the state on screen is ahead of the last confirmed tick.
    pub depth_ticks: u32,
    /// The least and the greatest prediction depth.
    pub depth_range_ticks: (u32, u32),
    /// The most ticks by which confirmed ticks lagged behind the best network path seen: network delay.
    pub network_deficit_ticks: u32,
    /// The most ticks by which this machine lagged behind its own clock: CPU starvation.
    pub cpu_deficit_ticks: u32,
    /// The time from sending an input to receiving it in a confirmed tick.
    pub input_rtt_us: u32,
    /// The usual input round trip.
    pub usual_input_rtt_us: u32,
    /// The jitter of the input round trip.
    pub jitter_us: u32,
    /// The link's own round trip.
    pub link_rtt_us: u32,
    /// Own inputs that were missing when their tick closed.
    pub omissions: u32,
    /// Own inputs that were missing when their tick closed, since the peer joined.
    pub total_omissions: u32,
    /// Lost packets per thousand, sent and received together.
    pub loss_permille: u32,
    /// Wrong predictions that caused a re-simulation.
    pub rollbacks: u32,
    /// Ticks that were re-simulated.
    pub resimulated_ticks: u32,
    /// The last tick on whose state the players agree.
    pub agreed: Tick,
    /// How often a peer was desynced, in the whole session.
    pub mismatches: u32,
    /// How often this peer was resynced.
    pub resyncs: u32,
    /// The tick rate.
    pub ticks_per_second: u32,
}

/// A diagnostic metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// How far the state on screen is ahead of the confirmed one.
    PredictionDepth,
    /// How far the confirmed state lags behind.
    TickDeficit,
    /// The input round trip: from sending an input to its confirmed tick.
    Rtt,
    /// The variation of the round trip.
    Jitter,
    /// Inputs that came too late.
    Omissions,
    /// Packets that were lost.
    PacketLoss,
    /// Whether all players have the same state.
    Checksums,
}

impl Metric {
    /// The name of the metric, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::PredictionDepth => "prediction depth",
            Metric::TickDeficit => "tick deficit",
            Metric::Rtt => "round trip",
            Metric::Jitter => "jitter",
            Metric::Omissions => "omissions",
            Metric::PacketLoss => "packet loss",
            Metric::Checksums => "checksums",
        }
    }

    /// The normal range, for people.
    pub const fn normal(self) -> &'static str {
        match self {
            Metric::PredictionDepth => "steady, up to 20 ticks",
            Metric::TickDeficit => "0 to 2 ticks",
            Metric::Rtt => "steady, whatever it is",
            Metric::Jitter => "up to 25 ms",
            Metric::Omissions => "none",
            Metric::PacketLoss => "up to 1 %",
            Metric::Checksums => "all agree",
        }
    }
}

/// Whether a figure is in its normal range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// In the normal range.
    Normal,
    /// Outside the normal range.
    Concerning,
}

/// One figure with its normal range and its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// The metric.
    pub metric: Metric,
    /// The value of the figure.
    pub value: String,
    /// The normal range.
    pub normal: &'static str,
    /// Whether the figure is in that range.
    pub level: Level,
    /// What the figure means, in a sentence.
    pub verdict: &'static str,
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.level == Level::Normal { ' ' } else { '!' };
        let (name, value) = (self.metric.name(), &self.value);
        write!(f, "{mark} {name:<16} {value:<26} ({}): {}", self.normal, self.verdict)
    }
}

/// A correction at a greater depth than this is visible.
const MAX_DEPTH_TICKS: u32 = 20;
/// A change of depth by more than this within a second is noticeable.
const MAX_DEPTH_SPREAD_TICKS: u32 = 5;
const MAX_DEFICIT_TICKS: u32 = 2;
const MAX_JITTER_US: u32 = 25_000;
const MAX_LOSS_PERMILLE: u32 = 10;
/// A round trip counts as longer than usual from 50 % more on, and by at least this much.
const RTT_NOISE_US: u32 = 20_000;

struct Ms(u32);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} ms", self.0 / 1_000, self.0 % 1_000 / 100)
    }
}

impl Diagnostics {
    /// Every figure with its range and verdict.
    pub fn readings(&self) -> [Reading; 7] {
        [
            self.depth(),
            self.deficit(),
            self.rtt(),
            self.jitter(),
            self.omissions(),
            self.packet_loss(),
            self.checksums(),
        ]
    }

    /// The verdict of the worst figure.
    pub fn verdict(&self) -> &'static str {
        // Desyncs before delays, causes before their effects.
        let order = [6, 1, 5, 3, 4, 2, 0];
        let readings = self.readings();
        let worst = order.iter().map(|at| &readings[*at]).find(|reading| reading.level == Level::Concerning);
        worst.map_or("Everything is as it should be.", |reading| reading.verdict)
    }

    fn depth(&self) -> Reading {
        let (low, high) = self.depth_range_ticks;
        let value = format!("{} ticks ({low} to {high})", self.depth_ticks);
        let verdict = if high > MAX_DEPTH_TICKS {
            "The relay is far away: corrections of wrong guesses will be seen."
        } else if high.saturating_sub(low) > MAX_DEPTH_SPREAD_TICKS {
            "The distance to the relay keeps changing: the connection is unsteady."
        } else {
            return reading(Metric::PredictionDepth, value, None, "As far ahead as the round trip needs.");
        };
        reading(Metric::PredictionDepth, value, Some(verdict), "")
    }

    fn deficit(&self) -> Reading {
        let (network, cpu) = (self.network_deficit_ticks, self.cpu_deficit_ticks);
        let value = format!("{network} network, {cpu} cpu");
        let verdict = if cpu > MAX_DEFICIT_TICKS && cpu >= network {
            Some("This machine is too slow or was busy with something else: ticks waited to be simulated.")
        } else if network > MAX_DEFICIT_TICKS {
            Some("Confirmed ticks arrive late: packets from the relay are lost or held up.")
        } else {
            None
        };
        reading(Metric::TickDeficit, value, verdict, "Confirmed ticks arrive and are simulated in time.")
    }

    fn rtt(&self) -> Reading {
        let value = format!("{} (link {})", Ms(self.input_rtt_us), Ms(self.link_rtt_us));
        let usual = self.usual_input_rtt_us;
        let is_long = self.input_rtt_us > usual + (usual / 2).max(RTT_NOISE_US);
        let verdict = is_long.then_some("The round trip has become longer than it usually is.");
        reading(Metric::Rtt, value, verdict, "The round trip is steady.")
    }

    fn jitter(&self) -> Reading {
        let is_high = self.jitter_us > MAX_JITTER_US;
        let verdict =
            is_high.then_some("The round trip varies a lot: inputs are sent earlier to make up for it.");
        reading(Metric::Jitter, format!("{}", Ms(self.jitter_us)), verdict, "The connection is even.")
    }

    fn omissions(&self) -> Reading {
        let value = format!("{} now, {} in all", self.omissions, self.total_omissions);
        let verdict = (self.omissions > 0)
            .then_some("Inputs reached the relay too late and did nothing; they are being sent earlier now.");
        reading(Metric::Omissions, value, verdict, "Every input reached the relay in time.")
    }

    fn packet_loss(&self) -> Reading {
        let value = format!("{}.{} %", self.loss_permille / 10, self.loss_permille % 10);
        let is_high = self.loss_permille > MAX_LOSS_PERMILLE;
        let verdict =
            is_high.then_some("Packets are lost: everything is sent several times to make up for it.");
        reading(Metric::PacketLoss, value, verdict, "Packets arrive.")
    }

    fn checksums(&self) -> Reading {
        let value = format!("agreed at {}, {} differed", self.agreed.0, self.mismatches);
        let verdict = match (self.resyncs, self.mismatches) {
            (0, 0) => None,
            (0, _) => Some("Another player's state differed: a determinism bug or a broken machine."),
            _ => {
                Some("This player's state differed and was replaced: a determinism bug or a broken machine.")
            }
        };
        reading(Metric::Checksums, value, verdict, "All players have the same state.")
    }
}

fn reading(metric: Metric, value: String, concern: Option<&'static str>, fine: &'static str) -> Reading {
    let level = if concern.is_some() { Level::Concerning } else { Level::Normal };
    Reading { metric, value, normal: metric.normal(), level, verdict: concern.unwrap_or(fine) }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict())?;
        self.readings().iter().try_for_each(|reading| writeln!(f, "{reading}"))
    }
}
