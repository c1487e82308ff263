//! The head of a datagram: its number, and the ack of the other side's numbers.
//!
//! ```text
//! number (low 16 bits, little-endian)   never repeated on a link; raw UDP's cipher takes its nonce from it
//! nnnnn d g 1                           a short ack: low 5 bits of the newest number that arrived; d, g: what follows
//! 00000 d g 0                           no ack (d and g are 0), or a long ack (d is 1)
//! [long: newest number (low 16 bits)] · [d: delay since it arrived, in 64 µs (varint)] · [g: missing among the 64 before (varint)]
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

/// The number of packets before the newest one that an ack covers.
pub const ACK_SPAN: u64 = 64;

/// The unit of the ack delay: fine enough for RTT, coarse enough that a 60 Hz delay fits one or two bytes.
pub const DELAY_UNIT_US: u64 = 64;

/// The longest ack delay that can be encoded (about 134 s).
const MAX_DELAY_UNITS: u64 = (1 << 21) - 1;

const SHORT: u8 = 1;
const HAS_GAPS: u8 = 2;
const HAS_DELAY: u8 = 4;
const NEWEST_SHIFT: u32 = 3;

/// How far the newest number may be from one whose ack the other side knows to be received, for a short ack.
pub const SHORT_SPAN: u64 = 32;

/// The newest number that arrived, in as many bits as the other side needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newest {
    /// The low 5 bits. Meaningful only in the newest packet: it is the first number with these bits from the highest
    /// acknowledged one on.
    Short(u8),
    /// The low 16 bits.
    Long(u16),
}

/// The packets that have arrived, as reported to the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The newest number that arrived.
    pub newest: Newest,
    /// How long ago that was, in [`DELAY_UNIT_US`]; always present in a long ack.
    pub delay: Option<u64>,
    /// Bit `i` set: number `newest - 1 - i` has not arrived.
    pub missing: u64,
}

/// The head of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The low 16 bits of the packet's number.
    pub number: u16,
    /// The ack, if anything has arrived.
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
        let gaps = if ack.missing == 0 { 0 } else { HAS_GAPS };
        let delay = match ack.newest {
            Newest::Short(low) => {
                let has_delay = if ack.delay.is_some() { HAS_DELAY } else { 0 };
                out.push(low << NEWEST_SHIFT | has_delay | gaps | SHORT);
                ack.delay
            }
            Newest::Long(low) => {
                out.push(HAS_DELAY | gaps);
                out.extend_from_slice(&low.to_le_bytes());
                Some(ack.delay.unwrap_or(0))
            }
        };
        if let Some(delay) = delay {
            put_varint(out, delay.min(MAX_DELAY_UNITS));
        }
        if ack.missing != 0 {
            put_varint(out, ack.missing);
        }
    }

    /// Reads the head; the frames follow it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Head, Malformed> {
        let number = reader.u16()?;
        let flags = reader.u8()?;
        if flags == 0 {
            return Ok(Head { number, ack: None });
        }
        let newest = match flags {
            flags if flags & SHORT != 0 => Newest::Short(flags >> NEWEST_SHIFT),
            flags if flags & !HAS_GAPS == HAS_DELAY => Newest::Long(reader.u16()?),
            _ => return Err(Malformed::Forbidden("bits that mean nothing are zero")),
        };
        let delay = if flags & HAS_DELAY == 0 { None } else { Some(reader.varint()?) };
        if delay.is_some_and(|delay| delay > MAX_DELAY_UNITS) {
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
        let long = |missing| Some(Ack { newest: Newest::Long(0x1234), delay: Some(200), missing });
        let short = |delay, missing| Some(Ack { newest: Newest::Short(0x14), delay, missing });
        let golden: [(Head, &[u8]); 7] = [
            (Head { number: 0x0201, ack: None }, &[1, 2, 0]),
            (Head { number: 5, ack: long(0) }, &[5, 0, 4, 0x34, 0x12, 0xc8, 1]),
            (Head { number: 5, ack: long(0b101) }, &[5, 0, 6, 0x34, 0x12, 0xc8, 1, 5]),
            (Head { number: 5, ack: short(None, 0) }, &[5, 0, 0xa1]),
            (Head { number: 5, ack: short(Some(9), 0) }, &[5, 0, 0xa5, 9]),
            (Head { number: 5, ack: short(None, 0b101) }, &[5, 0, 0xa3, 5]),
            (Head { number: 5, ack: short(Some(9), 0b101) }, &[5, 0, 0xa7, 9, 5]),
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
        let ack = Ack { newest: Newest::Long(0), delay: Some(u64::MAX), missing: u64::MAX };
        Head { number: 0, ack: Some(ack) }.put(&mut out);
        assert_eq!(out.len(), MAX_HEAD);
    }

    #[test]
    fn flags_that_mean_nothing_are_refused() {
        for flags in (0u8..=255).filter(|flags| flags & SHORT == 0 && ![0, 4, 6].contains(flags)) {
            let head = Head::read(&mut Reader::new(&[0, 0, flags, 1, 1, 1, 1]));
            assert_eq!(head, Err(Malformed::Forbidden("bits that mean nothing are zero")), "{flags}");
        }
    }

    proptest! {
        #[test]
        fn heads_round_trip(number: u16, ack: Option<(u16, Option<u16>, u64)>, short: bool) {
            let ack = ack.map(|(newest, delay, missing)| match short {
                true => Ack { newest: Newest::Short(newest as u8 & 31), delay: delay.map(u64::from), missing },
                false => Ack { newest: Newest::Long(newest), delay: delay.or(Some(0)).map(u64::from), missing },
            });
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
