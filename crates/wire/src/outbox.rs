//! A state machine's outgoing messages in one buffer: a message to many is written once, and nothing is allocated once
//! the buffer has grown to its usual size.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// A larger buffer, after a rare large message, is released.
const USUAL_BYTES: usize = 64 << 10;

/// Outgoing bytes, each with a tag that names the destination, and entries without bytes in between.
#[derive(Clone, Debug)]
pub struct Outbox<T> {
    entries: VecDeque<(T, Range<usize>)>,
    bytes: Vec<u8>,
    last: Range<usize>,
}

impl<T> Default for Outbox<T> {
    fn default() -> Outbox<T> {
        Outbox { entries: VecDeque::new(), bytes: Vec::new(), last: 0..0 }
    }
}

impl<T> Outbox<T> {
    /// Adds bytes, which `write` appends to its argument.
    pub fn push(&mut self, tag: T, write: impl FnOnce(&mut Vec<u8>)) {
        self.write(write);
        self.push_again(tag);
    }

    /// Writes bytes without a destination yet. Returns their number.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.last = start..self.bytes.len();
        self.last.len()
    }

    /// Adds the bytes that were written last once more.
    pub fn push_again(&mut self, tag: T) {
        self.entries.push_back((tag, self.last.clone()));
    }

    /// Removes the bytes that were written last, if they have no destination.
    pub fn take_back(&mut self) {
        self.bytes.truncate(self.last.start);
        self.last = 0..0;
    }

    /// Adds an entry without bytes.
    pub fn push_bare(&mut self, tag: T) {
        self.entries.push_back((tag, 0..0));
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes the oldest entry; its bytes replace the contents of `buf`.
    pub fn pop(&mut self, buf: &mut Vec<u8>) -> Option<T> {
        let (tag, range) = self.entries.pop_front()?;
        buf.clear();
        buf.extend_from_slice(&self.bytes[range]);
        if self.entries.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(USUAL_BYTES);
            self.last = 0..0;
        }
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_in_order_and_shared_bytes_are_written_once() {
        let (mut outbox, mut buf) = (Outbox::default(), Vec::new());
        outbox.push(1, |out| out.extend(b"one"));
        outbox.push_again(2);
        outbox.push_bare(3);
        assert_eq!(outbox.write(|out| out.extend(b"never")), 5);
        outbox.take_back();
        outbox.push(4, |out| out.extend(b"four"));
        assert_eq!(outbox.bytes.len(), 7);
        let mut popped = Vec::new();
        while let Some(tag) = outbox.pop(&mut buf) {
            popped.push((tag, buf.clone()));
        }
        let expected: [(i32, &[u8]); 4] = [(1, b"one"), (2, b"one"), (3, b""), (4, b"four")];
        assert!(popped.iter().map(|(tag, bytes)| (*tag, &bytes[..])).eq(expected));
        assert!(outbox.bytes.is_empty());
    }
}
