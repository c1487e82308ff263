//! A host: runs sessions, and is the only authority for them. [`Host`] ↔ [`Gateway`](crate::gateway::Gateway).
//!
//! After each [`Host::handle`], the driver calls [`Host::poll_output`] until it returns [`Output::WakeAt`]. The host
//! owns its sessions: their outputs come out with the id of the session.

mod asking;
mod members;
mod moving;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Seat, Time};
use sametick_wire::Member;
use sametick_wire::identity::{PlayerId, Token};

use crate::id::{HostId, Incarnation, Key, SessionId, Source};
use crate::message::{Closing, Ending, Event, Forward, Phase, Refusal, Request};
use crate::name::Name;
use crate::password::{GUESSES, MAX_GUESSERS, Password, Salt, Weight};
use crate::placing::{Beat, FromHost, MAX_SESSIONS, Standing, ToHost};
use crate::plan::Plan;
use crate::session::{self, Damaged, Session};
use crate::settings::Mode;
use crate::ticket::{PASS_LEN, Passes, Seal, Tokens};
use sametick_wire::rate_limit::TokenBuckets;

/// The interval of beats.
pub const BEAT_US: u64 = 2_000_000;

/// The delay of a beat after a change.
const NEWS_US: u64 = 200_000;

/// How long a host remembers that a session is over, and why.
pub const REMEMBERED_US: u64 = 5 * 60_000_000;

/// The most sessions that are over and remembered.
const MAX_GRAVES: usize = 1_024;

/// A request without an answer is dropped after this time: by then the gateway has given up.
const MAX_ASK_US: u64 = 30_000_000;

/// The most requests at once; further ones are dropped, and the gateway repeats them.
const MAX_ASKS: usize = 4_096;

/// The most passwords that are hashed at once, over all sessions: each takes 19 MiB.
pub const MAX_WORKS: usize = 32;

/// A gateway's connection, as the driver names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GatewayId(pub u64);

/// A game that a host offers.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Its name.
    pub game: Name,
    /// Its mode.
    pub mode: Mode,
    /// Its seats.
    pub plan: Plan,
}

/// Configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its id.
    pub id: HostId,
    /// One more than in its last incarnation.
    pub life: Incarnation,
    /// 256 random bits, the same in all incarnations.
    pub secret: [u8; 32],
    /// The address where players reach it.
    pub address: String,
    /// The most sessions that it takes.
    pub capacity: u16,
    /// The games that it offers.
    pub offers: Vec<Offer>,
}

/// What happens to a host.
#[derive(Clone, Debug)]
pub enum Input {
    /// A message from a gateway.
    Gateway(GatewayId, ToHost),
    /// A connection presents a ticket.
    Arrive(Member, String),
    /// A connection presents a player and a resume token of a session.
    Resume(Member, SessionId, PlayerId, Token),
    /// A member's request, with the member's own number for it.
    Say(Member, u64, Request),
    /// A connection has ended.
    Cut(Member),
    /// The game of a session has ended, with these results.
    Ended(SessionId, String),
    /// The game of a session has crashed, at this Unix time.
    Crashed(SessionId, u64),
    /// The snapshot of a session is stored, up to this number.
    Stored(SessionId, u64),
    /// A password has been hashed.
    Weighed(u64, Weight),
    /// [`Output::Save`] is done.
    Saved(SessionId),
    /// The operator closes a session.
    Close(SessionId),
    /// The process is shutting down and has to be done within this time.
    Drain(u64),
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a host asks its driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message to a gateway.
    Gateway(GatewayId, FromHost),
    /// Send a message to all gateways.
    Gateways(FromHost),
    /// Send an event to a member.
    Tell(Member, Event),
    /// Answer a member's request, by its number.
    Answer(Member, u64, Result<(), Refusal>),
    /// End a connection, with this reason.
    Close(Member, Closing),
    /// Store [`Host::snapshot`] of this session: [`Input::Stored`] with this number.
    Store(SessionId, u64),
    /// The stored snapshot of this session is no longer needed.
    Delete(SessionId),
    /// Hash a password, on another thread: [`Input::Weighed`] with this number.
    Weigh(u64, Salt, Password),
    /// Start or resume this round of a session's game.
    Begin {
        /// The session.
        session: SessionId,
        /// The round.
        round: u32,
        /// Whether it may have been started before: then it resumes from its save and log, if there are any.
        again: bool,
    },
    /// This player occupies this seat now.
    Manned(SessionId, Seat, PlayerId),
    /// The seat is vacant now.
    Unmanned(SessionId, Seat),
    /// A player is no longer a member: the driver has to end their links to the game.
    Left(SessionId, PlayerId),
    /// End the game of a session now.
    Finish(SessionId),
    /// Save the running game of a session where other hosts find it, and end it: [`Input::Saved`].
    Save(SessionId),
    /// A session is stored for the host's next incarnation.
    Suspended(SessionId),
    /// A session is over; its log and saves stay.
    Over(SessionId, Ending),
    /// Everything is stored and everybody is told: the process may exit.
    Done,
    /// Nothing to do before this time.
    WakeAt(Option<Time>),
}

