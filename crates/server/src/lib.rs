//! The sametick server as a library: the drivers (clock, sockets, disk, HTTP, signals) around the pure state machines, and the commands.
//!
//! A binary is one line around [`main`], which takes the [`mod@games`] it knows:
//!
//! ```no_run
//! use sametick::games;
//! # use sametick_pong::Pong;
//!
//! fn main() -> std::process::ExitCode {
//!     sametick::main(games![Pong[2..=4]])
//! }
//! ```
//!
//! | chapter | modules |
//! |---|---|
//! | commands | [`cli`]; [`up`], [`serve`] (relay, gateway, host), [`play`], [`bot`], [`load`], [`replay`], [`logs`], [`recite`], [`check`], [`sessions`], [`config`], [`ping`] |
//! | drivers of the machines | [`app`] (one hub: relay, rooms, sessions), `relay`, `spectator`, `calling` (clients), [`listen`] |
//! | rooms and scripts | [`rooms`], [`rooms::envelope`], `envelope_connection`, `strict_json` |
//! | lobby | `gateway`, `hosting` (sessions of a host process) |
//! | HTTP and pages | `pages`, `presence`, `endpoints` |
//! | identity | [`identity`] |
//! | storage threads | `recorder` (logs), `uploader` (saves), `finder` and `recovered` (sessions that are not running), [`players`], [`copies`] |
//! | desyncs and message logs | `desync`, `judge`, `trace`, `tracer`, `status` |
//! | games of any type | [`mod@games`] |
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an edge crate: clocks, sockets and the environment are its business"
)]

pub mod app;
pub mod bot;
mod calling;
pub mod check;
pub mod cli;
pub mod config;
pub mod copies;
mod desync;
#[cfg(test)]
mod documented;
mod endpoints;
mod envelope_connection;
mod finder;
mod folder_lock;
pub mod games;
mod gateway;
mod hosting;
pub mod identity;
mod judge;
pub mod listen;
pub mod load;
mod logging;
pub mod logs;
mod pages;
pub mod ping;
pub mod play;
pub mod players;
mod presence;
pub mod progress;
pub mod recite;
mod recorder;
mod recovered;
mod relay;
pub mod replay;
pub mod report;
pub mod rooms;
pub mod secret;
pub mod serve;
pub mod sessions;
mod signals;
mod spectator;
mod status;
mod strict_json;
mod trace;
mod tracer;
pub mod up;
mod uploader;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser;

#[doc(inline)]
pub use sametick_sim::commit;

/// The whole `sametick` command for these games: parses the arguments of the process and runs the command.
#[expect(clippy::needless_pass_by_value, reason = "a binary says `main(games![MyGame])`")]
pub fn main(games: games::Games) -> ExitCode {
    match cli::run(cli::Command::parse(), &games) {
        Ok(code) => code,
        // The reader of our output has closed the pipe.
        Err(error) if error.io_kind() == Some(ErrorKind::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sametick: {error}");
            ExitCode::FAILURE
        }
    }
}
