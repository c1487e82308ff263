//! A server on a hub: a relay and, if wanted, rooms on the same ports. The client's hello decides which of the two its
//! link belongs to.

mod admitting;
mod opening;
mod output_sink;
mod rooms_side;
mod scripts_side;
mod sessions;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sametick_lockstep::relay::{Relay, RelayConfig};
use sametick_transport::clock::unix_ms;
use sametick_transport::endpoint::RawEvent;
use sametick_transport::hub::{App, Ended, Event, Key, Links};
use sametick_transport::hub_waker::HubWaker;
use sametick_wire::closing::LEAVING;
use sametick_wire::hello::{Proven, Refusal};
use sametick_wire::{Channel, Member, Time};

use admitting::Begun;
pub(crate) use admitting::SESSIONS_PER_ADDRESS;
use opening::Opening;
pub(crate) use output_sink::{OutputSink, leaving};
use rooms_side::{drain_rooms, say_goodbye};
use scripts_side::is_script;

use crate::finder::Finder;
use crate::games::{Games, UnknownGame};
use crate::gateway::GatewaySide;
use crate::hosting::HostSide;
use crate::hosting::command::MAX_DRAIN_S;
use crate::players::Players;
use crate::presence::{Presence, PresenceKeeper};
use crate::recorder::Recorder;
use crate::relay::RelaySide;
use crate::rooms::archive::{Archive, save_rooms};
use crate::rooms::scripts::Scripts;
use crate::rooms::{Input, Keeping, RoomLimits, Rooms, TickTimes, is_local};
use crate::signals::Stop;
use crate::spectator::Told;
use crate::status::Status;
use crate::trace::Trace;
use crate::uploader::Uploader;

/// How long games may go on when a gateway is told to stop: its hosts then end within 30 s.
const DRAIN_US: u64 = MAX_DRAIN_S * 1_000_000;

/// How long a server that stops, and a host, which has its own time-outs, wait for uploads to the object store.
const STORE_PATIENCE: Duration = Duration::from_secs(10);
const HOST_PATIENCE: Duration = Duration::from_secs(1);

/// Close text for every link when the server stops.
const STOPS: &str = "the server stops";

/// Refusal of a game link at a gateway.
const ONLY_GATEWAY: &str = "this is a gateway: games are played in sessions, at hosts";

/// Which half of the server a link belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Relay,
    Rooms,
}

/// The server application that the hub drives.
pub struct ServerApp {
    relay: RelaySide,
    rooms: Option<Rooms>,
    rooms_at: Option<Time>,
    scripts: Scripts,
    players: Option<Players>,
    archive: Option<Archive>,
    recorder: Recorder,
    /// The sessions, if this process is a host.
    sessions: Option<Box<HostSide>>,
    gateway: Option<Box<GatewaySide>>,
    is_only_gateway: bool,
    /// Outcomes and crashes of sessions' games that the sessions have not handled yet.
    told: VecDeque<Told>,
    members: HashMap<Key, (Member, Side)>,
    keys: HashMap<Member, Key>,
    opening: HashMap<Key, Opening>,
    begun: Begun,
    next: u64,
    buf: Vec<u8>,
    stopping: bool,
    status: Option<Status>,
    presence: Option<PresenceKeeper>,
    presence_at: Option<Time>,
    /// When the oldest timer that is not handled yet was due.
    turn: Option<Instant>,
    turns: TickTimes,
}

impl ServerApp {
    /// A relay only, with its logs below this folder. It relays any game, and replays the given ones to settle a
    /// desync.
    pub fn relay_only(config: RelayConfig, data: &Path, games: Games) -> ServerApp {
        ServerApp {
            relay: RelaySide::new(config, games.clone()),
            rooms: None,
            rooms_at: None,
            scripts: Scripts::default(),
            players: None,
            archive: None,
            recorder: Recorder::new(data, games),
            sessions: None,
            gateway: None,
            is_only_gateway: false,
            told: VecDeque::new(),
            members: HashMap::new(),
            keys: HashMap::new(),
            opening: HashMap::new(),
            begun: Begun::new(SESSIONS_PER_ADDRESS),
            // Member numbers are not reused after a restart, and each is exact as a JavaScript number.
            next: unix_ms() << 10,
            buf: Vec::new(),
            stopping: false,
            status: None,
            presence: None,
            presence_at: None,
            turn: None,
            turns: TickTimes::default(),
        }
    }

