//! The players database: names, tokens, checkpoints and characters; one thread writes it, another reads it.
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
//! - Only the newest write of each [key](Write) counts: while the queue is full or the database fails, those are kept in
//!   memory, which grows with players and not with time. Nothing is dropped silently.
//! - A write that was answered with [`Saved`](Answer::Saved) is on disk.
//! - The database is behind [`Storage`]; [`Sqlite`] is the only implementation.

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
