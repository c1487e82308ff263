//! The sametick server as a library: clocks, sockets, disk and signals around the pure machines.
//!
//! It serves two things: [`ping`], which measures a link over any transport, and an [`app`] with a relay and authoritative
//! [`rooms`], in which people [`play`] and [`bot`]s do; [`up`] adds the pages to play on.
//! The binary is one line around [`main`], which takes the [`mod@games`] it knows: a game author's own binary has the same
//! commands for their game.
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

/// The whole `sametick` command, for these games: reads the arguments of the process and does what they say.
#[expect(clippy::needless_pass_by_value, reason = "a binary says `main(games![MyGame])`")]
pub fn main(games: games::Games) -> ExitCode {
    match cli::run(cli::Command::parse(), &games) {
        Ok(code) => code,
        // Whoever read our output has read enough.
        Err(error) if error.io_kind() == Some(ErrorKind::BrokenPipe) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sametick: {error}");
            ExitCode::FAILURE
        }
    }
}
