//! The input of a player in one tick: at most seven bytes.

use core::fmt;

use postcard_schema::Schema;
use postcard_schema::schema::NamedType;
use serde::{Deserialize, Serialize};

use crate::build::Kind;
use crate::space::Tile;

/// The input of a player in one tick. Each value has exactly one encoding.
///
/// ```
/// use sametick_arena::{Action, Input, Kind, Tile, Walk};
/// use sametick_sim::to_canonical;
///
/// let walk = Walk::of_keys(true, false, false, true);
/// let input = Input { walk, aim: 64, fire: true, ..Input::default() };
/// assert_eq!(to_canonical(&input)?.len(), 4);
/// let action = Tile::new(3, 4).map(|tile| Action::Place(tile, Kind::Wall));
/// assert!(to_canonical(&Input { action, ..input })?.len() <= 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct Input {
    /// The walking direction, which continues until another input changes it.
    pub walk: Walk,
    /// The aim, in 256 directions, clockwise from the right.
    pub aim: u8,
    /// Whether the trigger is held, until another input changes it.
    pub fire: bool,
    /// An action, in this tick only.
    pub action: Option<Action>,
    /// The order of this input within the tick, set by the host: see `Hosted::order`.
    pub place: u16,
}

/// An action on the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum Action {
    /// Shows a preview to others. It disappears soon unless it is repeated.
    Preview(Tile, Kind),
    /// Builds.
    Place(Tile, Kind),
    /// Removes a structure of the player.
    Remove(Tile),
    /// Removes the preview.
    Clear,
}

/// A walking direction: one of eight, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(try_from = "u8")]
pub struct Walk(u8);

impl Walk {
    /// No movement.
    pub const STILL: Walk = Walk(4);

    /// The walk of four keys; opposite keys cancel out.
    pub const fn of_keys(up: bool, down: bool, left: bool, right: bool) -> Walk {
        Walk::towards(right as i32 - left as i32, down as i32 - up as i32)
    }

    /// The walk with the signs of a vector.
    pub const fn towards(x: i32, y: i32) -> Walk {
        Walk((x.signum() + 1 + 3 * (y.signum() + 1)) as u8)
    }

    /// The walk with this code; no movement if the code is invalid.
    pub const fn of_code(code: u8) -> Walk {
        if code < 9 { Walk(code) } else { Walk::STILL }
    }

    /// Its code, below nine.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// -1 to the left, 1 to the right.
    pub const fn x(self) -> i32 {
        (self.0 % 3) as i32 - 1
    }

    /// -1 up, 1 down.
    pub const fn y(self) -> i32 {
        (self.0 / 3) as i32 - 1
    }

    /// Whether it is no movement.
    pub const fn is_still(self) -> bool {
        self.0 == Walk::STILL.0
    }
}

impl Default for Walk {
    fn default() -> Walk {
        Walk::STILL
    }
}

impl TryFrom<u8> for Walk {
    type Error = BadInput;

    fn try_from(code: u8) -> Result<Walk, BadInput> {
        if code < 9 { Ok(Walk(code)) } else { Err(BadInput) }
    }
}

impl Input {
    /// The parts of the input that continue without a new one: the walk, the aim and the trigger.
    #[must_use]
    pub const fn going_on(&self) -> Input {
        Input { walk: self.walk, aim: self.aim, fire: self.fire, action: None, place: 0 }
    }

    /// Merges two inputs: the later one, with the action of the earlier if that has priority.
    #[must_use]
    pub fn after(&self, earlier: &Input) -> Input {
        let firm = |action: &Action| matches!(action, Action::Place(..) | Action::Remove(_));
        let action = match (self.action, earlier.action) {
            (Some(later), Some(earlier)) if !firm(&later) && firm(&earlier) => Some(earlier),
            (later, earlier) => later.or(earlier),
        };
        Input { fire: self.fire || earlier.fire, action, ..*self }
    }
}

/// The encoded input: the first byte is walk + 9 · fire + 18 · (0, or 1 + the kind of action).
#[derive(Clone, Copy, Serialize, Deserialize, Schema)]
struct Packed {
    what: u8,
    aim: u8,
    tile: u32,
    place: u16,
}

const WALKS: u8 = 9;
const REMOVE: u8 = 7;
const CLEAR: u8 = 8;

impl From<Input> for Packed {
    fn from(input: Input) -> Packed {
        let (code, tile) = match input.action {
            None => (0, None),
            Some(Action::Preview(tile, kind)) => (1 + kind.code(), Some(tile)),
            Some(Action::Place(tile, kind)) => (4 + kind.code(), Some(tile)),
            Some(Action::Remove(tile)) => (REMOVE, Some(tile)),
            Some(Action::Clear) => (CLEAR, None),
        };
        let what = input.walk.0 + WALKS * u8::from(input.fire) + 2 * WALKS * code;
        Packed { what, aim: input.aim, tile: tile.map_or(0, Tile::number), place: input.place }
    }
}

impl TryFrom<Packed> for Input {
    type Error = BadInput;

    fn try_from(packed: Packed) -> Result<Input, BadInput> {
        let Packed { what, aim, tile, place } = packed;
        let code = what / (2 * WALKS);
        let on = Tile::of_number(tile).ok_or(BadInput)?;
        let action = match code {
            0 | CLEAR if tile != 0 => return Err(BadInput),
            0 => None,
            1..4 => Some(Action::Preview(on, Kind::of_code(code - 1).ok_or(BadInput)?)),
            4..REMOVE => Some(Action::Place(on, Kind::of_code(code - 4).ok_or(BadInput)?)),
            REMOVE => Some(Action::Remove(on)),
            CLEAR => Some(Action::Clear),
            _ => return Err(BadInput),
        };
        Ok(Input { walk: Walk(what % WALKS), aim, fire: what / WALKS % 2 == 1, action, place })
    }
}

/// The schema is that of the packed form.
impl Schema for Input {
    const SCHEMA: &'static NamedType = Packed::SCHEMA;
}

/// Numbers that encode no input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadInput;

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no input of arena: there is no such walk or action, or no such tile")
    }
}

impl core::error::Error for BadInput {}
