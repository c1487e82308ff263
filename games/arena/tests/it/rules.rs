//! The rules of arena, by example.

use sametick_arena::build::{BUILD_TICKS, MAX_BUILT, NOBODY, PREVIEW_TICKS};
use sametick_arena::movement::{DIAGONAL_SPEED, RADIUS, SPEED};
use sametick_arena::presence::{MAX_HEALTH, RESPAWN_TICKS};
use sametick_arena::projectile::{DAMAGE, FIRE_TICKS};
use sametick_arena::{Action, Denied, Event, Input, Kind, Setup, UNIT, Walk};
use sametick_sim::{Seat, Tick};

use crate::field::{FIRING, Field, STILL, walking};

fn acting(action: Action) -> Input {
    Input { action: Some(action), ..STILL }
}

/// The reasons for denied requests in the last tick.
fn refusals(field: &Field) -> Vec<Denied> {
    let happened = field.arena.happened.iter();
    happened
        .filter_map(|event| if let Event::Refused { why, .. } = event { Some(*why) } else { None })
        .collect()
}

fn first_at(place: u16, action: Action) -> Input {
    Input { place, ..acting(action) }
}

#[test]
fn walking_is_as_fast_in_every_direction() {
    let mut field = Field::for_two();
    let before = field.own(0).at;
    field.tick(&[(0, walking(-1, 0)), (1, STILL)]);
    assert_eq!(field.own(0).at, [before[0] - SPEED, before[1]]);
    field.tick(&[(0, walking(-1, -1)), (1, STILL)]);
    let there = [before[0] - SPEED - DIAGONAL_SPEED, before[1] - DIAGONAL_SPEED];
    assert_eq!(field.own(0).at, there);
    field.tick(&[(0, STILL), (1, STILL)]);
    assert_eq!(field.own(0).at, there, "nobody slips");
    assert_eq!(Walk::of_keys(true, true, false, false), Walk::STILL);
}

#[test]
fn an_omitted_input_goes_on_and_asks_for_nothing() {
    let mut field = Field::for_two();
    let tile = field.tile(0, -2, 0);
    let input = Input { action: Some(Action::Place(tile, Kind::Crate)), fire: true, ..walking(0, -1) };
    field.tick(&[(0, input), (1, STILL)]);
    assert_eq!(field.arena.map.block(tile).unwrap().kind, Kind::Crate);
    let (at, shots) = (field.own(0).at, field.arena.next_shot);
    for _ in 0..FIRE_TICKS {
        field.tick_with(|inputs| {
            inputs.omit(Seat(0));
            inputs.omit(Seat(1));
        });
    }
    assert_eq!(field.own(0).at, [at[0], at[1] - SPEED * i32::from(FIRE_TICKS)]);
    assert_eq!(field.arena.next_shot, shots + 1, "the trigger is held");
    assert_eq!(field.own(0).built, 1);
}

#[test]
fn a_wall_is_slid_along() {
    let mut field = Field::for_two();
    for row in -1..=1 {
        let tile = field.tile(0, -2, row);
        field.tick(&[(0, acting(Action::Place(tile, Kind::Wall))), (1, STILL)]);
        field.ticks(BUILD_TICKS.into(), &[(0, STILL), (1, STILL)]);
    }
    let face = field.tile(0, -1, 0).x() * UNIT;
    let before = field.own(0).at;
    field.ticks(12, &[(0, walking(-1, -1)), (1, STILL)]);
    let after = field.own(0).at;
    assert_eq!(after[0], face + RADIUS, "it stops at the wall");
    assert_eq!(after[1], before[1] - 12 * DIAGONAL_SPEED, "and goes on along it");
}

#[test]
fn players_make_room_for_each_other_alike() {
    let mut field = Field::for_two();
    let tile = field.tile(1, 0, 0);
    field.put(0, tile);
    field.ticks(40, &[(0, STILL), (1, STILL)]);
    let [one, other] = [field.own(0).at, field.own(1).at];
    let middle = tile.centre();
    assert_eq!(one[0] - middle[0], middle[0] - other[0], "each goes as far as the other");
    assert!((other[0] - one[0]).abs() > 2 * RADIUS - 8, "until they hardly touch");
    // Walking against another player pushes that player, more slowly than a walk.
    let before = field.own(1).at[0];
    field.ticks(30, &[(0, walking(1, 0)), (1, STILL)]);
    let pushed = field.own(1).at[0] - before;
    assert!(pushed > SPEED * 5 && pushed < SPEED * 25, "{pushed}");
}

