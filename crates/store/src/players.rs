//! Who somebody is and where they were: kept in a database, written by a thread of its own, read by another.
//!
//! ```text
//! tick thread                     persist thread                      disk
//! PlayerWriter::save ──► queue (rtrb) ──► batch, newest by key ──► Storage::write
//!    └ full: overflow, newest by key                          (one transaction, synced)
//! PlayerWriter::ask  ──► reader thread ──► Storage::look_up ──► PlayerWriter::poll
//!                  backup thread ──► a whole copy beside the file, now and then
//! ```
//!
//! - The tick thread never waits, neither for the database nor for the other threads, and allocates nothing for a
//!   checkpoint as long as the queue has room.
//! - What counts is the newest write of each [key](Write): a full queue or a database that does not work keeps those, in
//!   memory that grows with players and not with time. Nothing is dropped without a word.
//! - What is [`Saved`](Answer::Saved) is on disk.
//! - The database is behind [`Storage`]; [`Sqlite`] is the one there is.

mod backups;
mod batch;
mod persist;
mod player_writer;
mod reading;
mod sqlite;
mod stats;
mod storage;
mod words;

pub use player_writer::{Answer, PlayerWriter, PlayerWriterOptions, Ticket, Waker};
pub use sqlite::{Durability, OtherFiles, Recovery, Rewrite, Sqlite, SqliteOptions, TableRecovery};
pub use stats::PlayersStats;
pub use storage::{
    CheckpointRow, Found, Known, Opened, Opener, PlaceRow, Purpose, Question, Storage, StorageError,
    TokenState, Write,
};
pub use words::{
    Kept, MAX_CHARACTER_BYTES, MAX_KEPT, PlaceId, PlayerId, Token, TokenHash, TooLong, is_character,
};
