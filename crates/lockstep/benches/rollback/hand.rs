//! Rollback written by hand for this one game: a ring of saved states, nothing else.

use super::Contestant;
use super::game::Plain;
use sametick_sim::{Game, Inputs, Seat};

/// Saves the state before every tick, as GGRS asks for it.
pub struct ByHand<const WORDS: usize> {
    state: Box<Plain<WORDS>>,
    saved: Box<[Plain<WORDS>]>,
    inputs: Inputs<u8>,
    /// The next tick.
    tick: usize,
    depth: usize,
    remote: u8,
    wrong: bool,
    resimulated: u64,
}

impl<const WORDS: usize> ByHand<WORDS> {
    /// A frame with a wrong prediction goes back this far.
    pub fn new(depth: u32) -> Self {
        let state = Box::new(Plain::new(&()));
        let saved = vec![(*state).clone(); depth as usize + 1].into_boxed_slice();
        let depth = depth as usize;
        ByHand {
            state,
            saved,
            inputs: Inputs::new(),
            tick: 0,
            depth,
            remote: 0,
            wrong: false,
            resimulated: 0,
        }
    }

    fn advance(&mut self) {
        let place = self.tick % self.saved.len();
        self.saved[place].clone_from(&self.state);
        self.inputs.clear();
        self.inputs.set(Seat(0), 1);
        self.inputs.set(Seat(1), self.remote);
        self.state.step(&self.inputs);
        self.tick += 1;
    }
}

impl<const WORDS: usize> Contestant for ByHand<WORDS> {
    fn prepare(&mut self, wrong: bool) {
        self.wrong = wrong;
    }

    fn frame(&mut self) {
        if self.wrong && self.tick >= self.depth {
            self.remote ^= 1;
            self.tick -= self.depth;
            self.state.as_mut().clone_from(&self.saved[self.tick % self.saved.len()]);
            (0..self.depth).for_each(|_| self.advance());
            self.resimulated += self.depth as u64;
        }
        self.advance();
    }

    fn hashed(&self) -> bool {
        false
    }

    fn resimulated(&self) -> u64 {
        self.resimulated
    }
}
