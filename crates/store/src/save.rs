//! The save format: one state of a session with all that is needed to go on from it, protected by checksums.
//!
//! ```text
//! save: "sametick-save" version:u16 head_length:u32 head head_crc:u32 state table crc:u32     (all little-endian)
//! ```
//!
//! Both CRCs cover everything before them. The first makes the head readable by itself: a reader that only needs the
//! tick reads no more than [`MAX_PREFIX_BYTES`].

mod key;

use sametick_sim::{BuildId, SchemaHash, StateHash, Tick, TickRate, from_canonical, to_canonical};
use serde::{Deserialize, Serialize};

pub use key::{Mode, SESSIONS, SessionKey};

use crate::log::{Header, MAX_NAME_BYTES, MAX_PLACE_BYTES, MAX_SETUP_BYTES};

/// What every save begins with.
const MAGIC: &[u8; 13] = b"sametick-save";

/// The version of the format.
pub const SAVE_VERSION: u16 = 1;

/// The largest state: what a relay sends to a late joiner.
pub const MAX_STATE_BYTES: usize = 8 << 20;

/// The largest seat table.
pub const MAX_TABLE_BYTES: usize = 64 * 1024;

/// The largest head: a setup, four texts, two hashes and numbers.
const MAX_HEAD_BYTES: usize = MAX_SETUP_BYTES + 1024;
const _: () = assert!(2 * MAX_NAME_BYTES + 2 * MAX_PLACE_BYTES + 16 + 32 + 128 <= 1024);

/// Magic, version and the length of the head.
const FRONT_LEN: usize = MAGIC.len() + 2 + 4;

const CRC_LEN: usize = 4;

/// The most bytes that are needed to read the head of a save.
pub const MAX_PREFIX_BYTES: usize = FRONT_LEN + MAX_HEAD_BYTES + CRC_LEN;

/// The longest save.
pub const MAX_SAVE_BYTES: usize = MAX_PREFIX_BYTES + MAX_STATE_BYTES + MAX_TABLE_BYTES + CRC_LEN;

/// The head of a save: its facts about the session and the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveInfo {
    /// The name of the game.
    pub game: String,
    /// The id of the session in its key: see [`SessionKey`].
    pub session_id: String,
    /// The name of the session.
    pub session: String,
    /// The build of the simulation: only this build goes on from the state.
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
    /// The last tick that is in the state.
    pub tick: Tick,
    /// The hash of the state.
    pub hash: StateHash,
    /// When the session began, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// When this was saved, in milliseconds of Unix time.
    pub saved_unix_ms: u64,
    /// Whether the public list may show the session.
    pub listed: bool,
}

/// A state of a session, and its seat table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Save {
    /// The head.
    pub info: SaveInfo,
    /// The canonical bytes of the state.
    pub state: Vec<u8>,
    /// The seat table, in the encoding of the session's server.
    pub table: Vec<u8>,
}

/// The save cannot be written: a part of it is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {field} of a save takes at most {max_bytes} bytes")]
pub struct TooLarge {
    field: &'static str,
    max_bytes: usize,
}

/// Why bytes are not a valid save.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSave {
    /// They are another format.
    #[error("not a save of a session: it does not begin with \"sametick-save\"")]
    NotASave,
    /// They have another version of the format.
    #[error("a save of format version {found}; this build reads version {SAVE_VERSION}")]
    Version {
        /// The version they state.
        found: u16,
    },
    /// The end is missing.
    #[error("the save is cut off: {found} bytes of {expected}")]
    Cut {
        /// The number of bytes.
        found: usize,
        /// The least that is expected.
        expected: usize,
    },
    /// There are bytes after the end of the save.
    #[error("after the end of the save there are {extra} more bytes")]
    TooLong {
        /// How many.
        extra: usize,
    },
    /// They are not the bytes that were written.
    #[error("the save is damaged: the checksum of its {part} is wrong")]
    Damaged {
        /// The damaged part.
        part: &'static str,
    },
    /// The checksums are right, but no writer writes such a save.
    #[error("the save makes no sense: {0}")]
    Nonsense(&'static str),
}

