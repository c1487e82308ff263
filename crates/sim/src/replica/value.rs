//! Field values as codes: whole numbers in slots, each type in its own encoding.

use alloc::vec::Vec;

use serde::{Serialize, Serializer};

use super::{Code, Motion};
use crate::quantise::Quaternion;
use crate::{Fixed, Quat, Seat, Tick, Vec2, Vec3};

/// A type that a field can have.
pub trait Value: Clone + Sized {
    /// The number of slots.
    const SLOTS: usize;

    /// The code of a field of this type, in steps of 1.
    const CODE: Code = Code::Whole { step: 1 };

    /// How a field of this type changes, unless it is declared otherwise.
    const MOTION: Motion = Motion::Step;

    /// Writes its codes.
    fn put(&self, code: &Code, slots: &mut [i32]);

    /// The value of codes; none if they are invalid.
    fn take(code: &Code, slots: &[i32]) -> Option<Self>;

    /// Interpolates to another value by `t`.
    fn between(&self, to: &Self, t: f32, motion: Motion) -> Self;

    /// The value as a position, if it is one.
    fn place(&self) -> Option<[f32; 3]> {
        None
    }

    /// The value without its type.
    fn to_plain(&self) -> Plain;
}

/// A value without its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    /// Nothing.
    Nothing,
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A real number.
    Real(f32),
    /// Several values.
    List(Vec<Plain>),
}

impl Serialize for Plain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Plain::Nothing => serializer.serialize_none(),
            Plain::Flag(flag) => serializer.serialize_bool(*flag),
            Plain::Whole(number) => serializer.serialize_i64(*number),
            Plain::Real(number) => serializer.serialize_f32(*number),
            Plain::List(list) => list.serialize(serializer),
        }
    }
}

/// The plain value of codes, for [`Field::plain`](super::Field::plain).
pub fn plain_of<T: Value>(code: &Code, slots: &[i32]) -> Option<Plain> {
    Some(T::take(code, slots)?.to_plain())
}

fn first(slots: &[i32]) -> Option<i32> {
    slots.first().copied()
}

fn set(slots: &mut [i32], code: i32) {
    if let Some(slot) = slots.first_mut() {
        *slot = code;
    }
}

