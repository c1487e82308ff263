//! Motion prediction for numbers: predicts a slot from its earlier values.
//!
//! Codes are rounded, so two of them determine a slow motion badly, and many do better: a line is fitted through the
//! values since the last surprise. All arithmetic is on integers, so that both ends predict the same.

use crate::models::{JOLTS, NOISES, SHADES};

/// The resolution of fractions of a code, in bits.
const FINE_BITS: u32 = 12;
const FINE: i64 = 1 << FINE_BITS;
/// The resolution of a pull, which is a change of speed, in bits.
const PULL_BITS: u32 = 20;
/// The most ticks over which a motion is predicted.
pub(crate) const MAX_ELAPSED: u32 = 1_024;
/// The line is fitted through this many points; older ones fade.
pub(crate) const POINTS: usize = 4;
/// An error this many 16ths of a code above twice the usual one is a surprise.
const SURPRISE: i64 = 8;

/// A number of ticks, as a divisor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) ticks: i64,
    /// 2^32 times its reciprocal.
    inverse: i64,
}

impl Span {
    /// A span of at least one tick, and at most the predicted range.
    pub(crate) fn new(ticks: u32) -> Span {
        let ticks = i64::from(ticks.clamp(1, MAX_ELAPSED));
        Span { ticks, inverse: (1 << 32) / ticks }
    }

    /// Divides a distance by the ticks. Multiplication by the reciprocal is much faster.
    pub(crate) fn part(&self, way: i64) -> i64 {
        if self.ticks == 1 { way } else { ((i128::from(way) * i128::from(self.inverse)) >> 32) as i64 }
    }
}

/// The history of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Ticks from the field's last change to the last change of its entity.
    pub(crate) age: u16,
    /// Ticks between its last two changes.
    pub(crate) interval: u16,
    /// Whether it changed when its entity last did.
    pub(crate) changed: bool,
}

/// The motion of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lane {
    /// In fine codes per tick. For a rotation, see [`spin`](crate::spin).
    pub(crate) speed: i32,
    /// The speed between the last two codes.
    pub(crate) raw: i32,
    /// The distance of the fitted line from the code, in fine codes. For a rotation, a component.
    pub(crate) off: i32,
    /// The usual error, in 16ths of a code.
    pub(crate) noise: u16,
    /// The number of points that the line is fitted through.
    pub(crate) points: u8,
    /// The class of the last error.
    pub(crate) jolt: u8,
    /// Whether the pull seems to apply to this slot.
    pub(crate) lean: i8,
}

/// The prediction for a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predicted {
    /// The nearest code.
    pub(crate) code: i64,
    /// The distance from that code to the exact prediction, in fine codes.
    pub(crate) off: i64,
    /// The movement since the base, in fine codes.
    way: i64,
    span: Span,
    pull: i64,
    rests: bool,
}

/// Gains of the fit in 4,096ths, for position and speed, by the number of points including the new one.
pub(crate) const GAINS: [(i64, i64); POINTS + 1] = {
    let mut gains = [(4_096, 4_096); POINTS + 1];
    let mut n = 2;
    while n <= POINTS {
        let (points, whole) = (n as i64, 4_096);
        gains[n] =
            (whole * 2 * (2 * points - 1) / (points * (points + 1)), whole * 6 / (points * (points + 1)));
        n += 1;
    }
    gains
};

/// The bit length of a size.
fn bits(size: i64) -> usize {
    (i64::BITS - size.leading_zeros()) as usize
}

impl Lane {
    /// The lane of a new entity.
    pub(crate) const NEW: Lane = Lane { speed: 0, raw: 0, off: 0, noise: 0, points: 1, jolt: 0, lean: 0 };

    /// The class of the expected error: a slot that was just a surprise is likely to be one again.
    pub(crate) fn class(&self) -> usize {
        match self.points {
            0 | 1 => NOISES + usize::from(self.jolt),
            _ => bits(self.noise.into()).saturating_sub(2).min(NOISES - 1),
        }
    }

    /// Learns from an error, in 16ths of a code, and returns whether it is a surprise: more than twice the usual error
    /// plus `by`.
    pub(crate) fn note(&mut self, error: i64, by: i64) -> bool {
        let noise = i64::from(self.noise);
        let surprised = error > by + 2 * noise;
        let next = match surprised {
            true => noise + (error - noise).min(4 * noise + 64) / 4,
            false if error > noise => (noise + error) / 2,
            false => noise - (noise - error) / 4,
        };
        self.noise = next.clamp(0, u16::MAX.into()) as u16;
        self.jolt = (bits(error).saturating_sub(4) / 2).min(JOLTS - 1) as u8;
        surprised
    }

    /// Whether steady motion would have reached another code by now.
    pub(crate) fn was_to_move(&self, ticks: i64) -> bool {
        i64::from(self.speed).abs() * ticks >= FINE * 3 / 4
    }

