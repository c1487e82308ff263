//! Bots: they wander, keep away from walls, shoot at whom they see, and build now and then.
//!
//! Nobody aims at a shielded avatar. Bots in the state also spare newcomers, and aim worse at players who do badly.
//!
//! A bot remembers nothing. What it fancies follows from its number and the time, so the same code plays for bots in the state, for
//! headless players who know the whole state ([`autopilot`]), and for those who know only what a view knows ([`pilot`]).

use sametick_sim::replica::Scene;
use sametick_sim::{Rng, Seat, Tick};

use crate::around::{Around, Known};
use crate::build::{Kind, MAX_BUILT};
use crate::input::{Action, Input, Walk};
use crate::movement::{RADIUS, plus, step_of};
use crate::projectile::is_in_sight;
use crate::space::{At, Tile, UNIT, aim_of, square, towards, way};
use crate::state::{Arena, Own};

/// How long a bot fancies one thing: half a second.
const MOOD_TICKS: u32 = 15;

/// For how much of that a preview is shown before it is built.
const PLAN_TICKS: u32 = 8;

/// How far it sees.
const SIGHT: i32 = 10 * UNIT;

/// It does not go closer than this.
const CLOSE: i32 = 4 * UNIT;

/// By how many of the 256 directions it misses at most.
const MISS: i32 = 7;

/// How far ahead it looks for walls, in ticks of walking.
const AHEAD: i32 = 5;

/// What a bot fancies for half a second.
struct Mood {
    walk: Walk,
    miss: i32,
    /// Whether it goes towards whom it sees.
    attacks: bool,
    /// Whether it walks where it likes, whatever is there.
    heedless: bool,
    build: Option<Kind>,
    tick: u32,
}

impl Mood {
    /// Everyone has their own moments.
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

/// What a bot does in a tick.
pub(crate) fn think(own: &Own, tick: Tick, seed: u64, around: &impl Around) -> Input {
    let mood = Mood::of(own.number, tick, seed);
    let seen = nearest(own, around).filter(|target| is_in_sight(own.at, target.at, around));
    let target = seen.as_ref().map(|target| target.at);
    let walk = match target {
        // What it has once chosen, or turned to at a wall, it keeps until it fancies something else.
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
    /// How much worse it is aimed at.
    handicap: u8,
}

/// The nearest to aim at, within sight as the crow flies.
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

/// Straight on along the longer way, and along the other if it is half as long.
fn approach(from: At, to: At) -> Walk {
    let [x, y] = way(from, to);
    let part = |one: i32, other: i32| if one.abs() * 2 > other.abs() { one } else { 0 };
    Walk::towards(part(x, y), part(y, x))
}

/// The walk, or one turned by as little as possible, that does not soon end at a wall.
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

/// Shows what it is going to build in front of itself, and then builds it.
fn building(at: At, aim: u8, kind: Kind, tick: u32) -> Option<Action> {
    let tile = Tile::of(plus(at, towards(aim, 2 * UNIT)))?;
    match tick {
        ..PLAN_TICKS => Some(Action::Preview(tile, kind)),
        PLAN_TICKS => Some(Action::Place(tile, kind)),
        _ => None,
    }
}

/// A simple player for headless clients and tests, on any seat; on one that only watches it does nothing.
pub fn autopilot(arena: &Arena, seat: Seat) -> Input {
    let own = arena.at_seat(seat).map(|person| person.own);
    own.map(|own| think(&own, arena.tick, arena.rules.seed, arena)).unwrap_or_default()
}

/// The same for those in a room: it knows what a view knows.
pub fn pilot(own: &Own, around: &Scene, tick: Tick, seed: u64) -> Input {
    let own = own.inside();
    think(&own, tick, seed, &Known::new(&own, around))
}
