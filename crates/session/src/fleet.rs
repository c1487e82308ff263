//! The hosts that a gateway runs on its own machine: which processes there should be, one for each port of a pool.
//!
//! After each [`Fleet::handle`], [`Fleet::poll_output`] is called until it says [`Output::WakeAt`]. A few hosts are kept ready, more are
//! started when sessions wait for a place, and those that nobody needs end. One that dies with sessions is started again where it was,
//! and finds them. Nothing lives only here: a gateway that was killed finds the processes by their ports.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use sametick_sim::Time;

use crate::still::{LOOK_US, still_us};

/// The ports of hosts, if nothing else is said (B6).
pub const PORTS: RangeInclusive<u16> = 8_081..=8_180;

/// So many hosts without a session are kept ready: whoever wants a session does not wait for a process.
pub const SPARE: usize = 2;

/// At most so many start at once, whatever for: each takes a core for a moment.
const MAX_STARTING: usize = 4;

/// A host that was started is heard of within this, or it is ended.
pub const START_US: u64 = 15_000_000;

/// A host that has not been heard of for so long hangs: it is ended, and started again. As long as until its players are told.
pub const HUNG_US: u64 = crate::catalog::LOST_US;

/// A host without a session that is not needed is kept for so long.
pub const IDLE_US: u64 = 30_000_000;

/// After all hosts were told to end, they have so long.
pub const STOP_US: u64 = 28_000_000;

/// A port where no host can be started is left alone for so long, and twice as long each time after that.
const REST_US: u64 = 1_000_000;
const MAX_RESTS: u32 = 6;

/// How many hosts there should be.
#[derive(Clone, Debug)]
pub struct FleetConfig {
    /// Where they may listen.
    pub ports: RangeInclusive<u16>,
    /// How many without a session are kept ready.
    pub spare: usize,
}

impl Default for FleetConfig {
    fn default() -> FleetConfig {
        FleetConfig { ports: PORTS, spare: SPARE }
    }
}

/// What happens to a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// What there is at a port when a gateway begins.
    Found {
        /// Where.
        port: u16,
        /// A host runs there that somebody else has started: a gateway before, or the operator. It is left alone until it is heard of.
        is_up: bool,
        /// There are sessions that go on when a host is started.
        has_sessions: bool,
    },
    /// The host there has said how many sessions it has, and takes more if it has room.
    Heard {
        /// Where.
        port: u16,
        /// How many, with whatever else it is needed for.
        sessions: usize,
        /// It will end.
        is_draining: bool,
    },
    /// The process there has ended.
    Exited {
        /// Where.
        port: u16,
        /// It has sessions that go on when it is started again.
        has_sessions: bool,
    },
    /// So many sessions wait for a place.
    Wanted(usize),
    /// So many without a session are to be kept ready from now on.
    Spare(usize),
    /// All are to end.
    Drain,
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a fleet wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Start a host there.
    Start(u16),
    /// Tell the host there to end in order.
    Stop(u16),
    /// End it at once.
    Kill(u16),
    /// All have ended that were to.
    Done,
    /// Nothing more before this time.
    WakeAt(Option<Time>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Nobody is there; nobody is started before this.
    Free(Time),
    /// Somebody else has started it, and it has not been heard of: it may be nobody's business here.
    Found,
    /// Not heard of since it was started.
    Starting(Time),
    /// When it was heard of last, and since when it has no session.
    Up { heard_at: Time, idle_since: Option<Time> },
    /// Told to end.
    Stopping(Time),
    /// Killed, and not gone yet.
    Killed,
}

impl Slot {
    /// As if it had come to this so much later.
    fn later(self, us: u64) -> Slot {
        match self {
            Slot::Starting(since) => Slot::Starting(since.plus_micros(us)),
            Slot::Up { heard_at, idle_since } => Slot::Up {
                heard_at: heard_at.plus_micros(us),
                idle_since: idle_since.map(|since| since.plus_micros(us)),
            },
            Slot::Stopping(since) => Slot::Stopping(since.plus_micros(us)),
            Slot::Free(_) | Slot::Found | Slot::Killed => self,
        }
    }

