//! Arguments for maths functions: edge cases, and random floats from the whole range.

use sametick_sim::{Rng, Tick};

/// An argument in both widths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
    pub(crate) single: [f32; 2],
    pub(crate) double: [f64; 2],
}

/// Edge cases: zeros, ends of ranges, halves, multiples of π, values that overflow `exp`.
const AWKWARD: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    core::f64::consts::PI,
    core::f64::consts::FRAC_PI_2,
    core::f64::consts::E,
    1e-300,
    5e-324,
    1e300,
    1e22,
    88.8,
    709.9,
    -745.2,
    -103.9,
    16_777_217.0,
    9_007_199_254_740_993.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// The arguments of one tick: a pair of edge cases, and pairs from three kinds of random floats.
pub(crate) fn of(tick: Tick, rng: &mut Rng) -> [Argument; 4] {
    let count = AWKWARD.len();
    let at = tick.0 as usize;
    let awkward = [AWKWARD[at % count], AWKWARD[(at / count) % count]];
    [from_doubles(awkward), any_bits(rng), near(rng, 10.0), near(rng, 1e5)]
}

fn from_doubles(double: [f64; 2]) -> Argument {
    Argument { single: double.map(|x| x as f32), double }
}

/// Any float, with every exponent equally likely.
fn any_bits(rng: &mut Rng) -> Argument {
    let mut bits = || rng.next_u64();
    Argument {
        single: [f32::from_bits(bits() as u32), f32::from_bits(bits() as u32)],
        double: [f64::from_bits(bits()), f64::from_bits(bits())],
    }
}

/// Floats of the sizes that games use.
fn near(rng: &mut Rng, size: f64) -> Argument {
    let mut one = || (rng.next_u64() >> 11) as f64 / 4_503_599_627_370_496.0 - 1.0;
    from_doubles([one() * size, one() * size])
}
