//! Determinism: same state, same inputs, same next state: from clones, from bytes, after any number of ticks, without
//! allocating.

use sametick_pong::{Input, Pong, Setup, Skill, crowd};
use sametick_sim::sync_test::sync_test;
use sametick_sim::{Game, Inputs, Rng, Seat, StateHash, Tick};

#[test]
fn every_tick_comes_out_the_same_again() {
    for seed in 0..24 {
        let players = 2 + (seed % 3) as u8;
        let skill = [Skill::Easy, Skill::Normal, Skill::Hard][seed as usize / 3 % 3];
        let setup = Setup { seed, players, points: 2, bots: seed % 4 != 3, skill, ..Setup::default() };
        let mut rng = Rng::new(seed + 100);
        let depth = [2, 5, 12][seed as usize % 3];
        let result = sync_test::<Pong>(&setup, 900, depth, |tick, inputs| {
            crowd::fill(tick, players + 1, &mut rng, inputs);
        });
        if let Err(desync) = result {
            panic!("seed {seed}: {desync}");
        }
    }
}

#[test]
fn every_tick_comes_out_the_same_again_after_a_long_rollback() {
    let mut rng = Rng::new(7);
    let setup = Setup { seed: 7, players: 4, ..Setup::default() };
    let result = sync_test::<Pong>(&setup, 500, 40, |tick, inputs| crowd::fill(tick, 4, &mut rng, inputs));
    result.unwrap();
}

#[test]
fn ten_thousand_ticks_come_to_the_pinned_hashes() {
    // The hashes are the same on every platform. A change of the rules or of the schema changes them: pin the new ones,
    // on purpose.
    let chain = |seed, players| {
        let setup = Setup { seed, players, points: 3, ..Setup::default() };
        crowd::chain(&setup, 10_000).to_string()
    };
    let chains = [chain(1, 2), chain(2, 3), chain(3, 4)];
    assert_eq!(chains, ["b959f88c147ef1ff", "b9c0e7615b63ed19", "6077d4658807d6f9"]);
}

#[test]
fn the_step_allocates_nothing() {
    let setup = Setup { seed: 5, players: 4, points: 2, ..Setup::default() };
    let (mut pong, mut rng, mut inputs) = (Pong::new(&setup), Rng::new(6), Inputs::new());
    (0..8).for_each(|seat| inputs.set(Seat(seat), Input::NONE));
    let work = || {
        for tick in (1..=20_000).map(Tick) {
            inputs.clear();
            crowd::fill(tick, 5, &mut rng, &mut inputs);
            pong.step(&inputs);
            assert_ne!(StateHash::of(&pong), StateHash(0));
        }
    };
    assert_eq!(allocation_counter::measure(work).count_total, 0);
}
