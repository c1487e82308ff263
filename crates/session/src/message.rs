//! What members and a session say to each other. These are the types; the envelope around them
//! (`v`, `kind`, `seq`, `feature`, `action`, `payload`), in JSON or MessagePack, is the server's, as it is for rooms.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sametick_sim::Seat;
use sametick_wire::identity::PlayerId;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, maybe_player, player};
use crate::name::{Line, Name};
use crate::password::Password;
use crate::plan::{Group, Plan};
use crate::settings::Settings;
use crate::ticket::Sealed;

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// People gather, choose seats and get ready.
    Lobby,
    /// The game goes on.
    Running,
    /// It is over, and everybody sees how it went.
    Results,
    /// Nothing more happens.
    Closed,
}

/// What a member wants. Its `feature` in the envelope is `session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", content = "payload", rename_all = "snake_case")]
pub enum Request {
    /// To sit there.
    Take {
        /// Where.
        seat: Seat,
    },
    /// To sit nowhere.
    Stand {},
    /// To begin, or not yet.
    Ready {
        /// Which.
        ready: bool,
    },
    /// To give the own group a name, as its captain.
    Rename {
        /// The name.
        name: Name,
    },
    /// To say something to all.
    Chat {
        /// What.
        line: Line,
    },
    /// To start the game, as the creator.
    Start {},
    /// To change what the session is about, as the creator.
    Settings {
        /// All of it.
        settings: Settings,
    },
    /// To set another password, or none, as the creator.
    Password {
        /// Which.
        password: Option<Password>,
    },
    /// To have somebody leave, as the creator.
    Kick {
        /// Whom.
        #[serde(with = "player")]
        player: PlayerId,
        /// They cannot come back.
        ban: bool,
    },
    /// To play again with the same people, as the creator.
    Rematch {},
    /// To leave for good.
    Leave {},
}

/// Somebody who takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Who.
    #[serde(with = "player")]
    pub player: PlayerId,
    /// What they are called: nobody else here is called so.
    pub name: Name,
    /// Where they sit.
    pub seat: Option<Seat>,
    /// Whether they want to begin.
    pub ready: bool,
    /// Whether they were cut off, and their seat waits.
    pub away: bool,
}

/// A group as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupState {
    /// Which.
    pub group: Group,
    /// What it is called.
    pub name: Name,
    /// Who came first of those who are in it.
    #[serde(with = "maybe_player")]
    pub captain: Option<PlayerId>,
}

/// Everything that members know of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Which session.
    pub session: SessionId,
    /// All seats there could be.
    pub plan: Plan,
    /// What it is about.
    pub settings: Settings,
    /// Whether it has a password.
    pub locked: bool,
    /// Where it is in its life.
    pub phase: Phase,
    /// How many games were begun.
    pub round: u32,
    /// How the last game went, in the game's own words (JSON).
    pub results: Option<String>,
    /// Whose session it is.
    #[serde(with = "maybe_player")]
    pub creator: Option<PlayerId>,
    /// The groups that take part.
    pub groups: Vec<GroupState>,
    /// Who is there, in the order of their ids.
    pub people: Vec<Person>,
}

/// What members are told when something has changed. Each says how something is now, so that hearing one twice does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// You are in.
    #[serde(rename_all = "camelCase")]
    Welcome {
        /// Who you are here.
        #[serde(with = "player")]
        you: PlayerId,
        /// Brings you back to your seat. Nobody else should know it.
        resume_token: String,
        /// Everything.
        view: Box<View>,
    },
    /// Somebody came, or something of them is different.
    Person(Person),
    /// Somebody is not there any more.
    Left {
        /// Who.
        #[serde(with = "player")]
        player: PlayerId,
        /// Why.
        why: Parting,
    },
    /// A group is different. Groups that take no part any more are told by `about`.
    Group(GroupState),
    /// The session is about something else.
    About {
        /// What.
        settings: Settings,
        /// Whether it has a password.
        locked: bool,
    },
    /// The session is at another point of its life.
    Phase {
        /// Which.
        phase: Phase,
        /// How many games were begun.
        round: u32,
        /// How the last one went.
        results: Option<String>,
    },
    /// The session is somebody else's.
    Creator {
        /// Whose.
        #[serde(with = "maybe_player")]
        creator: Option<PlayerId>,
    },
    /// The session goes on at another host, and this connection ends.
    Moved(Forward),
    /// Somebody says something.
    Chat {
        /// Who.
        #[serde(with = "player")]
        player: PlayerId,
        /// What they are called.
        name: Name,
        /// What.
        line: Line,
    },
}

/// Where a session goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    /// Which it is there.
    pub session: SessionId,
    /// Where its new host is reached.
    pub address: String,
    /// What lets one in within 15 s; without it one joins as one who was in it already.
    pub ticket: Option<Sealed>,
}

/// Why somebody is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parting {
    /// They wanted to go.
    Left,
    /// They were cut off and have not come back in time.
    Released,
    /// The creator wanted it.
    Kicked,
    /// The creator wanted it, and they cannot come back.
    Banned,
}

