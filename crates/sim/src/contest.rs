//! Games of which sessions can be made: who can sit where, what is played, and how it has ended.
//!
//! A session has people, seats and a start before there is a game, and results after it (`docs/sessions.md`). For that, whoever
//! runs it has to know a few things of the game that a [`Game`] alone does not say. A seat that nobody has taken, or that was left, is
//! the game's business as ever: in pong a bot plays there, in arena nobody does.
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

/// A game of which sessions can be made. The seats of its groups have the numbers of the game's seats, in order.
pub trait Contest: Game {
    /// The seats, in groups such as the consoles of ships or the sides of a table. A session has the first ones of them.
    const GROUPS: &'static [SeatGroup];

    /// What can be played, by name; the first is usual. There may be none.
    const SCENARIOS: &'static [&'static str];

    /// What a round of a session begins with. It is started already: nobody in the game is asked for it again.
    fn setup(wanted: &Wanted<'_>) -> Self::Setup;

    /// How it has ended, once it has: from then on it stays ended, whatever happens.
    fn outcome(&self) -> Option<Outcome>;
}

/// Some seats of a game that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatGroup {
    /// What they are called together.
    pub name: &'static str,
    /// What each is called.
    pub seats: &'static [&'static str],
}

/// What a session wants of a round. What a game does not know is taken for what is usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Where all randomness comes from.
    pub seed: u64,
    /// How many seats take part: those of the first groups.
    pub seats: u16,
    /// Which of [`Contest::SCENARIOS`]; the usual one if none.
    pub scenario: Option<&'a str>,
    /// How hard it is to be, from 1 to [`MAX_DIFFICULTY`].
    pub difficulty: u8,
}

impl Wanted<'_> {
    /// The number of the scenario that is wanted, among these; the first if it is none of them.
    pub fn scenario_among(&self, names: &[&str]) -> usize {
        let wanted = |name: &&str| Some(*name) == self.scenario;
        names.iter().position(wanted).unwrap_or(0)
    }
}

/// How a round has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What everybody has achieved who is to be named, by seat.
    pub scores: Vec<Score>,
}

/// What somebody has achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    /// Where they sat.
    pub seat: Seat,
    /// How much.
    pub points: i32,
    /// Whether that was the most, or they are among those who did best.
    pub won: bool,
}
