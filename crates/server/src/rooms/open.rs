//! A room that is open: its host, who is there, and how long its ticks take.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sametick_lockstep::relay::SessionKey;
use sametick_lockstep::session::Facts;
use sametick_room::host::{HostStats, Input, Participant};
use sametick_sim::record::TickInputs;
use sametick_sim::{Seat, StateHash, Tick, Time};
use sametick_store::players::{PlaceId, PlayerId};

use super::sharing::Founder;
use super::{AnyHost, TickTimes, Times};

/// Why a room ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Everybody has left, long enough ago.
    Empty,
    /// Its game has panicked.
    Failed,
    /// Whoever drives it wants it so, for this reason.
    Told(&'static str),
}

/// A room that is open.
pub struct OpenRoom {
    pub(super) key: SessionKey,
    pub(super) facts: Facts,
    pub(super) host: Box<dyn AnyHost>,
    /// When it began, in milliseconds of Unix time.
    pub(super) started_unix_ms: u64,
    /// It is time to save it, once everything is said of the last tick.
    pub(super) is_save_due: bool,
    /// What is kept of it is kept by this.
    pub(super) place: PlaceId,
    /// Who plays as whom.
    pub(super) cast: BTreeMap<PlayerId, String>,
    /// Who plays as somebody else, once what the last one has done was said.
    pub(super) recasts: VecDeque<(PlayerId, String)>,
    /// It goes on until it is ended, also while nobody is there.
    pub(super) stays: bool,
    /// It was said how its game has ended.
    pub(super) is_told: bool,
    /// Since when nobody is there.
    pub(super) empty_since: Option<Time>,
    /// The timer that is set for it.
    pub(super) wake_at: Option<Time>,
    pub(super) is_busy: bool,
    pub(super) ending: Option<Ending>,
    /// By the rooms' own clock.
    pub(super) stepping: Option<u64>,
    pub(super) times: TickTimes,
    /// Who has begun it.
    pub(super) founder: Founder,
    pub(super) pace: Pace,
}

/// How fast a room runs.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Ticks since it was last asked what they cost.
    pub ticks: u64,
    /// Of a hundred, and what its players were told last, and when.
    pub percent: u8,
    pub told: u8,
    pub told_at: Time,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { ticks: 0, percent: 100, told: 100, told_at: Time::ZERO }
    }
}

impl OpenRoom {
    /// What is said once about it.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The last tick that was stepped.
    pub fn tick(&self) -> Tick {
        self.host.tick()
    }

    /// When it began, in milliseconds of Unix time.
    pub fn started_unix_ms(&self) -> u64 {
        self.started_unix_ms
    }

    /// The canonical bytes of its state, what they hash to, and on which seats somebody sits.
    pub fn save(&self) -> (Vec<u8>, StateHash, Vec<Seat>) {
        let (state, hash) = self.host.save();
        (state, hash, self.host.taken())
    }

    /// What happened in the tick that `Output::Stepped` said last.
    pub fn inputs(&self) -> &TickInputs {
        self.host.inputs()
    }

    /// Everybody who takes part.
    pub fn participants(&self) -> impl Iterator<Item = Participant<'_>> {
        self.host.participants()
    }

    /// What it has cost to run it so far.
    pub fn stats(&self) -> HostStats {
        self.host.stats()
    }

    /// How long its ticks took lately, until everything was handed to the links.
    pub fn times(&self) -> Times {
        self.times.lately()
    }

    /// At what speed it runs, of a hundred: less if it wants more than its share of the server's time.
    pub fn speed_percent(&self) -> u8 {
        self.pace.percent
    }

    /// Tells the host something. A game that panics ends its room.
    pub(super) fn handle(&mut self, now: Time, input: Input<'_>) {
        if catch_unwind(AssertUnwindSafe(|| self.host.handle(now, input))).is_err() {
            self.ending = Some(Ending::Failed);
        }
        match self.host.is_empty() {
            true => self.empty_since = self.empty_since.or(Some(now)),
            false => self.empty_since = None,
        }
    }
}
