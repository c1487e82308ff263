//! What anybody asks a gateway and is answered, and how a session stands in lists. Around them is the same envelope as around
//! [`message`](crate::message).

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::Seat;
use serde::{Deserialize, Serialize};

use crate::id::{Key, SessionId};
use crate::message::{Phase, Refusal};
use crate::name::Name;
use crate::password::Password;
use crate::settings::{Mode, Settings};
use crate::ticket::Sealed;

/// What anybody asks a gateway. Its `feature` in the envelope is `lobby`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", content = "payload", rename_all = "snake_case")]
pub enum Ask {
    /// Which sessions there are.
    List {
        /// Of which kind.
        filter: Filter,
        /// To be told again whenever that has changed, in place of what was followed before.
        follow: bool,
    },
    /// What one session is like, for those who have its link.
    Find {
        /// Which.
        session: SessionId,
    },
    /// A session.
    Create {
        /// The same when it is asked again: it is created once.
        key: Key,
        /// What the creator is called.
        name: Name,
        /// What it is about.
        settings: Settings,
        /// Its password.
        password: Option<Password>,
    },
    /// To be let into a session.
    Join {
        /// Which.
        session: SessionId,
        /// What one is called.
        name: Name,
        /// Its password, if one was given.
        password: Option<Password>,
        /// Where one would like to sit.
        seat: Option<Seat>,
    },
}

/// What a gateway answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// These sessions.
    Sessions {
        /// Those that have people first.
        sessions: Vec<Listed>,
        /// There are more than are told.
        more: bool,
    },
    /// Go there, and show the ticket within 15 s.
    Go {
        /// Which session it is.
        session: SessionId,
        /// Where its host is reached.
        address: String,
        /// What lets you in.
        ticket: Sealed,
    },
    /// No.
    Refused(Refusal),
}

/// A session as lists have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Which.
    pub session: SessionId,
    /// What it is about.
    pub settings: Settings,
    /// Where it is in its life.
    pub phase: Phase,
    /// How many people are there.
    pub players: u16,
    /// How many there is place for.
    pub seats: u16,
    /// Whether it has a password.
    pub locked: bool,
}

impl Summary {
    /// Whether its game is played, or was, and nobody is there any more: who joins it meets nobody.
    pub fn is_deserted(&self) -> bool {
        self.players == 0 && matches!(self.phase, Phase::Running | Phase::Results)
    }

    /// Whether anybody who knows its id may be told of it. Of one with a password that is in no list only those who know the password learn that it exists.
    pub fn may_be_found(&self) -> bool {
        self.phase != Phase::Closed && (self.settings.listed || !self.locked)
    }
}

/// A session in a list, and where its host is reached: how far away that is anybody can measure there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The session.
    #[serde(flatten)]
    pub summary: Summary,
    /// As in [`Reply::Go`].
    pub address: String,
}

/// Which sessions somebody wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Of this game.
    pub game: Option<Name>,
    /// Of this mode.
    pub mode: Option<Mode>,
    /// With a place beside others, or without a place. One that [everybody has left](Summary::is_deserted) is neither.
    pub open: Option<bool>,
    /// With a password, or without.
    pub locked: Option<bool>,
    /// With at least so many people.
    pub players: u16,
}

impl Filter {
    /// Whether somebody wants to see this one.
    pub fn wants(&self, summary: &Summary) -> bool {
        let Summary { settings, players, seats, locked, phase, .. } = summary;
        settings.listed
            && *phase != Phase::Closed
            && self.game.as_ref().is_none_or(|game| settings.game.is_like(game))
            && self.mode.is_none_or(|mode| settings.mode == mode)
            && self.open.is_none_or(|open| (players < seats) == open && !summary.is_deserted())
            && self.locked.is_none_or(|wanted| *locked == wanted)
            && *players >= self.players
    }
}
