//! The geometry of the court: units, walls, and the lines on which a ball is met. Integers only.
//!
//! The middle is (0, 0), x grows to the right and y downwards, and [`UNIT`] steps are one unit.

use postcard_schema::Schema;
use sametick_sim::Seat;
use serde::{Deserialize, Serialize};

/// Steps in one unit of length. Fine enough that an angle is never visibly rounded.
pub const UNIT: i32 = 1024;

/// The ball's radius.
pub const RADIUS: i32 = 4 * UNIT;

/// The distance of a paddle's front from its wall.
///
/// Paddles stop this far from a corner, so that two of them never overlap. Twice the radius is the most at which a
/// ball that rolls along the neighbouring wall can still be reached.
pub const INSET: i32 = 2 * RADIUS;

/// How deep a paddle is; its back does not matter to the ball.
pub const DEPTH: i32 = 4 * UNIT;

/// Half the length of a paddle.
pub const HALF_LENGTH: i32 = 20 * UNIT;

/// A position or a motion, in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Point {
    /// To the right.
    pub x: i32,
    /// Downwards.
    pub y: i32,
}

impl Point {
    /// The middle of the court, or no motion.
    pub const ZERO: Point = Point { x: 0, y: 0 };

    pub(crate) const fn of(axis: Axis, on: i32, across: i32) -> Point {
        match axis {
            Axis::X => Point { x: on, y: across },
            Axis::Y => Point { x: across, y: on },
        }
    }

    pub(crate) const fn on(self, axis: Axis) -> i32 {
        match axis {
            Axis::X => self.x,
            Axis::Y => self.y,
        }
    }

    /// The length, rounded down.
    pub const fn length(self) -> i32 {
        let (x, y) = (self.x.unsigned_abs() as u64, self.y.unsigned_abs() as u64);
        let length = (x * x + y * y).isqrt();
        if length > i32::MAX as u64 { i32::MAX } else { length as i32 }
    }
}

/// One of the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    X,
    Y,
}

impl Axis {
    pub(crate) const BOTH: [Axis; 2] = [Axis::X, Axis::Y];

    pub(crate) const fn other(self) -> Axis {
        match self {
            Axis::X => Axis::Y,
            Axis::Y => Axis::X,
        }
    }
}

/// A side of the court, in the order of the seats that defend them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[expect(missing_docs, reason = "the sides of a screen")]
pub enum Wall {
    Left,
    Right,
    Top,
    Bottom,
}

impl Wall {
    /// All of them, in seat order.
    pub const ALL: [Wall; 4] = [Wall::Left, Wall::Right, Wall::Top, Wall::Bottom];

    /// The wall's index in an array of walls.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The seat that defends it.
    pub const fn seat(self) -> Seat {
        Seat(self as u16)
    }

    /// The wall that a seat defends; none for spectators' seats.
    pub fn of(seat: Seat) -> Option<Wall> {
        Wall::ALL.get(seat.index()).copied()
    }

    /// The axis along which a ball comes to this wall.
    pub(crate) const fn axis(self) -> Axis {
        match self {
            Wall::Left | Wall::Right => Axis::X,
            Wall::Top | Wall::Bottom => Axis::Y,
        }
    }

    /// On which side of the middle it lies: -1 or 1.
    pub(crate) const fn side(self) -> i32 {
        match self {
            Wall::Left | Wall::Top => -1,
            Wall::Right | Wall::Bottom => 1,
        }
    }

    /// The wall a motion along an axis leads to.
    pub(crate) const fn towards(axis: Axis, motion: i32) -> Wall {
        match (axis, motion < 0) {
            (Axis::X, true) => Wall::Left,
            (Axis::X, false) => Wall::Right,
            (Axis::Y, true) => Wall::Top,
            (Axis::Y, false) => Wall::Bottom,
        }
    }
}

/// The court for a number of players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Court {
    players: u8,
}

impl Court {
    /// The court for two, three or four players.
    pub const fn new(players: u8) -> Court {
        Court { players }
    }

    /// Half its size. Wide for two; square where neighbours play each other.
    pub const fn half(self) -> Point {
        match self.players {
            0..=2 => Point { x: 160 * UNIT, y: 120 * UNIT },
            _ => Point { x: 130 * UNIT, y: 130 * UNIT },
        }
    }

    /// Whether a player defends this wall; the others are solid.
    pub const fn is_open(self, wall: Wall) -> bool {
        (wall as u8) < self.players
    }

    /// The walls that players defend.
    pub fn open_walls(self) -> impl Iterator<Item = Wall> + Clone {
        Wall::ALL.into_iter().filter(move |wall| self.is_open(*wall))
    }

    /// The distance of the ball's centre from the middle when it meets this wall's paddle, or the solid wall.
    pub const fn line(self, wall: Wall) -> i32 {
        let inset = if self.is_open(wall) { INSET } else { 0 };
        self.half().on(wall.axis()) - inset - RADIUS
    }

    /// The largest distance of the ball's centre from the middle once it is lost.
    pub const fn edge(self, wall: Wall) -> i32 {
        let radius = if self.is_open(wall) { 0 } else { RADIUS };
        self.half().on(wall.axis()) - radius
    }

    /// The largest distance of a paddle from the middle of its wall.
    pub const fn reach(self, wall: Wall) -> i32 {
        let corner = if self.players > 2 { INSET } else { 0 };
        self.half().on(wall.axis().other()) - corner - HALF_LENGTH
    }

    /// The position of a ball at the front of this wall's paddle at `along`.
    pub(crate) const fn front(self, wall: Wall, along: i32) -> Point {
        Point::of(wall.axis(), wall.side() * self.line(wall), along)
    }
}
