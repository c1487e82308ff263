//! What a session of arena starts from.

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};

use crate::space::MAX_SIZE;

/// The fewest tiles on a side of the map: room for a few spawns and some cover.
pub const MIN_SIZE: u16 = 16;

/// The most seats: with bots, all numbers of players fit below two thousand.
pub const MAX_SEATS: u16 = 1000;

/// Bots have numbers from here on.
pub const FIRST_BOT: u16 = MAX_SEATS;

/// The points of a round in a quick room: some minutes with a handful of bots.
pub const QUICK_POINTS: u16 = 10;

/// How many bots are in a quick room, if there shall be some.
pub const QUICK_BOTS: u8 = 6;

/// So many tiles there are for each player, at least: a screen then shows about a dozen others.
const TILES_EACH: u32 = 64;

/// What a session starts from. Values out of range are taken as the nearest one in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Setup {
    /// Where all randomness of the session comes from.
    pub seed: u64,
    /// How many tiles a side of the map has: [`MIN_SIZE`] to [`MAX_SIZE`]. More, if that is too tight for all seats.
    pub size: u16,
    /// How many bots play.
    pub bots: u8,
    /// How many seats play: 1 to [`MAX_SEATS`]. Others only watch.
    pub seats: u16,
    /// Who has scored so often has won; nobody ever if this is zero.
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
    /// A room to come into and play at once: round after round, on a map as small as it may be for so many, so that a player who
    /// comes alone meets others soon.
    pub fn quick(seed: u64, seats: u16, with_bots: bool) -> Setup {
        let bots = if with_bots { QUICK_BOTS } else { 0 };
        Setup { seed, size: MIN_SIZE, bots, seats, points: QUICK_POINTS, rocks: true, rounds: true }
    }
}

/// A setup within its range, as the state keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Rules {
    /// [`Setup::seed`], for what bots fancy.
    pub seed: u64,
    /// How many tiles a side of the map has.
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
    /// The rules that a setup means.
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

    /// How many players there can be.
    pub(crate) const fn players(&self) -> usize {
        self.seats as usize + self.bots as usize
    }
}
