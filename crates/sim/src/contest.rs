//! The `Contest` trait: what a game declares so that sessions can be made of it: seats, scenarios and outcome.
//!
//! A session has people, seats and a start before there is a game, and results after it (`docs/sessions.md`). For that,
//! the server needs facts about the game that [`Game`] alone does not give. A seat that is not taken, or was left, is
//! handled by the game as always: in pong a bot plays there, in arena the seat stays empty.
//!
//! ```
//! # use sametick_sim::*;
//! use sametick_sim::contest::{Contest, Outcome, Score, SeatGroup, Wanted};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Clone, Serialize, Deserialize, Schema)]
//! # struct Race { length: u32, at: [u32; 2] }
//! # impl Game for Race {
//! #     const NAME: &'static str = "race";
//! #     const RATE: TickRate = TickRate::hz(60);
//! #     const BUILD: BuildId = BuildId::from_bytes([1; 16]);
//! #     type Setup = u32;
//! #     type Input = u8;
//! #     fn new(length: &u32) -> Race { Race { length: *length, at: [0; 2] } }
//! #     fn step(&mut self, _: &Inputs<u8>) {}
//! # }
//!
//! impl Contest for Race {
//!     const GROUPS: &'static [SeatGroup] = &[SeatGroup { name: "Runners", seats: &["inside", "outside"] }];
//!     const SCENARIOS: &'static [&'static str] = &["sprint", "marathon"];
//!
//!     fn setup(wanted: &Wanted<'_>) -> u32 {
//!         if wanted.scenario == Some("marathon") { 42_195 } else { 100 }
//!     }
//!
//!     fn outcome(&self) -> Option<Outcome> {
//!         let is_over = self.at.iter().any(|at| *at >= self.length);
//!         let score = |(seat, at): (Seat, &u32)| Score { seat, points: *at as i32, won: *at >= self.length };
//!         is_over.then(|| Outcome { scores: (0..).map(Seat).zip(&self.at).map(score).collect() })
//!     }
//! }
//!
//! let mut race = Race::new(&Race::setup(&Wanted { seed: 7, seats: 2, scenario: None, difficulty: 1 }));
//! assert_eq!(race.outcome(), None);
//! race.at = [60, 100];
//! assert!(race.outcome().is_some_and(|outcome| outcome.scores[1].won));
//! ```

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{Game, Seat};

/// The hardest a game can be asked to be; the easiest is 1.
pub const MAX_DIFFICULTY: u8 = 11;

/// A game of which sessions can be made. The seats of its groups have the game's seat numbers, in order.
pub trait Contest: Game {
    /// The seats, in groups such as the consoles of ships or the sides of a table. A session uses the first ones of
    /// them.
    const GROUPS: &'static [SeatGroup];

    /// The names of the scenarios; the first is the default. There may be none.
    const SCENARIOS: &'static [&'static str];

    /// The setup of a session's round. The round starts by itself: players are not asked to start it again.
    fn setup(wanted: &Wanted<'_>) -> Self::Setup;

    /// The outcome, once the game is over: from then on it stays over, whatever happens.
    fn outcome(&self) -> Option<Outcome>;
}

/// Seats of a game that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatGroup {
    /// The name of the group.
    pub name: &'static str,
    /// The name of each seat.
    pub seats: &'static [&'static str],
}

/// The parameters a session wants for a round. A game treats values it does not know as the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The seed of all randomness.
    pub seed: u64,
    /// The number of seats that take part: those of the first groups.
    pub seats: u16,
    /// One of [`Contest::SCENARIOS`]; the default if none.
    pub scenario: Option<&'a str>,
    /// The difficulty, from 1 to [`MAX_DIFFICULTY`].
    pub difficulty: u8,
}

impl Wanted<'_> {
    /// The index of the wanted scenario among these; the first if it is none of them.
    pub fn scenario_among(&self, names: &[&str]) -> usize {
        let wanted = |name: &&str| Some(*name) == self.scenario;
        names.iter().position(wanted).unwrap_or(0)
    }
}

/// The result of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The score of every player to be listed, by seat.
    pub scores: Vec<Score>,
}

/// The score of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    /// The player's seat.
    pub seat: Seat,
    /// The points.
    pub points: i32,
    /// Whether the player is the winner, or one of them.
    pub won: bool,
}
