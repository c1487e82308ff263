//! The end of a link: which side ended it, and its last message.

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

/// Regular end: a player leaves, or a server stops and will be back.
pub const LEAVING: u8 = 0;

/// The client must not reconnect by itself; the text gives the reason.
pub const THROWN_OUT: u8 = 1;

/// A limit was exceeded; the client may reconnect.
pub const OVER_A_LIMIT: u8 = 2;

/// Why a link has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// We closed it.
    Here,
    /// The other side closed it, for this reason.
    There(Reason),
    /// Nothing was heard for [`TIME_OUT_US`](crate::link::TIME_OUT_US).
    TimedOut,
    /// The other side does not speak the protocol.
    Violation(Malformed),
}

/// The reason that a side gives when it closes a link.
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

/// The last packet of a link that has ended.
#[derive(Clone, Debug, Default)]
pub(crate) enum Last {
    #[default]
    Nothing,
    /// An ack, so that the other side need not repeat its close.
    Ack,
    /// The rule that the other side has broken.
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
