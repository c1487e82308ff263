//! Lockstep through a game-agnostic relay: closing ticks, confirmed and latency state, rollback.
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
