//! The game: a state with every kind of value in it, and a step that uses every function.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use postcard_schema::Schema;
use sametick_sim::maths::{self, Fixed, Quat, Vec2, Vec3};
use sametick_sim::{BuildId, Game, Inputs, Rng, Row, Seat, Tick, TickRate};
use serde::{Deserialize, Serialize};

use crate::{arguments, numbers};

/// The state: everything at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Medley {
    tick: Tick,
    rng: Rng,
    ships: BTreeMap<Seat, Ship>,
    names: BTreeSet<String>,
    /// The results of all maths functions in this tick, including NaNs and infinities.
    singles: Vec<f32>,
    doubles: Vec<f64>,
    /// The bits of the results that are not NaN, summed over all ticks.
    sum: u64,
    text: String,
    phase: Phase,
}

/// The initial state of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Setup {
    /// The seed of all randomness.
    pub seed: u64,
}

/// An input of a player.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub enum Order {
    /// Nothing.
    Wait,
    /// Turn by an angle.
    Turn(f32),
    /// Accelerate, and change the name.
    Thrust {
        /// How strongly.
        forward: i32,
        /// The new name.
        name: String,
    },
    /// Store any float.
    Note(f64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Ship {
    name: Option<String>,
    pos: Vec3,
    turn: Quat,
    heading: Vec2,
    energy: Fixed,
    note: f64,
    log: (i8, i16, i64, u64, i128, u128),
    letter: char,
    last: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Schema)]
enum Phase {
    Calm,
    Storm { strength: f32, left: u16 },
}

impl Game for Medley {
    const NAME: &'static str = "medley";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = sametick_sim::build_id!();
    type Setup = Setup;
    type Input = Order;

    fn new(setup: &Setup) -> Medley {
        Medley {
            tick: Tick::ZERO,
            rng: Rng::new(setup.seed),
            ships: BTreeMap::new(),
            names: BTreeSet::new(),
            singles: Vec::new(),
            doubles: Vec::new(),
            sum: 0,
            text: String::new(),
            phase: Phase::Calm,
        }
    }

    fn step(&mut self, inputs: &Inputs<Order>) {
        self.tick = self.tick.next();
        for row in inputs {
            self.seat(row);
        }
        self.weather();
        self.collide();
        self.calculate();
        self.write();
    }
}

impl Medley {
    fn seat(&mut self, row: &Row<Order>) {
        let rng = &mut self.rng;
        if row.joined || !self.ships.contains_key(&row.seat) {
            self.ships.insert(row.seat, Ship::new(rng));
        }
        if let Some(ship) = self.ships.get_mut(&row.seat) {
            ship.last = row.input_or(&ship.last).clone();
            ship.obey(&mut self.names);
        }
        if row.left {
            self.ships.remove(&row.seat);
        }
    }

    fn weather(&mut self) {
        self.phase = match self.phase {
            Phase::Calm if self.rng.chance(1, 20) => {
                Phase::Storm { strength: self.rng.unit_f32(), left: self.rng.below(30) as u16 }
            }
            Phase::Storm { strength, left } if left > 0 => {
                let strength = strength * 0.95 + maths::sin(strength * 40.0) * 0.1;
                Phase::Storm { strength, left: left - 1 }
            }
            _ => Phase::Calm,
        };
        if let Phase::Storm { strength, .. } = self.phase {
            let wind = Vec3::new(strength, -strength, maths::tanh(strength));
            self.ships.values_mut().for_each(|ship| ship.pos += ship.turn.rotate(wind));
        }
    }

