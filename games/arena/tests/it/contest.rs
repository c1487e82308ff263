//! Arena in sessions: a game has a winner, and stays over afterwards.

use sametick_arena::{Arena, Ground, Input, Setup};
use sametick_sim::contest::{Contest, Wanted};
use sametick_sim::replica::{Hosted, Scene};
use sametick_sim::{Game, Seat, from_canonical, to_canonical};

use crate::field::{Field, STILL};

const WANTED: Wanted<'_> = Wanted { seed: 7, seats: 8, scenario: None, difficulty: 1 };

#[test]
fn a_session_sets_the_rules() {
    let of = |wanted: Wanted<'_>| {
        let Setup { seed, bots, seats, points, rocks, .. } = Arena::setup(&wanted);
        assert_eq!((seed, rocks), (7, !matches!(wanted.scenario, Some("field" | "practice"))));
        (bots, seats, points)
    };
    assert_eq!(of(WANTED), (0, 8, 5));
    assert_eq!(of(Wanted { seats: 16, scenario: Some("battle"), difficulty: 11, ..WANTED }), (10, 16, 15));
    assert_eq!(of(Wanted { scenario: Some("war"), difficulty: 200, ..WANTED }), (10, 8, 30));
    assert_eq!(of(Wanted { scenario: Some("field"), ..WANTED }), (0, 8, 3));
    assert_eq!(of(Wanted { scenario: Some("practice"), ..WANTED }), (0, 8, 0));
    assert_eq!(Arena::GROUPS.iter().map(|group| group.seats.len()).sum::<usize>(), 16);
}

/// Seat 0 kills seat 1 a number of times.
fn shoot(field: &mut Field, times: u32) {
    let stand = |field: &mut Field| {
        let [x, y] = field.open_area();
        field.put(0, sametick_arena::Tile::new(x + 4, y + 5).unwrap());
        field.put(1, sametick_arena::Tile::new(x + 7, y + 5).unwrap());
    };
    let fire = Input { aim: 0, fire: true, ..STILL };
    for _ in 0..times {
        stand(field);
        while field.own(1).is_alive() {
            field.tick(&[(0, fire), (1, STILL)]);
        }
        while !field.own(1).is_alive() {
            field.tick(&[(0, STILL), (1, STILL)]);
        }
    }
}

#[test]
fn the_first_with_the_points_wins_and_scoring_ends() {
    let mut field = Field::new(Arena::setup(&WANTED));
    field.tick(&[(0, STILL), (1, STILL)]);
    shoot(&mut field, 4);
    assert_eq!(field.arena.outcome(), None);
    shoot(&mut field, 1);
    let outcome = field.arena.outcome().unwrap();
    let scores: Vec<_> = outcome.scores.iter().map(|score| (score.seat.0, score.points, score.won)).collect();
    assert_eq!(scores, [(0, 5, true), (1, 0, false)]);
    shoot(&mut field, 2);
    assert_eq!(field.arena.outcome(), Some(outcome.clone()));
    // Also after a round trip, and when the winner leaves.
    let kept: Arena = from_canonical(&to_canonical(&field.arena).unwrap()).unwrap();
    assert_eq!(kept.outcome(), Some(outcome));
    field.tick(&[(1, STILL)]);
    assert_eq!(field.arena.outcome().unwrap().scores.len(), 1);
}

#[test]
fn without_points_the_game_has_no_end() {
    let mut field = Field::for_two();
    shoot(&mut field, 6);
    assert_eq!((field.arena.outcome(), field.arena.person(0).unwrap().score), (None, 6));
    assert_eq!(Arena::new(&Setup::default()).at_seat(Seat(0)), None);
}

#[test]
fn a_bare_field_shows_its_limit_and_the_winner() {
    let setup = Arena::setup(&Wanted { scenario: Some("field"), ..WANTED });
    let mut field = Field::new(setup);
    assert!(field.arena.map.blocks().is_empty());
    let ground = |field: &Field| {
        let mut scene = Scene::new(Arena::KINDS);
        field.arena.show(&mut scene);
        scene.get::<Ground>(0).map(|ground| (ground.points, ground.won))
    };
    field.tick(&[(0, STILL), (1, STILL)]);
    shoot(&mut field, 2);
    assert_eq!(ground(&field), Some((3, None)));
    shoot(&mut field, 1);
    assert_eq!(ground(&field), Some((3, Some(0))));
}
