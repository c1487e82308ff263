//! Rounds: the winner is shown, and the next round begins in the same room.

use sametick_arena::presence::{MAX_HEALTH, SHIELD_TICKS};
use sametick_arena::round::{START_TICKS, WON_TICKS};
use sametick_arena::{Action, Arena, Denied, Event, Ground, Input, Kind, Setup, Tile, crowd};
use sametick_sim::contest::Contest;
use sametick_sim::replica::{Hosted, Scene, ViewId};
use sametick_sim::sync_test::sync_test;
use sametick_sim::{Game, Inputs, Owner, Rng, Seat};

use crate::field::{FIRING, Field, STILL, walking};

const BOTH: [(u16, Input); 2] = [(0, STILL), (1, STILL)];

fn ground(field: &Field) -> Ground {
    let mut scene = Scene::new(Arena::KINDS);
    field.arena.show(&mut scene);
    scene.get::<Ground>(0).unwrap()
}

/// Two players in the open, one point before the end.
fn near_the_end() -> Field {
    let mut field = Field::new(Setup { seed: 3, bots: 0, points: 4, rounds: true, ..Setup::default() });
    field.ticks(1 + u32::from(SHIELD_TICKS), &BOTH);
    let [x, y] = field.open_area();
    field.put(0, Tile::new(x + 4, y + 5).unwrap());
    field.put(1, Tile::new(x + 7, y + 5).unwrap());
    field.arena.people[0].score = 3;
    field
}

/// Seat 0 has won.
fn won() -> Field {
    let mut field = near_the_end();
    while field.arena.won.is_none() {
        field.tick(&[(0, FIRING), (1, STILL)]);
    }
    field
}

/// The countdown of the second round has begun.
fn begun() -> Field {
    let mut field = won();
    while field.arena.won.is_some() {
        field.tick(&BOTH);
    }
    field
}

#[test]
fn the_winner_and_the_wait_for_the_next_round_are_shown() {
    let mut field = won();
    assert!(field.happened(|event| *event == Event::RoundWon { winner: 0, round: 1 }));
    let (mut waits, mut ticks) = (vec![], 0);
    while field.arena.won.is_some() {
        let Ground { points, won, round, wait, .. } = ground(&field);
        assert_eq!((points, won, round), (4, Some(0), 1));
        waits.push(wait);
        field.tick(&BOTH);
        ticks += 1;
    }
    waits.dedup();
    assert_eq!((waits, ticks), (vec![6, 5, 4, 3, 2, 1], i32::from(WON_TICKS) - 1));
    assert!(field.happened(|event| *event == Event::RoundBegan { round: 2 }));
    assert_eq!(field.arena.outcome(), None, "no round is the last");
}

#[test]
fn a_round_begins_with_no_points_and_whole_avatars_elsewhere() {
    let mut field = won();
    let (before, kills) = (field.own(0).at, field.arena.person(0).unwrap().life.kills);
    while field.arena.won.is_some() {
        field.tick(&[(0, FIRING), (1, STILL)]);
    }
    for number in [0, 1] {
        let person = field.arena.person(number).unwrap();
        assert_eq!((person.score, person.deaths), (0, 0));
        assert_eq!((person.own.health, person.own.shield), (MAX_HEALTH, SHIELD_TICKS));
        assert!(
            field.happened(|event| matches!(event, Event::Respawned { number: who, .. } if *who == number))
        );
    }
    assert_ne!(field.own(0).at, before);
    assert!(field.arena.shots.is_empty());
    assert_eq!(field.arena.person(0).unwrap().life.kills, kills, "what a character has done stays");
}

#[test]
fn nobody_walks_shoots_or_builds_before_the_countdown_is_over() {
    let mut field = begun();
    let (at, shots, tile) =
        ([0, 1].map(|number| field.own(number).at), field.arena.next_shot, field.tile(0, 2, 0));
    let eager = Input { fire: true, action: Some(Action::Place(tile, Kind::Wall)), ..walking(1, 0) };
    let mut counted = Vec::new();
    for _ in 0..START_TICKS {
        counted.push(ground(&field).wait);
        field.tick(&[(0, eager), (1, eager)]);
        let refused = |event: &Event| matches!(event, Event::Refused { why: Denied::NotBegun, .. });
        assert!(field.happened(refused));
        assert_eq!([0, 1].map(|number| field.own(number).at), at);
    }
    counted.dedup();
    assert_eq!((counted, field.arena.next_shot), (vec![3, 2, 1], shots));
    assert_eq!(
        (ground(&field).wait, field.own(0).shield),
        (0, SHIELD_TICKS),
        "the shield begins with the round"
    );
    field.tick(&[(0, eager), (1, walking(1, 0))]);
    assert!(field.arena.next_shot > shots && field.own(1).at != at[1]);
    let score = |field: &Field| field.arena.person(0).unwrap().score;
    assert_eq!(score(&field), 0);
}