    /// Ships push each other away, in the order of their seats.
    fn collide(&mut self) {
        let places: Vec<(Seat, Vec3)> = self.ships.iter().map(|(seat, ship)| (*seat, ship.pos)).collect();
        for (seat, ship) in &mut self.ships {
            for (other, pos) in &places {
                let away = ship.pos - *pos;
                if other != seat && away.length() < 50.0 {
                    ship.pos += away.normalised().cross(Vec3::new(0.1, 0.2, 0.3)) * 0.5;
                }
            }
        }
        if self.rng.chance(1, 10) {
            let mut seats: Vec<Seat> = self.ships.keys().copied().collect();
            self.rng.shuffle(&mut seats);
            if let Some(ship) = seats.first().and_then(|seat| self.ships.get_mut(seat)) {
                ship.energy = Fixed::from_int(100);
            }
        }
    }

    /// Calls all functions with arguments from the whole range of floats.
    fn calculate(&mut self) {
        self.singles.clear();
        self.doubles.clear();
        for argument in arguments::of(self.tick, &mut self.rng) {
            numbers::singles(argument.single, &mut self.singles);
            numbers::doubles(argument.double, &mut self.doubles);
        }
        let singles = self.singles.iter().filter(|x| !x.is_nan()).map(|x| u64::from(x.to_bits()));
        let doubles = self.doubles.iter().filter(|x| !x.is_nan()).map(|x| x.to_bits());
        let mix = |sum: u64, bits: u64| (sum.rotate_left(7) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.sum = singles.chain(doubles).fold(self.sum, mix);
    }

    /// Converts numbers to text and back, which `alloc` does the same everywhere.
    fn write(&mut self) {
        let number = self.rng.unit_f32() * 1e9 - 3e8;
        self.text = alloc::format!("{number} {number:e} {:?} {:.3}", f64::from(number) / 3.0, number / 7.0);
        let parsed = self.text.split(' ').filter_map(|word| word.parse::<f64>().ok());
        self.doubles.extend(parsed);
        while self.names.len() > 20 {
            self.names.pop_last();
        }
    }
}

impl Ship {
    fn new(rng: &mut Rng) -> Ship {
        let pos = Vec3::new(rng.unit_f32(), rng.unit_f32(), rng.unit_f32()) * 100.0;
        Ship {
            name: None,
            pos,
            turn: Quat::from_axis_angle(pos, rng.unit_f32() * 7.0),
            heading: Vec2::from_angle(pos.x),
            energy: Fixed::ratio(rng.between(-500, 500), 7),
            note: 0.0,
            log: (0, 0, 0, 0, 0, 0),
            letter: 'a',
            last: Order::Wait,
        }
    }

    fn obey(&mut self, names: &mut BTreeSet<String>) {
        match &self.last {
            Order::Wait => self.energy += Fixed::ratio(1, 3),
            Order::Turn(angle) => {
                self.heading = self.heading.rotated(*angle).normalised();
                let turn = Quat::from_axis_angle(Vec3::new(self.heading.x, self.heading.y, 0.5), *angle);
                self.turn = self.turn.slerp((turn * self.turn).normalised(), 0.3);
            }
            Order::Thrust { forward, name } => {
                self.pos += Vec3::new(self.heading.x, self.heading.y, 0.1) * (*forward as f32 * 0.7);
                self.energy = (self.energy * Fixed::ratio(9, 10) - Fixed::from_int(*forward)).abs().sqrt();
                names.insert(name.clone());
                self.name = Some(name.clone());
            }
            Order::Note(note) => {
                self.note = *note;
                self.note_down(*note);
            }
        }
    }

    /// Casts any float to every integer type, which saturates, and adds with explicit wrapping.
    fn note_down(&mut self, note: f64) {
        let (a, b, c, d, e, f) = self.log;
        self.letter = char::from_u32(u32::from('a') + (note as u32) % 26).unwrap_or('?');
        self.log = (
            a.wrapping_add(note as i8),
            b.wrapping_add(note as f32 as i16),
            c.wrapping_add(note as i64),
            d.wrapping_add(note as u64),
            e.wrapping_add(note as i128),
            f.wrapping_add((note as u128).rotate_left(9)),
        );
    }
}
