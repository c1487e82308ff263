//! Sessions before, between and after games: lobby, seats, tickets, returns, and where sessions are placed.
//!
//! A host owns its sessions and decides about them; a gateway knows where sessions are and asks hosts for places. Nothing is told to a
//! member before it is stored. docs/sessions.md has the rules.
//!
//! ```
//! use sametick_session::session::{Input, Output, Session};
//! use sametick_sim::Time;
//!
//! /// Lets the time of a session pass. Returns when to call again, if anything is due.
//! fn drive(session: &mut Session, now: Time, input: Input, mut carry_out: impl FnMut(Output)) -> Option<Time> {
//!     session.handle(now, input);
//!     loop {
//!         match session.poll_output() {
//!             Output::WakeAt(at) => return at,
//!             output => carry_out(output),
//!         }
//!     }
//! }
//! ```
//!
//! | chapter | modules |
//! |---|---|
//! | one session | [`session`]: joining, playing, moving, coming back; [`plan`] (its seats), [`settings`], [`ticket`], [`password`] |
//! | where sessions are | [`host`] ↔ [`gateway`], with the messages in [`placing`] and what a gateway knows in [`catalog`] |
//! | which processes run | [`fleet`] |
//! | messages | [`lobby`] (to a gateway), [`message`] (to a session), [`id`], [`name`] |
#![no_std]

extern crate alloc;

pub mod catalog;
pub mod fleet;
pub mod gateway;
pub mod host;
pub mod id;
pub mod lobby;
pub mod message;
pub mod name;
pub mod password;
pub mod placing;
pub mod plan;
pub mod session;
pub mod settings;
mod still;
pub mod ticket;
