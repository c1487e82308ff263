//! A host: the place where sessions run, and the only one that decides about them. [`Host`] ↔ [`Gateway`](crate::gateway::Gateway).
//!
//! After each [`Host::handle`], [`Host::poll_output`] is called until it says [`Output::WakeAt`]. It owns its sessions: what one
//! wants comes out with the session's name.

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
use crate::pace::Paces;
use crate::password::{GUESSES, MAX_GUESSERS, Password, Salt, Weight};
use crate::placing::{Beat, FromHost, MAX_SESSIONS, Standing, ToHost};
use crate::plan::Plan;
use crate::session::{self, Damaged, Session};
use crate::settings::Mode;
use crate::ticket::{PASS_LEN, Passes, Seal, Tokens};

/// How often a host says how it is.
pub const BEAT_US: u64 = 2_000_000;

/// How soon it does when something has changed.
const NEWS_US: u64 = 200_000;

/// For how long a host remembers that a session is over, and why.
pub const REMEMBERED_US: u64 = 5 * 60_000_000;

/// So many are remembered.
const MAX_GRAVES: usize = 1_024;

/// What is asked and not answered is forgotten after so long: whoever asked has given up.
const MAX_ASK_US: u64 = 30_000_000;

/// So much is asked at once; more is not heard, and asked again.
const MAX_ASKS: usize = 4_096;

/// So many passwords are weighed at once, over all sessions: each takes 19 MiB.
pub const MAX_WORKS: usize = 32;

/// A gateway's connection, as the driver names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GatewayId(pub u64);

/// A game that a host has.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Its name.
    pub game: Name,
    /// How it is played.
    pub mode: Mode,
    /// Its seats.
    pub plan: Plan,
}

/// How a host is.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Which it is.
    pub id: HostId,
    /// One more than in its last life.
    pub life: Incarnation,
    /// 256 random bits, the same in all its lives.
    pub secret: [u8; 32],
    /// Where players reach it.
    pub address: String,
    /// How many sessions it takes.
    pub capacity: u16,
    /// What can be played.
    pub offers: Vec<Offer>,
}

/// What happens to a host.
#[derive(Clone, Debug)]
pub enum Input {
    /// A gateway asks for something.
    Gateway(GatewayId, ToHost),
    /// Somebody shows a ticket.
    Arrive(Member, String),
    /// Somebody says who they are, and shows a token of a session.
    Resume(Member, SessionId, PlayerId, Token),
    /// A member wants something; the number is theirs.
    Say(Member, u64, Request),
    /// A connection has ended.
    Cut(Member),
    /// The game of a session is over: how it went.
    Ended(SessionId, String),
    /// The game of a session has crashed, at this Unix time.
    Crashed(SessionId, u64),
    /// What was to be stored of a session is.
    Stored(SessionId, u64),
    /// A password has been weighed.
    Weighed(u64, Weight),
    /// What [`Output::Save`] asked for is done.
    Saved(SessionId),
    /// A session is to be closed, as the operator wants it.
    Close(SessionId),
    /// The process is to end, within so long.
    Drain(u64),
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a host wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Answer a gateway.
    Gateway(GatewayId, FromHost),
    /// Tell all gateways.
    Gateways(FromHost),
    /// Tell a member.
    Tell(Member, Event),
    /// The answer to what a member wanted, by their number.
    Answer(Member, u64, Result<(), Refusal>),
    /// End a connection, and say why.
    Close(Member, Closing),
    /// Store [`Host::snapshot`] of this session: [`Input::Stored`] with this number.
    Store(SessionId, u64),
    /// What was stored of this session is not needed any more.
    Delete(SessionId),
    /// Weigh a password, on another thread: [`Input::Weighed`] with this number.
    Weigh(u64, Salt, Password),
    /// Begin or take up this round of a session's game.
    Begin {
        /// Of which session.
        session: SessionId,
        /// Which round.
        round: u32,
        /// Whether it may have been begun before: then it goes on from its save and log, if there are any.
        again: bool,
    },
    /// Somebody is at this seat now.
    Manned(SessionId, Seat, PlayerId),
    /// Nobody is.
    Unmanned(SessionId, Seat),
    /// Somebody takes part in a session no more: the links to its game that they have are to end.
    Left(SessionId, PlayerId),
    /// The game of a session is to end now.
    Finish(SessionId),
    /// Save the game of a session where other hosts find it, if one goes on, and end it: [`Input::Saved`].
    Save(SessionId),
    /// A session is stored for the next life of the host.
    Suspended(SessionId),
    /// A session is over; its log and saves stay.
    Over(SessionId, Ending),
    /// Everything is stored and everybody told: the process may end.
    Done,
    /// Nothing more before this time.
    WakeAt(Option<Time>),
}