#[test]
fn shots_hurt_and_kill_and_score() {
    let mut field = Field::for_two();
    let mut hits = 0;
    for tick in 0..200 {
        field.tick(&[(0, FIRING), (1, STILL)]);
        hits += u32::from(field.happened(|event| matches!(event, Event::Hit { by: 0, victim: Some(1), .. })));
        if field.happened(|event| *event == Event::Killed { killer: 0, victim: 1 }) {
            assert_eq!(hits, u32::from(MAX_HEALTH / DAMAGE));
            assert!(tick < 45, "a second and a half of good aim, not {tick} ticks");
            let [killer, victim] = [0, 1].map(|number| *field.arena.person(number).unwrap());
            assert_eq!((killer.score, killer.deaths, victim.score, victim.deaths), (1, 0, 0, 1));
            assert!(!victim.own.is_alive() && victim.own.health == 0);
            return;
        }
    }
    panic!("nobody was hit {hits} times");
}

#[test]
fn the_dead_do_nothing_and_live_again_far_away() {
    let mut field = Field::for_two();
    let tile = field.tile(1, 0, 2);
    while field.own(1).is_alive() {
        field.tick(&[(0, FIRING), (1, STILL)]);
    }
    let (at, shots) = (field.own(1).at, field.arena.next_shot);
    let eager = Input { fire: true, action: Some(Action::Place(tile, Kind::Wall)), ..walking(1, 1) };
    for _ in 1..RESPAWN_TICKS - 1 {
        field.tick(&[(0, STILL), (1, eager)]);
        assert!(!field.own(1).is_alive() && field.own(1).at == at);
    }
    assert_eq!((field.arena.next_shot, field.own(1).built), (shots, 0));
    field.tick(&[(0, STILL), (1, STILL)]);
    field.tick(&[(0, STILL), (1, STILL)]);
    assert!(field.own(1).is_alive() && field.own(1).health == MAX_HEALTH);
    let [here, there] = [0, 1].map(|number| field.own(number).at);
    let far = (here[0] - there[0]).abs().max((here[1] - there[1]).abs());
    assert!(far > 6 * UNIT, "{far} is too close");
}

#[test]
fn structures_take_shots_until_they_fall() {
    let mut field = Field::for_two();
    for (kind, shots) in [(Kind::Crate, 2), (Kind::Wall, 5)] {
        let tile = field.tile(0, 2, 0);
        field.tick(&[(0, acting(Action::Place(tile, kind))), (1, STILL)]);
        assert_eq!((field.arena.map.block(tile).unwrap().owner, field.own(0).built), (0, 1));
        let mut hits = 0;
        while field.arena.map.block(tile).is_some() {
            field.tick(&[(0, FIRING), (1, STILL)]);
            hits += u32::from(field.happened(|event| matches!(event, Event::Hit { victim: None, .. })));
            assert!(hits <= shots);
        }
        assert_eq!(hits, shots, "{kind:?}");
        assert!(field.happened(|event| *event == Event::Destroyed { tile, kind }));
        assert_eq!(field.own(0).built, 0);
        field.ticks(40, &[(0, STILL), (1, STILL)]);
        field.arena.people[1].own.health = MAX_HEALTH;
    }
}

#[test]
fn rocks_never_fall() {
    let mut field = Field::for_two();
    let rocks = field.arena.map.blocks().to_vec();
    let rock =
        rocks.iter().find(|rock| !field.arena.map.is_solid(rock.tile.x() - 1, rock.tile.y())).unwrap().tile;
    field.put(0, sametick_arena::Tile::new(rock.x() - 1, rock.y()).unwrap());
    field.ticks(200, &[(0, FIRING), (1, STILL)]);
    assert_eq!(field.arena.map.blocks(), rocks);
    let remove = acting(Action::Remove(rock));
    field.tick(&[(0, remove), (1, STILL)]);
    assert_eq!(field.arena.map.blocks(), rocks);
}

