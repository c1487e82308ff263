//! Reliable, ordered streams over datagrams: the sender keeps unacknowledged bytes, the receiver keeps bytes that came
//! too early. One stream for each channel, so that a lost chunk never holds up a line of chat.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use crate::assembly::{Assembly, KEEP_CAPACITY, put_stream_message};
use crate::channel::MAX_ORDERED_MESSAGE;
use crate::codec::{Malformed, varint_len};
use crate::ranges::Ranges;

/// How far ahead of the contiguous bytes the other side may send. Bounds the early bytes that have to be buffered.
pub const STREAM_WINDOW: u64 = 1 << 20;

/// The most separate early pieces; pieces that follow each other count as one. A sender with more gaps is refused.
pub const MAX_EARLY_PIECES: usize = 2_048;

/// The most bytes queued on one channel: two of the longest messages, with their lengths. Beyond it the caller gets an
/// error.
pub const MAX_QUEUED: usize = 2 * (MAX_ORDERED_MESSAGE + varint_len(MAX_ORDERED_MESSAGE as u64));

/// The sending end of one channel's stream.
#[derive(Clone, Debug, Default)]
pub struct StreamOut {
    /// The stream from `base` on.
    bytes: VecDeque<u8>,
    /// Everything before this offset has been acknowledged.
    base: u64,
    /// Everything from this offset on has never been sent.
    unsent: u64,
    /// The acknowledged bytes beyond `base`.
    acked: Ranges,
    /// The bytes that were lost and have to be sent again.
    lost: Ranges,
}

impl StreamOut {
    /// Queues a message; false if the queue is full.
    #[must_use]
    pub fn push(&mut self, message: &[u8]) -> bool {
        let len = varint_len(message.len() as u64) + message.len();
        let fits = self.bytes.len() + len <= MAX_QUEUED;
        if fits {
            put_stream_message(&mut self.bytes, message);
        }
        fits
    }

    /// Whether there is anything to send now.
    pub fn is_ready(&self) -> bool {
        !self.lost.is_empty() || self.unsent < self.limit()
    }

    /// Whether everything has been acknowledged.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes queued or on their way.
    pub fn queued(&self) -> usize {
        self.bytes.len()
    }

    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    fn limit(&self) -> u64 {
        self.end().min(self.base + STREAM_WINDOW)
    }

    /// Picks the next piece of at most `max` bytes: lost ones first. It counts as sent.
    pub fn next_piece(&mut self, max: usize) -> Option<Range<u64>> {
        let piece = match self.lost.first() {
            Some(lost) => lost.start..lost.end.min(lost.start + max as u64),
            None => self.unsent..self.limit().min(self.unsent + max as u64),
        };
        if piece.is_empty() {
            return None;
        }
        self.lost.remove(piece.clone());
        self.unsent = self.unsent.max(piece.end);
        Some(piece)
    }

    /// Appends the bytes of a piece.
    pub fn put_piece(&self, out: &mut Vec<u8>, piece: Range<u64>) {
        let (from, to) = ((piece.start - self.base) as usize, (piece.end - self.base) as usize);
        let (front, back) = self.bytes.as_slices();
        out.extend_from_slice(&front[from.min(front.len())..to.min(front.len())]);
        out.extend_from_slice(&back[from.saturating_sub(front.len())..to.saturating_sub(front.len())]);
    }

    /// A piece has arrived on the other side.
    pub fn on_acked(&mut self, piece: Range<u64>) {
        self.lost.remove(piece.clone());
        self.acked.insert(piece.start.max(self.base)..piece.end.max(self.base));
        while let Some(first) = self.acked.first().filter(|first| first.start <= self.base) {
            self.bytes.drain(..(first.end - self.base) as usize);
            self.base = first.end;
            self.acked.remove(first);
        }
        if self.bytes.is_empty() && self.bytes.capacity() > KEEP_CAPACITY {
            self.bytes = VecDeque::new();
        }
    }

    /// A piece is probably lost: its unacknowledged bytes are sent again.
    pub fn on_lost(&mut self, piece: Range<u64>) {
        let mut rest = piece.start.max(self.base)..piece.end.max(self.base);
        while let Some(gap) = self.acked.first_gap(rest.clone()) {
            rest.start = gap.end;
            self.lost.insert(gap);
        }
    }
}

