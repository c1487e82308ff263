//! Determinism: same state, same inputs, same next state: from clones, from bytes, after any number of ticks, without
//! allocating.

use sametick_arena::{Arena, Input, Setup, crowd};
use sametick_sim::sync_test::sync_test;
use sametick_sim::{Game, Inputs, Rng, Seat};

/// The inputs of a crowd in every tick of a session.
fn session(setup: &Setup, seats: u16, ticks: u32) -> Vec<Inputs<Input>> {
    let (mut arena, mut rng) = (Arena::new(setup), Rng::new(setup.seed + 100));
    let tick = |_| {
        let mut inputs = Inputs::new();
        crowd::fill(&arena, seats, &mut rng, &mut inputs);
        arena.step(&inputs);
        inputs
    };
    (0..ticks).map(tick).collect()
}

#[test]
fn every_tick_comes_out_the_same_again() {
    for seed in 0..12 {
        let setup = Setup {
            seed,
            size: 16 + seed as u16,
            bots: (seed % 5) as u8,
            seats: 6,
            points: 0,
            rocks: true,
            rounds: false,
        };
        let session = session(&setup, 7, 400);
        let result = sync_test::<Arena>(&setup, 400, [2, 5, 12][seed as usize % 3], |tick, inputs| {
            *inputs = session[tick.0 as usize - 1].clone();
        });
        if let Err(desync) = result {
            panic!("seed {seed}: {desync}");
        }
    }
}

#[test]
fn some_thousand_ticks_come_to_the_pinned_hashes() {
    // The hashes are the same on every platform. A change of the rules or of the schema changes them: pin the new ones,
    // on purpose.
    let chain = |seed, bots| {
        crowd::chain(&Setup { seed, size: 24, bots, seats: 8, points: 0, rocks: true, rounds: false }, 3000)
            .to_string()
    };
    assert_eq!([chain(1, 0), chain(2, 6)], ["895a962d987f1ecf", "1308e63423991794"]);
}

#[test]
fn the_step_allocates_nothing_once_it_has_run_for_a_while() {
    let setup = Setup { seed: 5, size: 24, bots: 4, seats: 8, points: 0, rocks: true, rounds: false };
    let (mut arena, mut rng, mut inputs) = (Arena::new(&setup), Rng::new(6), Inputs::new());
    (0..8).for_each(|seat| inputs.set(Seat(seat), Input::default()));
    let mut play = |ticks| {
        for _ in 0..ticks {
            inputs.clear();
            crowd::fill(&arena, 8, &mut rng, &mut inputs);
            arena.step(&inputs);
        }
    };
    play(3000);
    assert_eq!(allocation_counter::measure(|| play(3000)).count_total, 0);
}
