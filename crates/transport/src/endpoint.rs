//! The one small trait of every transport: it moves the bytes of links, and nothing else.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use sametick_wire::access::NO_ANSWER;
use sametick_wire::{Carrier, LaneId, Time};

/// A link within one endpoint. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// The one link of a client's endpoint.
pub const CALL: LinkId = LinkId(0);

/// What arrived at an endpoint.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// A client's first message. Somebody must [`Endpoint::answer`] or [`Endpoint::drop_link`].
    Hello {
        /// The link it would become.
        link: LinkId,
        /// Where it comes from.
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
        /// On which link.
        link: LinkId,
        /// As the other side's link made it.
        bytes: &'a [u8],
    },
    /// A link whose carrier is one stream has extra sockets for datagrams from now on, or has none any more.
    Datagrams {
        /// Which link.
        link: LinkId,
        /// Whether it has.
        carried: bool,
    },
    /// The next bytes of a lane.
    Stream {
        /// On which link.
        link: LinkId,
        /// On which lane.
        lane: LaneId,
        /// Cut anywhere.
        bytes: &'a [u8],
    },
    /// The carrier has ended. Nothing more comes on this link.
    Gone {
        /// Which link.
        link: LinkId,
        /// Why, for the log of whoever runs this side.
        why: Gone,
    },
    /// Something happens in a raw WebSocket.
    Raw {
        /// In which: numbered like links.
        link: LinkId,
        /// What.
        event: RawEvent,
    },
}

/// A whole message of a raw WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawMessage {
    /// For people's eyes as well.
    Text(String),
    /// For programs.
    Binary(Vec<u8>),
}

impl RawMessage {
    /// How many bytes there are.
    pub fn len(&self) -> usize {
        match self {
            RawMessage::Text(text) => text.len(),
            RawMessage::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What happens in a raw WebSocket: a WebSocket of which the messages are somebody else's protocol, and no link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawEvent {
    /// Somebody has come.
    Began {
        /// From where.
        from: SocketAddr,
        /// For what: the path, with its query.
        target: String,
    },
    /// They said something.
    Said(RawMessage),
    /// They said more at once than is taken. Nothing more is heard.
    TooLong,
    /// What they call text is none. Nothing more is heard.
    NoText,
    /// They have gone, or were hung up on.
    Ended(Gone),
}

/// Why a carrier has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The other side closed it.
    Closed,
    /// The other side did not answer in time, or does not want to talk to us: a wrong passphrase looks like this.
    NoAnswer,
    /// It did not keep to a limit.
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

/// Figures of an endpoint: what never became a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointStats {
    /// Packets that got silence.
    pub ignored: u64,
    /// Packets that could not be sent.
    pub unsent: u64,
}

/// Where links end: a listening socket, or one connection to a server.
pub trait Endpoint {
    /// What the links of this endpoint can rely on.
    fn carrier(&self) -> Carrier;

    /// Where it listens or speaks from.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Hands over what has arrived. `Ready` means that something was handed over and more may be waiting; `Pending`
    /// that the task will be woken.
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

    /// Whether those whose first message arrives have shown that they receive at their address.
    fn are_sources_proven(&self) -> bool {
        true
    }

    /// A link takes part in something from now on: it may have more on its way.
    fn joined(&mut self, link: LinkId) {
        let _ = link;
    }

    /// Answers a first message; `open` says whether the link begins.
    fn answer(&mut self, link: LinkId, bytes: &[u8], open: bool);

    /// Sends a datagram, now or at the next flush.
    fn send_datagram(&mut self, link: LinkId, bytes: &[u8]);

    /// Sends bytes on a lane, now or at the next flush.
    fn send_stream(&mut self, link: LinkId, lane: LaneId, bytes: &[u8]);

    /// Says something in a raw WebSocket; nobody hears it where there are none.
    fn say(&mut self, link: LinkId, words: RawMessage) {
        let _ = (link, words);
    }

    /// Ends a link or a raw WebSocket after what has been sent on it; without a word where nothing has been answered yet.
    fn drop_link(&mut self, link: LinkId);

    /// Sends what has been gathered.
    fn flush(&mut self) {}

    /// Ready when the last words of dropped links are out.
    fn poll_finished(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// The figures so far.
    fn stats(&self) -> EndpointStats {
        EndpointStats::default()
    }
}
