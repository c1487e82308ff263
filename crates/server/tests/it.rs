//! Integration tests of the `sametick` command as users run it: real processes, sockets and signals. One test binary.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an edge crate's tests have threads, processes and clocks"
)]

#[path = "it/attacks.rs"]
mod attacks;
#[path = "it/bot.rs"]
mod bot;
#[path = "it/check.rs"]
mod check;
#[path = "it/cloud.rs"]
mod cloud;
#[path = "it/config.rs"]
mod config;
#[path = "it/copies.rs"]
mod copies;
#[path = "it/crowds.rs"]
mod crowds;
#[path = "it/data_folder.rs"]
mod data_folder;
#[path = "it/doors.rs"]
mod doors;
#[path = "it/envelopes.rs"]
mod envelopes;
#[path = "it/everyone.rs"]
mod everyone;
#[path = "it/games.rs"]
mod games;
#[path = "it/hall.rs"]
mod hall;
#[path = "it/hour.rs"]
mod hour;
#[path = "it/identity.rs"]
mod identity;
#[path = "it/kept.rs"]
mod kept;
#[path = "it/killed.rs"]
mod killed;
#[path = "it/live.rs"]
mod live;
#[path = "it/lobby.rs"]
mod lobby;
#[path = "it/lockstep.rs"]
mod lockstep;
#[path = "it/log.rs"]
mod log;
#[path = "it/ping.rs"]
mod ping;
#[cfg(target_os = "linux")]
#[path = "it/play.rs"]
mod play;
#[path = "it/process.rs"]
mod process;
#[path = "it/recorded.rs"]
mod recorded;
#[path = "it/replay.rs"]
mod replay;
#[path = "it/resumed.rs"]
mod resumed;
#[path = "it/returning.rs"]
mod returning;
#[path = "it/rooms.rs"]
mod rooms;
#[cfg(target_os = "linux")]
#[path = "it/screen.rs"]
mod screen;
#[path = "it/scripts.rs"]
mod scripts;
#[path = "it/sessions.rs"]
mod sessions;
#[path = "it/stage.rs"]
mod stage;
#[allow(dead_code, reason = "the tests of saves use more of it")]
#[path = "../../store/tests/saves/stand.rs"]
mod stand;
#[path = "it/survivors.rs"]
mod survivors;
#[path = "it/trial.rs"]
mod trial;
#[path = "it/up.rs"]
mod up;
#[path = "it/web.rs"]
mod web;
