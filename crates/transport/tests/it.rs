//! Real sockets: every transport, the hello verifier, and the limits. One test binary.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real sockets, threads and clocks")]

#[path = "it/busy.rs"]
mod busy;
#[path = "it/echo.rs"]
mod echo;
#[path = "it/extras.rs"]
mod extras;
#[path = "it/fetch.rs"]
mod fetch;
#[path = "it/http.rs"]
mod http;
#[path = "it/limits.rs"]
mod limits;
#[path = "it/order.rs"]
mod order;
#[path = "it/raw.rs"]
mod raw;
#[path = "it/talks.rs"]
mod raw_sockets;
#[path = "it/talk.rs"]
mod raw_websocket;
#[path = "it/silence.rs"]
mod silence;
#[path = "it/steady.rs"]
mod steady;
#[path = "it/strain.rs"]
mod strain;
#[path = "it/stranger.rs"]
mod stranger;
