//! The redundant block: consecutive messages in few bytes, since they are repeated in every packet. It is the last
//! frame of its packet, so its length is implied.
//!
//! ```text
//! 1 e ccc nnn                        c messages, 1 to 7; n: low 3 bits of the number after the last
//! 1 e 000 nnn · ccccc nnn            c + 7 messages, 8 to 38; 6 bits of that number, low ones first
//! 1 e 000 000 · 0 · count · number   1 to 64 messages, 16 bits of that number
//! lengths                            if e is 0: 4 bits each but the last, low ones first; 15: 15 and a varint, after them all
//! messages                           if e is 1: all are as long as the others
//! ```

use alloc::vec::Vec;

use crate::channel::MAX_REDUNDANT_MESSAGE;
use crate::codec::{Malformed, Reader, put_varint, varint_len};
use crate::packet::widen;

/// The most messages of a redundant block: more than a second of inputs.
pub const MAX_REDUNDANT_COUNT: usize = 64;

/// The flags in the frame's first byte: that it is a block, and that its messages are equally long.
pub(crate) const BLOCK: u8 = 0x80;
const EQUAL: u8 = 0x40;

const COUNT_SHIFT: u32 = 3;
const MAX_SHORT: usize = 7;
const MAX_MIDDLE: usize = 38;

/// A length of four bits that continues in a varint.
const LONG: usize = 15;

/// The number after the newest message of a block, in as many bits as its receiver needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// 3 bits, for up to 7 messages that follow what the receiver has.
    Short(u8),
    /// 6 bits, for 8 to 38 of them.
    Middle(u8),
    /// 16 bits, for messages anywhere near.
    Long(u16),
}

impl Until {
    /// The number after the last of `count` messages. `known` means that the receiver has everything before the first:
    /// then it lacks `count` at most, and few bits suffice.
    pub const fn new(number: u64, count: usize, known: bool) -> Until {
        match count {
            1..=MAX_SHORT if known => Until::Short(number as u8 & 7),
            8..=MAX_MIDDLE if known => Until::Middle(number as u8 & 63),
            _ => Until::Long(number as u16),
        }
    }

    /// The whole number, for a receiver that lacks `next` and has received every earlier packet that will ever arrive.
    fn widen(self, next: u64, count: usize) -> Option<u64> {
        let (low, mask) = match self {
            Until::Short(low) => (low, 7),
            Until::Middle(low) => (low, 63),
            Until::Long(low) => return Some(widen(low, next)),
        };
        let ahead = u64::from(low).wrapping_sub(next) & mask;
        (ahead <= count as u64).then(|| next + ahead)
    }

    const fn len(self) -> usize {
        match self {
            Until::Short(_) => 1,
            Until::Middle(_) => 2,
            Until::Long(_) => 5,
        }
    }
}

/// The messages of a redundant block, validated as a whole before the first one is handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages<'a> {
    until: Until,
    count: u8,
    equal: bool,
    /// The lengths in four bits each, and the rest of the long ones.
    lens: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Messages<'a> {
    /// Reads what follows the first byte, to the end.
    pub(crate) fn read(head: u8, reader: &mut Reader<'a>) -> Result<Messages<'a>, Malformed> {
        let (until, count) = read_head(head, reader)?;
        let equal = head & EQUAL != 0;
        if equal {
            let bytes = reader.take(reader.rest().len())?;
            if count < 2 || !bytes.len().is_multiple_of(count) || bytes.len() / count > MAX_REDUNDANT_MESSAGE
            {
                return Err(EQUAL_RUN);
            }
            return Ok(Messages { until, count: count as u8, equal, lens: &[], bytes });
        }
        let start = reader.rest();
        let nibbles = reader.take((count - 1).div_ceil(2))?;
        if count.is_multiple_of(2) && nibbles.last().is_some_and(|last| last >> 4 != 0) {
            return Err(SPARE_BITS);
        }
        let (mut all, mut longest) = (0, 0);
        for at in 0..count - 1 {
            let len = read_len(nibbles, at, reader)?;
            (all, longest) = (all + len, len.max(longest));
        }
        let lens = &start[..start.len() - reader.rest().len()];
        let bytes = reader.take(reader.rest().len())?;
        let last = bytes.len().checked_sub(all).ok_or(Malformed::Truncated)?;
        if last.max(longest) > MAX_REDUNDANT_MESSAGE {
            return Err(Malformed::TooLong);
        }
        Ok(Messages { until, count: count as u8, equal, lens, bytes })
    }

    /// The number of messages.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Always false: a block has at least one message.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of the first message, for a receiver whose first missing message is `next`.
    pub fn first(&self, next: u64) -> Result<u64, Malformed> {
        let until = self.until.widen(next, self.len());
        until
            .and_then(|until| until.checked_sub(self.len() as u64))
            .ok_or(Malformed::Forbidden("a message has a number from 0 on"))
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let Messages { count, equal, lens, bytes, .. } = *self;
        let count = usize::from(count);
        let (nibbles, longs) = lens.split_at(if equal { 0 } else { (count - 1).div_ceil(2) });
        let (mut longs, mut bytes) = (Reader::new(longs), Reader::new(bytes));
        let each = bytes.rest().len() / count;
        // Checked by `read`: no error is left.
        (0..count).map_while(move |at| {
            let len = match at + 1 == count {
                true => bytes.rest().len(),
                false if equal => each,
                false => read_len(nibbles, at, &mut longs).ok()?,
            };
            bytes.take(len).ok()
        })
    }

    /// Appends the block as it was read.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_head(out, self.until, self.len(), self.equal);
        out.extend_from_slice(self.lens);
        out.extend_from_slice(self.bytes);
    }
}

