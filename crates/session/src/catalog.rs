//! A gateway's catalogue of hosts and sessions. It is a cache: each host is the authority for its own sessions, and a
//! stale entry costs one more question.
//!
//! The storage behind [`Catalog`] can be this process's memory ([`Remembered`]), a file, or a store that several
//! gateways share. It may be stale, empty or wrong for a while, but it must not lose a host because one answer is
//! missing. docs/sessions.md has the rules.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::Time;
use serde::{Deserialize, Serialize};

use crate::id::{HostId, Incarnation, Key, SessionId};
use crate::lobby::{Filter, Listed};
use crate::name::Name;
use crate::placing::{Beat, Standing};
use crate::settings::{Mode, Settings};

/// A host gets no new sessions after a silence of this length: five beats.
pub const QUIET_US: u64 = 10_000_000;

/// A host counts as lost after a silence of this length, and its players are told.
pub const LOST_US: u64 = 60_000_000;

/// A host and its sessions are no longer listed after a silence of this length. A host that comes back reports its
/// sessions.
pub const FORGOTTEN_US: u64 = 10 * 60_000_000;

/// A host that crashes this often within [`CRASHES_WITHIN_US`] is quarantined.
pub const MAX_CRASHES: usize = 3;
/// See [`MAX_CRASHES`].
pub const CRASHES_WITHIN_US: u64 = 60_000_000;
/// A quarantined host gets no new sessions for this long.
pub const QUARANTINE_US: u64 = 5 * 60_000_000;

/// An answer may be this many beats ahead of the last one heard: beats get lost and delayed.
const MAX_AHEAD: u64 = 64;

/// The most hosts that a catalogue holds.
pub const MAX_HOSTS: usize = 1_024;

/// The health of a host, as the gateway sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Its beats arrive.
    Good,
    /// It has been silent for [`QUIET_US`].
    Quiet,
    /// It has been silent for [`LOST_US`].
    Lost,
    /// It takes no more sessions: it is shutting down, or has shut down in order.
    Draining,
    /// It has crashed too often.
    Quarantined,
}

/// What a catalogue holds of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostState {
    /// Where players reach it.
    pub address: String,
    /// The current incarnation of its process.
    pub life: Incarnation,
    /// Its health.
    pub health: Health,
    /// The most sessions that it takes.
    pub capacity: u16,
    /// The number of its sessions.
    pub sessions: usize,
    /// The number of players in them.
    pub players: usize,
    /// The last incarnation has shut down in order, and no other has started.
    pub has_ended: bool,
}

/// The gateway's view of all hosts and sessions.
pub trait Catalog {
    /// A host reports its state. A session that the beat no longer names is over. A beat older than the last one is
    /// ignored.
    fn beat(&mut self, now: Time, host: HostId, beat: &Beat);
    /// This incarnation of a host shuts down in order.
    fn bye(&mut self, now: Time, host: HostId, life: Incarnation);
    /// A host reports the state of a session, in an answer of this incarnation, after this many beats.
    fn note(&mut self, session: &Standing, life: Incarnation, beats: u64);
    /// A host reports that this session does not exist.
    fn forget(&mut self, session: SessionId);
    /// The gateway was suspended for this long: that time does not count as silence of the hosts.
    fn stood_still(&mut self, us: u64);
    /// Advances the time. Returns the hosts that are lost since the last call.
    fn pass_time(&mut self, now: Time) -> Vec<HostId>;
    /// When to call [`Catalog::pass_time`] next.
    fn wake_at(&self) -> Option<Time>;
    /// What is known of a host.
    fn host(&self, now: Time, host: HostId) -> Option<HostState>;
    /// All hosts.
    fn hosts(&self) -> Vec<HostId>;
    /// Hosts that may take a session with these settings, those with the most room first.
    fn candidates(&self, now: Time, settings: &Settings) -> Vec<HostId>;
    /// Whether any known host offers this game in this mode.
    fn is_offered(&self, game: &Name, mode: Mode) -> bool;
    /// The session that a request has created.
    fn made_by(&self, key: Key) -> Option<SessionId>;
    /// The sessions of a host.
    fn sessions_of(&self, host: HostId) -> Vec<SessionId>;
    /// At most `most` sessions that match the filter, and whether there are more. Sessions of lost hosts are left out.
    fn list(&self, now: Time, filter: &Filter, most: usize) -> (Vec<Listed>, bool);
    /// One session, listed or not, also if its host is silent.
    fn find(&self, session: SessionId) -> Option<Listed>;
    /// A number that changes whenever the lists may have changed.
    fn version(&self) -> u64;
}

