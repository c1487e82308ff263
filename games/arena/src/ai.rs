//! Bots: they wander, keep away from walls, shoot at players in sight, and sometimes build.
//!
//! Bots never aim at a shielded avatar. Bots in the state also spare newcomers, and aim worse at players who do badly.
//!
//! A bot has no memory. Its mood follows from its number and the time, so the same code plays for bots in the state,
//! for headless players who know the whole state ([`autopilot`]), and for those who know only what a view knows
//! ([`pilot`]).

use sametick_sim::replica::Scene;
use sametick_sim::{Rng, Seat, Tick};

use crate::around::{Around, Known};
use crate::build::{Kind, MAX_BUILT};
use crate::input::{Action, Input, Walk};
use crate::movement::{RADIUS, plus, step_of};
use crate::projectile::is_in_sight;
use crate::space::{At, Tile, UNIT, aim_of, square, towards, way};
use crate::state::{Arena, Own};

/// How long a bot keeps a mood: half a second.
const MOOD_TICKS: u32 = 15;

/// How much of that time a preview is shown before the bot builds.
const PLAN_TICKS: u32 = 8;

/// How far a bot sees.
const SIGHT: i32 = 10 * UNIT;

/// A bot does not go closer than this.
const CLOSE: i32 = 4 * UNIT;

/// The largest aiming error, of 256 directions.
const MISS: i32 = 7;

/// How far ahead a bot checks for walls, in ticks of walking.
const AHEAD: i32 = 5;

/// What a bot wants for half a second.
struct Mood {
    walk: Walk,
    miss: i32,
    /// Whether it approaches its target.
    attacks: bool,
    /// Whether it keeps walking into obstacles.
    heedless: bool,
    build: Option<Kind>,
    tick: u32,
}

impl Mood {
    /// Each bot changes its mood at its own times.
    fn of(number: u16, tick: Tick, seed: u64) -> Mood {
        let time = u64::from(tick.0) + u64::from(number) * 7;
        let (mood, tick) = (time / u64::from(MOOD_TICKS), time % u64::from(MOOD_TICKS));
        let mut rng = Rng::new(seed ^ (u64::from(number) << 48) ^ mood);
        let walk = Walk::towards(rng.between(-1, 1), rng.between(-1, 1));
        let build = match rng.below(24) {
            0 => Some(Kind::Wall),
            1 | 2 => Some(Kind::Crate),
            _ => None,
        };
        let (miss, attacks, heedless) = (rng.between(-MISS, MISS), rng.chance(1, 2), rng.chance(1, 8));
        Mood { walk, miss, attacks, heedless, build, tick: tick as u32 }
    }
}

/// The input of a bot in a tick.
pub(crate) fn think(own: &Own, tick: Tick, seed: u64, around: &impl Around) -> Input {
    let mood = Mood::of(own.number, tick, seed);
    let seen = nearest(own, around).filter(|target| is_in_sight(own.at, target.at, around));
    let target = seen.as_ref().map(|target| target.at);
    let walk = match target {
        // It keeps its walk, chosen or turned at a wall, until its mood changes.
        _ if mood.tick > 0 => Walk::of_code(own.walk),
        Some(target) if mood.attacks && square(way(own.at, target)) > square([CLOSE, 0]) => {
            approach(own.at, target)
        }
        _ => mood.walk,
    };
    let walk = if mood.heedless { walk } else { around_walls(own.at, walk, around) };
    let aim = match &seen {
        Some(Target { at, handicap }) => {
            let miss = mood.miss * (1 + i32::from(*handicap));
            (i32::from(aim_of(way(own.at, *at))) + miss).rem_euclid(256) as u8
        }
        None if walk.is_still() => own.aim,
        None => aim_of(step_of(walk)),
    };
    let action =
        mood.build.filter(|_| own.built < MAX_BUILT).and_then(|kind| building(own.at, aim, kind, mood.tick));
    Input { walk, aim, fire: target.is_some(), action, place: 0 }
}

/// A player to aim at.
struct Target {
    at: At,
    /// The additional aiming error.
    handicap: u8,
}

/// The nearest player to aim at, within straight-line sight.
fn nearest(own: &Own, around: &impl Around) -> Option<Target> {
    let mut best: Option<(i64, Target)> = None;
    around.others(own.number, own.at, SIGHT, |number, at| {
        let far = square(way(own.at, at));
        if best.as_ref().is_none_or(|(least, _)| far < *least)
            && let Some(handicap) = around.handicap(own.number, number)
        {
            best = Some((far, Target { at, handicap }));
        }
    });
    best.map(|(_, target)| target)
}

/// Straight along the longer axis, and along the other too if it is at least half as long.
fn approach(from: At, to: At) -> Walk {
    let [x, y] = way(from, to);
    let part = |one: i32, other: i32| if one.abs() * 2 > other.abs() { one } else { 0 };
    Walk::towards(part(x, y), part(y, x))
}

/// The walk, or the one with the smallest turn from it, that does not soon end at a wall.
fn around_walls(at: At, walk: Walk, around: &impl Around) -> Walk {
    const RING: [(i32, i32); 8] = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)];
    let Some(first) = RING.iter().position(|(x, y)| (walk.x(), walk.y()) == (*x, *y)) else { return walk };
    let turned = [0, 1, 7, 2, 6, 3, 5, 4].map(|turn| RING[(first + turn) % 8]);
    let walks = turned.map(|(x, y)| Walk::towards(x, y));
    walks.into_iter().find(|walk| is_open(at, *walk, around)).unwrap_or(walk)
}

fn is_open(at: At, walk: Walk, around: &impl Around) -> bool {
    let ahead = plus(at, step_of(walk).map(|part| part * AHEAD));
    let sides = [[-RADIUS, -RADIUS], [RADIUS, -RADIUS], [-RADIUS, RADIUS], [RADIUS, RADIUS]];
    sides.into_iter().all(|side| {
        let [x, y] = plus(ahead, side).map(|part| part.div_euclid(UNIT));
        !around.is_solid(x, y)
    })
}

/// Shows a preview in front of the bot, and then builds it.
fn building(at: At, aim: u8, kind: Kind, tick: u32) -> Option<Action> {
    let tile = Tile::of(plus(at, towards(aim, 2 * UNIT)))?;
    match tick {
        ..PLAN_TICKS => Some(Action::Preview(tile, kind)),
        PLAN_TICKS => Some(Action::Place(tile, kind)),
        _ => None,
    }
}

/// A simple player for headless clients and tests, on any seat; on a spectator's seat it does nothing.
pub fn autopilot(arena: &Arena, seat: Seat) -> Input {
    let own = arena.at_seat(seat).map(|person| person.own);
    own.map(|own| think(&own, arena.tick, arena.rules.seed, arena)).unwrap_or_default()
}

/// The same for a client in a room: it uses only what its view knows.
pub fn pilot(own: &Own, around: &Scene, tick: Tick, seed: u64) -> Input {
    let own = own.inside();
    think(&own, tick, seed, &Known::new(&own, around))
}