    /// A relay and rooms of the games that can be hosted, with a player database: the state of players and places
    /// survives the room.
    pub fn with_players(
        config: RelayConfig,
        data: &Path,
        games: &Games,
        players: Players,
        keeping: Keeping,
    ) -> ServerApp {
        let mut app = ServerApp::relay_only(config, data, games.clone());
        app.rooms = Some(Rooms::keeping(games.clone(), keeping));
        app.players = Some(players);
        app
    }

    /// A host: sessions, and a relay and rooms for their games. Rings the waker when a file of a session is written.
    pub(crate) fn hosting(
        config: RelayConfig,
        data: &Path,
        games: &Games,
        sessions: HostSide,
        waker: HubWaker,
    ) -> ServerApp {
        let mut app = ServerApp::relay_only(config, data, games.clone());
        app.rooms = Some(Rooms::new(games.clone()));
        app.recorder.set_ends(waker);
        app.sessions = Some(Box::new(sessions));
        app
    }

    /// Makes this server a gateway.
    pub(crate) fn set_gateway(&mut self, gateway: GatewaySide) {
        self.gateway = Some(Box::new(gateway));
    }

    /// Refuses game links from now on: games are played at hosts.
    pub(crate) fn set_only_gateway(&mut self) {
        self.is_only_gateway = true;
    }

    /// Sets the room limits per IP address.
    pub(crate) fn set_room_limits(&mut self, limits: RoomLimits) {
        self.rooms.iter_mut().for_each(|rooms| rooms.set_limits(limits));
    }

    /// Begins to stop. Hosts and sessions end before everything else.
    pub(crate) fn end(&mut self, links: &mut Links, stop: Stop) {
        let now = links.now();
        match (&mut self.sessions, &mut self.gateway) {
            (Some(sessions), _) => {
                let within_us = if stop == Stop::Now { 0 } else { sessions.drain_us };
                sessions.end(now, within_us);
            }
            (None, Some(gateway)) => gateway.end(now, if stop == Stop::Now { 0 } else { DRAIN_US }),
            (None, None) => self.stop(links),
        }
        self.settle(now, links, None);
    }

    /// Traces every message of the relay from now on.
    pub fn set_trace(&mut self, trace: Trace) {
        self.relay.set_trace(trace);
    }

    /// The relay, read-only.
    pub fn relay(&self) -> &Relay {
        self.relay.relay()
    }

    /// The rooms, read-only, if this server has rooms.
    pub fn rooms(&self) -> Option<&Rooms> {
        self.rooms.as_ref()
    }

    /// Writes the status file from now on.
    pub fn set_status(&mut self, status: Status) {
        self.status = Some(status);
    }

    /// Publishes presence from now on.
    pub(crate) fn show_in(&mut self, presence: Presence) {
        self.presence = Some(PresenceKeeper::new(presence));
    }

    /// Closes all links with a reason, and stops when the close messages are sent.
    pub fn stop(&mut self, links: &mut Links) {
        self.stopping = true;
        links.keys().into_iter().for_each(|key| links.close(key, LEAVING, STOPS));
        if let Some(rooms) = &mut self.rooms {
            self.scripts.stop(rooms, links, STOPS);
        }
        if let Some(gateway) = &mut self.gateway {
            gateway.hang_up(links);
        }
    }

    /// Uploads the saves of sessions from now on.
    pub(crate) fn set_uploader(&mut self, uploader: Uploader) {
        self.recorder.set_uploader(uploader);
    }

    /// Makes saves of sessions of these games by replay on the server. Fails for an unknown game.
    pub(crate) fn set_keeper(&mut self, games: &[String]) -> Result<(), UnknownGame> {
        self.relay.set_keeper(games)
    }

    /// Looks for stored sessions before a new one begins, from now on. Rings the waker for each result.
    pub(crate) fn set_finder(&mut self, finder: Finder, waker: HubWaker) {
        let finder = Rc::new(finder);
        self.relay.set_finder(Rc::clone(&finder), waker.clone());
        if let Some(rooms) = &mut self.rooms {
            rooms.set_finds();
            self.archive = Some(Archive::new(finder, waker));
        }
    }

    /// Flushes the last messages of a host to its gateways.
    pub(crate) async fn say_goodbye(&mut self) {
        if let Some(sessions) = &mut self.sessions {
            sessions.say_goodbye().await;
        }
    }

