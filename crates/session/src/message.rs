//! Messages between members and a session. The envelope around these types (`v`, `kind`, `seq`, `feature`, `action`,
//! `payload`), in JSON or MessagePack, is the server's, as it is for rooms.

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

/// The phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Players gather, choose seats and get ready.
    Lobby,
    /// The game runs.
    Running,
    /// The game is over, and its results are shown.
    Results,
    /// The session is over.
    Closed,
}

/// A member's request. Its `feature` in the envelope is `session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", content = "payload", rename_all = "snake_case")]
pub enum Request {
    /// Takes a seat.
    Take {
        /// The seat.
        seat: Seat,
    },
    /// Gives up the seat.
    Stand {},
    /// Sets or clears the ready state.
    Ready {
        /// The ready state.
        ready: bool,
    },
    /// Renames the own group; only its captain may.
    Rename {
        /// The name.
        name: Name,
    },
    /// Sends a line of chat to all members.
    Chat {
        /// The line.
        line: Line,
    },
    /// Starts the game; only the creator may.
    Start {},
    /// Changes the settings; only the creator may.
    Settings {
        /// All settings.
        settings: Settings,
    },
    /// Sets or removes the password; only the creator may.
    Password {
        /// The password.
        password: Option<Password>,
    },
    /// Removes a player; only the creator may.
    Kick {
        /// The player.
        #[serde(with = "player")]
        player: PlayerId,
        /// The player cannot rejoin.
        ban: bool,
    },
    /// Returns to the lobby with the same players; only the creator may.
    Rematch {},
    /// Leaves for good.
    Leave {},
}

/// A member as the others see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The player.
    #[serde(with = "player")]
    pub player: PlayerId,
    /// The name, unique in this session.
    pub name: Name,
    /// The seat.
    pub seat: Option<Seat>,
    /// Whether the player is ready.
    pub ready: bool,
    /// Whether the connection was lost and the seat is held.
    pub away: bool,
}

/// The state of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupState {
    /// The group.
    pub group: Group,
    /// Its name.
    pub name: Name,
    /// The player who has been in the group for the longest.
    #[serde(with = "maybe_player")]
    pub captain: Option<PlayerId>,
}

/// The full state of a session, as members see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The session.
    pub session: SessionId,
    /// All seats of the game.
    pub plan: Plan,
    /// The settings.
    pub settings: Settings,
    /// Whether it has a password.
    pub locked: bool,
    /// The phase.
    pub phase: Phase,
    /// The number of games started.
    pub round: u32,
    /// The results of the last game, in the game's own format (JSON).
    pub results: Option<String>,
    /// The player who created the session or has inherited it.
    #[serde(with = "maybe_player")]
    pub creator: Option<PlayerId>,
    /// The groups that take part.
    pub groups: Vec<GroupState>,
    /// The members, ordered by id.
    pub people: Vec<Person>,
}

/// A change that members are told of. Each event holds the new state, so that applying one twice is harmless.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The connection is admitted.
    #[serde(rename_all = "camelCase")]
    Welcome {
        /// The player of this connection.
        #[serde(with = "player")]
        you: PlayerId,
        /// The resume token for the seat. It is secret.
        resume_token: String,
        /// The full state.
        view: Box<View>,
    },
    /// A member is new or has changed.
    Person(Person),
    /// A member has left.
    Left {
        /// The player.
        #[serde(with = "player")]
        player: PlayerId,
        /// The reason.
        why: Parting,
    },
    /// A group has changed. `about` tells which groups no longer take part.
    Group(GroupState),
    /// The settings have changed.
    About {
        /// The settings.
        settings: Settings,
        /// Whether it has a password.
        locked: bool,
    },
    /// The phase has changed.
    Phase {
        /// The phase.
        phase: Phase,
        /// The number of games started.
        round: u32,
        /// The results of the last game.
        results: Option<String>,
    },
    /// The session has another creator.
    Creator {
        /// The creator.
        #[serde(with = "maybe_player")]
        creator: Option<PlayerId>,
    },
    /// The session has moved to another host, and this connection ends.
    Moved(Forward),
    /// A line of chat.
    Chat {
        /// The player.
        #[serde(with = "player")]
        player: PlayerId,
        /// The player's name.
        name: Name,
        /// The line.
        line: Line,
    },
}

