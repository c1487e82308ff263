//! A game that bots play by themselves, for a page to show before anybody plays: the same step as in a session.

use sametick_pong::{Phase, Pong, Setup, setup};
use sametick_sim::{Game, Inputs, Tick};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::client::{numbers, to_json};
use crate::screen::OnScreen;

/// Bots wait for people before they begin; nobody looks at that.
const MOST_TICKS_BEFORE: u32 = 1_200;

/// A game of bots.
#[wasm_bindgen]
pub struct Demo {
    pong: Pong,
    memory: <Pong as OnScreen>::Memory,
    nobody: Inputs<<Pong as Game>::Input>,
    events: u32,
}

#[wasm_bindgen]
impl Demo {
    /// A game in full swing, for so many players.
    #[wasm_bindgen(constructor)]
    pub fn new(players: u8, seed: f64) -> Demo {
        let players = players.clamp(setup::MIN_PLAYERS, setup::MAX_PLAYERS);
        let pong = Pong::new(&Setup { seed: seed as u64, players, ..Setup::default() });
        let mut demo = Demo { pong, memory: Default::default(), nobody: Inputs::new(), events: 0 };
        for _ in 0..MOST_TICKS_BEFORE {
            if matches!(demo.pong.phase, Phase::Rally { .. }) {
                break;
            }
            demo.step();
        }
        demo
    }

    /// The next tick.
    pub fn step(&mut self) {
        let before: Tick = self.pong.tick;
        self.pong.step(&self.nobody);
        self.events = OnScreen::events(&self.pong, before);
    }

    /// Its number.
    pub fn tick(&self) -> u32 {
        self.pong.tick.0
    }

    /// The shapes on screen, as those of a client.
    pub fn frame(&mut self) -> Vec<f32> {
        numbers(&self.pong, &mut self.memory, &mut Vec::new())
    }

    /// What there is to see of the last step, as of a client.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// Words and numbers, as those of a client.
    pub fn hud(&self) -> String {
        to_json(&self.pong.hud(None, &[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bots_are_in_full_swing_from_the_first_frame_and_make_points() {
        for players in 2..=4 {
            let mut demo = Demo::new(players, 7.0);
            assert!(matches!(demo.pong.phase, Phase::Rally { .. }));
            // Two paddles and two walls, or one wall less for each other player, and the ball.
            assert_eq!(demo.frame().len(), 5 * 8);
            let first = demo.tick();
            let mut heard = 0;
            for _ in 0..3_600 {
                demo.step();
                heard |= demo.events();
            }
            assert_eq!(demo.tick(), first + 3_600);
            assert_eq!(heard & 21, 21, "hits, points and serves within a minute");
            assert!(demo.hud().contains(r#""driver":"bot""#));
        }
    }
}
