//! The sametick server as a library: clocks, sockets, disk and signals around the pure machines.
//!
//! So far it serves two things: [`ping`], which measures a link over any transport, and [`relay`], through which
//! [`bot`]s play. The binary is a thin shell around
//! [`cli::run`].
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an edge crate: clocks, sockets and the environment are its business"
)]

pub mod bot;
pub mod cli;
pub mod listen;
pub mod ping;
pub mod relay;
pub mod report;
pub mod secret;
