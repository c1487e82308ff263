//! The setup of a session of pong.

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::court::Court;

/// The fewest players.
pub const MIN_PLAYERS: u8 = 2;
/// The most players: there are four walls.
pub const MAX_PLAYERS: u8 = 4;
/// The most points a game can be played to: two digits on every screen.
pub const MAX_POINTS: u8 = 50;
/// The largest lead that can be required.
pub const MAX_LEAD: u8 = 5;
/// At this score a game is won whatever the lead, so that every game ends.
pub const MAX_SCORE: u8 = 99;

/// The setup of a session. Values out of range are clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Setup {
    /// The seed of all randomness of the session.
    pub seed: u64,
    /// The number of defended walls: [`MIN_PLAYERS`] to [`MAX_PLAYERS`].
    pub players: u8,
    /// The points that win a game: 1 to [`MAX_POINTS`].
    pub points: u8,
    /// How many points more than every other a winner needs: 1 to [`MAX_LEAD`]; 2 is as in table tennis.
    pub lead: u8,
    /// Whether bots play for empty seats.
    pub bots: bool,
    /// The skill of the bots.
    pub skill: Skill,
    /// Whether only one game is played, which begins by itself: the session has started it, and shows its outcome.
    pub once: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { seed: 0, players: 2, points: 11, lead: 1, bots: true, skill: Skill::Normal, once: false }
    }
}

/// The skill of bots: how often they look, and how well they judge where the ball will be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum Skill {
    /// For a first game.
    Easy,
    /// A match for most.
    #[default]
    Normal,
    /// Rarely beaten without spin.
    Hard,
}

/// A clamped setup, as part of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Rules {
    /// [`Setup::players`].
    pub players: u8,
    /// [`Setup::points`].
    pub points: u8,
    /// [`Setup::lead`].
    pub lead: u8,
    /// [`Setup::bots`].
    pub bots: bool,
    /// [`Setup::skill`].
    pub skill: Skill,
    /// [`Setup::once`].
    pub once: bool,
}

impl Rules {
    /// The rules of a setup.
    pub fn of(setup: &Setup) -> Rules {
        Rules {
            players: setup.players.clamp(MIN_PLAYERS, MAX_PLAYERS),
            points: setup.points.clamp(1, MAX_POINTS),
            lead: setup.lead.clamp(1, MAX_LEAD),
            bots: setup.bots,
            skill: setup.skill,
            once: setup.once,
        }
    }

    /// The court of these rules.
    pub const fn court(&self) -> Court {
        Court::new(self.players)
    }

    pub(crate) fn are_in_range(&self) -> bool {
        (MIN_PLAYERS..=MAX_PLAYERS).contains(&self.players)
            && (1..=MAX_POINTS).contains(&self.points)
            && (1..=MAX_LEAD).contains(&self.lead)
    }
}
