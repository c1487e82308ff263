//! Sizes and schemas: encoded data stays small, and does not change unnoticed.

use sametick_arena::{Action, Arena, BadState, Input, Kind, Setup, Tile, Walk, crowd};
use sametick_sim::replica::hosted_schema_of;
use sametick_sim::{Game, Inputs, Rng, from_canonical, schema_hash_of, to_canonical};

fn actions(tile: Tile) -> Vec<Option<Action>> {
    let kinds = [Kind::Wall, Kind::Crate, Kind::Rock];
    let build = kinds.into_iter().flat_map(|kind| [Action::Preview(tile, kind), Action::Place(tile, kind)]);
    build.chain([Action::Remove(tile), Action::Clear]).map(Some).chain([None]).collect()
}

#[test]
fn an_input_is_small_and_comes_back_as_it_was() {
    let mut longest = 0;
    for tile in [[0, 0], [47, 31], [511, 511]].map(|[x, y]| Tile::new(x, y).unwrap()) {
        for action in actions(tile) {
            for code in 0..18 {
                let walk = Walk::of_code(code % 9);
                let input = Input { walk, aim: 200, fire: code >= 9, action, place: 999 };
                let bytes = to_canonical(&input).unwrap();
                longest = longest.max(bytes.len());
                assert_eq!(from_canonical::<Input>(&bytes).unwrap(), input);
            }
        }
    }
    assert_eq!(longest, 7);
    assert_eq!(to_canonical(&Input::default()).unwrap(), [4, 0, 0, 0]);
}

#[test]
fn bytes_that_are_no_input_are_refused() {
    assert!(from_canonical::<Input>(&[255, 0, 0, 0]).is_err(), "no such action");
    assert!(from_canonical::<Input>(&[4, 0, 1, 0]).is_err(), "a tile for nothing");
    assert!(from_canonical::<Input>(&[40, 0, 0xff, 0xff, 0x7f, 0]).is_err(), "no such tile");
}

#[test]
fn a_state_is_small() {
    let setup = Setup { seed: 3, ..Setup::default() };
    let (mut arena, mut rng, mut inputs, mut longest) = (Arena::new(&setup), Rng::new(4), Inputs::new(), 0);
    for _ in 0..6000 {
        inputs.clear();
        crowd::fill(&arena, 16, &mut rng, &mut inputs);
        arena.step(&inputs);
        longest = longest.max(to_canonical(&arena).unwrap().len());
    }
    println!("longest state seen: {longest} bytes");
    assert!(longest < 6000, "{longest} bytes");
}

#[test]
fn the_schema_changes_on_purpose_or_not_at_all() {
    // Builds that differ in this are not compatible, and cannot read each other's saves and logs. If you meant to
    // change a type: put the new hashes here, pin the hashes in determinism.rs anew, and say in the changelog that
    // sessions of older builds need the older build.
    let hashes = [schema_hash_of::<Arena>(), hosted_schema_of::<Arena>()].map(|hash| hash.to_string());
    let pinned = [
        "9ae2238c8ea1d43ce375016bbd94ab6de06a21689757302eabbbcb93d9d42d7b",
        "61ebd4082d8d8679ed40741267ddb08d2b1013152719502f9b57b8a48787d969",
    ];
    assert_eq!(hashes, pinned, "{}", sametick_sim::replica::hosted_description_of::<Arena>());
}

#[test]
fn states_that_could_not_be_are_refused_with_a_reason() {
    let mut arena = Arena::new(&Setup::default());
    let mut inputs = Inputs::new();
    (0..4).for_each(|seat| inputs.set(sametick_sim::Seat(seat), Input { fire: true, ..Input::default() }));
    arena.step(&inputs);
    let refused = |change: fn(&mut Arena)| {
        let mut bad = arena.clone();
        change(&mut bad);
        assert!(from_canonical::<Arena>(&to_canonical(&bad).unwrap()).is_err());
        bad.check().unwrap_err()
    };
    assert_eq!(refused(|arena| arena.rules.seats = 2000), BadState::Rules);
    assert_eq!(refused(|arena| arena.round.number = 0), BadState::Round);
    assert_eq!(refused(|arena| arena.round.ticks = 181), BadState::Round);
    assert_eq!(refused(|arena| arena.rules.size = 47), BadState::Map);
    assert_eq!(refused(|arena| arena.people[0].own.at[0] = -1), BadState::People);
    assert_eq!(refused(|arena| arena.people[0].own.health = 101), BadState::People);
    assert_eq!(refused(|arena| arena.people[0].own.number = 3), BadState::People);
    assert_eq!(refused(|arena| arena.people[0].own.shield = 91), BadState::People);
    assert_eq!(refused(|arena| arena.people[0].newcomer = 601), BadState::People);
    assert_eq!(refused(|arena| arena.by_x[0].index = 77), BadState::Places);
    assert_eq!(refused(|arena| arena.by_x.truncate(1)), BadState::Places);
    assert_eq!(refused(|arena| arena.by_x.swap(0, 1)), BadState::Places);
    assert_eq!(refused(|arena| arena.shots[0].at = [i32::MAX; 2]), BadState::Shots);
    assert_eq!(refused(|arena| arena.next_shot = 0), BadState::Shots);
    assert!(!BadState::Shots.to_string().is_empty());
}
