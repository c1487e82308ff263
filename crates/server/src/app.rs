//! A server on a hub: a relay and, if wanted, rooms behind the same doors. What a link said it wants decides which of them
//! it belongs to.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use sametick_lockstep::relay::{Relay, RelayConfig, SessionKey};
use sametick_lockstep::session::THROWN_OUT;
use sametick_sim::SchemaHash;
use sametick_sim::record::{Leaving, Record};
use sametick_transport::bell::Bell;
use sametick_transport::clock::unix_ms;
use sametick_transport::endpoint::Talk;
use sametick_transport::hub::{App, Ended, Event, Key, Links};
use sametick_wire::hello::{Intent, Proven, Refusal};
use sametick_wire::{Channel, Closed, Member, Time};

use crate::courier::Courier;
use crate::finder::Finder;
use crate::games::{Games, UnknownGame};
use crate::lobby::{Lobby, LobbyKeeper};
use crate::players::Players;
use crate::recorder::{Place, Recorder};
use crate::relay::RelaySide;
use crate::rooms::archive::{Archive, resume_room, save_room, save_rooms};
use crate::rooms::scripts::Scripts;
use crate::rooms::{self, Input, Keeping, Mark, Past, Rooms, TickTimes};
use crate::status::Status;
use crate::trace::Trace;

/// What everybody is told when a server ends.
const STOPS: &str = "the server stops";

/// Which of the two a link belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Relay,
    Rooms,
}

/// What a link that is about to open asked for.
struct Opening {
    side: Side,
    place: SessionKey,
    schema: SchemaHash,
}

/// A server, as an application of a hub.
pub struct ServerApp {
    relay: RelaySide,
    rooms: Option<Rooms>,
    rooms_at: Option<Time>,
    scripts: Scripts,
    players: Option<Players>,
    archive: Option<Archive>,
    recorder: Recorder,
    members: HashMap<Key, (Member, Side)>,
    keys: HashMap<Member, Key>,
    opening: HashMap<Key, Opening>,
    next: u64,
    buf: Vec<u8>,
    stopping: bool,
    status: Option<Status>,
    lobby: Option<LobbyKeeper>,
    lobby_at: Option<Time>,
    /// Since when there is something to do because of the time.
    turn: Option<Instant>,
    turns: TickTimes,
}

/// Where what a machine wants goes.
pub(crate) struct Outlet<'a> {
    links: &'a mut Links,
    keys: &'a HashMap<Member, Key>,
    pub recorder: &'a mut Recorder,
}

impl Outlet<'_> {
    /// Whether the link of a member is there.
    pub fn reaches(&self, member: Member) -> bool {
        self.keys.contains_key(&member)
    }

    /// Sends a message. A link with too much waiting is closed.
    pub fn send(&mut self, member: Member, channel: Channel, bytes: &[u8]) {
        let Some(key) = self.keys.get(&member) else { return };
        if let Err(error) = self.links.send(*key, channel, bytes) {
            self.links.close(*key, 2, &error.to_string());
        }
    }

    /// Ends a link, not to come back.
    pub fn close(&mut self, member: Member, why: &str) {
        if let Some(key) = self.keys.get(&member) {
            tracing::warn!(why, "a player was closed");
            self.links.close(*key, THROWN_OUT, why);
        }
    }
}

impl ServerApp {
    /// A relay that keeps what happens below this folder. It relays any game; those it is given it can also replay, to
    /// decide a dispute.
    pub fn relay_only(config: RelayConfig, data: &Path, games: Games) -> ServerApp {
        ServerApp {
            relay: RelaySide::new(config, games.clone()),
            rooms: None,
            rooms_at: None,
            scripts: Scripts::default(),
            players: None,
            archive: None,
            recorder: Recorder::new(data, games),
            members: HashMap::new(),
            keys: HashMap::new(),
            opening: HashMap::new(),
            // Nobody has the number that somebody had before a restart, and every one is exact as a number of JavaScript.
            next: unix_ms() << 10,
            buf: Vec::new(),
            stopping: false,
            status: None,
            lobby: None,
            lobby_at: None,
            turn: None,
            turns: TickTimes::default(),
        }
    }

    /// The same with rooms of those games that can be hosted, and a database of players: rooms outlive their players.
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

    /// Writes down every message of the relay from now on.
    pub fn set_trace(&mut self, trace: Trace) {
        self.relay.set_trace(trace);
    }

    /// The relay, to look at.
    pub fn relay(&self) -> &Relay {
        self.relay.relay()
    }

    /// The rooms, if there may be any, to look at.
    pub fn rooms(&self) -> Option<&Rooms> {
        self.rooms.as_ref()
    }

    /// Writes what goes on into a file from now on.
    pub fn set_status(&mut self, status: Status) {
        self.status = Some(status);
    }

