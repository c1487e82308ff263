//! The sametick server as a library: clocks, sockets, disk and signals around the pure machines.
//!
//! So far it serves one thing: [`ping`], which measures a link over any transport. The binary is a thin shell around
//! [`cli::run`].
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an edge crate: clocks, sockets and the environment are its business"
)]

pub mod cli;
pub mod listen;
pub mod ping;
pub mod report;
pub mod secret;
