//! An open room: its host, its members, and the times of its ticks.

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
    /// The room has been empty for long enough.
    Empty,
    /// Its game has panicked.
    Failed,
    /// The driver ends it for this reason.
    Told(&'static str),
}

/// An open room.
pub struct OpenRoom {
    pub(super) key: SessionKey,
    pub(super) facts: Facts,
    pub(super) host: Box<dyn AnyHost>,
    /// When it began, in milliseconds of Unix time.
    pub(super) started_unix_ms: u64,
    /// Whether a save is due, once all outputs of the last tick are taken.
    pub(super) is_save_due: bool,
    /// The key of its stored state.
    pub(super) place: PlaceId,
    /// The active character of each player.
    pub(super) cast: BTreeMap<PlayerId, String>,
    /// Changes of character that apply once the previous character's state is stored.
    pub(super) recasts: VecDeque<(PlayerId, String)>,
    /// Whether it goes on while empty, until it is ended.
    pub(super) stays: bool,
    /// Whether the outcome was output.
    pub(super) is_told: bool,
    /// Since when it is empty.
    pub(super) empty_since: Option<Time>,
    /// Its entry in `wakes`.
    pub(super) wake_at: Option<Time>,
    pub(super) is_busy: bool,
    pub(super) ending: Option<Ending>,
    /// When the running step began, by the rooms' clock.
    pub(super) stepping: Option<u64>,
    pub(super) times: TickTimes,
    /// The founder, for limits.
    pub(super) founder: Founder,
    pub(super) pace: Pace,
}

/// The speed of a room.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Ticks since the last charge.
    pub ticks: u64,
    /// The speed in percent, the one its players were told last, and when.
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
    /// The facts that never change.
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

    /// The canonical bytes of its state, their hash, and the taken seats.
    pub fn save(&self) -> (Vec<u8>, StateHash, Vec<Seat>) {
        let (state, hash) = self.host.save();
        (state, hash, self.host.taken())
    }

    /// The inputs of the tick in the last `Output::Stepped`.
    pub fn inputs(&self) -> &TickInputs {
        self.host.inputs()
    }

    /// All participants.
    pub fn participants(&self) -> impl Iterator<Item = Participant<'_>> {
        self.host.participants()
    }

    /// The costs of running it so far.
    pub fn stats(&self) -> HostStats {
        self.host.stats()
    }

    /// Recent tick times, until all outputs were handed to the links.
    pub fn times(&self) -> Times {
        self.times.lately()
    }

    /// Its speed in percent: below 100 if it wants more than its share of the server's time.
    pub fn speed_percent(&self) -> u8 {
        self.pace.percent
    }

    /// Passes an input to the host. A game that panics ends its room.
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
