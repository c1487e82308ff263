//! The sync-test: checks offline, in one process, that a game is deterministic.
//!
//! A rollback restores a saved state and simulates the same ticks again. The sync-test does that at every tick and at
//! every depth, from clones and from saved bytes, and compares. State that is hidden from serialisation, a step that
//! depends on more than its arguments, or an input that does not survive a round trip is reported with the first tick
//! and field that differ.
//!
//! A field with `#[serde(skip)]` may matter long after the ticks that are simulated again. So the schemas of state,
//! setup and input are compared with their serialised form, and a missing field is reported before the first tick.

mod sample;
mod unserialised;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::canon::{self, DecodeError};
use crate::diff::{Difference, Lines, differences};
use crate::hash::encode;
use crate::{Game, Inputs, StateHash, Tick};
use unserialised::{unserialised, unserialised_of};

/// The most differing fields in a report.
const REPORTED: usize = 16;

/// Runs a game for `ticks` ticks and simulates every tick again from each of the `max_depth` states before it.
///
/// `inputs` fills in the inputs of the step that leads to the given tick; drive it from an [`Rng`](crate::Rng) for good
/// coverage. A tick costs about `max_depth`² steps. Returns the hash of the last state, which a test can pin.
///
/// The front page of this crate has an example.
pub fn sync_test<G: Game>(
    setup: &G::Setup,
    ticks: u32,
    max_depth: u32,
    mut inputs: impl FnMut(Tick, &mut Inputs<G::Input>),
) -> Result<StateHash, Desync> {
    expect_serialised(unserialised_of::<G>(), Tick::ZERO, Subject::State)?;
    expect_serialised(unserialised_of::<G::Setup>(), Tick::ZERO, Subject::Setup)?;
    expect_serialised(unserialised_of::<G::Input>(), Tick::ZERO, Subject::Input)?;
    let mut run = Run::<G>::start(setup)?;
    let mut now = Inputs::new();
    for tick in (1..=ticks).map(Tick) {
        now.clear();
        inputs(tick, &mut now);
        run.advance(tick, &now, max_depth)?;
    }
    Ok(run.history.back().map_or(StateHash::of(&run.state), |saved| saved.hash))
}

/// The first place where a game is not deterministic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desync {
    /// The first tick whose state differs.
    pub tick: Tick,
    /// The operation that revealed it.
    pub cause: Cause,
    /// The fields that differ: their values when the tick was first reached, and those after the repetition.
    pub differences: Vec<Difference>,
}

/// The operation that revealed a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// `Game::new` was called again with the same setup, after a round trip.
    New,
    /// The inputs of the tick, or the setup, were written and read back, and are different.
    Inputs,
    /// A state was cloned.
    Clone,
    /// A state was written and read back.
    RoundTrip,
    /// Bytes just written could not be read back.
    Unreadable(DecodeError),
    /// Ticks were simulated again.
    Again {
        /// The tick of the restored state.
        from: Tick,
        /// How it was restored.
        via: Via,
    },
    /// Stepping a clone changed the original: they share memory.
    SharedMemory,
    /// The schema declares fields that are not serialised: `#[serde(skip)]`, `skip_serializing` or `skip_serializing_if`.
    Unserialised {
        /// The type that declares them.
        of: Subject,
        /// Their paths, such as `players[].aim`.
        fields: Vec<String>,
    },
}

/// A serialised type of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Its state.
    State,
    /// Its setup.
    Setup,
    /// An input.
    Input,
}

/// How a saved state was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// As a clone. A difference means that a step depends on something outside the state.
    Clone,
    /// Through canonical bytes. A difference that clones do not show means that part of the state is not serialised.
    Bytes,
}

impl fmt::Display for Desync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tick {}: {}{}", self.tick, self.cause, Lines(&self.differences))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::New => {
                f.write_str("the state differs after calling new() again: it depends on more than the setup")
            }
            Cause::Inputs => {
                f.write_str("the inputs or the setup differ after being sent: part of them is not serialised")
            }
            Cause::Clone => f.write_str("the state differs after cloning it"),
            Cause::RoundTrip => f.write_str("the state differs after writing it and reading it back"),
            Cause::Unreadable(error) => {
                write!(f, "the bytes of the state, the setup or the inputs cannot be read back: {error}")
            }
            Cause::Again { from, via: Via::Clone } => write!(
                f,
                "the state differs after simulating again from a clone of tick {from}: step() depends on \
                 something outside the state"
            ),
            Cause::Again { from, via: Via::Bytes } => write!(
                f,
                "the state differs after simulating again from the saved bytes of tick {from}: part of the state \
                 is not serialised"
            ),
            Cause::SharedMemory => {
                f.write_str("the state differs after stepping a clone of it: clones share memory")
            }
            Cause::Unserialised { of, fields } => write!(
                f,
                "the {of} has fields that are not serialised: {}. They are not saved, hashed or sent, so players \
                 lose them on a rollback or a late join; remove #[serde(skip)] and its relatives",
                fields.join(", ")
            ),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Subject::State => "state",
            Subject::Setup => "setup",
            Subject::Input => "input",
        })
    }
}

