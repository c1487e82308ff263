//! The driver of [`Host`], the sessions of a host process: passes events to it, and carries out its outputs. It decides
//! nothing itself.
//!
//! Members talk with their session over a WebSocket ([`EnvelopeConnection`]), and play over a link of its own, which
//! they open with a pass. What a session wants of its game comes out as an [`Order`] for the driver of the relay and
//! the rooms.

mod chores;
pub(crate) mod command;
pub(crate) mod folder;
mod members;
mod pages;
mod plays;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::relay::SessionKey;
use sametick_session::host::{self, GatewayId, Host, HostConfig, Offer};
use sametick_session::id::SessionId;
use sametick_session::message::Phase;
use sametick_session::name::Name;
use sametick_session::placing::{FromHost, ToHost};
use sametick_session::plan::{GroupPlan, Plan};
use sametick_session::settings::Mode;
use sametick_sim::Time;
use sametick_transport::clock::unix_seconds;
use sametick_transport::control_connection::{ControlConnections, ControlId, Event};
use sametick_transport::hub::{Key, Links};
use sametick_transport::hub_waker::HubWaker;
use sametick_wire::hello::{Hello, Intent, Refusal};
use sametick_wire::identity::PlayerId;
use sametick_wire::{Member, control};
use serde::{Deserialize, Serialize};

use crate::endpoints::Endpoints;
use crate::games::{AnyGame, Games};
use crate::rooms::entrance::Entrance;
use chores::Chores;
use folder::Folder;
use members::Present;
pub(crate) use members::SOCKET;
use plays::Play;
pub(crate) use plays::{Guest, session_of_place};

/// A host that a gateway has started ends after this time without a session and a gateway.
const ORPHANED_US: u64 = 60_000_000;

/// The refusal of a link without a pass for this game.
const NO_PASS: &str = "this is the game of a session: join it in the lobby";

/// The refusal of a script that asks for a game in lockstep.
const NOT_A_ROOM: &str = "this session is played in lockstep: scripts take part in rooms";

/// Close text for the links of a player who no longer has that seat.
pub(crate) const MOVED_ON: &str = "your place in this game is another one now";

/// Close text for links when their game is over.
pub(crate) const GAME_OVER: &str = "the game is over";

/// A message from a host to a gateway.
#[derive(Serialize, Deserialize)]
pub(crate) enum Upward {
    /// The first message: the host's id. `port` is set if the gateway's own machine has started the host there.
    Enlist { host: sametick_session::id::HostId, port: Option<u16> },
    /// Any other message.
    Said(FromHost),
}

/// A message from a gateway to a host.
#[derive(Serialize, Deserialize)]
pub(crate) enum Downward {
    /// A request.
    Asked(ToHost),
    /// The host must drain and end within this many microseconds.
    End(u64),
    /// The host is not needed, and must end unless it has a session by now.
    EndIfIdle,
}

/// An order for the game of a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// End the link of a member.
    Kick(Member, &'static str),
    /// End a game. [`HostSide::no_game`] says that there was none, [`HostSide::written`] that its log is written.
    End(Mode, SessionKey),
}

/// The sessions of a host with their connections, files and threads.
pub(crate) struct HostSide {
    host: Host,
    folder: Folder,
    chores: Chores,
    gateways: Gateways,
    members: HashMap<Key, Member>,
    present: HashMap<Member, Present>,
    next: u64,
    games: Games,
    ways: Endpoints,
    plays: BTreeMap<SessionId, Play>,
    guests: BTreeMap<Member, Guest>,
    orders: VecDeque<Order>,
    /// Games whose logs must be written before their session counts as saved.
    saving: BTreeMap<SessionKey, SessionId>,
    /// Sessions whose members may need a new play address.
    stale: Vec<SessionId>,
    wake_at: Option<Time>,
    is_done: bool,
    /// How long running games may go on when the host is told to end.
    pub drain_us: u64,
    count: pages::Count,
    /// For a host that a gateway has started: since when it has no session and no gateway. Such a host ends.
    alone_since: Option<Option<Time>>,
}

struct Gateways {
    connections: Vec<ControlConnections>,
    ids: HashMap<(usize, ControlId), GatewayId>,
    open: BTreeMap<GatewayId, (usize, ControlId)>,
    next: u64,
    port: Option<u16>,
}

