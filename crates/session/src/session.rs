//! The life cycle of one session, LOBBY → RUNNING → RESULTS → CLOSED, as a state machine that its host owns.
//!
//! After each [`Session::handle`], the driver calls [`Session::poll_output`] until it returns [`Output::WakeAt`].
//! Members are told of a change only once it is stored: [`Output::Store`] goes out, [`Input::Stored`] comes back, and
//! what waited for it follows. A driver that stores nothing answers at once.

mod joining;
mod kept;
mod looking;
mod moving;
mod playing;
mod telling;
mod times;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Seat, Time};
use sametick_wire::Member;
use sametick_wire::identity::{PlayerId, Token};

use crate::id::{Key, SessionId};
use crate::message::{Closing, Ending, Event, Forward, Parting, Phase, Refusal, Request, View};
use crate::name::Name;
use crate::password::{Lock, Password, Salt, Weight};
use crate::plan::Plan;
use crate::settings::Settings;
use crate::ticket::{Admission, Ticket, Tokens};
pub use kept::Damaged;
pub(crate) use kept::Kept;
use sametick_wire::rate_limit::{RateLimit, TokenBucket};

/// How long the seat of a disconnected player is held (B9).
pub const WINDOW_US: u64 = sametick_wire::claims::HOLD_US;

/// A lobby without any member closes after this time.
pub const UNCLAIMED_US: u64 = 30_000_000;

/// A lobby without activity closes after this time (B7).
pub const IDLE_US: u64 = 30 * 60_000_000;

/// How long results are kept (B7).
pub const RESULTS_US: u64 = 5 * 60_000_000;

/// How long a game goes on without any connected player.
pub const ABANDONED_US: u64 = 5 * 60_000_000;

/// How long an old token stays valid after the first message over the link that got its successor.
pub const GRACE_US: u64 = 10_000_000;

/// A game that crashes this often within [`CRASHES_WITHIN_S`] is stopped for good.
pub const MAX_CRASHES: usize = 3;
/// See [`MAX_CRASHES`].
pub const CRASHES_WITHIN_S: u64 = 60;

/// How long a session from another host waits for its members: the old host may have to restart before it can tell
/// them.
pub const DORMANT_US: u64 = 5 * 60_000_000;

/// The rate limit of chat, for each member.
pub const CHAT: RateLimit = RateLimit::every_us(1_000_000, 5);

/// The most banned players; a further ban lifts the oldest one.
pub const MAX_BANNED: usize = 256;

/// The most passwords that are hashed for one session at once.
pub const MAX_WORKS: usize = 8;

/// The most bytes of results.
pub const MAX_RESULTS: usize = 16 << 10;

/// The most outputs that wait for storage; beyond it, the session refuses requests.
const MAX_WAITING: usize = 4_096;

/// What happens to a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// A player asks for a place. Answered with [`Output::Reserved`].
    Reserve(Reserve),
    /// A password has been hashed.
    Weighed(u64, Weight),
    /// A connection presents a ticket that is authentic but may have been used.
    Arrive(Member, Ticket),
    /// A connection presents a player and a resume token.
    Resume(Member, PlayerId, Token),
    /// A member's request, with the member's own number for it. Answered with [`Output::Answer`].
    Say(Member, u64, Request),
    /// A member's connection has ended without a goodbye.
    Cut(Member),
    /// The game has ended, with these results.
    Ended(String),
    /// The game has crashed without its host, at this Unix time.
    Crashed(u64),
    /// What [`Session::snapshot`] gave for this number is stored.
    Stored(u64),
    /// Close the session.
    Close(Ending),
    /// The host is shutting down: nothing changes until it is known where the session goes on. Answered with
    /// [`Output::Frozen`].
    Freeze,
    /// Another host has adopted the session: its new place, and the tickets for it.
    Moved(Forward, Vec<Admission>),
    /// The host that moves the session here has not received the answer to [`Output::Adopted`].
    Again,
    /// The host is shutting down: the session resumes in its next incarnation.
    Suspend,
    /// The time of `WakeAt` has come.
    Timeout,
}

/// A player who asks for a place.
#[derive(Clone, Debug)]
pub struct Reserve {
    /// The caller's own number for the request.
    pub ask: u64,
    /// The player.
    pub player: PlayerId,
    /// The player's name.
    pub name: Name,
    /// The password that the player gave.
    pub password: Option<Password>,
    /// The wanted seat.
    pub seat: Option<Seat>,
    /// The player has created the session, and needs no password.
    pub is_maker: bool,
}