/// The head in types that have canonical bytes.
#[derive(Serialize, Deserialize)]
struct Stored {
    game: String,
    session_id: String,
    session: String,
    build: BuildId,
    commit: String,
    schema: SchemaHash,
    setup: Vec<u8>,
    seed: u64,
    rate_hz: u16,
    seats: u16,
    tick: Tick,
    hash: StateHash,
    started_unix_ms: u64,
    saved_unix_ms: u64,
    listed: bool,
    state_bytes: u32,
    table_bytes: u32,
}

impl SaveInfo {
    /// Takes the facts about the session from a log, without a state: tick 0, the hash of no bytes.
    pub fn of_log(header: &Header, session_id: impl Into<String>) -> SaveInfo {
        SaveInfo {
            game: header.game.clone(),
            session_id: session_id.into(),
            session: header.session.clone(),
            build: header.build,
            commit: header.commit.clone(),
            schema: header.schema,
            setup: header.setup.clone(),
            seed: header.seed,
            rate: header.rate,
            seats: header.seats,
            tick: Tick::ZERO,
            hash: StateHash::of_bytes(&[]),
            started_unix_ms: header.started_unix_ms,
            saved_unix_ms: header.started_unix_ms,
            listed: header.listed,
        }
    }

    /// The header of a log that goes on after it.
    pub fn header(&self) -> Header {
        Header {
            game: self.game.clone(),
            build: self.build,
            commit: self.commit.clone(),
            schema: self.schema,
            setup: self.setup.clone(),
            seed: self.seed,
            rate: self.rate,
            seats: self.seats,
            session: self.session.clone(),
            listed: self.listed,
            started_unix_ms: self.started_unix_ms,
            first_tick: self.tick.next(),
        }
    }

    /// Reads the head from the first bytes of a save: [`MAX_PREFIX_BYTES`] are always enough. The rest is not checked.
    pub fn from_prefix(bytes: &[u8]) -> Result<SaveInfo, BadSave> {
        Front::read(bytes).map(|front| front.info)
    }

    fn to_head(&self, state_bytes: usize, table_bytes: usize) -> Result<Vec<u8>, TooLarge> {
        let limits = [
            ("game", self.game.len(), MAX_NAME_BYTES),
            ("session id", self.session_id.len(), MAX_PLACE_BYTES),
            ("session", self.session.len(), MAX_PLACE_BYTES),
            ("commit", self.commit.len(), MAX_NAME_BYTES),
            ("setup", self.setup.len(), MAX_SETUP_BYTES),
            ("state", state_bytes, MAX_STATE_BYTES),
            ("table", table_bytes, MAX_TABLE_BYTES),
        ];
        if let Some(&(field, _, max_bytes)) = limits.iter().find(|(_, len, max)| len > max) {
            return Err(TooLarge { field, max_bytes });
        }
        let stored = Stored {
            game: self.game.clone(),
            session_id: self.session_id.clone(),
            session: self.session.clone(),
            build: self.build,
            commit: self.commit.clone(),
            schema: self.schema,
            setup: self.setup.clone(),
            seed: self.seed,
            rate_hz: u16::try_from(self.rate.per_second()).unwrap_or(u16::MAX),
            seats: self.seats,
            tick: self.tick,
            hash: self.hash,
            started_unix_ms: self.started_unix_ms,
            saved_unix_ms: self.saved_unix_ms,
            listed: self.listed,
            state_bytes: state_bytes as u32,
            table_bytes: table_bytes as u32,
        };
        Ok(to_canonical(&stored).expect("texts, bytes and numbers have canonical bytes"))
    }

    /// Reads a head whose CRC is right, and the lengths in it.
    fn from_head(bytes: &[u8]) -> Option<(SaveInfo, usize, usize)> {
        let stored: Stored = from_canonical(bytes).ok()?;
        let info = SaveInfo {
            game: stored.game,
            session_id: stored.session_id,
            session: stored.session,
            build: stored.build,
            commit: stored.commit,
            schema: stored.schema,
            setup: stored.setup,
            seed: stored.seed,
            rate: (1..=1000).contains(&stored.rate_hz).then(|| TickRate::hz(stored.rate_hz))?,
            seats: stored.seats,
            tick: stored.tick,
            hash: stored.hash,
            started_unix_ms: stored.started_unix_ms,
            saved_unix_ms: stored.saved_unix_ms,
            listed: stored.listed,
        };
        let (state_bytes, table_bytes) = (stored.state_bytes as usize, stored.table_bytes as usize);
        // Bytes that this writer would encode differently are refused.
        let ours = info.to_head(state_bytes, table_bytes).is_ok_and(|again| again == bytes);
        ours.then_some((info, state_bytes, table_bytes))
    }
}

