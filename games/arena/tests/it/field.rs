//! Test fixture: a session with its inputs, driven as a relay or host would.

use sametick_arena::presence::SHIELD_TICKS;
use sametick_arena::{Arena, Event, Input, Own, Setup, Tile, Walk};
use sametick_sim::{Game, Inputs, Seat};

pub struct Field {
    pub arena: Arena,
    inputs: Inputs<Input>,
}

impl Field {
    pub fn new(setup: Setup) -> Field {
        Field { arena: Arena::new(&setup), inputs: Inputs::new() }
    }

    /// Without bots. Two seats stand in the open, three tiles from each other, without their shields: see
    /// [`Field::put`].
    pub fn for_two() -> Field {
        let mut field = Field::new(Setup { seed: 3, bots: 0, ..Setup::default() });
        field.ticks(1 + u32::from(SHIELD_TICKS), &[(0, Input::default()), (1, Input::default())]);
        let [x, y] = field.open_area();
        field.put(0, Tile::new(x + 4, y + 5).unwrap());
        field.put(1, Tile::new(x + 7, y + 5).unwrap());
        field
    }

    /// The corner of a free area of some 12 × 12 tiles.
    pub fn open_area(&self) -> [i32; 2] {
        let size = i32::from(self.arena.rules.size);
        let clear = |x: i32, y: i32| {
            (0..12).all(|row| (0..12).all(|column| !self.arena.map.is_solid(x + column, y + row)))
        };
        let corners = (0..size - 12).flat_map(|y| (0..size - 12).map(move |x| [x, y]));
        corners.into_iter().find(|[x, y]| clear(*x, *y)).expect("some area is open")
    }

    /// Places the avatar of a seat on a tile, bypassing the rules.
    pub fn put(&mut self, number: u16, tile: Tile) {
        let person = self.arena.people.iter_mut().find(|person| person.own.number == number).unwrap();
        person.own.at = tile.centre();
        for place in &mut self.arena.by_x {
            place.x = self.arena.people[usize::from(place.index)].own.at[0];
        }
        self.arena.by_x.sort();
    }

    /// One tick in which these seats have these inputs and all others are empty.
    pub fn tick(&mut self, acts: &[(u16, Input)]) {
        self.tick_with(|inputs| acts.iter().for_each(|(seat, input)| inputs.set(Seat(*seat), *input)));
    }

    pub fn tick_with(&mut self, fill: impl FnOnce(&mut Inputs<Input>)) {
        self.inputs.clear();
        fill(&mut self.inputs);
        self.arena.step(&self.inputs);
        self.arena.check().unwrap();
    }

    pub fn ticks(&mut self, ticks: u32, acts: &[(u16, Input)]) {
        (0..ticks).for_each(|_| self.tick(acts));
    }

    pub fn own(&self, number: u16) -> Own {
        self.arena.person(number).unwrap().own
    }

    /// The tile some columns and rows away from a player.
    pub fn tile(&self, number: u16, x: i32, y: i32) -> Tile {
        let tile = Tile::of(self.own(number).at).unwrap();
        Tile::new(tile.x() + x, tile.y() + y).unwrap()
    }

    pub fn happened(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.arena.happened.iter().any(wanted)
    }
}

pub const STILL: Input = Input { walk: Walk::STILL, aim: 0, fire: false, action: None, place: 0 };

pub fn walking(x: i32, y: i32) -> Input {
    Input { walk: Walk::towards(x, y), ..STILL }
}

/// Firing to the right.
pub const FIRING: Input = Input { fire: true, ..STILL };
