//! The whole client as one state machine: it dials, says hello, joins, plays, resumes after a drop, and leaves.
//!
//! ```text
//!                     ┌───────────── Client ─────────────┐
//!  Answer, Datagram ─▶│ routes, backoff ─ Link ─ Side    │─▶ Dial, Datagram, Stream, HangUp   to a carrier
//!  Stream, Gone       │       netem carrier              │─▶ WantInput                        to the player
//!                     └──────────────────────────────────┘─▶ WakeAt, Done
//! ```
//! The [`Side`] is a `Peer` of a session in lockstep, or a `View` of a room. A driver opens carriers and moves their bytes: a socket, a
//! browser's WebTransport or WebSocket, or a test in virtual time.
//!
//! ```
//! use sametick_client::{Client, Input, Output, Side};
//! use sametick_wire::Time;
//!
//! /// Lets a client's time pass. Returns when to call again, or nothing once it has left.
//! fn drive<S: Side>(client: &mut Client<S>, now: Time, mut carry_out: impl FnMut(Output, &[u8])) -> Option<Time> {
//!     client.handle(now, Input::Timeout);
//!     let mut buf = Vec::new();
//!     loop {
//!         match client.poll_output(&mut buf) {
//!             Output::WakeAt(at) => return Some(at),
//!             Output::Done => return None,
//!             output => carry_out(output, &buf),
//!         }
//!     }
//! }
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `client` | the state machine; `client/drain.rs` has what it wants, `client/messages.rs` the message log |
//! | `plan` | what a client is to do: session, join, passphrase, routes |
//! | `route` | which route to the server is dialled next, and when |
//! | `side` | the two kinds of sides behind one trait |
//! | `status` | what the client is doing, for people |
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
