//! Inputs as bytes that only the game understands, delta-coded against the tick before: one bit for an input that
//! repeats, a few for one that changes. Servers and logs know inputs in this form only.

use alloc::vec::Vec;
use core::fmt;

use sametick_sim::Tick;
use sametick_sim::canon::{self, Sink};

use crate::Malformed;
use crate::bits::{BitReader, BitWriter, ReadError};

/// The longest input of one seat in one tick.
pub const MAX_INPUT: usize = 32;

/// The most ticks in one message on the input channel: more than a second.
pub const MAX_RUN: u32 = 64;

const LEN_BITS: u32 = 6;
const RUN_BITS: u32 = 6;

/// Enough that a link times out before a tick number becomes ambiguous, at any rate.
const TICK_BITS: u32 = 13;

/// One seat's input in one tick, as bytes that only the game understands.
#[derive(Clone, Copy)]
pub struct Opaque {
    len: u8,
    bytes: [u8; MAX_INPUT],
}

impl Opaque {
    /// No bytes: the input assumed for a seat before its first one.
    pub const EMPTY: Opaque = Opaque { len: 0, bytes: [0; MAX_INPUT] };

    /// These bytes; none if there are too many.
    pub fn new(bytes: &[u8]) -> Option<Opaque> {
        let mut opaque = Opaque { len: bytes.len() as u8, ..Opaque::EMPTY };
        opaque.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(opaque)
    }

    /// The canonical bytes of a game's input, without allocation.
    ///
    /// # Panics
    /// If they are more than [`MAX_INPUT`], or the input cannot be serialised.
    pub fn of<I: serde::Serialize>(input: &I) -> Opaque {
        let mut opaque = Opaque::EMPTY;
        canon::encode(input, &mut opaque).expect("an input serialises");
        opaque
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The one bit in which two inputs of the same length differ, if it is one.
    fn single_difference(&self, other: &Opaque) -> Option<u32> {
        if self.len != other.len {
            return None;
        }
        let mut found = None;
        for (index, (ours, theirs)) in (0u32..).zip(self.as_bytes().iter().zip(other.as_bytes())) {
            match (ours ^ theirs, found) {
                (0, _) => {}
                (bits, None) if bits.is_power_of_two() => found = Some(index * 8 + bits.trailing_zeros()),
                _ => return None,
            }
        }
        found
    }

    fn toggled(mut self, bit: u32) -> Opaque {
        self.bytes[bit as usize / 8] ^= 1 << (bit % 8);
        self
    }
}

impl Sink for Opaque {
    fn write(&mut self, bytes: &[u8]) {
        let (start, end) = (usize::from(self.len), usize::from(self.len) + bytes.len());
        assert!(end <= MAX_INPUT, "an input has at most {MAX_INPUT} bytes");
        self.bytes[start..end].copy_from_slice(bytes);
        self.len = end as u8;
    }
}

impl PartialEq for Opaque {
    fn eq(&self, other: &Opaque) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Opaque {}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.as_bytes())
    }
}

/// Appends an input, coded against the last one of its seat: `0` the same, `10` changed, `11` none.
pub fn put_input(out: &mut BitWriter<'_>, last: &mut Opaque, input: Option<&Opaque>) {
    match input {
        Some(input) if input == last => out.bool(false),
        Some(input) => {
            out.bits(0b01, 2);
            put_change(out, last, input);
            *last = *input;
        }
        None => out.bits(0b11, 2),
    }
}

/// A toggled bit, or the whole input.
fn put_change(out: &mut BitWriter<'_>, last: &Opaque, input: &Opaque) {
    match last.single_difference(input) {
        Some(bit) => {
            out.bool(true);
            out.ranged(i64::from(bit), 0..=i64::from(last.len) * 8 - 1);
        }
        None => {
            out.bool(false);
            put_whole(out, input);
        }
    }
}

/// Reads what [`put_input`] wrote.
pub fn read_input(reader: &mut BitReader<'_>, last: &mut Opaque) -> Result<Option<Opaque>, ReadError> {
    if !reader.bool()? {
        return Ok(Some(*last));
    }
    if reader.bool()? {
        return Ok(None);
    }
    let input = if reader.bool()? {
        if last.len == 0 {
            return Err(ReadError::OutOfRange);
        }
        last.toggled(reader.ranged(0..=i64::from(last.len) * 8 - 1)? as u32)
    } else {
        read_whole(reader)?
    };
    *last = input;
    Ok(Some(input))
}

/// Appends the whole of an input, independent of the last one.
pub fn put_whole(out: &mut BitWriter<'_>, input: &Opaque) {
    out.bits(u64::from(input.len), LEN_BITS);
    input.as_bytes().iter().for_each(|byte| out.bits(u64::from(*byte), 8));
}

