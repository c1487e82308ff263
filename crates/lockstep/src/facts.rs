//! The constant facts of a session, and the reasons for which a join is refused.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{BuildId, SchemaHash, TickRate};

/// The constant facts of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The session's name.
    pub name: String,
    /// The name of the game.
    pub game: String,
    /// The build of the simulation.
    pub build: BuildId,
    /// The git commit of the peer that began the session.
    pub commit: String,
    /// The schema of state, setup and input.
    pub schema: SchemaHash,
    /// The setup that the session began with.
    pub setup: Vec<u8>,
    /// The seed in that setup.
    pub seed: u64,
    /// Ticks a second.
    pub rate: TickRate,
    /// How many seats there are.
    pub seats: u16,
    /// Whether the session is shown in public lists.
    pub listed: bool,
}

/// Told to a peer's old link when the peer has come back over another one.
pub const CAME_BACK: &str = "you have come back over another connection";

/// Why a join is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// No seat is free, and there is no room for a spectator.
    Full,
    /// The seat that was asked for is not free.
    Taken,
    /// Another game is played in the session.
    Game,
    /// The peer's game has another schema than the session's, though it has the same build id.
    Schema,
    /// The session runs at another rate than the peer's game.
    Rate,
    /// The session has run for too long for a peer to begin at its first tick.
    TooLong,
    /// The player takes part over a later link.
    Overtaken,
}

impl JoinError {
    /// The reason as a sentence for people.
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