struct Running {
    session: Session,
    wake_at: Option<Time>,
    rest: Rest,
}

/// The progress of a session that is being moved or suspended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    None,
    /// Its game is being saved.
    Frozen,
    /// It is offered to other hosts.
    Offered,
    Suspended,
}

/// What is remembered of a session that is over.
struct Grave {
    key: Key,
    ending: Ending,
    until: Time,
    is_stored: bool,
    forward: Option<Forward>,
}

/// The origin of a request.
#[derive(Clone, Copy)]
struct Asked {
    gateway: GatewayId,
    session: SessionId,
    what: What,
    at: Time,
}

#[derive(Clone, Copy)]
enum What {
    Place(Key),
    Reserve(u64),
}

/// The purpose of hashing a password.
enum Work {
    Session(SessionId, u64),
    Place(GatewayId, Box<ToHost>, SessionId, Salt),
    /// The session does not exist, and the answer has to take as long as if it did.
    Decoy(GatewayId, u64),
}

/// A host.
pub struct Host {
    config: HostConfig,
    seal: Seal,
    passes: Passes,
    now: Time,
    running: BTreeMap<SessionId, Running>,
    keys: BTreeMap<Key, SessionId>,
    graves: BTreeMap<SessionId, Grave>,
    members: BTreeMap<Member, SessionId>,
    asks: BTreeMap<u64, Asked>,
    works: BTreeMap<u64, Work>,
    guesses: TokenBuckets<Source>,
    next: u64,
    beats: u64,
    beat_at: Time,
    beaten_at: Time,
    /// The deadline for sessions that still run.
    drain_at: Option<Time>,
    /// When sessions are offered to other hosts again.
    offer_at: Time,
    /// The gateways that have to hear of an adopted session, and the incarnation of the host that offered it.
    adoptions: BTreeMap<SessionId, (Incarnation, BTreeSet<GatewayId>)>,
    is_done: bool,
    outputs: VecDeque<Output>,
}

/// Stored sessions that cannot be restored: their index in the given list, and why.
pub type Lost = Vec<(usize, Damaged)>;

impl Host {
    /// A host with its stored sessions. `crashed_s` is the Unix time if the last incarnation crashed.
    pub fn new(now: Time, config: HostConfig, stored: &[Vec<u8>], crashed_s: Option<u64>) -> (Host, Lost) {
        let mut host = Host {
            seal: Seal::new(&config.secret, config.life),
            passes: Passes::new(&config.secret),
            now,
            running: BTreeMap::new(),
            keys: BTreeMap::new(),
            graves: BTreeMap::new(),
            members: BTreeMap::new(),
            asks: BTreeMap::new(),
            works: BTreeMap::new(),
            guesses: TokenBuckets::new(GUESSES, MAX_GUESSERS),
            next: 0,
            beats: 0,
            beat_at: now,
            beaten_at: now,
            drain_at: None,
            offer_at: now,
            adoptions: BTreeMap::new(),
            is_done: false,
            outputs: VecDeque::new(),
            config,
        };
        let mut lost = Lost::new();
        for (at, bytes) in stored.iter().enumerate() {
            match Session::restore(now, &host.config.secret, bytes, crashed_s) {
                // A session of another host runs there, not here.
                Ok(session) if session.id().host != host.config.id => lost.push((at, Damaged::Unsound)),
                Ok(session) => host.run(session),
                Err(why) => lost.push((at, why)),
            }
        }
        (host, lost)
    }

    /// Handles an event.
    pub fn handle(&mut self, now: Time, input: Input) {
        self.now = self.now.max(now);
        match input {
            Input::Gateway(gateway, ask) => self.asked(gateway, ask),
            Input::Arrive(member, ticket) => self.arrive(member, &ticket),
            Input::Resume(member, session, player, token) => self.resume(member, session, player, token),
            Input::Say(member, seq, request) => {
                self.pass_to_that_of(member, session::Input::Say(member, seq, request));
            }
            Input::Cut(member) => {
                self.pass_to_that_of(member, session::Input::Cut(member));
                self.members.remove(&member);
            }
            Input::Ended(session, results) => self.pass_to(session, session::Input::Ended(results)),
            Input::Crashed(session, unix_s) => self.pass_to(session, session::Input::Crashed(unix_s)),
            Input::Stored(session, number) => self.pass_to(session, session::Input::Stored(number)),
            Input::Weighed(work, weight) => self.weighed(work, weight),
            Input::Saved(session) => self.saved(session),
            Input::Close(session) => self.pass_to(session, session::Input::Close(Ending::Stopped)),
            Input::Drain(within_us) => {
                let at = self.now.plus_micros(within_us);
                self.drain_at = Some(self.drain_at.map_or(at, |earlier| earlier.min(at)));
                self.beat_at = self.now;
            }
            Input::Timeout => {}
        }
        self.pass_time();
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Output {
        self.outputs.pop_front().unwrap_or_else(|| Output::WakeAt(self.wake_at()))
    }

    /// The state of a session that has to be stored.
    pub fn snapshot(&self, session: SessionId) -> Option<Vec<u8>> {
        self.running.get(&session).map(|running| running.session.snapshot())
    }

    /// The sessions that are not over.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.running.values().map(|running| &running.session)
    }

