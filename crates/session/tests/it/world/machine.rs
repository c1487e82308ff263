//! A machine with a host and a slow disk.

use std::collections::{BTreeMap, BTreeSet};

use sametick_session::host::{self, Host, HostConfig, Offer};
use sametick_session::id::{HostId, Incarnation, SessionId};
use sametick_session::message::{Ending, Event, Phase};
use sametick_session::session::Session;
use sametick_session::settings::Mode;
use sametick_sim::{Seat, Time};
use sametick_wire::Member;
use sametick_wire::identity::PlayerId;

use super::{Happening, Link, Told, World};
use crate::stage::{SECOND, name, pong};

pub struct Machine {
    pub id: HostId,
    pub life: u32,
    capacity: u16,
    host: Option<Host>,
    wake_at: Option<Time>,
    /// The last incarnation has shut down in order.
    in_order: bool,
    disk: BTreeMap<SessionId, Vec<u8>>,
    writing: BTreeMap<SessionId, (u64, Vec<u8>)>,
    manned: BTreeMap<SessionId, BTreeMap<Seat, PlayerId>>,
    /// Players who may have links to games, also while they are disconnected.
    guests: BTreeSet<(SessionId, PlayerId)>,
}

impl Machine {
    pub fn new(id: u32, capacity: u16) -> Machine {
        Machine {
            id: HostId(id),
            life: 0,
            capacity,
            host: None,
            wake_at: None,
            in_order: true,
            disk: BTreeMap::new(),
            writing: BTreeMap::new(),
            manned: BTreeMap::new(),
            guests: BTreeSet::new(),
        }
    }

    pub fn is_up(&self) -> bool {
        self.host.is_some()
    }

    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.host.iter().flat_map(Host::sessions)
    }

    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.host.as_ref()?.session(id)
    }

    fn config(&self) -> HostConfig {
        HostConfig {
            id: self.id,
            life: Incarnation(self.life),
            secret: [self.id.0 as u8 + 1; 32],
            address: format!("host-{}", self.id.0),
            capacity: self.capacity,
            offers: vec![Offer { game: name("bridge"), mode: Mode::Room, plan: pong() }],
        }
    }

    /// A write is done. Returns whether the host has to hear of it.
    pub fn written(&mut self, life: u32, session: SessionId, revision: u64) -> bool {
        if self.life != life {
            return false;
        }
        let Some((_, bytes)) = self.writing.remove(&session).filter(|(last, _)| *last == revision) else {
            return false;
        };
        self.disk.insert(session, bytes);
        true
    }

    /// The game knows the seated members and no others, apart from changes that wait for the disk.
    pub fn check_manned(&self, session: &Session) {
        // A session that is stored for the next incarnation has no game any more.
        let is_draining = self.host.as_ref().is_some_and(Host::is_draining);
        if session.phase() != Phase::Running || is_draining || self.writing.contains_key(&session.id()) {
            return;
        }
        let view = session.view();
        let sitting = view.people.iter().filter(|person| !person.away);
        let sitting: BTreeMap<Seat, PlayerId> =
            sitting.filter_map(|person| Some((person.seat?, person.player))).collect();
        assert_eq!(self.manned.get(&session.id()).cloned().unwrap_or_default(), sitting);
    }

    /// A player who has left has no link to the game any more.
    pub fn check_guests(&self, session: &Session) {
        let mut guests = self.guests.iter().filter(|(id, _)| *id == session.id());
        assert!(self.writing.contains_key(&session.id()) || guests.all(|(_, player)| session.has(*player)));
    }

    pub fn check_nothing_left(&self) {
        assert_eq!(self.sessions().map(Session::id).collect::<Vec<_>>(), [], "every session ends");
        assert!(self.disk.is_empty() && self.writing.is_empty(), "no file is left");
        assert!(self.manned.is_empty() && self.guests.is_empty(), "no game is left");
    }
}

