//! Simulated players who join, leave, press everything and are late: for tests, benchmarks and platform comparisons.

use sametick_sim::{Game, Inputs, Rng, Seat, StateHash, Tick};

use crate::input::{Input, Motion};
use crate::setup::Setup;
use crate::state::Pong;

/// The inputs of a crowd on `seats` seats in a tick. All randomness comes from `rng`.
///
/// Most keep a motion for a while; now and then a player is late, leaves, comes back or is absent.
pub fn fill(tick: Tick, seats: u8, rng: &mut Rng, inputs: &mut Inputs<Input>) {
    for seat in (0..u16::from(seats)).map(Seat) {
        // An absent player stays away for some seconds, each seat at its own times.
        let away = (tick.0 / 400 + 3 * u32::from(seat.0)) % 5 == 4;
        if away {
            continue;
        }
        match rng.below(400) {
            0 => inputs.leave(seat),
            1 => inputs.join(seat),
            2..40 => inputs.omit(seat),
            40.. => inputs.set(seat, act(tick, seat, rng)),
        }
    }
}

fn act(tick: Tick, seat: Seat, rng: &mut Rng) -> Input {
    let mood = (tick.0 / 24).wrapping_mul(0x9e37_79b1) >> (8 + 2 * u32::from(seat.0 % 8));
    let motion = if rng.chance(1, 20) { rng.between(-1, 1) } else { mood as i32 % 3 - 1 };
    let input = Input::moving(Motion::towards(motion));
    match rng.below(30) {
        0 => input.and_serve(),
        1 => input.and_rematch(),
        _ => input,
    }
}

/// Plays for `ticks` ticks with a crowd: a hash over the state hashes of every tick, equal on every platform.
pub fn chain(setup: &Setup, ticks: u32) -> StateHash {
    let mut pong = Pong::new(setup);
    let mut rng = Rng::new(!setup.seed);
    let mut inputs = Inputs::new();
    let mut chain = StateHash::of(&pong);
    for tick in (1..=ticks).map(Tick) {
        inputs.clear();
        fill(tick, pong.rules.players + 1, &mut rng, &mut inputs);
        pong.step(&inputs);
        chain = StateHash::of(&(chain, StateHash::of(&pong)));
    }
    chain
}
