//! The input of a player in one tick: one byte.

use core::fmt;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

/// The input of a player in one tick: a motion along the wall, and buttons. One byte; each value has exactly one
/// encoding.
///
/// ```
/// use sametick_pong::{Input, Motion};
///
/// let input = Input::moving(Motion::Less).and_serve();
/// assert_eq!((input.motion(), input.serves(), input.wants_rematch()), (Motion::Less, true, false));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(try_from = "u8")]
pub struct Input(u8);

/// A motion along a wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum Motion {
    /// None.
    #[default]
    Still,
    /// Up, or to the left.
    Less,
    /// Down, or to the right.
    More,
}

impl Motion {
    /// -1, 0 or 1.
    pub const fn sign(self) -> i32 {
        match self {
            Motion::Still => 0,
            Motion::Less => -1,
            Motion::More => 1,
        }
    }

    /// The motion with the sign of a number.
    pub const fn towards(sign: i32) -> Motion {
        match sign {
            0 => Motion::Still,
            ..0 => Motion::Less,
            1.. => Motion::More,
        }
    }

    /// The motion of two keys; both together cancel out.
    pub const fn of_keys(less: bool, more: bool) -> Motion {
        Motion::towards(more as i32 - less as i32)
    }
}

impl Input {
    const LESS: u8 = 1;
    const MORE: u8 = 2;
    const SERVE: u8 = 4;
    const REMATCH: u8 = 8;
    const ALL: u8 = 15;

    /// No motion, no button.
    pub const NONE: Input = Input(0);

    /// A motion, no button.
    pub const fn moving(motion: Motion) -> Input {
        match motion {
            Motion::Still => Input(0),
            Motion::Less => Input(Input::LESS),
            Motion::More => Input(Input::MORE),
        }
    }

    /// Adds the button for being ready and for serving.
    #[must_use]
    pub const fn and_serve(self) -> Input {
        Input(self.0 | Input::SERVE)
    }

    /// Adds the button for another game.
    #[must_use]
    pub const fn and_rematch(self) -> Input {
        Input(self.0 | Input::REMATCH)
    }

    /// The motion.
    pub const fn motion(self) -> Motion {
        Motion::of_keys(self.0 & Input::LESS != 0, self.0 & Input::MORE != 0)
    }

    /// Whether the player is ready, or serves.
    pub const fn serves(self) -> bool {
        self.0 & Input::SERVE != 0
    }

    /// Whether the player asks for another game.
    pub const fn wants_rematch(self) -> bool {
        self.0 & Input::REMATCH != 0
    }
}

impl TryFrom<u8> for Input {
    type Error = BadInput;

    fn try_from(bits: u8) -> Result<Input, BadInput> {
        let both = Input::LESS | Input::MORE;
        if bits & !Input::ALL == 0 && bits & both != both { Ok(Input(bits)) } else { Err(BadInput(bits)) }
    }
}

/// A byte that encodes no input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadInput(pub u8);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "0x{:02x} is no input of pong: it moves both ways, or presses buttons there are not",
            self.0
        )
    }
}

impl core::error::Error for BadInput {}
