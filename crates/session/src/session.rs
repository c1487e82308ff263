//! The life of one session, LOBBY → RUNNING → RESULTS → CLOSED, as a machine that its host owns.
//!
//! After each [`Session::handle`], [`Session::poll_output`] is called until it says [`Output::WakeAt`]. Nobody is told anything
//! before it is stored: [`Output::Store`] goes out, [`Input::Stored`] comes back, and what waited for it follows. A driver that
//! keeps nothing answers at once.

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
use crate::pace::{Limit, Pace};
use crate::password::{Lock, Password, Salt, Weight};
use crate::plan::Plan;
use crate::settings::Settings;
use crate::ticket::{Admission, Ticket, Tokens};
pub use kept::Damaged;
pub(crate) use kept::Kept;

/// For how long a seat waits for who was cut off (B9).
pub const WINDOW_US: u64 = sametick_wire::claims::HOLD_US;

/// After so long without anybody a lobby closes: nobody came, or all have gone.
pub const UNCLAIMED_US: u64 = 30_000_000;

/// After so long without anything done a lobby closes (B7).
pub const IDLE_US: u64 = 30 * 60_000_000;

/// For how long results are kept (B7).
pub const RESULTS_US: u64 = 5 * 60_000_000;

/// For how long a game goes on with nobody there at all.
pub const ABANDONED_US: u64 = 5 * 60_000_000;

/// For how long an old token is good after the first word over a link that was given a new one.
pub const GRACE_US: u64 = 10_000_000;

/// So many crashes within so long, and the game is stopped for good.
pub const MAX_CRASHES: usize = 3;
/// See [`MAX_CRASHES`].
pub const CRASHES_WITHIN_S: u64 = 60;

/// For how long a session that has come from another host waits for who is in it: the host may have to come back to tell them.
pub const DORMANT_US: u64 = 5 * 60_000_000;

/// How often somebody may say something to all.
pub const CHAT: Limit = Limit { every_us: 1_000_000, burst: 5 };

/// So many are kept out at once; the one that was first is let in again then.
pub const MAX_BANNED: usize = 256;

/// So many passwords are weighed for one session at once.
pub const MAX_WORKS: usize = 8;

/// The most bytes of results.
pub const MAX_RESULTS: usize = 16 << 10;

/// While so much waits to be stored, nothing more is asked of a session.
const MAX_WAITING: usize = 4_096;

/// What happens to a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// Somebody would like to come in. Answered with [`Output::Reserved`].
    Reserve(Reserve),
    /// A password has been weighed.
    Weighed(u64, Weight),
    /// Somebody shows a ticket that is good but may have been used.
    Arrive(Member, Ticket),
    /// Somebody says who they are and shows a token.
    Resume(Member, PlayerId, Token),
    /// A member wants something; the number is theirs. Answered with [`Output::Answer`].
    Say(Member, u64, Request),
    /// A member's connection has ended without a goodbye.
    Cut(Member),
    /// The game is over: how it went.
    Ended(String),
    /// The game has crashed, and its host has not, at this Unix time.
    Crashed(u64),
    /// What [`Session::snapshot`] gave for this number is stored.
    Stored(u64),
    /// The session is to be closed.
    Close(Ending),
    /// The host stops: nothing more is done until it is known where the session goes on. Answered with [`Output::Frozen`].
    Freeze,
    /// Another host has taken it over: there, and these are the tickets for it.
    Moved(Forward, Vec<Admission>),
    /// The host that wants to move it here has not heard what [`Output::Adopted`] said.
    Again,
    /// The host stops: the session goes on when it is back.
    Suspend,
    /// The time of `WakeAt` has come.
    Timeout,
}

/// Somebody who would like to come in.
#[derive(Clone, Debug)]
pub struct Reserve {
    /// The asker's own number for it.
    pub ask: u64,
    /// Who.
    pub player: PlayerId,
    /// What they are called.
    pub name: Name,
    /// What they say the password is.
    pub password: Option<Password>,
    /// Where they would like to sit.
    pub seat: Option<Seat>,
    /// They have made the session, and need no password.
    pub is_maker: bool,
}

