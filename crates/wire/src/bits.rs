//! Bit packing for the hot path: values take as many bits as their range needs, not as many as their type has.
//!
//! The first value written sits in the lowest bits of the first byte (little-endian in bits and bytes), so a packed
//! message reads the same on every platform. Writing a value that does not fit its range is a programming error and
//! panics. Reading handles untrusted bytes and never panics: it never looks past the end, refuses what a writer could
//! not have written, and allocates nothing.
//!
//! ```
//! use sametick_wire::bits::{BitReader, BitWriter};
//!
//! let mut packet = Vec::new();
//! let mut writer = BitWriter::new(&mut packet);
//! writer.bool(true);
//! writer.ranged(-3, -10..=10);
//! writer.varint(300, 7);
//! writer.finish();
//! assert_eq!(packet.len(), 3); // 1 + 5 + 16 bits
//!
//! let mut reader = BitReader::new(&packet);
//! assert!(reader.bool()?);
//! assert_eq!(reader.ranged(-10..=10)?, -3);
//! assert_eq!(reader.varint(7)?, 300);
//! reader.finish()?;
//! # Ok::<(), sametick_wire::bits::ReadError>(())
//! ```

use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

use crate::Malformed;

use crate::quantise::{Quantised, Quaternion};

/// The largest group of a varint. Beyond it, one group nearly holds a `u64` and `bits` is the better choice.
pub const MAX_VARINT_GROUP: u32 = 32;

/// The groups of the length in front of bytes: one group for up to 127, two for a whole packet.
const LENGTH_GROUP: u32 = 7;

/// Why bits could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// They ended in the middle of a value.
    End,
    /// They hold a value no writer would have written: outside its range, or in place of zero padding.
    OutOfRange,
    /// They are longer than allowed: bytes above the limit, a varint with useless groups, data after the last value.
    TooLong,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::End => "the bits end in the middle of a value",
            Self::OutOfRange => "a value is outside its range",
            Self::TooLong => "there is more data than allowed",
        })
    }
}

impl core::error::Error for ReadError {}

impl From<ReadError> for Malformed {
    fn from(error: ReadError) -> Malformed {
        match error {
            ReadError::End => Malformed::Truncated,
            ReadError::OutOfRange => Malformed::Forbidden("a number is within its range"),
            ReadError::TooLong => Malformed::TooLong,
        }
    }
}

/// How many bits a value in `low..=high` takes.
///
/// ```
/// assert_eq!(sametick_wire::bits::ranged_bits(0, 100), 7);
/// ```
pub const fn ranged_bits(low: i64, high: i64) -> u32 {
    u64::BITS - span(low, high).leading_zeros()
}

/// `high - low`, which always fits when the bounds are in order.
const fn span(low: i64, high: i64) -> u64 {
    assert!(low <= high, "a range has its lower bound first");
    high.wrapping_sub(low) as u64
}

/// All ones in the lowest `n` bits.
const fn mask(n: u32) -> u64 {
    if n == 0 { 0 } else { u64::MAX >> (u64::BITS - n) }
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn check_group(group: u32) {
    assert!((1..=MAX_VARINT_GROUP).contains(&group), "a varint's groups have 1 to {MAX_VARINT_GROUP} bits");
}

/// Appends packed values to a byte vector. [`finish`](BitWriter::finish) writes out the last ones.
#[derive(Debug)]
#[must_use = "the last bits are written by `finish`"]
pub struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    pending: u64,
    /// How many bits of `pending` are in use: fewer than 64.
    pending_bits: u32,
}