    /// Predicts the next code from that of the base.
    pub(crate) fn predict(&self, code: i32, span: Span, rests: bool, pull: &Pull) -> Predicted {
        let elapsed = span.ticks;
        let pull = (i64::from(pull.now) * elapsed * elapsed) >> (PULL_BITS - FINE_BITS + 1);
        let (mut off, mut way) = (0, 0);
        if !rests {
            off = i64::from(self.off);
            way = i64::from(self.speed) * elapsed + if self.lean >= 0 { pull } else { 0 };
        }
        let at = i64::from(code) * FINE + off + way;
        let nearest = ((at + FINE / 2) >> FINE_BITS).clamp(i32::MIN.into(), i32::MAX.into());
        let off = (at - nearest * FINE).clamp(-FINE, FINE);
        Predicted { code: nearest, off, way, span, pull, rests }
    }

    /// Learns from the residual. `moved` is the distance from the base's code.
    pub(crate) fn learn(&mut self, seen: &Predicted, residual: i64, moved: i64, pull: &mut Pull) {
        let error = residual * FINE - seen.off;
        let (span, elapsed) = (seen.span, seen.span.ticks);
        let raw = span.part(moved * FINE).clamp(i32::MIN.into(), i32::MAX.into());
        let lasting = (i64::from(pull.now) * elapsed) >> (PULL_BITS - FINE_BITS);
        let pulled = !seen.rests && self.lean >= 0;
        let surprised = self.note(error.abs() / (FINE / 16), SURPRISE) || seen.rests;
        if !seen.rests {
            self.lean_on(seen, error);
            if self.points > 0 {
                pull.tally(span.part(raw - i64::from(self.raw)), elapsed);
            }
        }
        let speed = if surprised {
            self.points = 1;
            self.off = 0;
            raw + if pulled { lasting / 2 } else { 0 }
        } else {
            self.points = (self.points + 1).min(POINTS as u8);
            let (place, speed) = GAINS[usize::from(self.points)];
            let off = -(error * (4_096 - place)) / 4_096;
            self.off = off.clamp(-FINE / 2, FINE / 2) as i32;
            i64::from(self.speed) + span.part(error * speed / 4_096) + if pulled { lasting } else { 0 }
        };
        self.raw = raw as i32;
        self.speed = speed.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    }

    /// Learns whether the prediction would have been nearer with the pull or without it.
    fn lean_on(&mut self, seen: &Predicted, error: i64) {
        if seen.pull.abs() < FINE / 8 {
            return;
        }
        let (with, without) =
            if self.lean >= 0 { (error, error + seen.pull) } else { (error - seen.pull, error) };
        let step = if with.abs() < without.abs() { 1 } else { -1 };
        self.lean = (self.lean + step).clamp(-3, 3);
    }
}

/// The pull on the entities of a table: the same acceleration for all, such as gravity. It is the mean change of speed
/// of those entities on which nothing else seems to act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pull {
    /// In fractions of a code per tick squared.
    now: i32,
    /// The number of deltas in the mean.
    seen: u8,
    /// In this delta: the sum and number of changes near the pull,
    near: i64,
    near_count: i32,
    /// and of the others, how many are above it minus how many are below.
    far: i32,
    far_count: i32,
}

/// A greater change of speed, in codes per tick squared, is not a pull.
const MAX_PULL: i64 = 64 << PULL_BITS;
/// A change within this many codes of its prediction is near.
const NEAR: i64 = 2;
/// The most deltas in the mean.
const PULL_MEMORY: u8 = 64;

impl Pull {
    /// Adds a change of speed, in fine codes per tick squared.
    fn tally(&mut self, change: i64, elapsed: i64) {
        let off = (change << (PULL_BITS - FINE_BITS)) - i64::from(self.now);
        if off.abs() * elapsed * elapsed <= NEAR << PULL_BITS {
            self.near += off;
            self.near_count += 1;
        } else {
            self.far += off.signum() as i32;
            self.far_count += 1;
        }
    }

    /// Updates the pull after a delta, with the ticks since the base.
    pub(crate) fn settle(&mut self, elapsed: u32) {
        let elapsed = i64::from(elapsed.clamp(1, MAX_ELAPSED));
        let add = if self.far_count > self.near_count {
            self.seen = 0;
            let step = (NEAR << PULL_BITS) / (elapsed * elapsed);
            // Changes of speed in different directions are not a pull.
            let agreed = self.far.abs() > self.far_count / 2;
            if agreed { i64::from(self.far) * step / i64::from(self.far_count) } else { 0 }
        } else if self.near_count > 0 {
            self.seen = (self.seen + 1).min(PULL_MEMORY);
            self.near / (i64::from(self.near_count) * (i64::from(self.seen) + 1))
        } else {
            0
        };
        let now = (i64::from(self.now) + add).clamp(-MAX_PULL, MAX_PULL) as i32;
        *self = Pull { now, seen: self.seen, ..Pull::default() };
    }
}

impl Predicted {
    /// The finer context: a shade, and whether the signs of residuals are flipped, so that the likely direction is
    /// always the same.
    pub(crate) fn shade(&self, class: usize) -> (usize, bool) {
        if class <= 4 {
            let shade = (self.off.abs() * 2 * SHADES as i64) >> FINE_BITS;
            ((shade as usize).min(SHADES - 1), self.off < 0)
        } else {
            let codes = (self.way.abs() >> FINE_BITS) as u64;
            let shade = (u64::BITS - codes.leading_zeros()) as usize / 3;
            (shade.min(SHADES - 1), self.way < 0)
        }
    }
}
