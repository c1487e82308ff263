//! Small games for tests that are correct, wrong or slow on purpose.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use sametick::games::{AnyGame, Games, Known};
use sametick_sim::replica::{Entity, Hosted, Kind, NoCommand, PredictionError, Scene, ViewId};
use sametick_sim::{BuildId, Game, Inputs, Schema, TickRate};
use serde::{Deserialize, Serialize};

thread_local! {
    /// How many steps of [`Slow`] this thread has made.
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// State outside the game's state.
static OUTSIDE: AtomicU32 = AtomicU32::new(0);

/// How many steps of [`Slow`] this thread has made since it was last asked.
pub fn take_steps() -> u64 {
    STEPS.take()
}

/// A game whose every step counts as if it took a long time. Its numbers are wide, its map has keys.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Slow {
    pub sum: u64,
    pub wide: i128,
    pub last: std::collections::BTreeMap<u16, u16>,
}

impl Game for Slow {
    const NAME: &'static str = "slow";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([7; 16]);
    type Setup = u64;
    type Input = u16;

    fn new(setup: &u64) -> Slow {
        Slow { sum: *setup, wide: i128::MAX, last: Default::default() }
    }

    fn step(&mut self, inputs: &Inputs<u16>) {
        STEPS.with(|steps| steps.set(steps.get() + 1));
        for row in inputs {
            let input = row.input.unwrap_or(1);
            self.sum = self.sum.wrapping_mul(31).wrapping_add(u64::from(input) << row.seat.0);
            self.last.insert(row.seat.0, input);
        }
        self.wide -= 1;
    }
}

/// A game that does not serialise a part of its state.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Faulty {
    pub sum: u64,
    #[serde(skip)]
    hidden: u32,
}

impl Game for Faulty {
    const NAME: &'static str = "faulty";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([8; 16]);
    type Setup = u64;
    type Input = u16;

    fn new(setup: &u64) -> Faulty {
        Faulty { sum: *setup, hidden: 0 }
    }

    fn step(&mut self, _: &Inputs<u16>) {
        self.hidden += 1;
        self.sum = self.sum.wrapping_add(u64::from(self.hidden / 50));
    }
}

/// A game that reads a value outside its state, which all its instances share.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Leaky {
    pub seen: u32,
}

impl Game for Leaky {
    const NAME: &'static str = "leaky";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([9; 16]);
    type Setup = u8;
    type Input = u8;

    fn new(_: &u8) -> Leaky {
        Leaky { seen: 0 }
    }

    fn step(&mut self, _: &Inputs<u8>) {
        self.seen = OUTSIDE.fetch_add(1, Ordering::Relaxed) / 100;
    }
}

/// A game that is deterministic on each thread, and different between threads.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Threaded {
    pub ticks: u32,
    pub here: u64,
}

impl Game for Threaded {
    const NAME: &'static str = "threaded";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([11; 16]);
    type Setup = u8;
    type Input = u8;

    fn new(_: &u8) -> Threaded {
        Threaded { ticks: 0, here: 0 }
    }

    fn step(&mut self, _: &Inputs<u8>) {
        self.ticks += 1;
        if self.ticks == 40 {
            self.here = STEPS.with(|steps| std::ptr::from_ref(steps) as u64);
        }
    }
}

/// A game that panics when a player presses seven.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Fragile;

impl Game for Fragile {
    const NAME: &'static str = "fragile";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([10; 16]);
    type Setup = ();
    type Input = u8;

    fn new(_: &()) -> Fragile {
        Fragile
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        assert!(!inputs.iter().any(|row| row.input == Some(7)), "seven is too much");
    }
}

/// The input of a walker of [`Field`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct Step {
    pub dx: i8,
    pub dy: i8,
    pub panic: bool,
}

/// A game for rooms that panics on a player's command: walkers on a field.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Field {
    walkers: std::collections::BTreeMap<u16, [i32; 2]>,
}

/// A walker, as others see it and as its own screen predicts it.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "walker", zone(near within 1000.0 at 10 hz))]
pub struct Walker {
    #[entity(place)]
    pub at: [i32; 2],
}

impl Game for Field {
    const NAME: &'static str = "field";
    const RATE: TickRate = TickRate::hz(30);
    const BUILD: BuildId = BuildId::from_bytes([12; 16]);
    type Setup = ();
    type Input = Step;

    fn new((): &()) -> Field {
        Field { walkers: Default::default() }
    }

    fn step(&mut self, inputs: &Inputs<Step>) {
        for row in inputs {
            let step = row.input.unwrap_or_default();
            assert!(!step.panic, "a player has asked for it");
            let at = self.walkers.entry(row.seat.0).or_default();
            *at = [at[0] + i32::from(step.dx), at[1] + i32::from(step.dy)];
            if row.left {
                self.walkers.remove(&row.seat.0);
            }
        }
    }
}

impl Hosted for Field {
    const KINDS: &'static [Kind] = &[Walker::KIND];
    const UPDATES: TickRate = TickRate::hz(10);
    type Own = Walker;
    type Event = ();
    type Command = NoCommand;

    fn eye(&self, view: ViewId) -> Option<[f32; 3]> {
        self.walkers.get(&view.0).map(|at| [at[0] as f32, at[1] as f32, 0.0])
    }

    fn show(&self, scene: &mut Scene) {
        for (seat, at) in &self.walkers {
            scene.put(u32::from(*seat), Some(ViewId(*seat)), &Walker { at: *at });
        }
    }

    fn own(&self, view: ViewId) -> Option<Walker> {
        self.walkers.get(&view.0).map(|at| Walker { at: *at })
    }

    fn predict(own: &mut Walker, input: &Step, _: &Scene) {
        own.at = [own.at[0] + i32::from(input.dx), own.at[1] + i32::from(input.dy)];
    }

    fn prediction_error(predicted: &Walker, right: &Walker) -> PredictionError {
        let distance = (predicted.at[0] - right.at[0]) as f32;
        PredictionError { distance, speed: 30.0, snaps: false }
    }

    fn command(_: &Step, command: NoCommand, _: &mut Vec<Step>) {
        match command {}
    }
}

/// All of them, and pong.
pub fn games() -> Games {
    sametick::games![Slow, Faulty, Leaky, Threaded, Fragile, sametick_pong::Pong => sametick_pong::autopilot]
}

/// The slow game.
pub fn slow() -> Box<dyn AnyGame> {
    Box::new(Known::<Slow>::new())
}