impl View {
    /// What it is like after an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Welcome { view, .. } => self.clone_from(view),
            Event::Person(person) => match self.people.binary_search_by_key(&person.player, |one| one.player)
            {
                Ok(at) => self.people[at] = person.clone(),
                Err(at) => self.people.insert(at, person.clone()),
            },
            Event::Left { player, .. } => self.people.retain(|person| person.player != *player),
            Event::Group(state) => match self.groups.iter_mut().find(|group| group.group == state.group) {
                Some(group) => *group = state.clone(),
                None => self.groups.push(state.clone()),
            },
            Event::About { settings, locked } => {
                (self.settings, self.locked) = (settings.clone(), *locked);
                self.groups.truncate(settings.groups.into());
            }
            Event::Phase { phase, round, results } => {
                (self.phase, self.round, self.results) = (*phase, *round, results.clone());
            }
            Event::Creator { creator } => self.creator = *creator,
            Event::Chat { .. } | Event::Moved(_) => {}
        }
    }
}

/// Why something is not done. Its name is the `code` of an error in the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// There is no such session, or the password is wrong: nobody is told which.
    NotFound,
    /// Everybody has a place already.
    Full,
    /// Somebody else sits there, or is about to.
    SeatTaken,
    /// There is no such seat in this session.
    NoSuchSeat,
    /// One has to sit somewhere first.
    NoSeat,
    /// There is nobody like that here.
    NoSuchPlayer,
    /// Not at this point of the session's life.
    NotNow,
    /// Only its creator may.
    NotCreator,
    /// Only the captain of a group may.
    NotCaptain,
    /// In some group nobody is ready, or nobody sits anywhere.
    NotReady,
    /// While a game goes on, one stays in one's group.
    OtherGroup,
    /// The creator does not want them back.
    Banned,
    /// Too much at once: later.
    TooFast,
    /// Too many guesses at passwords: later.
    TooManyGuesses,
    /// Too much to do at the moment: again in a second.
    Busy,
    /// The game cannot be had like this.
    BadSettings,
    /// The host has the game crash again and again; its log is kept.
    Quarantined,
    /// The session is over.
    Over,
    /// No host has a place for another session.
    NoHost,
    /// The host does not answer: again in a moment, with the same key.
    Unavailable,
    /// The server is about to stop.
    Stopping,
    /// The host has not been heard of for a long time. Should it come back, the session goes on.
    Lost,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 22] = [
        Refusal::NotFound,
        Refusal::Full,
        Refusal::SeatTaken,
        Refusal::NoSuchSeat,
        Refusal::NoSeat,
        Refusal::NoSuchPlayer,
        Refusal::NotNow,
        Refusal::NotCreator,
        Refusal::NotCaptain,
        Refusal::NotReady,
        Refusal::OtherGroup,
        Refusal::Banned,
        Refusal::TooFast,
        Refusal::TooManyGuesses,
        Refusal::Busy,
        Refusal::BadSettings,
        Refusal::Quarantined,
        Refusal::Over,
        Refusal::NoHost,
        Refusal::Unavailable,
        Refusal::Stopping,
        Refusal::Lost,
    ];

    /// For people: a sentence.
    pub fn message(self) -> &'static str {
        match self {
            Refusal::NotFound => "there is no such session, or its password is another",
            Refusal::Full => "the session is full",
            Refusal::SeatTaken => "somebody else has this seat",
            Refusal::NoSuchSeat => "this session has no such seat",
            Refusal::NoSeat => "choose a seat first",
            Refusal::NoSuchPlayer => "there is nobody like that in this session",
            Refusal::NotNow => "this cannot be done now",
            Refusal::NotCreator => "only the creator of the session may do this",
            Refusal::NotCaptain => "only the captain of the group may do this",
            Refusal::NotReady => "every group with somebody in it needs somebody who is ready",
            Refusal::OtherGroup => "while the game goes on, you stay in your group",
            Refusal::Banned => "the creator of the session does not want you back",
            Refusal::TooFast => "that was too fast; wait a little",
            Refusal::TooManyGuesses => "too many passwords were tried; wait a little",
            Refusal::Busy => "there is too much to do at the moment; try again",
            Refusal::BadSettings => "the game cannot be played like this",
            Refusal::Quarantined => {
                "the game crashed three times within a minute and was stopped; its log is kept"
            }
            Refusal::Over => "the session is over",
            Refusal::NoHost => "there is no place for another session at the moment",
            Refusal::Unavailable => "the host of the session does not answer; try again",
            Refusal::Stopping => "the server is about to stop",
            Refusal::Lost => "the host of the session has not been heard of for a minute or more",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Nobody came, or all have gone before a game began.
    Unclaimed,
    /// Nobody has done anything in the lobby for a long time.
    Idle,
    /// All have gone while a game went on.
    Abandoned,
    /// The results have been there for as long as they are kept.
    Finished,
    /// The game crashed again and again.
    Quarantined,
    /// It goes on at another host.
    Moved,
    /// The operator wanted it.
    Stopped,
}

/// Why a connection to a session is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// The ticket is no good: join again.
    BadTicket,
    /// The token is no good: join again.
    BadToken,
    /// You have come back over another connection.
    CameBack,
    /// You wanted to go.
    Left,
    /// The creator wanted it.
    Kicked,
    /// The creator wanted it, and does not want you back.
    Banned,
    /// The host stops, and the session goes on when it is back: come back with your token.
    Suspended,
    /// The session is over.
    Over(Ending),
}
