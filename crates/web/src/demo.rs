//! A demo game played by bots, for a page to show before the player joins: it uses the same step function as a session.

use sametick_arena::Arena;
use sametick_pong::{Phase, Pong};
use sametick_sim::{Inputs, Tick};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::played::numbers;
use crate::screen::Pictured;
use crate::to_json;

/// Bots wait for players before they start; these ticks are skipped.
const MOST_TICKS_BEFORE: u32 = 1_200;

/// By then bots have met.
const TICKS_BEFORE: u32 = 300;

/// A demo game.
#[wasm_bindgen]
pub struct Demo {
    shown: Box<dyn Exhibit>,
    events: u32,
}

/// A demo of any game.
trait Exhibit {
    fn step(&mut self) -> u32;
    fn tick(&self) -> Tick;
    fn rate(&self) -> u32;
    fn frame(&mut self) -> Vec<f32>;
    fn hud(&self) -> String;
}

struct Stage<G: Pictured> {
    state: G,
    tick: Tick,
    nobody: Inputs<G::Input>,
    memory: G::Memory,
}

impl<G: Pictured> Stage<G> {
    fn new(setup: &G::Setup) -> Stage<G> {
        Stage { state: G::new(setup), tick: Tick::ZERO, nobody: Inputs::new(), memory: Default::default() }
    }

    /// Advances the game until there is action from the first frame on.
    fn swing(mut self, most: u32, swings: impl Fn(&G) -> bool) -> Box<Stage<G>> {
        for _ in 0..most {
            if swings(&self.state) {
                break;
            }
            self.step();
        }
        Box::new(self)
    }
}

impl<G: Pictured> Exhibit for Stage<G> {
    fn step(&mut self) -> u32 {
        let before = self.tick;
        self.state.step(&self.nobody);
        self.tick = self.tick.next();
        self.state.look(&self.state, None, before, &mut self.memory)
    }

    fn tick(&self) -> Tick {
        self.tick
    }

    fn rate(&self) -> u32 {
        G::RATE.per_second()
    }

    fn frame(&mut self) -> Vec<f32> {
        let mut shapes = Vec::new();
        self.state.draw(None, &mut self.memory, &mut shapes);
        numbers(&shapes)
    }

    fn hud(&self) -> String {
        to_json(&self.state.hud(None, &[], &self.memory))
    }
}

#[wasm_bindgen]
impl Demo {
    /// A demo of pong or arena with this many players, in full action.
    #[wasm_bindgen(constructor)]
    pub fn new(game: &str, players: u8, seed: f64) -> Result<Demo, String> {
        let seed = seed as u64;
        let shown: Box<dyn Exhibit> = match game {
            "pong" => {
                let players =
                    players.clamp(sametick_pong::setup::MIN_PLAYERS, sametick_pong::setup::MAX_PLAYERS);
                let setup = sametick_pong::Setup { seed, players, ..sametick_pong::Setup::default() };
                let swings = |pong: &Pong| matches!(pong.phase, Phase::Rally { .. });
                Stage::<Pong>::new(&setup).swing(MOST_TICKS_BEFORE, swings)
            }
            "arena" => {
                let size = sametick_arena::setup::MIN_SIZE;
                let setup = sametick_arena::Setup {
                    seed,
                    size,
                    bots: players,
                    seats: 1,
                    points: 0,
                    rocks: true,
                    rounds: false,
                };
                Stage::<Arena>::new(&setup).swing(TICKS_BEFORE, |_| false)
            }
            other => return Err(format!("there is no game called {other} in this page")),
        };
        Ok(Demo { shown, events: 0 })
    }

    /// Simulates the next tick.
    pub fn step(&mut self) {
        self.events = self.shown.step();
    }

    /// The number of the tick.
    pub fn tick(&self) -> u32 {
        self.shown.tick().0
    }

    /// The ticks per second.
    pub fn ticks_per_second(&self) -> u32 {
        self.shown.rate()
    }

    /// The shapes on screen, as those of a client.
    pub fn frame(&mut self) -> Vec<f32> {
        self.shown.frame()
    }

    /// The sound events of the last step, as those of a client.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// The HUD, as that of a client.
    pub fn hud(&self) -> String {
        self.shown.hud()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Shape;

    #[test]
    fn bots_of_pong_play_and_score_from_the_first_frame() {
        for players in 2..=4 {
            let mut demo = Demo::new("pong", players, 7.0).unwrap();
            assert!(demo.hud().contains(r#""phase":"playing""#));
            // Two paddles and two walls, or one wall less for each other player, and the ball.
            assert_eq!(demo.frame().len(), 5 * Shape::NUMBERS);
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

    #[test]
    fn bots_walk_shoot_and_build_in_arena() {
        let mut demo = Demo::new("arena", 6, 7.0).unwrap();
        let mut heard = 0;
        for _ in 0..1_800 {
            demo.step();
            heard |= demo.events();
            let frame = demo.frame();
            assert!(frame.chunks(Shape::NUMBERS).filter(|shape| shape[1] == 3.0).count() <= 6);
        }
        assert_eq!(heard & (256 | 32 | 64), 256 | 32 | 64, "shots, and things built and fallen");
        assert!(demo.hud().contains(r#""bot":true"#));
        assert!(Demo::new("chess", 2, 1.0).is_err());
    }
}
