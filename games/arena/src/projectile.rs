//! The feature "projectile": shots, collisions and damage.
//!
//! A shot flies straight. In each tick its path is searched for the first structure or avatar, so it never passes
//! through one, however fast it is.

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::around::Around;
use crate::movement::{RADIUS, plus};
use crate::space::{At, Tile, UNIT, square, towards, way};
use crate::state::{Arena, Event, Own, Person};

/// The distance that a shot flies in a tick: fourteen tiles a second.
pub const SHOT_SPEED: i32 = 119;

/// The lifetime of a shot in ticks.
pub const SHOT_TICKS: u8 = 36;

/// Between two shots of one player, in ticks.
pub const FIRE_TICKS: u8 = 7;

/// The damage of a hit.
pub const DAMAGE: u8 = 20;

/// The radius of a shot, added to that of avatars.
const SHOT_RADIUS: i32 = 18;

/// The most shots at once; beyond, triggers have no effect. More than all players can have in the air.
pub const MAX_SHOTS: usize = 8192;

/// A whole tick, in the fractions in which the path of a shot is measured.
const WHOLE: i64 = 1 << 16;

/// A shot in the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Shot {
    /// Its number.
    pub id: u32,
    /// Its position.
    pub at: At,
    /// Its direction.
    pub aim: u8,
    /// The number of its owner.
    pub owner: u16,
    /// The remaining ticks.
    pub ticks: u8,
}

/// What a shot hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// A structure on a tile, or the border.
    Tile(i32, i32),
    /// An avatar.
    Avatar(u16),
}

/// Whether a player's trigger fires in this tick, as far as the player's own state is concerned.
pub(crate) fn fires(own: &mut Own) -> bool {
    own.cooldown = own.cooldown.saturating_sub(1);
    let fires = own.firing && own.is_alive() && own.frozen == 0 && own.cooldown == 0;
    if fires {
        (own.cooldown, own.shield) = (FIRE_TICKS, 0);
    }
    fires
}

/// The first hit of a shot of `owner` on its path, and the fraction of the path before it.
pub(crate) fn first_met(from: At, motion: At, owner: u16, around: &impl Around) -> Option<(Met, i64)> {
    let mut first = first_tile(from, motion, around);
    let reach = SHOT_SPEED + RADIUS + SHOT_RADIUS;
    around.others(owner, from, reach, |number, at| {
        if let Some(part) = part_until(from, motion, at) {
            // Of two at the same distance, the lower number, which is reported first.
            let sooner = match first {
                Some((Met::Avatar(other), before)) => (part, number) < (before, other),
                Some((Met::Tile(..), before)) => part < before,
                None => true,
            };
            if sooner {
                first = Some((Met::Avatar(number), part));
            }
        }
    });
    first
}

/// The first solid tile on a path that is no longer than a tile.
fn first_tile(from: At, motion: At, around: &impl Around) -> Option<(Met, i64)> {
    let mut tile = from.map(|part| part.div_euclid(UNIT));
    if around.is_solid(tile[0], tile[1]) {
        return Some((Met::Tile(tile[0], tile[1]), 0));
    }
    let part = [0, 1].map(|axis| part_until_edge(from[axis], motion[axis]));
    // At most one edge per axis; through a corner both at once, in which case the columns come first.
    let axes = if part[0] <= part[1] { [0, 1] } else { [1, 0] };
    for axis in axes {
        if part[axis] > WHOLE {
            return None;
        }
        tile[axis] += motion[axis].signum();
        if around.is_solid(tile[0], tile[1]) {
            return Some((Met::Tile(tile[0], tile[1]), part[axis]));
        }
    }
    None
}

/// The fraction of a motion before the next tile edge; more than a whole one if there is none.
fn part_until_edge(from: i32, motion: i32) -> i64 {
    let within = from.rem_euclid(UNIT);
    let gap = match motion {
        0 => return WHOLE + 1,
        1.. => UNIT - within,
        // The edge itself belongs to this tile.
        _ => within + 1,
    };
    i64::from(gap) * WHOLE / i64::from(motion.abs())
}

