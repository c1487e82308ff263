//! Pong in sessions: a game begins by itself, and once it is over it stays over.

use sametick_pong::{Input, Phase, Pong, Setup, Skill};
use sametick_sim::contest::{Contest, Wanted};
use sametick_sim::{Inputs, Rng, Seat};

use crate::table::Table;

const WANTED: Wanted<'_> = Wanted { seed: 7, seats: 2, scenario: Some("short"), difficulty: 6 };

#[test]
fn a_session_sets_the_rules() {
    let of = |wanted: Wanted<'_>| {
        let Setup { seed, players, points, skill, once, bots, .. } = Pong::setup(&wanted);
        assert!(bots && seed == 7 && once == (wanted.scenario != Some("practice")));
        (players, points, skill)
    };
    assert_eq!(of(WANTED), (2, 5, Skill::Normal));
    assert_eq!(of(Wanted { seats: 4, scenario: None, difficulty: 1, ..WANTED }), (4, 11, Skill::Easy));
    assert_eq!(
        of(Wanted { seats: 9, scenario: Some("long"), difficulty: 11, ..WANTED }),
        (4, 21, Skill::Hard)
    );
    assert_eq!(of(Wanted { scenario: Some("practice"), ..WANTED }), (2, 11, Skill::Normal));
    assert_eq!(of(Wanted { scenario: Some("unheard of"), ..WANTED }).1, 11);
    // The seats of the groups are those of the walls, in order.
    let seats: Vec<&str> = Pong::GROUPS.iter().flat_map(|group| group.seats).copied().collect();
    let walls = sametick_pong::Wall::ALL.map(|wall| format!("{wall:?}").to_lowercase());
    assert_eq!(seats, walls);
}

#[test]
fn it_begins_without_ready_players_and_ends_once() {
    for seed in 0..8 {
        let mut table = Table::new(Pong::setup(&Wanted { seed, ..WANTED }));
        let idle = [(0, Input::NONE)];
        let begun = table.until(&idle, |phase| !matches!(phase, Phase::Waiting { .. }));
        assert!((60..=180).contains(&begun), "{begun}");
        assert_eq!(table.pong.outcome(), None);
        table.until(&idle, |phase| matches!(phase, Phase::Over { .. }));
        let outcome = table.pong.outcome().unwrap();
        let points: Vec<_> =
            outcome.scores.iter().map(|score| (score.seat, score.points, score.won)).collect();
        let [(Seat(0), left, left_won), (Seat(1), right, right_won)] = points[..] else {
            panic!("{points:?}")
        };
        assert!(left.max(right) == 5 && left_won == (left == 5) && right_won == (right == 5), "{points:?}");
        // Whatever players press then.
        table.ticks(400, &[(0, Input::NONE.and_rematch()), (1, Input::NONE.and_rematch().and_serve())]);
        let mut rng = Rng::new(seed);
        for _ in 0..400 {
            table.tick_with(|inputs: &mut Inputs<Input>| match rng.below(4) {
                0 => inputs.join(Seat(1)),
                1 => inputs.leave(Seat(0)),
                2 => inputs.omit(Seat(0)),
                _ => {}
            });
        }
        assert_eq!(table.pong.outcome(), Some(outcome));
    }
}

#[test]
fn without_a_session_there_is_always_another_game() {
    let mut table = Table::new(Setup { points: 1, ..Setup::default() });
    table.until(&[(0, Input::NONE.and_serve())], |phase| matches!(phase, Phase::Over { .. }));
    assert_eq!(table.pong.outcome(), None);
    table.until(&[(0, Input::NONE.and_rematch())], |phase| matches!(phase, Phase::Serving { .. }));
}