/// What a session asks its driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The answer to [`Input::Reserve`] with this number.
    Reserved(u64, Result<Ticket, Refusal>),
    /// Hash a password, on another thread: [`Input::Weighed`] with this number.
    Weigh(u64, Salt, Password),
    /// Store [`Session::snapshot`]: [`Input::Stored`] with this number, or a later one.
    Store(u64),
    /// Send an event to a member.
    Tell(Member, Event),
    /// Answer a member's request, by its number.
    Answer(Member, u64, Result<(), Refusal>),
    /// End a connection, with this reason.
    Close(Member, Closing),
    /// Start this round of the game with all seats vacant, or resume it from its save and log.
    Begin {
        /// The round.
        round: u32,
        /// Whether it may have been started before: then it resumes from its save and log, if there are any.
        again: bool,
    },
    /// This player occupies this seat now.
    Manned(Seat, PlayerId),
    /// The seat is vacant now: an autopilot may take it.
    Unmanned(Seat),
    /// A player, seated or not, connected or not, is no longer a member: the driver has to end all their links.
    Left(PlayerId),
    /// End the game now, whatever its state.
    Finish,
    /// The session is over and all members are told: nothing more happens. Its snapshot may be deleted.
    Closed(Ending),
    /// The frozen state is stored: save the running game, if there is one, and end it.
    Frozen,
    /// The adopted session is stored: these are the tickets of its members.
    Adopted(Vec<Ticket>),
    /// All members are told that the host is shutting down: nothing more happens. The snapshot stays.
    Suspended,
    /// Nothing to do before this time.
    WakeAt(Option<Time>),
}

/// A member's presence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    On(Member),
    /// Disconnected; the seat is held until this time.
    Away(Time),
}

/// The state of a member that is not stored.
#[derive(Clone, Debug)]
struct Presence {
    place: Place,
    /// The serial number of the token that was given over this link.
    serial: u32,
    /// A message has arrived over this link, so its token has arrived too.
    is_heard: bool,
    /// From this time on, only tokens from this serial number on are valid.
    grace: Option<(Time, u32)>,
    chat: TokenBucket,
}

/// A player who has a ticket and has not arrived.
#[derive(Clone, Debug)]
struct Expected {
    name: Name,
    ticket: Ticket,
}

/// The purpose of hashing a password.
#[derive(Clone, Debug)]
enum Work {
    Join(Reserve, Salt),
    Lock(Member, u64, Salt),
}

/// Whether the session is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    None,
    /// Inactive until it is known where the session goes on.
    Frozen,
    /// Inactive for the rest of this incarnation of the host.
    Suspended,
}

/// One session.
pub struct Session {
    now: Time,
    kept: Kept,
    tokens: Tokens,
    presences: BTreeMap<PlayerId, Presence>,
    links: BTreeMap<Member, PlayerId>,
    expected: BTreeMap<PlayerId, Expected>,
    works: BTreeMap<u64, Work>,
    guesses: TokenBucket,
    next_nonce: u64,
    next_work: u64,
    /// The last activity in the lobby.
    active_at: Time,
    /// Since when no member is connected.
    empty_at: Time,
    /// When the present phase started.
    phase_at: Time,
    rest: Rest,
    /// Members who have left since the last update, and why.
    gone: Vec<(PlayerId, Parting)>,
    /// Members who have come since the last update.
    came: Vec<Member>,
    told: View,
    fresh: Vec<Output>,
    waiting: VecDeque<(u64, Output)>,
    /// Passwords to hash: this does not wait for storage.
    weighing: VecDeque<Output>,
    revision: u64,
    storing: u64,
    stored: u64,
}

/// The parameters of a new session.
#[derive(Clone, Debug)]
pub struct Founding {
    /// Its id.
    pub id: SessionId,
    /// The key of the request that creates it.
    pub key: Key,
    /// The seats of its game.
    pub plan: Plan,
    /// The settings; they have to [fit](Settings::fit) the plan.
    pub settings: Settings,
    /// Its password.
    pub lock: Option<Lock>,
}

impl Session {
    /// A session without members. None if the settings do not fit the plan.
    pub fn new(now: Time, secret: &[u8; 32], founding: Founding) -> Option<Session> {
        let Founding { id, key, plan, settings, lock } = founding;
        if !settings.fit(&plan) {
            return None;
        }
        let labels = plan.groups().iter().map(|group| group.name.clone()).collect();
        let kept = Kept {
            id,
            key,
            plan,
            settings,
            lock,
            phase: Phase::Lobby,
            ending: None,
            round: 0,
            results: None,
            creator: None,
            labels,
            people: Vec::new(),
            banned: Vec::new(),
            next: 0,
            salts: 0,
            crashes: Vec::new(),
            origin: id,
            was: None,
            dormant: false,
            forward: None,
        };
        let mut session = Session::with(now, secret, kept);
        session.revision = 1;
        Some(session)
    }

