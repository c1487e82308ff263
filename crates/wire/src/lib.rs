//! One link, both ends: frames, channels, acks and redundancy, handshake, bit packing, and the bad network as a library.
#![no_std]

extern crate alloc;

pub mod access;
mod arrivals;
mod assembly;
pub mod backoff;
pub mod bits;
pub mod block;
mod cadence;
pub mod channel;
pub mod claims;
pub mod closing;
pub mod codec;
pub mod control;
mod datagrams;
pub mod frame;
pub mod hello;
pub mod hex;
pub mod identity;
pub mod inputs;
mod lanes;
pub mod link;
pub mod message_log;
pub mod netem;
mod ordered;
pub mod outbox;
pub mod pacer;
pub mod packet;
pub mod pair;
pub use sametick_sim::quantise;
pub mod netem_carrier;
mod queue;
pub mod range;
mod ranges;
mod redundant;
pub mod rtt;
mod sent;
pub mod side;
mod streams;
pub mod text;
mod window;

pub use channel::{Channel, Delivery};
pub use claims::Member;
pub use closing::{Closed, Reason};
pub use codec::Malformed;
pub use link::{Carrier, Input, LaneId, Link, LinkStats, Output, SendError};
// What the public interface of this crate speaks of, so that edges need not name `sim`.
pub use sametick_sim::{BuildId, SchemaHash, Time};
