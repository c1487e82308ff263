//! Coordinates: units, tiles and directions. Integers only.
//!
//! The corner of the map is (0, 0), x grows to the right and y downwards, and [`UNIT`] units are the side of a tile.

use core::fmt;

use postcard_schema::Schema;
use postcard_schema::schema::NamedType;
use serde::{Deserialize, Serialize};

/// The side of a tile.
pub const UNIT: i32 = 256;

/// The most tiles per side of the map.
pub const MAX_SIZE: u16 = 512;

/// A position or a motion, in units: to the right, and downwards.
pub type At = [i32; 2];

/// The number of directions, clockwise from the right.
pub const TURN: u32 = 256;

/// A tile of the map, within the largest size: 0 to 511 along both axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "[u16; 2]", into = "[u16; 2]")]
pub struct Tile {
    // In this order tiles compare as the numbers of structures do.
    y: u16,
    x: u16,
}

impl Tile {
    /// The tile in this column and row, if it is in range.
    pub const fn new(x: i32, y: i32) -> Option<Tile> {
        let end = MAX_SIZE as i32;
        if x >= 0 && y >= 0 && x < end && y < end { Some(Tile { y: y as u16, x: x as u16 }) } else { None }
    }

    /// The tile of a position.
    pub const fn of(at: At) -> Option<Tile> {
        Tile::new(at[0].div_euclid(UNIT), at[1].div_euclid(UNIT))
    }

    /// Its column.
    pub const fn x(self) -> i32 {
        self.x as i32
    }

    /// Its row.
    pub const fn y(self) -> i32 {
        self.y as i32
    }

    /// Its column and row.
    pub const fn pair(self) -> [i16; 2] {
        [self.x as i16, self.y as i16]
    }

    /// The position of its centre.
    pub const fn centre(self) -> At {
        [self.x() * UNIT + UNIT / 2, self.y() * UNIT + UNIT / 2]
    }

    /// Its number: its encoding in an input, and the number of the structure on it.
    pub const fn number(self) -> u32 {
        self.y as u32 * MAX_SIZE as u32 + self.x as u32
    }

    /// The tile with this number.
    pub const fn of_number(number: u32) -> Option<Tile> {
        if number >= MAX_SIZE as u32 * MAX_SIZE as u32 {
            return None;
        }
        Tile::new((number % MAX_SIZE as u32) as i32, (number / MAX_SIZE as u32) as i32)
    }
}

impl From<Tile> for [u16; 2] {
    fn from(tile: Tile) -> [u16; 2] {
        [tile.x, tile.y]
    }
}

impl TryFrom<[u16; 2]> for Tile {
    type Error = BadTile;

    fn try_from([x, y]: [u16; 2]) -> Result<Tile, BadTile> {
        Tile::new(x.into(), y.into()).ok_or(BadTile)
    }
}

/// The schema is that of its column and row.
impl Schema for Tile {
    const SCHEMA: &'static NamedType = <[u16; 2]>::SCHEMA;
}

/// A column or row beyond the largest map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTile;

impl fmt::Display for BadTile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the columns and rows of tiles go from 0 to {}", MAX_SIZE - 1)
    }
}

impl core::error::Error for BadTile {}

/// The fixed-point representation of one in the sine table.
const ONE: i32 = 1 << 14;

/// The sines of a quarter turn, from 0 to [`ONE`].
const SINES: [i32; 65] = {
    let mut sines = [0; 65];
    let mut at = 0;
    while at < 65 {
        sines[at] = sine(at as i64);
        at += 1;
    }
    sines
};

/// The first terms of the series, with 30 fractional bits: the error is less than a thousandth of a step of the table.
const fn sine(part: i64) -> i32 {
    const BITS: u32 = 30;
    const QUARTER_TURN: i64 = 1_686_629_713;
    let x = QUARTER_TURN * part / 64;
    let square = (x * x) >> BITS;
    let (mut term, mut sum, mut n) = (x, x, 1);
    while n < 7 {
        term = -((term * square) >> BITS) / ((2 * n) * (2 * n + 1));
        sum += term;
        n += 1;
    }
    ((sum + (1 << 15)) >> 16) as i32
}

/// The cosine and sine of a direction, scaled to [`ONE`].
const fn direction(aim: u8) -> At {
    let (quarter, part) = (aim / 64, (aim % 64) as usize);
    let (sin, cos) = (SINES[part], SINES[64 - part]);
    match quarter {
        0 => [cos, sin],
        1 => [-sin, cos],
        2 => [-cos, -sin],
        _ => [sin, -cos],
    }
}

/// A motion with a length up to 65536 in a direction.
pub const fn towards(aim: u8, length: i32) -> At {
    let [x, y] = direction(aim);
    [rounded(x, length), rounded(y, length)]
}

const fn rounded(part: i32, length: i32) -> i32 {
    ((part as i64 * length as i64 + (ONE / 2) as i64) >> 14) as i32
}

/// The direction of a vector; to the right if its length is zero.
pub const fn aim_of(way: At) -> u8 {
    let (x, y) = (way[0] as i64, way[1] as i64);
    // Rotated into the first quarter.
    let (quarter, x, y) = match (x > 0 || (x == 0 && y == 0), y) {
        (true, 0..) => (0, x, y),
        (false, 1..) => (1, y, -x),
        (false, _) if x < 0 => (2, -x, -y),
        _ => (3, -y, x),
    };
    let (mut low, mut high) = (0, 64);
    while low < high {
        let middle = (low + high) / 2;
        // Whether the vector lies more than half a step beyond this direction.
        let sin = (SINES[middle] + SINES[middle + 1]) as i64;
        let cos = (SINES[64 - middle] + SINES[63 - middle]) as i64;
        if cos * y > sin * x {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    ((quarter * 64 + low) % 256) as u8
}

/// The squared length, saturating.
pub(crate) const fn square([x, y]: At) -> i64 {
    (x as i64 * x as i64).saturating_add(y as i64 * y as i64)
}

/// The vector from one position to another, saturating.
pub(crate) const fn way(from: At, to: At) -> At {
    [to[0].saturating_sub(from[0]), to[1].saturating_sub(from[1])]
}
