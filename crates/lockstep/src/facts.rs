//! What is said once about a session, and why somebody may not take part in it.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{BuildId, SchemaHash, TickRate};

/// What is said once about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The session's name.
    pub name: String,
    /// The name of the game.
    pub game: String,
    /// The build of the simulation.
    pub build: BuildId,
    /// The git commit of the peer that began it.
    pub commit: String,
    /// The shape of state, setup and input.
    pub schema: SchemaHash,
    /// What it was begun with.
    pub setup: Vec<u8>,
    /// The seed in that setup.
    pub seed: u64,
    /// Ticks a second.
    pub rate: TickRate,
    /// How many seats there are.
    pub seats: u16,
    /// Whether strangers may be shown it.
    pub listed: bool,
}

/// What the link of somebody is told who has come back over another one.
pub const CAME_BACK: &str = "you have come back over another connection";

/// Why a peer cannot take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// No seat is free, and there is no room to watch.
    Full,
    /// The seat that was asked for is not free.
    Taken,
    /// Another game is played in the session.
    Game,
    /// The peer's game has another shape of state, setup or input than the session's, though it has the same build id.
    Schema,
    /// The session runs at another rate than the peer's game.
    Rate,
    /// The session has become too long for somebody to begin at its start.
    TooLong,
    /// The player takes part over a later link.
    Overtaken,
}

impl JoinError {
    /// For a person.
    pub const fn text(self) -> &'static str {
        match self {
            JoinError::Full => "the session is full",
            JoinError::Taken => "that seat is taken, or there is none",
            JoinError::Game => "another game is played in this session",
            JoinError::Schema => "the session's game has another schema, though its build id is the same",
            JoinError::Rate => "the session runs at another tick rate",
            JoinError::Overtaken => CAME_BACK,
            JoinError::TooLong => "the session is too long to be joined from its beginning",
        }
    }
}
