//! The head of a datagram: its number, and which of the other side's numbers have arrived.
//!
//! ```text
//! number (low 16 bits, little-endian)   never repeated on a link; raw UDP's cipher takes its nonce from it
//! flags                                 bit 0: an ack follows; bit 1: it has gaps
//! [ack: newest number (low 16 bits) · delay since it arrived, in 64 µs (varint) · [missing among the 64 before (varint)]]
//! frames…
//! ```

use alloc::vec::Vec;

use crate::codec::{Malformed, Reader, put_varint};

/// The longest datagram on raw UDP. With the cipher's 16-byte tag and 48 bytes of IPv6 and UDP headers it stays
/// below 1280, the least MTU that IPv6 guarantees: no path discovery is needed.
pub const MAX_DATAGRAM: usize = 1_200;

/// The longest datagram inside QUIC or WebTransport, whose own headers and tags also fit into 1200 bytes.
pub const MAX_QUIC_DATAGRAM: usize = 1_100;

/// The longest head: number, flags, ack, delay, missing.
pub const MAX_HEAD: usize = 2 + 1 + 2 + 3 + 10;

/// How many numbers before the newest one an ack tells about.
pub const ACK_SPAN: u64 = 64;

/// The unit of the ack delay: fine enough for RTT, coarse enough that a 60 Hz delay fits one or two bytes.
pub const DELAY_UNIT_US: u64 = 64;

/// The longest ack delay that can be told (about 134 s).
const MAX_DELAY_UNITS: u64 = (1 << 21) - 1;

const HAS_ACK: u8 = 1;
const HAS_GAPS: u8 = 2;

/// What has arrived, as told to the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The low 16 bits of the newest number that arrived.
    pub newest: u16,
    /// How long ago that was, in [`DELAY_UNIT_US`].
    pub delay: u64,
    /// Bit `i` set: number `newest - 1 - i` has not arrived.
    pub missing: u64,
}

/// The head of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The low 16 bits of the packet's number.
    pub number: u16,
    /// What has arrived so far.
    pub ack: Option<Ack>,
}

impl Head {
    /// Appends the head.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        let Some(ack) = self.ack else {
            out.push(0);
            return;
        };
        out.push(if ack.missing == 0 { HAS_ACK } else { HAS_ACK | HAS_GAPS });
        out.extend_from_slice(&ack.newest.to_le_bytes());
        put_varint(out, ack.delay.min(MAX_DELAY_UNITS));
        if ack.missing != 0 {
            put_varint(out, ack.missing);
        }
    }

    /// Reads the head; the frames follow it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Head, Malformed> {
        let number = reader.u16()?;
        let flags = reader.u8()?;
        if flags & !(HAS_ACK | HAS_GAPS) != 0 || flags == HAS_GAPS {
            return Err(Malformed::Forbidden);
        }
        if flags & HAS_ACK == 0 {
            return Ok(Head { number, ack: None });
        }
        let newest = reader.u16()?;
        let delay = reader.varint()?;
        if delay > MAX_DELAY_UNITS {
            return Err(Malformed::TooLong);
        }
        let missing = if flags & HAS_GAPS == 0 { 0 } else { reader.varint()? };
        if (flags & HAS_GAPS != 0) != (missing != 0) {
            return Err(Malformed::Overlong);
        }
        Ok(Head { number, ack: Some(Ack { newest, delay, missing }) })
    }
}

/// The full number whose low 16 bits are `low` and that lies nearest to `expected`.
pub const fn widen(low: u16, expected: u64) -> u64 {
    const SPAN: u64 = 1 << 16;
    let candidate = (expected & !(SPAN - 1)) | low as u64;
    if candidate.saturating_add(SPAN / 2) <= expected && candidate <= u64::MAX - SPAN {
        candidate + SPAN
    } else if candidate > expected.saturating_add(SPAN / 2) && candidate >= SPAN {
        candidate - SPAN
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let ack = |missing| Some(Ack { newest: 0x1234, delay: 200, missing });
        let golden: [(Head, &[u8]); 3] = [
            (Head { number: 0x0201, ack: None }, &[1, 2, 0]),
            (Head { number: 5, ack: ack(0) }, &[5, 0, 1, 0x34, 0x12, 0xc8, 1]),
            (Head { number: 5, ack: ack(0b101) }, &[5, 0, 3, 0x34, 0x12, 0xc8, 1, 5]),
        ];
        for (head, bytes) in golden {
            let mut out = vec![];
            head.put(&mut out);
            assert_eq!(out, bytes);
            assert_eq!(Head::read(&mut Reader::new(bytes)), Ok(head));
        }
    }

    #[test]
    fn the_longest_head_is_as_long_as_stated() {
        let mut out = vec![];
        Head { number: 0, ack: Some(Ack { newest: 0, delay: u64::MAX, missing: u64::MAX }) }.put(&mut out);
        assert_eq!(out.len(), MAX_HEAD);
    }

    proptest! {
        #[test]
        fn heads_round_trip(number: u16, ack: Option<(u16, u64, u64)>) {
            let ack = ack.map(|(newest, delay, missing)| Ack { newest, delay: delay & 0xffff, missing });
            let head = Head { number, ack };
            let mut out = vec![];
            head.put(&mut out);
            prop_assert_eq!(Head::read(&mut Reader::new(&out)), Ok(head));
        }

        #[test]
        fn numbers_near_the_expected_one_are_restored(expected in 0..u64::MAX / 2, off in -30_000i64..30_000) {
            if let Some(number) = expected.checked_add_signed(off) {
                prop_assert_eq!(widen(number as u16, expected), number);
            }
        }

        #[test]
        fn widening_never_overflows(low: u16, expected: u64) {
            prop_assert_eq!(widen(low, expected) as u16, low);
        }
    }
}
