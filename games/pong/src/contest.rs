//! Pong in a session: the names of the sides, the points to win, and the outcome.

use sametick_sim::contest::{Contest, Outcome, Score, SeatGroup, Wanted};

use crate::court::Wall;
use crate::setup::{MAX_PLAYERS, MIN_PLAYERS, Setup, Skill};
use crate::state::{Phase, Pong};

/// The points that win, by scenario.
const POINTS: [u8; 4] = [11, 5, 21, 11];

/// The scenario of endless games, until all players have left.
const PRACTICE: &str = "practice";

impl Contest for Pong {
    const GROUPS: &'static [SeatGroup] = &[
        SeatGroup { name: "Sides", seats: &["left", "right"] },
        SeatGroup { name: "Ends", seats: &["top", "bottom"] },
    ];

    const SCENARIOS: &'static [&'static str] = &["classic", "short", "long", PRACTICE];

    fn setup(wanted: &Wanted<'_>) -> Setup {
        let players = wanted.seats.clamp(MIN_PLAYERS.into(), MAX_PLAYERS.into()) as u8;
        let points = POINTS[wanted.scenario_among(Pong::SCENARIOS)];
        let skill = match wanted.difficulty {
            ..=3 => Skill::Easy,
            4..=8 => Skill::Normal,
            9.. => Skill::Hard,
        };
        let once = wanted.scenario != Some(PRACTICE);
        Setup { seed: wanted.seed, players, points, lead: 1, bots: true, skill, once }
    }

    fn outcome(&self) -> Option<Outcome> {
        let Phase::Over { winner, .. } = self.phase else { return None };
        let score = |wall: Wall| Score {
            seat: wall.seat(),
            points: self.paddle(wall).score.into(),
            won: wall == winner,
        };
        // Endless games have no outcome.
        self.rules.once.then(|| Outcome { scores: self.rules.court().open_walls().map(score).collect() })
    }
}
