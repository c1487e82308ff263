//! The object keys of a session: `sessions/{build}/{session-id}/save`, `…/log`, and `…/log.{first tick}`.

use std::fmt;

use sametick_sim::{BuildId, Tick};

use crate::log::MAX_PLACE_BYTES;

/// The prefix of all session keys.
pub const SESSIONS: &str = "sessions/";

/// The mode of a session: a lockstep session and a room of the same name are different sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// In lockstep, through a relay.
    Lockstep,
    /// In an authoritative room.
    Room,
}

/// The key of a session of a build: sessions of different builds never meet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    build: BuildId,
    id: String,
}

impl SessionKey {
    /// The key of the session of this name that began at this time.
    ///
    /// ```
    /// use sametick_sim::BuildId;
    /// use sametick_store::save::SessionKey;
    ///
    /// let key = SessionKey::of(BuildId::from_bytes([7; 16]), "ada's den", 1_800_000_000_000);
    /// assert_eq!(key.id(), "ada_s_den-1800000000000");
    /// assert_eq!(key.save(), "sessions/07070707070707070707070707070707/ada_s_den-1800000000000/save");
    /// ```
    pub fn of(build: BuildId, name: &str, started_unix_ms: u64) -> SessionKey {
        SessionKey::in_mode(build, Mode::Lockstep, name, started_unix_ms)
    }

    /// The key of the session of this name and mode that began at this time.
    pub fn in_mode(build: BuildId, mode: Mode, name: &str, started_unix_ms: u64) -> SessionKey {
        SessionKey { build, id: format!("{}{started_unix_ms}", beginning(mode, name)) }
    }

    /// The key prefix of all sessions of this name; other names may share it.
    pub fn prefix_of(build: BuildId, mode: Mode, name: &str) -> String {
        format!("{SESSIONS}{build}/{}", beginning(mode, name))
    }

    /// When the session began, if it is one of this name. Different names may have the same id.
    pub fn started_unix_ms(&self, mode: Mode, name: &str) -> Option<u64> {
        let number = self.id.strip_prefix(&beginning(mode, name))?;
        number.bytes().all(|digit| digit.is_ascii_digit()).then(|| number.parse().ok())?
    }

    /// The key of the session with this id, if it is a valid one.
    pub fn from_id(build: BuildId, id: &str) -> Option<SessionKey> {
        let fine = !id.is_empty() && id.chars().all(|letter| is_letter(letter) || letter == '_');
        fine.then(|| SessionKey { build, id: id.to_owned() })
    }

    /// The session of an object key, and the name of the object in it.
    pub fn of_object(key: &str) -> Option<(SessionKey, &str)> {
        let (build, rest) = key.strip_prefix(SESSIONS)?.split_once('/')?;
        let (id, object) = rest.split_once('/')?;
        let session = SessionKey::from_id(BuildId::from_hex(build)?, id)?;
        (!object.is_empty()).then_some((session, object))
    }

    /// The build.
    pub fn build(&self) -> BuildId {
        self.build
    }

    /// The id of the session: its name and when it began.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The prefix of the keys of all its objects.
    pub fn prefix(&self) -> String {
        format!("{self}/")
    }

    /// The key of its save.
    pub fn save(&self) -> String {
        format!("{self}/save")
    }

    /// The key of its log, or of the manifest of its log.
    pub fn log(&self) -> String {
        format!("{self}/log")
    }

    /// The key of a segment of its log. A number other than 0 is for a segment whose key was taken by another object.
    pub fn segment(&self, first: Tick, number: u16) -> String {
        match number {
            0 => format!("{self}/log.{}", first.0),
            number => format!("{self}/log.{}.{number}", first.0),
        }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SESSIONS}{}/{}", self.build, self.id)
    }
}

/// The prefix of the ids of all sessions of a name.
fn beginning(mode: Mode, name: &str) -> String {
    let allowed = |letter: char| if is_letter(letter) { letter } else { '_' };
    let name: String = name.chars().map(allowed).take(MAX_PLACE_BYTES).collect();
    match mode {
        Mode::Lockstep => format!("{name}-"),
        Mode::Room => format!("{name}-r"),
    }
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}