    /// Shows who is there from now on.
    pub(crate) fn set_lobby(&mut self, lobby: Lobby) {
        self.lobby = Some(LobbyKeeper::new(lobby));
    }

    /// Tells everybody and stops when they have been told.
    pub fn stop(&mut self, links: &mut Links) {
        self.stopping = true;
        links.keys().into_iter().for_each(|key| links.close(key, 0, STOPS));
        if let Some(rooms) = &mut self.rooms {
            self.scripts.stop(rooms, links, STOPS);
        }
    }

    /// Has the saves of sessions kept from now on.
    pub(crate) fn set_courier(&mut self, courier: Courier) {
        self.recorder.set_courier(courier);
    }

    /// Has saves of sessions of these games made by playing along. One that is not known is an error.
    pub(crate) fn set_keeper(&mut self, games: &[String]) -> Result<(), UnknownGame> {
        self.relay.set_keeper(games)
    }

    /// Has sessions found again from now on. The bell is rung when one is.
    pub(crate) fn set_finder(&mut self, finder: Finder, bell: Bell) {
        let finder = Rc::new(finder);
        self.relay.set_finder(Rc::clone(&finder), bell.clone());
        if let Some(rooms) = &mut self.rooms {
            rooms.set_finds();
            self.archive = Some(Archive::new(finder, bell));
        }
    }

    /// Waits until everything is written. Returns whether it is.
    pub fn close(mut self) -> bool {
        self.rooms.iter().for_each(|rooms| save_rooms(&mut self.recorder, rooms));
        let are_known = self.players.is_none_or(Players::close);
        let are_saved = self.relay.close(&mut self.recorder);
        self.recorder.close() && are_saved && are_known
    }