    /// Waits until logs, saves and the database are written. Returns whether all of it is.
    pub fn close(mut self) -> bool {
        self.rooms.iter().for_each(|rooms| save_rooms(&mut self.recorder, rooms));
        let are_known = self.players.is_none_or(Players::close);
        let are_saved = self.relay.close(&mut self.recorder);
        // A host has already waited for the saves of its sessions.
        let patience = if self.sessions.is_some() { HOST_PATIENCE } else { STORE_PATIENCE };
        self.sessions.into_iter().for_each(|sessions| sessions.close());
        let is_written = self.recorder.close(patience);
        self.gateway.into_iter().for_each(|gateway| gateway.close());
        is_written && are_saved && are_known
    }

    fn on_opened(&mut self, now: Time, key: Key) -> Option<Side> {
        let Opening { side, place, schema, guest, from } = self.opening.remove(&key)?;
        let member = Member(self.next);
        self.next += 1;
        self.members.insert(key, (member, side));
        self.keys.insert(member, key);
        match (side, &mut self.rooms) {
            (Side::Rooms, Some(rooms)) => {
                rooms.enter(member, place);
                rooms.come_from(member, from);
            }
            _ => self.relay.on_opened(now, member, place, schema),
        }
        if let (Some((assignment, guest)), Some(sessions)) = (guest, &mut self.sessions) {
            match (side, &mut self.rooms) {
                (Side::Rooms, Some(rooms)) => rooms.assign(member, assignment),
                _ => self.relay.assign(now, member, assignment),
            }
            sessions.opened(member, guest);
        }
        Some(side)
    }

    fn on_message(&mut self, now: Time, key: Key, channel: Channel, bytes: &[u8]) -> Option<Side> {
        let (member, side) = self.members.get(&key).copied()?;
        match (side, &mut self.rooms) {
            (Side::Rooms, Some(rooms)) => rooms.handle(now, Input::Message(member, channel, bytes)),
            _ => self.relay.on_message(now, member, channel, bytes),
        }
        Some(side)
    }

    fn on_ended(&mut self, now: Time, key: Key, why: &Ended) -> Option<Side> {
        self.begun.close(now, &key);
        let (member, side) = self.members.remove(&key)?;
        self.keys.remove(&member);
        if let Some(sessions) = &mut self.sessions {
            sessions.ended(member);
        }
        match (side, &mut self.rooms) {
            (Side::Rooms, Some(rooms)) => {
                say_goodbye(rooms, member, why);
                rooms.handle(now, Input::Closed(member, leaving(why)));
            }
            _ => self.relay.on_ended(now, member, why),
        }
        Some(side)
    }

    /// Carries out the outputs of the relay, of the rooms, or of both. Returns whether presence may have changed.
    fn drain(&mut self, now: Time, links: &mut Links, side: Option<Side>) -> bool {
        let mut changed = false;
        if side != Some(Side::Rooms) {
            let mut sink =
                OutputSink { links, keys: &self.keys, recorder: &mut self.recorder, told: &mut self.told };
            changed |= self.relay.drain(now, &mut sink);
        }
        let Some(rooms) = self.rooms.as_mut().filter(|_| side != Some(Side::Relay)) else { return changed };
        loop {
            let mut sink =
                OutputSink { links, keys: &self.keys, recorder: &mut self.recorder, told: &mut self.told };
            if let Some(archive) = &self.archive {
                archive.deliver(now, rooms, self.players.as_mut());
            }
            let (at, has_changed) = drain_rooms(
                now,
                rooms,
                &mut sink,
                (self.players.as_mut(), self.archive.as_ref()),
                &mut self.buf,
            );
            self.rooms_at = at;
            changed |= has_changed;
            // Messages to scripts and answers of the database can lead to new outputs of the rooms.
            let answered = self.players.as_mut().is_some_and(|players| players.deliver(now, rooms));
            if !self.scripts.deliver(now, rooms, links) && !answered {
                break;
            }
        }
        changed
    }

    fn side_of(&self, member: Member) -> Option<Side> {
        if is_local(member) {
            return Some(Side::Rooms);
        }
        let key = self.keys.get(&member)?;
        self.members.get(key).map(|(_, side)| *side)
    }

