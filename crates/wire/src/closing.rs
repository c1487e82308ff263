//! How a link ends: who ended it, and the last that one side says to the other.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::Time;

use crate::codec::Malformed;
use crate::datagrams::Datagrams;
use crate::frame::MAX_CLOSE_TEXT;
use crate::lanes::Lane;
use crate::link::{LaneId, Output};
use crate::queue::Queue;
use crate::streams::Streams;

/// One side is done, and all is well: a player leaves, a server stops and will be back.
pub const LEAVING: u8 = 0;

/// Whoever owns the link is not to come back by itself; the text says why.
pub const THROWN_OUT: u8 = 1;

/// A limit was passed; whoever owns the link may come back.
pub const OVER_A_LIMIT: u8 = 2;

/// Why a link has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// We closed it.
    Here,
    /// The other side closed it, and said why.
    There(Reason),
    /// Nothing was heard for [`TIME_OUT_US`](crate::link::TIME_OUT_US).
    TimedOut,
    /// The other side does not speak the protocol.
    Violation(Malformed),
}

/// What a side says when it closes a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// For programs: [`LEAVING`], [`THROWN_OUT`] or [`OVER_A_LIMIT`].
    pub code: u8,
    /// For people; at most 200 bytes.
    pub text: String,
}

/// A close that is being sent.
#[derive(Clone, Debug)]
pub(crate) struct Closing {
    pub code: u8,
    pub text: String,
    pub tries: u32,
    pub next_at: Time,
}

impl Closing {
    pub fn new(now: Time, code: u8, text: &str) -> Closing {
        let end = (0..=MAX_CLOSE_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        Closing { code, text: text[..end.unwrap_or(0)].into(), tries: 0, next_at: now }
    }
}

/// What a link that has ended still sends, once.
#[derive(Clone, Debug, Default)]
pub(crate) enum Last {
    #[default]
    Nothing,
    /// An ack, so that the other side need not repeat its close.
    Ack,
    /// Which rule the other side has broken.
    RawMessage(Closing),
}

/// Writes a close: on the first lane if there is one, otherwise as a datagram.
pub(crate) fn put_close(
    ways: (Option<&mut Lane>, Option<&mut Datagrams>),
    now: Time,
    outbox: &mut Queue,
    streams: &mut Streams,
    closing: &Closing,
    out: &mut Vec<u8>,
) -> Option<Output> {
    match ways {
        (Some(lane), _) => {
            lane.poll(now, outbox, streams, Some(closing), out);
            Some(Output::Stream(LaneId(0)))
        }
        (None, Some(datagrams)) => {
            datagrams.poll(now, outbox, streams, Some(closing), out);
            Some(Output::Datagram)
        }
        (None, None) => None,
    }
}
