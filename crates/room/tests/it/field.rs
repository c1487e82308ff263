//! A small game for testing rooms: walkers on a wide field, resting stones, and secrets.

use sametick_sim::replica::{
    Audience, Entity, Events, Hosted, Kind, NoCommand, PredictionError, Promise, Scene, ViewId,
};
use sametick_sim::{BuildId, Game, Inputs, Rng, Schema, Seat, Tick, TickRate};
use serde::{Deserialize, Serialize};

pub const NEAR: f32 = 1_000.0;
pub const FAR: f32 = 3_000.0;
pub const SPEED: i32 = 8;
const WIDE: i32 = 6_000;
/// This many walkers never turn: they go on until they reach the edge.
pub const MARCHERS: usize = 6;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct Setup {
    pub seed: u64,
    pub stones: u32,
    pub drifters: u32,
    /// Now and then the wind blows a walker away, which cannot be predicted.
    pub gusts: bool,
}

/// A walker's input: a direction, and a button.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct Step {
    pub dx: i8,
    pub dy: i8,
    pub shout: bool,
    pub place: u16,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Mover {
    pub at: [i32; 2],
    pub way: [i32; 2],
    pub shouts: u16,
    pub purse: u16,
    pub crew: u16,
    pub held: Step,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Field {
    pub tick: Tick,
    pub rng: Rng,
    pub crews: bool,
    pub gusts: bool,
    pub walkers: Vec<Option<Mover>>,
    pub drifters: Vec<Mover>,
    pub stones: Vec<(u32, [i32; 2])>,
    pub next_stone: u32,
    pub shouted: Vec<u16>,
    pub first: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "walker", zone(near within 1000.0 at 10 hz), zone(far within 3000.0 at 2 hz))]
pub struct Walker {
    #[entity(place)]
    pub at: [i32; 2],
    #[entity(zones = "near")]
    pub shouts: u16,
    #[entity(zones = "near", hz = 5)]
    pub mood: u8,
    #[entity(owner)]
    pub purse: u16,
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "drifter", zone(near within 1000.0 at 10 hz), zone(far within 3000.0 at 2 hz))]
pub struct Drifter {
    #[entity(place)]
    pub at: [i32; 2],
    #[entity(zones = "near")]
    pub way: [i32; 2],
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "stone", zone(far within 3000.0 at 10 hz))]
pub struct Stone {
    #[entity(place)]
    pub at: [i32; 2],
}

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "score")]
pub struct Score {
    pub shouts: u16,
}

#[derive(Clone, Debug, PartialEq, Entity)]
pub struct Me {
    #[entity(smooth)]
    pub at: [i32; 2],
    pub shouts: u16,
    pub purse: u16,
    pub dx: i8,
    pub dy: i8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub enum Happening {
    Shout(u16),
    Whisper(u16),
}

fn walk(at: &mut [i32; 2], dx: i8, dy: i8) {
    for (at, by) in at.iter_mut().zip([dx, dy]) {
        *at = (*at + i32::from(by.signum()) * SPEED).clamp(-WIDE, WIDE);
    }
}

impl Field {
    fn random_place(rng: &mut Rng) -> [i32; 2] {
        [0; 2].map(|_: i32| rng.below(2 * WIDE as u64) as i32 - WIDE)
    }

    pub fn walker(&self, seat: u16) -> Option<&Mover> {
        self.walkers.get(usize::from(seat))?.as_ref()
    }

    fn step_walker(&mut self, seat: usize, input: Step) {
        let Some(Some(walker)) = self.walkers.get_mut(seat) else { return };
        walk(&mut walker.at, input.dx, input.dy);
        if input.shout {
            walker.shouts = walker.shouts.wrapping_add(1);
            walker.purse = walker.purse.wrapping_add(3);
            self.shouted.push(seat as u16);
        }
        walker.held = input;
    }
}

impl Game for Field {
    const NAME: &'static str = "field";
    const RATE: TickRate = TickRate::hz(30);
    const BUILD: BuildId = BuildId::from_bytes([7; 16]);
    type Setup = Setup;
    type Input = Step;

    fn new(setup: &Setup) -> Field {
        let mut rng = Rng::new(setup.seed);
        let stones = (0..setup.stones).map(|id| (id, Field::random_place(&mut rng))).collect();
        let drifters = (0..setup.drifters).map(|_| Mover {
            at: Field::random_place(&mut rng),
            way: [1, 1],
            shouts: 0,
            purse: 0,
            crew: 0,
            held: Step::default(),
        });
        Field {
            tick: Tick::ZERO,
            crews: setup.seed.is_multiple_of(3),
            gusts: setup.gusts,
            walkers: Vec::new(),
            drifters: drifters.collect(),
            stones,
            next_stone: setup.stones,
            shouted: Vec::new(),
            first: None,
            rng,
        }
    }

