//! Rotations in space, as quaternions.

use core::ops::Mul;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use super::{Vec3, acos, clamp, sin, sin_cos, sqrt};

/// A rotation in space, as a quaternion of length 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[expect(missing_docs, reason = "the parts have no other names")]
pub struct Quat {
    pub x: f32,
    pub y: f32,
    pub z: f32,
    pub w: f32,
}

impl Quat {
    /// No rotation.
    pub const IDENTITY: Quat = Quat { x: 0.0, y: 0.0, z: 0.0, w: 1.0 };

    /// A rotation by an angle, in radians, around an axis; none if the axis has no direction.
    pub fn from_axis_angle(axis: Vec3, radians: f32) -> Quat {
        let axis = axis.normalised();
        if axis == Vec3::ZERO {
            return Quat::IDENTITY;
        }
        let (sin, cos) = sin_cos(radians * 0.5);
        Quat { x: axis.x * sin, y: axis.y * sin, z: axis.z * sin, w: cos }
    }

    /// The inverse rotation.
    pub fn inverse(self) -> Quat {
        Quat { x: -self.x, y: -self.y, z: -self.z, w: self.w }
    }

    /// The rotated vector.
    pub fn rotate(self, v: Vec3) -> Vec3 {
        let axis = Vec3::new(self.x, self.y, self.z);
        let twice = axis.cross(v) * 2.0;
        v + twice * self.w + axis.cross(twice)
    }

    /// The scalar product: 1 or -1 for the same rotation.
    pub fn dot(self, other: Quat) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z + self.w * other.w
    }

    /// Normalised to length 1, from which products drift; the identity if the length is zero.
    pub fn normalised(self) -> Quat {
        let length = sqrt(self.dot(self));
        if length > 0.0 && length.is_finite() { self.scaled(1.0 / length) } else { Quat::IDENTITY }
    }

    /// Interpolates to `other` by `t`, the short way round, at constant speed.
    pub fn slerp(self, other: Quat, t: f32) -> Quat {
        let dot = self.dot(other);
        let other = if dot < 0.0 { other.scaled(-1.0) } else { other };
        let angle = acos(clamp(if dot < 0.0 { -dot } else { dot }, 0.0, 1.0));
        let whole = sin(angle);
        // Too close for the division below; linear interpolation is as good there.
        if whole < 1e-4 {
            return self.plus(other.plus(self.scaled(-1.0)).scaled(t)).normalised();
        }
        let (from, to) = (sin((1.0 - t) * angle) / whole, sin(t * angle) / whole);
        self.scaled(from).plus(other.scaled(to)).normalised()
    }

    fn scaled(self, by: f32) -> Quat {
        Quat { x: self.x * by, y: self.y * by, z: self.z * by, w: self.w * by }
    }

    fn plus(self, other: Quat) -> Quat {
        Quat { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z, w: self.w + other.w }
    }
}

impl Default for Quat {
    fn default() -> Quat {
        Quat::IDENTITY
    }
}

impl Mul for Quat {
    type Output = Quat;

    /// First `other`, then `self`.
    fn mul(self, other: Quat) -> Quat {
        let (a, b) = (self, other);
        Quat {
            x: a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            y: a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            z: a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
            w: a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
        }
    }
}
