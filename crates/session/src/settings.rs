//! What a session is about, as its creator wants it.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::name::Name;
use crate::plan::Plan;

/// The hardest there is; the easiest is 1 (B7).
pub const MAX_DIFFICULTY: u8 = 11;

/// Who decides what happens in the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Everybody, in the same way, through a relay.
    Lockstep,
    /// The host.
    Room,
}

/// How hard it is, from 1 to [`MAX_DIFFICULTY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difficulty(u8);

impl Difficulty {
    /// If there is such a one.
    pub fn new(level: u8) -> Option<Difficulty> {
        (1..=MAX_DIFFICULTY).contains(&level).then_some(Difficulty(level))
    }

    /// The number.
    pub fn level(self) -> u8 {
        self.0
    }
}

impl Default for Difficulty {
    fn default() -> Difficulty {
        Difficulty(1)
    }
}

impl<'de> Deserialize<'de> for Difficulty {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let level = u8::deserialize(deserializer)?;
        Difficulty::new(level).ok_or_else(|| D::Error::custom("a difficulty is between 1 and 11"))
    }
}

/// What a session is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// What it is called in lists.
    pub name: Name,
    /// What is played.
    pub game: Name,
    /// How.
    pub mode: Mode,
    /// Which of the game's scenarios; the game's usual one if none.
    pub scenario: Option<Name>,
    /// How hard it is.
    pub difficulty: Difficulty,
    /// How many of the game's groups take part: the first ones.
    pub groups: u8,
    /// Whether it is in lists.
    pub listed: bool,
}

impl Settings {
    /// Whether a game with these seats can be had like this.
    pub fn fit(&self, plan: &Plan) -> bool {
        self.groups >= 1 && usize::from(self.groups) <= plan.groups().len()
    }

    /// Whether these are of the same game, which does not change.
    pub fn is_same_game(&self, other: &Settings) -> bool {
        (&self.game, self.mode) == (&other.game, other.mode)
    }
}
