//! Sessions before, between and after games: lobby, seats, tickets, returns, and where sessions are placed.
//!
//! [`session`] is the life of one session. [`host`] ↔ [`gateway`] is where sessions are and how they are found, [`fleet`] which
//! hosts a machine runs. docs/sessions.md has the rules.
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
pub mod pace;
pub mod password;
pub mod placing;
pub mod plan;
pub mod session;
pub mod settings;
mod still;
pub mod ticket;