/// Where a session has moved to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    /// Its id there.
    pub session: SessionId,
    /// The address of its new host.
    pub address: String,
    /// The ticket for the new host, good for 15 s; without it a member joins again and is recognised.
    pub ticket: Option<Sealed>,
}

/// Why a member has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parting {
    /// The player left.
    Left,
    /// The connection was lost, and the player did not return in time.
    Released,
    /// The creator removed the player.
    Kicked,
    /// The creator removed the player, who cannot rejoin.
    Banned,
}

impl View {
    /// Applies an event.
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

/// Why a request is refused. Its name is the `code` of an error in the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The session does not exist, or the password is wrong: the client is not told which.
    NotFound,
    /// All places are taken.
    Full,
    /// Another player has the seat, or a ticket for it.
    SeatTaken,
    /// The session has no such seat.
    NoSuchSeat,
    /// The player needs a seat first.
    NoSeat,
    /// There is no such player in the session.
    NoSuchPlayer,
    /// Not possible in this phase.
    NotNow,
    /// Only the creator may.
    NotCreator,
    /// Only the captain of the group may.
    NotCaptain,
    /// No seat is taken, or a group with players has none who is ready.
    NotReady,
    /// While a game runs, players stay in their group.
    OtherGroup,
    /// The creator has banned the player.
    Banned,
    /// The rate limit is exceeded: try later.
    TooFast,
    /// Too many password guesses: try later.
    TooManyGuesses,
    /// Overloaded: try again in a second.
    Busy,
    /// The game does not support these settings.
    BadSettings,
    /// The game has crashed too often; its log is kept.
    Quarantined,
    /// The session is over.
    Over,
    /// No host has room for another session.
    NoHost,
    /// The host does not answer: try again with the same key.
    Unavailable,
    /// The server is shutting down.
    Stopping,
    /// The host has not been heard of for a long time. If it comes back, the session resumes.
    Lost,
}

impl Refusal {
    /// All refusals.
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

    /// A sentence for people.
    pub fn message(self) -> &'static str {
        match self {
            Refusal::NotFound => "there is no such session, or its password is another",
            Refusal::Full => "the session is full",
            Refusal::SeatTaken => "another player has this seat",
            Refusal::NoSuchSeat => "this session has no such seat",
            Refusal::NoSeat => "choose a seat first",
            Refusal::NoSuchPlayer => "there is nobody like that in this session",
            Refusal::NotNow => "this cannot be done now",
            Refusal::NotCreator => "only the creator of the session may do this",
            Refusal::NotCaptain => "only the captain of the group may do this",
            Refusal::NotReady => "every group with players in it needs one who is ready",
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
    /// No player came, or all left before a game started.
    Unclaimed,
    /// There was no activity in the lobby for a long time.
    Idle,
    /// All players left while a game was running.
    Abandoned,
    /// The time for showing the results is over.
    Finished,
    /// The game crashed too often.
    Quarantined,
    /// It moved to another host.
    Moved,
    /// The operator closed it.
    Stopped,
}

/// Why a connection to a session is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// The ticket is invalid: join again.
    BadTicket,
    /// The token is invalid: join again.
    BadToken,
    /// The player has resumed over another connection.
    CameBack,
    /// The player left.
    Left,
    /// The creator removed the player.
    Kicked,
    /// The creator removed and banned the player.
    Banned,
    /// The host is shutting down, and the session resumes when it is back: come back with the token.
    Suspended,
    /// The session is over.
    Over(Ending),
}