    /// One of these sessions.
    pub fn session(&self, session: SessionId) -> Option<&Session> {
        self.running.get(&session).map(|running| &running.session)
    }

    /// The session that this connection's player is a member of.
    pub fn session_of(&self, member: Member) -> Option<SessionId> {
        self.members.get(&member).copied()
    }

    /// The pass with which a member connects to the game of their session.
    pub fn pass(&self, session: SessionId, player: PlayerId) -> [u8; PASS_LEN] {
        self.passes.of(session, player)
    }

    /// The session and player of a pass, if they are a member of a session here.
    pub fn holder(&self, pass: &[u8]) -> Option<(&Session, PlayerId)> {
        let (session, player) = self.passes.read(pass)?;
        self.session(session).filter(|session| session.has(player)).map(|session| (session, player))
    }

    /// Whether it takes no more sessions, because it is shutting down.
    pub fn is_draining(&self) -> bool {
        self.drain_at.is_some()
    }

    /// Whether it may be stopped: it has no session, no adopted copy in transit, and no stored session whose end it has
    /// to report.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.stored_graves() == 0
    }

    fn stored_graves(&self) -> usize {
        self.graves.values().filter(|grave| grave.is_stored).count()
    }

    fn run(&mut self, session: Session) {
        let id = session.id();
        self.keys.insert(session.key(), id);
        self.running.insert(id, Running { session, wake_at: None, rest: Rest::None });
        self.drain(id);
    }

    fn wake_at(&self) -> Option<Time> {
        if self.is_done {
            return None;
        }
        let sessions = self.running.values().filter_map(|running| running.wake_at);
        let graves = self.graves.values().map(|grave| grave.until);
        let drain = self.draining_wakes_at();
        sessions.chain(graves).chain(drain).chain([self.beat_at]).min()
    }

    fn pass_time(&mut self) {
        let now = self.now;
        let is_due = |running: &Running| running.wake_at.is_some_and(|at| at <= now);
        let due: Vec<SessionId> =
            self.running.iter().filter(|(_, running)| is_due(running)).map(|(id, _)| *id).collect();
        for id in due {
            self.pass_to(id, session::Input::Timeout);
        }
        let over: Vec<SessionId> =
            self.graves.iter().filter(|(_, grave)| grave.until <= now).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.forget(id));
        self.asks.retain(|_, asked| now.micros_since(asked.at) < MAX_ASK_US);
        self.go_on_draining();
        if self.beat_at <= now && !self.is_done {
            self.beat();
        }
    }

    fn beat(&mut self) {
        self.beats += 1;
        self.beaten_at = self.now;
        self.beat_at = self.now.plus_micros(BEAT_US);
        let live = self.running.values().filter(|running| is_listed(&running.session));
        let sessions: Vec<Standing> =
            live.map(|running| standing(&running.session)).take(MAX_SESSIONS).collect();
        let others = self.running.len() + self.stored_graves() - sessions.len();
        let beat = Beat {
            life: self.config.life,
            number: self.beats,
            address: self.config.address.clone(),
            capacity: self.config.capacity,
            is_draining: self.is_draining(),
            offers: self.config.offers.iter().map(|offer| (offer.game.clone(), offer.mode)).collect(),
            sessions,
            others: u16::try_from(others).unwrap_or(u16::MAX),
        };
        self.outputs.push_back(Output::Gateways(FromHost::Beat(beat)));
    }

    /// Something may have changed since the last beat.
    fn has_news(&mut self) {
        self.beat_at = self.beat_at.min(self.beaten_at.plus_micros(NEWS_US)).max(self.now);
    }

    fn tokens(&self, session: SessionId) -> Tokens {
        Tokens::new(&self.config.secret, session)
    }
}

fn is_listed(session: &Session) -> bool {
    session.phase() != Phase::Closed && !session.is_dormant()
}

fn standing(session: &Session) -> Standing {
    Standing { summary: session.summary(), key: session.key() }
}
