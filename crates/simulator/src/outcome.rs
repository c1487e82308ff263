//! What became of one world, and of many.

use std::fmt;

use sametick_sim::Time;

use crate::faults::FaultCounts;

/// Something that must never happen, and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which checker found it.
    pub checker: Checker,
    /// When, in the world's time.
    pub at: Time,
    /// What it was.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.checker.name(), self.at, self.what)
    }
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checker {
    /// Every peer has the state of the replay at every tick it confirms.
    States,
    /// The state on screen is made from the confirmed one.
    Screen,
    /// Each input that came in time is in its tick, once and as it was, and nothing else is.
    Inputs,
    /// Ticks are closed one after the other, and on time.
    Ticks,
    /// The log holds what was closed, and what was durable survives.
    Log,
    /// Only a state that was tampered with is called wrong: the right seat and tick, and it is mended.
    Desync,
    /// Nobody is thrown out or times out without a fault that explains it.
    Links,
    /// Who comes back has what was its own, is sent what it lacks, and was never away if its seat had not been given up.
    Back,
    /// Memory stays within its bounds.
    Bounds,
    /// Once faults stop, everybody plays, agrees, and omits nothing.
    Recovery,
    /// A machine stopped at an assertion.
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

/// Figures of a world: what was done and compared in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Worlds.
    pub worlds: u64,
    /// Simulated time.
    pub simulated_us: u64,
    /// The part of it in worlds with at least four clients.
    pub crowded_us: u64,
    /// Clients, times simulated microseconds.
    pub client_us: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Ticks closed.
    pub ticks: u64,
    /// Inputs that were in their ticks.
    pub inputs: u64,
    /// Inputs that were not there when their tick closed.
    pub omissions: u64,
    /// Confirmed states that were compared with the replay.
    pub states: u64,
    /// Times somebody joined.
    pub joins: u64,
    /// Times somebody came back to the session it was in, with the state it had.
    pub back: u64,
    /// Times somebody came back before the relay knew that it was gone.
    pub takeovers: u64,
    /// Ticks that those who came back had, and were not sent.
    pub spared: u64,
    /// Saves that players gave, or a replay, and that were compared with the replay of everything.
    pub saves: u64,
    /// Times somebody began with one.
    pub late_joins: u64,
    /// Times a session was taken up again after the relay had been killed.
    pub restarts: u64,
    /// Of those, how often ticks were taken back that the relay still had.
    pub rewinds: u64,
    /// Times nobody came back who knew of a rewind that the log had lost: the session went on with what was void.
    pub revived: u64,
    /// Times a session that had ended was taken up again: with its log and a save, with its log alone, with a save alone.
    pub resumed: [u64; 3],
    /// Times it was looked whether somebody plays again within five seconds of a restart.
    pub in_time: u64,
    /// Times a client went back to an earlier tick then.
    pub rewound: u64,
    /// Ticks that clients gave to a relay that had lost them.
    pub given: u64,
    /// Own inputs that clients sent again.
    pub sent_again: u64,
    /// Times a link timed out.
    pub time_outs: u64,
    /// States that were tampered with, found and mended.
    pub mended: u64,
    /// Ticks that were simulated again.
    pub resimulated: u64,
    /// Ticks that were read from a log and compared.
    pub logged: u64,
}

impl Figures {
    /// Adds those of another world.
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

/// What became of one world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The seed it was made from.
    pub seed: u64,
    /// What was done in it.
    pub figures: Figures,
    /// What went wrong on purpose.
    pub faults: FaultCounts,
    /// The same for the same seed, and for no other.
    pub digest: u64,
    /// What should not have happened.
    pub violation: Option<Violation>,
    /// What happened last, if that was asked for.
    pub trace: Vec<String>,
}