struct Running {
    session: Session,
    wake_at: Option<Time>,
    rest: Rest,
}

/// How far a session is that goes on elsewhere, or later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    None,
    /// Its game is being saved.
    Frozen,
    /// Other hosts may have it.
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

/// Who asked for something.
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

/// What a password is weighed for.
enum Work {
    Session(SessionId, u64),
    Place(GatewayId, Box<ToHost>, SessionId, Salt),
    /// There is no such session, which is to take as long as if there were.
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
    guesses: Paces<Source>,
    next: u64,
    beats: u64,
    beat_at: Time,
    beaten_at: Time,
    /// Until when those that run may go on.
    drain_at: Option<Time>,
    /// When sessions are offered to others again.
    offer_at: Time,
    /// Which gateways want to know of a session that was taken over, and in which life of its host that was.
    adoptions: BTreeMap<SessionId, (Incarnation, BTreeSet<GatewayId>)>,
    is_done: bool,
    outputs: VecDeque<Output>,
}

/// Sessions that were stored and cannot be taken up: their place among those that were given, and why.
pub type Lost = Vec<(usize, Damaged)>;

impl Host {
    /// A host with what was stored of its sessions. `crashed_s` is the Unix time, if its last life did not end in order.
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
            guesses: Paces::new(GUESSES, MAX_GUESSERS),
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
                // Somebody else's session runs where they are.
                Ok(session) if session.id().host != host.config.id => lost.push((at, Damaged::Unsound)),
                Ok(session) => host.run(session),
                Err(why) => lost.push((at, why)),
            }
        }
        (host, lost)
    }

    /// Takes in what happened.
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

    /// What is wanted next.
    pub fn poll_output(&mut self) -> Output {
        self.outputs.pop_front().unwrap_or_else(|| Output::WakeAt(self.wake_at()))
    }

    /// What is to be stored of a session.
    pub fn snapshot(&self, session: SessionId) -> Option<Vec<u8>> {
        self.running.get(&session).map(|running| running.session.snapshot())
    }

    /// The sessions that are not over.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.running.values().map(|running| &running.session)
    }

    /// One of them.
    pub fn session(&self, session: SessionId) -> Option<&Session> {
        self.running.get(&session).map(|running| &running.session)
    }

    /// The session whose member this connection is.
    pub fn session_of(&self, member: Member) -> Option<SessionId> {
        self.members.get(&member).copied()
    }

    /// What a member shows to take part in the game of their session.
    pub fn pass(&self, session: SessionId, player: PlayerId) -> [u8; PASS_LEN] {
        self.passes.of(session, player)
    }

    /// Whose pass this is, if they are a member of a session here.
    pub fn holder(&self, pass: &[u8]) -> Option<(&Session, PlayerId)> {
        let (session, player) = self.passes.read(pass)?;
        self.session(session).filter(|session| session.has(player)).map(|session| (session, player))
    }

    /// Whether it takes no more sessions, and will end.
    pub fn is_draining(&self) -> bool {
        self.drain_at.is_some()
    }

    /// Whether nobody needs it: it has no session, no copy of one that may be on its way, and nothing on disk to tell of one that is over.
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

    /// Something may be different from what was said last.
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