/// Reads what [`put_whole`] wrote.
pub fn read_whole(reader: &mut BitReader<'_>) -> Result<Opaque, ReadError> {
    let len = reader.bits(LEN_BITS)? as usize;
    let mut input = Opaque { len: len as u8, ..Opaque::EMPTY };
    for byte in input.bytes.get_mut(..len).ok_or(ReadError::TooLong)? {
        *byte = reader.bits(8)? as u8;
    }
    Ok(input)
}

/// The tick near `near` whose number ends in these bits.
pub fn widen(low: u32, near: Tick) -> Result<Tick, ReadError> {
    let (span, near) = (1i64 << TICK_BITS, i64::from(near.0));
    let mut tick = near - near.rem_euclid(span) + i64::from(low);
    if tick - near > span / 2 {
        tick -= span;
    } else if near - tick > span / 2 {
        tick += span;
    }
    u32::try_from(tick).map(Tick).map_err(|_| ReadError::OutOfRange)
}

/// The head of a run of ticks: the low bits of the first one's number, and their count.
///
/// # Panics
/// If they are none, or more than [`MAX_RUN`].
pub fn put_head(out: &mut BitWriter<'_>, first: Tick, ticks: u32) {
    assert!((1..=MAX_RUN).contains(&ticks), "a run has 1 to {MAX_RUN} ticks");
    out.bits(u64::from(first.0) & ((1 << TICK_BITS) - 1), TICK_BITS);
    out.bool(ticks > 1);
    if ticks > 1 {
        out.bits(u64::from(ticks - 1), RUN_BITS);
    }
}

/// Reads what [`put_head`] wrote: the first tick, which is near `near`, and the count.
pub fn read_head(reader: &mut BitReader<'_>, near: Tick) -> Result<(Tick, u32), ReadError> {
    let first = widen(reader.bits(TICK_BITS)? as u32, near)?;
    let ticks = if reader.bool()? { reader.bits(RUN_BITS)? as u32 + 1 } else { 1 };
    first.0.checked_add(ticks).ok_or(ReadError::OutOfRange)?;
    Ok((first, ticks))
}

/// The first tick of a message that starts with such a head, for message logs.
pub fn first_tick(bytes: &[u8], near: Tick) -> Option<Tick> {
    read_head(&mut BitReader::new(bytes), near).ok().map(|(first, _)| first)
}

/// A peer's own inputs for consecutive ticks.
pub fn put_inputs<'a>(out: &mut Vec<u8>, first: Tick, inputs: impl ExactSizeIterator<Item = &'a Opaque>) {
    let mut writer = BitWriter::new(out);
    put_head(&mut writer, first, inputs.len() as u32);
    let mut last = Opaque::EMPTY;
    inputs.for_each(|input| put_input(&mut writer, &mut last, Some(input)));
    writer.finish();
}

/// Reads what [`put_inputs`] wrote; ticks are near `near`.
pub fn read_inputs(bytes: &[u8], near: Tick, mut see: impl FnMut(Tick, Opaque)) -> Result<(), Malformed> {
    let mut reader = BitReader::new(bytes);
    let (first, ticks) = read_head(&mut reader, near)?;
    let mut last = Opaque::EMPTY;
    for offset in 0..ticks {
        match read_input(&mut reader, &mut last)? {
            Some(input) => see(first + offset, input),
            None => {
                return Err(Malformed::Forbidden(
                    "a message on the input channel has an input for each of its ticks",
                ));
            }
        }
    }
    reader.finish().map_err(Malformed::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::collection::vec as many;
    use proptest::prelude::*;

    fn opaque() -> impl Strategy<Value = Opaque> {
        many(any::<u8>(), 0..=MAX_INPUT).prop_map(|bytes| Opaque::new(&bytes).unwrap())
    }

    proptest! {
        #[test]
        fn inputs_round_trip(first in 0..u32::MAX - 100, off in -4_000i64..4_000, inputs in many(opaque(), 1..=64)) {
            let near = Tick((i64::from(first) + off).clamp(0, i64::from(u32::MAX)) as u32);
            let (mut bytes, mut got) = (vec![], vec![]);
            put_inputs(&mut bytes, Tick(first), inputs.iter());
            read_inputs(&bytes, near, |tick, input| got.push((tick, input))).unwrap();
            let expected: Vec<_> = (first..).map(Tick).zip(inputs).collect();
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>, near: u32) {
            // Whatever the result is.
            let _ = read_inputs(&bytes, Tick(near), |_, _| ());
        }
    }

    #[test]
    fn golden_bytes() {
        let inputs = [&[0b101][..], &[0b101], &[0b100], &[1, 2]].map(|bytes| Opaque::new(bytes).unwrap());
        let mut bytes = vec![];
        put_inputs(&mut bytes, Tick(8_192 + 300), inputs.iter());
        // 300 in 13 bits, several, 4 in 6; changed, 1 byte; the same; bit 0; changed, 2 bytes.
        assert_eq!(bytes, [44, 225, 144, 160, 64, 17, 33, 64, 0]);
    }
}
