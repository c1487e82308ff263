//! Saved state of arena: of players, of their characters, and of the structures in a room.
//!
//! Each begins with its format number, so that a later build can read what an earlier one wrote. Unreadable state is
//! ignored.

use alloc::string::String;
use alloc::vec::Vec;

use postcard_schema::Schema;
use sametick_sim::replica::{Parts, parts_in};
use sametick_sim::{Inputs, Owner, Seat, canon, from_canonical};
use serde::{Deserialize, Serialize};

use crate::around::Around;
use crate::build::{Kind, MAX_BUILT, NOBODY};
use crate::input::Input;
use crate::map::Block;
use crate::movement::{RADIUS, overlaps};
use crate::presence::{MAX_HEALTH, RESPAWN_TICKS};
use crate::round::Round;
use crate::space::{At, Tile, UNIT};
use crate::state::Arena;

/// The characters a player can choose. They look different, and each has its own record.
pub const CHARACTERS: &[&str] = &["scout", "guard", "smith"];

/// The format in which this build writes characters and structures.
const FORM: u8 = 1;

/// The format in which it writes players. The first format had no rounds.
const PLAYER_FORM: u8 = 2;

/// The saved state of a player. The tile numbers of the player's structures follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Saved {
    at: At,
    aim: u8,
    health: u8,
    score: u16,
    deaths: u16,
    /// The round.
    round: u16,
}

/// The same in the first format.
#[derive(Deserialize)]
struct SavedFirst {
    at: At,
    aim: u8,
    health: u8,
    score: u16,
    deaths: u16,
}

impl Saved {
    /// Reads a player's saved state. In the first format the round is always the first.
    fn of_kept(kept: &[u8]) -> Option<Saved> {
        read_as(PLAYER_FORM, kept).or_else(|| {
            let SavedFirst { at, aim, health, score, deaths } = read(kept)?;
            Some(Saved { at, aim, health, score, deaths, round: Round::FIRST.number })
        })
    }
}

/// The bytes of a tile number.
const TILE_BYTES: usize = 3;

/// The record of a character, in all rooms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Life {
    /// The number of kills.
    pub kills: u32,
    /// The number of deaths.
    pub deaths: u32,
    /// The number of structures built.
    pub built: u32,
}

impl Life {
    /// Reads a character's saved state; an empty record if it cannot be read.
    pub fn of_kept(kept: &[u8]) -> Life {
        read(kept).unwrap_or_default()
    }
}

fn read<T: for<'de> Deserialize<'de>>(kept: &[u8]) -> Option<T> {
    read_as(FORM, kept)
}

fn read_as<T: for<'de> Deserialize<'de>>(form: u8, kept: &[u8]) -> Option<T> {
    let (written, rest) = kept.split_first()?;
    (*written == form).then(|| from_canonical(rest).ok())?
}

fn write<T: Serialize>(form: u8, value: &T, out: &mut Vec<u8>) {
    out.push(form);
    canon::encode(value, out).expect("numbers can be written");
}

impl Arena {
    /// Loads saved state.
    pub(crate) fn receive(&mut self, inputs: &Inputs<Input>) {
        for brought in inputs.brought() {
            match brought.owner {
                Owner::Place => self.rebuild(brought.bytes),
                Owner::Player(seat) => self.restore(seat, brought.bytes),
                Owner::Character(seat) => self.cast(seat, brought.bytes),
            }
        }
    }

    /// Rebuilds a saved structure, without an owner until its player comes back.
    fn rebuild(&mut self, bytes: &[u8]) {
        let size = i32::from(self.rules.size);
        for (number, part) in parts_in(bytes) {
            let Some((kind, health)) = read::<(u8, u8)>(part) else { continue };
            let kind = Kind::of_code(kind).filter(|kind| *kind != Kind::Rock);
            let tile = Tile::of_number(number).filter(|tile| tile.x() < size && tile.y() < size);
            let (Some(kind), Some(tile)) = (kind, tile) else { continue };
            if !self.is_solid(tile.x(), tile.y()) && (1..=kind.health()).contains(&health) {
                self.map.insert(Block { tile, kind, health, owner: NOBODY });
                self.make_way(tile);
            }
        }
    }

