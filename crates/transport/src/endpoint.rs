//! The interface of every transport: it only moves the bytes of links.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use sametick_wire::access::NO_ANSWER;
use sametick_wire::{Carrier, LaneId, Time};

/// The id of a link within one endpoint. An id is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// The only link of a client's endpoint.
pub const CALL: LinkId = LinkId(0);

/// An arrival at an endpoint.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// A client's first message. The driver must [`Endpoint::answer`] or [`Endpoint::drop_link`].
    Hello {
        /// The link it would become.
        link: LinkId,
        /// The client's address.
        from: SocketAddr,
        /// See [`sametick_wire::hello`].
        bytes: &'a [u8],
    },
    /// The server's answer to our first message.
    Answer {
        /// Our link.
        link: LinkId,
        /// See [`sametick_wire::hello`].
        bytes: &'a [u8],
    },
    /// A whole datagram.
    Datagram {
        /// Its link.
        link: LinkId,
        /// As the peer's link made it.
        bytes: &'a [u8],
    },
    /// From now on a stream-only link has extra sockets for datagrams, or has them no longer.
    Datagrams {
        /// The link.
        link: LinkId,
        /// Whether it has extra sockets.
        carried: bool,
    },
    /// The next bytes of a lane.
    Stream {
        /// The link.
        link: LinkId,
        /// The lane.
        lane: LaneId,
        /// Cut at any byte.
        bytes: &'a [u8],
    },
    /// The carrier has ended. Nothing more comes on this link.
    Gone {
        /// The link.
        link: LinkId,
        /// The reason, for the log of this side.
        why: Gone,
    },
    /// An event of a raw WebSocket.
    Raw {
        /// Its id: numbered like links.
        link: LinkId,
        /// The event.
        event: RawEvent,
    },
}

/// A whole message of a raw WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawMessage {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Vec<u8>),
}

impl RawMessage {
    /// The length in bytes.
    pub fn len(&self) -> usize {
        match self {
            RawMessage::Text(text) => text.len(),
            RawMessage::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether the message is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An event of a raw WebSocket: its messages are another protocol, and it is not a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawEvent {
    /// A peer has connected.
    Began {
        /// The peer's address.
        from: SocketAddr,
        /// The path of the request, with its query.
        target: String,
    },
    /// The peer sent a message.
    Said(RawMessage),
    /// The peer sent a message longer than the limit. Nothing more is read.
    TooLong,
    /// The peer sent invalid text. Nothing more is read.
    NoText,
    /// The peer or this side has closed it.
    Ended(Gone),
}

/// Why a carrier has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The other side closed it.
    Closed,
    /// The peer did not answer in time, or refuses us silently: a wrong passphrase looks like this.
    NoAnswer,
    /// The peer exceeded a limit.
    Limit(&'static str),
    /// The network or the carrier's own protocol failed.
    Failed(String),
}

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Gone::Closed => f.write_str("the other side closed the connection"),
            Gone::NoAnswer => f.write_str(NO_ANSWER),
            Gone::Limit(limit) => write!(f, "a limit was passed: {limit}"),
            Gone::Failed(why) => f.write_str(why),
        }
    }
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Packets that got no answer.
    pub ignored: u64,
    /// Packets that could not be sent.
    pub unsent: u64,
}

/// A listening socket, or one connection to a server.
pub trait Endpoint {
    /// The guarantees of this endpoint's links.
    fn carrier(&self) -> Carrier;

    /// The local address.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Passes on arrivals. `Ready` means that something arrived and more may be waiting; `Pending` that the task will
    /// be woken.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        now: Time,
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> Poll<io::Result<()>>;

    /// When to poll at the latest, also if nothing arrives.
    fn wake_at(&self) -> Option<Time> {
        None
    }

    /// Whether clients have proven their source address when their first message arrives.
    fn are_sources_proven(&self) -> bool {
        true
    }

    /// A link has joined a session or room: it may have more in flight from now on.
    fn joined(&mut self, link: LinkId) {
        let _ = link;
    }

    /// Answers a first message; `open` says whether the link opens.
    fn answer(&mut self, link: LinkId, bytes: &[u8], open: bool);

    /// Sends a datagram, now or at the next flush.
    fn send_datagram(&mut self, link: LinkId, bytes: &[u8]);

    /// Sends bytes on a lane, now or at the next flush.
    fn send_stream(&mut self, link: LinkId, lane: LaneId, bytes: &[u8]);

    /// Sends a message on a raw WebSocket; ignored where there are none.
    fn say(&mut self, link: LinkId, words: RawMessage) {
        let _ = (link, words);
    }

    /// Ends a link or a raw WebSocket after the data sent on it; silently where nothing has been answered yet.
    fn drop_link(&mut self, link: LinkId);

    /// Sends the gathered packets.
    fn flush(&mut self) {}

    /// Ready when the final bytes of dropped links are out.
    fn poll_finished(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// The counters so far.
    fn stats(&self) -> EndpointStats {
        EndpointStats::default()
    }
}
