//! The whole client as one machine: dials, says hello, joins, plays, comes back after a drop, leaves.
//!
//! ```text
//!                     ┌───────────── Client ─────────────┐
//!  Answer, Datagram ─▶│ routes, backoff ─ Link ─ Side    │─▶ Dial, Datagram, Stream, HangUp   to a carrier
//!  Stream, Gone       │           trouble                │─▶ WantInput                        to whoever plays
//!                     └──────────────────────────────────┘─▶ WakeAt, Done
//! ```
//! The [`Side`] is a `Peer` of a session in lockstep, or a `View` of a room.
//!
//! A driver opens carriers and moves their bytes: a socket, a browser's WebTransport or WebSocket, or a test in virtual time.
//! Everything that decides anything is here.
#![no_std]

extern crate alloc;

mod client;
mod plan;
mod route;
mod side;
mod status;

pub use client::{Carried, Client, Input, Output};
pub use plan::Plan;
pub use route::Attempt;
pub use sametick_lockstep::copy::{SessionCopy, Unfit};
pub use sametick_lockstep::peer::{Brought, Progress};
pub use side::{Side, Standing};
pub use status::{Status, Totals};