    fn step(&mut self, inputs: &Inputs<Step>) {
        self.tick = self.tick.next();
        self.shouted.clear();
        let first = inputs.iter().filter_map(|row| Some((row.input?, row.seat)));
        self.first = first
            .filter(|(input, _)| input.shout)
            .min_by_key(|(input, _)| input.place)
            .map(|(_, seat)| seat.0);
        for row in inputs {
            let seat = row.seat.index();
            if row.joined {
                if self.walkers.len() <= seat {
                    self.walkers.resize(seat + 1, None);
                }
                let at = Field::random_place(&mut self.rng).map(|at| at / 3);
                let crew = if self.crews { row.seat.0 / 2 } else { row.seat.0 };
                self.walkers[seat] =
                    Some(Mover { at, way: [0; 2], shouts: 0, purse: 0, crew, held: Step::default() });
            }
            let held = self.walkers.get(seat).and_then(|walker| walker.as_ref()).map(|walker| walker.held);
            let held = Step { shout: false, ..held.unwrap_or_default() };
            self.step_walker(seat, *row.input_or(&held));
            if row.left {
                self.walkers[seat] = None;
            }
        }
        for (number, drifter) in self.drifters.iter_mut().enumerate() {
            if number >= MARCHERS && self.rng.chance(1, 15) {
                drifter.way = [0; 2].map(|_: i32| self.rng.below(3) as i32 - 1);
            }
            walk(&mut drifter.at, drifter.way[0] as i8, drifter.way[1] as i8);
        }
        for walker in self.walkers.iter_mut().flatten() {
            if self.gusts && self.rng.chance(1, 30) {
                walker.at[0] = (walker.at[0] + 60).min(WIDE);
            }
        }
        if self.rng.chance(1, 20) {
            let at = Field::random_place(&mut self.rng);
            self.stones.push((self.next_stone, at));
            self.next_stone += 1;
        }
        if self.rng.chance(1, 20) && !self.stones.is_empty() {
            let at = self.rng.below(self.stones.len() as u64) as usize;
            self.stones.remove(at);
        }
    }
}

impl Hosted for Field {
    const KINDS: &'static [Kind] = &[Walker::KIND, Drifter::KIND, Stone::KIND, Score::KIND];
    const UPDATES: TickRate = TickRate::hz(10);
    type Own = Me;
    type Event = Happening;
    type Command = NoCommand;

    fn view_of(&self, seat: Seat) -> ViewId {
        ViewId(self.walker(seat.0).map_or(seat.0, |walker| walker.crew))
    }

    fn eye(&self, view: ViewId) -> Option<[f32; 3]> {
        let walker = self.walkers.iter().flatten().find(|walker| walker.crew == view.0)?;
        Some([walker.at[0] as f32, walker.at[1] as f32, 0.0])
    }

    fn show(&self, scene: &mut Scene) {
        for (id, walker) in (0..).zip(&self.walkers) {
            let Some(walker) = walker else { continue };
            let Mover { at, shouts, purse, crew, .. } = *walker;
            let mood = (shouts / 3) as u8;
            scene.put(id, Some(ViewId(crew)), &Walker { at, shouts, mood, purse });
            scene.put(id, None, &Score { shouts });
        }
        for (id, drifter) in (0..).zip(&self.drifters) {
            scene.put(id, None, &Drifter { at: drifter.at, way: drifter.way });
        }
        for (id, at) in &self.stones {
            scene.put(*id, None, &Stone { at: *at });
        }
    }

    fn own(&self, view: ViewId) -> Option<Me> {
        let walker = self.walkers.iter().flatten().find(|walker| walker.crew == view.0)?;
        let Mover { at, shouts, purse, held, .. } = *walker;
        Some(Me { at, shouts, purse, dx: held.dx, dy: held.dy })
    }

    fn predict(own: &mut Me, input: &Step, _: &Scene) {
        walk(&mut own.at, input.dx, input.dy);
        if input.shout {
            own.shouts = own.shouts.wrapping_add(1);
            own.purse = own.purse.wrapping_add(3);
        }
        (own.dx, own.dy) = (input.dx, input.dy);
    }

    fn prediction_error(predicted: &Me, right: &Me) -> PredictionError {
        let [dx, dy] = [0, 1].map(|axis| (predicted.at[axis] - right.at[axis]) as f32);
        let moves = right.dx != 0 || right.dy != 0;
        let distance = sametick_sim::maths::sqrt(dx * dx + dy * dy);
        PredictionError {
            distance,
            speed: if moves { SPEED as f32 * 30.0 } else { 0.0 },
            snaps: distance > 400.0,
        }
    }

    fn events(&self, events: &mut Events<Happening>) {
        for seat in &self.shouted {
            events.tell(Audience::Everyone, Promise::Reliable, Happening::Shout(*seat));
            let at = self.walker(*seat).map_or([0; 2], |walker| walker.at).map(|at| at as f32);
            events.tell(Audience::Near([at[0], at[1], 0.0], NEAR), Promise::Lossy, Happening::Whisper(*seat));
        }
    }

    fn merge(earlier: &Step, later: &Step) -> Step {
        Step { shout: earlier.shout || later.shout, ..*later }
    }

    fn order(input: &mut Step, place: u16) {
        input.place = place;
    }

    fn command(_: &Step, command: NoCommand, _: &mut Vec<Step>) {
        match command {}
    }
}
