//! The host processes that a gateway runs on its own machine, one for each port of a pool.
//!
//! After each [`Fleet::handle`], the driver calls [`Fleet::poll_output`] until it returns [`Output::WakeAt`]. The fleet
//! keeps a few hosts ready, starts more when sessions wait for a place, and stops idle ones. A host that dies with
//! sessions is restarted on its port and finds them. No state lives only here: a gateway that was killed finds the
//! processes by their ports.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use sametick_sim::Time;

use crate::still::{LOOK_US, still_us};

/// The default ports of hosts (B6).
pub const PORTS: RangeInclusive<u16> = 8_081..=8_180;

/// The number of hosts without a session that are kept ready, so that a new session does not wait for a process.
pub const SPARE: usize = 2;

/// The most hosts that start at once: each takes a core for a moment.
const MAX_STARTING: usize = 4;

/// A host has to send its first beat within this time, or it is killed.
pub const START_US: u64 = 15_000_000;

/// A host that is silent for this long hangs: it is killed and restarted. Equal to the time after which its players are
/// told.
pub const HUNG_US: u64 = crate::catalog::LOST_US;

/// An idle host that is not needed is stopped after this time.
pub const IDLE_US: u64 = 30_000_000;

/// The time that hosts have to shut down.
pub const STOP_US: u64 = 28_000_000;

/// The back-off of a port where no host can be started; it doubles with each failure.
const REST_US: u64 = 1_000_000;
const MAX_RESTS: u32 = 6;

/// The size of a fleet.
#[derive(Clone, Debug)]
pub struct FleetConfig {
    /// The ports where hosts may listen.
    pub ports: RangeInclusive<u16>,
    /// The number of hosts without a session that are kept ready.
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
    /// The state of a port when a gateway starts.
    Found {
        /// The port.
        port: u16,
        /// Another process has started a host there: an earlier gateway, or the operator. It is left alone until its
        /// first beat.
        is_up: bool,
        /// Stored sessions go on there once a host is started.
        has_sessions: bool,
    },
    /// The host there has reported its sessions; it takes more if it has room.
    Heard {
        /// The port.
        port: u16,
        /// The number of sessions and other things it is needed for.
        sessions: usize,
        /// It is shutting down.
        is_draining: bool,
    },
    /// The process there has exited.
    Exited {
        /// The port.
        port: u16,
        /// It has sessions that go on when it is restarted.
        has_sessions: bool,
    },
    /// The number of sessions that wait for a place.
    Wanted(usize),
    /// Changes the number of hosts without a session that are kept ready.
    Spare(usize),
    /// All hosts have to shut down.
    Drain,
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a fleet asks its driver to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Start a host on this port.
    Start(u16),
    /// Tell the host on this port to shut down.
    Stop(u16),
    /// Kill the host on this port.
    Kill(u16),
    /// All hosts of this fleet have shut down.
    Done,
    /// Nothing to do before this time.
    WakeAt(Option<Time>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// No process; none is started before this time.
    Free(Time),
    /// Started by another process and not heard of yet: perhaps not a host of this fleet.
    Found,
    /// Started, and not heard of yet.
    Starting(Time),
    /// When it was heard of last, and since when it has no session.
    Up { heard_at: Time, idle_since: Option<Time> },
    /// Told to shut down.
    Stopping(Time),
    /// Killed, and not gone yet.
    Killed,
}

impl Slot {
    /// Shifts all its times by this much.
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

    /// Whether draining has to wait for it.
    fn is_ours(self) -> bool {
        !matches!(self, Slot::Free(_) | Slot::Found)
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    slot: Slot,
    /// Failed starts in a row.
    failures: u32,
    /// The last host here has left sessions that go on.
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
    /// A fleet without any process yet.
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

    /// Handles an event.
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

    /// The next output.
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
            // It got a session before it was told to stop, and stays.
            Slot::Stopping(_) if is_needed => None,
            // It has not heard that it has to stop.
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

    /// Kills hosts that hang, stops those that are not needed, and starts those that are.
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
        // Ports with stored sessions come before spare hosts.
        let (owed, spare): (Vec<_>, Vec<_>) = free.partition(|(_, place)| place.has_sessions);
        let chosen = owed.into_iter().chain(spare.into_iter().take(missing));
        let chosen = chosen.take(MAX_STARTING.saturating_sub(starting));
        for port in chosen.map(|(port, _)| *port).collect::<Vec<_>>() {
            self.start(port);
        }
        self.stop_idle(idle.saturating_sub(target));
    }

    /// Stops at most this many hosts, those that have been idle for the longest.
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

    /// Tells hosts to shut down, also those that were told before.
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
