//! What a client is doing, for whoever shows it.

use alloc::string::String;

use sametick_sim::Time;
use sametick_wire::LinkStats;

/// What a client is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// A carrier has been dialled and has not answered yet.
    Connecting,
    /// The server has answered, the session has not yet.
    Joining,
    /// The session has not begun: it waits for players.
    Waiting,
    /// What was closed before is being simulated.
    CatchingUp,
    /// Playing.
    Playing,
    /// Watching.
    Watching,
    /// Nothing has come for a while, or the state on screen is as far ahead as it may be.
    Stalled {
        /// Since when nothing has come.
        since: Time,
    },
    /// The connection is gone; it is dialled again at this time.
    Lost {
        /// When.
        retry_at: Time,
        /// Why it is gone.
        why: String,
    },
    /// Turned down for good, and why.
    Refused(String),
    /// Has left.
    Left,
}

/// Figures over all links of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes taken from carriers.
    pub bytes_received: u64,
    /// Bytes given to carriers.
    pub bytes_sent: u64,
    /// How often a connection was lost.
    pub losses: u32,
    /// How often the session was found to have begun anew, such as after a restart of the server.
    pub restarts: u32,
}

impl Totals {
    /// Adds what a link has counted.
    pub(crate) fn with(self, stats: LinkStats) -> Totals {
        Totals {
            bytes_received: self.bytes_received + stats.bytes_received,
            bytes_sent: self.bytes_sent + stats.bytes_sent,
            ..self
        }
    }
}
