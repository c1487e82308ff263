//! Client-side prediction and reconciliation: the player's own state is stepped ahead of the host with the game's own
//! code, corrected when the host disagrees, and shown without a jump where possible.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::replica::{Entity, Hosted, Motion, PredictionError, Scene};
use sametick_sim::{Game, Tick, Time};

/// The most predicted ticks: two seconds at 60 Hz.
const MAX_FORESEEN: usize = 120;

/// Statistics of prediction errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// How often the host's state of a tick was compared with the predicted one, while moving.
    pub compared: u64,
    /// How often they differed.
    pub corrections: u64,
    /// How often the difference was so large that it was corrected at once.
    pub snaps: u64,
    /// The sum of all differences as times: distance divided by speed, in milliseconds.
    pub sum_ms: f64,
    /// The largest of them.
    pub max_ms: f32,
    /// The last of them.
    pub last_ms: f32,
}

impl Errors {
    /// The mean difference, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        if self.compared == 0 { 0.0 } else { self.sum_ms / self.compared as f64 }
    }

    fn note(&mut self, apart: &PredictionError) {
        let ms = if apart.speed > 0.0 { apart.distance / apart.speed * 1_000.0 } else { 0.0 };
        if apart.speed > 0.0 {
            self.compared += 1;
            self.sum_ms += f64::from(ms);
            self.max_ms = if ms > self.max_ms { ms } else { self.max_ms };
            self.last_ms = ms;
        }
        self.corrections += 1;
        self.snaps += u64::from(apart.snaps);
    }

    fn note_right(&mut self, apart: &PredictionError) {
        if apart.speed > 0.0 {
            self.compared += 1;
            self.last_ms = 0.0;
        }
    }
}

/// The player's own state and its prediction.
pub(crate) struct Prediction<G: Hosted> {
    inputs: VecDeque<(Tick, <G as Game>::Input)>,
    /// The host's last state, and the predicted state after each tick since.
    states: VecDeque<(Tick, G::Own)>,
    /// When the last of them was predicted.
    made_at: Time,
    /// The difference of the shown state from the predicted one in each slot, and since when.
    offset: Vec<i32>,
    offset_since: Time,
    errors: Errors,
    slots: [Vec<i32>; 2],
}

impl<G: Hosted> Prediction<G> {
    pub fn new() -> Prediction<G> {
        let zeros = || alloc::vec![0; G::Own::KIND.width()];
        Prediction {
            inputs: VecDeque::new(),
            states: VecDeque::new(),
            made_at: Time::ZERO,
            offset: zeros(),
            offset_since: Time::ZERO,
            errors: Errors::default(),
            slots: [zeros(), zeros()],
        }
    }

    pub fn errors(&self) -> Errors {
        self.errors
    }

    /// Adds the player's input for a tick.
    pub fn act(&mut self, now: Time, tick: Tick, input: G::Input, around: &Scene) {
        if self.inputs.len() == MAX_FORESEEN {
            self.inputs.pop_front();
        }
        self.inputs.push_back((tick, input));
        self.made_at = now;
        self.predict(around);
    }

    /// Predicts up to the last input.
    fn predict(&mut self, around: &Scene) {
        let Prediction { inputs, states, .. } = self;
        let Some((mut tick, mut own)) = states.back().cloned() else { return };
        let mut held: Option<&G::Input> = None;
        for (meant, input) in inputs.iter() {
            // There is one input for every tick; where ticks were skipped, the previous input continues.
            while tick.next() < *meant && *meant > tick {
                let Some(last) = held else { break };
                tick = tick.next();
                G::predict(&mut own, &G::guess(last), around);
                push(states, tick, &own);
            }
            if *meant > tick {
                tick = *meant;
                G::predict(&mut own, input, around);
                push(states, tick, &own);
            }
            held = Some(input);
        }
    }

