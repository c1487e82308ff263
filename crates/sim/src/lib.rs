//! What a game author sees: `Game`, ticks, seats, inputs, deterministic maths, canonical bytes and state hashes.
#![no_std]

extern crate alloc;

mod id;
mod rng;
mod time;

pub use id::{BuildId, SchemaHash};
pub use rng::Rng;
pub use time::{Seat, Tick, TickRate, Time};
