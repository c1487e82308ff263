//! Saved state is restored unchanged, and invalid saved state does no harm.

use proptest::prelude::*;
use sametick_arena::kept::{CHARACTERS, Life};
use sametick_arena::{Action, Arena, Input, Kind, Setup, Tile};
use sametick_sim::replica::{Hosted, MAX_KEPT, Parts, put_part};
use sametick_sim::{Inputs, Owner, Seat, to_canonical};

use crate::field::Field;

fn kept(arena: &Arena, seat: u16) -> Vec<u8> {
    let mut kept = Vec::new();
    arena.keep(Seat(seat), &mut kept);
    assert!(kept.len() <= MAX_KEPT);
    kept
}

fn life(arena: &Arena, seat: u16) -> Vec<u8> {
    let mut kept = Vec::new();
    arena.keep_character(Seat(seat), &mut kept);
    kept
}

fn parts(arena: &Arena) -> Vec<u8> {
    let (mut parts, mut bytes) = (Parts::default(), Vec::new());
    arena.keep_parts(&mut parts);
    parts.iter().for_each(|(number, part)| put_part(&mut bytes, number, part));
    bytes
}

fn build(field: &mut Field, seat: u16, tile: Tile, kind: Kind) {
    field.tick(&[(0, Input::default()), (1, Input::default())]);
    let action = Some(Action::Place(tile, kind));
    field.tick_with(|inputs| {
        [0, 1].into_iter().for_each(|seat| inputs.set(Seat(seat), Input::default()));
        inputs.set(Seat(seat), Input { action, ..Input::default() });
    });
    field.ticks(10, &[(0, Input::default()), (1, Input::default())]);
}

/// Seat 0 has built a wall and a crate.
fn built() -> (Field, [Tile; 2]) {
    let mut field = Field::for_two();
    let [x, y] = field.open_area();
    let tiles = [Tile::new(x + 3, y + 3).unwrap(), Tile::new(x + 4, y + 3).unwrap()];
    build(&mut field, 0, tiles[0], Kind::Wall);
    build(&mut field, 0, tiles[1], Kind::Crate);
    assert_eq!(field.arena.at_seat(Seat(0)).unwrap().own.built, 2);
    (field, tiles)
}

fn sit(seat: u16, brought: &[(Owner, Vec<u8>)]) -> impl FnOnce(&mut Inputs<Input>) {
    move |inputs| {
        brought.iter().for_each(|(whose, bytes)| inputs.bring(*whose, bytes.clone()));
        inputs.set(Seat(seat), Input::default());
        inputs.join(Seat(seat));
    }
}

#[test]
fn a_returning_player_gets_place_and_structures_back() {
    let (mut field, tiles) = built();
    field.arena.people[0].score = 7;
    field.arena.people[0].own.health = 40;
    let (before, bytes) = (*field.arena.at_seat(Seat(0)).unwrap(), kept(&field.arena, 0));
    field.tick_with(|inputs| inputs.leave(Seat(0)));
    field.ticks(5, &[]);
    assert!(field.arena.at_seat(Seat(0)).is_none());
    // Possibly on another seat.
    field.tick_with(sit(5, &[(Owner::Player(Seat(5)), bytes)]));
    let after = *field.arena.at_seat(Seat(5)).unwrap();
    assert_eq!((after.own.at, after.own.health, after.score, after.own.built), (before.own.at, 40, 7, 2));
    field.tick(&[(5, Input { action: Some(Action::Remove(tiles[0])), ..Input::default() })]);
    assert!(field.arena.map.block(tiles[0]).is_none(), "it is theirs to take away");
    assert_eq!(field.arena.map.block(tiles[1]).unwrap().owner, 5);
}

