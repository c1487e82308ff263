//! Status of a client, for the user interface.

use alloc::string::String;

use sametick_sim::Time;
use sametick_wire::LinkStats;

/// The status of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// A carrier has been dialled and has not answered yet.
    Connecting,
    /// The server has answered; the session has not yet.
    Joining,
    /// The session has not started: it waits for players.
    Waiting,
    /// The ticks before the join are being simulated.
    CatchingUp,
    /// Playing.
    Playing,
    /// Spectating.
    Watching,
    /// Nothing has arrived for a while, or the prediction is as far ahead as it may be.
    Stalled {
        /// Since when nothing has arrived.
        since: Time,
    },
    /// The connection is lost; it is dialled again at this time.
    Lost {
        /// The time of the next attempt.
        retry_at: Time,
        /// Why it was lost.
        why: String,
    },
    /// Refused for good, for this reason.
    Refused(String),
    /// The player has left.
    Left,
}

/// Statistics over all links of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes received from carriers.
    pub bytes_received: u64,
    /// Bytes sent to carriers.
    pub bytes_sent: u64,
    /// The number of lost connections.
    pub losses: u32,
    /// The number of detected restarts of the session, for example after a restart of the server.
    pub restarts: u32,
}

impl Totals {
    /// Adds the statistics of a link.
    pub(crate) fn with(self, stats: LinkStats) -> Totals {
        Totals {
            bytes_received: self.bytes_received + stats.bytes_received,
            bytes_sent: self.bytes_sent + stats.bytes_sent,
            ..self
        }
    }
}
