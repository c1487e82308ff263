//! Fixed-point numbers, for games that want no floats at all.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

/// A number with 16 bits before and 16 after the point: from -32768 to 32767.99998, in steps of 1/65536.
///
/// Overflow saturates, in every build profile; results between two steps are rounded down. Division by zero panics, as
/// it does for integers.
///
/// ```
/// use sametick_sim::Fixed;
///
/// let speed = Fixed::from_int(3) / Fixed::from_int(2);
/// assert_eq!(speed.to_string(), "1.5");
/// assert_eq!((speed * speed).floor(), 2);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Schema)]
pub struct Fixed(i32);

impl Fixed {
    /// How many bits lie after the point.
    pub const FRACTION_BITS: u32 = 16;
    /// Zero.
    pub const ZERO: Fixed = Fixed(0);
    /// One.
    pub const ONE: Fixed = Fixed(1 << Fixed::FRACTION_BITS);
    /// The largest number.
    pub const MAX: Fixed = Fixed(i32::MAX);
    /// The smallest number.
    pub const MIN: Fixed = Fixed(i32::MIN);

    /// The number made of `bits` steps of 1/65536.
    pub const fn from_bits(bits: i32) -> Fixed {
        Fixed(bits)
    }

    /// The number as steps of 1/65536.
    pub const fn to_bits(self) -> i32 {
        self.0
    }

    /// A whole number.
    pub const fn from_int(whole: i32) -> Fixed {
        saturated((whole as i64) << Fixed::FRACTION_BITS)
    }

    /// The number `numerator`/`denominator`.
    ///
    /// # Panics
    /// If `denominator` is zero; in a `const` that is a compile error.
    pub const fn ratio(numerator: i32, denominator: i32) -> Fixed {
        saturated(floor_div((numerator as i64) << Fixed::FRACTION_BITS, denominator as i64))
    }

    /// The whole number at or below.
    pub const fn floor(self) -> i32 {
        self.0 >> Fixed::FRACTION_BITS
    }

    /// The nearest whole number; halves go up.
    pub const fn round(self) -> i32 {
        ((self.0 as i64 + (1 << (Fixed::FRACTION_BITS - 1))) >> Fixed::FRACTION_BITS) as i32
    }

    /// As a float, for drawing. Exact.
    pub const fn to_f64(self) -> f64 {
        self.0 as f64 / 65_536.0
    }

    /// Without the sign.
    pub const fn abs(self) -> Fixed {
        Fixed(self.0.saturating_abs())
    }

    /// -1, 0 or 1.
    pub const fn signum(self) -> i32 {
        self.0.signum()
    }

    /// The square root; zero below zero.
    pub const fn sqrt(self) -> Fixed {
        if self.0 <= 0 {
            return Fixed::ZERO;
        }
        // √(bits / 2¹⁶) · 2¹⁶ = √(bits · 2¹⁶), which fits easily.
        Fixed(((self.0 as u64) << Fixed::FRACTION_BITS).isqrt() as i32)
    }
}

const fn saturated(bits: i64) -> Fixed {
    if bits > i32::MAX as i64 {
        Fixed::MAX
    } else if bits < i32::MIN as i64 {
        Fixed::MIN
    } else {
        Fixed(bits as i32)
    }
}

/// Rounds down, as the shift in a multiplication does.
const fn floor_div(numerator: i64, denominator: i64) -> i64 {
    let quotient = numerator / denominator;
    let exact = numerator % denominator == 0;
    if exact || (numerator < 0) == (denominator < 0) { quotient } else { quotient - 1 }
}

impl Add for Fixed {
    type Output = Fixed;
    fn add(self, other: Fixed) -> Fixed {
        Fixed(self.0.saturating_add(other.0))
    }
}

impl Sub for Fixed {
    type Output = Fixed;
    fn sub(self, other: Fixed) -> Fixed {
        Fixed(self.0.saturating_sub(other.0))
    }
}

impl Neg for Fixed {
    type Output = Fixed;
    fn neg(self) -> Fixed {
        Fixed(self.0.saturating_neg())
    }
}

impl Mul for Fixed {
    type Output = Fixed;
    fn mul(self, other: Fixed) -> Fixed {
        saturated((i64::from(self.0) * i64::from(other.0)) >> Fixed::FRACTION_BITS)
    }
}

impl Div for Fixed {
    type Output = Fixed;
    fn div(self, other: Fixed) -> Fixed {
        Fixed::ratio(self.0, other.0)
    }
}

impl AddAssign for Fixed {
    fn add_assign(&mut self, other: Fixed) {
        *self = *self + other;
    }
}

impl SubAssign for Fixed {
    fn sub_assign(&mut self, other: Fixed) {
        *self = *self - other;
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f64().fmt(f)
    }
}

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fixed({self})")
    }
}
