//! The setup of a session of arena.

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::space::MAX_SIZE;

/// The fewest tiles per side of the map: room for a few spawns and some cover.
pub const MIN_SIZE: u16 = 16;

/// The most seats: with bots, all numbers of players fit below two thousand.
pub const MAX_SEATS: u16 = 1000;

/// The lowest number of a bot.
pub const FIRST_BOT: u16 = MAX_SEATS;

/// The points of a round in a quick room: some minutes with a handful of bots.
pub const QUICK_POINTS: u16 = 10;

/// The number of bots in a quick room, if it has bots.
pub const QUICK_BOTS: u8 = 6;

/// The least number of tiles per player: a screen then shows about a dozen others.
const TILES_EACH: u32 = 64;

/// The setup of a session. Values out of range are clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Setup {
    /// The seed of all randomness of the session.
    pub seed: u64,
    /// The number of tiles per side of the map: [`MIN_SIZE`] to [`MAX_SIZE`]. It is raised if that is too small for all
    /// seats.
    pub size: u16,
    /// The number of bots.
    pub bots: u8,
    /// The number of seats that play: 1 to [`MAX_SEATS`]. Others only spectate.
    pub seats: u16,
    /// The score that wins; zero if the game has no end.
    pub points: u16,
    /// Whether there are rocks as cover. Without them the map is bare.
    pub rocks: bool,
    /// Whether another round follows when a player has the points. Without it the game is over then.
    pub rounds: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { seed: 0, size: 48, bots: 3, seats: 16, points: 0, rocks: true, rounds: false }
    }
}

impl Setup {
    /// A room to join and play at once: round after round, on a map of the minimum size, so that a player who is alone
    /// soon meets others.
    pub fn quick(seed: u64, seats: u16, with_bots: bool) -> Setup {
        let bots = if with_bots { QUICK_BOTS } else { 0 };
        Setup { seed, size: MIN_SIZE, bots, seats, points: QUICK_POINTS, rocks: true, rounds: true }
    }
}

/// A clamped setup, as part of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Rules {
    /// [`Setup::seed`], for the moods of bots.
    pub seed: u64,
    /// The number of tiles per side of the map.
    pub size: u16,
    /// [`Setup::bots`].
    pub bots: u8,
    /// [`Setup::seats`].
    pub seats: u16,
    /// [`Setup::points`].
    pub points: u16,
    /// [`Setup::rounds`].
    pub rounds: bool,
}

impl Rules {
    /// The rules of a setup.
    pub fn of(setup: &Setup) -> Rules {
        let seats = setup.seats.clamp(1, MAX_SEATS);
        let players = u32::from(seats) + u32::from(setup.bots);
        let needed = (players * TILES_EACH).isqrt() as u16;
        let size = setup.size.clamp(MIN_SIZE, MAX_SIZE).max(needed);
        let Setup { seed, bots, points, rounds, .. } = *setup;
        Rules { seed, size, bots, seats, points, rounds }
    }

    pub(crate) fn are_in_range(&self) -> bool {
        (MIN_SIZE..=MAX_SIZE).contains(&self.size) && (1..=MAX_SEATS).contains(&self.seats)
    }

    /// The largest number of players.
    pub(crate) const fn players(&self) -> usize {
        self.seats as usize + self.bots as usize
    }
}
