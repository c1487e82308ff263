//! What is written to a database of players and what is asked of it, without saying which database.

use super::words::{Kept, PlaceId, PlayerId, TokenHash};

/// A database of players.
///
/// A write of it must not fail for what is in it: what cannot be written is tried again until it can. So no write
/// needs another one to have come before. And a batch that was written twice means the same as one that was written
/// once: after a failure nobody knows whether it was.
pub trait Storage: Send {
    /// All of it, in this order, or nothing; durable when it returns `Ok`.
    fn write(&mut self, batch: &[Write]) -> Result<(), StorageError>;

    /// Everything that is known for somebody who comes in.
    fn look_up(&mut self, question: &Question) -> Result<Found, StorageError>;
}

/// Something to keep. Of each kind the newest wins for its key, which is what stands before the other fields.
#[allow(clippy::large_enum_variant, reason = "most writes are checkpoints, and those must not allocate")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Where a player was in a room, by the game's own account.
    Checkpoint {
        /// The room.
        place: PlaceId,
        /// The player.
        player: PlayerId,
        /// The player's seat.
        seat: u16,
        /// When, in ticks of the room.
        tick: u32,
        /// What the game wrote.
        kept: Kept,
        /// When, by the wall clock.
        unix_ms: u64,
    },
    /// A part of a room, such as something that was built.
    Part {
        /// The room.
        place: PlaceId,
        /// Which part; the game's own number.
        key: u32,
        /// What the game wrote; `None`: it is gone.
        kept: Option<Kept>,
    },
    /// A room.
    Place {
        /// The room.
        place: PlaceId,
        /// Its game.
        game: String,
        /// Its code.
        code: String,
        /// What it was begun with.
        setup: Vec<u8>,
        /// How many seats it has.
        seats: u16,
        /// The seed of its game.
        seed: u64,
        /// Whether everybody may see that it is there.
        listed: bool,
        /// When this was written.
        unix_ms: u64,
    },
    /// A room is gone, with all of its parts and checkpoints.
    Forget {
        /// The room.
        place: PlaceId,
    },
    /// A player.
    Player {
        /// The player.
        player: PlayerId,
        /// What others call them.
        name: String,
        /// As whom an issuer knows them; `None` for a guest.
        subject: Option<String>,
        /// When this was written.
        unix_ms: u64,
    },
    /// A token that is good for a player, from now on: also if it was retired before.
    Token {
        /// Of the token.
        hash: TokenHash,
        /// Whose it is.
        player: PlayerId,
        /// When it is no longer good.
        expires_unix_s: u64,
    },
    /// A token is no longer good.
    Retire {
        /// Of the token.
        hash: TokenHash,
    },
    /// All tokens of a player are no longer good: kicked, signed out, revoked.
    RetireAll {
        /// The player.
        player: PlayerId,
    },
    /// One of a player's characters.
    Profile {
        /// The player.
        player: PlayerId,
        /// In this game.
        game: String,
        /// Its id, see [`is_character`](super::is_character).
        character: String,
        /// What the game wrote.
        kept: Kept,
        /// When this was written.
        unix_ms: u64,
    },
    /// The character that a player plays.
    Active {
        /// The player.
        player: PlayerId,
        /// In this game.
        game: String,
        /// Its id.
        character: String,
    },
    /// Rows of a player that make no sense are replaced. A [`PlayerWriter`](super::PlayerWriter) saves this by itself when a
    /// look-up has found such rows: it is done with what is there by then.
    Mend {
        /// The player.
        player: PlayerId,
        /// In this game.
        game: String,
    },
}

/// What is asked when somebody comes in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The token they brought. It decides who they are.
    pub token: Option<TokenHash>,
    /// Who they are, if that is known without a token.
    pub player: Option<PlayerId>,
    /// The game they want.
    pub game: String,
    /// The room they want.
    pub code: String,
    /// Whether the room itself is to be found, with all of its parts.
    pub with_place: bool,
    /// By which tokens expire.
    pub now_unix_s: u64,
}

/// What is known. About a player nothing is said if a token was asked about that is not good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Who they are.
    pub player: Option<Known>,
    /// What has become of the token.
    pub token: TokenState,
    /// Where they were last in this room.
    pub checkpoint: Option<CheckpointRow>,
    /// Their characters in this game, by id.
    pub profiles: Vec<(String, Kept)>,
    /// Which of them they play.
    pub active: Option<String>,
    /// The room, if it is kept.
    pub place: Option<PlaceRow>,
    /// How many rows made no sense. What is here is as if they had been mended, which happens next.
    pub senseless: u32,
}

/// A player, as kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Who.
    pub id: PlayerId,
    /// What others call them; empty if that is not known.
    pub name: String,
    /// As whom an issuer knows them.
    pub subject: Option<String>,
}

/// What has become of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenState {
    /// There was none in the question.
    #[default]
    None,
    /// It says who somebody is.
    Good,
    /// It was good for long enough.
    Expired,
    /// It was taken back.
    Retired,
    /// Nobody was given it, or that was long ago.
    Unknown,
}

/// Where a player was in a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRow {
    /// The seat.
    pub seat: u16,
    /// When, in ticks of the room.
    pub tick: u32,
    /// What the game wrote.
    pub kept: Kept,
    /// When, by the wall clock.
    pub unix_ms: u64,
}

/// A room, as kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceRow {
    /// The room.
    pub id: PlaceId,
    /// What it was begun with.
    pub setup: Vec<u8>,
    /// How many seats it has.
    pub seats: u16,
    /// The seed of its game.
    pub seed: u64,
    /// Whether everybody may see that it is there.
    pub listed: bool,
    /// Its parts, by number.
    pub parts: Vec<(u32, Kept)>,
    /// Who was on which seat, and when last.
    pub checkpoints: Vec<(PlayerId, u16, u64)>,
}

/// Why a database did not do what it was asked. The text is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Somebody else has it; it may work the next time.
    #[error("the database of players is in use by another program: {0}")]
    Busy(String),
    /// There is no room.
    #[error("there is no room for the database of players: {0}")]
    Full(String),
    /// The disk fails. What was not acknowledged is in doubt, and the database has to be opened anew.
    #[error("the disk fails under the database of players: {0}")]
    Io(String),
    /// What is in the file is no longer a database.
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
        /// The newest schema that is known here.
        known: u32,
    },
    /// Anything else.
    #[error("the database of players fails: {0}")]
    Other(String),
}

impl StorageError {
    /// Must the database be opened anew before it is used again?
    pub fn needs_reopening(&self) -> bool {
        !matches!(self, StorageError::Busy(_) | StorageError::Full(_))
    }
}

/// What a database is opened for. There is one for each at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For the first time, or when it is in doubt what is in it: to be checked before it is used. Nobody else of this
    /// process has it open.
    Writing,
    /// For look-ups, after it was opened for writing.
    Reading,
}

/// A database that was opened.
pub struct Opened {
    /// It.
    pub storage: Box<dyn Storage>,
    /// What somebody should know about it, in plain words: that it was damaged, and what is lost.
    pub note: Option<String>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("note", &self.note).finish_non_exhaustive()
    }
}

/// Opens a database, as often as needed, on the thread that uses it.
pub type Opener = Box<dyn Fn(Purpose) -> Result<Opened, StorageError> + Send + Sync>;
