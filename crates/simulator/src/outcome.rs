//! The results of worlds: violations, counters and traces.

use std::fmt;

use sametick_sim::Time;

use crate::faults::FaultCounts;

/// A violated property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The checker that found it.
    pub checker: Checker,
    /// The time of the world.
    pub at: Time,
    /// The finding.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.checker.name(), self.at, self.what)
    }
}

/// The checked properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checker {
    /// Every peer has the state of the replay at every tick it confirms.
    States,
    /// The state on screen descends from the confirmed one.
    Screen,
    /// Each input that came in time is in its tick, once and unchanged, and no other is.
    Inputs,
    /// Ticks are closed in order, and on time.
    Ticks,
    /// The log contains every closed tick, and durable records survive.
    Log,
    /// Only a corrupted state is reported as desynced, with the right seat and tick, and it is repaired.
    Desync,
    /// No link is closed or times out without a fault that explains it.
    Links,
    /// A resuming client keeps its seat, is sent the ticks it lacks, and its player never left if the seat had not been
    /// given up.
    Back,
    /// Memory stays within its bounds.
    Bounds,
    /// After the faults stop, all clients play, agree, and omit nothing.
    Recovery,
    /// A machine panicked at an assertion.
    Panic,
}

impl Checker {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Checker::States => "states",
            Checker::Screen => "screen",
            Checker::Inputs => "inputs",
            Checker::Ticks => "ticks",
            Checker::Log => "log",
            Checker::Desync => "desync",
            Checker::Links => "links",
            Checker::Back => "back",
            Checker::Bounds => "bounds",
            Checker::Recovery => "recovery",
            Checker::Panic => "panic",
        }
    }
}

/// Counters of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Worlds.
    pub worlds: u64,
    /// Simulated time.
    pub simulated_us: u64,
    /// Simulated time in worlds with at least four clients.
    pub crowded_us: u64,
    /// Clients, times simulated microseconds.
    pub client_us: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Ticks closed.
    pub ticks: u64,
    /// Inputs that were in their ticks.
    pub inputs: u64,
    /// Inputs that were missing when their tick closed.
    pub omissions: u64,
    /// Confirmed states that were compared with the replay.
    pub states: u64,
    /// Joins.
    pub joins: u64,
    /// Resumes with the client's own state.
    pub back: u64,
    /// Resumes before the relay knew that the old link was gone.
    pub takeovers: u64,
    /// Ticks that resuming clients had, and were not sent.
    pub spared: u64,
    /// Saves from players or replays that were compared with the full replay.
    pub saves: u64,
    /// Late joins that started from a save.
    pub late_joins: u64,
    /// Sessions resumed after the relay had been killed.
    pub restarts: u64,
    /// Those in which ticks were taken back that the relay still had.
    pub rewinds: u64,
    /// Lost rewinds that no client remembered: the session went on with the void ticks.
    pub revived: u64,
    /// Sessions resumed after they had ended: with log and save, with the log alone, with a save alone.
    pub resumed: [u64; 3],
    /// Checks that play is back within five seconds of a restart.
    pub in_time: u64,
    /// Clients that then went back to an earlier tick.
    pub rewound: u64,
    /// Ticks that clients gave to a relay that had lost them.
    pub given: u64,
    /// Own inputs that clients sent again.
    pub sent_again: u64,
    /// Links that timed out.
    pub time_outs: u64,
    /// Corrupted states that were detected and repaired.
    pub mended: u64,
    /// Ticks that were simulated again.
    pub resimulated: u64,
    /// Ticks that were read from a log and compared.
    pub logged: u64,
}

impl Figures {
    /// Adds the counters of another world.
    pub fn add(&mut self, other: &Figures) {
        let pairs = [
            (&mut self.worlds, other.worlds),
            (&mut self.simulated_us, other.simulated_us),
            (&mut self.crowded_us, other.crowded_us),
            (&mut self.client_us, other.client_us),
            (&mut self.sessions, other.sessions),
            (&mut self.ticks, other.ticks),
            (&mut self.inputs, other.inputs),
            (&mut self.omissions, other.omissions),
            (&mut self.states, other.states),
            (&mut self.joins, other.joins),
            (&mut self.back, other.back),
            (&mut self.takeovers, other.takeovers),
            (&mut self.spared, other.spared),
            (&mut self.saves, other.saves),
            (&mut self.late_joins, other.late_joins),
            (&mut self.restarts, other.restarts),
            (&mut self.rewinds, other.rewinds),
            (&mut self.revived, other.revived),
            (&mut self.in_time, other.in_time),
            (&mut self.rewound, other.rewound),
            (&mut self.given, other.given),
            (&mut self.sent_again, other.sent_again),
            (&mut self.time_outs, other.time_outs),
            (&mut self.mended, other.mended),
            (&mut self.resimulated, other.resimulated),
            (&mut self.logged, other.logged),
        ];
        let resumed = self.resumed.iter_mut().zip(other.resumed);
        pairs.into_iter().chain(resumed).for_each(|(sum, more)| *sum += more);
    }
}

/// The result of one world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// Its counters.
    pub figures: Figures,
    /// Its faults.
    pub faults: FaultCounts,
    /// A hash of the whole run: equal for the same seed.
    pub digest: u64,
    /// The violation, if there is one.
    pub violation: Option<Violation>,
    /// The last events, if tracing was on.
    pub trace: Vec<String>,
}
