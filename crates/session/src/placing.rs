//! What gateways and hosts say to each other. Any of it may be lost, come twice or late.

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

/// The most sessions of a host: what it says every two seconds has to stay small.
pub const MAX_SESSIONS: usize = 1_024;

/// The most kinds of games a host has.
pub const MAX_OFFERS: usize = 64;

/// What a gateway asks a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToHost {
    /// To have a session. Asked again with the same key, it is the same session.
    Place {
        /// Which request.
        key: Key,
        /// Who wants it.
        #[serde(with = "player")]
        player: PlayerId,
        /// What they are called.
        name: Name,
        /// What it is about.
        settings: Settings,
        /// Its password.
        password: Option<Password>,
    },
    /// To let somebody in.
    Reserve {
        /// The gateway's own number for it.
        ask: u64,
        /// Into which session.
        session: SessionId,
        /// Whom.
        #[serde(with = "player")]
        player: PlayerId,
        /// What they are called.
        name: Name,
        /// What they say the password is.
        password: Option<Password>,
        /// Where they would like to sit.
        seat: Option<Seat>,
        /// Where they come from.
        source: Source,
    },
    /// To take over a session of another host. Asked again, it is the same session.
    Adopt {
        /// What it is called there.
        from: SessionId,
        /// In which life of its host.
        life: Incarnation,
        /// What is stored of it.
        #[serde(deserialize_with = "at_most::<_, _, MAX_STORED>")]
        stored: Vec<u8>,
    },
    /// Another host has taken a session over.
    Moved {
        /// Which.
        from: SessionId,
        /// In which life of its host.
        life: Incarnation,
        /// Where it goes on.
        to: Forward,
        /// For who is in it.
        #[serde(deserialize_with = "at_most::<_, _, MAX_SEATS>")]
        admissions: Vec<Admission>,
    },
    /// No other host takes a session over.
    Stay(SessionId),
}

/// The most bytes of what is stored of a session.
pub const MAX_STORED: usize = 64 << 10;

/// What a host says to gateways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromHost {
    /// How it is, every two seconds and when something has changed.
    Beat(Beat),
    /// It ends in order, and says nothing more in this life.
    Bye(Incarnation),
    /// The answer to `Place`.
    Placed {
        /// Which request.
        key: Key,
        /// The session, or why there is none.
        answer: Result<Granted, Refusal>,
    },
    /// The answer to `Reserve`.
    Reserved {
        /// The gateway's number.
        ask: u64,
        /// The place, or why there is none. The session is as it is said here, also if a list says something else.
        answer: Result<Granted, Refusal>,
        /// Whether there is such a session at all; never told to whoever asked.
        exists: bool,
    },
    /// It is about to end, and has a session that could go on elsewhere. Said every second.
    Offer {
        /// Which.
        session: SessionId,
        /// In which life of its host.
        life: Incarnation,
        /// What it is about.
        settings: Settings,
        /// What is stored of it.
        #[serde(deserialize_with = "at_most::<_, _, MAX_STORED>")]
        stored: Vec<u8>,
    },
    /// The answer to `Adopt`.
    Adopted {
        /// What it is called at the old host.
        from: SessionId,
        /// In which life of its host.
        life: Incarnation,
        /// What it is called now, or why it is not.
        answer: Result<Adopted, Refusal>,
    },
}

/// A session that was taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    /// What it is called now.
    pub session: SessionId,
    /// For who is in it.
    #[serde(deserialize_with = "at_most::<_, _, MAX_SEATS>")]
    pub admissions: Vec<Admission>,
}

/// A place in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// What lets its player in.
    pub ticket: Sealed,
    /// The session.
    pub standing: Standing,
    /// In which life of the host.
    pub life: Incarnation,
    /// How many beats the host had sent in it when it said so.
    pub beats: u64,
}

/// A session as its host tells gateways of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// What lists have of it.
    pub summary: Summary,
    /// By which request it was made.
    pub key: Key,
}

/// How a host is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// In which life.
    pub life: Incarnation,
    /// How many it has sent before in this life: an older one is no news.
    pub number: u64,
    /// Where players reach it.
    pub address: String,
    /// How many sessions it takes.
    pub capacity: u16,
    /// It takes no more, and will end.
    pub is_draining: bool,
    /// What can be played there.
    #[serde(deserialize_with = "at_most::<_, _, MAX_OFFERS>")]
    pub offers: Vec<(Name, Mode)>,
    /// All its sessions.
    #[serde(deserialize_with = "at_most::<_, _, MAX_SESSIONS>")]
    pub sessions: Vec<Standing>,
    /// So much else that it is needed for and that is in no list: see [`Host::is_idle`](crate::host::Host::is_idle).
    pub others: u16,
}

impl Key {
    /// The key by which a session of another host is taken over: in each life a host freezes it once, and in the next it may have
    /// gone on from there.
    pub fn of_move(from: SessionId, life: Incarnation) -> Key {
        Key(from.to_bytes()).of(PlayerId(life.0.into()))
    }

    /// The key of a request for one player: nobody else's is the same.
    pub fn of(self, player: PlayerId) -> Key {
        let mut hasher = blake3::Hasher::new_derive_key("sametick 2026 key of a request");
        hasher.update(&self.0).update(&player.to_bytes());
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Key(key)
    }
}