/// The configuration of a host.
pub(crate) struct Hosting {
    pub folder: Folder,
    pub address: String,
    pub capacity: u16,
    pub connections: Vec<ControlConnections>,
    /// The port that a gateway gave the host when it started it.
    pub port: Option<u16>,
    pub ways: Endpoints,
    /// How long running games may go on when the host is told to end.
    pub drain_us: u64,
    pub count: pages::Count,
}

impl HostSide {
    /// Restores the stored sessions, and begins to report to gateways.
    pub fn start(now: Time, hosting: Hosting, games: Games, waker: &HubWaker) -> io::Result<HostSide> {
        let Hosting { folder, address, capacity, connections, port, ways, drain_us, count } = hosting;
        let stored = folder.stored()?;
        let config = HostConfig {
            id: folder.id,
            life: folder.life,
            secret: folder.secret,
            address,
            capacity,
            offers: games.iter().flat_map(offers).collect(),
        };
        let crashed_s = folder.has_crashed.then(unix_seconds);
        let bytes: Vec<Vec<u8>> = stored.iter().map(|(_, bytes)| bytes.clone()).collect();
        let (host, lost) = Host::new(now, config, &bytes, crashed_s);
        for (at, why) in lost {
            if let Some((path, _)) = stored.get(at) {
                tracing::error!(file = %path.display(), ?why, "a session cannot be taken up; its file is kept aside");
                folder.set_aside(path);
            }
        }
        let gateways = Gateways { connections, ids: HashMap::new(), open: BTreeMap::new(), next: 0, port };
        Ok(HostSide {
            host,
            folder,
            chores: Chores::start(waker)?,
            gateways,
            members: HashMap::new(),
            present: HashMap::new(),
            next: 0,
            games,
            ways,
            plays: BTreeMap::new(),
            guests: BTreeMap::new(),
            orders: VecDeque::new(),
            saving: BTreeMap::new(),
            stale: Vec::new(),
            wake_at: None,
            is_done: false,
            drain_us,
            count,
            alone_since: port.map(|_| Some(now)),
        })
    }

    /// The next wake time.
    pub fn wake_at(&self) -> Option<Time> {
        let alone = self.alone_since.flatten().map(|since| since.plus_micros(ORPHANED_US));
        self.wake_at.into_iter().chain(alone.filter(|_| !self.is_done)).min()
    }

    /// Whether the host has drained: all sessions are stored and all members told.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Drains the host: it ends within `within_us`.
    pub fn end(&mut self, now: Time, within_us: u64) {
        self.host.handle(now, host::Input::Drain(within_us));
    }

    /// Flushes the last messages to gateways, before the process ends.
    pub async fn say_goodbye(&mut self) {
        for connections in std::mem::take(&mut self.gateways.connections) {
            connections.finish().await;
        }
    }

    /// Finishes writing and marks the end as clean; the process ends.
    pub fn close(mut self) {
        self.chores.finish();
        self.folder.end();
    }

    /// The player and seat in the game for a client with this hello.
    pub fn admit(&self, hello: &Hello) -> Result<(SeatAssignment, Guest), Refusal> {
        let other = |why: &str| Refusal::Other(why.into());
        let (place, mode) = match &hello.intent {
            Intent::Join { session } => (session, Mode::Lockstep),
            Intent::Enter { room } => (room, Mode::Room),
            _ => return Err(other(NO_PASS)),
        };
        let (play, assignment, guest) = self.holder(hello.pass.as_deref(), place).map_err(other)?;
        if play.mode != mode {
            return Err(other(NO_PASS));
        }
        play.identity.refusal(&hello.identity).map_or(Ok((assignment, guest)), Err)
    }