impl<'a> BitWriter<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> BitWriter<'a> {
        let start = out.len();
        BitWriter { out, start, pending: 0, pending_bits: 0 }
    }

    /// The number of bits written so far.
    pub fn len_bits(&self) -> u64 {
        (self.out.len() - self.start) as u64 * 8 + u64::from(self.pending_bits)
    }

    /// One bit.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.bits(u64::from(value), 1);
    }

    /// The lowest `n` bits of `value`.
    ///
    /// # Panics
    /// If `n` is more than 64 or `value` has more than `n` bits.
    #[inline]
    pub fn bits(&mut self, value: u64, n: u32) {
        assert!(n <= u64::BITS && value <= mask(n), "a value has to fit the bits it is given");
        self.pending |= value << self.pending_bits;
        let total = self.pending_bits + n;
        if total < u64::BITS {
            self.pending_bits = total;
            return;
        }
        self.out.extend_from_slice(&self.pending.to_le_bytes());
        let written = u64::BITS - self.pending_bits;
        self.pending = value.checked_shr(written).unwrap_or(0);
        self.pending_bits = total - u64::BITS;
    }

    /// An integer in as many bits as `range` needs.
    ///
    /// # Panics
    /// If `value` is not in `range`.
    #[inline]
    pub fn ranged(&mut self, value: i64, range: RangeInclusive<i64>) {
        let (low, high) = range.into_inner();
        assert!((low..=high).contains(&value), "a value has to lie in the range it is given");
        self.bits(span(low, value), ranged_bits(low, high));
    }

    /// An integer in groups of `group` bits, lowest first, each followed by a bit that says whether more come: short
    /// for small values.
    ///
    /// # Panics
    /// If `group` is not between 1 and [`MAX_VARINT_GROUP`].
    #[inline]
    pub fn varint(&mut self, value: u64, group: u32) {
        check_group(group);
        let mut rest = value;
        loop {
            let digit = rest & mask(group);
            rest >>= group;
            let more = u64::from(rest != 0);
            self.bits(digit | more << group, group + 1);
            if rest == 0 {
                return;
            }
        }
    }

    /// A signed integer as a varint: short for values near zero on both sides.
    ///
    /// # Panics
    /// As [`varint`](BitWriter::varint).
    #[inline]
    pub fn varint_signed(&mut self, value: i64, group: u32) {
        self.varint(zigzag(value), group);
    }

    /// A float in the steps of `quantised`.
    #[inline]
    pub fn quantised(&mut self, value: f32, quantised: &Quantised) {
        self.bits(u64::from(quantised.encode(value)), quantised.bits());
    }

    /// A rotation as its smallest three components.
    #[inline]
    pub fn quaternion(&mut self, value: [f32; 4], quaternion: &Quaternion) {
        self.bits(quaternion.encode(value), quaternion.bits());
    }

    /// A length and that many bytes, which start at the next whole byte so that they can be read in place.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64, LENGTH_GROUP);
        self.flush();
        self.out.extend_from_slice(bytes);
    }

    /// Zeros up to the next whole byte.
    pub fn align(&mut self) {
        let padding = self.pending_bits.wrapping_neg() % 8;
        self.bits(0, padding);
    }

    /// Writes the last bits, filled up with zeros to a whole byte, and tells how many bytes were written in all.
    pub fn finish(mut self) -> usize {
        self.flush();
        self.out.len() - self.start
    }

    fn flush(&mut self) {
        let whole = self.pending.to_le_bytes();
        self.out.extend_from_slice(&whole[..self.pending_bits.div_ceil(8) as usize]);
        self.pending = 0;
        self.pending_bits = 0;
    }
}

/// Reads packed values from a slice. After an error the position is unspecified: give the message up.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    position_bits: u64,
}

