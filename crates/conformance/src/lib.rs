//! Conformance: a game that uses everything deterministic in `sim`, two connected links of `wire`, pong and arena, a
//! session of `lockstep`, a room of `room`, and their logs read by `store`, to compare their hashes between platforms.
//!
//! The same sources run natively (`cargo run -p sametick-conformance --example hashes -- SEED TICKS`) and as wasm under
//! Node (`node crates/conformance/run.mjs MODULE.wasm SEED TICKS`), and have to print the same lines. Another pure
//! crate joins with a module beside `game`, `talk` and `session`. The example `record` writes the log of a session or a
//! room; the example `replay` and `replay.mjs` print the hash of every tick of it.
#![no_std]

extern crate alloc;
// Only for what a wasm module needs: an allocator, a panic handler, and storage for a log that is passed in.
extern crate std;

mod arguments;
mod exports;
mod game;
mod numbers;
mod replay;
mod room;
mod session;
mod talk;

use sametick_sim::{Game, Inputs, Rng, Seat, StateHash, Tick, schema_hash_of};

pub use game::{Medley, Order, Setup};
pub use replay::{Replay, replay};
pub use room::{record_room, room};
pub use session::{record, session};
pub use talk::talk;

/// A hash over the states of a crowd's game of pong.
pub fn pong(seed: u64, ticks: u32) -> StateHash {
    let players = 2 + (seed % 3) as u8;
    sametick_pong::crowd::chain(&sametick_pong::Setup { seed, players, ..Default::default() }, ticks)
}

/// A hash over the states of a crowd's game of arena.
pub fn arena(seed: u64, ticks: u32) -> StateHash {
    let (bots, seats) = ((seed % 7) as u8, 4 + (seed % 5) as u16);
    sametick_arena::crowd::chain(&sametick_arena::Setup { seed, bots, seats, ..Default::default() }, ticks)
}

/// The result of a run. Equal on every platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A hash over the state hashes of all ticks, so that a temporary difference is detected too.
    pub chain: StateHash,
    /// The hash of the last state.
    pub last: StateHash,
}

/// Runs the game for `ticks` ticks with randomness from `seed`.
pub fn run(seed: u64, ticks: u32) -> Outcome {
    let mut state = Medley::new(&Setup { seed });
    let mut players = Rng::new(!seed);
    let mut inputs = Inputs::new();
    let mut last = StateHash::of(&state);
    let mut chain = last;
    for tick in (1..=ticks).map(Tick) {
        inputs.clear();
        fill(tick, &mut players, &mut inputs);
        state.step(&inputs);
        last = StateHash::of(&state);
        chain = StateHash::of(&(chain, last));
    }
    Outcome { chain, last }
}

/// The inputs of four simulated players in a tick: they come, go, act and are late.
pub fn fill(tick: Tick, players: &mut Rng, inputs: &mut Inputs<Order>) {
    for seat in (0..4).map(Seat) {
        if tick == Tick(1) {
            inputs.join(seat);
        }
        match players.below(20) {
            0 => inputs.omit(seat),
            1 => inputs.leave(seat),
            2 => inputs.join(seat),
            _ => inputs.set(seat, order(players)),
        }
    }
}

fn order(players: &mut Rng) -> Order {
    match players.below(4) {
        0 => Order::Wait,
        1 => Order::Turn(players.unit_f32() * 6.5 - 3.25),
        2 => {
            Order::Thrust { forward: players.between(-5, 5), name: alloc::format!("p{}", players.below(50)) }
        }
        _ => Order::Note(f64::from_bits(players.next_u64())),
    }
}

/// The identity of the game, which has to be equal before hashes are comparable.
pub fn identity() -> (sametick_sim::BuildId, sametick_sim::SchemaHash) {
    (Medley::BUILD, schema_hash_of::<Medley>())
}