/// What is known of a host, in memory.
#[derive(Clone, Debug)]
struct Known {
    life: Incarnation,
    beats: u64,
    heard_at: Time,
    address: String,
    capacity: u16,
    is_draining: bool,
    /// This incarnation has shut down in order.
    has_ended: bool,
    is_lost: bool,
    offers: Vec<(Name, Mode)>,
    crashes: Vec<Time>,
    quarantined_until: Time,
    /// Only known from storage; the host has not been heard of yet.
    is_recalled: bool,
    /// Each with the number of beats before which a beat that does not name it is ignored.
    sessions: BTreeMap<SessionId, (Standing, u64)>,
}

/// What is known of a host, as it is stored: see [`Remembered::row`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRow {
    /// The host.
    pub host: HostId,
    /// Its last beat, as far as it is known.
    pub beat: Beat,
    /// This incarnation has shut down in order.
    pub has_ended: bool,
}

/// A catalogue in this process's memory.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    hosts: BTreeMap<HostId, Known>,
    version: u64,
}

impl Known {
    fn new(now: Time, beat: &Beat) -> Known {
        Known {
            life: beat.life,
            beats: 0,
            heard_at: now,
            address: String::new(),
            capacity: 0,
            is_draining: false,
            has_ended: false,
            is_lost: false,
            offers: Vec::new(),
            crashes: Vec::new(),
            quarantined_until: Time::ZERO,
            is_recalled: false,
            sessions: BTreeMap::new(),
        }
    }

    fn health(&self, now: Time) -> Health {
        let silent_us = now.micros_since(self.heard_at);
        match () {
            () if silent_us >= LOST_US => Health::Lost,
            () if now < self.quarantined_until => Health::Quarantined,
            () if self.is_draining => Health::Draining,
            () if silent_us >= QUIET_US || self.is_recalled => Health::Quiet,
            () => Health::Good,
        }
    }

    /// Another incarnation has started.
    fn begin_life(&mut self, now: Time, life: Incarnation) {
        if !self.has_ended {
            self.crashes.retain(|at| now.micros_since(*at) < CRASHES_WITHIN_US);
            self.crashes.push(now);
            if self.crashes.len() >= MAX_CRASHES {
                self.quarantined_until = now.plus_micros(QUARANTINE_US);
                self.crashes.clear();
            }
        }
        (self.life, self.beats, self.has_ended) = (life, 0, false);
        // What was noted in the last incarnation may be gone: the next beat decides.
        self.sessions.values_mut().for_each(|(_, beats)| *beats = 0);
    }
}

impl Remembered {
    /// What is known of a host, to be stored.
    pub fn row(&self, host: HostId) -> Option<HostRow> {
        let known = self.hosts.get(&host)?;
        let beat = Beat {
            life: known.life,
            number: known.beats,
            address: known.address.clone(),
            capacity: known.capacity,
            is_draining: known.is_draining,
            offers: known.offers.clone(),
            sessions: known.sessions.values().map(|(standing, _)| standing.clone()).collect(),
            others: 0,
        };
        Some(HostRow { host, beat, has_ended: known.has_ended })
    }

    /// Loads a stored host. It counts as heard of just now, but gets no new sessions before its first beat.
    pub fn recall(&mut self, now: Time, row: &HostRow) {
        let HostRow { host, beat, has_ended } = row;
        let older = Beat { number: beat.number.max(1), ..beat.clone() };
        self.beat(now, *host, &older);
        if let Some(known) = self.hosts.get_mut(host) {
            (known.is_recalled, known.has_ended) = (true, *has_ended);
            known.beats = beat.number;
        }
    }
}

impl Catalog for Remembered {
    fn beat(&mut self, now: Time, host: HostId, beat: &Beat) {
        if !self.hosts.contains_key(&host) && self.hosts.len() >= MAX_HOSTS {
            return;
        }
        let known = self.hosts.entry(host).or_insert_with(|| Known::new(now, beat));
        if (beat.life, beat.number) <= (known.life, known.beats) || beat.life == known.life && known.has_ended
        {
            return;
        }
        if beat.life > known.life {
            known.begin_life(now, beat.life);
        }
        let was_lost = core::mem::take(&mut known.is_lost) | core::mem::take(&mut known.is_recalled);
        (known.beats, known.heard_at) = (beat.number, now);
        (known.capacity, known.is_draining) = (beat.capacity, beat.is_draining);
        known.address.clone_from(&beat.address);
        known.offers.clone_from(&beat.offers);
        let old = core::mem::take(&mut known.sessions);
        let own = beat.sessions.iter().filter(|standing| standing.summary.session.host == host);
        known.sessions = own.map(|standing| (standing.summary.session, (standing.clone(), 0))).collect();
        for (id, entry) in old.iter().filter(|(_, (_, beats))| *beats >= beat.number) {
            known.sessions.entry(*id).or_insert_with(|| entry.clone());
        }
        let is_same = known.sessions.values().map(|(one, _)| one).eq(old.values().map(|(one, _)| one));
        self.version += u64::from(was_lost || !is_same);
    }

