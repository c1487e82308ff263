//! Drawing data of a state, in floats, interpolated between two ticks. Never used in a step.

use crate::ball::MAX_SPEED;
use crate::court::{DEPTH, HALF_LENGTH, INSET, Point, RADIUS, UNIT, Wall};
use crate::state::{Phase, Pong};

/// Drawing data, in units, from the middle of the court: x to the right, y downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Half the size of the court.
    pub half: [f32; 2],
    /// The ball's centre, if it is visible.
    pub ball: Option<[f32; 2]>,
    /// The ball's radius.
    pub radius: f32,
    /// The paddles by wall; a solid wall has none.
    pub paddles: [Option<Bar>; 4],
}

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Its centre.
    pub centre: [f32; 2],
    /// Half its size.
    pub half: [f32; 2],
}

impl View {
    /// The drawing data of a state.
    pub fn of(pong: &Pong) -> View {
        View::between(pong, pong, 1.0)
    }

    /// Interpolates from `before` (0.0) to `after` (1.0), two states of one session in that order.
    ///
    /// An object that moved further than it can by itself, such as the ball at a serve, is shown where it is `after`.
    pub fn between(before: &Pong, after: &Pong, part: f32) -> View {
        let ticks = i32::try_from(after.tick.ticks_since(before.tick)).unwrap_or(i32::MAX);
        let most = MAX_SPEED.saturating_mul(ticks);
        let court = after.rules.court();
        let bar = |wall: Wall| {
            court.is_open(wall).then(|| {
                let [from, to] = [before, after].map(|pong| pong.paddle(wall).at);
                bar(wall, after, blend(from, to, most, part))
            })
        };
        let hidden = matches!(after.phase, Phase::Waiting { .. });
        View {
            half: [units(court.half().x), units(court.half().y)],
            ball: (!hidden).then(|| blend_point(before.ball.at, after.ball.at, most, part)),
            radius: units(RADIUS),
            paddles: Wall::ALL.map(bar),
        }
    }
}

fn bar(wall: Wall, pong: &Pong, along: f32) -> Bar {
    let half = pong.rules.court().half();
    let depth = INSET - DEPTH / 2;
    let (long, thin) = (units(HALF_LENGTH), units(DEPTH / 2));
    match wall {
        Wall::Left => Bar { centre: [units(depth - half.x), along], half: [thin, long] },
        Wall::Right => Bar { centre: [units(half.x - depth), along], half: [thin, long] },
        Wall::Top => Bar { centre: [along, units(depth - half.y)], half: [long, thin] },
        Wall::Bottom => Bar { centre: [along, units(half.y - depth)], half: [long, thin] },
    }
}

fn blend_point(from: Point, to: Point, most: i32, part: f32) -> [f32; 2] {
    let way = Point { x: to.x.saturating_sub(from.x), y: to.y.saturating_sub(from.y) };
    let from = if way.length() > most { to } else { from };
    [blend(from.x, to.x, most, part), blend(from.y, to.y, most, part)]
}

fn blend(from: i32, to: i32, most: i32, part: f32) -> f32 {
    let jumps = to.abs_diff(from) > most.unsigned_abs();
    let from = if jumps { to } else { from };
    units(from) + units(to - from) * part.clamp(0.0, 1.0)
}

fn units(steps: i32) -> f32 {
    steps as f32 / UNIT as f32
}