/// What a session wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The answer to [`Input::Reserve`] with this number.
    Reserved(u64, Result<Ticket, Refusal>),
    /// Weigh a password, on another thread: [`Input::Weighed`] with this number.
    Weigh(u64, Salt, Password),
    /// Store [`Session::snapshot`]: [`Input::Stored`] with this number, or a later one.
    Store(u64),
    /// Tell a member.
    Tell(Member, Event),
    /// The answer to what a member wanted, by their number.
    Answer(Member, u64, Result<(), Refusal>),
    /// End a connection, and say why.
    Close(Member, Closing),
    /// Begin this round of the game, all seats without anybody; or go on with it from its save and log.
    Begin {
        /// Which round.
        round: u32,
        /// Whether it may have been begun before: then it goes on from its save and log, if there are any.
        again: bool,
    },
    /// Somebody is at this seat now.
    Manned(Seat, PlayerId),
    /// Nobody is at this seat now: an autopilot may have it.
    Unmanned(Seat),
    /// Somebody takes part no more, wherever they sat and whether they were connected: whatever is open of theirs is to end.
    Left(PlayerId),
    /// The game is to end now, whatever its state.
    Finish,
    /// The session is over, and everybody was told: nothing more happens. What was stored of it may be deleted.
    Closed(Ending),
    /// Nothing more is done, and that is stored: save the game, if one goes on, and end it.
    Frozen,
    /// It was taken over, and is stored: these tickets are for who is in it.
    Adopted(Vec<Ticket>),
    /// Everybody was told that the host stops: nothing more happens. What was stored stays.
    Suspended,
    /// Nothing more before this time.
    WakeAt(Option<Time>),
}

/// Where a member of the session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    On(Member),
    /// Cut off; the seat waits until then.
    Away(Time),
}

/// What is known of a member, and is not kept.
#[derive(Clone, Debug)]
struct Presence {
    place: Place,
    /// The token that was given over this link.
    serial: u32,
    /// Something was said over this link: its token has arrived.
    is_heard: bool,
    /// From when on only this token and later ones are good.
    grace: Option<(Time, u32)>,
    chat: Pace,
}

/// Somebody who has a ticket and has not arrived.
#[derive(Clone, Debug)]
struct Expected {
    name: Name,
    ticket: Ticket,
}

/// What a password is weighed for.
#[derive(Clone, Debug)]
enum Work {
    Join(Reserve, Salt),
    Lock(Member, u64, Salt),
}

/// Whether anything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    None,
    /// Not until it is known where the session goes on.
    Frozen,
    /// Not in this life of the host.
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
    guesses: Pace,
    next_nonce: u64,
    next_work: u64,
    /// When something was last done in the lobby.
    active_at: Time,
    /// Since when nobody is there.
    empty_at: Time,
    /// When the present phase began.
    phase_at: Time,
    rest: Rest,
    /// Who has gone since something was last told, and why.
    gone: Vec<(PlayerId, Parting)>,
    /// Who has come in since.
    came: Vec<Member>,
    told: View,
    fresh: Vec<Output>,
    waiting: VecDeque<(u64, Output)>,
    /// Passwords that are to be weighed: that waits for no disk.
    weighing: VecDeque<Output>,
    revision: u64,
    storing: u64,
    stored: u64,
}

/// How a session begins.
#[derive(Clone, Debug)]
pub struct Founding {
    /// Which it is.
    pub id: SessionId,
    /// By which request.
    pub key: Key,
    /// The seats of its game.
    pub plan: Plan,
    /// What it is about; it has to [fit](Settings::fit) the plan.
    pub settings: Settings,
    /// Its password.
    pub lock: Option<Lock>,
}

impl Session {
    /// A session that nobody has come to. None if the settings do not fit the plan.
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

    /// The session that was stored, in another life of its host. Everybody who was there is waited for. `crashed_s` is the Unix time,
    /// if the last life did not end in order.
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
            guesses: Pace::default(),
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

    /// Takes in what happened.
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

    /// What is wanted next.
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

    /// What is to be stored: everything that outlives the process. It is as the number that was last asked for, or newer.
    pub fn snapshot(&self) -> Vec<u8> {
        self.kept.to_bytes()
    }

    /// Whether somebody is connected.
    fn is_on(&self, player: PlayerId) -> bool {
        self.presences.get(&player).is_some_and(|presence| matches!(presence.place, Place::On(_)))
    }

    /// Whether everything hangs together: for tests, which call it after every step.
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
