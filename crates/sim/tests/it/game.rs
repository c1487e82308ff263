//! The identity of a game.

use sametick_sim::{BUILD, BuildId, Game, Inputs, Schema, TickRate, description_of, schema_hash_of};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Counter(u32);

impl Game for Counter {
    const NAME: &'static str = "counter";
    const RATE: TickRate = TickRate::hz(20);
    const BUILD: BuildId = sametick_sim::build_id!();
    type Setup = u32;
    type Input = i8;

    fn new(setup: &u32) -> Counter {
        Counter(*setup)
    }

    fn step(&mut self, inputs: &Inputs<i8>) {
        self.0 += inputs.len() as u32;
    }
}

#[test]
fn a_crate_has_the_id_its_build_script_computed() {
    assert_eq!(Counter::BUILD, BUILD);
    assert_ne!(BUILD, BuildId::from_bytes([0; 16]));
}

#[test]
fn a_game_is_described_by_state_setup_and_input() {
    assert_eq!(description_of::<Counter>(), "Counter: newtype\nCounter.0: u32\nu32: u32\ni8: i8\n");
    assert_ne!(schema_hash_of::<Counter>(), sametick_sim::schema::hash::<Counter>());
}

#[test]
fn a_guess_is_the_same_again() {
    assert_eq!(Counter::guess(&-4), -4);
}
