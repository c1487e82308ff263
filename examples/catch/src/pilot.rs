//! A simple automatic player, for headless clients and tests: it walks to the nearest coin.

use sametick_sim::Seat;

use crate::{Catch, Input, Place, SPEED};

/// Plays a seat in lockstep, with the whole state.
pub fn autopilot(game: &Catch, seat: Seat) -> Input {
    let player = game.players.get(&seat);
    player.map_or(Input::default(), |player| towards(player.at, game.coins.iter().map(|coin| coin.at)))
}

pub(crate) fn towards(at: Place, coins: impl Iterator<Item = Place>) -> Input {
    let far = |coin: &Place| at[0].abs_diff(coin[0]).max(at[1].abs_diff(coin[1]));
    let nearest = coins.min_by_key(far).unwrap_or(at);
    // Closer than a step is close enough: otherwise the player would walk to and fro.
    let [x, y] = [0, 1].map(|axis| (nearest[axis].saturating_sub(at[axis]) / SPEED).signum() as i8);
    Input { x, y }
}
