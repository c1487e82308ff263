//! Vectors of two and three floats.

use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use super::{atan2, sin_cos, sqrt};

macro_rules! vector {
    ($(#[$doc:meta])* $name:ident { $($field:ident),* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
        pub struct $name {
            $(#[expect(missing_docs, reason = "a coordinate")] pub $field: f32,)*
        }

        impl $name {
            /// The origin.
            pub const ZERO: $name = $name { $($field: 0.0),* };

            /// The vector with these coordinates.
            pub const fn new($($field: f32),*) -> $name {
                $name { $($field),* }
            }

            /// The scalar product, summed from left to right.
            pub fn dot(self, other: $name) -> f32 {
                [$(self.$field * other.$field),*].into_iter().fold(0.0, |sum, part| sum + part)
            }

            /// The square of the length: cheaper than the length, and enough to compare.
            pub fn length_squared(self) -> f32 {
                self.dot(self)
            }

            /// The length.
            pub fn length(self) -> f32 {
                sqrt(self.length_squared())
            }

            /// The distance to `other`.
            pub fn distance(self, other: $name) -> f32 {
                (other - self).length()
            }

            /// The vector of length 1 in this direction; zero if there is no direction (too short, infinite, NaN).
            pub fn normalised(self) -> $name {
                let length = self.length();
                if length > 0.0 && length.is_finite() { self / length } else { $name::ZERO }
            }

            /// Interpolates linearly to `other` by `t`.
            pub fn lerp(self, other: $name, t: f32) -> $name {
                self + (other - self) * t
            }
        }

        impl Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name { $($field: self.$field + other.$field),* }
            }
        }

        impl Sub for $name {
            type Output = $name;
            fn sub(self, other: $name) -> $name {
                $name { $($field: self.$field - other.$field),* }
            }
        }

        impl Neg for $name {
            type Output = $name;
            fn neg(self) -> $name {
                $name { $($field: -self.$field),* }
            }
        }

        impl Mul<f32> for $name {
            type Output = $name;
            fn mul(self, by: f32) -> $name {
                $name { $($field: self.$field * by),* }
            }
        }

        impl Div<f32> for $name {
            type Output = $name;
            fn div(self, by: f32) -> $name {
                $name { $($field: self.$field / by),* }
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                *self = *self + other;
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: $name) {
                *self = *self - other;
            }
        }

        impl MulAssign<f32> for $name {
            fn mul_assign(&mut self, by: f32) {
                *self = *self * by;
            }
        }
    };
}

vector!(
    /// A point or direction in the plane.
    Vec2 { x, y }
);

vector!(
    /// A point or direction in space.
    Vec3 { x, y, z }
);

impl Vec2 {
    /// The vector of length 1 at this angle from the x axis, in radians.
    pub fn from_angle(radians: f32) -> Vec2 {
        let (y, x) = sin_cos(radians);
        Vec2 { x, y }
    }

    /// The angle from the x axis, from -π to π.
    pub fn angle(self) -> f32 {
        atan2(self.y, self.x)
    }

    /// Turned by an angle, in radians, from x towards y.
    pub fn rotated(self, radians: f32) -> Vec2 {
        let (sin, cos) = sin_cos(radians);
        Vec2 { x: self.x * cos - self.y * sin, y: self.x * sin + self.y * cos }
    }

    /// Turned by a quarter from x towards y. Exact.
    pub fn perpendicular(self) -> Vec2 {
        Vec2 { x: -self.y, y: self.x }
    }
}

impl Vec3 {
    /// The vector product.
    pub fn cross(self, other: Vec3) -> Vec3 {
        Vec3 {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }
}