impl World {
    pub(super) fn start_host(&mut self, at: usize) {
        let crashed_s = 1_000_000 + self.now.as_micros() / SECOND;
        let machine = &mut self.hosts[at];
        if machine.is_up() {
            return;
        }
        machine.life += 1;
        let stored: Vec<Vec<u8>> = machine.disk.values().cloned().collect();
        let (host, lost) =
            Host::new(self.now, machine.config(), &stored, (!machine.in_order).then_some(crashed_s));
        assert_eq!(lost, [], "what was stored is found");
        assert!(host.sessions().count() <= stored.len());
        let guests_of = |session: &Session| {
            let id = session.id();
            session.view().people.into_iter().map(move |person| (id, person.player))
        };
        machine.guests = host.sessions().flat_map(guests_of).collect();
        (machine.host, machine.in_order) = (Some(host), false);
        self.tell_host(at, host::Input::Timeout);
    }

    pub(super) fn start_all(&mut self) {
        for host in 0..self.hosts.len() {
            if !self.hosts[host].is_up() {
                self.start_host(host);
            }
        }
        if self.gateway.is_none() {
            self.start_gateway();
        }
    }

    pub(super) fn crash_host(&mut self, at: usize) {
        if !self.hosts[at].is_up() {
            return;
        }
        self.counts.crashes += 1;
        self.lose_what_is_being_written(at);
        self.stop_host(at);
    }

    /// A write in progress may be on disk or not.
    fn lose_what_is_being_written(&mut self, at: usize) {
        for (session, (_, bytes)) in std::mem::take(&mut self.hosts[at].writing) {
            if self.rng.chance(1, 2) {
                self.hosts[at].disk.insert(session, bytes);
            }
        }
    }

    fn stop_host(&mut self, at: usize) {
        let machine = &mut self.hosts[at];
        (machine.host, machine.wake_at) = (None, None);
        machine.manned.clear();
        machine.guests.clear();
        machine.writing.clear();
        let life = machine.life;
        let is_its = |link: &Link| link.host == at && link.life == life && link.is_open;
        let links: Vec<Member> =
            self.links.iter().filter(|(_, link)| is_its(link)).map(|(member, _)| *member).collect();
        links.into_iter().for_each(|member| self.cut(member));
        let wait_us = if self.is_calm { 0 } else { self.rng.below(20 * SECOND) };
        self.at(wait_us, Happening::StartHost(at));
    }

    pub(super) fn tell_host(&mut self, at: usize, input: host::Input) {
        let Some(host) = &mut self.hosts[at].host else { return };
        // A beat changes nothing.
        let mut is_quiet = matches!(input, host::Input::Timeout);
        host.handle(self.now, input);
        while let Some(host) = &mut self.hosts[at].host {
            let output = host.poll_output();
            if let host::Output::WakeAt(wake_at) = output {
                self.hosts[at].wake_at = wake_at;
                break;
            }
            is_quiet &= matches!(output, host::Output::Gateways(_));
            self.obey(at, output);
        }
        if !is_quiet {
            self.check(at);
        }
    }

