//! One link, both ends: frames, channels, acks, redundancy, handshake, bit packing, and a bad network as a library.
//!
//! A driver moves the bytes of a [`Link`] and lets its time pass:
//!
//! ```
//! use sametick_wire::{Carrier, Channel, Input, Link, Output, Time};
//!
//! let (mut here, mut there) = (Link::new(Time::ZERO, Carrier::Datagrams), Link::new(Time::ZERO, Carrier::Datagrams));
//! here.send(Time::ZERO, Channel::Chat, b"hello")?;
//! let mut buf = Vec::new();
//! let wake_at = loop {
//!     match here.poll_output(&mut buf) {
//!         Output::Datagram => there.handle(Time::ZERO, Input::Datagram(&buf)).unwrap(),
//!         Output::WakeAt(at) => break at,
//!         output => panic!("this carrier has no {output:?}"),
//!     }
//! };
//! assert_eq!((there.poll_output(&mut buf), &buf[..]), (Output::Message(Channel::Chat), &b"hello"[..]));
//! here.handle(wake_at, Input::Timeout).unwrap();
//! # Ok::<(), sametick_wire::SendError>(())
//! ```
//!
//! | chapter | modules |
//! |---|---|
//! | a link | [`link`], [`channel`], [`closing`]; over datagrams `datagrams`, over streams `lanes`, joined by `streams` |
//! | its bytes | [`frame`], [`packet`], [`block`], [`codec`], [`bits`], [`range`]; acks and loss in `arrivals`, `sent`, [`rtt`], `cadence`, `window` |
//! | delivery | `ordered` (reliable streams), `redundant` (inputs), `queue` (newest wins), [`outbox`] |
//! | the first message | [`hello`], [`access`] (proof of the passphrase), [`identity`] (players and tokens), [`backoff`] |
//! | what protocols on it need | [`inputs`], [`pacer`], [`claims`], [`control`], [`side`], [`message_log`], [`text`], [`hex`], [`rate_limit`] |
//! | bad networks | [`netem`], [`netem_carrier`] (in front of real carriers), [`pair`] (two links in virtual time) |
//!
//! Its driver for sockets is `Hub` in the crate `transport` (`hub.rs`).
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
pub mod rate_limit;
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
// Types of the public interface, so that drivers need not name `sim`.
pub use sametick_sim::{BuildId, SchemaHash, Time};