#[test]
fn only_own_structures_can_be_removed_and_at_once() {
    let mut field = Field::for_two();
    let tile = field.tile(0, 1, 0);
    field.tick(&[(0, acting(Action::Place(tile, Kind::Wall))), (1, STILL)]);
    field.ticks(BUILD_TICKS.into(), &[(0, STILL), (1, acting(Action::Remove(tile)))]);
    assert!(field.arena.map.block(tile).is_some(), "it belongs to another player");
    assert_eq!(refusals(&field), [Denied::NotYours]);
    field.tick(&[(0, acting(Action::Remove(tile))), (1, STILL)]);
    assert!(field.arena.map.block(tile).is_none());
    assert_eq!(field.own(0).built, 0);
}

#[test]
fn building_needs_reach_and_a_free_tile() {
    let mut field = Field::for_two();
    let refused = |field: &mut Field, x: i32, y: i32, kind: Kind| {
        let tile = field.tile(0, x, y);
        field.tick(&[(0, acting(Action::Place(tile, kind))), (1, STILL)]);
        assert_eq!(refusals(field).is_empty(), field.own(0).built == 1);
        refusals(field)
    };
    assert_eq!(refused(&mut field, -4, -1, Kind::Wall), [Denied::OutOfReach]);
    assert_eq!(refused(&mut field, 0, 0, Kind::Wall), [Denied::Occupied], "where the builder stands");
    assert_eq!(refused(&mut field, 3, 0, Kind::Wall), [Denied::Occupied], "where another stands");
    assert_eq!(refused(&mut field, 2, 0, Kind::Rock), [Denied::Occupied], "rocks are not made");
    assert_eq!(refused(&mut field, -4, 0, Kind::Wall), [], "just in reach");
    field.ticks(BUILD_TICKS.into(), &[(0, STILL), (1, STILL)]);
    let tile = field.tile(0, -4, 0);
    field.tick(&[(0, acting(Action::Place(tile, Kind::Crate))), (1, STILL)]);
    assert_eq!((field.own(0).built, field.arena.map.block(tile).unwrap().kind), (1, Kind::Wall));
}

#[test]
fn the_earlier_input_gets_a_contested_tile() {
    for (places, winner) in [([0, 0], 0), ([1, 0], 1), ([4, 9], 0), ([9, 4], 1)] {
        let mut field = Field::for_two();
        let tile = field.tile(0, 2, 1);
        let ask = |place| first_at(place, Action::Place(tile, Kind::Wall));
        field.tick(&[(0, ask(places[0])), (1, ask(places[1]))]);
        assert_eq!(field.arena.map.block(tile).unwrap().owner, winner, "{places:?}");
        assert_eq!([field.own(winner).built, field.own(1 - winner).built], [1, 0]);
    }
}

#[test]
fn a_player_builds_at_most_so_many_and_not_all_at_once() {
    let mut field = Field::for_two();
    let tiles: Vec<_> =
        (-3..=3).flat_map(|y| (-3..=2).map(move |x| (x, y))).filter(|at| *at != (0, 0)).collect();
    let tiles: Vec<_> = tiles.into_iter().filter(|(x, y)| x * x + y * y <= 16).collect();
    assert!(tiles.len() > usize::from(MAX_BUILT) + 2);
    let two = [tiles[0], tiles[1]].map(|(x, y)| field.tile(0, x, y));
    for tile in two {
        field.tick(&[(0, acting(Action::Place(tile, Kind::Crate))), (1, STILL)]);
    }
    assert_eq!(field.own(0).built, 1, "the second came too soon");
    assert_eq!(refusals(&field), [Denied::TooSoon]);
    for (x, y) in tiles {
        let tile = field.tile(0, x, y);
        field.ticks(BUILD_TICKS.into(), &[(0, acting(Action::Place(tile, Kind::Crate))), (1, STILL)]);
    }
    assert_eq!((field.own(0).built, refusals(&field)), (MAX_BUILT, vec![Denied::TooMany]));
    let owned = field.arena.map.blocks().iter().filter(|block| block.owner == 0).count();
    assert_eq!(owned, usize::from(MAX_BUILT));
}