/// The part before the state.
struct Front {
    info: SaveInfo,
    len: usize,
    state_bytes: usize,
    table_bytes: usize,
}

impl Front {
    fn read(bytes: &[u8]) -> Result<Front, BadSave> {
        let head_len = front_of(bytes)?;
        let covered = FRONT_LEN + head_len;
        let len = covered + CRC_LEN;
        let cut = BadSave::Cut { found: bytes.len(), expected: len };
        let (covered, head) = bytes.get(..covered).zip(bytes.get(FRONT_LEN..covered)).ok_or(cut)?;
        let crc = bytes.get(covered.len()..len).ok_or(cut)?;
        if crc != crc32c::crc32c(covered).to_le_bytes() {
            return Err(BadSave::Damaged { part: "head" });
        }
        let (info, state_bytes, table_bytes) =
            SaveInfo::from_head(head).ok_or(BadSave::Nonsense("its head is none"))?;
        Ok(Front { info, len, state_bytes, table_bytes })
    }
}

/// The length of the head.
fn front_of(bytes: &[u8]) -> Result<usize, BadSave> {
    let magic = bytes.get(..MAGIC.len().min(bytes.len())).unwrap_or_default();
    if !MAGIC.starts_with(magic) {
        return Err(BadSave::NotASave);
    }
    let cut = BadSave::Cut { found: bytes.len(), expected: FRONT_LEN };
    let front = bytes.get(MAGIC.len()..FRONT_LEN).ok_or(cut)?;
    let &[v0, v1, l0, l1, l2, l3] = front else { return Err(cut) };
    let found = u16::from_le_bytes([v0, v1]);
    if found != SAVE_VERSION {
        return Err(BadSave::Version { found });
    }
    let head_len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if head_len > MAX_HEAD_BYTES { Err(BadSave::Nonsense("its head is too long")) } else { Ok(head_len) }
}

impl Save {
    /// Encodes the save.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TooLarge> {
        let head = self.info.to_head(self.state.len(), self.table.len())?;
        let len = FRONT_LEN + head.len() + CRC_LEN + self.state.len() + self.table.len() + CRC_LEN;
        let mut out = Vec::with_capacity(len);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&SAVE_VERSION.to_le_bytes());
        out.extend_from_slice(&(head.len() as u32).to_le_bytes());
        out.extend_from_slice(&head);
        put_crc(&mut out);
        out.extend_from_slice(&self.state);
        out.extend_from_slice(&self.table);
        put_crc(&mut out);
        Ok(out)
    }

    /// Reads a whole save, and nothing after it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Save, BadSave> {
        let Front { info, len, state_bytes, table_bytes } = Front::read(bytes)?;
        let expected = len + state_bytes + table_bytes + CRC_LEN;
        if let Some(extra) = bytes.len().checked_sub(expected).filter(|&extra| extra > 0) {
            return Err(BadSave::TooLong { extra });
        }
        let cut = BadSave::Cut { found: bytes.len(), expected };
        let (covered, crc) = bytes.split_at_checked(expected - CRC_LEN).ok_or(cut)?;
        if crc.len() < CRC_LEN {
            return Err(cut);
        }
        if crc != crc32c::crc32c(covered).to_le_bytes() {
            return Err(BadSave::Damaged { part: "state and table" });
        }
        let (state, table) =
            covered.get(len..).and_then(|body| body.split_at_checked(state_bytes)).ok_or(cut)?;
        Ok(Save { info, state: state.to_vec(), table: table.to_vec() })
    }

    /// Whether the state has the hash that the save states. The checksums detect damage; this detects a false save. It
    /// does not prove that the session was ever in that state: that is what the checks in the log are for.
    pub fn is_true(&self) -> bool {
        StateHash::of_bytes(&self.state) == self.info.hash
    }
}

fn put_crc(out: &mut Vec<u8>) {
    let crc = crc32c::crc32c(out);
    out.extend_from_slice(&crc.to_le_bytes());
}