    /// Carries out all outputs until there are none left. Returns whether presence may have changed.
    fn settle(&mut self, now: Time, links: &mut Links, side: Option<Side>) -> bool {
        let mut changed = self.drain(now, links, side);
        if side.is_some() {
            // A message of a link affects its own game only; outcomes of games are handled on the timer.
            return changed;
        }
        if let Some(mut sessions) = self.sessions.take() {
            while self.run_sessions(now, links, &mut sessions) {
                changed |= self.drain(now, links, None);
            }
            if sessions.is_done() && !self.stopping {
                self.stop(links);
            }
            self.sessions = Some(sessions);
        } else {
            // Without sessions nothing reads the outcomes.
            self.told.clear();
        }
        if let Some(gateway) = &mut self.gateway {
            if let Some(players) = &mut self.players {
                while let Some((visitor, player)) = players.poll_visitor() {
                    gateway.known(links, visitor, player);
                }
                while let Some((visitor, token)) = gateway.poll_question() {
                    players.ask_visitor(now, visitor, &token);
                }
            }
            gateway.drain(now, links);
            if gateway.has_ended() && !self.stopping {
                self.stop(links);
            }
        }
        changed
    }

    /// Updates the status file and presence.
    fn show(&mut self, now: Time, changed: bool) {
        let (relay, rooms) = (self.relay.relay(), self.rooms.as_ref());
        if let Some(status) = &mut self.status {
            let players = self.players.as_ref().map(Players::stats);
            status.look(now, relay, rooms, players.as_ref(), &self.turns);
        }
        if let Some(presence) = &mut self.presence {
            if changed {
                presence.changed(now);
            }
            self.presence_at = presence.look(now, relay, rooms);
        }
    }
}

impl App for ServerApp {
    fn admit(&mut self, now: Time, _: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        self.opening(now, from.ip(), proven).map(drop)
    }

    fn enter(&mut self, now: Time, key: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        self.let_in(now, key, from, proven)
    }

    fn has_joined(&self, key: Key) -> bool {
        match (self.members.get(&key), &self.rooms) {
            (Some((member, Side::Rooms)), Some(rooms)) => rooms.room_of(*member).is_some(),
            (Some((member, _)), _) => self.relay.relay().has_joined(*member),
            (None, _) => false,
        }
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        let is_news =
            matches!(event, Event::Opened(_) | Event::Ended(..) | Event::Message(_, Channel::Control, _));
        if self.wake_at().is_some_and(|at| at <= now) {
            self.turn.get_or_insert_with(Instant::now);
        }
        let side = match event {
            Event::Opened(key) => self.on_opened(now, key),
            Event::Message(key, channel, bytes) => self.on_message(now, key, channel, bytes),
            Event::Ended(key, why, _) => self.on_ended(now, key, why),
            Event::Timeout => {
                self.relay.on_time(now);
                if let Some(rooms) = &mut self.rooms {
                    rooms.handle(now, Input::Timeout);
                    self.scripts.on_time(now, rooms, links);
                }
                if let Some(sessions) = &mut self.sessions {
                    sessions.on_time(now);
                }
                if let Some(gateway) = &mut self.gateway {
                    gateway.on_time(now);
                }
                None
            }
        };
        let changed = self.settle(now, links, side);
        self.show(now, changed || is_news);
    }

    fn on_raw(&mut self, now: Time, links: &mut Links, key: Key, event: RawEvent) {
        let is_script = match &event {
            RawEvent::Began { target, .. } => is_script(target),
            _ => self.scripts.member(key).is_some(),
        };
        if is_script {
            return self.script_talks(now, links, key, event);
        }
        if self.stopping && matches!(event, RawEvent::Began { .. }) {
            return links.hang_up(key);
        }
        match (&mut self.sessions, &mut self.gateway) {
            (Some(sessions), _) => sessions.on_raw(now, links, key, &event),
            (None, Some(gateway)) => gateway.on_raw(now, links, key, &event),
            (None, None) => return links.hang_up(key),
        }
        self.settle(now, links, None);
    }

    fn settled(&mut self, now: Time) {
        if let Some(began) = self.turn.take() {
            self.turns.add(now, began.elapsed());
        }
    }

    fn wake_at(&self) -> Option<Time> {
        self.relay
            .wake_at()
            .into_iter()
            .chain(self.rooms_at)
            .chain(self.scripts.wake_at())
            .chain(self.presence_at)
            .chain(self.players.as_ref().and_then(Players::wake_at))
            .chain(self.sessions.as_ref().and_then(|sessions| sessions.wake_at()))
            .chain(self.gateway.as_ref().and_then(|gateway| gateway.wake_at()))
            .min()
    }

    fn is_done(&self) -> bool {
        let has_visitors = self.gateway.as_ref().is_some_and(|gateway| !gateway.is_empty());
        self.stopping && self.members.is_empty() && self.scripts.is_empty() && !has_visitors
    }
}
