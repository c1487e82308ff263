//! The client's prediction matches the host's result.

use sametick_arena::build::BUILD_TICKS;
use sametick_arena::{Action, Arena, Avatar, Event, Ground, Input, Kind, Own, Setup, Tile, UNIT, Walk};
use sametick_sim::replica::{Hosted, Scene, ViewId};
use sametick_sim::{Game, Inputs, Rng, Seat};

/// A scene with all entities.
fn scene_of(arena: &Arena) -> Scene {
    let mut scene = Scene::new(Arena::KINDS);
    arena.show(&mut scene);
    scene
}

/// A player who walks about, and builds, removes and shoots.
fn act(own: &Own, tick: u32, rng: &mut Rng) -> Input {
    let near = |part: i32, by: i32| part / UNIT + by;
    let tile = Tile::new(near(own.at[0], rng.between(-3, 3)), near(own.at[1], rng.between(-3, 3)));
    let action = tile.and_then(|tile| match rng.below(8) {
        0 => Some(Action::Place(tile, Kind::Crate)),
        1 => Some(Action::Place(tile, Kind::Wall)),
        2 | 3 => Some(Action::Remove(tile)),
        4 => Some(Action::Preview(tile, Kind::Wall)),
        _ => None,
    });
    let walk = Walk::of_code(((tick / 13).wrapping_mul(0x9e37_79b1) >> 7) as u8 % 9);
    Input { walk, aim: rng.below(256) as u8, fire: rng.chance(1, 3), action, place: 0 }
}

/// Whether a shot, which the client does not predict, has destroyed a structure.
fn something_fell(arena: &Arena) -> bool {
    let removed = arena.people.iter().any(|person| person.own.busy == BUILD_TICKS && person.own.removed);
    let gone = arena.happened.iter().filter(|event| matches!(event, Event::Destroyed { .. })).count();
    gone > usize::from(removed)
}

#[test]
fn alone_a_player_predicts_everything_exactly() {
    let (mut right, mut fallen, mut built) = (0, 0, 0);
    for seed in 0..20 {
        let setup = Setup { seed, size: 16, bots: 0, seats: 1, points: 0, rocks: true, rounds: false };
        let (mut arena, mut rng, mut inputs) = (Arena::new(&setup), Rng::new(seed), Inputs::new());
        inputs.set(Seat(0), Input::default());
        arena.step(&inputs);
        for _ in 0..120 {
            let scene = scene_of(&arena);
            let mut own = arena.own(ViewId(0)).unwrap();
            for _ in 0..BUILD_TICKS {
                let input = act(&own, arena.tick.0, &mut rng);
                inputs.set(Seat(0), input);
                arena.step(&inputs);
                Arena::predict(&mut own, &input, &scene);
                if something_fell(&arena) {
                    fallen += 1;
                    break;
                }
                assert_eq!(Some(own), arena.own(ViewId(0)), "seed {seed}, tick {}", arena.tick);
                right += 1;
            }
            built += u32::from(own.built);
        }
    }
    println!("{right} ticks predicted, {fallen} times something was shot down, {built} structures seen");
    assert!(right > 10_000 && built > 1000);
}

#[test]
fn in_a_crowd_the_next_tick_is_predicted_with_all_its_pushing() {
    let setup = Setup { seed: 4, size: 16, bots: 0, seats: 40, points: 0, rocks: true, rounds: false };
    let (mut arena, mut rng, mut inputs) = (Arena::new(&setup), Rng::new(4), Inputs::new());
    let (mut pushed, mut seen) = (0, 0);
    for _ in 0..400 {
        for seat in (0..40).map(Seat) {
            let own = arena.at_seat(seat).map(|person| person.own).unwrap_or_default();
            let wild = act(&own, arena.tick.0 + 5 * u32::from(seat.0), &mut rng);
            // Half of them gather in the middle.
            let [x, y] = own.at.map(|part| i32::from(arena.rules.size) * UNIT / 2 - part);
            let gathering = Input { walk: Walk::towards(x, y), ..Input::default() };
            inputs.set(seat, if seat.0 % 2 == 0 { gathering } else { wild });
        }
        let (scene, before) = (scene_of(&arena), arena.clone());
        arena.step(&inputs);
        for row in &inputs {
            let view = ViewId(row.seat.0);
            let (Some(mut own), Some(right)) = (before.own(view), arena.own(view)) else { continue };
            // A structure just built may have been shot down by others: the client knows that a moment later.
            let calm = own.is_alive() && right.is_alive() && own.busy == 0;
            let Some(input) = row.input.filter(|_| calm) else { continue };
            Arena::predict(&mut own, &input, &scene);
            let moved = |own: &Own| (own.at, own.aim, own.walk, own.firing, own.cooldown);
            assert_eq!(moved(&own), moved(&right));
            seen += 1;
            pushed += u32::from(arena.at_seat(row.seat).unwrap().push != [0, 0]);
        }
    }
    println!("{seen} predicted, {pushed} of them pushed");
    assert!(seen > 5000 && pushed > 300);
}

#[test]
fn a_prediction_error_has_distance_and_speed_and_may_snap() {
    let own = Own { at: [1000, 1000], walk: Walk::towards(1, 0).code(), ..Own::default() };
    let near = Arena::prediction_error(&own, &Own { at: [1030, 1040], ..own });
    assert_eq!((near.distance, near.snaps), (50.0, false));
    assert!((near.speed / UNIT as f32 - 5.0).abs() < 0.1, "five tiles a second");
    assert!(Arena::prediction_error(&own, &Own { at: [1400, 1000], ..own }).snaps);
    assert!(Arena::prediction_error(&own, &Own { respawn: 3, ..own }).snaps);
    assert_eq!(Arena::prediction_error(&own, &Own { walk: Walk::STILL.code(), ..own }).speed, 0.0);
}

#[test]
fn any_host_state_is_safe_to_predict_from() {
    let mut rng = Rng::new(9);
    for _ in 0..3000 {
        let wild = |rng: &mut Rng| match rng.below(4) {
            0 => i32::MAX,
            1 => i32::MIN,
            2 => rng.next_u64() as i32,
            _ => rng.between(0, 20 * UNIT),
        };
        let mut scene = Scene::new(Arena::KINDS);
        scene.put(
            0,
            None,
            &Ground { size: rng.next_u64() as u16, points: 0, won: None, round: 9, wait: 200 },
        );
        for number in 0..5 {
            let at = [wild(&mut rng), wild(&mut rng)];
            scene.put(number, None, &Avatar { at, aim: 3, health: 200, shielded: number == 2 });
        }
        let byte = |rng: &mut Rng| rng.next_u64() as u8;
        let mut own = Own {
            number: byte(&mut rng).into(),
            at: [wild(&mut rng), wild(&mut rng)],
            walk: byte(&mut rng),
            health: byte(&mut rng),
            respawn: byte(&mut rng) % 3,
            built: byte(&mut rng),
            busy: byte(&mut rng) % 3,
            touched: [i16::MIN, i16::MAX],
            shield: byte(&mut rng),
            frozen: byte(&mut rng) % 3,
            ..Own::default()
        };
        let before = own;
        let input = sametick_arena::pilot(&own, &scene, sametick_sim::Tick(rng.next_u64() as u32), 1);
        Arena::predict(&mut own, &input, &scene);
        let apart = Arena::prediction_error(&before, &own);
        assert!(apart.distance.is_finite());
    }
}
