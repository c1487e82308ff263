//! The seeded random number generator: the only randomness a step may use. Part of the state, so it is saved with it.

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

/// xoroshiro128++, seeded by SplitMix64: 16 bytes of state, fast, and the same numbers on every platform.
///
/// Good enough for any game, but predictable for everyone who knows the state: do not use it for secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Rng {
    s: [u64; 2],
}

impl Rng {
    /// A generator seeded with `seed`.
    pub const fn new(seed: u64) -> Rng {
        let (first, seed) = split_mix(seed);
        let (second, _) = split_mix(seed);
        // All zeros is the one state from which the generator never recovers.
        Rng { s: [first, second | 1] }
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        let [s0, mut s1] = self.s;
        let result = s0.wrapping_add(s1).rotate_left(17).wrapping_add(s0);
        s1 ^= s0;
        self.s = [s0.rotate_left(49) ^ s1 ^ (s1 << 21), s1.rotate_left(28)];
        result
    }

    /// A number below `bound`, without bias. Zero if `bound` is zero.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        loop {
            let wide = self.next_u64() as u128 * bound as u128;
            if wide as u64 >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A number from `low` to `high`, both included, without bias. `low` if they are the wrong way round.
    pub const fn between(&mut self, low: i32, high: i32) -> i32 {
        if low >= high {
            return low;
        }
        let span = (high as i64 - low as i64) as u64 + 1;
        (low as i64 + self.below(span) as i64) as i32
    }

    /// True with a chance of `numerator` in `denominator`.
    pub const fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// A number in `[0, 1)` with 24 random bits: exact on every platform.
    pub const fn unit_f32(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 * (1.0 / 16_777_216.0)
    }

    /// One of the items; `None` if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len() as u64) as usize)
    }

    /// Puts the items in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

const fn split_mix(state: u64) -> (u64, u64) {
    let next = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = next;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31), next)
}