    /// Restores a stored session in a new incarnation of its host. The seats of all members are held. `crashed_s` is
    /// the Unix time if the last incarnation crashed.
    pub fn restore(
        now: Time,
        secret: &[u8; 32],
        stored: &[u8],
        crashed_s: Option<u64>,
    ) -> Result<Session, Damaged> {
        let mut session = Session::with(now, secret, Kept::from_bytes(stored)?);
        let before = session.kept.clone();
        session.come_back(crashed_s);
        session.settle(&before);
        Ok(session)
    }

    fn with(now: Time, secret: &[u8; 32], kept: Kept) -> Session {
        let tokens = Tokens::new(secret, kept.id);
        let mut session = Session {
            now,
            told: View {
                session: kept.id,
                plan: kept.plan.clone(),
                settings: kept.settings.clone(),
                locked: false,
                phase: kept.phase,
                round: kept.round,
                results: None,
                creator: None,
                groups: Vec::new(),
                people: Vec::new(),
            },
            kept,
            tokens,
            presences: BTreeMap::new(),
            links: BTreeMap::new(),
            expected: BTreeMap::new(),
            works: BTreeMap::new(),
            guesses: TokenBucket::default(),
            next_nonce: 0,
            next_work: 0,
            active_at: now,
            empty_at: now,
            phase_at: now,
            rest: Rest::None,
            gone: Vec::new(),
            came: Vec::new(),
            fresh: Vec::new(),
            waiting: VecDeque::new(),
            weighing: VecDeque::new(),
            revision: 0,
            storing: 0,
            stored: 0,
        };
        session.told = session.view();
        session
    }

    /// Handles an event.
    pub fn handle(&mut self, now: Time, input: Input) {
        self.now = self.now.max(now);
        if let Input::Stored(revision) = input {
            self.stored = self.stored.max(revision.min(self.revision));
            return;
        }
        let is_ask = matches!(input, Input::Reserve(_) | Input::Say(..));
        if self.rest == Rest::Suspended || self.waiting.len() > MAX_WAITING && is_ask {
            return;
        }
        let before = self.kept.clone();
        if self.rest == Rest::Frozen {
            self.handle_frozen(input);
            return self.settle(&before);
        }
        self.pass_time();
        match input {
            Input::Reserve(reserve) => self.reserve(reserve),
            Input::Weighed(work, weight) => self.weighed(work, weight),
            Input::Arrive(member, ticket) => self.arrive(member, &ticket),
            Input::Resume(member, player, token) => self.resume(member, player, &token),
            Input::Say(member, seq, request) => self.say(member, seq, request),
            Input::Cut(member) => self.cut(member),
            Input::Ended(results) => self.ended(results),
            Input::Crashed(unix_s) => self.crashed(unix_s),
            Input::Close(ending) => self.close(ending),
            Input::Freeze => self.freeze(),
            Input::Again => self.give_tickets(),
            Input::Suspend => self.suspend(),
            Input::Moved(..) | Input::Stored(_) | Input::Timeout => {}
        }
        self.settle(&before);
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Output {
        if let Some(weigh) = self.weighing.pop_front() {
            return weigh;
        }
        if self.storing <= self.stored && self.storing < self.revision {
            self.storing = self.revision;
            return Output::Store(self.revision);
        }
        if self.waiting.front().is_some_and(|(revision, _)| *revision <= self.stored)
            && let Some((_, output)) = self.waiting.pop_front()
        {
            return output;
        }
        Output::WakeAt(self.wake_at())
    }

    /// The state to store: all that has to survive the process. It is at least as new as the last [`Output::Store`].
    pub fn snapshot(&self) -> Vec<u8> {
        self.kept.to_bytes()
    }

    /// Whether a player is connected.
    fn is_on(&self, player: PlayerId) -> bool {
        self.presences.get(&player).is_some_and(|presence| matches!(presence.place, Place::On(_)))
    }

    /// Whether the state is consistent: tests call it after every step.
    pub fn is_sound(&self) -> bool {
        let is_linked = |(member, player): (&Member, &PlayerId)| {
            self.presences.get(player).is_some_and(|presence| presence.place == Place::On(*member))
        };
        let on = |presence: &&Presence| matches!(presence.place, Place::On(_));
        let mut held: Vec<Seat> = self.expected.values().filter_map(|one| one.ticket.seat).collect();
        held.extend(self.kept.people.iter().filter_map(|person| person.seat));
        let count = held.len();
        held.sort_unstable();
        held.dedup();
        self.kept.is_sound()
            && held.len() == count
            && self.presences.keys().eq(self.kept.people.iter().map(|person| &person.player))
            && self.links.iter().all(is_linked)
            && self.links.len() == self.presences.values().filter(on).count()
            && self.works.len() <= MAX_WORKS
    }
}
