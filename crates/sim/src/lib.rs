//! API for game authors: `Game`, ticks, seats, inputs, deterministic maths, canonical bytes and state hashes.
//!
#![doc = include_str!("../guide.md")]
#![no_std]

#[cfg(all(target_arch = "x86", not(target_feature = "sse2")))]
compile_error!("without SSE2, x86 computes floats with extra precision: no two machines would agree");

extern crate alloc;

pub mod canon;
pub mod contest;
pub mod diff;
mod game;
pub mod hash;
mod id;
mod inputs;
pub mod maths;
pub mod quantise;
pub mod record;
pub mod replica;
mod rng;
pub mod schema;
pub mod sync_test;
mod time;

pub use canon::{from_canonical, to_canonical};
pub use game::{Game, description_of, schema_hash_of};
pub use hash::StateHash;
pub use id::{BuildId, SchemaHash};
pub use inputs::{Inputs, OutOfOrder, Owner, Restored, Row};
pub use maths::{Fixed, Quat, Vec2, Vec3};
pub use rng::Rng;
pub use time::{Seat, Tick, TickRate, Time};

/// The derive and trait that give a type its [schema].
///
/// The derive names the crate `postcard_schema`, so a game lists that among its dependencies; or it writes
/// `#[postcard(crate = sametick_sim::postcard_schema)]` on its types.
pub use postcard_schema::Schema;

#[doc(no_inline)]
pub use postcard_schema;

/// The build id of this crate: part of the id of every game built on it.
pub const BUILD: BuildId = build_id!();