    /// A player on the tile of a rebuilt structure moves to another spawn: a new player does not prevent the
    /// rebuilding.
    fn make_way(&mut self, tile: Tile) {
        let mut inside = Vec::new();
        self.others(NOBODY, tile.centre(), UNIT, |number, at| {
            if overlaps(at, tile.x(), tile.y()) {
                inside.push(number);
            }
        });
        for number in inside {
            if let Ok(at) = self.find(number)
                && !self.spawn(at)
            {
                let own = &mut self.people[at].own;
                (own.health, own.respawn) = (0, 1);
            }
            self.sort_by_x();
        }
    }

    fn restore(&mut self, seat: Seat, bytes: &[u8]) {
        let Some((count, rest)) = bytes.split_first() else { return };
        let Some((tiles, rest)) = rest.split_at_checked(usize::from(*count) * TILE_BYTES) else { return };
        let (Some(saved), Ok(at)) = (Saved::of_kept(rest), self.find(seat.0)) else { return };
        if self.is_room_at(seat.0, saved.at) {
            self.people[at].own.at = saved.at;
            self.sort_by_x();
        }
        let person = &mut self.people[at];
        person.own.aim = saved.aim;
        // Points are valid for one round.
        if saved.round == self.round.number {
            (person.score, person.deaths) = (saved.score, saved.deaths);
        }
        if (saved.score, saved.deaths) != (0, 0) || saved.round != self.round.number {
            person.newcomer = 0;
        }
        person.own.health = saved.health.min(MAX_HEALTH);
        person.own.respawn = if person.own.health == 0 { RESPAWN_TICKS } else { 0 };
        for tile in tiles.chunks_exact(TILE_BYTES) {
            let number = tile.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
            let own = &mut self.people[at].own;
            let tile = Tile::of_number(number).filter(|_| own.built < MAX_BUILT);
            if tile.is_some_and(|tile| self.map.adopt(tile, own.number)) {
                own.built += 1;
            }
        }
    }

    /// Whether an avatar can stand there: on the map, in no wall, and not over another avatar.
    fn is_room_at(&self, number: u16, place: At) -> bool {
        let end = i32::from(self.rules.size) * UNIT;
        let mut is_free = place.iter().all(|part| (0..=end).contains(part));
        let [column, row] = place.map(|part| part.div_euclid(UNIT));
        for (x, y) in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (column + dx, row + dy))) {
            is_free &= !(self.is_solid(x, y) && overlaps(place, x, y));
        }
        self.others(number, place, 2 * RADIUS, |_, _| is_free = false);
        is_free
    }

    fn cast(&mut self, seat: Seat, bytes: &[u8]) {
        let Ok((name, kept)) = from_canonical::<(String, Vec<u8>)>(bytes) else { return };
        let (Some(character), Ok(at)) =
            (CHARACTERS.iter().position(|known| *known == name), self.find(seat.0))
        else {
            return;
        };
        let person = &mut self.people[at];
        (person.character, person.life) = (character as u8, Life::of_kept(&kept));
    }

    pub(crate) fn keep_person(&self, seat: Seat, out: &mut Vec<u8>) {
        let Some(person) = self.at_seat(seat) else { return };
        let start = out.len();
        out.push(0);
        let blocks = self.map.blocks().iter().filter(|block| block.owner == seat.0);
        for block in blocks.take(MAX_BUILT.into()) {
            out[start] += 1;
            out.extend_from_slice(&block.tile.number().to_le_bytes()[..TILE_BYTES]);
        }
        let saved = Saved {
            at: person.own.at,
            aim: person.own.aim,
            health: person.own.health,
            score: person.score,
            deaths: person.deaths,
            round: self.round.number,
        };
        write(PLAYER_FORM, &saved, out);
    }

    pub(crate) fn keep_life(&self, seat: Seat, out: &mut Vec<u8>) {
        if let Some(person) = self.at_seat(seat) {
            write(FORM, &person.life, out);
        }
    }

    pub(crate) fn keep_blocks(&self, parts: &mut Parts) {
        for block in self.map.blocks().iter().filter(|block| block.kind != Kind::Rock) {
            parts.put(block.tile.number(), &[FORM, block.kind.code(), block.health]);
        }
    }
}
