//! The reliable streams of a link, one for each channel, both ways.

use alloc::string::String;
use alloc::vec::Vec;

use crate::channel::{Channel, ORDERED_CHANNELS};
use crate::closing::Reason;
use crate::codec::Malformed;
use crate::ordered::{StreamIn, StreamOut};
use crate::sent::SentPiece;

/// The reliable streams of a link, and the close that arrived in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    out: [StreamOut; ORDERED_CHANNELS],
    incoming: [StreamIn; ORDERED_CHANNELS],
    /// Discards everything that arrives.
    is_deaf: bool,
    closed: Option<Reason>,
}

impl Streams {
    pub fn out(&mut self, channel: Channel) -> &mut StreamOut {
        &mut self.out[usize::from(channel.number())]
    }

    fn incoming(&mut self, channel: Channel) -> &mut StreamIn {
        &mut self.incoming[usize::from(channel.number())]
    }

    /// Moves the next whole message of a channel into `out`.
    pub fn pop(&mut self, channel: Channel, out: &mut Vec<u8>) -> Result<bool, Malformed> {
        self.incoming(channel).pop(out)
    }

    /// Bytes that have arrived and are not taken.
    pub fn held(&self) -> usize {
        self.incoming.iter().map(StreamIn::held).sum()
    }

    /// Handles a piece of a stream, at its place.
    pub fn on_piece(&mut self, channel: Channel, offset: u64, bytes: &[u8]) -> Result<(), Malformed> {
        if self.is_deaf { Ok(()) } else { self.incoming(channel).on_piece(offset, bytes) }
    }

    /// Handles the next bytes of a stream.
    pub fn on_next(&mut self, channel: Channel, bytes: &[u8]) -> Result<(), Malformed> {
        if self.is_deaf { Ok(()) } else { self.incoming(channel).on_next(bytes) }
    }

    /// Drops everything that has arrived and that arrives from now on.
    pub fn deafen(&mut self) {
        self.is_deaf = true;
        self.incoming = Default::default();
    }

    pub fn is_channel_ready(&self, channel: Channel) -> bool {
        self.out[usize::from(channel.number())].is_ready()
    }

    pub fn is_ready(&self) -> bool {
        self.out.iter().any(StreamOut::is_ready)
    }

    pub fn on_acked(&mut self, piece: &SentPiece) {
        self.out(piece.channel()).on_acked(piece.range());
    }

    pub fn on_lost(&mut self, piece: &SentPiece) {
        self.out(piece.channel()).on_lost(piece.range());
    }

    pub fn closed_by_peer(&mut self, code: u8, text: &[u8]) {
        let text = String::from_utf8_lossy(text).into_owned();
        self.closed = Some(Reason { code, text });
    }

    /// Whether everything that arrives is discarded.
    pub fn is_deaf(&self) -> bool {
        self.is_deaf
    }

    /// The close that has arrived, once.
    pub fn take_close(&mut self) -> Option<Reason> {
        self.closed.take()
    }

    /// Whether everything has been acknowledged.
    pub fn is_flushed(&self) -> bool {
        self.out.iter().all(StreamOut::is_empty)
    }

    /// Bytes that wait on a channel, including those in flight; none if the channel is not reliable.
    pub fn queued(&self, channel: Channel) -> Option<usize> {
        self.out.get(usize::from(channel.number())).map(StreamOut::queued)
    }
}
