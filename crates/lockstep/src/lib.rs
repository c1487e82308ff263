//! Lockstep through a game-agnostic relay: seats, closing ticks, confirmed and predicted state, rollback, desyncs.
//!
//! The relay orders opaque inputs by tick and seat. A peer sends each input once, and the link repeats it until it is acknowledged. The
//! relay closes a tick when its time has come and sends it to every peer. A peer steps its confirmed state with closed ticks only, and
//! the state on screen ahead of it with own inputs and guesses; a wrong guess is simulated again from the confirmed state.
//!
//! A driver hands the relay what its links bring, and drains it:
//!
//! ```
//! use sametick_lockstep::relay::{Input, Output, Relay, RelayConfig};
//! use sametick_sim::Time;
//!
//! let mut relay = Relay::new(RelayConfig::default());
//! relay.handle(Time::ZERO, Input::Timeout);
//! let mut buf = Vec::new();
//! let wake_at = loop {
//!     match relay.poll_output(&mut buf) {
//!         Output::Send(member, channel) => println!("{} bytes on {channel:?} to {member:?}", buf.len()),
//!         Output::Record(session, record) => println!("into the log of {session:?}: {record:?}"),
//!         Output::WakeAt(at) => break Some(at),
//!         Output::Wait => break None,
//!         _ => {}
//!     }
//! };
//! assert_eq!(wake_at, None, "there is no session");
//! ```
//!
//! | chapter | modules |
//! |---|---|
//! | the relay | [`relay`]; a session in [`session`], a seat in `seat_slot`, closed ticks in [`history`] and [`rows`]; the driver assigns player and seat by [`assignment`] |
//! | a peer | [`peer`]; prediction and rollback in `play`, kept states in `recent`; the pace of its ticks is `pacer` of the crate `wire` |
//! | desyncs | [`agreement`] compares hashes (`checks`), an [`inquiry`] finds the first bad tick and mends the peers in the minority |
//! | saves and late joins | [`compaction`] says when, `gathering` asks peers for the state; [`copy`] is a peer's own copy |
//! | after a crash | [`kept`]: what the driver has found; [`relay`] resumes from the lowest tick that the peers report |
//! | figures | [`diagnostics`] with verdicts, measured by `meter` |
//! | messages | [`message`], `claim`, `facts` |
//! | tests and tools | [`pair`] (a relay and peers on a bad network), [`log_player`] (a log played against a live relay) |
#![no_std]

extern crate alloc;

pub mod agreement;
pub mod assignment;
mod checks;
mod claim;
pub mod compaction;
pub mod copy;
pub mod diagnostics;
mod facts;
mod gathering;
pub mod history;
pub mod inquiry;
pub mod kept;
pub mod log_player;
pub mod message;
mod meter;
pub mod pair;
pub mod peer;
#[doc(hidden)]
pub mod planted;
mod play;
mod recent;
pub mod relay;
pub mod rows;
mod seat_slot;
pub mod session;