#[test]
fn a_preview_lasts_while_it_is_said_again() {
    let mut field = Field::for_two();
    let tile = field.tile(0, 0, 2);
    let preview = acting(Action::Preview(tile, Kind::Wall));
    field.ticks(2 * u32::from(PREVIEW_TICKS), &[(0, preview), (1, STILL)]);
    let plan = |field: &Field| field.arena.person(0).unwrap().plan;
    assert_eq!(plan(&field).map(|plan| (plan.tile, plan.kind)), Some((tile, Kind::Wall)));
    field.ticks(u32::from(PREVIEW_TICKS) - 1, &[(0, STILL), (1, STILL)]);
    assert!(plan(&field).is_some());
    field.tick(&[(0, STILL), (1, STILL)]);
    assert_eq!(plan(&field), None);
    field.tick(&[(0, preview), (1, STILL)]);
    field.tick(&[(0, acting(Action::Clear)), (1, STILL)]);
    assert_eq!(plan(&field), None, "or until it is taken back");
    field.tick(&[(0, preview), (1, STILL)]);
    field.tick(&[(0, acting(Action::Place(tile, Kind::Wall))), (1, STILL)]);
    assert_eq!(plan(&field), None, "or until it is built");
}

#[test]
fn a_leaving_player_is_removed_but_not_the_structures() {
    let mut field = Field::for_two();
    let tile = field.tile(0, 1, 1);
    let input = acting(Action::Place(tile, Kind::Wall));
    field.tick(&[(0, input), (1, STILL)]);
    field.tick_with(|inputs| {
        inputs.set(Seat(0), acting(Action::Preview(tile, Kind::Wall)));
        inputs.leave(Seat(0));
        inputs.set(Seat(1), STILL);
    });
    assert!(field.arena.person(0).is_none() && field.arena.person(1).is_some());
    assert_eq!(field.arena.map.block(tile).unwrap().owner, NOBODY);
    field.tick_with(|inputs| {
        inputs.join(Seat(0));
        inputs.omit(Seat(1));
    });
    assert_eq!((field.own(0).built, field.own(0).health), (0, MAX_HEALTH));
    field.tick(&[(1, STILL)]);
    assert!(field.arena.person(0).is_none(), "a seat that is not listed is empty");
}

#[test]
fn seats_beyond_those_that_play_spectate() {
    let mut field = Field::new(Setup { seats: 2, bots: 1, ..Setup::default() });
    field.ticks(5, &[(0, STILL), (1, STILL), (2, STILL)]);
    let numbers: Vec<u16> = field.arena.people.iter().map(|person| person.own.number).collect();
    assert_eq!(numbers, [0, 1, 1000]);
    assert_eq!(field.arena.tick, Tick(5));
}

#[test]
fn the_map_grows_with_the_seats() {
    let size = |seats| Field::new(Setup { seats, bots: 0, ..Setup::default() }).arena.rules.size;
    assert_eq!([size(1), size(16)], [48, 48]);
    assert!(size(200) > 100 && size(1000) > 240 && size(u16::MAX) <= 512);
}

#[test]
fn two_inputs_in_one_tick_lose_no_shot_and_no_building() {
    use sametick_arena::{Arena, Tile};
    use sametick_sim::replica::Hosted;
    let tile = Tile::new(3, 4).unwrap();
    let (place, preview) = (Action::Place(tile, Kind::Wall), Action::Preview(tile, Kind::Crate));
    let merged = Arena::merge(&Input { fire: true, ..acting(place) }, &walking(1, 0));
    assert_eq!(merged, Input { fire: true, action: Some(place), ..walking(1, 0) });
    assert_eq!(Arena::merge(&acting(place), &acting(preview)).action, Some(place));
    assert_eq!(Arena::merge(&acting(preview), &acting(place)).action, Some(place));
    assert_eq!(Arena::merge(&acting(preview), &acting(Action::Clear)).action, Some(Action::Clear));
}
