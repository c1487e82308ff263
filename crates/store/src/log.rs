//! The session log: joins and leaves, every seat's input in every tick, and the state hashes.
//!
//! Records go into a [`LogEncoder`], frames come out; a [`LogWriter`] or a [`LogThread`] writes them to a disk; a
//! [`LogReader`] reads them again from any tick. Inputs are opaque bytes: the log knows no game.
//!
//! ```
//! use sametick_sim::{Row, Seat, Tick};
//! use sametick_store::disk::MemDisk;
//! use sametick_store::log::{Header, LogReader, LogWriter, Record, TickInputs};
//!
//! let mut log = LogWriter::new(MemDisk::new(), &Header::new("pong", "den"))?;
//! let mut inputs = TickInputs::new();
//! for tick in (1..=90).map(Tick) {
//!     let joined = tick == Tick(1);
//!     if joined {
//!         log.push(&Record::Joined { tick, seat: Seat(0), name: "ada".into(), commit: "".into() })?;
//!     }
//!     inputs.set(tick, [Row { seat: Seat(0), joined, left: false, input: Some(&[7][..]) }]);
//!     log.push_inputs(&inputs)?;
//! }
//! log.flush()?;
//!
//! let mut reader = LogReader::open(log.disk().bytes())?;
//! let mut ticks = reader.ticks_from(Tick(60));
//! assert_eq!(ticks.next()?.map(TickInputs::tick), Some(Tick(60)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beginning;
mod body;
mod cursor;
mod decoder;
pub mod diff;
mod encoder;
pub mod export;
mod frame;
mod group;
mod header;
mod log_thread;
mod model;
mod reader;
mod tail;
mod timeline;
mod window;
mod writer;

pub use beginning::MAX_BEGINNING_BYTES;
pub use cursor::{Checks, Records, Ticks};
pub use encoder::{EncoderOptions, FrameInfo, LogEncoder, PushError};
#[cfg(feature = "saves")]
pub(crate) use frame::MAGIC;
pub use frame::{FrameKind, VERSION, VERSION_WITH_STATE};
pub use header::{BadHeader, Header};
pub use log_thread::{FileLog, LogEvent, LogThread, LogThreadOptions, Refused};
pub use reader::{LogReader, OpenError, ReadError, Summary, repair};
pub use sametick_sim::record::{Leaving, Record, TickInputs};
pub use tail::Tail;
pub use timeline::{Misplaced, Position};
pub use writer::{Appender, LogWriter, WriteError};

/// Escape value for a seat number that does not fit in eight bits; the seat follows in 16. Few sessions have so many
/// seats.
const LONG_SEAT: u16 = 255;

/// The longest input of one seat in one tick.
pub const MAX_INPUT_BYTES: usize = 2048;

/// The longest total of all inputs in a tick: bounds a reader's memory, however few bytes it was given.
pub const MAX_TICK_BYTES: usize = 8192;

/// The longest external item of a tick.
pub const MAX_BROUGHT_BYTES: usize = 2048;

/// The longest total of external items in one tick: with the inputs, less than a payload may have.
pub const MAX_TICK_BROUGHT_BYTES: usize = 64 * 1024;

/// The longest name of a player, commit or game.
pub const MAX_NAME_BYTES: usize = 64;

/// The longest name of a session, or path of a snapshot.
pub const MAX_PLACE_BYTES: usize = 255;

/// The longest setup of a game.
pub const MAX_SETUP_BYTES: usize = 64 * 1024;
