//! Motion prediction for rotations: a rotation is a point on the unit sphere in four dimensions, and a steady rotation
//! follows a great circle. As in [`track`](crate::track) the motion is fitted to the values since the last surprise.

use sametick_sim::maths::sqrt;

use crate::track::{GAINS, Lane, POINTS, Span};

/// The fixed-point representation of one, for components.
const ONE_BITS: u32 = 30;
const ONE: i64 = 1 << ONE_BITS;
/// The square root of a half: no component but the largest is larger.
const MOST: i64 = 759_250_125;
/// The resolution of fractions of a code.
const FINE: i64 = 4_096;
/// The largest angle of one prediction step, as the square of half of it; beyond that nothing is predicted.
const MAX_TURN: i64 = ONE;
/// An error this many 16ths of a code above twice the usual one is a surprise.
const SURPRISE: i64 = 16;

/// A rotation as a point of length [`ONE`].
pub(crate) type Point = [i64; 4];

/// The quantisation of a rotation's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The highest code of a component; the lowest is its negative.
    highest: i64,
    /// The size of a code step, times 4,096.
    step: i64,
}

fn dot(a: &Point, b: &Point) -> i64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<i64>() >> ONE_BITS
}

fn times(factor: i64, point: &Point) -> Point {
    point.map(|part| (part * factor) >> ONE_BITS)
}

fn plus(a: &Point, b: &Point) -> Point {
    core::array::from_fn(|at| a[at] + b[at])
}

/// The index of the largest component, and its lead over the next, in the same unit.
pub(crate) fn largest(point: &Point) -> (usize, i64) {
    let (mut first, mut second) = ((0, point[0].abs()), 0);
    for (at, part) in point.iter().enumerate().skip(1) {
        if part.abs() > first.1 {
            second = first.1;
            first = (at, part.abs());
        } else if part.abs() > second {
            second = part.abs();
        }
    }
    (first.0, first.1 - second)
}

impl Scale {
    /// The scale for components of this many bits.
    pub(crate) fn with_bits(bits: u32) -> Scale {
        let highest = (1 << (bits.clamp(2, 20) - 1)) - 1;
        Scale { highest, step: MOST * 4_096 / highest }
    }

    /// Whether codes are a valid rotation.
    pub(crate) fn is_regular(&self, codes: &[i32]) -> bool {
        let [largest, rest @ ..] = codes else { return false };
        let highest = self.highest;
        (0..4).contains(largest) && rest.iter().all(|code| i64::from(*code).abs() <= highest)
    }

    /// The point of the codes, if they are a valid rotation.
    pub(crate) fn point(&self, codes: &[i32]) -> Option<Point> {
        let &[largest, a, b, c] = codes else { return None };
        let largest = usize::try_from(largest).ok().filter(|largest| *largest < 4)?;
        if !self.is_regular(codes) {
            return None;
        }
        let mut point = [0; 4];
        let mut rest = ONE * ONE;
        let mut place = 0;
        for code in [a, b, c].map(i64::from) {
            place += usize::from(place == largest);
            point[place] = (code * self.step) >> 12;
            rest -= point[place] * point[place];
            place += 1;
        }
        // IEEE 754 fixes every bit of a square root, and a processor computes it far faster than an integer root.
        point[largest] = sqrt(rest.max(0) as f64) as i64;
        Some(point)
    }

    /// The fine codes of a point if this component is the largest, lowest index first.
    pub(crate) fn codes(&self, point: &Point, largest: usize) -> [i64; 3] {
        let sign = if point[largest & 3] < 0 { -1 } else { 1 };
        let highest = self.highest * FINE;
        core::array::from_fn(|at| {
            let part = point[at + usize::from(at >= largest & 3)] * sign;
            // The product has 31 and 31 bits.
            part.clamp(-ONE, ONE) * highest / MOST
        })
    }

    /// A length, in codes.
    pub(crate) fn steps(&self, length: i64) -> i64 {
        length * self.highest / MOST
    }
}

