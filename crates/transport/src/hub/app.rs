//! What runs on a hub: what it is told and what it is asked.

use std::net::SocketAddr;

use sametick_wire::hello::{Proven, Refusal};
use sametick_wire::{Channel, Closed, LinkStats, Malformed, Time};

use super::{Key, Links};
use crate::endpoint::{Gone, RawEvent};

/// Why a link has ended, or never began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As the link itself knows.
    Link(Closed),
    /// The carrier went away under it.
    Carrier(Gone),
    /// The server turned us down, and said why.
    Refused(Refusal),
    /// The server's answer cannot be read.
    BadAnswer(Malformed),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Link(Closed::Here) => f.write_str("closed from this side"),
            Ended::Link(Closed::There(reason)) if reason.text.is_empty() => {
                f.write_str("closed from the other side")
            }
            // What a stranger wrote stays on its line.
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

/// What the application is told.
#[derive(Debug)]
pub enum Event<'a> {
    /// A link has opened.
    Opened(Key),
    /// A message has arrived.
    Message(Key, Channel, &'a [u8]),
    /// A link has ended; the key is never used again. Its last figures come with it, if it ever opened.
    Ended(Key, &'a Ended, Option<LinkStats>),
    /// The time of [`App::wake_at`] has come, or somebody has rung.
    Timeout,
}

/// What runs on a hub.
pub trait App {
    /// Whether to let in a client whose proof was good. Nothing may be remembered of it: it comes in with [`App::enter`], at once,
    /// later, or never if it has only made up its address.
    fn admit(&mut self, now: Time, key: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal>;

    /// A client that was let in has come in; `Opened` follows. A refusal closes its link.
    fn enter(&mut self, now: Time, key: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        let _ = (now, key, from, proven);
        Ok(())
    }

    /// Whether a link takes part in something. One that does not may only have [little](super::budget::UNJOINED_BYTES) on its way.
    fn has_joined(&self, key: Key) -> bool {
        let _ = key;
        false
    }

    /// Takes what happened; sends by way of `links`.
    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>);

    /// Takes what happens in a raw WebSocket: whole messages of somebody who has no link, see
    /// [`Upgrade::Raw`](crate::site::Upgrade::Raw).
    fn on_raw(&mut self, now: Time, links: &mut Links, key: Key, event: RawEvent) {
        let _ = (now, event);
        links.hang_up(key);
    }

    /// What was sent meanwhile has been handed to the carriers.
    fn settled(&mut self, now: Time) {
        let _ = now;
    }

    /// When to be called at the latest, also if nothing happens.
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
    fn the_log_has_the_words_that_the_peer_is_told() {
        for broken in [Malformed::Truncated, Malformed::TooLong, Malformed::Forbidden("Join is sent once")] {
            let logged = Ended::Link(Closed::Violation(broken)).to_string();
            assert_eq!(logged, format!("the other side broke the protocol: {}", broken.rule()));
        }
    }
}
