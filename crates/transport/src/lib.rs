//! Moves the bytes of links: raw UDP, QUIC, WebSocket, WebTransport and memory behind one small trait.
//!
//! | transport | file | carrier | a stranger gets |
//! |---|---|---|---|
//! | `udp://` | `udp.rs` (`noise.rs`, `batch.rs`) | datagrams | nothing |
//! | `quic://` | `quic.rs` (`filter.rs`) | datagrams and streams | nothing |
//! | `ws://`, `wss://` | `websocket.rs` (`http.rs`, `site.rs`, `extras.rs`, `raw_websocket.rs`) | one stream, and datagrams on extra sockets | HTTP, then a close without detail |
//! | `wt://` | `webtransport.rs` | datagrams and streams | HTTP/3, then a close without detail |
//! | – | `memory.rs` | any | – |
//!
//! [`hub::Hub`] drives any number of them on one thread: receive or wake, handle, drain.
//!
//! ```no_run
//! use sametick_transport::clock::Clock;
//! use sametick_transport::hub::{App, Hub};
//!
//! # async fn serve(endpoint: Box<dyn sametick_transport::endpoint::Endpoint>, app: &mut impl App) -> std::io::Result<()> {
//! let mut hub = Hub::new(Clock::start(), None);
//! hub.add(endpoint);
//! hub.run(app).await
//! # }
//! ```
//!
//! | chapter | modules |
//! |---|---|
//! | endpoints | [`endpoint`], [`udp`], [`quic`], [`websocket`], [`webtransport`], [`memory`]; connections in [`tasks`] and `sessions` |
//! | the hub | [`hub`], [`hub_waker`] (wakes it from other threads), [`clock`] |
//! | doors | [`proof_journal`] (used first messages), `filter` and `firsts` (strangers), [`connection_slots`], [`rate_limit`] |
//! | HTTP | [`site`], `http`, [`raw_websocket`] (messages that are not a link's), [`fetch`] (asks other servers) |
//! | cryptography | [`noise`], [`tls`] |
//! | our own processes | [`control_connection`]: sealed messages over TCP between gateway and hosts |
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
pub mod proof_journal;
pub mod quic;
pub mod rate_limit;
pub mod raw_websocket;
mod sessions;
pub mod site;
pub mod tasks;
pub mod tls;
pub mod udp;
pub mod websocket;
pub mod webtransport;