/// The fraction of a motion before it touches an avatar, if it does.
fn part_until(from: At, motion: At, avatar: At) -> Option<i64> {
    let reach = i64::from(RADIUS + SHOT_RADIUS);
    let to = way(from, avatar);
    let beyond = square(to) - reach * reach;
    if beyond <= 0 {
        return Some(0);
    }
    let length = square(motion);
    let ahead = i64::from(to[0]) * i64::from(motion[0]) + i64::from(to[1]) * i64::from(motion[1]);
    let root = ahead * ahead - length * beyond;
    if ahead <= 0 || root < 0 || length == 0 {
        return None;
    }
    let part = (ahead - root.isqrt()) * WHOLE / length;
    (part <= WHOLE).then_some(part)
}

/// Whether no structure is between two positions.
pub(crate) fn is_in_sight(from: At, to: At, around: &impl Around) -> bool {
    let whole = way(from, to);
    let steps = whole[0].abs().max(whole[1].abs()) / (UNIT / 2) + 1;
    (1..steps).all(|step| {
        let [x, y] = plus(from, whole.map(|part| part * step / steps)).map(|part| part.div_euclid(UNIT));
        !around.is_solid(x, y)
    })
}

impl Arena {
    /// Fires for all players whose trigger is held and whose cooldown is over.
    pub(crate) fn fire_all(&mut self) {
        for at in 0..self.people.len() {
            let Person { own, fired, .. } = &mut self.people[at];
            if fires(own) && self.shots.len() < MAX_SHOTS {
                *fired = true;
                let Own { at, aim, number: owner, .. } = *own;
                let id = self.next_shot();
                self.shots.push(Shot { id, at, aim, owner, ticks: SHOT_TICKS });
                self.happened.push(Event::Shot { by: owner, at, aim });
            }
        }
    }

    /// Shot numbers only grow. If they ever run out, all shots are removed once.
    fn next_shot(&mut self) -> u32 {
        if self.next_shot == u32::MAX {
            self.shots.clear();
            self.next_shot = 0;
        }
        self.next_shot += 1;
        self.next_shot
    }

    /// Moves all shots, the oldest first.
    pub(crate) fn fly_all(&mut self) {
        let mut kept = 0;
        for index in 0..self.shots.len() {
            let mut shot = self.shots[index];
            if self.fly(&mut shot) {
                self.shots[kept] = shot;
                kept += 1;
            }
        }
        self.shots.truncate(kept);
    }

    /// Moves a shot. Returns whether it still exists.
    fn fly(&mut self, shot: &mut Shot) -> bool {
        let motion = towards(shot.aim, SHOT_SPEED);
        let Some((met, part)) = first_met(shot.at, motion, shot.owner, self) else {
            shot.at = plus(shot.at, motion);
            shot.ticks = shot.ticks.saturating_sub(1);
            return shot.ticks > 0;
        };
        let at = plus(shot.at, motion.map(|along| (i64::from(along) * part / WHOLE) as i32));
        match met {
            Met::Tile(x, y) => {
                self.happened.push(Event::Hit { by: shot.owner, at, victim: None });
                if let Some(tile) = Tile::new(x, y) {
                    self.damage_block(tile, DAMAGE);
                }
            }
            Met::Avatar(victim) => {
                self.happened.push(Event::Hit { by: shot.owner, at, victim: Some(victim) });
                self.hurt(victim, shot.owner);
            }
        }
        false
    }

    fn hurt(&mut self, victim: u16, killer: u16) {
        let Ok(at) = self.find(victim) else { return };
        let own = &mut self.people[at].own;
        if own.is_shielded() {
            return;
        }
        own.health = own.health.saturating_sub(DAMAGE);
        if own.health == 0 {
            self.die(at, killer);
        }
    }
}