impl<'a> BitReader<'a> {
    /// Reads from the first bit of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, position_bits: 0 }
    }

    /// The number of bits left, padding included.
    #[inline]
    pub fn remaining_bits(&self) -> u64 {
        self.bytes.len() as u64 * 8 - self.position_bits
    }

    /// One bit.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, ReadError> {
        Ok(self.bits(1)? != 0)
    }

    /// The next `n` bits.
    ///
    /// # Panics
    /// If `n` is more than 64.
    #[inline]
    pub fn bits(&mut self, n: u32) -> Result<u64, ReadError> {
        assert!(n <= u64::BITS, "at most 64 bits at a time");
        if u64::from(n) > self.remaining_bits() {
            return Err(ReadError::End);
        }
        let shift = (self.position_bits % 8) as u32;
        let rest = self.rest();
        let mut value = low_bytes(rest) >> shift;
        if shift + n > u64::BITS {
            let ninth = rest.get(8).copied().unwrap_or(0);
            value |= u64::from(ninth) << (u64::BITS - shift);
        }
        self.position_bits += u64::from(n);
        Ok(value & mask(n))
    }

    /// An integer in `range`.
    #[inline]
    pub fn ranged(&mut self, range: RangeInclusive<i64>) -> Result<i64, ReadError> {
        let (low, high) = range.into_inner();
        let above = self.bits(ranged_bits(low, high))?;
        if above > span(low, high) {
            return Err(ReadError::OutOfRange);
        }
        Ok(low.wrapping_add(above as i64))
    }

    /// An integer written by [`BitWriter::varint`] with the same `group`, in the shortest form only.
    ///
    /// # Panics
    /// If `group` is not between 1 and [`MAX_VARINT_GROUP`].
    #[inline]
    pub fn varint(&mut self, group: u32) -> Result<u64, ReadError> {
        check_group(group);
        let mut value = 0;
        let mut shift = 0;
        loop {
            let digit_and_more = self.bits(group + 1)?;
            let digit = digit_and_more & mask(group);
            if digit << shift >> shift != digit {
                return Err(ReadError::OutOfRange);
            }
            value |= digit << shift;
            if digit_and_more >> group == 0 {
                let is_shortest = digit != 0 || shift == 0;
                return if is_shortest { Ok(value) } else { Err(ReadError::TooLong) };
            }
            shift += group;
            if shift >= u64::BITS {
                return Err(ReadError::TooLong);
            }
        }
    }

    /// A signed integer written by [`BitWriter::varint_signed`] with the same `group`.
    ///
    /// # Panics
    /// As [`varint`](BitReader::varint).
    #[inline]
    pub fn varint_signed(&mut self, group: u32) -> Result<i64, ReadError> {
        self.varint(group).map(unzigzag)
    }

    /// A float in the steps of `quantised`.
    #[inline]
    pub fn quantised(&mut self, quantised: &Quantised) -> Result<f32, ReadError> {
        let code = self.bits(quantised.bits())?;
        quantised.decode(code as u32).ok_or(ReadError::OutOfRange)
    }

    /// A rotation, of length one.
    #[inline]
    pub fn quaternion(&mut self, quaternion: &Quaternion) -> Result<[f32; 4], ReadError> {
        let code = self.bits(quaternion.bits())?;
        quaternion.decode(code).ok_or(ReadError::OutOfRange)
    }

    /// Bytes, at most `limit` of them, in place.
    pub fn bytes(&mut self, limit: usize) -> Result<&'a [u8], ReadError> {
        let len = self.varint(LENGTH_GROUP)?;
        let len = usize::try_from(len).ok().filter(|&len| len <= limit).ok_or(ReadError::TooLong)?;
        self.align()?;
        let bytes = self.rest().get(..len).ok_or(ReadError::End)?;
        self.position_bits += len as u64 * 8;
        Ok(bytes)
    }

    /// Skips to the next whole byte; what is skipped has to be zero.
    pub fn align(&mut self) -> Result<(), ReadError> {
        let padding = (self.position_bits.wrapping_neg() % 8) as u32;
        if self.bits(padding)? == 0 { Ok(()) } else { Err(ReadError::OutOfRange) }
    }

    /// Checks that nothing is left but the padding of the last byte, and that it is zero.
    pub fn finish(mut self) -> Result<(), ReadError> {
        self.align()?;
        if self.remaining_bits() == 0 { Ok(()) } else { Err(ReadError::TooLong) }
    }

    /// The bytes from the one that holds the next bit.
    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.bytes.get((self.position_bits / 8) as usize..).unwrap_or_default()
    }
}

/// The first eight bytes as a number, with zeros for those that are missing.
#[inline]
fn low_bytes(bytes: &[u8]) -> u64 {
    if let Some(eight) = bytes.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}
