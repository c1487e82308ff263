//! Byte-wise reading and writing with varints, the basis of every frame and message. Readers check before they take.

use alloc::vec::Vec;

/// Malformed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes end in the middle of a value.
    Truncated,
    /// A number is longer than its type allows.
    Overlong,
    /// A length or count is above its limit.
    TooLong,
    /// A tag without a meaning in any version of this protocol.
    UnknownKind,
    /// A value that is well-formed, but not allowed here, by this rule.
    Forbidden(&'static str),
}

impl Malformed {
    /// The rule that was broken, for a peer that has proven the passphrase, and for logs.
    pub const fn rule(self) -> &'static str {
        match self {
            Malformed::Truncated => "a message ends where its last value does, not before",
            Malformed::Overlong => "a number is no longer than its type",
            Malformed::TooLong => "a message and what is in it are within the limits of length",
            Malformed::UnknownKind => "frames are of a known kind, on a known channel",
            Malformed::Forbidden(rule) => rule,
        }
    }
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Malformed::Truncated => "the bytes end in the middle of a value",
            Malformed::Overlong => "a number is longer than its type allows",
            Malformed::TooLong => "a length is above its limit",
            Malformed::UnknownKind => "an unknown kind of frame",
            Malformed::Forbidden(rule) => return write!(f, "against the rule that {rule}"),
        })
    }
}

impl core::error::Error for Malformed {}

/// The longest varint of a u64.
pub const MAX_VARINT: usize = 10;

/// The length of `value` as a varint.
pub const fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Appends `value`, seven bits a byte, lowest first.
pub fn put_varint(out: &mut impl Extend<u8>, value: u64) {
    let len = varint_len(value);
    out.extend((0..len).map(|at| {
        let more = if at + 1 < len { 0x80 } else { 0 };
        (value >> (7 * at)) as u8 & 0x7f | more
    }));
}

/// Appends a length and then the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A cursor over untrusted bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The bytes that have not been read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes, as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A varint in its shortest form. Longer forms are refused, so that one value has one encoding.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for at in 0..MAX_VARINT {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            if at == MAX_VARINT - 1 && byte > 1 || at > 0 && byte == 0 {
                return Err(Malformed::Overlong);
            }
            value |= part << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed::Overlong)
    }

    /// A varint that must not exceed `limit`.
    pub fn length(&mut self, limit: usize) -> Result<usize, Malformed> {
        match usize::try_from(self.varint()?) {
            Ok(len) if len <= limit => Ok(len),
            _ => Err(Malformed::TooLong),
        }
    }

    /// A length of at most `limit`, then that many bytes.
    pub fn bytes(&mut self, limit: usize) -> Result<&'a [u8], Malformed> {
        let len = self.length(limit)?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn golden_varints() {
        let golden: [(u64, &[u8]); 6] = [
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (16_384, &[0x80, 0x80, 1]),
            (u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ];
        for (value, bytes) in golden {
            let mut out = vec![];
            put_varint(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(Reader::new(bytes).varint(), Ok(value));
            assert_eq!(varint_len(value), bytes.len());
        }
    }

    #[test]
    fn longer_forms_of_a_number_are_refused() {
        assert_eq!(Reader::new(&[0x80, 0]).varint(), Err(Malformed::Overlong));
        assert_eq!(Reader::new(&[255; 11]).varint(), Err(Malformed::Overlong));
        assert_eq!(Reader::new(&[0x80]).varint(), Err(Malformed::Truncated));
    }

    proptest! {
        #[test]
        fn varints_round_trip(value: u64) {
            let mut out = vec![];
            put_varint(&mut out, value);
            prop_assert_eq!(out.len(), varint_len(value));
            prop_assert_eq!(Reader::new(&out).varint(), Ok(value));
        }

        #[test]
        fn lengths_are_checked_before_bytes_are_taken(bytes: Vec<u8>, limit in 0usize..64) {
            let mut out = vec![];
            put_bytes(&mut out, &bytes);
            let read = Reader::new(&out).bytes(limit);
            prop_assert_eq!(read, if bytes.len() <= limit { Ok(&bytes[..]) } else { Err(Malformed::TooLong) });
        }
    }
}