    /// Whether it is one that has to end before all have.
    fn is_ours(self) -> bool {
        !matches!(self, Slot::Free(_) | Slot::Found)
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    slot: Slot,
    /// How often in a row nobody could be started here.
    failures: u32,
    /// Whoever was here last has left sessions that go on.
    has_sessions: bool,
}

/// The hosts of a machine.
pub struct Fleet {
    config: FleetConfig,
    now: Time,
    places: BTreeMap<u16, Place>,
    wanted: usize,
    draining_since: Option<Time>,
    is_done: bool,
    outputs: VecDeque<Output>,
}

impl Fleet {
    /// Nobody is there yet.
    pub fn new(now: Time, config: FleetConfig) -> Fleet {
        let place = Place { slot: Slot::Free(now), failures: 0, has_sessions: false };
        let places = config.ports.clone().map(|port| (port, place)).collect();
        Fleet {
            config,
            now,
            places,
            wanted: 0,
            draining_since: None,
            is_done: false,
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, now: Time, input: Input) {
        if let Some(still_us) = still_us(self.now, now) {
            self.places.values_mut().for_each(|place| place.slot = place.slot.later(still_us));
            self.draining_since = self.draining_since.map(|since| since.plus_micros(still_us));
        }
        self.now = self.now.max(now);
        match input {
            Input::Found { port, is_up, has_sessions } => self.found(port, is_up, has_sessions),
            Input::Heard { port, sessions, is_draining } => self.heard(port, sessions, is_draining),
            Input::Exited { port, has_sessions } => self.exited(port, has_sessions),
            Input::Wanted(wanted) => self.wanted = wanted,
            Input::Spare(spare) => self.config.spare = spare,
            Input::Drain => {
                self.draining_since.get_or_insert(self.now);
                self.stop(|slot| matches!(slot, Slot::Stopping(_)));
            }
            Input::Timeout => {}
        }
        if self.draining_since.is_some() { self.drain() } else { self.adjust() }
    }

    /// What is wanted next.
    pub fn poll_output(&mut self) -> Output {
        self.outputs.pop_front().unwrap_or_else(|| Output::WakeAt(self.wake_at()))
    }

    /// The ports where a process is, or is about to be.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        let taken = self.places.iter().filter(|(_, place)| !matches!(place.slot, Slot::Free(_)));
        taken.map(|(port, _)| *port)
    }

    fn found(&mut self, port: u16, is_up: bool, has_sessions: bool) {
        if let Some(place) = self.places.get_mut(&port)
            && matches!(place.slot, Slot::Free(_))
        {
            place.has_sessions = has_sessions;
            if is_up {
                place.slot = Slot::Found;
            }
        }
    }

    fn heard(&mut self, port: u16, sessions: usize, is_draining: bool) {
        let Some(place) = self.places.get_mut(&port) else { return };
        let is_needed = sessions > 0 && !is_draining && self.draining_since.is_none();
        let since = match place.slot {
            Slot::Up { idle_since, .. } => idle_since,
            Slot::Free(_) | Slot::Found | Slot::Starting(_) => None,
            // It got a session before it was told to end, and stays.
            Slot::Stopping(_) if is_needed => None,
            // It has not heard that it is to end.
            Slot::Stopping(_) if !is_draining => return self.outputs.push_back(Output::Stop(port)),
            Slot::Stopping(_) | Slot::Killed => return,
        };
        (place.failures, place.has_sessions) = (0, false);
        let idle_since = (sessions == 0).then(|| since.unwrap_or(self.now));
        place.slot = match is_draining {
            true => Slot::Stopping(self.now),
            false => Slot::Up { heard_at: self.now, idle_since },
        };
    }

    fn exited(&mut self, port: u16, has_sessions: bool) {
        let Some(place) = self.places.get_mut(&port) else { return };
        place.failures = match place.slot {
            Slot::Starting(_) => (place.failures + 1).min(MAX_RESTS),
            Slot::Free(_) => return,
            _ => 0,
        };
        let rest_us = if place.failures == 0 { 0 } else { REST_US << place.failures };
        place.slot = Slot::Free(self.now.plus_micros(rest_us));
        place.has_sessions = has_sessions;
    }

    fn start(&mut self, port: u16) {
        if let Some(place) = self.places.get_mut(&port) {
            place.slot = Slot::Starting(self.now);
            self.outputs.push_back(Output::Start(port));
        }
    }

