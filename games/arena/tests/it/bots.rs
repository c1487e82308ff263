//! Bots play decently, and use no hidden information.

use sametick_arena::{Arena, Event, Input, Setup, autopilot, pilot};
use sametick_sim::replica::{Hosted, Scene};
use sametick_sim::{Game, Inputs, Seat};

#[test]
fn bots_score_against_idle_players() {
    for seed in 0..4 {
        let mut arena =
            Arena::new(&Setup { seed, size: 24, bots: 3, seats: 4, points: 0, rocks: true, rounds: false });
        let mut inputs = Inputs::new();
        (0..4).for_each(|seat| inputs.set(Seat(seat), Input::default()));
        let mut built = 0;
        for _ in 0..3600 {
            arena.step(&inputs);
            built += arena.happened.iter().filter(|event| matches!(event, Event::Built { .. })).count();
        }
        let (players, bots) = arena.people.split_at(4);
        let scores =
            |people: &[sametick_arena::Person]| people.iter().map(|person| person.score).sum::<u16>();
        println!("seed {seed}: bots {} points, {built} structures built", scores(bots));
        assert!(scores(players) == 0 && scores(bots) > 20 && built > 10);
    }
}

#[test]
fn bots_move_about_and_turn() {
    let mut arena =
        Arena::new(&Setup { seed: 2, size: 32, bots: 1, seats: 1, points: 0, rocks: true, rounds: false });
    let (mut turns, mut moved, mut walk) = (0, 0, 4);
    for _ in 0..1800 {
        let before = arena.people[0].own.at;
        arena.step(&Inputs::new());
        let own = arena.people[0].own;
        turns += u32::from(own.walk != walk);
        moved += u32::from(own.at != before);
        walk = own.walk;
    }
    println!("{turns} turns in a minute, moving for {moved} ticks of 1800");
    assert!((60..400).contains(&turns) && moved > 1200);
}

#[test]
fn autopilots_fight_each_other() {
    let mut arena =
        Arena::new(&Setup { seed: 6, bots: 0, size: 24, seats: 6, points: 0, rocks: true, rounds: false });
    let mut inputs = Inputs::new();
    for _ in 0..3600 {
        inputs.clear();
        (0..6).map(Seat).for_each(|seat| inputs.set(seat, autopilot(&arena, seat)));
        arena.step(&inputs);
    }
    let scores: Vec<u16> = arena.people.iter().map(|person| person.score).collect();
    println!("{scores:?}");
    assert!(scores.iter().all(|score| *score > 2));
    assert_eq!(autopilot(&arena, Seat(77)), Input::default());
}

#[test]
fn a_bot_with_a_full_view_plays_like_one_with_the_state() {
    let mut arena =
        Arena::new(&Setup { seed: 8, bots: 6, size: 24, seats: 2, points: 0, rocks: true, rounds: false });
    let (mut inputs, mut scene) = (Inputs::new(), Scene::new(Arena::KINDS));
    let mut same = 0;
    for _ in 0..600 {
        inputs.clear();
        scene.clear();
        arena.show(&mut scene);
        for seat in [0, 1].map(Seat) {
            let input = autopilot(&arena, seat);
            // Only what was just built and shot down again can a view be wrong about.
            if let Some(person) = arena.at_seat(seat).filter(|person| person.own.busy == 0) {
                assert_eq!(pilot(&person.own, &scene, arena.tick, arena.rules.seed), input);
                same += 1;
            }
            inputs.set(seat, input);
        }
        arena.step(&inputs);
    }
    assert!(same > 900);
}