    /// Reconciles with the host's state after a tick.
    pub fn correct(&mut self, now: Time, tick: Tick, right: &G::Own, around: &Scene) {
        let predicted = self.states.iter().find(|(at, _)| *at == tick).map(|(_, own)| own);
        let is_right = predicted == Some(right);
        let apart = predicted.map(|predicted| G::prediction_error(predicted, right));
        while self.inputs.front().is_some_and(|(meant, _)| *meant <= tick) {
            self.inputs.pop_front();
        }
        if is_right {
            self.errors.note_right(&apart.unwrap_or_default());
            while self.states.front().is_some_and(|(at, _)| *at < tick) {
                self.states.pop_front();
            }
            return;
        }
        let shown = self.states.back().cloned();
        self.states.clear();
        self.states.push_back((tick, right.clone()));
        self.predict(around);
        if let Some(apart) = apart {
            self.errors.note(&apart);
            self.mend(now, shown, apart.snaps);
        }
    }

    /// Blends the shown state over to the corrected one.
    fn mend(&mut self, now: Time, shown: Option<(Tick, G::Own)>, snaps: bool) {
        let (Some((_, was)), Some((_, is)), false) = (shown, self.states.back(), snaps) else {
            self.offset.fill(0);
            return;
        };
        let left = self.left(now);
        let [old, new] = &mut self.slots;
        was.put(old);
        is.put(new);
        for (at, motion) in motions(&G::Own::KIND).enumerate() {
            let difference = match motion {
                Motion::Smooth => old[at].wrapping_sub(new[at]),
                Motion::Turn(circle) => shortest(old[at].wrapping_sub(new[at]), circle),
                Motion::Step | Motion::Rotation => 0,
            };
            self.offset[at] = difference.saturating_add((self.offset[at] as f32 * left) as i32);
        }
        self.offset_since = now;
    }

    /// The remaining share of the offset: all at first, nothing after a while.
    fn left(&self, now: Time) -> f32 {
        let passed = now.micros_since(self.offset_since) as f32 / G::BLEND.over_us.max(1) as f32;
        if passed < 1.0 { 1.0 - passed } else { 0.0 }
    }

    /// The shown state at a moment.
    pub fn shown(&self, now: Time) -> Option<G::Own> {
        let (_, last) = self.states.back()?;
        let before = self.states.len().checked_sub(2).and_then(|at| self.states.get(at));
        let share = now.micros_since(self.made_at) as f32 / G::RATE.tick_micros() as f32;
        let own = match before {
            Some((_, before)) if share < 1.0 => before.between(last, share),
            _ => last.clone(),
        };
        let left = self.left(now);
        if left == 0.0 || self.offset.iter().all(|offset| *offset == 0) {
            return Some(own);
        }
        let mut slots = [0; sametick_sim::replica::MAX_WIDTH];
        let slots = slots.get_mut(..self.offset.len())?;
        own.put(slots);
        for ((slot, offset), motion) in slots.iter_mut().zip(&self.offset).zip(motions(&G::Own::KIND)) {
            *slot = slot.saturating_add((*offset as f32 * left) as i32);
            if let Motion::Turn(circle) = motion {
                *slot = slot.rem_euclid(circle.max(1) as i32);
            }
        }
        G::Own::take(slots).or(Some(own))
    }

    /// The predicted state after the last tick.
    pub fn last(&self) -> Option<&(Tick, G::Own)> {
        self.states.back()
    }

    /// Discards the prediction.
    pub fn forget(&mut self) {
        self.inputs.clear();
        self.states.clear();
        self.offset.fill(0);
    }
}

fn push<O: Clone>(states: &mut VecDeque<(Tick, O)>, tick: Tick, own: &O) {
    if states.len() > MAX_FORESEEN {
        states.pop_front();
    }
    states.push_back((tick, own.clone()));
}

/// The motion type of each slot.
fn motions(kind: &sametick_sim::replica::Kind) -> impl Iterator<Item = Motion> + '_ {
    kind.fields.iter().flat_map(|field| (0..field.slots).map(|_| field.motion))
}

fn shortest(difference: i32, circle: u32) -> i32 {
    let circle = i64::from(circle.max(1));
    ((i64::from(difference) + circle / 2).rem_euclid(circle) - circle / 2) as i32
}
