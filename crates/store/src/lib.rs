//! Keeps sessions and players: logs, saves, object stores, and the database of players.
//!
//! Save and log are the truth about a session; SQLite is the truth about players. The formats are in docs/log.md and docs/saves.md.
//!
//! | chapter | modules |
//! |---|---|
//! | [`log`] | what every seat did in every tick: encoder and decoder without a disk, writer, reader, comparison, export, and the log thread that writes all logs of a server; its page has a compiled example |
//! | [`disk`] | what a log is appended to: a file, or memory with faults |
//! | [`save`] | the bytes of a state at a tick |
//! | `saves` | saves and cold logs in an object store (a folder, S3, memory), brought there by a state machine without I/O |
//! | `players` | players in SQLite: a wait-free queue to the writer thread, reads on another, migrations, backup and rescue |
//! | `catalog` | what a gateway knew, in a file |

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the edge has files, a thread that writes them, and waits before it tries again"
)]

mod background;
pub use background::go_to_the_background;

#[cfg(feature = "players")]
pub mod catalog;
pub mod disk;
pub mod log;
#[cfg(feature = "players")]
pub mod players;
pub mod save;
#[cfg(feature = "saves")]
pub mod saves;
