//! Test fixture: a session with its inputs, driven as a relay would.

use sametick_pong::{Input, Phase, Pong, Setup, Wall, What};
use sametick_sim::{Game, Inputs, Seat, Tick};

pub struct Table {
    pub pong: Pong,
    inputs: Inputs<Input>,
}

impl Table {
    pub fn new(setup: Setup) -> Table {
        Table { pong: Pong::new(&setup), inputs: Inputs::new() }
    }

    /// Two players on a table without bots.
    pub fn for_two(seed: u64) -> Table {
        Table::new(Setup { seed, bots: false, ..Setup::default() })
    }

    /// One tick in which these seats have these inputs and all others are empty.
    pub fn tick(&mut self, acts: &[(u16, Input)]) {
        self.tick_with(|inputs| acts.iter().for_each(|(seat, input)| inputs.set(Seat(*seat), *input)));
    }

    pub fn tick_with(&mut self, fill: impl FnOnce(&mut Inputs<Input>)) {
        self.inputs.clear();
        fill(&mut self.inputs);
        self.pong.step(&self.inputs);
        self.pong.check().unwrap();
    }

    pub fn ticks(&mut self, ticks: u32, acts: &[(u16, Input)]) {
        (0..ticks).for_each(|_| self.tick(acts));
    }

    /// Continues until the phase is a wanted one, for at most a few minutes.
    pub fn until(&mut self, acts: &[(u16, Input)], wanted: fn(&Phase) -> bool) -> u32 {
        self.until_state(acts, |pong| wanted(&pong.phase))
    }

    pub fn until_state(&mut self, acts: &[(u16, Input)], wanted: impl Fn(&Pong) -> bool) -> u32 {
        for ticks in 0..20_000 {
            if wanted(&self.pong) {
                return ticks;
            }
            self.tick(acts);
        }
        panic!("it never came to that: {:?}", self.pong.phase);
    }

    /// The events of the last tick.
    pub fn now(&self) -> Vec<What> {
        let before = Tick(self.pong.tick.0 - 1);
        self.pong.events_since(before).map(|event| event.what).collect()
    }

    pub fn scores(&self) -> [u8; 4] {
        Wall::ALL.map(|wall| self.pong.paddle(wall).score)
    }
}

/// These seats are taken, with idle inputs.
pub fn idle<const N: usize>(seats: [u16; N]) -> [(u16, Input); N] {
    seats.map(|seat| (seat, Input::NONE))
}

pub fn is_waiting(phase: &Phase) -> bool {
    matches!(phase, Phase::Waiting { .. })
}

pub fn is_serving(phase: &Phase) -> bool {
    matches!(phase, Phase::Serving { .. })
}

pub fn is_rally(phase: &Phase) -> bool {
    matches!(phase, Phase::Rally { .. })
}

pub fn is_pause(phase: &Phase) -> bool {
    matches!(phase, Phase::Pause { .. })
}

pub fn is_over(phase: &Phase) -> bool {
    matches!(phase, Phase::Over { .. })
}
