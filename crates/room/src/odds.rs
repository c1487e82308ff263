//! Adaptive bit probabilities for the range coder, and number codes made of such bits.

use sametick_wire::range::Coder;

/// The probability of one kind of bit. It adapts as the mean of all bits so far, and never more slowly than after
/// `MEMORY` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Odds {
    /// The probability of a one in 65,536ths; never 0 and never 65,536.
    ones: u16,
    seen: u16,
}

/// After this many bits, older ones fade.
const MEMORY: usize = 80;

/// The step towards a new bit, in 65,536ths of the distance, by how many bits came before.
const SHARES: [u32; MEMORY] = {
    let mut shares = [0; MEMORY];
    let mut seen = 0;
    while seen < MEMORY {
        shares[seen] = (2 << 16) / (2 * seen as u32 + 3);
        seen += 1;
    }
    shares
};

impl Odds {
    /// Nothing has been learnt.
    pub(crate) const NEW: Odds = Odds { ones: 1 << 15, seen: 0 };

    /// Codes one bit.
    #[inline(always)]
    pub(crate) fn code<C: Coder>(&mut self, coder: &mut C, bit: bool) -> bool {
        let bit = coder.toss(self.ones.into(), bit);
        let share = SHARES[usize::from(self.seen).min(MEMORY - 1)];
        if usize::from(self.seen) < MEMORY - 1 {
            self.seen += 1;
        }
        // The share is below one, so neither end is ever reached.
        if bit {
            self.ones += ((u32::from(u16::MAX - self.ones) * share) >> 16) as u16;
        } else {
            self.ones -= ((u32::from(self.ones) * share) >> 16) as u16;
        }
        bit
    }
}

/// The number of length classes; the last one stands for all longer numbers.
pub(crate) const LENGTHS: usize = 20;

/// The number of probabilities for the bits below the leading one: the first by itself, the second by the first.
const TOPS: usize = 3;

/// Models of the highest bits of numbers, by their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tops([[Odds; TOPS]; LENGTHS]);

impl Tops {
    /// Nothing has been learnt.
    pub(crate) const NEW: Tops = Tops([[Odds::NEW; TOPS]; LENGTHS]);
}

/// Codes a number: its length in unary, then its highest bits by their models and the rest unmodelled.
pub(crate) fn number<C: Coder>(
    coder: &mut C,
    lengths: &mut [Odds; LENGTHS],
    tops: &mut Tops,
    value: u32,
) -> u32 {
    let whole = u64::from(value) + 1;
    let known = whole.ilog2();
    let mut length = 0;
    while length < u32::BITS && lengths[(length as usize).min(LENGTHS - 1)].code(coder, known > length) {
        length += 1;
    }
    let tops = &mut tops.0[(length as usize).min(LENGTHS - 1)];
    let mut read = 1u64;
    let mut rest = length;
    let mut top = 0;
    while rest > 0 && top < TOPS {
        rest -= 1;
        let bit = tops[top].code(coder, whole >> rest & 1 == 1);
        read = read << 1 | u64::from(bit);
        top = 2 * top + 1 + usize::from(bit);
    }
    read = read << rest | coder.even(whole & ((1 << rest) - 1), rest);
    // Only an invalid stream has more than 32 bits.
    u32::try_from(read - 1).unwrap_or(u32::MAX)
}

/// The models for [`number`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    lengths: [Odds; LENGTHS],
    tops: Tops,
}

impl Number {
    /// Nothing has been learnt.
    pub(crate) const NEW: Number = Number { lengths: [Odds::NEW; LENGTHS], tops: Tops::NEW };

    /// Codes one number.
    pub(crate) fn code<C: Coder>(&mut self, coder: &mut C, value: u32) -> u32 {
        number(coder, &mut self.lengths, &mut self.tops, value)
    }
}