/// The receiving end of one channel's stream.
#[derive(Clone, Debug, Default)]
pub struct StreamIn {
    assembly: Assembly,
    /// The number of contiguous bytes that have arrived.
    arrived: u64,
    /// The bytes that came too early, in order of arrival.
    kept: Vec<u8>,
    /// The place of each run of them: sorted, without overlap.
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    offset: u64,
    /// Its offset in `kept`, which never grows beyond a few windows.
    at: u32,
    len: u32,
}

impl Piece {
    const fn end(&self) -> u64 {
        self.offset + self.len as u64
    }

    fn bytes<'a>(&self, kept: &'a [u8]) -> &'a [u8] {
        &kept[self.at as usize..][..self.len as usize]
    }
}

const BEYOND: Malformed = Malformed::Forbidden("a stream is sent at most 1 MiB beyond what has arrived");
const TORN: Malformed = Malformed::Forbidden("what has arrived of a stream has at most 2048 gaps");

impl StreamIn {
    /// Handles a piece of the stream. Repeats are dropped, early ones kept.
    pub fn on_piece(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Malformed> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(BEYOND)?;
        if end > self.arrived + STREAM_WINDOW {
            return Err(BEYOND);
        }
        if offset > self.arrived {
            return self.keep(offset, bytes);
        }
        let skip = (self.arrived - offset) as usize;
        if let Some(fresh) = bytes.get(skip..).filter(|fresh| !fresh.is_empty()) {
            self.arrived = end;
            self.assembly.push(fresh)?;
            self.release()?;
        }
        Ok(())
    }

