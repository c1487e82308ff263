//! The `Game` trait: the contract between a game and all code that runs it.

use alloc::string::String;

use postcard_schema::Schema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{BuildId, Inputs, SchemaHash, TickRate, schema};

/// A deterministic game: the type that implements it *is* the state of the game.
///
/// Same state + same inputs = same next state, bit for bit, native or wasm. For that, a state and its step
/// - keep everything that matters in serialised fields: no `#[serde(skip)]`, no statics, no `Rc` with cells;
/// - take randomness from an [`Rng`](crate::Rng) in the state, float functions from [`maths`](crate::maths), and
///   time from the number of ticks;
/// - use `Vec` and `BTreeMap`, whose order is their content's order.
///
/// [`sync_test`](crate::sync_test::sync_test) finds what breaks these rules, and names the field.
/// The bound on [`Schema`] already keeps some of it out: `usize` and hash maps have none.
///
/// ```compile_fail
/// #[derive(sametick_sim::Schema)]
/// struct State { score: usize }
/// ```
pub trait Game: Clone + Serialize + DeserializeOwned + Schema + 'static {
    /// The name of the game in sessions, logs and saves: short, lower case.
    const NAME: &'static str;

    /// How many ticks a second the game runs at.
    const RATE: TickRate;

    /// The hash of the simulation's sources: [`build_id!()`](crate::build_id).
    const BUILD: BuildId;

    /// The parameters of a new session: scenario, difficulty, seed.
    type Setup: Clone + Serialize + DeserializeOwned + Schema + 'static;

    /// The input of one seat in one tick. Small: it is sent and stored for every tick.
    type Input: Clone + PartialEq + Serialize + DeserializeOwned + Schema + 'static;

    /// The state before the first step.
    fn new(setup: &Self::Setup) -> Self;

    /// One tick: computes the next state from this state and the inputs of all seats.
    ///
    /// For a missing input most games use [`Row::input_or`](crate::Row::input_or).
    fn step(&mut self, inputs: &Inputs<Self::Input>);

    /// Predicts a remote seat's next input, until it arrives. By default the last one is repeated.
    fn guess(last: &Self::Input) -> Self::Input {
        last.clone()
    }
}

/// The git commit that the package of a program was built from, for logs: it is the commit to check out to reproduce
/// the build that wrote a log. Empty if the package's build script does not set it. A constant.
///
/// The package needs a `build.rs` with `fn main() { sametick_build_id::emit_commit(); }`, beside
/// `sametick_build_id::emit()` if the game is in the same package. The commit decides nothing in a game and is no part
/// of its [`BuildId`]; a program for browsers should leave it out, or every commit gives another file.
#[macro_export]
macro_rules! commit {
    () => {
        match ::core::option_env!("SAMETICK_COMMIT") {
            Some(commit) => commit,
            None => "",
        }
    };
}

/// The description of all types of a game: its state, setup and input.
pub fn description_of<G: Game>() -> String {
    schema::describe(&[G::SCHEMA, G::Setup::SCHEMA, G::Input::SCHEMA])
}

/// The schema hash of all types of a game.
pub fn schema_hash_of<G: Game>() -> SchemaHash {
    schema::hash_description(&description_of::<G>())
}

/// The [`BuildId`] of the crate this is used in, for [`Game::BUILD`]. A constant.
///
/// The crate needs a `build.rs` with `fn main() { sametick_build_id::emit(); }` and `sametick-build-id` among its
/// build-dependencies.
#[macro_export]
macro_rules! build_id {
    () => {
        $crate::BuildId::from_hex(::core::env!(
            "SAMETICK_BUILD_ID",
            "no build id: give the crate a build.rs with `fn main() { sametick_build_id::emit(); }`"
        ))
        .expect("SAMETICK_BUILD_ID has 32 hexadecimal digits")
    };
}
