//! A binary range coder: an arithmetic coder in which an expected bit costs less than an unexpected one.
//!
//! Encoding and decoding are the same function over [`Coder`], which is given the value or finds it, so that they
//! cannot diverge. A frame is one run of the coder; the decoder reads zeros after the bytes of a frame.

use alloc::vec::Vec;

/// Bits in the window that `low` and `range` describe.
const WINDOW_BITS: u32 = 48;
const WINDOW: u64 = 1 << WINDOW_BITS;
/// Below this, a byte is final and is written.
const SETTLED: u64 = WINDOW >> 8;
const WINDOW_BYTES: usize = 6;

/// An adaptive probability of one kind of bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// The probability of a one in 65,536ths; never 0 and never 65,536.
    ones: u16,
    seen: u8,
}

impl Bit {
    /// Without any knowledge.
    pub const NEW: Bit = Bit { ones: 1 << 15, seen: 0 };

    /// Later bits move the probability by 1/128: precise enough for idle players, quick enough to follow changes.
    const SLOWEST: u32 = 7;

    /// The probability of a one in 65,536ths.
    pub fn chance(self) -> u64 {
        u64::from(self.ones)
    }

    /// Adapts to a bit.
    pub fn learn(&mut self, bit: bool) {
        let rate = (u32::from(self.seen) + 3).ilog2();
        if rate < Self::SLOWEST {
            self.seen += 1;
        }
        if bit {
            self.ones += (u16::MAX - self.ones) >> rate;
        } else {
            self.ones -= self.ones >> rate;
        }
    }
}

/// Writes the bits it is given, or ignores them and returns those it reads.
pub trait Coder {
    /// Codes one bit that is a one with this many 65,536ths of probability, neither none nor all of them.
    fn toss(&mut self, ones: u64, bit: bool) -> bool;

    /// Codes one bit with the probability of the model.
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
        let bit = self.toss(model.chance(), bit);
        model.learn(bit);
        bit
    }

    /// Codes the lowest `count` bits of a number, all equally likely.
    fn even(&mut self, value: u64, count: u32) -> u64;

    /// Whether more was read than any encoder would have left out. Always false when writing.
    fn is_overrun(&self) -> bool {
        false
    }

    /// The number of final bytes; zero when reading.
    fn written(&self) -> usize {
        0
    }

    /// Codes a number below `models.len()`, a power of two, bit by bit from the top.
    fn tree(&mut self, models: &mut [Bit], value: usize) -> usize {
        let mut node = 1;
        for at in (0..models.len().trailing_zeros()).rev() {
            let bit = self.bit(&mut models[node], value >> at & 1 == 1);
            node = node << 1 | usize::from(bit);
        }
        node - models.len()
    }

    /// Codes a number that is usually below `models.len() - 1`, and always below 2^`wide`.
    fn number(&mut self, models: &mut [Bit], value: u64, wide: u32) -> u64 {
        let escape = models.len() - 1;
        let small = usize::try_from(value).map_or(escape, |value| value.min(escape));
        let small = self.tree(models, small);
        if small == escape { self.even(value, wide) } else { small as u64 }
    }
}

/// Encodes the bits of a frame.
#[derive(Debug, Default)]
pub struct RangeEncoder {
    low: u64,
    range: u64,
    out: Vec<u8>,
}

impl RangeEncoder {
    /// Starts a frame.
    pub fn begin(&mut self) {
        let mut out = core::mem::take(&mut self.out);
        out.clear();
        self.begin_in(out);
    }

    /// Starts a frame behind the contents of `out`. [`take`](RangeEncoder::take) gives it back.
    pub fn begin_in(&mut self, out: Vec<u8>) {
        *self = RangeEncoder { low: 0, range: WINDOW, out };
    }

    /// The number of final bytes, including those before the frame.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether there are no final bytes.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Ends the frame with the fewest bytes that are unambiguous, and returns all of them.
    pub fn finish(&mut self) -> &[u8] {
        for count in 0..=WINDOW_BYTES {
            let unit = WINDOW >> (8 * count);
            let value = self.low.next_multiple_of(unit);
            if value < self.low + self.range {
                self.low = value;
                self.carry();
                let bytes = (self.low << (64 - WINDOW_BITS)).to_be_bytes();
                self.out.extend_from_slice(&bytes[..count]);
                break;
            }
        }
        &self.out
    }

    /// Ends the frame as [`finish`](RangeEncoder::finish) does, and returns the bytes by value.
    pub fn take(&mut self) -> Vec<u8> {
        self.finish();
        core::mem::take(&mut self.out)
    }

    /// A frame is a number below one, so that a carry never reaches the bytes before it.
    #[inline]
    fn carry(&mut self) {
        if self.low >= WINDOW {
            self.low -= WINDOW;
            for byte in self.out.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
        }
    }

    #[inline]
    fn settle(&mut self) {
        self.carry();
        while self.range < SETTLED {
            self.out.push((self.low >> (WINDOW_BITS - 8)) as u8);
            self.low = (self.low % SETTLED) << 8;
            self.range <<= 8;
        }
    }
}

