//! How numbers move: what is predicted of a slot, from all that was said of it so far.
//!
//! Codes are rounded, so two of them say little of a slow motion, and many say more: a line is error through those since
//! the last surprise. All of it is whole numbers, so that both ends predict the same.

use crate::models::{JOLTS, NOISES, SHADES};

/// Fractions of a code that are told apart, as bits.
const FINE_BITS: u32 = 12;
const FINE: i64 = 1 << FINE_BITS;
/// What pulls is a change of speed, finer still.
const PULL_BITS: u32 = 20;
/// A motion is not predicted farther than this.
pub(crate) const MAX_ELAPSED: u32 = 1_024;
/// A line is error through so many points; older ones fade.
pub(crate) const POINTS: usize = 4;
/// An error of so many 16ths of a code more than twice what is usual is a surprise.
const SURPRISE: i64 = 8;

/// A number of ticks to divide by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) ticks: i64,
    /// 2^32 times the reciprocal.
    inverse: i64,
}

impl Span {
    /// So many ticks; at least one, and not more than are predicted.
    pub(crate) fn new(ticks: u32) -> Span {
        let ticks = i64::from(ticks.clamp(1, MAX_ELAPSED));
        Span { ticks, inverse: (1 << 32) / ticks }
    }

    /// A share of a way, by ticks. A division is much slower.
    pub(crate) fn part(&self, way: i64) -> i64 {
        if self.ticks == 1 { way } else { ((i128::from(way) * i128::from(self.inverse)) >> 32) as i64 }
    }
}

/// What was last said of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The ticks from its last change to the last change of its entity.
    pub(crate) age: u16,
    /// The ticks between its last two changes.
    pub(crate) interval: u16,
    /// Whether it changed when its entity last did.
    pub(crate) changed: bool,
}

/// The motion of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lane {
    /// In fine codes a tick. Of a rotation, see [`spin`](crate::spin).
    pub(crate) speed: i32,
    /// The speed between the last two codes.
    pub(crate) raw: i32,
    /// How far the fitted line is from the code, in fine codes. Of a rotation, a component.
    pub(crate) off: i32,
    /// The usual error, in 16ths of a code.
    pub(crate) noise: u16,
    /// How many points the line goes through.
    pub(crate) points: u8,
    /// The class of the last error.
    pub(crate) jolt: u8,
    /// Whether what pulls seems to pull at this one.
    pub(crate) lean: i8,
}

/// What is predicted of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predicted {
    /// The nearest code.
    pub(crate) code: i64,
    /// From that code to what is predicted, in fine codes.
    pub(crate) off: i64,
    /// How far it moves since the base, in fine codes.
    way: i64,
    span: Span,
    pull: i64,
    rests: bool,
}

/// Gains of the fit in 4,096ths, for the place and for the speed, by how many points there are with the new one.
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

/// The bits of a size.
fn bits(size: i64) -> usize {
    (i64::BITS - size.leading_zeros()) as usize
}

impl Lane {
    /// One that has just come.
    pub(crate) const NEW: Lane = Lane { speed: 0, raw: 0, off: 0, noise: 0, points: 1, jolt: 0, lean: 0 };

    /// How wrong what is predicted may be: what was just surprised is likely to be so again, as is its kind.
    pub(crate) fn class(&self) -> usize {
        match self.points {
            0 | 1 => NOISES + usize::from(self.jolt),
            _ => bits(self.noise.into()).saturating_sub(2).min(NOISES - 1),
        }
    }

    /// Takes in an error, in 16ths of a code, and says whether it is a surprise: more than twice what is usual, and by so
    /// much.
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

    /// Whether it would have come to another code by now if it had gone on.
    pub(crate) fn was_to_move(&self, ticks: i64) -> bool {
        i64::from(self.speed).abs() * ticks >= FINE * 3 / 4
    }

    /// What comes after the code of the base.
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

    /// Takes in how far the code was from the predicted one. `moved` is how far it is from the base's.
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

    /// Which would have been nearer: with the pull, or without it?
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

/// What pulls at the entities of a table: the same for all of them, such as gravity. It is the mean change of speed of
/// those that are not pushed by something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pull {
    /// In fractions of a code a tick and tick.
    now: i32,
    /// How many deltas it is the mean of.
    seen: u8,
    /// In this delta: the sum and number of those that are near it,
    near: i64,
    near_count: i32,
    /// and of those that are not, how many are above it less how many are below.
    far: i32,
    far_count: i32,
}

/// A pull of more codes a tick and tick than this is a push.
const MAX_PULL: i64 = 64 << PULL_BITS;
/// What is not more codes than this from what was predicted of it is near.
const NEAR: i64 = 2;
/// The most deltas that a pull is the mean of.
const PULL_MEMORY: u8 = 64;

impl Pull {
    /// Takes in a change of speed, in fine codes a tick and tick.
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

    /// A delta has been coded, with so many ticks since the base.
    pub(crate) fn settle(&mut self, elapsed: u32) {
        let elapsed = i64::from(elapsed.clamp(1, MAX_ELAPSED));
        let add = if self.far_count > self.near_count {
            self.seen = 0;
            let step = (NEAR << PULL_BITS) / (elapsed * elapsed);
            // What changes its speed one way here and another way there is not pulled at.
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
    /// Finer contexts: a shade, and whether the signs of residuals are turned, so that the likely way is always the same.
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