const SPARE_BITS: Malformed = Malformed::Forbidden("bits that mean nothing are zero");
const EQUAL_RUN: Malformed =
    Malformed::Forbidden("a run of equally long messages has two or more, of at most 400 bytes");

fn read_head(head: u8, reader: &mut Reader<'_>) -> Result<(Until, usize), Malformed> {
    let (low, count) = (head & 7, usize::from(head >> COUNT_SHIFT & 7));
    if count > 0 {
        return Ok((Until::Short(low), count));
    }
    let more = reader.u8()?;
    let count = usize::from(more >> COUNT_SHIFT);
    if count > 0 {
        return Ok((Until::Middle((more & 7) << 3 | low), MAX_SHORT + count));
    }
    if more | low != 0 {
        return Err(SPARE_BITS);
    }
    let count = usize::from(reader.u8()?);
    if !(1..=MAX_REDUNDANT_COUNT).contains(&count) {
        return Err(Malformed::TooLong);
    }
    Ok((Until::Long(reader.u16()?), count))
}

/// The length of the message at an index; the rest of a long one is read from `longs`.
fn read_len(nibbles: &[u8], at: usize, longs: &mut Reader<'_>) -> Result<usize, Malformed> {
    let byte = nibbles.get(at / 2).ok_or(Malformed::Truncated)?;
    match usize::from(byte >> (4 * (at % 2)) & 15) {
        LONG => Ok(LONG + longs.length(MAX_REDUNDANT_MESSAGE - LONG)?),
        len => Ok(len),
    }
}

fn put_head(out: &mut Vec<u8>, until: Until, count: usize, equal: bool) {
    let head = BLOCK | if equal { EQUAL } else { 0 };
    match until {
        Until::Short(low) => out.push(head | (count as u8) << COUNT_SHIFT | low),
        Until::Middle(low) => {
            out.push(head | low & 7);
            out.push(((count - MAX_SHORT) as u8) << COUNT_SHIFT | low >> 3);
        }
        Until::Long(low) => {
            let [a, b] = low.to_le_bytes();
            out.extend_from_slice(&[head, 0, count as u8, a, b]);
        }
    }
}

/// Whether there are several, all of one length.
fn are_equal(mut lens: impl Iterator<Item = usize>) -> bool {
    let Some(first) = lens.next() else { return false };
    let mut several = false;
    lens.all(|len| {
        several = true;
        len == first
    }) && several
}

/// The length of a block with messages of these lengths.
pub fn redundant_len(until: Until, lens: impl ExactSizeIterator<Item = usize> + Clone) -> usize {
    let bytes: usize = lens.clone().sum();
    if are_equal(lens.clone()) {
        return until.len() + bytes;
    }
    let before_last = lens.len().saturating_sub(1);
    let longs = lens.take(before_last).filter(|len| *len >= LONG);
    let longs: usize = longs.map(|len| varint_len((len - LONG) as u64)).sum();
    until.len() + before_last.div_ceil(2) + longs + bytes
}

/// Appends a block with these messages, one at least; `until` must have been made for as many. Nothing may follow it in
/// its packet.
pub fn put_redundant<'a>(
    out: &mut Vec<u8>,
    until: Until,
    messages: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
) {
    let count = messages.len();
    assert!(
        (1..=MAX_REDUNDANT_COUNT).contains(&count),
        "a block carries 1 to {MAX_REDUNDANT_COUNT} messages"
    );
    let equal = are_equal(messages.clone().map(<[u8]>::len));
    put_head(out, until, count, equal);
    if !equal {
        put_lens(out, messages.clone().take(count - 1).map(<[u8]>::len));
    }
    messages.for_each(|message| out.extend_from_slice(message));
}