impl Coder for RangeEncoder {
    #[inline]
    fn toss(&mut self, ones: u64, bit: bool) -> bool {
        let bound = (self.range >> 16) * ones;
        if bit {
            self.range = bound;
        } else {
            self.low += bound;
            self.range -= bound;
        }
        self.settle();
        bit
    }

    fn even(&mut self, value: u64, count: u32) -> u64 {
        for at in (0..count).rev() {
            self.range >>= 1;
            if value >> at & 1 == 1 {
                self.low += self.range;
            }
            self.settle();
        }
        value
    }

    fn written(&self) -> usize {
        self.len()
    }
}

/// Decodes the bits of a frame. It does not own the bytes: see [`RangeDecoder::over`].
#[derive(Debug, Default)]
pub struct RangeDecoder {
    code: u64,
    range: u64,
    taken: usize,
}

impl RangeDecoder {
    /// Starts a frame.
    pub fn begin(&mut self, bytes: &[u8]) {
        *self = RangeDecoder { code: 0, range: WINDOW, taken: 0 };
        (0..WINDOW_BYTES).for_each(|_| self.take(bytes));
    }

    /// The decoder on the bytes of its frame.
    pub fn over<'a>(&'a mut self, bytes: &'a [u8]) -> Reading<'a> {
        Reading { state: self, bytes }
    }

    /// Whether more was read than any encoder would have left out: then the bytes are not a valid frame.
    pub fn is_overrun(&self, bytes: &[u8]) -> bool {
        self.taken > bytes.len() + WINDOW_BYTES
    }

    /// Whether unread bytes are left.
    pub fn has_rest(&self, bytes: &[u8]) -> bool {
        self.taken < bytes.len()
    }

    fn take(&mut self, bytes: &[u8]) {
        let byte = bytes.get(self.taken).copied().unwrap_or(0);
        self.code = self.code << 8 | u64::from(byte);
        self.taken += 1;
    }
}

/// A [`RangeDecoder`] on its bytes.
#[derive(Debug)]
pub struct Reading<'a> {
    state: &'a mut RangeDecoder,
    bytes: &'a [u8],
}

impl Reading<'_> {
    #[inline]
    fn settle(&mut self) {
        while self.state.range < SETTLED {
            self.state.take(self.bytes);
            self.state.range <<= 8;
        }
    }
}

impl Coder for Reading<'_> {
    #[inline]
    fn toss(&mut self, ones: u64, _: bool) -> bool {
        let bound = (self.state.range >> 16) * ones;
        let bit = self.state.code < bound;
        if bit {
            self.state.range = bound;
        } else {
            self.state.code -= bound;
            self.state.range -= bound;
        }
        self.settle();
        bit
    }

    fn even(&mut self, _: u64, count: u32) -> u64 {
        let mut value = 0;
        for _ in 0..count {
            self.state.range >>= 1;
            let bit = self.state.code >= self.state.range;
            if bit {
                self.state.code -= self.state.range;
            }
            value = value << 1 | u64::from(bit);
            self.settle();
        }
        value
    }

    fn is_overrun(&self) -> bool {
        self.state.is_overrun(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_round_trip(
            steps in proptest::collection::vec((any::<bool>(), any::<u64>(), 0u32..=64, 0usize..4), 0..600),
        ) {
            let mut encoder = RangeEncoder::default();
            encoder.begin();
            let mut models = [Bit::NEW; 4];
            let mask = |count: u32| u64::MAX.checked_shr(64 - count).unwrap_or(0);
            for &(bit, value, count, model) in &steps {
                // Mostly the same bit, so that models adapt.
                encoder.bit(&mut models[model], bit && model == 0);
                encoder.even(value & mask(count % 9), count % 9);
            }
            let bytes = encoder.finish().to_vec();
            let mut behind = RangeEncoder::default();
            behind.begin_in(b"\xff\xff".to_vec());
            let mut models = [Bit::NEW; 4];
            for &(bit, value, count, model) in &steps {
                behind.bit(&mut models[model], bit && model == 0);
                behind.even(value & mask(count % 9), count % 9);
            }
            prop_assert_eq!(behind.take(), [b"\xff\xff", &bytes[..]].concat());
            let mut decoder = RangeDecoder::default();
            decoder.begin(&bytes);
            let mut models = [Bit::NEW; 4];
            for &(bit, value, count, model) in &steps {
                prop_assert_eq!(decoder.over(&bytes).bit(&mut models[model], false), bit && model == 0);
                prop_assert_eq!(decoder.over(&bytes).even(0, count % 9), value & mask(count % 9));
            }
            prop_assert!(!decoder.is_overrun(&bytes) && !decoder.has_rest(&bytes));
        }
    }

    #[test]
    fn an_empty_frame_takes_no_bytes() {
        let mut encoder = RangeEncoder::default();
        encoder.begin();
        assert!(encoder.finish().is_empty());
    }
}
