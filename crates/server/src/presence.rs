//! Presence for pages: the server takes a snapshot of sessions and players on changes, and readers get the last one.
//! Neither waits for the other.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sametick_lockstep::relay::Relay;
use sametick_lockstep::session::{Facts, Session};
use sametick_sim::{Seat, Tick};
use sametick_wire::Time;
use serde::Serialize;

use crate::rooms::{OpenRoom, Rooms};

/// Changes are collected for this long before a snapshot: a link's hello says right after it opens what it is for.
const GATHER_US: u64 = 50_000;

/// The least time between two snapshots.
const EVERY_US: u64 = 500_000;

/// The last snapshot. Clones share it.
#[derive(Clone, Default)]
pub struct Presence(Arc<Mutex<Arc<Seen>>>);

/// A snapshot of all sessions.
pub struct Seen {
    at: Instant,
    sessions: Vec<SeenSession>,
}

struct SeenSession {
    is_listed: bool,
    /// `None` while the session waits for players.
    ticks_per_second: Option<u32>,
    shown: ShownSession,
}

/// A session as shown on pages.
#[derive(Clone, Debug, Serialize)]
pub struct ShownSession {
    name: String,
    game: String,
    mode: Mode,
    build: String,
    tick: u32,
    seconds: u32,
    seats: u16,
    players: Vec<ShownPlayer>,
    #[serde(rename = "watchers")]
    spectators: usize,
}

/// Where the state is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Every peer computes the same state.
    Lockstep,
    /// The server computes the state.
    Room,
}

#[derive(Clone, Debug, Serialize)]
struct ShownPlayer {
    seat: u16,
    name: String,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { at: Instant::now(), sessions: Vec::new() }
    }
}

impl Presence {
    /// The last snapshot.
    pub fn read(&self) -> Arc<Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, seen: Seen) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(seen);
    }
}

impl Seen {
    /// The numbers of sessions and of players.
    pub fn counts(&self) -> (usize, usize) {
        let players = self.sessions.iter().map(|session| session.shown.players.len()).sum();
        (self.sessions.len(), players)
    }

    /// The listed sessions.
    pub fn listed(&self) -> Vec<ShownSession> {
        self.sessions.iter().filter(|session| session.is_listed).map(|session| self.now(session)).collect()
    }

    /// The room of a code, also if it is unlisted: a client that knows the code may see it. If several games have such
    /// a room, the one of the named game, or the first.
    pub fn room(&self, code: &str, game: Option<&str>) -> Option<ShownSession> {
        let is_it = |shown: &ShownSession| {
            shown.mode == Mode::Room && shown.name == code && game.is_none_or(|game| shown.game == game)
        };
        self.sessions.iter().find(|session| is_it(&session.shown)).map(|session| self.now(session))
    }

    /// The session at this moment: the present tick follows from the clock.
    fn now(&self, session: &SeenSession) -> ShownSession {
        let passed_ms = u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut shown = session.shown.clone();
        if let Some(rate) = session.ticks_per_second.filter(|rate| *rate > 0) {
            let passed = passed_ms.saturating_mul(rate.into()) / 1_000;
            shown.tick = shown.tick.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
            shown.seconds = shown.tick / rate;
        }
        shown
    }
}

/// Takes the snapshots.
pub struct PresenceKeeper {
    presence: Presence,
    /// When the next snapshot is due, if anything has changed.
    due_at: Option<Time>,
    next_at: Time,
}

impl PresenceKeeper {
    pub fn new(presence: Presence) -> PresenceKeeper {
        PresenceKeeper { presence, due_at: None, next_at: Time::ZERO }
    }

    /// Notes that members may have joined or left.
    pub fn changed(&mut self, now: Time) {
        self.due_at.get_or_insert(now.plus_micros(GATHER_US).max(self.next_at));
    }

    /// Takes a snapshot if one is due. Returns when the next is due.
    pub fn look(&mut self, now: Time, relay: &Relay, rooms: Option<&Rooms>) -> Option<Time> {
        if self.due_at.is_some_and(|at| at <= now) {
            self.due_at = None;
            self.next_at = now.plus_micros(EVERY_US);
            let sessions = relay.sessions().map(|(_, session)| see_session(session));
            let rooms = rooms.into_iter().flat_map(Rooms::iter).map(|(_, room)| see_room(room));
            self.presence.write(Seen { at: Instant::now(), sessions: sessions.chain(rooms).collect() });
        }
        self.due_at
    }
}

fn see_session(session: &Session) -> SeenSession {
    let who = session.participants().map(|participant| (participant.seat, participant.name));
    let seen = see(session.facts(), Mode::Lockstep, session.history().last(), who);
    let is_waiting = session.wake_at().is_none();
    SeenSession { ticks_per_second: seen.ticks_per_second.filter(|_| !is_waiting), ..seen }
}

fn see_room(room: &OpenRoom) -> SeenSession {
    let who = room.participants().map(|participant| (participant.seat, participant.name));
    see(room.facts(), Mode::Room, room.tick(), who)
}

fn see<'a>(
    facts: &Facts,
    mode: Mode,
    tick: Tick,
    who: impl Iterator<Item = (Option<Seat>, &'a str)>,
) -> SeenSession {
    let mut spectators = 0;
    let mut players = Vec::new();
    for (seat, name) in who {
        match seat {
            Some(seat) => players.push(ShownPlayer { seat: seat.0, name: name.into() }),
            None => spectators += 1,
        }
    }
    players.sort_by_key(|player| player.seat);
    let rate = facts.rate.per_second();
    SeenSession {
        is_listed: facts.listed,
        ticks_per_second: Some(rate),
        shown: ShownSession {
            name: facts.name.clone(),
            game: facts.game.clone(),
            mode,
            build: facts.build.to_string(),
            tick: tick.0,
            seconds: tick.0 / rate.max(1),
            seats: facts.seats,
            players,
            spectators,
        },
    }
}
