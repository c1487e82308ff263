//! An authoritative room: the host steps the game and decides; a view shows what concerns its player and predicts the player's own part.
//!
//! The host steps with one input per tick and seat, writes the same log records as a relay does, and makes one update for every view: a
//! player, or a crew that shares one. An update is a delta against a baseline that every member of the view has acknowledged, so any
//! update may be lost. A view shows a moment slightly in the past, interpolates between updates and never steps back.
//!
//! ```
//! use sametick_room::host::{Input, Output};
//! use sametick_room::{Host, HostConfig};
//! use sametick_sim::Time;
//! use sametick_sim::replica::Hosted;
//!
//! /// Lets the time of a room pass. Returns when to call again.
//! fn drive<G: Hosted>(host: &mut Host<G>, now: Time, mut send: impl FnMut(Output, &[u8])) -> Time {
//!     host.handle(now, Input::Timeout);
//!     let mut buf = Vec::new();
//!     loop {
//!         match host.poll_output(&mut buf) {
//!             Output::WakeAt(at) => return at,
//!             output => send(output, &buf),
//!         }
//!     }
//! }
//! # fn begin<G: Hosted>(setup: &G::Setup) -> Host<G> { Host::new(Time::ZERO, setup, HostConfig::default()) }
//! ```
//!
//! | chapter | modules |
//! |---|---|
//! | the host | [`host`]: joining, seat slots, gathering inputs of a tick, what is kept; interest in `scenery`, `grid` and `choice`; a view's members in `crew` |
//! | deltas | [`delta`] over [`snapshot`]s; motion is predicted by `track` and `spin`, what is left is coded by [`models`], `row`, `odds`, `learnt` |
//! | the view | [`view`]: received updates, the shown moment (`timeline`), interpolation (`tracks`), the own part (`prediction`) |
//! | messages | [`message`] |
//! | tests | [`pair`]: a host and views on a bad network in virtual time |
#![no_std]

extern crate alloc;

pub mod delta;
pub mod host;
mod learnt;
pub mod message;
pub mod models;
mod odds;
pub mod pair;
mod row;
pub mod snapshot;
mod spin;
mod track;
pub mod view;

pub use host::{Host, HostConfig};
pub use view::View;