    fn on_opened(&mut self, now: Time, key: Key) -> Option<Side> {
        let Opening { side, place, schema } = self.opening.remove(&key)?;
        let member = Member(self.next);
        self.next += 1;
        self.members.insert(key, (member, side));
        self.keys.insert(member, key);
        match (side, &mut self.rooms) {
            (Side::Rooms, Some(rooms)) => rooms.enter(member, place),
            _ => self.relay.on_opened(now, member, place, schema),
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
        let (member, side) = self.members.remove(&key)?;
        self.keys.remove(&member);
        match (side, &mut self.rooms) {
            (Side::Rooms, Some(rooms)) => {
                say_goodbye(rooms, member, why);
                rooms.handle(now, Input::Closed(member, leaving(why)));
            }
            _ => self.relay.on_ended(now, member, why),
        }
        Some(side)
    }

    /// Carries out what the relay or the rooms want, or both. Returns whether somebody may have come or gone.
    fn drain(&mut self, now: Time, links: &mut Links, side: Option<Side>) -> bool {
        let mut changed = false;
        if side != Some(Side::Rooms) {
            let mut outlet = Outlet { links, keys: &self.keys, recorder: &mut self.recorder };
            changed |= self.relay.drain(now, &mut outlet);
        }
        let Some(rooms) = self.rooms.as_mut().filter(|_| side != Some(Side::Relay)) else { return changed };
        loop {
            let mut outlet = Outlet { links, keys: &self.keys, recorder: &mut self.recorder };
            if let Some(archive) = &self.archive {
                archive.deliver(now, rooms, self.players.as_mut());
            }
            let (at, has_changed) = drain_rooms(
                now,
                rooms,
                &mut outlet,
                (self.players.as_mut(), self.archive.as_ref()),
                &mut self.buf,
            );
            self.rooms_at = at;
            changed |= has_changed;
            // What scripts are told may make them want something of the rooms, and so does what the database answers.
            let answered = self.players.as_mut().is_some_and(|players| players.deliver(now, rooms));
            if !self.scripts.deliver(now, rooms, links) && !answered {
                break;
            }
        }
        changed
    }

    /// Lets others see what goes on.
    fn show(&mut self, now: Time, changed: bool) {
        let (relay, rooms) = (self.relay.relay(), self.rooms.as_ref());
        if let Some(status) = &mut self.status {
            let players = self.players.as_ref().map(Players::stats);
            status.look(now, relay, rooms, players.as_ref(), &self.turns);
        }
        if let Some(lobby) = &mut self.lobby {
            if changed {
                lobby.changed(now);
            }
            self.lobby_at = lobby.look(now, relay, rooms);
        }
    }
}

/// Carries out what rooms want. Returns when they want to be woken, and whether somebody may have come or gone.
fn drain_rooms(
    now: Time,
    rooms: &mut Rooms,
    outlet: &mut Outlet<'_>,
    (mut players, archive): (Option<&mut Players>, Option<&Archive>),
    buf: &mut Vec<u8>,
) -> (Option<Time>, bool) {
    let mut changed = false;
    loop {
        match (rooms.poll_output(buf), &mut players) {
            (rooms::Output::Ask(member, question), Some(players)) => players.ask(now, member, question),
            (rooms::Output::Save(write), Some(players)) => players.save(write),
            (rooms::Output::Flush(mark), Some(players)) => match (mark, archive) {
                (Mark::Room(id, _), Some(archive)) => archive.keep(outlet.recorder, id, mark),
                _ => players.flush(mark),
            },
            (output, _) => match output {
                rooms::Output::Send(member, channel) => outlet.send(member, channel, buf),
                rooms::Output::Close(member, why) => outlet.close(member, why),
                rooms::Output::Find(key) => match archive {
                    Some(archive) => archive.look_for(key, rooms),
                    None => rooms.sought(now, &key, Past::None(unix_ms())),
                },
                rooms::Output::Begun(id) => {
                    changed = true;
                    if let Some(room) = rooms.room(id) {
                        outlet.recorder.begin(Place::Room(id), room.facts(), room.started_unix_ms());
                    }
                }
                rooms::Output::Resumed(id, resumed) => {
                    changed = true;
                    resume_room(outlet.recorder, id, *resumed);
                }
                rooms::Output::SaveRoom(id) => {
                    if let Some(room) = rooms.room(id) {
                        save_room(outlet.recorder, id, room);
                    }
                }
                rooms::Output::Record(id, record) => {
                    changed |= !matches!(record, Record::Check { .. });
                    outlet.recorder.record(Place::Room(id), &record);
                }
                rooms::Output::Stepped(id, _) => {
                    if let Some(room) = rooms.room(id) {
                        outlet.recorder.step(Place::Room(id), room.inputs());
                    }
                }
                rooms::Output::Ended(id) => {
                    changed = true;
                    outlet.recorder.end(Place::Room(id));
                }
                rooms::Output::WakeAt(at) => return (Some(at), changed),
                rooms::Output::Wait => return (None, changed),
                // Only rooms that keep something want these.
                rooms::Output::Ask(..) | rooms::Output::Save(_) | rooms::Output::Flush(_) => {}
            },
        }
    }
}

fn say_goodbye(rooms: &Rooms, member: Member, why: &Ended) {
    let room = rooms.room_of(member);
    let who = room.and_then(|(_, room)| room.participants().find(|who| who.member == member));
    match who {
        Some(who) => {
            let (name, seat, omissions) = (who.name, who.seat.map(|seat| seat.0), who.omissions);
            tracing::info!(name, seat, omissions, %why, "a player has gone");
        }
        None => tracing::info!(%why, "somebody who had not joined has gone"),
    }
}

impl App for ServerApp {
    fn admit(&mut self, _: Time, key: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        if self.stopping {
            return Err(Refusal::Other(STOPS.into()));
        }
        let identity = proven.hello.identity;
        let (side, place) = match (&proven.hello.intent, &self.rooms) {
            (Intent::Join { session }, _) => (Side::Relay, session),
            (Intent::Enter { room }, Some(rooms)) => {
                rooms.admit(&identity, room)?;
                (Side::Rooms, room)
            }
            (_, Some(_)) => return Err(Refusal::Other("join a session, or enter a room".into())),
            (_, None) => return Err(Refusal::Other("this is a relay: join a session".into())),
        };
        tracing::info!(%from, name = proven.hello.name, place, ?side, "a player has come");
        let place = SessionKey { build: identity.build, name: place.clone() };
        self.opening.insert(key, Opening { side, place, schema: identity.schema });
        Ok(())
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
                None
            }
        };
        let changed = self.drain(now, links, side);
        self.show(now, changed || is_news);
    }

    fn talk(&mut self, now: Time, links: &mut Links, key: Key, talk: Talk) {
        let may_come = !self.stopping || !matches!(talk, Talk::Began { .. });
        let Some(rooms) = self.rooms.as_mut().filter(|_| may_come) else { return links.hang_up(key) };
        let is_news = matches!(talk, Talk::Began { .. } | Talk::Ended(_));
        self.scripts.talk(now, rooms, links, key, talk);
        let changed = self.drain(now, links, Some(Side::Rooms));
        self.show(now, changed || is_news);
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
            .chain(self.lobby_at)
            .chain(self.players.as_ref().and_then(Players::wake_at))
            .min()
    }

    fn is_done(&self) -> bool {
        self.stopping && self.members.is_empty() && self.scripts.is_empty()
    }
}

/// How the log calls the end of a link.
pub(crate) fn leaving(ended: &Ended) -> Leaving {
    match ended {
        Ended::Link(Closed::TimedOut) => Leaving::TimedOut,
        Ended::Link(Closed::Here | Closed::Violation(_)) => Leaving::Kicked,
        _ => Leaving::Left,
    }
}
