//! The games of simulated worlds: one whose state never heals, at several tick rates, and pong.

use postcard_schema::Schema;
use sametick_pong::{Input as PongInput, Motion, Pong, Setup as PongSetup};
use sametick_sim::{BuildId, Game, Inputs, Rng, StateHash, Tick, TickRate};
use serde::{Deserialize, Serialize};

/// A game that the simulator can play.
pub trait Playable: Game {
    /// The setup of a session with this seed and so many seats.
    fn setup(seed: u64, seats: u16) -> Self::Setup;

    /// Draws the next input of a player after `held`.
    fn play(rng: &mut Rng, held: Option<&Self::Input>) -> Self::Input;

    /// A hash of the state; cheap, for it is computed at every confirmed tick.
    fn digest(&self) -> u64;

    /// Flips one bit that no step ever flips back.
    fn flip(&mut self, rng: &mut Rng);

    /// Whether `shown` may descend from the state `self` of this tick.
    fn is_past_of(&self, shown: &Self, tick: Tick) -> bool;
}

const SEATS: usize = 8;

/// How many of its last ticks a state records: more than a peer may predict.
const TRAIL: usize = 64;

/// A game in which every input changes all later states, so that no difference can heal. Runs at `HZ` ticks a second.
#[derive(Clone, Serialize, Deserialize, Schema)]
pub struct Sum<const HZ: u16> {
    tick: u32,
    totals: [u64; SEATS],
    held: [u8; SEATS],
    /// A few bits of each of the last states, so that the origin of a state on screen can be checked.
    trail: [[u8; TRAIL / 2]; 2],
}

impl<const HZ: u16> Sum<HZ> {
    fn mark(&self, tick: u32) -> u8 {
        let at = tick as usize % TRAIL;
        self.trail[at / (TRAIL / 2)][at % (TRAIL / 2)]
    }
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(23) ^ word).wrapping_mul(MIX)
}

impl<const HZ: u16> Game for Sum<HZ> {
    const NAME: &'static str = "sum";
    const RATE: TickRate = TickRate::hz(HZ);
    const BUILD: BuildId = BuildId::from_bytes([HZ as u8; BuildId::LEN]);
    type Setup = u64;
    type Input = u8;

    fn new(seed: &u64) -> Sum<HZ> {
        Sum { tick: 0, totals: [*seed; SEATS], held: [0; SEATS], trail: [[0; TRAIL / 2]; 2] }
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        self.tick += 1;
        let mut mark = u64::from(self.tick);
        for row in inputs {
            let seat = row.seat.index() % SEATS;
            if row.joined {
                self.held[seat] = 0;
            }
            self.held[seat] = *row.input_or(&self.held[seat]);
            let events = u64::from(row.joined) << 8 | u64::from(row.left) << 9;
            let omitted = u64::from(row.input.is_none()) << 10;
            self.totals[seat] = mix(self.totals[seat], u64::from(self.held[seat]) | events | omitted);
            mark = mix(mark, self.totals[seat]);
        }
        let at = self.tick as usize % TRAIL;
        self.trail[at / (TRAIL / 2)][at % (TRAIL / 2)] = (mark >> 56) as u8;
    }
}

impl<const HZ: u16> Playable for Sum<HZ> {
    fn setup(seed: u64, _: u16) -> u64 {
        seed
    }

    fn play(rng: &mut Rng, held: Option<&u8>) -> u8 {
        let held = held.copied().unwrap_or(0);
        if rng.chance(5, u64::from(HZ).max(6)) { held ^ 1 << rng.below(8) } else { held }
    }

    fn digest(&self) -> u64 {
        let sum = self.totals.iter().fold(u64::from(self.tick), |sum, word| mix(sum, *word));
        mix(sum, u64::from_le_bytes(self.held))
    }

    fn flip(&mut self, rng: &mut Rng) {
        self.totals[rng.below(SEATS as u64) as usize] ^= 1 << rng.below(64);
    }

    fn is_past_of(&self, shown: &Sum<HZ>, tick: Tick) -> bool {
        self.mark(tick.0) == shown.mark(tick.0)
    }
}

impl Playable for Pong {
    fn setup(seed: u64, seats: u16) -> PongSetup {
        PongSetup { seed, players: seats.clamp(2, 4) as u8, ..PongSetup::default() }
    }

    fn play(rng: &mut Rng, held: Option<&PongInput>) -> PongInput {
        let held = held.copied().unwrap_or_default();
        if !rng.chance(1, 12) {
            return held;
        }
        let input = PongInput::moving(Motion::towards(rng.between(-1, 1)));
        match rng.below(8) {
            0 => input.and_serve(),
            1 => input.and_rematch(),
            _ => input,
        }
    }

    fn digest(&self) -> u64 {
        StateHash::of(self).0
    }

    fn flip(&mut self, rng: &mut Rng) {
        // From here on the game's random numbers are different, whatever the inputs.
        self.rng = Rng::new(rng.next_u64());
    }

    fn is_past_of(&self, _: &Pong, _: Tick) -> bool {
        true
    }
}