    /// Keeps the new bytes of an early piece.
    fn keep(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Malformed> {
        let (mut start, end) = (offset, offset + bytes.len() as u64);
        let mut place = self.pieces.partition_point(|held| held.end() <= start);
        while start < end {
            let held = self.pieces.get(place).copied();
            let gap_end = held.map_or(end, |held| held.offset.min(end));
            if start < gap_end {
                let fresh = &bytes[(start - offset) as usize..(gap_end - offset) as usize];
                place = self.insert(place, start, fresh)?;
            }
            start = held.map_or(end, |held| held.end());
            place += 1;
        }
        Ok(())
    }

    /// Inserts a piece before the one at `place`, or extends the one before that. Returns the place after it.
    fn insert(&mut self, place: usize, offset: u64, fresh: &[u8]) -> Result<usize, Malformed> {
        let (at, len) = (self.kept.len() as u32, fresh.len() as u32);
        let is_next = |held: &Piece| held.end() == offset && held.at + held.len == at;
        let full = self.pieces.len() == MAX_EARLY_PIECES;
        let place = match self.pieces[..place].last_mut() {
            Some(before) if is_next(before) => {
                before.len += len;
                place
            }
            _ if full => return Err(TORN),
            _ => {
                self.pieces.insert(place, Piece { offset, at, len });
                place + 1
            }
        };
        self.kept.extend_from_slice(fresh);
        Ok(place)
    }

    /// Moves early bytes that are contiguous now into the assembly.
    fn release(&mut self) -> Result<(), Malformed> {
        let mut done = 0;
        for piece in &self.pieces {
            if piece.offset > self.arrived {
                break;
            }
            done += 1;
            // An in-order piece may overlap the kept bytes.
            let skip = ((self.arrived - piece.offset) as usize).min(piece.len as usize);
            self.assembly.push(&piece.bytes(&self.kept)[skip..])?;
            self.arrived = self.arrived.max(piece.end());
        }
        if done > 0 {
            self.pieces.drain(..done);
            self.compact();
        }
        Ok(())
    }

    /// Frees the kept bytes that have been released, once they are most of it.
    fn compact(&mut self) {
        let live: usize = self.pieces.iter().map(|piece| piece.len as usize).sum();
        if live == 0 {
            self.kept.clear();
            if self.kept.capacity() > KEEP_CAPACITY {
                self.kept = Vec::new();
            }
        } else if self.kept.len() > 2 * live + KEEP_CAPACITY {
            self.pieces.sort_unstable_by_key(|piece| piece.at);
            let mut to = 0;
            for piece in &mut self.pieces {
                let from = piece.at as usize;
                self.kept.copy_within(from..from + piece.len as usize, to);
                piece.at = to as u32;
                to += piece.len as usize;
            }
            self.kept.truncate(to);
            self.pieces.sort_unstable_by_key(|piece| piece.offset);
        }
    }

    /// Moves the next whole message into `out`.
    pub fn pop(&mut self, out: &mut Vec<u8>) -> Result<bool, Malformed> {
        self.assembly.pop(out)
    }

    /// The number of bytes held: of messages that are incomplete or not taken, and those that came too early.
    pub fn held(&self) -> usize {
        self.assembly.held() + self.kept.len() + self.pieces.len() * size_of::<Piece>()
    }

    /// Takes the next bytes of a stream that a carrier already keeps in order.
    pub fn on_next(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.arrived += bytes.len() as u64;
        self.assembly.push(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;
    use sametick_sim::Rng;

    #[test]
    fn a_piece_beyond_the_window_is_refused_without_keeping_it() {
        let mut stream = StreamIn::default();
        assert_eq!(stream.on_piece(STREAM_WINDOW, &[0]), Err(BEYOND));
        assert_eq!(stream.on_piece(u64::MAX, &[0]), Err(BEYOND));
        assert_eq!(stream.on_piece(STREAM_WINDOW - 1, &[0]), Ok(()));
        assert!(stream.kept.capacity() <= 64);
    }

    #[test]
    fn pieces_that_follow_each_other_count_as_one() {
        let mut stream = StreamIn::default();
        (1..STREAM_WINDOW / 64).for_each(|n| stream.on_piece(n * 64, &[0; 64]).unwrap());
        assert_eq!(stream.pieces.len(), 1);
        let torn = |stream: &mut StreamIn, n: usize| stream.on_piece(2 * n as u64, &[0]);
        let mut stream = StreamIn::default();
        (1..=MAX_EARLY_PIECES).for_each(|n| torn(&mut stream, n).unwrap());
        assert_eq!(torn(&mut stream, MAX_EARLY_PIECES + 1), Err(TORN));
    }

    #[test]
    fn kept_bytes_are_freed_while_others_stay() {
        let mut stream = StreamIn::default();
        // The last byte of the window stays early while everything before it arrives, piece by piece.
        let mut message = vec![];
        put_stream_message(&mut message, &vec![7; 600_000]);
        let end = message.len() as u64;
        stream.on_piece(end + 100, &[9]).unwrap();
        for (number, pair) in message.chunks(2_000).enumerate() {
            let (first, second) = pair.split_at(pair.len() / 2);
            let offset = 2_000 * number as u64;
            stream.on_piece(offset + first.len() as u64, second).unwrap();
            stream.on_piece(offset, first).unwrap();
        }
        assert!(stream.kept.len() <= 2 * KEEP_CAPACITY, "{}", stream.kept.len());
        let mut out = vec![];
        assert_eq!(stream.pop(&mut out), Ok(true));
        assert_eq!(out, vec![7; 600_000]);
        assert_eq!(stream.pieces.len(), 1);
        assert_eq!(stream.pieces[0].bytes(&stream.kept), [9]);
    }

    proptest! {
        #[test]
        fn every_message_arrives_once_and_in_order(seed: u64, count in 1usize..40, piece in 1usize..400) {
            let mut rng = Rng::new(seed);
            let messages: Vec<Vec<u8>> = (0..count)
                .map(|_| (0..rng.below(600)).map(|_| rng.next_u64() as u8).collect())
                .collect();
            let (mut sender, mut receiver) = (StreamOut::default(), StreamIn::default());
            messages.iter().for_each(|message| assert!(sender.push(message)));
            let (mut flying, mut out, mut got) = (vec![], vec![], vec![]);
            while !sender.is_empty() {
                while let Some(range) = sender.next_piece(16 + rng.below(piece as u64) as usize) {
                    let mut bytes = vec![];
                    sender.put_piece(&mut bytes, range.clone());
                    flying.push((range, bytes));
                }
                // Any order, some lost, some reported lost but late, some duplicated.
                let (range, bytes) = flying.swap_remove(rng.below(flying.len() as u64) as usize);
                match rng.below(4) {
                    0 => sender.on_lost(range),
                    1 => {
                        receiver.on_piece(range.start, &bytes).unwrap();
                        sender.on_lost(range);
                    }
                    _ => {
                        receiver.on_piece(range.start, &bytes).unwrap();
                        receiver.on_piece(range.start, &bytes).unwrap();
                        sender.on_acked(range);
                    }
                }
                while receiver.pop(&mut out).unwrap() {
                    got.push(out.clone());
                }
            }
            prop_assert_eq!(got, messages);
            prop_assert!(receiver.pieces.is_empty() && receiver.kept.is_empty());
        }
    }
}