fn put_lens(out: &mut Vec<u8>, lens: impl Iterator<Item = usize> + Clone) {
    for (at, len) in lens.clone().enumerate() {
        let nibble = len.min(LONG) as u8;
        match out.last_mut().filter(|_| at % 2 == 1) {
            Some(last) => *last |= nibble << 4,
            None => out.push(nibble),
        }
    }
    lens.filter(|len| *len >= LONG).for_each(|len| put_varint(out, (len - LONG) as u64));
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn block(number: u64, known: bool, messages: &[&[u8]]) -> Vec<u8> {
        let mut out = vec![];
        let until = Until::new(number, messages.len(), known);
        put_redundant(&mut out, until, messages.iter().copied());
        out
    }

    fn read(bytes: &[u8]) -> Result<Messages<'_>, Malformed> {
        let mut reader = Reader::new(bytes);
        let head = reader.u8()?;
        Messages::read(head, &mut reader)
    }

    #[test]
    fn golden_bytes() {
        assert_eq!(block(0x0104, true, &[b"abc"]), b"\x8cabc");
        assert_eq!(block(0x0104, true, &[b"ab", b"cd", b"ef"]), b"\xdcabcdef");
        assert_eq!(block(0x0104, true, &[b"a", b""]), b"\x94\x01a");
        assert_eq!(block(0x0104, true, &[b"a", b"", b"bc", b"d"]), b"\xa4\x01\x02abcd");
        assert_eq!(block(0x0104, true, &[&[7; 16], b"a"])[..3], *b"\x94\x0f\x01");
        assert_eq!(block(0x010c, true, &[&b"a"[..]; 9]), b"\xc4\x11aaaaaaaaa");
        assert_eq!(block(0x0104, false, &[b"a", b""]), b"\x80\x00\x02\x04\x01\x01a");
    }

    #[test]
    fn damaged_blocks_are_refused() {
        for (bytes, error) in [
            (&b"\x80"[..], Malformed::Truncated),
            (b"\x81\x00\x01\x01\x00", SPARE_BITS),
            (b"\x80\x01\x01\x01\x00", SPARE_BITS),
            (b"\x80\x00\x00\x01\x00", Malformed::TooLong),
            (b"\x80\x00\x41\x01\x00", Malformed::TooLong),
            // Equally long, but only one, or not all.
            (b"\xc8a", EQUAL_RUN),
            (b"\xd0abc", EQUAL_RUN),
            // A length where none belongs, and one beyond the end.
            (b"\x90\x11a", SPARE_BITS),
            (b"\x90\x02a", Malformed::Truncated),
        ] {
            assert_eq!(read(bytes), Err(error), "{bytes:02x?}");
        }
        let long = [&[0x88][..], &[0; MAX_REDUNDANT_MESSAGE + 1]].concat();
        assert_eq!(read(&long), Err(Malformed::TooLong));
    }

    fn any_messages() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let any_len =
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..=MAX_REDUNDANT_COUNT);
        let one_len =
            (0usize..40, 1..=MAX_REDUNDANT_COUNT).prop_map(|(len, count)| vec![vec![7; len]; count]);
        prop_oneof![any_len, one_len]
    }

    proptest! {
        #[test]
        fn blocks_round_trip(number in 64u64..1_000_000, known: bool, lacks in 0usize..64, messages in any_messages()) {
            let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            let bytes = block(number, known, &messages);
            let read = read(&bytes).unwrap();
            prop_assert!(read.iter().eq(messages.iter().copied()));
            prop_assert_eq!(read.iter().count(), read.len());
            // However much of it the receiver lacks.
            let next = number - lacks.min(messages.len()) as u64;
            prop_assert_eq!(read.first(next), Ok(number - messages.len() as u64));
            let until = Until::new(number, messages.len(), known);
            prop_assert_eq!(redundant_len(until, messages.iter().map(|message| message.len())), bytes.len());
            let mut again = vec![];
            read.put(&mut again);
            prop_assert_eq!(again, bytes);
        }

        #[test]
        fn what_is_read_is_written_back_the_same(head in BLOCK.., bytes: Vec<u8>) {
            let bytes = [&[head][..], &bytes].concat();
            if let Ok(messages) = read(&bytes) {
                let mut out = vec![];
                messages.put(&mut out);
                prop_assert_eq!(messages.iter().count(), messages.len());
                prop_assert_eq!(messages.iter().map(<[u8]>::len).sum::<usize>(), messages.bytes.len());
                prop_assert_eq!(out, bytes);
            }
        }
    }
}
