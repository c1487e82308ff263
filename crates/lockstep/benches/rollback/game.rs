//! A game with a plain state and a trivial step, to measure the cost around it.

use postcard_schema::Schema;
use postcard_schema::schema::NamedType;
use sametick_sim::{BuildId, Game, Inputs, TickRate};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A state of words in one piece. It is aligned because copying between places that differ by a few bytes modulo a page
/// can be ten times slower.
#[derive(Clone)]
#[repr(align(64))]
pub struct Plain<const WORDS: usize> {
    words: [u32; WORDS],
}

impl<const WORDS: usize> Plain<WORDS> {
    /// Applies a player's input.
    pub fn act(&mut self, seat: usize, input: u8) {
        let word = &mut self.words[seat];
        *word = word.rotate_left(5) ^ u32::from(input);
    }
}

impl<const WORDS: usize> Game for Plain<WORDS> {
    const NAME: &'static str = "plain";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([4; 16]);
    type Setup = ();
    type Input = u8;

    fn new((): &()) -> Plain<WORDS> {
        Plain { words: [7; WORDS] }
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        for row in inputs {
            self.act(row.seat.index(), *row.input_or(&0));
        }
    }
}

impl<const WORDS: usize> Schema for Plain<WORDS> {
    const SCHEMA: &'static NamedType = <[u32; WORDS] as Schema>::SCHEMA;
}

impl<const WORDS: usize> Serialize for Plain<WORDS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.words)
    }
}

impl<'de, const WORDS: usize> Deserialize<'de> for Plain<WORDS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::deserialize(deserializer)?;
        let words = words.try_into().map_err(|_| D::Error::custom("another number of words"))?;
        Ok(Plain { words })
    }
}