impl core::error::Error for Desync {}

/// A saved state, as for a rollback, and the inputs of the following step.
struct Saved<G: Game> {
    tick: Tick,
    state: G,
    bytes: Vec<u8>,
    hash: StateHash,
    inputs: Inputs<G::Input>,
}

/// The run of a game with its last states.
struct Run<G: Game> {
    state: G,
    history: VecDeque<Saved<G>>,
}

impl<G: Game> Run<G> {
    fn start(setup: &G::Setup) -> Result<Run<G>, Desync> {
        expect_serialised(unserialised(setup), Tick::ZERO, Subject::Setup)?;
        let state = G::new(setup);
        let again = G::new(&sent(setup, Tick::ZERO)?);
        expect_equal(&state, &again, Tick::ZERO, Cause::New)?;
        let first = Saved::of(&state, Tick::ZERO)?;
        Ok(Run { state, history: VecDeque::from([first]) })
    }

    fn advance(&mut self, tick: Tick, inputs: &Inputs<G::Input>, max_depth: u32) -> Result<(), Desync> {
        for input in inputs.iter().filter_map(|row| row.input.as_ref()) {
            expect_serialised(unserialised(input), tick, Subject::Input)?;
        }
        if let Some(before) = self.history.back_mut() {
            before.inputs = sent(inputs, tick)?;
        }
        self.state.step(inputs);
        self.history.push_back(Saved::of(&self.state, tick)?);
        for depth in 1..self.history.len() {
            self.repeat(depth, Via::Clone)?;
            self.repeat(depth, Via::Bytes)?;
        }
        self.expect_untouched(tick)?;
        while self.history.len() > max_depth as usize {
            self.history.pop_front();
        }
        Ok(())
    }

    /// Simulates the last `depth` ticks again and compares each of them.
    fn repeat(&self, depth: usize, via: Via) -> Result<(), Desync> {
        let start = self.history.len() - 1 - depth;
        let ticks = self.history.range(start..).zip(self.history.range(start + 1..));
        let mut again = self.history[start].restore(via)?;
        let from = self.history[start].tick;
        for (before, after) in ticks {
            again.step(&before.inputs);
            if StateHash::of(&again) != after.hash {
                return Err(after.desync(&again, Cause::Again { from, via }));
            }
        }
        Ok(())
    }

    /// Stepping the copies must not have changed the current state.
    fn expect_untouched(&self, tick: Tick) -> Result<(), Desync> {
        match self.history.back() {
            Some(saved) if saved.tick == tick && saved.hash != StateHash::of(&self.state) => {
                Err(saved.desync(&self.state, Cause::SharedMemory))
            }
            _ => Ok(()),
        }
    }
}

impl<G: Game> Saved<G> {
    fn of(state: &G, tick: Tick) -> Result<Saved<G>, Desync> {
        expect_serialised(unserialised(state), tick, Subject::State)?;
        let mut bytes = Vec::new();
        encode(state, &mut bytes);
        let saved = Saved {
            tick,
            state: state.clone(),
            hash: StateHash::of_bytes(&bytes),
            bytes,
            inputs: Inputs::new(),
        };
        expect_equal(state, &saved.state, tick, Cause::Clone)?;
        expect_equal(state, &saved.restore(Via::Bytes)?, tick, Cause::RoundTrip)?;
        Ok(saved)
    }

    fn restore(&self, via: Via) -> Result<G, Desync> {
        match via {
            Via::Clone => Ok(self.state.clone()),
            Via::Bytes => read(&self.bytes, self.tick),
        }
    }

    /// The report for a state that should equal this one.
    fn desync(&self, again: &G, cause: Cause) -> Desync {
        // Bytes cannot have changed since; a clone that shares memory can.
        let first = self.restore(Via::Bytes);
        let differences = first.map(|first| differences(&first, again, REPORTED)).unwrap_or_default();
        Desync { tick: self.tick, cause, differences }
    }
}

/// A value after a round trip through bytes. It must be unchanged.
fn sent<T: Serialize + DeserializeOwned>(value: &T, tick: Tick) -> Result<T, Desync> {
    let mut bytes = Vec::new();
    encode(value, &mut bytes);
    let arrived = read(&bytes, tick)?;
    expect_equal(value, &arrived, tick, Cause::Inputs)?;
    Ok(arrived)
}

fn read<T: DeserializeOwned>(bytes: &[u8], tick: Tick) -> Result<T, Desync> {
    canon::from_canonical(bytes).map_err(|error| Desync {
        tick,
        cause: Cause::Unreadable(error),
        differences: Vec::new(),
    })
}

fn expect_serialised(missing: Vec<String>, tick: Tick, of: Subject) -> Result<(), Desync> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(Desync { tick, cause: Cause::Unserialised { of, fields: missing }, differences: Vec::new() })
}

fn expect_equal<T: Serialize>(first: &T, again: &T, tick: Tick, cause: Cause) -> Result<(), Desync> {
    if StateHash::of(first) == StateHash::of(again) {
        return Ok(());
    }
    Err(Desync { tick, cause, differences: differences(first, again, REPORTED) })
}
