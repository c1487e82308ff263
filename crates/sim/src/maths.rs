//! Maths with the same result on every platform.
//!
//! Addition, subtraction, multiplication, division, remainder and comparison of floats are exact in Rust on every
//! supported target, and so are conversions. Everything else comes from here: the functions are libm's, compiled into
//! the game, never those of the operating system or the browser. They are free functions on purpose: a method `sin`
//! would silently lose against the one of `std`.
//!
//! NaN is the one value to keep out of decisions about bits: which NaN an operation yields is up to the processor.
//! `is_nan()` is fine; `to_bits()`, `total_cmp()` and anything else that sees the sign of a NaN is not.
//!
//! ```
//! use sametick_sim::maths;
//!
//! assert_eq!(maths::sqrt(2.0_f32), 1.414_213_5);
//! assert_eq!(maths::sin(0.5_f64), 0.479_425_538_604_203);
//! ```

mod fixed;
mod quat;
mod vec;

pub use fixed::Fixed;
pub use quat::Quat;
pub use vec::{Vec2, Vec3};

/// `f32` or `f64`, the argument types of this module's functions.
pub trait Real: sealed::Real {}

impl Real for f32 {}
impl Real for f64 {}

macro_rules! functions {
    (
        unary { $($(#[$doc1:meta])* $name1:ident = $f32_1:ident, $f64_1:ident;)* }
        binary { $($(#[$doc2:meta])* $name2:ident = $f32_2:ident, $f64_2:ident;)* }
    ) => {
        mod sealed {
            pub trait Real: Copy + PartialOrd + core::ops::Mul<Output = Self> + core::ops::Div<Output = Self> {
                const ONE: Self;
                fn with_sign_of(self, other: Self) -> Self;
                $(fn $name1(self) -> Self;)*
                $(fn $name2(self, other: Self) -> Self;)*
            }

            impl Real for f32 {
                const ONE: f32 = 1.0;
                #[inline] fn with_sign_of(self, other: f32) -> f32 { libm::copysignf(self, other) }
                $(#[inline] fn $name1(self) -> f32 { libm::$f32_1(self) })*
                $(#[inline] fn $name2(self, other: f32) -> f32 { libm::$f32_2(self, other) })*
            }

            impl Real for f64 {
                const ONE: f64 = 1.0;
                #[inline] fn with_sign_of(self, other: f64) -> f64 { libm::copysign(self, other) }
                $(#[inline] fn $name1(self) -> f64 { libm::$f64_1(self) })*
                $(#[inline] fn $name2(self, other: f64) -> f64 { libm::$f64_2(self, other) })*
            }
        }

        $($(#[$doc1])*
        #[inline]
        pub fn $name1<R: Real>(x: R) -> R {
            sealed::Real::$name1(x)
        })*

        $($(#[$doc2])*
        #[inline]
        pub fn $name2<R: Real>(x: R, y: R) -> R {
            sealed::Real::$name2(x, y)
        })*
    };
}

functions! {
    unary {
        /// The square root; NaN below zero.
        sqrt = sqrtf, sqrt;
        /// The cube root.
        cbrt = cbrtf, cbrt;
        /// The sine of an angle in radians.
        sin = sinf, sin;
        /// The cosine of an angle in radians.
        cos = cosf, cos;
        /// The tangent of an angle in radians.
        tan = tanf, tan;
        /// The angle with this sine; NaN outside -1 to 1.
        asin = asinf, asin;
        /// The angle with this cosine; NaN outside -1 to 1.
        acos = acosf, acos;
        /// The angle with this tangent.
        atan = atanf, atan;
        /// The hyperbolic sine.
        sinh = sinhf, sinh;
        /// The hyperbolic cosine.
        cosh = coshf, cosh;
        /// The hyperbolic tangent.
        tanh = tanhf, tanh;
        /// e to the power of `x`.
        exp = expf, exp;
        /// 2 to the power of `x`.
        exp2 = exp2f, exp2;
        /// The natural logarithm; NaN below zero.
        ln = logf, log;
        /// The logarithm to base 2; NaN below zero.
        log2 = log2f, log2;
        /// The logarithm to base 10; NaN below zero.
        log10 = log10f, log10;
        /// The next whole number at or below.
        floor = floorf, floor;
        /// The next whole number at or above.
        ceil = ceilf, ceil;
        /// The nearest whole number; halves go away from zero.
        round = roundf, round;
        /// The nearest whole number; halves go to the even one.
        round_even = rintf, rint;
        /// The whole number towards zero.
        trunc = truncf, trunc;
        /// The number without its sign.
        abs = fabsf, fabs;
    }
    binary {
        /// `x` to the power of `y`.
        pow = powf, pow;
        /// The angle of the point (`y`, `x`), from -π to π. Mind the order.
        atan2 = atan2f, atan2;
        /// The length of the vector (`x`, `y`), also where the squares would overflow.
        hypot = hypotf, hypot;
        /// What remains of `x` after division by `y`, with the sign of `x`. Exact; the same as `x % y`.
        rem = fmodf, fmod;
    }
}

/// Sine and cosine of an angle in radians.
#[inline]
pub fn sin_cos<R: Real>(x: R) -> (R, R) {
    (sin(x), cos(x))
}

/// `x` to a whole power, by repeated multiplication in a fixed order.
///
/// `powi` of `std` leaves that order to the compiler.
pub fn powi<R: Real>(x: R, power: i32) -> R {
    let (mut result, mut square, mut left) = (R::ONE, x, power.unsigned_abs());
    while left > 0 {
        if left & 1 == 1 {
            result = result * square;
        }
        square = square * square;
        left >>= 1;
    }
    if power < 0 { R::ONE / result } else { result }
}

/// The number `x` with the sign of `y`. The sign of a NaN differs between machines, and counts as positive.
#[inline]
#[expect(clippy::eq_op, reason = "only a NaN differs from itself")]
pub fn copysign<R: Real>(x: R, y: R) -> R {
    if y != y { abs(x) } else { x.with_sign_of(y) }
}

/// The smaller of the two; the other one if one is NaN, `x` if they are equal.
///
/// `f32::min` leaves open which zero it returns for 0.0 and -0.0.
#[inline]
#[expect(clippy::eq_op, reason = "only a NaN differs from itself")]
pub fn min<R: Real>(x: R, y: R) -> R {
    if y < x || x != x { y } else { x }
}

/// The larger of the two; the other one if one is NaN, `x` if they are equal.
#[inline]
#[expect(clippy::eq_op, reason = "only a NaN differs from itself")]
pub fn max<R: Real>(x: R, y: R) -> R {
    if y > x || x != x { y } else { x }
}

/// `x`, but not below `low` and not above `high`. NaN stays NaN.
#[inline]
pub fn clamp<R: Real>(x: R, low: R, high: R) -> R {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}
