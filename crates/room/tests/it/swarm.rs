//! A game of many bodies that all move in every tick, each visible to every player: the worst case for updates.

use sametick_sim::replica::{Entity, Hosted, Kind, NoCommand, PredictionError, Scene, ViewId};
use sametick_sim::{BuildId, Game, Inputs, Rng, Schema, Seat, Tick, TickRate};
use serde::{Deserialize, Serialize};

/// The size of the box, in codes each way; bodies bounce off its walls.
const BOX: i32 = 8_000;
/// The greatest speed along an axis, in codes per tick.
const FASTEST: u64 = 60;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct Setup {
    pub seed: u64,
    pub bodies: u32,
    /// One body in this many is replaced by another in every tick; none if zero.
    pub replaced: u32,
    /// One body in this many is pushed in every tick, which cannot be predicted; none if zero.
    pub pushed: u32,
    /// All of them are pushed at once every this many ticks; never if zero.
    pub jolted: u32,
    /// All players share one view.
    pub shared: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Swarm {
    pub tick: Tick,
    rng: Rng,
    setup: Setup,
    /// In the order of their ids.
    bodies: Vec<Moving>,
    next: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Moving {
    id: u32,
    at: [i32; 3],
    speed: [i32; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Entity)]
#[entity(name = "body")]
pub struct Body {
    #[entity(smooth)]
    pub at: [i32; 3],
}

/// Only the tick is predicted.
#[derive(Clone, Debug, PartialEq, Entity)]
pub struct Me {
    #[entity(smooth)]
    pub tick: u32,
}

impl Swarm {
    fn push(&mut self) {
        let mut random = |wide: u64| self.rng.below(2 * wide + 1) as i32 - wide as i32;
        let (at, speed) = ([0; 3].map(|_: i32| random(BOX as u64)), [0; 3].map(|_: i32| random(FASTEST)));
        self.bodies.push(Moving { id: self.next, at, speed });
        self.next += 1;
    }

    /// A body's distance in codes per tick along the first axis, and whether it is far from any wall.
    pub fn pace(&self, id: u32) -> Option<(i32, bool)> {
        let body = self.bodies.iter().find(|body| body.id == id)?;
        Some((body.speed[0], body.at[0].abs() < BOX / 2))
    }

    pub fn bodies(&self) -> impl Iterator<Item = (u32, Body)> {
        self.bodies.iter().map(|body| (body.id, Body { at: body.at }))
    }
}

impl Game for Swarm {
    const NAME: &'static str = "swarm";
    const RATE: TickRate = TickRate::hz(30);
    const BUILD: BuildId = BuildId::from_bytes([8; 16]);
    type Setup = Setup;
    type Input = ();

    fn new(setup: &Setup) -> Swarm {
        let mut swarm = Swarm {
            tick: Tick::ZERO,
            rng: Rng::new(setup.seed),
            setup: setup.clone(),
            bodies: Vec::new(),
            next: 0,
        };
        (0..setup.bodies).for_each(|_| swarm.push());
        swarm
    }

    fn step(&mut self, _: &Inputs<()>) {
        self.tick = self.tick.next();
        let Setup { replaced, pushed, jolted, bodies, .. } = self.setup;
        let jolt = jolted > 0 && self.tick.0.is_multiple_of(jolted);
        let rng = &mut self.rng;
        self.bodies.retain(|_| replaced == 0 || !rng.chance(1, replaced.into()));
        for body in &mut self.bodies {
            if jolt || pushed > 0 && rng.chance(1, pushed.into()) {
                body.speed = [0; 3].map(|_: i32| rng.below(2 * FASTEST + 1) as i32 - FASTEST as i32);
            }
            for (at, speed) in body.at.iter_mut().zip(&mut body.speed) {
                *at += *speed;
                if at.abs() > BOX {
                    *speed = -*speed;
                    *at = (2 * BOX - at.abs()) * at.signum();
                }
            }
        }
        (self.bodies.len()..bodies as usize).for_each(|_| self.push());
    }
}

impl Hosted for Swarm {
    const KINDS: &'static [Kind] = &[Body::KIND];
    const UPDATES: TickRate = TickRate::hz(30);
    type Own = Me;
    type Event = ();
    type Command = NoCommand;

    fn view_of(&self, seat: Seat) -> ViewId {
        ViewId(if self.setup.shared { 0 } else { seat.0 })
    }

    fn eye(&self, _: ViewId) -> Option<[f32; 3]> {
        Some([0.0; 3])
    }

    fn show(&self, scene: &mut Scene) {
        self.bodies().for_each(|(id, body)| scene.put(id, None, &body));
    }

    fn own(&self, _: ViewId) -> Option<Me> {
        Some(Me { tick: self.tick.0 })
    }

    fn predict(own: &mut Me, (): &(), _: &Scene) {
        own.tick += 1;
    }

    fn prediction_error(predicted: &Me, right: &Me) -> PredictionError {
        PredictionError { distance: predicted.tick.abs_diff(right.tick) as f32, speed: 1.0, snaps: false }
    }

    fn command((): &(), command: NoCommand, _: &mut Vec<()>) {
        match command {}
    }
}
