//! Quantises floats and rotations to small integers, for bit packing. The arithmetic is basic IEEE operations in `f64`
//! and libm's exact square root, so every platform writes the same bits and reads the same numbers.

use core::f64::consts::FRAC_1_SQRT_2;

/// Floats between two bounds as evenly spaced codes.
///
/// Values outside the bounds become the nearest bound, and NaN the lower one. What is read back is off by at most half a
/// step (and the rounding of `f32` itself), and gives the same code again as long as a step is wider than that rounding.
///
/// ```
/// use sametick_sim::quantise::Quantised;
///
/// const HEIGHT: Quantised = Quantised::with_step(-10.0, 100.0, 0.01);
/// assert_eq!(HEIGHT.bits(), 14);
/// let read = HEIGHT.decode(HEIGHT.encode(12.3456)).unwrap();
/// assert!((read - 12.3456).abs() <= 0.005);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantised {
    min: f64,
    max: f64,
    step: f64,
    last_code: u32,
}

impl Quantised {
    /// As many codes as `bits` can tell apart; the first is `min`, the last is `max`.
    ///
    /// # Panics
    /// If the bounds are not finite and in order, or `bits` is not between 1 and 32; in a `const` that is a compile
    /// error.
    pub const fn with_bits(min: f32, max: f32, bits: u32) -> Quantised {
        assert!(bits >= 1 && bits <= u32::BITS, "a quantised float has 1 to 32 bits");
        let last_code = u32::MAX >> (u32::BITS - bits);
        let (min, max) = bounds(min, max);
        Quantised { min, max, step: (max - min) / last_code as f64, last_code }
    }

    /// A code every `step` from `min` on, and one for `max`.
    ///
    /// # Panics
    /// If the bounds are not finite and in order, or `step` is not positive, or there would be more than 2³² codes; in a
    /// `const` that is a compile error.
    pub const fn with_step(min: f32, max: f32, step: f32) -> Quantised {
        assert!(step > 0.0, "a step is positive");
        let (min, max) = bounds(min, max);
        let steps = (max - min) / step as f64;
        let whole = steps as u64;
        let last_code = if (whole as f64) < steps { whole + 1 } else { whole };
        assert!(last_code <= u32::MAX as u64, "a quantised float has at most 32 bits");
        Quantised { min, max, step: step as f64, last_code: last_code as u32 }
    }

    /// How many bits a code takes.
    pub const fn bits(&self) -> u32 {
        u32::BITS - self.last_code.leading_zeros()
    }

    /// The code nearest to `value`.
    #[inline]
    pub const fn encode(&self, value: f32) -> u32 {
        // The cast makes zero of NaN and negative numbers, and truncates positive ones.
        let code = ((value as f64 - self.min) / self.step + 0.5) as u32;
        if code < self.last_code { code } else { self.last_code }
    }

    /// The value of `code`, or `None` if [`encode`](Quantised::encode) never gives it.
    #[inline]
    pub const fn decode(&self, code: u32) -> Option<f32> {
        if code > self.last_code {
            return None;
        }
        let value = self.min + code as f64 * self.step;
        Some(if value < self.max { value as f32 } else { self.max as f32 })
    }
}

const fn bounds(min: f32, max: f32) -> (f64, f64) {
    assert!(min.is_finite() && max.is_finite() && min < max, "the bounds are finite and in order");
    (min as f64, max as f64)
}

/// The components of the identity rotation: `x, y, z, w`.
const IDENTITY: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

/// Rotations as their smallest three components and the index of the largest, which follows from the others.
///
/// A quaternion and its negative are the same rotation and give the same bits. Input of any length is normalised; one
/// without a direction (zero, NaN, infinite) becomes the identity, which decodes exactly.
///
/// ```
/// use sametick_sim::quantise::Quaternion;
///
/// const TURN: Quaternion = Quaternion::with_bits(9);
/// assert_eq!(TURN.bits(), 29);
/// assert_eq!(TURN.encode([0.1, -0.2, 0.3, -0.9]), TURN.encode([-0.1, 0.2, -0.3, 0.9]));
/// assert_eq!(TURN.decode(TURN.encode([0.0, 0.0, 0.0, 1.0])), Some([0.0, 0.0, 0.0, 1.0]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quaternion {
    component_bits: u32,
}

