//! A buffered stretch of a source, and the frames in it.

use std::io;

use crate::disk::Source;

use super::frame::{CRC_LEN, FrameKind, Head, MAX_HEAD_LEN};

/// Reads a source in stretches.
#[derive(Debug)]
pub(super) struct Window<S> {
    source: S,
    start: u64,
    bytes: Vec<u8>,
    /// The least that is read at once.
    pub(super) stretch: usize,
}

/// What is wrong with a frame.
#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    /// It ends after the end of the log.
    Cut,
    /// It is not a frame, or not the one that was written here.
    Damaged,
}

/// A valid frame.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) kind: FrameKind,
    /// Where the next frame begins.
    pub(super) next: u64,
    pub(super) payload: &'a [u8],
}

impl<S: Source> Window<S> {
    pub(super) fn new(source: S, stretch: usize) -> Window<S> {
        Window { source, start: 0, bytes: Vec::new(), stretch }
    }

    pub(super) fn byte_len(&mut self) -> io::Result<u64> {
        self.source.byte_len()
    }

    /// Up to `len` bytes from `offset` on, fewer at the end. The caller has made sure that `len` is reasonable.
    pub(super) fn bytes(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        let here = offset.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        let at = match here.filter(|&at| at.saturating_add(len) <= self.bytes.len()) {
            Some(at) => at,
            None => {
                self.bytes.resize(len.max(self.stretch), 0);
                let count = self.source.read_at(offset, &mut self.bytes)?;
                self.bytes.truncate(count);
                self.start = offset;
                0
            }
        };
        Ok(&self.bytes[at..self.bytes.len().min(at + len)])
    }

    /// The frame at `offset` of a log that ends at `end`.
    pub(super) fn frame(&mut self, offset: u64, end: u64) -> Result<Frame<'_>, Fault> {
        let left = end.saturating_sub(offset);
        let head_len = usize::try_from(left).map_or(MAX_HEAD_LEN, |left| left.min(MAX_HEAD_LEN));
        let head = self.bytes(offset, head_len).map_err(Fault::Io)?;
        let Some(head) = Head::read(head) else {
            // Less than the shortest frame can only be the beginning of one.
            return Err(if left <= CRC_LEN as u64 { Fault::Cut } else { Fault::Damaged });
        };
        let len = head.frame_len();
        if len as u64 > left {
            return Err(Fault::Cut);
        }
        let frame = self.bytes(offset, len).map_err(Fault::Io)?;
        match head.payload(offset, frame) {
            Some(payload) if frame.len() == len => {
                Ok(Frame { kind: head.kind, next: offset + len as u64, payload })
            }
            _ => Err(Fault::Damaged),
        }
    }
}
