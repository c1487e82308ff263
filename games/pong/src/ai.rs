//! Bots: they look at intervals, misjudge what they see, and move as players do. Randomness comes from the state.

use sametick_sim::{Rng, Seat};

use crate::court::{Court, HALF_LENGTH, UNIT, Wall};
use crate::input::{Input, Motion};
use crate::setup::Skill;
use crate::state::{Ball, Driver, Paddle, Phase, Pong};
use crate::step::{PADDLE_GRIP, PADDLE_SPEED};

/// A bot does not move if it is this close to its aim.
const CONTENT: i32 = 2 * UNIT;

/// The number of points until bots reach full strength against a new player: they become a little stronger with each.
pub(crate) const GENTLE_POINTS: u8 = 5;

/// How a bot of a skill differs from a perfect player.
pub(crate) struct Limits {
    /// The most it moves in a tick.
    pub speed: i32,
    /// The fewest ticks between two looks at the ball. The most is twice that.
    look_ticks: u8,
    /// The part of the way across the court at which it sees a ball coming, in percent.
    sight_percent: i32,
    /// The largest misjudgement of a ball right in front of it.
    error: i32,
    /// The additional misjudgement per unit of distance, as a divisor.
    blur: i32,
}

impl Limits {
    /// The limits of a bot at full strength.
    const fn full(skill: Skill) -> Limits {
        let speed = PADDLE_SPEED;
        match skill {
            Skill::Easy => Limits { speed, look_ticks: 14, sight_percent: 55, error: 14 * UNIT, blur: 3 },
            Skill::Normal => Limits { speed, look_ticks: 9, sight_percent: 62, error: 13 * UNIT, blur: 5 },
            Skill::Hard => Limits { speed, look_ticks: 7, sight_percent: 68, error: 11 * UNIT, blur: 7 },
        }
    }

    /// The limits of a gentle bot: from 0, full strength, to [`GENTLE_POINTS`], half as fast with twice the error.
    pub(crate) const fn of(skill: Skill, gentleness: u8) -> Limits {
        let (Limits { speed, look_ticks, sight_percent, error, blur }, points) =
            (Limits::full(skill), GENTLE_POINTS as i32);
        let gentle = gentleness as i32;
        Limits {
            speed: speed - speed * gentle / (2 * points),
            look_ticks: look_ticks + (look_ticks as i32 * gentle / (2 * points)) as u8,
            sight_percent: sight_percent - 2 * gentle,
            error: error + error * gentle / points,
            blur,
        }
    }
}

/// A bot's motion in this tick, and its new memory.
pub(crate) fn think(
    wall: Wall,
    paddle: &Paddle,
    ball: Ball,
    court: Court,
    limits: &Limits,
    rng: &mut Rng,
) -> (Motion, Driver) {
    let Driver::Bot { aim, look_in } = paddle.driver else {
        return (Motion::Still, paddle.driver);
    };
    if let Some(look_in) = look_in.checked_sub(1) {
        return (steer(paddle, aim), Driver::Bot { aim, look_in });
    }
    let aim = match arrival(wall, ball, court) {
        Some(arrival) if arrival.is_within(limits.sight_percent, wall, court) => {
            let error = limits.error + arrival.distance / limits.blur;
            arrival.along + rng.between(-error, error)
        }
        // The ball goes elsewhere, or is not seen yet: drift back towards the middle.
        _ => paddle.at / 2,
    };
    let reach = court.reach(wall);
    let look_in = limits.look_ticks + rng.below(u64::from(limits.look_ticks)) as u8;
    let aim = aim.clamp(-reach, reach);
    (steer(paddle, aim), Driver::Bot { aim, look_in })
}

/// A simple player for headless clients and tests.
///
/// It always looks and judges exactly, but sees the ball only in its own half, and meets it with another part of its
/// paddle every time, so that rallies between two of them end. It uses only the state, and plays on any seat; on a
/// spectator's seat it does nothing.
pub fn autopilot(pong: &Pong, seat: Seat) -> Input {
    let court = pong.rules.court();
    let Some(wall) = Wall::of(seat).filter(|wall| court.is_open(*wall)) else {
        return Input::NONE;
    };
    let paddle = pong.paddle(wall);
    let aim = match (pong.phase, arrival(wall, pong.ball, court)) {
        (Phase::Rally { hits, .. }, Some(arrival)) if arrival.is_within(50, wall, court) => {
            // Five places from one end of the paddle to the other.
            let place = (i32::from(hits) * 7 + i32::from(seat.0) * 3) % 5 * 2 - 4;
            arrival.along + place * HALF_LENGTH / 6
        }
        (Phase::Serving { server, .. }, _) if server == wall => court.reach(wall) / 2,
        _ => 0,
    };
    let input = Input::moving(steer(paddle, aim));
    match pong.phase {
        Phase::Waiting { .. } | Phase::Serving { .. } => input.and_serve(),
        Phase::Over { .. } => input.and_rematch(),
        Phase::Rally { .. } | Phase::Pause { .. } => input,
    }
}

/// The motion that brings a paddle to rest at `aim`, a place along its wall: for bots, fingers and mice.
pub fn steer(paddle: &Paddle, aim: i32) -> Motion {
    // Where it would come to rest without further input.
    let rest = paddle.at + paddle.speed * paddle.speed.abs() / (2 * PADDLE_GRIP);
    let way = aim.saturating_sub(rest);
    if way.abs() <= CONTENT { Motion::Still } else { Motion::towards(way.signum()) }
}

/// Where a ball reaches the line of a wall, and its distance to it.
struct Arrival {
    along: i32,
    distance: i32,
}

impl Arrival {
    /// Whether the ball has come this close, in percent of the way from one wall to the other.
    fn is_within(&self, percent: i32, wall: Wall, court: Court) -> bool {
        self.distance < court.line(wall) * 2 / 100 * percent
    }
}

/// The arrival of the ball, if it comes to this wall: straight, or off solid walls at its sides.
fn arrival(wall: Wall, ball: Ball, court: Court) -> Option<Arrival> {
    let axis = wall.axis();
    let approach = ball.motion.on(axis) * wall.side();
    if approach <= 0 {
        return None;
    }
    let distance = court.line(wall) - ball.at.on(axis) * wall.side();
    let drift = i64::from(ball.motion.on(axis.other())) * i64::from(distance) / i64::from(approach);
    let straight = i64::from(ball.at.on(axis.other())) + drift;
    Some(Arrival { along: folded(straight, wall, court), distance })
}

/// A place along a wall, reflected at solid walls on both its sides until it lies between them.
fn folded(along: i64, wall: Wall, court: Court) -> i32 {
    let axis = wall.axis().other();
    let [low, high] = [-1, 1].map(|sign| Wall::towards(axis, sign));
    let [first, last] = [-i64::from(court.line(low)), i64::from(court.line(high))];
    if court.is_open(low) || court.is_open(high) {
        return along.clamp(first, last) as i32;
    }
    let span = last - first;
    let turned = (along - first).rem_euclid(2 * span);
    (first + turned.min(2 * span - turned)) as i32
}
