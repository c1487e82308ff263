//! Lockstep through a game-agnostic relay: closing ticks, confirmed and latency state, rollback.
#![no_std]

extern crate alloc;

pub mod history;
pub mod message;
pub mod pacer;
pub mod peer;
pub mod relay;
pub mod rows;
pub mod session;