    /// The player and seat in the game for a script.
    pub fn admit_script(&self, entrance: &Entrance) -> Result<(SeatAssignment, Guest), &'static str> {
        let (play, assignment, guest) = self.holder(entrance.pass.as_deref(), &entrance.room)?;
        match (play.mode, entrance.game.as_deref()) {
            (Mode::Lockstep, _) => Err(NOT_A_ROOM),
            (Mode::Room, Some(game)) if game != assignment.game => {
                Err("another game is played in this session")
            }
            (Mode::Room, _) => Ok((assignment, guest)),
        }
    }

    /// The player that a pass belongs to, in the game of this name.
    fn holder(
        &self,
        pass: Option<&[u8]>,
        place: &str,
    ) -> Result<(&Play, SeatAssignment, Guest), &'static str> {
        let (session, player) = pass.and_then(|pass| self.host.holder(pass)).ok_or(NO_PASS)?;
        let play = self.plays.get(&session.id()).ok_or(NO_PASS)?;
        if *place != play.key.name {
            return Err(GAME_OVER);
        }
        let seat = session.seat_of(player);
        let name = session.name_of(player).map(ToString::to_string).unwrap_or_default();
        let guest = Guest { session: session.id(), player, seat };
        Ok((play, play.assignment(player, name, seat), guest))
    }

    /// A member's link has opened.
    pub fn opened(&mut self, member: Member, guest: Guest) {
        self.guests.insert(member, guest);
    }

    /// A member's link has ended.
    pub fn ended(&mut self, member: Member) {
        self.guests.remove(&member);
    }

    /// Handles timers that are due.
    pub fn on_time(&mut self, now: Time) {
        self.host.handle(now, host::Input::Timeout);
        if let Some(Some(since)) = self.alone_since {
            let is_needed = !self.host.is_idle() || !self.gateways.open.is_empty();
            self.alone_since = Some(Some(if is_needed { now } else { since }));
            if now.micros_since(since) >= ORPHANED_US && !is_needed {
                tracing::warn!("no gateway and no session: this host ends");
                self.alone_since = Some(None);
                self.end(now, 0);
            }
        }
    }

    /// The game of a session has ended with these results.
    pub fn game_ended(&mut self, now: Time, key: &SessionKey, results: String) {
        if let Some(id) = self.session_of(key) {
            tracing::info!(session = %id, results, "a game is over");
            self.host.handle(now, host::Input::Ended(id, results));
            self.finish(id);
        }
    }

    /// The game of a session has crashed. Its players hear that before the address where it goes on, which is the same
    /// one.
    pub fn game_crashed(&mut self, now: Time, links: &mut Links, key: &SessionKey) {
        if let Some(id) = self.session_of(key) {
            tracing::error!(session = %id, "the game of a session has crashed");
            self.finish(id);
            self.tell_where_to_play(links);
            self.host.handle(now, host::Input::Crashed(id, unix_seconds()));
        }
    }

    /// The session had no running game to end.
    pub fn no_game(&mut self, now: Time, key: &SessionKey) {
        self.written(now, key);
    }

    /// The log of an ended game is written.
    pub fn written(&mut self, now: Time, key: &SessionKey) {
        if let Some(id) = self.saving.remove(key) {
            self.host.handle(now, host::Input::Saved(id));
        }
    }

    fn session_of(&self, key: &SessionKey) -> Option<SessionId> {
        self.plays.iter().find(|(_, play)| play.key == *key).map(|(id, _)| *id)
    }

    /// The next order for a game.
    pub fn poll_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Carries out the host's outputs.
    pub fn drain(&mut self, now: Time, links: &mut Links) {
        self.hear_gateways(now);
        while let Some(done) = self.chores.poll() {
            self.host.handle(now, done);
        }
        let mut any = false;
        loop {
            match self.host.poll_output() {
                host::Output::WakeAt(at) => {
                    self.wake_at = at;
                    break;
                }
                output => self.carry_out(links, output),
            }
            any = true;
        }
        self.tell_where_to_play(links);
        if any {
            let running = self.host.sessions().filter(|session| session.phase() == Phase::Running).count();
            self.count.set((self.host.sessions().count(), running));
        }
    }

    fn carry_out(&mut self, links: &mut Links, output: host::Output) {
        match output {
            host::Output::Gateway(gateway, said) => self.gateways.say(gateway, said),
            host::Output::Gateways(said) => self.gateways.say_to_all(&said),
            host::Output::Tell(member, event) => self.tell(links, member, event),
            host::Output::Answer(member, seq, answer) => self.answer(links, member, seq, answer),
            host::Output::Close(member, closing) => self.close_member(links, member, closing),
            host::Output::Store(session, number) => {
                if let Some(bytes) = self.host.snapshot(session) {
                    self.chores.store(session, number, self.folder.path_of(session), bytes);
                }
            }
            host::Output::Delete(session) => self.chores.delete(session, self.folder.path_of(session)),
            host::Output::Weigh(work, salt, password) => self.chores.weigh(work, salt, password),
            host::Output::Begin { session, round, again } => self.begin(session, round, again),
            host::Output::Manned(session, ..)
            | host::Output::Unmanned(session, _)
            | host::Output::Left(session, _) => self.stale.push(session),
            host::Output::Finish(session) | host::Output::Over(session, _) => self.finish(session),
            host::Output::Save(session) => self.save(session),
            host::Output::Suspended(session) => {
                tracing::info!(%session, "a session waits for the next life of this host");
            }
            host::Output::Done => self.is_done = true,
            host::Output::WakeAt(_) => {}
        }
    }

    fn begin(&mut self, id: SessionId, round: u32, again: bool) {
        let Some(session) = self.host.session(id) else { return };
        match Play::new(session, round, &self.games) {
            Ok(play) => {
                tracing::info!(session = %id, round, again, place = play.key.name, "a game begins");
                self.plays.insert(id, play);
                self.stale.push(id);
            }
            Err(why) => tracing::error!(session = %id, why, "a game cannot begin"),
        }
    }

    /// Orders the end of a session's game, if it is running.
    fn finish(&mut self, id: SessionId) {
        if let Some(play) = self.plays.remove(&id) {
            self.orders.push_back(Order::End(play.mode, play.key));
        }
        self.stale.push(id);
    }

    /// Orders the end of a session's game and waits for its log to be on disk.
    fn save(&mut self, id: SessionId) {
        match self.plays.remove(&id) {
            Some(play) => {
                self.saving.insert(play.key.clone(), id);
                self.orders.push_back(Order::End(play.mode, play.key));
            }
            None => self.host.handle(Time::ZERO, host::Input::Saved(id)),
        }
    }

    fn hear_gateways(&mut self, now: Time) {
        while let Some((gateway, heard)) = self.gateways.poll(self.folder.id) {
            match heard {
                Downward::Asked(ask) => self.host.handle(now, host::Input::Gateway(gateway, ask)),
                Downward::EndIfIdle if self.host.is_idle() => self.end(now, 0),
                Downward::EndIfIdle => {}
                Downward::End(within_us) => {
                    tracing::info!("the gateway wants this host to end");
                    self.end(now, within_us);
                }
            }
        }
    }

    fn player_at(&self, member: Member) -> Option<(SessionId, PlayerId)> {
        let id = self.host.session_of(member)?;
        Some((id, self.host.session(id)?.player_of(member)?))
    }
}

