//! Keeps sessions: the [log] of what every seat did in every tick, and the [disks](disk) it is kept on; [save], the bytes of a state; `saves`, states
//! and cold logs on stores that several machines share; `players`, the database of who was where; and `catalog`, what a gateway knew.
//!
//! Save and log are the truth about a session. The formats are described in `docs/log.md` and `docs/saves.md`.

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
