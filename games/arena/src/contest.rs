//! Arena in a session: squads, how long it is fought, and who was best.

use sametick_sim::Seat;
use sametick_sim::contest::{Contest, MAX_DIFFICULTY, Outcome, Score, SeatGroup, Wanted};

use crate::setup::{MIN_SIZE, Setup};
use crate::state::{Arena, Person};

const SQUAD: &[&str] = &["first", "second", "third", "fourth"];

/// What each scenario is about.
struct Scenario {
    /// The points that are fought for; none in what has no end.
    points: u16,
    /// Whether there is cover.
    rocks: bool,
}

/// By their number in [`Arena::SCENARIOS`].
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

    /// The harder, the more bots: none at first, ten at last. The map is as small as it may be for all of them.
    fn setup(wanted: &Wanted<'_>) -> Setup {
        let Wanted { seed, seats, difficulty, .. } = *wanted;
        let Scenario { points, rocks } = SCENARIOS[wanted.scenario_among(Arena::SCENARIOS)];
        let bots = difficulty.clamp(1, MAX_DIFFICULTY) - 1;
        Setup { seed, size: MIN_SIZE, bots, seats, points, rocks, rounds: false }
    }

    /// Of those who are there; if a bot was first, nobody has won. Of rounds one after the other, none is the last.
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