#[test]
fn a_join_during_the_countdown_waits_with_the_others() {
    let mut field = begun();
    field.ticks(40, &BOTH);
    let three = [(0, STILL), (1, STILL), (2, walking(1, 0))];
    field.tick(&three);
    assert_eq!([0, 1, 2].map(|number| field.own(number).frozen), [START_TICKS - 41; 3]);
    let at = field.own(2).at;
    field.ticks(u32::from(START_TICKS) - 41, &three);
    assert_eq!((field.own(2).at, field.own(2).frozen), (at, 0));
}

#[test]
fn what_was_built_stays_with_its_builder() {
    let mut field = near_the_end();
    let tile = field.tile(0, -2, 0);
    field.tick(&[(0, Input { action: Some(Action::Place(tile, Kind::Wall)), ..STILL }), (1, STILL)]);
    while field.arena.round.number == 1 {
        field.tick(&[(0, FIRING), (1, STILL)]);
    }
    assert_eq!((field.arena.map.block(tile).unwrap().owner, field.own(0).built), (0, 1));
}

#[test]
fn points_come_back_in_the_same_round_only() {
    let mut field = near_the_end();
    let mut kept = Vec::new();
    field.arena.keep(Seat(0), &mut kept);
    let come_back = |field: &mut Field| {
        field.tick(&[(1, STILL)]);
        field.tick_with(|inputs| {
            inputs.bring(Owner::Player(Seat(0)), kept.clone());
            inputs.join(Seat(0));
            inputs.set(Seat(1), STILL);
        });
        let person = field.arena.person(0).unwrap();
        (person.score, person.newcomer)
    };
    assert_eq!(come_back(&mut field), (3, 0));
    let mut later = begun();
    assert_eq!(come_back(&mut later), (0, 0), "and a player who has played here is no newcomer");
}

#[test]
fn a_player_who_was_kept_before_there_were_rounds_comes_back() {
    let mut field = Field::for_two();
    // No structures; form 1; at [2944, 2176], aim 9, health 60, score 5, deaths 2.
    let kept = vec![0, 1, 128, 46, 128, 34, 9, 60, 5, 2];
    field.tick_with(|inputs| {
        inputs.bring(Owner::Player(Seat(4)), kept);
        inputs.join(Seat(4));
        [0, 1].into_iter().for_each(|seat| inputs.set(Seat(seat), STILL));
    });
    let person = field.arena.person(4).unwrap();
    assert_eq!((person.score, person.deaths, person.own.health, person.own.aim), (5, 2, 60, 9));
}

#[test]
fn without_rounds_the_game_is_over_and_stays_so() {
    let mut field = near_the_end();
    field.arena.rules.rounds = false;
    while field.arena.won.is_none() {
        field.tick(&[(0, FIRING), (1, STILL)]);
    }
    field.ticks(2 * u32::from(WON_TICKS), &BOTH);
    let Ground { won, round, wait, .. } = ground(&field);
    assert_eq!((won, round, wait), (Some(0), 1, 0));
    assert!(field.arena.outcome().is_some());
}

#[test]
fn a_screen_predicts_the_countdown_and_the_shield() {
    let mut field = begun();
    let mut scene = Scene::new(Arena::KINDS);
    field.arena.show(&mut scene);
    let mut own = field.arena.own(ViewId(0)).unwrap();
    let input = walking(0, 1);
    for tick in 0..u32::from(START_TICKS) + 20 {
        Arena::predict(&mut own, &input, &scene);
        field.tick(&[(0, input), (1, STILL)]);
        assert_eq!(Some(own), field.arena.own(ViewId(0)), "tick {tick}");
    }
}

#[test]
fn rounds_come_out_the_same_again() {
    let mut rounds = 0;
    for seed in 0..4 {
        let setup = Setup { points: 2, bots: 4, ..Setup::quick(seed, 6, true) };
        let (mut arena, mut rng) = (Arena::new(&setup), Rng::new(seed + 100));
        let session: Vec<Inputs<Input>> = (0..1500)
            .map(|_| {
                let mut inputs = Inputs::new();
                crowd::fill(&arena, 7, &mut rng, &mut inputs);
                arena.step(&inputs);
                arena.check().unwrap();
                inputs
            })
            .collect();
        rounds += arena.round.number;
        let result = sync_test::<Arena>(&setup, 1500, 5, |tick, inputs| {
            *inputs = session[tick.0 as usize - 1].clone();
        });
        assert!(result.is_ok(), "seed {seed}: {}", result.unwrap_err());
    }
    println!("{rounds} rounds in all");
    assert!(rounds > 8);
}
