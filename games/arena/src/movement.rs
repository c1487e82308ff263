//! The feature "movement": walking, sliding along obstacles, and pushing each other apart.
//!
//! A tick has two halves. First the motion of all players is computed: the walk, and a push away from players that are
//! too close. Then all players move. So the order of players does not matter, and the client's prediction with `motion`
//! and `go` matches the host.

use crate::around::Around;
use crate::input::Walk;
use crate::space::{At, UNIT, way};
use crate::state::{Arena, Own};

/// The radius of an avatar: it fits through a gap of one tile between two structures.
pub const RADIUS: i32 = 102;

/// The distance that a player walks in a tick along an axis: five tiles a second.
pub const SPEED: i32 = 43;

/// The distance along each axis on a diagonal.
pub const DIAGONAL_SPEED: i32 = 30;

/// The largest push by others in a tick: less than a walk, so that players are not carried away.
const MAX_PUSH: i32 = 24;

// No player moves so far in a tick that its centre could enter a structure.
const _: () = assert!(SPEED + 2 * MAX_PUSH < RADIUS);

/// How often a position is pushed out of obstacles: once for each side, and once more for rounding.
const PUSHES_OUT: usize = 4;

/// The motion of a walk in a tick.
pub(crate) const fn step_of(walk: Walk) -> At {
    let speed = if walk.x() != 0 && walk.y() != 0 { DIAGONAL_SPEED } else { SPEED };
    [walk.x() * speed, walk.y() * speed]
}

/// How `other` pushes this avatar, if it is less than two radii away along both axes. The push on the other is the
/// opposite.
pub(crate) fn push(number: u16, at: At, other: u16, other_at: At) -> At {
    let away = way(other_at, at);
    let square = away[0] * away[0] + away[1] * away[1];
    let distance = square.isqrt();
    let overlap = 2 * RADIUS - distance;
    if overlap <= 0 {
        return [0, 0];
    }
    if distance == 0 {
        // At the same position, the lower number goes left.
        return [if number < other { -MAX_PUSH } else { MAX_PUSH }, 0];
    }
    away.map(|part| part * overlap / (4 * distance))
}

/// The motion of a player in this tick without obstacles.
pub(crate) fn with_push(own: &Own, push: At) -> At {
    if !own.is_alive() || own.frozen > 0 {
        return [0, 0];
    }
    let [x, y] = step_of(Walk::of_code(own.walk));
    [x + push[0].clamp(-MAX_PUSH, MAX_PUSH), y + push[1].clamp(-MAX_PUSH, MAX_PUSH)]
}

/// The motion of a player in this tick, among others.
pub(crate) fn motion(own: &Own, around: &impl Around) -> At {
    let mut pushed = [0, 0];
    around.others(own.number, own.at, 2 * RADIUS, |other, at| {
        pushed = plus(pushed, push(own.number, own.at, other, at));
    });
    with_push(own, pushed)
}

/// Moves, and slides along obstacles.
pub(crate) fn go(own: &mut Own, motion: At, around: &impl Around) {
    if motion == [0, 0] {
        return;
    }
    let tries = [motion, [motion[0], 0], [0, motion[1]]];
    let end =
        tries.into_iter().filter(|way| *way != [0, 0]).find_map(|way| settled(plus(own.at, way), around));
    own.at = end.unwrap_or(own.at);
}

/// The free position closest to one that touches an obstacle, if it is easily found.
fn settled(mut at: At, around: &impl Around) -> Option<At> {
    for _ in 0..PUSHES_OUT {
        let Some(nearest) = touched(at, around) else { return Some(at) };
        let out = way(nearest, at);
        let length = (out[0] * out[0] + out[1] * out[1]).isqrt();
        if length == 0 {
            return None;
        }
        // Rounded up, so that it ends outside.
        let far = |part: i32| part.signum() * (part.abs() * RADIUS + length - 1).div_euclid(length);
        at = plus(nearest, out.map(far));
    }
    touched(at, around).is_none().then_some(at)
}

/// The contact point to push the avatar away from: of a side if possible, else of a corner.
fn touched(at: At, around: &impl Around) -> Option<At> {
    let [low, high] = [-RADIUS, RADIUS].map(|reach| at.map(|part| (part + reach).div_euclid(UNIT)));
    let mut corner = None;
    for y in low[1]..=high[1] {
        for x in low[0]..=high[0] {
            if overlaps(at, x, y) && around.is_solid(x, y) {
                let point = nearest(at, x, y);
                if point[0] == at[0] || point[1] == at[1] {
                    return Some(point);
                }
                corner = corner.or(Some(point));
            }
        }
    }
    corner
}

/// The point of a tile nearest to a position.
fn nearest(at: At, x: i32, y: i32) -> At {
    [at[0].clamp(x * UNIT, (x + 1) * UNIT), at[1].clamp(y * UNIT, (y + 1) * UNIT)]
}

/// Whether an avatar at a position overlaps a tile.
pub(crate) fn overlaps(at: At, x: i32, y: i32) -> bool {
    let [dx, dy] = way(at, nearest(at, x, y)).map(i64::from);
    dx * dx + dy * dy < i64::from(RADIUS * RADIUS)
}

pub(crate) const fn plus(at: At, way: At) -> At {
    [at[0] + way[0], at[1] + way[1]]
}

impl Arena {
    /// Moves all players by one tick.
    pub(crate) fn move_all(&mut self) {
        self.push_all();
        for at in 0..self.people.len() {
            let mut own = self.people[at].own;
            let motion = with_push(&own, self.people[at].push);
            go(&mut own, motion, self);
            self.people[at].own = own;
        }
        self.sort_by_x();
    }

    /// Computes the pushes on all players: each pair once, from left to right.
    fn push_all(&mut self) {
        for person in &mut self.people {
            person.push = [0, 0];
        }
        for first in 0..self.by_x.len() {
            let place = self.by_x[first];
            let one = self.people[usize::from(place.index)].own;
            if !one.is_alive() {
                continue;
            }
            for second in first + 1..self.by_x.len() {
                let next = self.by_x[second];
                if next.x - place.x >= 2 * RADIUS {
                    break;
                }
                let other = self.people[usize::from(next.index)].own;
                if other.at[1].abs_diff(one.at[1]) >= 2 * RADIUS as u32 || !other.is_alive() {
                    continue;
                }
                let pushed = push(one.number, one.at, other.number, other.at);
                let person = &mut self.people[usize::from(place.index)];
                person.push = plus(person.push, pushed);
                let person = &mut self.people[usize::from(next.index)];
                person.push = plus(person.push, push(other.number, other.at, one.number, one.at));
            }
        }
    }

    /// Restores the order of players from left to right. It changes little in a tick, so each one moves only a few
    /// places.
    pub(crate) fn sort_by_x(&mut self) {
        for at in 0..self.by_x.len() {
            let mut place = self.by_x[at];
            place.x = self.people[usize::from(place.index)].own.at[0];
            let mut to = at;
            while to > 0 && self.by_x[to - 1] > place {
                self.by_x[to] = self.by_x[to - 1];
                to -= 1;
            }
            self.by_x[to] = place;
        }
    }
}
