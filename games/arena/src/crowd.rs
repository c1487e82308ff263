//! Simulated players who join, leave, press everything and are late: for tests, benchmarks and platform comparisons.

use sametick_sim::{Game, Inputs, Rng, Seat, StateHash, Tick};

use crate::ai::autopilot;
use crate::build::Kind;
use crate::input::{Action, Input, Walk};
use crate::setup::Setup;
use crate::space::{Tile, UNIT};
use crate::state::Arena;

/// The inputs of a crowd on `seats` seats in a tick. All randomness comes from `rng`.
///
/// Half of the players play as bots do, the others give random inputs; now and then a player is late, leaves, comes
/// back or is absent.
pub fn fill(arena: &Arena, seats: u16, rng: &mut Rng, inputs: &mut Inputs<Input>) {
    for number in 0..seats {
        // An absent player stays away for some seconds, each seat at its own times.
        let away = (arena.tick.0 / 200 + 3 * u32::from(number)) % 7 == 6;
        let seat = Seat(number);
        match rng.below(400) {
            _ if away => {}
            0 => inputs.leave(seat),
            1 => inputs.join(seat),
            2..40 => inputs.omit(seat),
            _ if number % 2 == 0 => inputs.set(seat, autopilot(arena, seat)),
            _ => inputs.set(seat, act(arena, seat, rng)),
        }
    }
}

fn act(arena: &Arena, seat: Seat, rng: &mut Rng) -> Input {
    let at = arena.at_seat(seat).map_or([0; 2], |person| person.own.at);
    let mut near = |part: i32| part / UNIT + rng.between(-5, 5);
    let tile = Tile::new(near(at[0]), near(at[1]));
    let kind = if rng.chance(1, 3) { Kind::Wall } else { Kind::Crate };
    let action = tile.and_then(|tile| match rng.below(20) {
        0 => Some(Action::Place(tile, kind)),
        1..4 => Some(Action::Preview(tile, kind)),
        4 => Some(Action::Remove(tile)),
        5 => Some(Action::Clear),
        _ => None,
    });
    let mood = (arena.tick.0 / 12).wrapping_mul(0x9e37_79b1) >> (seat.index() % 16);
    let (walk, fire) = (Walk::of_code((mood % 9) as u8), mood.is_multiple_of(3));
    Input { walk, aim: rng.below(256) as u8, fire, action, place: rng.below(8) as u16 }
}

/// Plays for `ticks` ticks with a crowd: a hash over the state hashes of every tick, equal on every platform.
pub fn chain(setup: &Setup, ticks: u32) -> StateHash {
    let mut arena = Arena::new(setup);
    let mut rng = Rng::new(!setup.seed);
    let mut inputs = Inputs::new();
    let mut chain = StateHash::of(&arena);
    for _ in (1..=ticks).map(Tick) {
        inputs.clear();
        fill(&arena, arena.rules.seats + 1, &mut rng, &mut inputs);
        arena.step(&inputs);
        chain = StateHash::of(&(chain, StateHash::of(&arena)));
    }
    chain
}
