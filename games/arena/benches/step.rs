//! Benchmark of a tick of arena, with rooms of several sizes, and of what a replay does with each: step and hash.

use divan::{Bencher, black_box};
use sametick_arena::{Arena, Input, Setup, autopilot};
use sametick_sim::replica::{Hosted, Scene};
use sametick_sim::{Game, Inputs, Seat, StateHash};

fn main() {
    divan::main();
}

/// Ticks per measurement.
const TICKS: u32 = 100;

/// Ticks before the measurement: all players are shooting by then.
const WARM_UP: u32 = 300;

/// The room sizes.
const SEATS: [u16; 4] = [10, 50, 200, 1000];

/// A room full of players who play as bots do.
fn session(seats: u16) -> (Arena, Vec<Inputs<Input>>) {
    let mut arena = Arena::new(&Setup { seed: 1, bots: 0, seats, ..Setup::default() });
    let play = |arena: &mut Arena| {
        let mut inputs = Inputs::new();
        for seat in (0..seats).map(Seat) {
            inputs.set(seat, autopilot(arena, seat));
        }
        arena.step(&inputs);
        inputs
    };
    for _ in 0..WARM_UP {
        play(&mut arena);
    }
    let start = arena.clone();
    (start, (0..TICKS).map(|_| play(&mut arena)).collect())
}

fn play(bencher: Bencher<'_, '_>, seats: u16, mut then: impl FnMut(&Arena)) {
    let (start, inputs) = session(seats);
    bencher.counter(divan::counter::ItemsCount::new(TICKS)).with_inputs(|| start.clone()).bench_local_values(
        |mut arena| {
            for inputs in &inputs {
                arena.step(black_box(inputs));
                then(&arena);
            }
            arena
        },
    );
}

#[divan::bench(args = SEATS)]
fn steps(bencher: Bencher<'_, '_>, seats: u16) {
    play(bencher, seats, |_| {});
}

#[divan::bench(args = SEATS)]
fn steps_each_hashed(bencher: Bencher<'_, '_>, seats: u16) {
    play(bencher, seats, |arena| {
        black_box(StateHash::of(arena));
    });
}

#[divan::bench(args = SEATS)]
fn steps_each_shown(bencher: Bencher<'_, '_>, seats: u16) {
    let mut scene = Scene::new(Arena::KINDS);
    play(bencher, seats, |arena| {
        scene.clear();
        arena.show(&mut scene);
        black_box(&scene);
    });
}

/// Players on seats plus bots, which are computed in the step.
#[divan::bench(args = [10, 200])]
fn steps_with_bots(bencher: Bencher<'_, '_>, bots: u8) {
    let start = Arena::new(&Setup { seed: 1, bots, seats: 1, ..Setup::default() });
    bencher.counter(divan::counter::ItemsCount::new(TICKS)).with_inputs(|| start.clone()).bench_local_values(
        |mut arena| {
            (0..TICKS).for_each(|_| arena.step(black_box(&Inputs::new())));
            arena
        },
    );
}
