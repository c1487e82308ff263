//! The interface of a players database: its writes and look-ups, for any implementation.

use super::words::{Kept, PlaceId, PlayerId, TokenHash};

/// A database of players.
///
/// A write must not fail because of its content: it is retried until it succeeds. So no write depends on an earlier
/// one. And a batch that was written twice means the same as one that was written once: after a failure it is unknown
/// whether it was.
pub trait Storage: Send {
    /// Writes the whole batch in this order, or nothing; durable when it returns `Ok`.
    fn write(&mut self, batch: &[Write]) -> Result<(), StorageError>;

    /// Looks up everything about a joining player.
    fn look_up(&mut self, question: &Question) -> Result<Found, StorageError>;
}

/// A write. Of each kind the newest wins for its key, which is made of the leading fields.
#[allow(clippy::large_enum_variant, reason = "most writes are checkpoints, and those must not allocate")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Where a player was in a room, as the game wrote it.
    Checkpoint {
        /// The room.
        place: PlaceId,
        /// The player.
        player: PlayerId,
        /// The player's seat.
        seat: u16,
        /// The tick of the room.
        tick: u32,
        /// The game's data.
        kept: Kept,
        /// The wall-clock time.
        unix_ms: u64,
    },
    /// A part of a room, such as something that was built.
    Part {
        /// The room.
        place: PlaceId,
        /// The game's own number of the part.
        key: u32,
        /// The game's data; `None`: the part is gone.
        kept: Option<Kept>,
    },
    /// A room.
    Place {
        /// The room.
        place: PlaceId,
        /// Its game.
        game: String,
        /// Its room code.
        code: String,
        /// Its setup.
        setup: Vec<u8>,
        /// How many seats it has.
        seats: u16,
        /// The seed of its game.
        seed: u64,
        /// Whether the public list may show it.
        listed: bool,
        /// When this was written.
        unix_ms: u64,
    },
    /// A room is deleted, with all of its parts and checkpoints.
    Forget {
        /// The room.
        place: PlaceId,
    },
    /// A player.
    Player {
        /// The player.
        player: PlayerId,
        /// The display name.
        name: String,
        /// The player's id at an issuer; `None` for a guest.
        subject: Option<String>,
        /// When this was written.
        unix_ms: u64,
    },
    /// A token of a player becomes valid, even if it was retired before.
    Token {
        /// The hash of the token.
        hash: TokenHash,
        /// The player it belongs to.
        player: PlayerId,
        /// When it expires.
        expires_unix_s: u64,
    },
    /// A token is retired.
    Retire {
        /// The hash of the token.
        hash: TokenHash,
    },
    /// All tokens of a player are retired: kicked, signed out, revoked.
    RetireAll {
        /// The player.
        player: PlayerId,
    },
    /// One of a player's characters.
    Profile {
        /// The player.
        player: PlayerId,
        /// The game.
        game: String,
        /// The character's id, see [`is_character`](super::is_character).
        character: String,
        /// The game's data.
        kept: Kept,
        /// When this was written.
        unix_ms: u64,
    },
    /// The active character of a player.
    Active {
        /// The player.
        player: PlayerId,
        /// The game.
        game: String,
        /// The character's id.
        character: String,
    },
    /// Senseless rows of a player are replaced. A [`PlayerWriter`](super::PlayerWriter) saves this by itself when a
    /// look-up has found such rows; it applies to the rows at the time of the write.
    Mend {
        /// The player.
        player: PlayerId,
        /// The game.
        game: String,
    },
}

/// A question about a joining player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The token of the client. It decides which player this is.
    pub token: Option<TokenHash>,
    /// The player, if it is known without a token.
    pub player: Option<PlayerId>,
    /// The game to join.
    pub game: String,
    /// The code of the room to join.
    pub code: String,
    /// Whether to look up the room itself, with all of its parts.
    pub with_place: bool,
    /// The time at which tokens are checked for expiry.
    pub now_unix_s: u64,
}

/// The result of a look-up. If the question has an invalid token, it contains nothing about a player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The player.
    pub player: Option<Known>,
    /// The state of the token.
    pub token: TokenState,
    /// The player's last checkpoint in this room.
    pub checkpoint: Option<CheckpointRow>,
    /// The player's characters in this game, by id.
    pub profiles: Vec<(String, Kept)>,
    /// The active character.
    pub active: Option<String>,
    /// The room, if it is stored.
    pub place: Option<PlaceRow>,
    /// How many rows made no sense. The result is as if they had been repaired already, which happens next.
    pub senseless: u32,
}

/// A stored player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The player's id.
    pub id: PlayerId,
    /// The display name; empty if it is not known.
    pub name: String,
    /// The player's id at an issuer.
    pub subject: Option<String>,
}

/// The state of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenState {
    /// The question had no token.
    #[default]
    None,
    /// It is valid.
    Good,
    /// It has expired.
    Expired,
    /// It was retired.
    Retired,
    /// It was never issued, or so long ago that it was deleted.
    Unknown,
}

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRow {
    /// The seat.
    pub seat: u16,
    /// The tick of the room.
    pub tick: u32,
    /// The game's data.
    pub kept: Kept,
    /// The wall-clock time.
    pub unix_ms: u64,
}

/// A stored room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceRow {
    /// The room.
    pub id: PlaceId,
    /// Its setup.
    pub setup: Vec<u8>,
    /// How many seats it has.
    pub seats: u16,
    /// The seed of its game.
    pub seed: u64,
    /// Whether the public list may show it.
    pub listed: bool,
    /// Its parts, by number.
    pub parts: Vec<(u32, Kept)>,
    /// The players with their seats and the time of their last checkpoints.
    pub checkpoints: Vec<(PlayerId, u16, u64)>,
}

/// Why a database operation failed. The text is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Another program is using it; a retry may succeed.
    #[error("the database of players is in use by another program: {0}")]
    Busy(String),
    /// The disk is full.
    #[error("there is no room for the database of players: {0}")]
    Full(String),
    /// The disk fails. Unacknowledged writes are in doubt, and the database has to be opened anew.
    #[error("the disk fails under the database of players: {0}")]
    Io(String),
    /// The content of the file is no longer a database.
    #[error("the database of players is damaged: {0}")]
    Corrupt(String),
    /// It was written by a newer version of this program.
    #[error(
        "the database of players has schema {found}, and this version knows only up to {known}: start the version that \
         wrote it, or a newer one"
    )]
    Newer {
        /// The schema of the file.
        found: u32,
        /// The newest schema of this program.
        known: u32,
    },
    /// Any other failure.
    #[error("the database of players fails: {0}")]
    Other(String),
}

impl StorageError {
    /// Whether the database must be opened anew before it is used again.
    pub fn needs_reopening(&self) -> bool {
        !matches!(self, StorageError::Busy(_) | StorageError::Full(_))
    }
}

/// The purpose of a connection. There is one for each at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The first connection, or one after doubt about the content: the database is checked before use. No other
    /// connection of this process is open.
    Writing,
    /// For look-ups, after it was opened for writing.
    Reading,
}

/// A database that was opened.
pub struct Opened {
    /// The connection.
    pub storage: Box<dyn Storage>,
    /// A text for the operator: that it was damaged, and what is lost.
    pub note: Option<String>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("note", &self.note).finish_non_exhaustive()
    }
}

/// Opens a database, repeatedly if needed, on the thread that uses it.
pub type Opener = Box<dyn Fn(Purpose) -> Result<Opened, StorageError> + Send + Sync>;
