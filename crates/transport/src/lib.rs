//! Moves the bytes of links: raw UDP, QUIC, WebSocket, WebTransport and memory behind one small trait.
//!
//! | transport | file | carrier | a stranger gets |
//! |---|---|---|---|
//! | `udp://` | `udp.rs` (`noise.rs`, `batch.rs`) | datagrams | nothing |
//! | `quic://` | `quic.rs` (`filter.rs`) | datagrams and streams | nothing |
//! | `ws://`, `wss://` | `websocket.rs` (`http.rs`, `site.rs`, `talk.rs`) | one stream | HTTP, then a close without detail |
//! | `wt://` | `webtransport.rs` | datagrams and streams | HTTP/3, then a close without detail |
//! | – | `memory.rs` | any | – |
//!
//! [`connection`] is for our own processes among themselves: whole messages, sealed.
//!
//! [`hub::Hub`] drives any number of them: receive or wake, handle, drain.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an edge crate: reading clocks and sockets is what it is for"
)]

mod batch;
pub mod clock;
pub mod connection_slots;
pub mod control_connection;
pub mod dial;
pub mod endpoint;
mod extras;
pub mod fetch;
pub mod files;
mod filter;
mod firsts;
mod http;
pub mod hub;
pub mod hub_waker;
pub mod memory;
pub mod noise;
pub mod pace;
pub mod proof_journal;
pub mod quic;
pub mod raw_websocket;
mod sessions;
pub mod site;
pub mod tasks;
pub mod tls;
pub mod udp;
pub mod websocket;
pub mod webtransport;
