//! Invariants that hold for all inputs and all bytes.

use proptest::prelude::*;
use sametick_arena::build::BUILD_TICKS;
use sametick_arena::movement::RADIUS;
use sametick_arena::projectile::SHOT_TICKS;
use sametick_arena::{Action, Arena, Event, Input, Kind, Setup, Tile, UNIT, Walk, aim_of, crowd, space};
use sametick_sim::{Game, Inputs, Rng, Seat, from_canonical, to_canonical};

use crate::field::{FIRING, Field, STILL, walking};

/// Whether an avatar overlaps a solid tile, or is beyond the border.
fn is_in_a_wall(arena: &Arena, at: [i32; 2]) -> bool {
    let [low, high] = [-RADIUS, RADIUS].map(|reach| at.map(|part| (part + reach).div_euclid(UNIT)));
    let tiles = (low[1]..=high[1]).flat_map(|y| (low[0]..=high[0]).map(move |x| [x, y]));
    tiles.into_iter().filter(|[x, y]| arena.map.is_solid(*x, *y)).any(|[x, y]| {
        let nearest = [at[0].clamp(x * UNIT, (x + 1) * UNIT), at[1].clamp(y * UNIT, (y + 1) * UNIT)];
        let [dx, dy] = [nearest[0] - at[0], nearest[1] - at[1]];
        dx * dx + dy * dy < RADIUS * RADIUS
    })
}

#[test]
fn nobody_is_ever_in_a_wall_or_off_the_map() {
    for seed in 0..16 {
        let setup = Setup { seed, size: 16, bots: 4, seats: 24, points: 0, rocks: true, rounds: false };
        let (mut arena, mut rng, mut inputs) = (Arena::new(&setup), Rng::new(seed), Inputs::new());
        for _ in 0..900 {
            inputs.clear();
            crowd::fill(&arena, 25, &mut rng, &mut inputs);
            let before = arena.clone();
            arena.step(&inputs);
            arena.check().unwrap();
            for person in arena.people.iter().filter(|person| person.own.is_alive()) {
                assert!(!is_in_a_wall(&arena, person.own.at), "seed {seed}, tick {}: {person:?}", arena.tick);
                let was = before.person(person.own.number).filter(|was| was.own.is_alive());
                let stayed = !arena.happened.iter().any(
                    |event| matches!(event, Event::Respawned { number, .. } if *number == person.own.number),
                );
                let joined = inputs.get(Seat(person.own.number)).is_some_and(|row| row.joined);
                if let Some(was) = was.filter(|_| stayed && !joined) {
                    let far = [0, 1].map(|axis| (was.own.at[axis] - person.own.at[axis]).abs());
                    assert!(far.iter().all(|far| *far < RADIUS), "{far:?} in one tick");
                }
            }
            let mine = |number| arena.map.blocks().iter().filter(|block| block.owner == number).count();
            for person in &arena.people {
                assert_eq!(mine(person.own.number), usize::from(person.own.built));
            }
        }
    }
}

/// A field on which seat 0 stands in a ring of walls.
fn ringed() -> Field {
    let mut field = Field::for_two();
    let ring = (-1..=1).flat_map(|y| (-1..=1).map(move |x| [x, y])).filter(|at| *at != [0, 0]);
    for [x, y] in ring {
        let action = Some(Action::Place(field.tile(0, x, y), Kind::Wall));
        field.tick(&[(0, Input { action, ..STILL }), (1, STILL)]);
        field.ticks(BUILD_TICKS.into(), &[(0, STILL), (1, STILL)]);
    }
    assert_eq!(field.own(0).built, 8);
    field
}

#[test]
fn no_shot_passes_through_a_wall() {
    let mut field = ringed();
    let mut rng = Rng::new(1);
    let centre = field.tile(0, 0, 0);
    for _ in 0..8 {
        field.tick(&[(0, walking(rng.between(-1, 1), rng.between(-1, 1))), (1, STILL)]);
        let start = field.arena.clone();
        for aim in 0..=255 {
            field.arena = start.clone();
            field.tick(&[(0, Input { aim, ..FIRING }), (1, STILL)]);
            while !field.arena.shots.is_empty() {
                let on = Tile::of(field.arena.shots[0].at).unwrap();
                assert_eq!(on, centre, "aim {aim}");
                field.tick(&[(0, STILL), (1, STILL)]);
            }
            let damaged = field.arena.map.blocks().iter().filter(|block| block.health == 80).count();
            assert_eq!(damaged, 1, "aim {aim}");
        }
        field.arena = start;
    }
}