    fn bye(&mut self, now: Time, host: HostId, life: Incarnation) {
        if let Some(known) = self.hosts.get_mut(&host).filter(|known| known.life == life) {
            (known.has_ended, known.is_draining, known.heard_at) = (true, true, now);
            self.version += 1;
        }
    }

    fn note(&mut self, standing: &Standing, life: Incarnation, beats: u64) {
        let id = standing.summary.session;
        if let Some(known) =
            self.hosts.get_mut(&id.host).filter(|known| life == known.life && beats >= known.beats)
        {
            let beats = beats.min(known.beats.saturating_add(MAX_AHEAD));
            let old = known.sessions.insert(id, (standing.clone(), beats));
            self.version += u64::from(old.is_none_or(|(old, _)| old != *standing));
        }
    }

    fn forget(&mut self, session: SessionId) {
        if let Some(known) = self.hosts.get_mut(&session.host) {
            known.sessions.remove(&session);
            self.version += 1;
        }
    }

    fn stood_still(&mut self, us: u64) {
        self.hosts.values_mut().for_each(|known| known.heard_at = known.heard_at.plus_micros(us));
    }

    fn pass_time(&mut self, now: Time) -> Vec<HostId> {
        let count = self.hosts.len();
        self.hosts.retain(|_, known| now.micros_since(known.heard_at) < FORGOTTEN_US);
        let mut lost = Vec::new();
        for (host, known) in &mut self.hosts {
            if !known.is_lost && now.micros_since(known.heard_at) >= LOST_US {
                known.is_lost = true;
                lost.push(*host);
            }
        }
        self.version += u64::from(count != self.hosts.len() || !lost.is_empty());
        lost
    }

    fn wake_at(&self) -> Option<Time> {
        let due =
            |known: &Known| known.heard_at.plus_micros(if known.is_lost { FORGOTTEN_US } else { LOST_US });
        self.hosts.values().map(due).min()
    }

    fn host(&self, now: Time, host: HostId) -> Option<HostState> {
        let known = self.hosts.get(&host)?;
        Some(HostState {
            address: known.address.clone(),
            life: known.life,
            health: known.health(now),
            capacity: known.capacity,
            sessions: known.sessions.len(),
            players: known.sessions.values().map(|(standing, _)| usize::from(standing.summary.players)).sum(),
            has_ended: known.has_ended,
        })
    }

    fn hosts(&self) -> Vec<HostId> {
        self.hosts.keys().copied().collect()
    }

    fn candidates(&self, now: Time, settings: &Settings) -> Vec<HostId> {
        let room = |known: &Known| usize::from(known.capacity).saturating_sub(known.sessions.len());
        let has_it = |known: &Known| {
            known.offers.iter().any(|(game, mode)| (game, *mode) == (&settings.game, settings.mode))
        };
        let is_good = |known: &Known| known.health(now) == Health::Good && room(known) > 0 && has_it(known);
        let mut good: Vec<(usize, HostId)> = self
            .hosts
            .iter()
            .filter(|(_, known)| is_good(known))
            .map(|(id, known)| (room(known), *id))
            .collect();
        good.sort_by_key(|(room, id)| (usize::MAX - room, *id));
        good.into_iter().map(|(_, id)| id).collect()
    }

    fn is_offered(&self, game: &Name, mode: Mode) -> bool {
        let mut offers = self.hosts.values().flat_map(|known| &known.offers);
        offers.any(|(name, offered)| (name, *offered) == (game, mode))
    }

    fn made_by(&self, key: Key) -> Option<SessionId> {
        let all = self.hosts.values().flat_map(|known| known.sessions.iter());
        all.into_iter().find(|(_, (standing, _))| standing.key == key).map(|(id, _)| *id)
    }

    fn sessions_of(&self, host: HostId) -> Vec<SessionId> {
        self.hosts.get(&host).map(|known| known.sessions.keys().copied().collect()).unwrap_or_default()
    }

    fn list(&self, now: Time, filter: &Filter, most: usize) -> (Vec<Listed>, bool) {
        let there = self.hosts.values().filter(|known| known.health(now) != Health::Lost && !known.has_ended);
        let all = there.flat_map(|known| {
            known.sessions.values().map(|(standing, _)| (&standing.summary, &known.address))
        });
        let mut wanted: Vec<_> = all.filter(|(summary, _)| filter.wants(summary)).collect();
        wanted.sort_by_key(|(summary, _)| (u16::MAX - summary.players, summary.session));
        let is_more = wanted.len() > most;
        let listed = wanted.into_iter().take(most);
        let listed =
            listed.map(|(summary, address)| Listed { summary: summary.clone(), address: address.clone() });
        (listed.collect(), is_more)
    }

    fn find(&self, session: SessionId) -> Option<Listed> {
        let known = self.hosts.get(&session.host)?;
        let (standing, _) = known.sessions.get(&session)?;
        Some(Listed { summary: standing.summary.clone(), address: known.address.clone() })
    }

    fn version(&self) -> u64 {
        self.version
    }
}
