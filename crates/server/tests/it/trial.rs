//! Games on trial: small ones that are right, wrong or slow on purpose.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use sametick::games::{AnyGame, Games, Known};
use sametick_sim::{BuildId, Game, Inputs, Schema, TickRate};
use serde::{Deserialize, Serialize};

thread_local! {
    /// How many steps of [`Slow`] this thread has made.
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Something outside the state.
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

/// A game that hides a part of its state from those who save it.
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

/// A game that looks outside its state, at something that all its instances share.
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

/// A game that is right on every thread, and different on each.
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

/// A game that falls over when somebody presses seven.
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

/// All of them, and pong.
pub fn games() -> Games {
    sametick::games![Slow, Faulty, Leaky, Threaded, Fragile, sametick_pong::Pong => sametick_pong::autopilot]
}

/// One of them.
pub fn slow() -> Box<dyn AnyGame> {
    Box::new(Known::<Slow>::new())
}
