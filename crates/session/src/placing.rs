//! Messages between gateways and hosts. Any of them may be lost, duplicated or late.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::Seat;
use sametick_wire::control::at_most;
use sametick_wire::identity::PlayerId;
use serde::{Deserialize, Serialize};

use crate::id::{Incarnation, Key, SessionId, Source, player};
use crate::lobby::Summary;
use crate::message::{Forward, Refusal};
use crate::name::Name;
use crate::password::Password;
use crate::plan::MAX_SEATS;
use crate::settings::{Mode, Settings};
use crate::ticket::{Admission, Sealed};

/// The most sessions of a host: a beat has to stay small.
pub const MAX_SESSIONS: usize = 1_024;

/// The most games that a host offers.
pub const MAX_OFFERS: usize = 64;

/// A gateway's message to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToHost {
    /// Creates a session. Repeated with the same key, it is the same session.
    Place {
        /// The idempotency key.
        key: Key,
        /// The creator.
        #[serde(with = "player")]
        player: PlayerId,
        /// The creator's name.
        name: Name,
        /// The settings.
        settings: Settings,
        /// Its password.
        password: Option<Password>,
    },
    /// Reserves a place for a player.
    Reserve {
        /// The gateway's own number for the request.
        ask: u64,
        /// The session.
        session: SessionId,
        /// The player.
        #[serde(with = "player")]
        player: PlayerId,
        /// The player's name.
        name: Name,
        /// The password that the player gave.
        password: Option<Password>,
        /// The wanted seat.
        seat: Option<Seat>,
        /// The source of the player's connection.
        source: Source,
    },
    /// Adopts a session of another host. Repeated, it is the same session.
    Adopt {
        /// Its id there.
        from: SessionId,
        /// The incarnation of that host.
        life: Incarnation,
        /// Its snapshot.
        #[serde(deserialize_with = "at_most::<_, _, MAX_STORED>")]
        stored: Vec<u8>,
    },
    /// Another host has adopted a session.
    Moved {
        /// The session.
        from: SessionId,
        /// The incarnation of its host.
        life: Incarnation,
        /// Where it has moved to.
        to: Forward,
        /// The tickets of its members.
        #[serde(deserialize_with = "at_most::<_, _, MAX_SEATS>")]
        admissions: Vec<Admission>,
    },
    /// No other host adopts the session.
    Stay(SessionId),
}

/// The most bytes of a session's snapshot.
pub const MAX_STORED: usize = 64 << 10;

/// A host's message to gateways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromHost {
    /// The host's state, every two seconds and after a change.
    Beat(Beat),
    /// It shuts down in order, and sends nothing more in this incarnation.
    Bye(Incarnation),
    /// The answer to `Place`.
    Placed {
        /// The idempotency key.
        key: Key,
        /// The place in the session, or the reason for a refusal.
        answer: Result<Granted, Refusal>,
    },
    /// The answer to `Reserve`.
    Reserved {
        /// The gateway's number.
        ask: u64,
        /// The place, or the reason for a refusal. The state of the session in it overrides that of a list.
        answer: Result<Granted, Refusal>,
        /// Whether the session exists; never told to the client.
        exists: bool,
    },
    /// The host is shutting down and offers a session to other hosts. Sent every second.
    Offer {
        /// The session.
        session: SessionId,
        /// The incarnation of its host.
        life: Incarnation,
        /// Its settings.
        settings: Settings,
        /// Its snapshot.
        #[serde(deserialize_with = "at_most::<_, _, MAX_STORED>")]
        stored: Vec<u8>,
    },
    /// The answer to `Adopt`.
    Adopted {
        /// Its id at the old host.
        from: SessionId,
        /// The incarnation of that host.
        life: Incarnation,
        /// The adopted session, or the reason for a refusal.
        answer: Result<Adopted, Refusal>,
    },
}

/// A session that was adopted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    /// Its new id.
    pub session: SessionId,
    /// The tickets of its members.
    #[serde(deserialize_with = "at_most::<_, _, MAX_SEATS>")]
    pub admissions: Vec<Admission>,
}

/// A place in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The player's ticket.
    pub ticket: Sealed,
    /// The state of the session.
    pub standing: Standing,
    /// The incarnation of the host.
    pub life: Incarnation,
    /// The number of beats that the host had sent in it before this answer.
    pub beats: u64,
}

/// The state of a session as its host reports it to gateways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Its entry in lists.
    pub summary: Summary,
    /// The key of the request that created it.
    pub key: Key,
}

/// The state of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Its incarnation.
    pub life: Incarnation,
    /// The number of beats before it in this incarnation: an older beat is ignored.
    pub number: u64,
    /// The address where players reach it.
    pub address: String,
    /// The most sessions that it takes.
    pub capacity: u16,
    /// It takes no more sessions, because it is shutting down.
    pub is_draining: bool,
    /// The games that it offers.
    #[serde(deserialize_with = "at_most::<_, _, MAX_OFFERS>")]
    pub offers: Vec<(Name, Mode)>,
    /// All its sessions.
    #[serde(deserialize_with = "at_most::<_, _, MAX_SESSIONS>")]
    pub sessions: Vec<Standing>,
    /// The number of other things it is needed for that are in no list: see
    /// [`Host::is_idle`](crate::host::Host::is_idle).
    pub others: u16,
}

impl Key {
    /// The key for adopting a session of another host: a host freezes a session once in each incarnation, and in the
    /// next the session may have gone on.
    pub fn of_move(from: SessionId, life: Incarnation) -> Key {
        Key(from.to_bytes()).of(PlayerId(life.0.into()))
    }

    /// Scopes a key to one player: two players never share one.
    pub fn of(self, player: PlayerId) -> Key {
        let mut hasher = blake3::Hasher::new_derive_key("sametick 2026 key of a request");
        hasher.update(&self.0).update(&player.to_bytes());
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Key(key)
    }
}