fn place_of(lanes: &[Lane; 4]) -> Point {
    lanes.map(|lane| lane.off.into())
}

fn speed_of(lanes: &[Lane; 4]) -> Point {
    lanes.map(|lane| lane.speed.into())
}

/// The point and speed after moving along its great circle.
fn along(place: &Point, speed: &Point, elapsed: Span) -> (Point, Point) {
    let way = speed.map(|part| (part * elapsed.ticks).clamp(-ONE, ONE));
    let square = dot(&way, &way);
    if square > MAX_TURN {
        return (*place, [0; 4]);
    }
    let part = |of: i64| (square * of) >> ONE_BITS;
    // Taylor series of cosine, and of sine by its angle.
    let cosine = ONE - part(ONE / 2 - part(ONE / 24 - part(ONE / 720)));
    let sine = ONE - part(ONE / 6 - part(ONE / 120 - part(ONE / 5_040)));
    let there = plus(&times(cosine, place), &times(sine, &way));
    let back = -elapsed.part(part(sine));
    (there, plus(&times(cosine, speed), &times(back, place)))
}

/// Normalises a point that is nearly on the sphere.
fn onto(point: &Point) -> Point {
    let square = dot(point, point).clamp(0, 2 * ONE);
    times((3 * ONE - square) / 2, point)
}

/// Initialises the lanes of a new rotation, at rest.
pub(crate) fn begin(lanes: &mut [Lane; 4], place: Option<Point>) {
    for (at, lane) in lanes.iter_mut().enumerate() {
        *lane = Lane { off: place.map_or(0, |place| place[at] as i32), ..Lane::NEW };
    }
    lanes[0].points = u8::from(place.is_some());
}

/// The speed at the end of a short arc: its length is the sine of the angle, nearly the angle itself.
fn speed_at(end: &Point, start: &Point, elapsed: Span) -> Point {
    let start = if dot(start, end) < 0 { start.map(|part| -part) } else { *start };
    let arc = plus(&times(dot(&start, end), end), &start.map(|part| -part));
    arc.map(|part| elapsed.part(part))
}

/// The predicted point and speed, from the codes of the base.
pub(crate) fn predict(
    lanes: &[Lane; 4],
    scale: &Scale,
    base: &[i32],
    elapsed: Span,
    rests: bool,
) -> (Point, Point) {
    if rests || lanes[0].points == 0 {
        return (scale.point(base).unwrap_or_default(), [0; 4]);
    }
    along(&place_of(lanes), &speed_of(lanes), elapsed)
}

/// Updates the motion with the actual rotation.
pub(crate) fn learn(
    lanes: &mut [Lane; 4],
    scale: &Scale,
    base: &[i32],
    (there, speed): &(Point, Point),
    elapsed: Span,
    rests: bool,
    now: &Point,
) {
    let now = if dot(there, now) < 0 { now.map(|part| -part) } else { *now };
    let error: Point = core::array::from_fn(|at| now[at] - there[at]);
    let size = scale.steps(error.iter().map(|part| part.abs()).fold(0, i64::max) * 16);
    let surprised = lanes[0].note(size, SURPRISE) || rests;
    let points = if surprised { 1 } else { (lanes[0].points + 1).min(POINTS as u8) };
    let (place, speed) = if surprised {
        (now, speed_at(&now, &scale.point(base).unwrap_or_default(), elapsed))
    } else {
        let (near, fast) = GAINS[usize::from(points)];
        let place = onto(&core::array::from_fn(|at| there[at] + error[at] * near / 4_096));
        let speed = core::array::from_fn(|at| speed[at] + elapsed.part(error[at] * fast / 4_096));
        let out = dot(&place, &speed);
        (place, plus(&speed, &times(-out, &place)))
    };
    for (at, lane) in lanes.iter_mut().enumerate() {
        lane.off = place[at].clamp(-2 * ONE + 1, 2 * ONE - 1) as i32;
        lane.speed = speed[at].clamp(-ONE, ONE) as i32;
    }
    lanes[0].points = points;
}
