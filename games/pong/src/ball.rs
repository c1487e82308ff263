//! The ball in flight: swept collision detection, so that it passes through nothing however fast it is.
//!
//! Inside the lines of the four walls ([`Court::line`]) the ball's centre moves straight. On a line it meets a solid
//! wall or a paddle; otherwise it is lost. A motion is cut at the first line it reaches and continues from there for
//! the rest of the tick, so a corner is simply two contacts in one tick.

use crate::court::{Axis, Court, HALF_LENGTH, Point, RADIUS, UNIT, Wall};
use crate::state::{Ball, Paddle};

/// The speed of a serve, per tick: across the wide court in a second and a half.
pub const SERVE_SPEED: i32 = 7 * UNIT / 2;

/// The largest speed of the ball, per tick: across the wide court in half a second.
pub const MAX_SPEED: i32 = 9 * UNIT;

/// The gain in speed with every return.
const GROWTH: i32 = UNIT / 4;

/// The additional gain when the ball is met with the very end of a paddle.
const EDGE_GROWTH: i32 = UNIT / 4;

/// A ball this close to the next paddle's line is in the corner between two paddles.
const CORNER: i32 = 2 * RADIUS;

/// More contacts than one tick can have: a corner has three at most, and the court is far wider than a tick's motion.
const MAX_CONTACTS: usize = 4;

/// A whole tick, in the fractions in which the rest of a tick is measured.
const WHOLE: i32 = 1 << 16;

/// The kind of a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    /// It bounced off a solid wall.
    Bounce(Wall),
    /// A paddle returned it.
    Hit(Wall),
    /// It passed a paddle.
    Lost(Wall),
}

/// Moves the ball for one tick and reports each contact, in order. After a loss it stays where it was lost.
pub fn fly(ball: &mut Ball, court: Court, paddles: &[Paddle; 4], mut tell: impl FnMut(Ball, Contact)) {
    let mut left = WHOLE;
    for _ in 0..MAX_CONTACTS {
        let Some(wall) = advance(ball, court, &mut left) else {
            return;
        };
        let contact = meet(ball, court, wall, &paddles[wall.index()]);
        tell(*ball, contact);
        if matches!(contact, Contact::Lost(_)) {
            return;
        }
    }
}

/// Moves a lost ball on to the edge of the court, where it stays.
pub fn roll_out(ball: &mut Ball, court: Court) {
    for axis in Axis::BOTH {
        let motion = ball.motion.on(axis);
        let wall = Wall::towards(axis, motion);
        let (place, edge) = (ball.at.on(axis) + motion, wall.side() * court.edge(wall));
        let out = motion != 0 && (place - edge) * wall.side() >= 0;
        ball.at = Point::of(axis, if out { edge } else { place }, ball.at.on(axis.other()));
        if out {
            ball.motion = Point::ZERO;
        }
    }
}

/// A ball let go from the front of a paddle, at a random `slant` and with some of the paddle's own motion.
pub fn serve(court: Court, wall: Wall, paddle: &Paddle, slant: i32) -> Ball {
    let motion = leave(wall, SERVE_SPEED, slant + paddle.speed / 2);
    Ball { at: court.front(wall, paddle.at), motion }
}

/// Moves the ball to the first line it reaches in the part of the tick that is left, or to the end of the tick.
fn advance(ball: &mut Ball, court: Court, left: &mut i32) -> Option<Wall> {
    let motion = Point { x: share(ball.motion.x, *left, WHOLE), y: share(ball.motion.y, *left, WHOLE) };
    let (across_x, across_y) =
        (crossing(ball.at, motion, court, Axis::X), crossing(ball.at, motion, court, Axis::Y));
    let first = match (across_x, across_y) {
        // Compares the gaps as fractions of the motion, without dividing.
        (Some(x), Some(y)) if i64::from(y.gap) * i64::from(x.of) < i64::from(x.gap) * i64::from(y.of) => y,
        (Some(x), _) => x,
        (None, Some(y)) => y,
        (None, None) => {
            ball.at = Point { x: ball.at.x + motion.x, y: ball.at.y + motion.y };
            return None;
        }
    };
    let axis = first.wall.axis();
    let across = ball.at.on(axis.other()) + share(motion.on(axis.other()), first.gap, first.of);
    ball.at = Point::of(axis, first.wall.side() * court.line(first.wall), across);
    *left = share(*left, first.of - first.gap, first.of);
    Some(first.wall)
}

/// A line that is reached after `gap` of the motion's length `of`.
struct Crossing {
    wall: Wall,
    gap: i32,
    of: i32,
}

fn crossing(at: Point, motion: Point, court: Court, axis: Axis) -> Option<Crossing> {
    let of = motion.on(axis).abs();
    let wall = Wall::towards(axis, motion.on(axis));
    let gap = court.line(wall) - at.on(axis) * wall.side();
    (of > 0 && gap <= of).then_some(Crossing { wall, gap, of })
}

/// `whole * part / of`, rounded towards zero, so that left and right are treated alike.
fn share(whole: i32, part: i32, of: i32) -> i32 {
    (i64::from(whole) * i64::from(part) / i64::from(of)) as i32
}

fn meet(ball: &mut Ball, court: Court, wall: Wall, paddle: &Paddle) -> Contact {
    let axis = wall.axis();
    if !court.is_open(wall) {
        ball.motion = Point::of(axis, -ball.motion.on(axis), ball.motion.on(axis.other()));
        return Contact::Bounce(wall);
    }
    let offset = ball.at.on(axis.other()) - paddle.at;
    if offset.abs() > HALF_LENGTH + RADIUS {
        return Contact::Lost(wall);
    }
    let speed = ball.motion.length();
    let edge = share(EDGE_GROWTH, offset.abs(), HALF_LENGTH + RADIUS);
    let faster = (speed + GROWTH + edge + paddle.speed.abs() / 32).min(MAX_SPEED);
    // Half of the slant stays, the offset adds up to three quarters of the speed, the paddle half of its own motion.
    let pull = share(speed * 3 / 4, offset, HALF_LENGTH + RADIUS);
    let slant = ball.motion.on(axis.other()) / 2 + pull + paddle.speed / 2;
    ball.motion = leave(wall, faster, out_of_corner(slant, ball.at.on(axis.other()), axis.other(), court));
    Contact::Hit(wall)
}

/// Between two paddles the ball is returned out of the corner; otherwise they would return it to each other without
/// end.
fn out_of_corner(slant: i32, along: i32, axis: Axis, court: Court) -> i32 {
    let next = Wall::towards(axis, along);
    let near = court.line(next) - along.abs() < CORNER;
    if court.is_open(next) && near { -next.side() * slant.abs() } else { slant }
}

/// A motion away from a wall at this speed.
///
/// The slant is at most four fifths of it, so three fifths lead away from the wall, and the ball always arrives.
fn leave(wall: Wall, speed: i32, slant: i32) -> Point {
    let slant = slant.clamp(-speed * 4 / 5, speed * 4 / 5);
    let away = (speed * speed - slant * slant).isqrt();
    Point::of(wall.axis(), -wall.side() * away, slant)
}