    fn obey(&mut self, at: usize, output: host::Output) {
        let life = self.hosts[at].life;
        match output {
            host::Output::Gateway(gateway, said) => {
                if gateway.0 == u64::from(self.run) {
                    self.send(&Happening::FromHost(at, said));
                }
            }
            // There is no gateway to receive it: skipping it saves time.
            host::Output::Gateways(_) if self.is_evening && self.gateway.is_none() => {}
            host::Output::Gateways(said) => self.send(&Happening::FromHost(at, said)),
            host::Output::Tell(member, event) => {
                if let Event::Welcome { you, view, .. } = &event {
                    self.hosts[at].guests.insert((view.session, *you));
                    self.welcomed(at, view.session);
                }
                self.down(member, Told::Event(event));
            }
            host::Output::Answer(member, seq, _) => self.down(member, Told::Answer(seq)),
            host::Output::Close(member, why) => self.down(member, Told::Close(why)),
            host::Output::Store(session, revision) => {
                let bytes = self.hosts[at]
                    .host
                    .as_ref()
                    .and_then(|host| host.snapshot(session))
                    .expect("it is there");
                self.hosts[at].writing.insert(session, (revision, bytes));
                let slow = if self.rng.chance(1, 20) && !self.is_calm { 2 * SECOND } else { 20_000 };
                let wait_us = self.rng.below(slow);
                self.at(wait_us, Happening::Written(at, life, session, revision));
            }
            host::Output::Delete(session) => {
                self.hosts[at].disk.remove(&session);
                self.hosts[at].writing.remove(&session);
            }
            host::Output::Weigh(work, salt, password) => {
                self.at(50_000, Happening::Weighed(at, life, work, password.weigh_lightly(salt)));
            }
            host::Output::Done => {
                // A host that is shutting down does not wait for ever for a slow disk.
                self.lose_what_is_being_written(at);
                self.hosts[at].in_order = true;
                self.stop_host(at);
            }
            other => self.game(at, other),
        }
    }

    fn game(&mut self, at: usize, output: host::Output) {
        let life = self.hosts[at].life;
        let manned = &mut self.hosts[at].manned;
        match output {
            host::Output::Begin { session, round, again } => {
                // A game that was stored as begun, and was not, is started as if it had been.
                assert!(self.begun.insert((session, round)) || again, "a round begins once");
                self.counts.rounds += u64::from(!again);
                manned.insert(session, BTreeMap::new());
                self.check_one_game(at, session);
                let wait_us = self.rng.below(40 * SECOND);
                self.at(wait_us, Happening::GameOver(at, life, session));
            }
            host::Output::Manned(session, seat, player) => {
                let seats = manned.get_mut(&session).expect("there is a game");
                assert_eq!(seats.insert(seat, player), None, "one at a seat");
            }
            host::Output::Unmanned(session, seat) => {
                let seats = manned.get_mut(&session).expect("there is a game");
                assert!(seats.remove(&seat).is_some(), "the seat was occupied");
            }
            host::Output::Left(session, player) => {
                self.hosts[at].guests.remove(&(session, player));
            }
            host::Output::Over(session, ending) => {
                manned.remove(&session);
                self.hosts[at].guests.retain(|(id, _)| *id != session);
                self.counts.quarantined += u64::from(ending == Ending::Quarantined);
                self.counts.moved += u64::from(ending == Ending::Moved);
            }
            host::Output::Save(session) => {
                manned.remove(&session);
                let wait_us = self.rng.below(SECOND);
                self.at(wait_us, Happening::Saved(at, life, session));
            }
            host::Output::Finish(_) | host::Output::Suspended(_) => {}
            other => panic!("{other:?}"),
        }
    }

    /// One session, whatever its id at each host, has one game.
    fn check_one_game(&mut self, at: usize, session: SessionId) {
        if let Some(was) = self.hosts[at].session(session).and_then(Session::was) {
            let root = self.roots.get(&was).copied().unwrap_or(was);
            self.roots.insert(session, root);
        }
        let root_of = |id: &SessionId| self.roots.get(id).copied().unwrap_or(*id);
        let root = root_of(&session);
        let games = self.hosts.iter().flat_map(|machine| machine.manned.keys());
        let same: Vec<&SessionId> = games.filter(|id| root_of(id) == root).collect();
        assert_eq!(same, [&session], "a session runs once");
    }

    fn welcomed(&mut self, at: usize, session: SessionId) {
        self.counts.welcomes += 1;
        let key = self.hosts[at].session(session).expect("a member's session exists").key();
        if *self.claimed.entry(key).or_insert_with(|| session) != session {
            panic!("what was asked for once is there twice");
        }
    }
}
