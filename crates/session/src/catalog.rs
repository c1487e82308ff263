//! What a gateway knows of hosts and sessions. It is a list, not the truth: each host's own word is, and a list that is old costs
//! whoever believed it one more question.
//!
//! Behind [`Catalog`] there may be this process's memory ([`Remembered`]), a file, or something that several gateways have
//! together. Whatever it is, it may be old, empty or wrong for a while; what it must not do is lose a host because one answer is
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

/// A host that has been silent for so long gets no new sessions: five beats.
pub const QUIET_US: u64 = 10_000_000;

/// A host that has been silent for so long is lost, and its players are told.
pub const LOST_US: u64 = 60_000_000;

/// A host that has been silent for so long is not listed any more, nor are its sessions. Should it come back, it tells of them.
pub const FORGOTTEN_US: u64 = 10 * 60_000_000;

/// So many lives of a host that did not end in order, within so long, and it gets no new sessions for a while.
pub const MAX_CRASHES: usize = 3;
/// See [`MAX_CRASHES`].
pub const CRASHES_WITHIN_US: u64 = 60_000_000;
/// For how long it gets none.
pub const QUARANTINE_US: u64 = 5 * 60_000_000;

/// An answer may be so many beats ahead of what was heard: others were lost, or come late.
const MAX_AHEAD: u64 = 64;

/// So many hosts are known at once.
pub const MAX_HOSTS: usize = 1_024;

/// How a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It says how it is.
    Good,
    /// It has been silent for [`QUIET_US`].
    Quiet,
    /// It has been silent for [`LOST_US`].
    Lost,
    /// It takes no more sessions, and will end or has ended in order.
    Draining,
    /// It has crashed too often.
    Quarantined,
}

/// What is known of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostState {
    /// Where players reach it.
    pub address: String,
    /// In which life it is.
    pub life: Incarnation,
    /// How it is.
    pub health: Health,
    /// How many sessions it takes.
    pub capacity: u16,
    /// How many it has.
    pub sessions: usize,
    /// How many people are in them.
    pub players: usize,
    /// Its last life has ended in order, and no other has begun.
    pub has_ended: bool,
}

/// What a gateway knows.
pub trait Catalog {
    /// A host says how it is. What it does not name any more is over: it is its own word. An older word than the last is none.
    fn beat(&mut self, now: Time, host: HostId, beat: &Beat);
    /// A host ends this life in order.
    fn bye(&mut self, now: Time, host: HostId, life: Incarnation);
    /// A host says how a session is, in an answer that it gave in this life, after so many beats.
    fn note(&mut self, session: &Standing, life: Incarnation, beats: u64);
    /// A host says that there is no such session.
    fn forget(&mut self, session: SessionId);
    /// Nobody listened for so long: hosts were not silent for that.
    fn stood_still(&mut self, us: u64);
    /// Time has passed. Returns the hosts that are lost since it was asked last.
    fn pass_time(&mut self, now: Time) -> Vec<HostId>;
    /// When time will have passed for somebody.
    fn wake_at(&self) -> Option<Time>;
    /// What is known of a host.
    fn host(&self, now: Time, host: HostId) -> Option<HostState>;
    /// All hosts.
    fn hosts(&self) -> Vec<HostId>;
    /// Hosts that may take such a session, those with the most room first.
    fn candidates(&self, now: Time, settings: &Settings) -> Vec<HostId>;
    /// Whether a host is known that has this game in this mode.
    fn is_offered(&self, game: &Name, mode: Mode) -> bool;
    /// The session that was made by a request.
    fn made_by(&self, key: Key) -> Option<SessionId>;
    /// The sessions of a host.
    fn sessions_of(&self, host: HostId) -> Vec<SessionId>;
    /// At most so many of the sessions that somebody wants to see, and whether there are more. Those of lost hosts are not among
    /// them.
    fn list(&self, now: Time, filter: &Filter, most: usize) -> (Vec<Listed>, bool);
    /// What is known of one session, listed or not, also of a host that is silent.
    fn find(&self, session: SessionId) -> Option<Listed>;
    /// Changes whenever lists may be others.
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
    /// This life has ended in order.
    has_ended: bool,
    is_lost: bool,
    offers: Vec<(Name, Mode)>,
    crashes: Vec<Time>,
    quarantined_until: Time,
    /// Only known from what was kept.
    is_recalled: bool,
    /// With the number of beats before which it is no news that a session is not named.
    sessions: BTreeMap<SessionId, (Standing, u64)>,
}

/// What is known of a host, as it is kept: see [`Remembered::row`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRow {
    /// Which.
    pub host: HostId,
    /// What it said last, as far as it is known.
    pub beat: Beat,
    /// This life has ended in order.
    pub has_ended: bool,
}

/// A catalog in this process's memory.
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

    /// Another life has begun.
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
        // What was noted in the last life may be gone: the next word decides.
        self.sessions.values_mut().for_each(|(_, beats)| *beats = 0);
    }
}

impl Remembered {
    /// What is known of a host, to be kept.
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

    /// What was kept of a host. It is as if it had been heard of just now, but it gets no new sessions before it is.
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