    /// Ends what hangs and what nobody needs, and starts what is needed.
    fn adjust(&mut self) {
        self.kill(|slot, now| match slot {
            Slot::Starting(since) => now.micros_since(since) >= START_US,
            Slot::Up { heard_at, .. } => now.micros_since(heard_at) >= HUNG_US,
            Slot::Stopping(since) => now.micros_since(since) >= STOP_US,
            Slot::Free(_) | Slot::Found | Slot::Killed => false,
        });
        let count = |is: fn(&Slot) -> bool| self.places.values().filter(|place| is(&place.slot)).count();
        let starting = count(|slot| matches!(slot, Slot::Starting(_)));
        let idle = count(|slot| matches!(slot, Slot::Up { idle_since: Some(_), .. }));
        let target = self.config.spare + self.wanted;
        let missing = target.saturating_sub(idle + starting);
        let is_free = |place: &Place| matches!(place.slot, Slot::Free(at) if at <= self.now);
        let free = self.places.iter().filter(|(_, place)| is_free(place));
        // Sessions that wait come before those that may.
        let (owed, spare): (Vec<_>, Vec<_>) = free.partition(|(_, place)| place.has_sessions);
        let chosen = owed.into_iter().chain(spare.into_iter().take(missing));
        let chosen = chosen.take(MAX_STARTING.saturating_sub(starting));
        for port in chosen.map(|(port, _)| *port).collect::<Vec<_>>() {
            self.start(port);
        }
        self.stop_idle(idle.saturating_sub(target));
    }

    /// Those that have had no session for the longest end, at most so many.
    fn stop_idle(&mut self, most: usize) {
        let now = self.now;
        let long = |slot: Slot| matches!(slot, Slot::Up { idle_since: Some(since), .. } if now.micros_since(since) >= IDLE_US);
        let idle = self.places.iter_mut().rev().filter(|(_, place)| long(place.slot));
        for (port, place) in idle.take(most) {
            place.slot = Slot::Stopping(now);
            self.outputs.push_back(Output::Stop(*port));
        }
    }

    fn kill(&mut self, is_due: impl Fn(Slot, Time) -> bool) {
        let now = self.now;
        for (port, place) in self.places.iter_mut().filter(|(_, place)| is_due(place.slot, now)) {
            place.slot = Slot::Killed;
            self.outputs.push_back(Output::Kill(*port));
        }
    }

    /// Tells hosts to end, also those that were told before.
    fn stop(&mut self, is_due: impl Fn(Slot) -> bool) {
        let now = self.now;
        for (port, place) in self.places.iter_mut().filter(|(_, place)| is_due(place.slot)) {
            place.slot = Slot::Stopping(now);
            self.outputs.push_back(Output::Stop(*port));
        }
    }

    fn drain(&mut self) {
        let (now, since) = (self.now, self.draining_since.unwrap_or(self.now));
        let is_over = now.micros_since(since) >= STOP_US;
        if is_over {
            self.kill(|slot, _| slot.is_ours() && slot != Slot::Killed);
        }
        self.stop(|slot| matches!(slot, Slot::Starting(_) | Slot::Up { .. }));
        let are_gone = !self.places.values().any(|place| place.slot.is_ours());
        if are_gone && !core::mem::replace(&mut self.is_done, are_gone) {
            self.outputs.push_back(Output::Done);
        }
    }

    fn wake_at(&self) -> Option<Time> {
        let is_watched = self.places.values().any(|place| place.slot.is_ours());
        let look = is_watched.then(|| self.now.plus_micros(LOOK_US));
        if let Some(since) = self.draining_since {
            let end = (!self.is_done).then(|| since.plus_micros(STOP_US)).filter(|at| *at > self.now);
            return end.into_iter().chain(look).min();
        }
        let ends = self.places.values().flat_map(|place| match place.slot {
            Slot::Free(at) => [Some(at), None],
            Slot::Starting(since) => [Some(since.plus_micros(START_US)), None],
            Slot::Up { heard_at, idle_since } => {
                [Some(heard_at.plus_micros(HUNG_US)), idle_since.map(|since| since.plus_micros(IDLE_US))]
            }
            Slot::Stopping(since) => [Some(since.plus_micros(STOP_US)), None],
            Slot::Found | Slot::Killed => [None, None],
        });
        ends.flatten().filter(|at| *at > self.now).chain(look).min()
    }
}
