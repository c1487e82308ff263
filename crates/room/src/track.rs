//! How numbers move: what is foreseen of a slot, from all that was said of it so far.
//!
//! Codes are rounded, so two of them say little of a slow motion, and many say more: a line is fitted through those since
//! the last surprise. All of it is whole numbers, so that both ends foresee the same.

use crate::models::{NOISES, SHADES};

/// Fractions of a code that are told apart, as bits.
const FINE_BITS: u32 = 12;
const FINE: i64 = 1 << FINE_BITS;
/// What pulls is a change of speed, finer still.
const PULL_BITS: u32 = 20;
/// A motion is not foreseen farther than this.
pub(crate) const MAX_ELAPSED: u32 = 1_024;
/// A line is fitted through so many points; older ones fade.
pub(crate) const POINTS: usize = 12;
/// An error of more codes than this, and of more than what is usual, is a surprise.
const SURPRISE: i64 = 2;

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
    /// How far the fitted line is from the code, in fine codes. Of a rotation, a component.
    pub(crate) off: i32,
    /// The usual error, in 16ths of a code.
    pub(crate) noise: u16,
    /// How many points the line goes through.
    pub(crate) points: u8,
    /// Whether what pulls seems to pull at this one.
    pub(crate) lean: i8,
}

/// What is foreseen of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreseen {
    /// The nearest code.
    pub(crate) code: i64,
    /// From that code to what is foreseen, in fine codes.
    pub(crate) off: i64,
    /// How far it moves since the base, in fine codes.
    way: i64,
    elapsed: i64,
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

/// The class of a usual error.
pub(crate) fn class(noise: u16) -> usize {
    let bits = (u16::BITS - noise.leading_zeros()) as usize;
    bits.saturating_sub(2).min(NOISES - 1)
}

/// The usual error after one more, in 16ths.
pub(crate) fn next_noise(noise: u16, error: i64) -> u16 {
    let (noise, error) = (i64::from(noise), error.clamp(0, u16::MAX.into()));
    let next = if error > noise { (noise + error) / 2 } else { noise - (noise - error) / 4 };
    next as u16
}

impl Lane {
    /// One that has just come.
    pub(crate) const NEW: Lane = Lane { speed: 0, off: 0, noise: 0, points: 1, lean: 0 };

    /// What comes after the code of the base.
    pub(crate) fn foresee(&self, code: i32, elapsed: u32, rests: bool, pull: i32) -> Foreseen {
        let elapsed = i64::from(elapsed.clamp(1, MAX_ELAPSED));
        let pull = (i64::from(pull) * elapsed * elapsed) >> (PULL_BITS - FINE_BITS + 1);
        let way = match rests {
            true => 0,
            false => i64::from(self.speed) * elapsed + if self.lean >= 0 { pull } else { 0 },
        };
        let off = if rests { 0 } else { i64::from(self.off) };
        let at = i64::from(code) * FINE + off + way;
        let nearest = (at + FINE / 2) >> FINE_BITS;
        let nearest = nearest.clamp(i32::MIN.into(), i32::MAX.into());
        let off = (at - nearest * FINE).clamp(-FINE, FINE);
        Foreseen { code: nearest, off, way, elapsed, pull, rests }
    }

    /// Takes in how far the code was from the foreseen one. `moved` is how far it is from the base's.
    pub(crate) fn learn(&mut self, seen: &Foreseen, residual: i64, moved: i64, pull: &mut i32) {
        let error = residual * FINE - seen.off;
        let usual = i64::from(self.noise) * (FINE / 16);
        let elapsed = seen.elapsed;
        let lasting = (i64::from(*pull) * elapsed) >> (PULL_BITS - FINE_BITS);
        let pulled = !seen.rests && self.lean >= 0;
        let surprised = seen.rests || error.abs() > SURPRISE * FINE + 2 * usual;
        if !seen.rests {
            self.lean_on(seen, error);
            if pulled {
                learn_pull(pull, error, elapsed);
            }
        }
        let speed = if surprised {
            self.points = 1;
            self.off = 0;
            moved * FINE / elapsed + if pulled { lasting / 2 } else { 0 }
        } else {
            self.points = (self.points + 1).min(POINTS as u8);
            let (place, speed) = GAINS[usize::from(self.points)];
            let off = -(error * (4_096 - place)) / 4_096;
            self.off = off.clamp(-FINE / 2, FINE / 2) as i32;
            i64::from(self.speed) + error * speed / (4_096 * elapsed) + if pulled { lasting } else { 0 }
        };
        self.speed = speed.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        self.noise = next_noise(self.noise, error.abs() / (FINE / 16));
    }

    /// Which would have been nearer: with the pull, or without it?
    fn lean_on(&mut self, seen: &Foreseen, error: i64) {
        if seen.pull.abs() < FINE / 8 {
            return;
        }
        let (with, without) =
            if self.lean >= 0 { (error, error + seen.pull) } else { (error - seen.pull, error) };
        let step = if with.abs() < without.abs() { 1 } else { -1 };
        self.lean = (self.lean + step).clamp(-3, 3);
    }
}

/// A pull of more fine codes a tick and tick than this is a push.
const MAX_PULL: i64 = 64 * FINE;

fn learn_pull(pull: &mut i32, error: i64, elapsed: i64) {
    let seen = (error / (elapsed * elapsed)).clamp(-4 * FINE, 4 * FINE);
    let limit = MAX_PULL << (PULL_BITS - FINE_BITS);
    let next = i64::from(*pull) + (seen << (PULL_BITS - FINE_BITS)) / 64;
    *pull = next.clamp(-limit, limit) as i32;
}

impl Foreseen {
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