#[test]
fn every_shot_hits_the_avatar_it_is_aimed_at() {
    let mut field = Field::for_two();
    let (start, corner) = (field.arena.clone(), field.open_area());
    let mut rng = Rng::new(3);
    for _ in 0..500 {
        field.arena = start.clone();
        let place = |rng: &mut Rng| {
            Tile::new(corner[0] + rng.between(0, 11), corner[1] + rng.between(0, 11)).unwrap()
        };
        let [here, there] = [place(&mut rng), place(&mut rng)];
        if here == there {
            continue;
        }
        field.put(0, here);
        field.put(1, there);
        let [from, to] = [here.centre(), there.centre()];
        let aim = aim_of([to[0] - from[0], to[1] - from[1]]);
        field.tick(&[(0, Input { aim, ..FIRING }), (1, STILL)]);
        let mut ticks = 0;
        while !field.happened(|event| matches!(event, Event::Hit { by: 0, victim: Some(1), .. })) {
            field.tick(&[(0, Input { aim, ..STILL }), (1, STILL)]);
            ticks += 1;
            assert!(ticks <= u32::from(SHOT_TICKS), "{from:?} to {to:?} with {aim}");
        }
    }
}

#[test]
fn directions_are_where_they_point() {
    for aim in 0..=255_u8 {
        let [x, y] = space::towards(aim, 10_000);
        assert_eq!(aim_of([x, y]), aim);
        let angle = f64::from(aim) * core::f64::consts::TAU / 256.0;
        let exact =
            [sametick_sim::maths::cos(angle), sametick_sim::maths::sin(angle)].map(|part| part * 10_000.0);
        assert!(
            (f64::from(x) - exact[0]).abs() < 1.5 && (f64::from(y) - exact[1]).abs() < 1.5,
            "{aim}: {x} {y}"
        );
    }
    assert_eq!(space::towards(0, 119), [119, 0]);
    assert_eq!([aim_of([0, 0]), aim_of([0, 9]), aim_of([-5, 0]), aim_of([0, -1])], [0, 64, 128, 192]);
    assert_eq!(aim_of([i32::MIN, i32::MIN]), 160);
}

fn setups() -> impl Strategy<Value = Setup> {
    let parts = (any::<u64>(), 0..40_u16, 0..6_u8, 0..12_u16, 0..3_u16, any::<bool>(), any::<bool>());
    parts.prop_map(|(seed, size, bots, seats, points, rocks, rounds)| Setup {
        seed,
        size,
        bots,
        seats,
        points,
        rocks,
        rounds,
    })
}

fn inputs() -> impl Strategy<Value = Input> {
    let kind = prop_oneof![Just(Kind::Wall), Just(Kind::Crate), Just(Kind::Rock)];
    let action = (0..5, 0..512, 0..512, kind).prop_map(|(which, x, y, kind)| {
        let tile = Tile::new(x % 20, y % 20)?;
        [
            None,
            Some(Action::Preview(tile, kind)),
            Some(Action::Place(tile, kind)),
            Some(Action::Remove(tile)),
            Some(Action::Clear),
        ][which as usize]
    });
    (0..9_u8, any::<u8>(), any::<bool>(), action, any::<u16>()).prop_map(
        |(code, aim, fire, action, place)| Input { walk: Walk::of_code(code), aim, fire, action, place },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_session_stays_within_its_bounds(setup in setups(), acts in prop::collection::vec((0..12_u16, inputs()), 1..200)) {
        let mut arena = Arena::new(&setup);
        let mut held = Inputs::new();
        for (seat, input) in acts {
            held.set(Seat(seat), input);
            arena.step(&held);
            prop_assert_eq!(arena.check(), Ok(()));
        }
        let bytes = to_canonical(&arena).unwrap();
        let back: Arena = from_canonical(&bytes).unwrap();
        prop_assert_eq!(&back, &arena);
        prop_assert_eq!(to_canonical(&back).unwrap(), bytes);
    }

    #[test]
    fn a_state_made_of_any_bytes_is_refused_or_can_be_played(
        seed: u64,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let setup = Setup { seed, size: 16, bots: 2, seats: 6, points: 0, rocks: true, rounds: false };
        let (mut arena, mut rng, mut inputs) = (Arena::new(&setup), Rng::new(seed), Inputs::new());
        for _ in 0..60 {
            inputs.clear();
            crowd::fill(&arena, 6, &mut rng, &mut inputs);
            arena.step(&inputs);
        }
        let mut bytes = to_canonical(&arena).unwrap();
        for (place, byte) in &changes {
            let place = place.index(bytes.len());
            bytes[place] = *byte;
        }
        if let Ok(mut changed) = from_canonical::<Arena>(&bytes) {
            for _ in 0..100 {
                inputs.clear();
                crowd::fill(&changed, 6, &mut rng, &mut inputs);
                changed.step(&inputs);
                prop_assert_eq!(changed.check(), Ok(()));
            }
        }
    }

    #[test]
    fn any_bytes_are_one_input_or_none(bytes in prop::collection::vec(any::<u8>(), 4..8)) {
        if let Ok(input) = from_canonical::<Input>(&bytes) {
            // Numbers with superfluous bytes can be read; they are never written.
            let written = to_canonical(&input).unwrap();
            prop_assert!(written.len() < bytes.len() || written == bytes);
            prop_assert_eq!(from_canonical::<Input>(&written).unwrap(), input);
        }
    }
}
