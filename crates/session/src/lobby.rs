//! Messages between a client and a gateway, and the entry of a session in lists. They use the same envelope as
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

/// A client's request to a gateway. Its `feature` in the envelope is `lobby`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", content = "payload", rename_all = "snake_case")]
pub enum Ask {
    /// Lists sessions.
    List {
        /// The filter.
        filter: Filter,
        /// Also send updates when the list changes, instead of those of an earlier list.
        follow: bool,
    },
    /// Looks up one session by the id from its link.
    Find {
        /// The session.
        session: SessionId,
    },
    /// Creates a session.
    Create {
        /// The idempotency key: a repeated request creates nothing more.
        key: Key,
        /// The creator's name.
        name: Name,
        /// The settings.
        settings: Settings,
        /// Its password.
        password: Option<Password>,
    },
    /// Joins a session.
    Join {
        /// The session.
        session: SessionId,
        /// The player's name.
        name: Name,
        /// Its password, if it has one.
        password: Option<Password>,
        /// The wanted seat.
        seat: Option<Seat>,
    },
}

/// A gateway's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// A list of sessions.
    Sessions {
        /// Those with players first.
        sessions: Vec<Listed>,
        /// There are more than are listed.
        more: bool,
    },
    /// Connect to this host and present the ticket within 15 s.
    Go {
        /// The session.
        session: SessionId,
        /// The address of its host.
        address: String,
        /// The ticket.
        ticket: Sealed,
    },
    /// The request is refused.
    Refused(Refusal),
}

/// A session as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The session.
    pub session: SessionId,
    /// Its settings.
    pub settings: Settings,
    /// Its phase.
    pub phase: Phase,
    /// The number of players.
    pub players: u16,
    /// The number of seats.
    pub seats: u16,
    /// Whether it has a password.
    pub locked: bool,
}

impl Summary {
    /// Whether its game is running or over and no player is left: a player who joins is alone.
    pub fn is_deserted(&self) -> bool {
        self.players == 0 && matches!(self.phase, Phase::Running | Phase::Results)
    }

    /// Whether a lookup by id may answer. A session with a password that is unlisted is confirmed only to clients that
    /// know the password.
    pub fn may_be_found(&self) -> bool {
        self.phase != Phase::Closed && (self.settings.listed || !self.locked)
    }
}

/// A session in a list, with the address of its host so that clients can measure the latency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The session.
    #[serde(flatten)]
    pub summary: Summary,
    /// As in [`Reply::Go`].
    pub address: String,
}

/// A filter for lists of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Only this game.
    pub game: Option<Name>,
    /// Only this mode.
    pub mode: Option<Mode>,
    /// With a free place, or without one. A [deserted](Summary::is_deserted) session matches neither.
    pub open: Option<bool>,
    /// With a password, or without.
    pub locked: Option<bool>,
    /// With at least this many players.
    pub players: u16,
}

impl Filter {
    /// Whether a session matches.
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