impl Quaternion {
    /// A quantiser with `component_bits` for each of the three components.
    ///
    /// # Panics
    /// If `component_bits` is not between 2 and 20; in a `const` that is a compile error. Fewer cannot tell left from
    /// right; more do not fit 64 bits and are finer than `f32`.
    pub const fn with_bits(component_bits: u32) -> Quaternion {
        assert!(component_bits >= 2 && component_bits <= 20, "a component has 2 to 20 bits");
        Quaternion { component_bits }
    }

    /// How many bits a rotation takes.
    pub const fn bits(&self) -> u32 {
        2 + 3 * self.component_bits
    }

    /// The width of a step of one component. From 5 bits on, what is read back differs from what was written by less
    /// than two steps (the length of the difference; the angle turned is twice that).
    pub const fn step(&self) -> f64 {
        2.0 * FRAC_1_SQRT_2 / self.last_code() as f64
    }

    /// The code of a rotation.
    pub fn encode(&self, rotation: [f32; 4]) -> u64 {
        let rotation = normalised(rotation.map(f64::from)).unwrap_or(IDENTITY);
        let largest = place_of_largest(&rotation);
        let sign = if rotation[largest] < 0.0 { -1.0 } else { 1.0 };
        let mut code = largest as u64;
        let mut shift = 2;
        for (place, component) in rotation.iter().enumerate() {
            if place != largest {
                code |= self.encode_component(sign * component) << shift;
                shift += self.component_bits;
            }
        }
        code
    }

    /// The rotation of a code, of length one, or `None` if [`encode`](Quaternion::encode) never gives it.
    pub fn decode(&self, code: u64) -> Option<[f32; 4]> {
        let largest = (code & 0b11) as usize;
        let mut codes = code >> 2;
        let mut rotation = [0.0; 4];
        let mut rest = 1.0;
        for (place, component) in rotation.iter_mut().enumerate() {
            if place != largest {
                *component = self.decode_component(codes & self.component_mask())?;
                rest -= *component * *component;
                codes >>= self.component_bits;
            }
        }
        if codes != 0 {
            return None;
        }
        if rest > 0.0 {
            rotation[largest] = libm::sqrt(rest);
        } else {
            // With few bits, rounding may make the others longer than one together.
            rotation = normalised(rotation)?;
        }
        Some(rotation.map(|component| component as f32))
    }

    const fn component_mask(&self) -> u64 {
        (1 << self.component_bits) - 1
    }

    /// One code stays unused, so that zero is the middle code and exact.
    const fn last_code(&self) -> u64 {
        self.component_mask() - 1
    }

    fn encode_component(&self, component: f64) -> u64 {
        let per_unit = self.last_code() as f64 * FRAC_1_SQRT_2;
        let code = ((component + FRAC_1_SQRT_2) * per_unit + 0.5) as u64;
        code.min(self.last_code())
    }

    fn decode_component(&self, code: u64) -> Option<f64> {
        let middle = (self.last_code() / 2) as f64;
        (code <= self.last_code()).then(|| (code as f64 - middle) * self.step())
    }
}

fn normalised(rotation: [f64; 4]) -> Option<[f64; 4]> {
    let length = libm::sqrt(rotation.iter().map(|component| component * component).sum());
    let shrink = 1.0 / length;
    (length.is_finite() && shrink.is_finite()).then(|| rotation.map(|component| component * shrink))
}

/// The first of the largest components, so that a tie is decided alike for a quaternion and its negative.
fn place_of_largest(rotation: &[f64; 4]) -> usize {
    (1..4).fold(0, |best, place| if rotation[place].abs() > rotation[best].abs() { place } else { best })
}