#[test]
fn a_place_is_built_again_and_nobody_is_walled_in() {
    let (field, tiles) = built();
    let mut again = Field::new(Setup { seed: 3, bots: 0, ..Setup::default() });
    let (place, player) = (parts(&field.arena), kept(&field.arena, 0));
    let brought = [(Owner::Place, place.clone()), (Owner::Player(Seat(0)), player.clone())];
    again.tick_with(sit(0, &brought));
    let health =
        |field: &Field| tiles.map(|tile| field.arena.map.block(tile).map(|block| (block.kind, block.health)));
    assert_eq!(health(&again), health(&field));
    assert_eq!(again.arena.at_seat(Seat(0)).unwrap().own.at, field.arena.at_seat(Seat(0)).unwrap().own.at);
    assert_eq!(parts(&again.arena), place);
    assert_eq!(kept(&again.arena, 0), player);
    // A player on the tile of a rebuilt structure is not walled in: the player moves, and the structure is rebuilt.
    let mut other = Field::new(Setup { seed: 3, bots: 0, ..Setup::default() });
    other.tick(&[(1, Input::default())]);
    other.put(1, tiles[0]);
    other.tick_with(|inputs| {
        inputs.bring(Owner::Place, place);
        inputs.set(Seat(1), Input::default());
    });
    assert_eq!(health(&other), health(&field));
    let newcomer = other.arena.at_seat(Seat(1)).unwrap().own;
    let apart = newcomer.at.iter().zip(tiles[0].centre()).any(|(part, middle)| part.abs_diff(middle) >= 200);
    assert!(newcomer.is_alive() && apart, "{newcomer:?}");
    // A player whose saved place is taken begins elsewhere.
    let mut taken = Field::new(Setup { seed: 3, bots: 0, ..Setup::default() });
    taken.tick(&[(1, Input::default())]);
    let place = field.arena.at_seat(Seat(0)).unwrap().own.at;
    taken.put(1, Tile::new(place[0] / 256, place[1] / 256).unwrap());
    taken.tick_with(|inputs| {
        sit(0, &[(Owner::Player(Seat(0)), player)])(inputs);
        inputs.set(Seat(1), Input::default());
    });
    assert_ne!(taken.arena.at_seat(Seat(0)).unwrap().own.at, place);
}

#[test]
fn a_character_has_one_life_in_all_rooms() {
    let (field, _) = built();
    let bytes = life(&field.arena, 0);
    assert_eq!(Life::of_kept(&bytes), Life { built: 2, ..Life::default() });
    let mut elsewhere = Field::for_two();
    let smith = to_canonical(&("smith", bytes)).unwrap();
    elsewhere.tick_with(|inputs| {
        inputs.bring(Owner::Character(Seat(0)), smith);
        [0, 1].into_iter().for_each(|seat| inputs.set(Seat(seat), Input::default()));
    });
    let person = elsewhere.arena.at_seat(Seat(0)).unwrap();
    assert_eq!((CHARACTERS[usize::from(person.character)], person.life.built), ("smith", 2));
    let unknown = to_canonical(&("wizard", Vec::<u8>::new())).unwrap();
    elsewhere.tick_with(|inputs| {
        inputs.bring(Owner::Character(Seat(0)), unknown);
        [0, 1].into_iter().for_each(|seat| inputs.set(Seat(seat), Input::default()));
    });
    assert_eq!(elsewhere.arena.at_seat(Seat(0)).unwrap().life.built, 2);
}

proptest! {
    #[test]
    fn any_saved_state_can_be_loaded(
        gifts in prop::collection::vec((0..3u8, 0..4u16, prop::collection::vec(any::<u8>(), 0..60)), 0..6),
        at in 0..40usize,
        with in any::<u8>(),
    ) {
        let (field, _) = built();
        let mut good = [kept(&field.arena, 0), parts(&field.arena), to_canonical(&("scout", life(&field.arena, 0))).unwrap()];
        for bytes in &mut good {
            let at = at % bytes.len();
            bytes[at] = with;
        }
        let mut again = Field::for_two();
        again.tick_with(|inputs| {
            [0, 1].into_iter().for_each(|seat| inputs.set(Seat(seat), Input::default()));
            inputs.bring(Owner::Player(Seat(0)), good[0].clone());
            inputs.bring(Owner::Place, good[1].clone());
            inputs.bring(Owner::Character(Seat(1)), good[2].clone());
            for (whose, seat, bytes) in gifts {
                let whose = [Owner::Place, Owner::Player(Seat(seat)), Owner::Character(Seat(seat))][usize::from(whose)];
                inputs.bring(whose, bytes);
            }
        });
        again.ticks(3, &[(0, Input::default()), (1, Input::default())]);
    }
}
