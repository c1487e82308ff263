//! Splits a byte stream into messages. Its memory grows with the bytes received, never with a declared length.

use alloc::vec::Vec;

use crate::channel::MAX_ORDERED_MESSAGE;
use crate::codec::{MAX_VARINT, Malformed, Reader, put_varint};

/// An empty buffer larger than this gives its memory back, so that one large message does not cost for ever.
pub const KEEP_CAPACITY: usize = 64 << 10;

/// Appends a message to a stream: its length, then its bytes.
pub fn put_stream_message<'a>(stream: &mut (impl Extend<u8> + Extend<&'a u8>), message: &'a [u8]) {
    put_varint(stream, message.len() as u64);
    stream.extend(message);
}

/// The receiving end of a stream of messages.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    bytes: Vec<u8>,
    /// The number of bytes of `bytes` that have been handed out.
    taken: usize,
}

impl Assembly {
    /// Takes the next bytes of the stream. Refuses a message longer than [`MAX_ORDERED_MESSAGE`] as soon as its
    /// length is known.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        // A long message grows by an eighth at a time: doubling would hold twice as much as has come.
        if self.bytes.len() + bytes.len() > self.bytes.capacity().max(KEEP_CAPACITY) {
            self.bytes.reserve_exact(bytes.len() + self.bytes.len() / 8);
        }
        self.bytes.extend_from_slice(bytes);
        self.next_len().map(drop)
    }

    /// The number of bytes that wait to become a whole message, or to be taken.
    pub fn held(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Moves the next whole message into `out`.
    pub fn pop(&mut self, out: &mut Vec<u8>) -> Result<bool, Malformed> {
        let Some((head, len)) = self.next_len()? else { return Ok(false) };
        let start = self.taken + head;
        let Some(message) = self.bytes.get(start..start + len) else { return Ok(false) };
        out.clear();
        out.extend_from_slice(message);
        self.taken = start + len;
        self.tidy();
        Ok(true)
    }

    /// The sizes of the head and of the next message, once its length has arrived.
    fn next_len(&self) -> Result<Option<(usize, usize)>, Malformed> {
        let rest = &self.bytes[self.taken..];
        let mut reader = Reader::new(rest);
        match reader.length(MAX_ORDERED_MESSAGE) {
            Ok(len) => Ok(Some((rest.len() - reader.rest().len(), len))),
            Err(Malformed::Truncated) if rest.len() < MAX_VARINT => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn tidy(&mut self) {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
            if self.bytes.capacity() > KEEP_CAPACITY {
                self.bytes = Vec::new();
            }
        } else if self.taken > KEEP_CAPACITY {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn golden_stream() {
        let mut stream = vec![];
        put_stream_message(&mut stream, b"one");
        put_stream_message(&mut stream, b"");
        assert_eq!(stream, b"\x03one\x00");
    }

    #[test]
    fn a_declared_length_costs_nothing() {
        let mut assembly = Assembly::default();
        let mut head = vec![];
        put_varint(&mut head, MAX_ORDERED_MESSAGE as u64);
        assembly.push(&head).unwrap();
        assert!(assembly.bytes.capacity() < 64);
        let mut head = vec![];
        put_varint(&mut head, MAX_ORDERED_MESSAGE as u64 + 1);
        assert_eq!(Assembly::default().push(&head), Err(Malformed::TooLong));
    }

    proptest! {
        #[test]
        fn messages_come_out_whole_however_the_stream_is_cut(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
            cuts in prop::collection::vec(1usize..500, 1..20),
        ) {
            let mut stream = vec![];
            messages.iter().for_each(|message| put_stream_message(&mut stream, message));
            let (mut assembly, mut out, mut got) = (Assembly::default(), vec![], vec![]);
            let (mut rest, mut cuts) = (&stream[..], cuts.into_iter().cycle());
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                assembly.push(piece).unwrap();
                while assembly.pop(&mut out).unwrap() {
                    got.push(out.clone());
                }
                rest = tail;
            }
            prop_assert_eq!(got, messages);
            prop_assert!(assembly.bytes.is_empty());
        }
    }
}
