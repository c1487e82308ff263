//! The `sametick` command as its users run it: real processes, sockets and signals. One test binary.

#![allow(clippy::disallowed_methods, reason = "an edge crate's tests have threads and processes")]

#[path = "it/bot.rs"]
mod bot;
#[path = "it/games.rs"]
mod games;
#[path = "it/ping.rs"]
mod ping;
#[path = "it/process.rs"]
mod process;
#[path = "it/trial.rs"]
mod trial;