/// Rounded to the nearest step, halves away from zero.
fn whole_code(value: i64, code: &Code) -> i32 {
    let step = match code {
        Code::Whole { step } if *step > 1 => i64::from(*step),
        _ => return value as i32,
    };
    let half = if value < 0 { -step / 2 } else { step / 2 };
    ((value + half) / step).clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

fn whole_value(slots: &[i32], code: &Code) -> Option<i64> {
    let step = match code {
        Code::Whole { step } => i64::from(*step).max(1),
        _ => 1,
    };
    Some(i64::from(first(slots)?) * step)
}

/// Interpolates between two whole numbers by `t`.
fn whole_between(from: i64, to: i64, t: f32, motion: Motion) -> i64 {
    let way = match motion {
        Motion::Smooth => to - from,
        Motion::Turn(circle) => {
            let circle = i64::from(circle).max(1);
            (to - from + circle / 2).rem_euclid(circle) - circle / 2
        }
        Motion::Step | Motion::Rotation => return if t < 1.0 { from } else { to },
    };
    let moved = from + crate::maths::round(way as f64 * f64::from(t)) as i64;
    match motion {
        Motion::Turn(circle) => moved.rem_euclid(i64::from(circle).max(1)),
        _ => moved,
    }
}

macro_rules! whole {
    ($($ty:ty),*) => {$(
        impl Value for $ty {
            const SLOTS: usize = 1;

            fn put(&self, code: &Code, slots: &mut [i32]) {
                set(slots, whole_code(i64::from(*self), code));
            }

            fn take(code: &Code, slots: &[i32]) -> Option<$ty> {
                <$ty>::try_from(whole_value(slots, code)?).ok()
            }

            fn between(&self, to: &$ty, t: f32, motion: Motion) -> $ty {
                <$ty>::try_from(whole_between((*self).into(), (*to).into(), t, motion)).unwrap_or(*to)
            }

            fn to_plain(&self) -> Plain {
                Plain::Whole((*self).into())
            }
        }
    )*};
}

whole!(u8, i8, u16, i16, i32);

/// Implements `Value` for types that convert to and from whole numbers.
macro_rules! clothed {
    ($($ty:ty: $inner:ty, $of:expr, $to:expr;)*) => {$(
        impl Value for $ty {
            const SLOTS: usize = 1;

            fn put(&self, code: &Code, slots: &mut [i32]) {
                let to: fn(&$ty) -> $inner = $to;
                Value::put(&to(self), code, slots);
            }

            fn take(code: &Code, slots: &[i32]) -> Option<$ty> {
                let of: fn($inner) -> Option<$ty> = $of;
                of(<$inner>::take(code, slots)?)
            }

            fn between(&self, other: &$ty, t: f32, motion: Motion) -> $ty {
                let (of, to): (fn($inner) -> Option<$ty>, fn(&$ty) -> $inner) = ($of, $to);
                of(to(self).between(&to(other), t, motion)).unwrap_or_else(|| other.clone())
            }

            fn to_plain(&self) -> Plain {
                let to: fn(&$ty) -> $inner = $to;
                to(self).to_plain()
            }
        }
    )*};
}

clothed! {
    Seat: u16, |number| Some(Seat(number)), |seat| seat.0;
    Fixed: i32, |bits| Some(Fixed::from_bits(bits)), |fixed| fixed.to_bits();
}

/// Implements `Value` for numbers whose 32 bits are kept unchanged.
macro_rules! bits {
    ($($ty:ty: $to:expr, $of:expr;)*) => {$(
        impl Value for $ty {
            const SLOTS: usize = 1;

            fn put(&self, _: &Code, slots: &mut [i32]) {
                let to: fn($ty) -> i32 = $to;
                set(slots, to(*self));
            }

            fn take(_: &Code, slots: &[i32]) -> Option<$ty> {
                let of: fn(i32) -> $ty = $of;
                first(slots).map(of)
            }

            fn between(&self, to: &$ty, t: f32, _: Motion) -> $ty {
                if t < 1.0 { *self } else { *to }
            }

            fn to_plain(&self) -> Plain {
                let to: fn($ty) -> i32 = $to;
                Plain::Whole((to(*self) as u32).into())
            }
        }
    )*};
}

bits! {
    u32: |number| number as i32, |bits| bits as u32;
    Tick: |tick| tick.0 as i32, |bits| Tick(bits as u32);
}

impl Value for bool {
    const SLOTS: usize = 1;

    fn put(&self, _: &Code, slots: &mut [i32]) {
        set(slots, (*self).into());
    }

    fn take(_: &Code, slots: &[i32]) -> Option<bool> {
        match first(slots)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn between(&self, to: &bool, t: f32, _: Motion) -> bool {
        if t < 1.0 { *self } else { *to }
    }

    fn to_plain(&self) -> Plain {
        Plain::Flag(*self)
    }
}

impl Value for f32 {
    const SLOTS: usize = 1;

    const CODE: Code = Code::Real { step: 1.0 };
    const MOTION: Motion = Motion::Smooth;

    fn put(&self, code: &Code, slots: &mut [i32]) {
        let step = match code {
            Code::Real { step } => f64::from(*step),
            _ => 1.0,
        };
        // The cast saturates, and makes zero of NaN.
        set(slots, crate::maths::round(f64::from(*self) / step) as i32);
    }

    fn take(code: &Code, slots: &[i32]) -> Option<f32> {
        let step = match code {
            Code::Real { step } => f64::from(*step),
            _ => 1.0,
        };
        Some((f64::from(first(slots)?) * step) as f32)
    }

    fn between(&self, to: &f32, t: f32, motion: Motion) -> f32 {
        match motion {
            Motion::Smooth => self + (to - self) * t,
            _ if t < 1.0 => *self,
            _ => *to,
        }
    }

    fn to_plain(&self) -> Plain {
        Plain::Real(*self)
    }
}

macro_rules! vector {
    ($($ty:ident: $count:literal, $place:expr, $($field:ident)*;)*) => {$(
        impl Value for $ty {
            const SLOTS: usize = $count;

            const CODE: Code = Code::Real { step: 1.0 };
            const MOTION: Motion = Motion::Smooth;

            fn put(&self, code: &Code, slots: &mut [i32]) {
                [$(self.$field),*].put(code, slots);
            }

            fn take(code: &Code, slots: &[i32]) -> Option<$ty> {
                let [$($field),*] = Value::take(code, slots)?;
                Some($ty { $($field),* })
            }

            fn between(&self, to: &$ty, t: f32, motion: Motion) -> $ty {
                $ty { $($field: self.$field.between(&to.$field, t, motion)),* }
            }

            fn place(&self) -> Option<[f32; 3]> {
                let place: fn(&$ty) -> [f32; 3] = $place;
                Some(place(self))
            }

            fn to_plain(&self) -> Plain {
                [$(self.$field),*].to_plain()
            }
        }
    )*};
}

vector! {
    Vec2: 2, |at| [at.x, at.y, 0.0], x y;
    Vec3: 3, |at| [at.x, at.y, at.z], x y z;
}

impl Value for Quat {
    const SLOTS: usize = 4;

    const CODE: Code = Code::Rotation { bits: 9 };
    const MOTION: Motion = Motion::Rotation;

    fn put(&self, code: &Code, slots: &mut [i32]) {
        let Code::Rotation { bits } = code else { return };
        let packed = Quaternion::with_bits(*bits).encode([self.x, self.y, self.z, self.w]);
        let (mask, middle) = ((1u64 << bits) - 1, (1i32 << (bits - 1)) - 1);
        let [largest, rest @ ..] = slots else { return };
        *largest = (packed & 0b11) as i32;
        for (place, slot) in rest.iter_mut().take(3).enumerate() {
            *slot = (packed >> (2 + bits * place as u32) & mask) as i32 - middle;
        }
    }

    fn take(code: &Code, slots: &[i32]) -> Option<Quat> {
        let Code::Rotation { bits } = code else { return None };
        let (&[largest, a, b, c], middle) = (slots, (1i64 << (bits - 1)) - 1) else { return None };
        let mut packed = u64::try_from(largest).ok().filter(|largest| *largest < 4)?;
        for (place, component) in (0u32..).zip([a, b, c]) {
            let part = u64::try_from(i64::from(component) + middle).ok().filter(|part| part >> bits == 0)?;
            packed |= part << (2 + bits * place);
        }
        let [x, y, z, w] = Quaternion::with_bits(*bits).decode(packed)?;
        Some(Quat { x, y, z, w })
    }

    fn between(&self, to: &Quat, t: f32, _: Motion) -> Quat {
        self.slerp(*to, t)
    }

    fn to_plain(&self) -> Plain {
        [self.x, self.y, self.z, self.w].to_plain()
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    const SLOTS: usize = T::SLOTS * N;

    const CODE: Code = T::CODE;
    const MOTION: Motion = T::MOTION;

    fn put(&self, code: &Code, slots: &mut [i32]) {
        self.iter().zip(slots.chunks_mut(T::SLOTS)).for_each(|(value, slots)| value.put(code, slots));
    }

    fn take(code: &Code, slots: &[i32]) -> Option<[T; N]> {
        let value = |at: usize| T::take(code, slots.get(at * T::SLOTS..(at + 1) * T::SLOTS)?);
        let values: [Option<T>; N] = core::array::from_fn(value);
        let whole = values.iter().all(Option::is_some);
        whole.then(|| values.map(|value| value.expect("all are there")))
    }

    fn between(&self, to: &[T; N], t: f32, motion: Motion) -> [T; N] {
        core::array::from_fn(|at| self[at].between(&to[at], t, motion))
    }

    /// An array of two or three numbers is a position.
    fn place(&self) -> Option<[f32; 3]> {
        let mut place = [0.0; 3];
        if !(2..=3).contains(&N) {
            return None;
        }
        for (to, value) in place.iter_mut().zip(self) {
            *to = match value.to_plain() {
                Plain::Whole(number) => number as f32,
                Plain::Real(number) => number,
                _ => return None,
            };
        }
        Some(place)
    }

    fn to_plain(&self) -> Plain {
        Plain::List(self.iter().map(Value::to_plain).collect())
    }
}

impl<T: Value> Value for Option<T> {
    const SLOTS: usize = 1 + T::SLOTS;

    const CODE: Code = T::CODE;
    const MOTION: Motion = T::MOTION;

    /// An absent value has zeros, so that its codes are unique.
    fn put(&self, code: &Code, slots: &mut [i32]) {
        let Some((present, rest)) = slots.split_first_mut() else { return };
        *present = self.is_some().into();
        match self {
            Some(value) => value.put(code, rest),
            None => rest.fill(0),
        }
    }

    fn take(code: &Code, slots: &[i32]) -> Option<Option<T>> {
        let (present, rest) = slots.split_first()?;
        match present {
            0 => Some(None),
            1 => Some(Some(T::take(code, rest)?)),
            _ => None,
        }
    }

    fn between(&self, to: &Option<T>, t: f32, motion: Motion) -> Option<T> {
        match (self, to) {
            (Some(from), Some(to)) => Some(from.between(to, t, motion)),
            _ if t < 1.0 => self.clone(),
            _ => to.clone(),
        }
    }

    fn to_plain(&self) -> Plain {
        self.as_ref().map_or(Plain::Nothing, Value::to_plain)
    }
}
