//! Every function of `maths`, in both widths.

use alloc::vec::Vec;

use sametick_sim::maths::{self, Real};

/// Appends the results of every function for a pair of `f32`.
pub(crate) fn singles([x, y]: [f32; 2], out: &mut Vec<f32>) {
    all(x, y, out);
    out.extend([x + y, x - y, x * y, x / y, x % y, x * y + x, (x as i32) as f32, (y as u64) as f32]);
    // A NaN that the processor produces, with its sign.
    out.push(maths::copysign(y, maths::sqrt(-1.0 - maths::abs(x))));
    out.push(f64::from(x) as f32);
}

/// Appends the results of every function for a pair of `f64`.
pub(crate) fn doubles([x, y]: [f64; 2], out: &mut Vec<f64>) {
    all(x, y, out);
    out.extend([x + y, x - y, x * y, x / y, x % y, x * y + x, (x as i64) as f64, (y as u64) as f64]);
    out.push(maths::copysign(y, maths::sqrt(-1.0 - maths::abs(x))));
    out.push(f64::from(x as f32));
}

fn all<R: Real>(x: R, y: R, out: &mut Vec<R>) {
    let unary = [
        maths::sqrt,
        maths::cbrt,
        maths::sin,
        maths::cos,
        maths::tan,
        maths::asin,
        maths::acos,
        maths::atan,
        maths::sinh,
        maths::cosh,
        maths::tanh,
        maths::exp,
        maths::exp2,
        maths::ln,
        maths::log2,
        maths::log10,
        maths::floor,
        maths::ceil,
        maths::round,
        maths::round_even,
        maths::trunc,
        maths::abs,
    ];
    let binary =
        [maths::pow, maths::atan2, maths::hypot, maths::copysign, maths::rem, maths::min, maths::max];
    out.extend(unary.map(|function| function(x)));
    out.extend(binary.map(|function| function(x, y)));
    out.extend([maths::clamp(x, y, x), maths::powi(x, 7), maths::powi(y, -3)]);
    let (sin, cos) = maths::sin_cos(y);
    out.extend([sin, cos]);
}
