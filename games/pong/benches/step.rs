//! Benchmark of a tick of pong, with a crowd of players and with bots alone, and of what a replay does: step and hash.

use divan::{Bencher, black_box};
use sametick_pong::{Input, Pong, Setup, crowd};
use sametick_sim::{Game, Inputs, Rng, StateHash, Tick};

fn main() {
    divan::main();
}

/// Ticks per measurement: enough to go through all phases.
const TICKS: u32 = 10_000;

fn session(players: u8, seats: u8) -> (Pong, Vec<Inputs<Input>>) {
    let setup = Setup { seed: 1, players, ..Setup::default() };
    let mut rng = Rng::new(2);
    let tick = |tick| {
        let mut inputs = Inputs::new();
        crowd::fill(tick, seats, &mut rng, &mut inputs);
        inputs
    };
    (Pong::new(&setup), (1..=TICKS).map(Tick).map(tick).collect())
}

fn play(bencher: Bencher<'_, '_>, players: u8, seats: u8, mut then: impl FnMut(&Pong)) {
    let (start, inputs) = session(players, seats);
    bencher.counter(divan::counter::ItemsCount::new(TICKS)).bench_local(|| {
        let mut pong = black_box(start.clone());
        for inputs in &inputs {
            pong.step(inputs);
            then(&pong);
        }
        pong
    });
}

#[divan::bench(args = [2, 4])]
fn steps_with_players(bencher: Bencher<'_, '_>, players: u8) {
    play(bencher, players, players, |_| {});
}

#[divan::bench(args = [2, 4])]
fn steps_with_bots(bencher: Bencher<'_, '_>, players: u8) {
    play(bencher, players, 0, |_| {});
}

#[divan::bench(args = [2, 4])]
fn steps_with_players_each_hashed(bencher: Bencher<'_, '_>, players: u8) {
    play(bencher, players, players, |pong| {
        black_box(StateHash::of(pong));
    });
}
