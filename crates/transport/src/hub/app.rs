//! The application interface of a hub: its events and callbacks.

use std::net::SocketAddr;

use sametick_wire::hello::{Proven, Refusal};
use sametick_wire::{Channel, Closed, LinkStats, Malformed, Time};

use super::{Key, Links};
use crate::endpoint::{Gone, RawEvent};

/// Why a link has ended, or never began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The reason that the link itself knows.
    Link(Closed),
    /// The carrier ended.
    Carrier(Gone),
    /// The server refused us, with a reason.
    Refused(Refusal),
    /// The server's answer is malformed.
    BadAnswer(Malformed),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Link(Closed::Here) => f.write_str("closed from this side"),
            Ended::Link(Closed::There(reason)) if reason.text.is_empty() => {
                f.write_str("closed from the other side")
            }
            // Text of a peer is escaped to one line.
            Ended::Link(Closed::There(reason)) => {
                write!(f, "closed from the other side: {}", reason.text.replace(char::is_control, " "))
            }
            Ended::Link(Closed::TimedOut) => f.write_str("nothing heard for 10 s"),
            Ended::Link(Closed::Violation(error)) => {
                write!(f, "the other side broke the protocol: {}", error.rule())
            }
            Ended::Carrier(gone) => gone.fmt(f),
            Ended::Refused(refusal) => write!(f, "refused: {refusal}"),
            Ended::BadAnswer(error) => write!(f, "the server's answer cannot be read: {error}"),
        }
    }
}

/// An event of the application.
#[derive(Debug)]
pub enum Event<'a> {
    /// A link has opened.
    Opened(Key),
    /// A message has arrived.
    Message(Key, Channel, &'a [u8]),
    /// A link has ended; the key is never used again. Its last figures come with it, if it ever opened.
    Ended(Key, &'a Ended, Option<LinkStats>),
    /// The time of [`App::wake_at`] has come, or the waker was rung.
    Timeout,
}

/// The application of a hub.
pub trait App {
    /// Whether to admit a client with a good proof. The application must not remember it yet: [`App::enter`] follows at
    /// once, later, or never if the source address was forged.
    fn admit(&mut self, now: Time, key: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal>;

    /// An admitted client has proven its address; `Opened` follows. A refusal closes its link.
    fn enter(&mut self, now: Time, key: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        let _ = (now, key, from, proven);
        Ok(())
    }

    /// Whether a link has joined a session or room. One that has not may only have
    /// [little](super::budget::UNJOINED_BYTES) in flight.
    fn has_joined(&self, key: Key) -> bool {
        let _ = key;
        false
    }

    /// Handles an event; sends by way of `links`.
    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>);

    /// Handles an event of a raw WebSocket, which is not a link: see [`Upgrade::Raw`](crate::site::Upgrade::Raw).
    fn on_raw(&mut self, now: Time, links: &mut Links, key: Key, event: RawEvent) {
        let _ = (now, event);
        links.hang_up(key);
    }

    /// All data sent so far has been passed to the carriers.
    fn settled(&mut self, now: Time) {
        let _ = now;
    }

    /// The latest time of the next call, also if nothing happens.
    fn wake_at(&self) -> Option<Time>;

    /// Whether the hub should stop.
    fn is_done(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_the_reason_that_the_peer_is_sent() {
        for broken in [Malformed::Truncated, Malformed::TooLong, Malformed::Forbidden("Join is sent once")] {
            let logged = Ended::Link(Closed::Violation(broken)).to_string();
            assert_eq!(logged, format!("the other side broke the protocol: {}", broken.rule()));
        }
    }
}
