//! Deterministic maths: edge cases here; exact bits on every platform are tested in the conformance crate.

use proptest::prelude::*;
use sametick_sim::maths::{self, Real};
use sametick_sim::{Fixed, Quat, Vec2, Vec3};

fn near(a: f32, b: f32) -> bool {
    maths::abs(a - b) < 1e-4
}

fn near3(a: Vec3, b: Vec3) -> bool {
    near(a.x, b.x) && near(a.y, b.y) && near(a.z, b.z)
}

#[test]
fn golden_bits() {
    let bits = [
        maths::sin(1e6_f32),
        maths::cos(0.7),
        maths::pow(1.1, 33.3),
        maths::atan2(-3.0, -0.1),
        maths::ln(7.7),
    ];
    assert_eq!(bits.map(f32::to_bits), [0xbeb3_3259, 0x3f43_ccb3, 0x41bf_30d0, 0xbfcd_53b7, 0x4002_a35a]);
    let bits =
        [maths::sin(1e15_f64), maths::tan(1.5), maths::exp(12.5), maths::hypot(1e-3, 7.0), maths::cbrt(-2.0)];
    assert_eq!(
        bits.map(f64::to_bits),
        [
            0x3feb_76f8_8136_ceba,
            0x402c_33ed_50b8_8777,
            0x4110_60c5_2565_ba66,
            0x401c_0000_04cb_222d,
            0xbff4_28a2_f98d_728b
        ]
    );
}

fn zero_and_nan_rules<R: Real>(zero: R, minus: R, nan: R, show: impl Fn(R) -> String) {
    assert_eq!(show(maths::min(zero, minus)), "0.0");
    assert_eq!(show(maths::min(minus, zero)), "-0.0");
    assert_eq!(show(maths::max(minus, zero)), "-0.0");
    assert_eq!(show(maths::min(nan, zero)), "0.0");
    assert_eq!(show(maths::max(zero, nan)), "0.0");
    assert_eq!(show(maths::clamp(nan, minus, zero)), "NaN");
}

#[test]
fn min_max_and_clamp_leave_nothing_open() {
    zero_and_nan_rules(0.0_f32, -0.0, f32::NAN, |x| format!("{x:?}"));
    zero_and_nan_rules(0.0_f64, -0.0, f64::NAN, |x| format!("{x:?}"));
}

#[test]
fn the_sign_of_a_nan_does_not_show() {
    for nan in [f32::NAN, -f32::NAN] {
        assert_eq!(maths::copysign(-2.0, nan), 2.0);
    }
    assert_eq!((maths::copysign(2.0, -0.0), maths::copysign(-2.0_f64, 1.0)), (-2.0, 2.0));
}

#[test]
fn whole_powers() {
    assert_eq!(maths::powi(3.0_f64, 4), 81.0);
    assert_eq!(maths::powi(2.0_f32, -2), 0.25);
    assert_eq!(maths::powi(7.0_f32, 0), 1.0);
    assert_eq!(maths::powi(1.0_f32, i32::MIN), 1.0);
}

#[test]
fn rounding() {
    assert_eq!([0.5_f32, 1.5, -0.5, 2.4].map(maths::round), [1.0, 2.0, -1.0, 2.0]);
    assert_eq!([0.5_f32, 1.5, -0.5, 2.5].map(maths::round_even), [0.0, 2.0, 0.0, 2.0]);
    assert_eq!([1.5_f64, -1.5].map(maths::trunc), [1.0, -1.0]);
}

#[test]
fn directions_that_do_not_exist_are_zero() {
    for v in [Vec2::ZERO, Vec2::new(f32::NAN, 1.0), Vec2::new(f32::INFINITY, 0.0)] {
        assert_eq!(v.normalised(), Vec2::ZERO);
    }
    assert_eq!(Quat::from_axis_angle(Vec3::ZERO, 1.0), Quat::IDENTITY);
}

#[test]
fn a_quarter_turn() {
    let turn = Quat::from_axis_angle(Vec3::new(0.0, 0.0, 2.0), core::f32::consts::FRAC_PI_2);
    assert!(near3(turn.rotate(Vec3::new(1.0, 0.0, 0.0)), Vec3::new(0.0, 1.0, 0.0)));
    assert!(near3((turn * turn).rotate(Vec3::new(1.0, 0.0, 0.0)), Vec3::new(-1.0, 0.0, 0.0)));
    let half = Quat::IDENTITY.slerp(turn, 0.5);
    assert!(near3((half * half).rotate(Vec3::new(1.0, 0.0, 5.0)), Vec3::new(0.0, 1.0, 5.0)));
    assert_eq!(Vec2::new(1.0, 2.0).perpendicular(), Vec2::new(-2.0, 1.0));
    assert!(near(Vec2::from_angle(2.0).rotated(0.5).angle(), 2.5));
}

fn small() -> impl Strategy<Value = f32> {
    -10.0_f32..10.0
}

proptest! {
    #[test]
    fn a_rotation_keeps_lengths_and_can_be_undone(a in [small(), small(), small()], v in [small(), small(), small()], angle in small()) {
        let [x, y, z] = v;
        let v = Vec3::new(x, y, z);
        let turn = Quat::from_axis_angle(Vec3::new(a[0], a[1], a[2]), angle);
        let turned = turn.rotate(v);
        prop_assert!(near(turned.length(), v.length()));
        prop_assert!(near3(turn.inverse().rotate(turned), v));
    }

    #[test]
    fn fixed_point_follows_the_integers(a in any::<i32>(), b in any::<i32>()) {
        let (x, y) = (Fixed::from_bits(a), Fixed::from_bits(b));
        let clamped = |wide: i128| Fixed::from_bits(wide.clamp(i32::MIN.into(), i32::MAX.into()) as i32);
        let (a, b) = (i128::from(a), i128::from(b));
        prop_assert_eq!(x + y, clamped(a + b));
        prop_assert_eq!(x - y, clamped(a - b));
        prop_assert_eq!(x * y, clamped((a * b).div_euclid(65_536)));
        if b > 0 {
            prop_assert_eq!(x / y, clamped((a * 65_536).div_euclid(b)));
        }
        prop_assert_eq!(i128::from(x.floor()), a.div_euclid(65_536));
    }

    #[test]
    fn fixed_roots_are_the_largest_whose_square_fits(bits in 0..i32::MAX) {
        let root = i64::from(Fixed::from_bits(bits).sqrt().to_bits());
        let square = i64::from(bits) << 16;
        prop_assert!(root * root <= square && (root + 1) * (root + 1) > square);
    }
}

#[test]
fn fixed_numbers_stop_at_the_ends() {
    assert_eq!(Fixed::from_int(40_000), Fixed::MAX);
    assert_eq!(-Fixed::MIN, Fixed::MAX);
    assert_eq!(Fixed::MIN.abs(), Fixed::MAX);
    assert_eq!(Fixed::MAX + Fixed::ONE, Fixed::MAX);
    assert_eq!(Fixed::ratio(-1, 2).floor(), -1);
    assert_eq!((Fixed::ratio(-1, 2).round(), Fixed::ratio(5, 2).round(), Fixed::MAX.round()), (0, 3, 32_768));
    assert_eq!(Fixed::from_int(-9).sqrt(), Fixed::ZERO);
}