impl Gateways {
    fn poll(&mut self, host: sametick_session::id::HostId) -> Option<(GatewayId, Downward)> {
        for at in 0..self.connections.len() {
            while let Some(event) = self.connections.get_mut(at).and_then(ControlConnections::poll) {
                match event {
                    Event::Opened(connection) => {
                        let id = GatewayId(self.next);
                        self.next += 1;
                        self.ids.insert((at, connection), id);
                        self.open.insert(id, (at, connection));
                        self.send((at, connection), &Upward::Enlist { host, port: self.port });
                        tracing::info!("a gateway is there");
                    }
                    Event::Closed(connection) => {
                        if let Some(id) = self.ids.remove(&(at, connection)) {
                            self.open.remove(&id);
                            tracing::warn!("a gateway is gone; sessions go on");
                        }
                    }
                    Event::Message(connection, bytes) => {
                        let id = self.ids.get(&(at, connection)).copied();
                        if let (Some(id), Ok(said)) = (id, control::from_bytes(&bytes)) {
                            return Some((id, said));
                        }
                    }
                }
            }
        }
        None
    }

    fn send(&mut self, (at, connection): (usize, ControlId), said: &Upward) {
        if let Some(connections) = self.connections.get_mut(at) {
            connections.send(connection, control::to_bytes(said));
        }
    }

    fn say(&mut self, gateway: GatewayId, said: FromHost) {
        if let Some(at) = self.open.get(&gateway).copied() {
            self.send(at, &Upward::Said(said));
        }
    }

    fn say_to_all(&mut self, said: &FromHost) {
        for at in self.open.values().copied().collect::<Vec<_>>() {
            self.send(at, &Upward::Said(said.clone()));
        }
    }
}

/// The kinds of sessions that a game offers.
fn offers(game: &dyn AnyGame) -> Vec<Offer> {
    let Some(contest) = game.contest() else { return Vec::new() };
    let named = |text: &str| Name::parse(text).ok();
    let group = |group: &sametick_sim::contest::SeatGroup| {
        let seats: Option<Vec<Name>> = group.seats.iter().map(|seat| named(seat)).collect();
        Some(GroupPlan { name: named(group.name)?, seats: seats? })
    };
    let groups: Option<Vec<GroupPlan>> = contest.groups().iter().map(group).collect();
    let plan = groups.and_then(Plan::new);
    let modes = [Some(Mode::Lockstep), game.room().map(|_| Mode::Room)];
    let offer = |mode| Some(Offer { game: named(game.name())?, mode, plan: plan.clone()? });
    modes.into_iter().flatten().filter_map(offer).collect()
}
