//! The settings of a session, as its creator chooses them.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::name::Name;
use crate::plan::Plan;

/// The highest difficulty; the lowest is 1 (B7).
pub const MAX_DIFFICULTY: u8 = 11;

/// Where the game is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// On every client, in lockstep, through a relay.
    Lockstep,
    /// On the host.
    Room,
}

/// A difficulty from 1 to [`MAX_DIFFICULTY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difficulty(u8);

impl Difficulty {
    /// None if out of range.
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

/// The settings of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Its name in lists.
    pub name: Name,
    /// The game.
    pub game: Name,
    /// The mode.
    pub mode: Mode,
    /// The scenario of the game; none for the default one.
    pub scenario: Option<Name>,
    /// The difficulty.
    pub difficulty: Difficulty,
    /// The number of groups that take part: the first ones.
    pub groups: u8,
    /// Whether it is listed.
    pub listed: bool,
}

impl Settings {
    /// Whether a game with these seats supports the settings.
    pub fn fit(&self, plan: &Plan) -> bool {
        self.groups >= 1 && usize::from(self.groups) <= plan.groups().len()
    }

    /// Whether both have the same game and mode, which cannot change.
    pub fn is_same_game(&self, other: &Settings) -> bool {
        (&self.game, self.mode) == (&other.game, other.mode)
    }
}
