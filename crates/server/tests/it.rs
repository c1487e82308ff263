//! The `sametick` command as its users run it: real processes, sockets and signals. One test binary.

#[path = "it/bot.rs"]
mod bot;
#[path = "it/ping.rs"]
mod ping;
#[path = "it/process.rs"]
mod process;
