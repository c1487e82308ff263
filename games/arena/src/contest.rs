//! Arena in a session: squads, the points that end the game, and the winner.

use sametick_sim::Seat;
use sametick_sim::contest::{Contest, MAX_DIFFICULTY, Outcome, Score, SeatGroup, Wanted};

use crate::setup::{MIN_SIZE, Setup};
use crate::state::{Arena, Person};

const SQUAD: &[&str] = &["first", "second", "third", "fourth"];

/// The parameters of a scenario.
struct Scenario {
    /// The points that win; none if the scenario does not end.
    points: u16,
    /// Whether there is cover.
    rocks: bool,
}

/// In the order of [`Arena::SCENARIOS`].
const SCENARIOS: [Scenario; 5] = [
    Scenario { points: 5, rocks: true },
    Scenario { points: 15, rocks: true },
    Scenario { points: 30, rocks: true },
    Scenario { points: 3, rocks: false },
    Scenario { points: 0, rocks: false },
];

impl Contest for Arena {
    const GROUPS: &'static [SeatGroup] = &[
        SeatGroup { name: "Squad 1", seats: SQUAD },
        SeatGroup { name: "Squad 2", seats: SQUAD },
        SeatGroup { name: "Squad 3", seats: SQUAD },
        SeatGroup { name: "Squad 4", seats: SQUAD },
    ];

    const SCENARIOS: &'static [&'static str] = &["skirmish", "battle", "war", "field", "practice"];

    /// A higher difficulty has more bots: none to ten. The map has the minimum size for all of them.
    fn setup(wanted: &Wanted<'_>) -> Setup {
        let Wanted { seed, seats, difficulty, .. } = *wanted;
        let Scenario { points, rocks } = SCENARIOS[wanted.scenario_among(Arena::SCENARIOS)];
        let bots = difficulty.clamp(1, MAX_DIFFICULTY) - 1;
        Setup { seed, size: MIN_SIZE, bots, seats, points, rocks, rounds: false }
    }

    /// The scores of present players; if a bot won, no player has won. Endless rounds have no outcome.
    fn outcome(&self) -> Option<Outcome> {
        let winner = self.won.filter(|_| !self.rules.rounds)?;
        let people = self.people.iter().filter(|person| !person.is_bot());
        let score = |person: &Person| Score {
            seat: Seat(person.own.number),
            points: person.score.into(),
            won: person.own.number == winner,
        };
        Some(Outcome { scores: people.map(score).collect() })
    }
}
