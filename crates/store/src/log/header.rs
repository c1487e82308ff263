//! The log header: the game, the build, and the start of the session.

use sametick_sim::{BuildId, SchemaHash, Tick, TickRate, from_canonical, to_canonical};
use serde::{Deserialize, Serialize};

use super::{MAX_NAME_BYTES, MAX_PLACE_BYTES, MAX_SETUP_BYTES};

/// Facts about the session: all that a replay needs to know before the first tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name of the game.
    pub game: String,
    /// The build of the simulation: only this build replays the log.
    pub build: BuildId,
    /// The git commit of that build.
    pub commit: String,
    /// The shape of state, setup and input.
    pub schema: SchemaHash,
    /// The canonical bytes of the game's setup.
    pub setup: Vec<u8>,
    /// The seed of the session.
    pub seed: u64,
    /// Ticks a second.
    pub rate: TickRate,
    /// How many seats there are.
    pub seats: u16,
    /// The name of the session.
    pub session: String,
    /// Whether the public list may show the session.
    pub listed: bool,
    /// When it began, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// The first tick in this file: 1, or later in a segment that continues another.
    pub first_tick: Tick,
}

/// The header cannot be written: a text is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {field} of a log takes at most {max_bytes} bytes")]
pub struct BadHeader {
    field: &'static str,
    max_bytes: usize,
}

/// The header in types that have canonical bytes.
#[derive(Serialize, Deserialize)]
struct Stored {
    game: String,
    build: BuildId,
    commit: String,
    schema: SchemaHash,
    setup: Vec<u8>,
    seed: u64,
    rate_hz: u16,
    seats: u16,
    session: String,
    listed: bool,
    started_unix_ms: u64,
    first_tick: Tick,
}

impl Header {
    /// A header of defaults: 60 ticks a second from tick 1, no seats, not listed.
    pub fn new(game: impl Into<String>, session: impl Into<String>) -> Header {
        Header {
            game: game.into(),
            build: BuildId::from_bytes([0; BuildId::LEN]),
            commit: String::new(),
            schema: SchemaHash::from_bytes([0; SchemaHash::LEN]),
            setup: Vec::new(),
            seed: 0,
            rate: TickRate::hz(60),
            seats: 0,
            session: session.into(),
            listed: false,
            started_unix_ms: 0,
            first_tick: Tick(1),
        }
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, BadHeader> {
        let limits = [
            ("game", self.game.len(), MAX_NAME_BYTES),
            ("commit", self.commit.len(), MAX_NAME_BYTES),
            ("session", self.session.len(), MAX_PLACE_BYTES),
            ("setup", self.setup.len(), MAX_SETUP_BYTES),
        ];
        if let Some(&(field, _, max_bytes)) = limits.iter().find(|(_, len, max)| len > max) {
            return Err(BadHeader { field, max_bytes });
        }
        let stored = Stored {
            game: self.game.clone(),
            build: self.build,
            commit: self.commit.clone(),
            schema: self.schema,
            setup: self.setup.clone(),
            seed: self.seed,
            rate_hz: u16::try_from(self.rate.per_second()).unwrap_or(u16::MAX),
            seats: self.seats,
            session: self.session.clone(),
            listed: self.listed,
            started_unix_ms: self.started_unix_ms,
            first_tick: self.first_tick,
        };
        Ok(to_canonical(&stored).expect("texts, bytes and numbers have canonical bytes"))
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Header> {
        let stored: Stored = from_canonical(bytes).ok()?;
        let header = Header {
            game: stored.game,
            build: stored.build,
            commit: stored.commit,
            schema: stored.schema,
            setup: stored.setup,
            seed: stored.seed,
            rate: (1..=1000).contains(&stored.rate_hz).then(|| TickRate::hz(stored.rate_hz))?,
            seats: stored.seats,
            session: stored.session,
            listed: stored.listed,
            started_unix_ms: stored.started_unix_ms,
            first_tick: stored.first_tick,
        };
        // Bytes that this writer would encode differently are refused.
        header.to_bytes().is_ok_and(|again| again == bytes).then_some(header)
    }
}
