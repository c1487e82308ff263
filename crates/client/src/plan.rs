//! Parameters of a client.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_wire::Carrier;
use sametick_wire::access::AccessKey;

use crate::side::Side;

/// The parameters of a client.
#[derive(Clone)]
pub struct Plan<S: Side> {
    /// The session to join, or the room to enter.
    pub session: String,
    /// The parameters of the join.
    pub join: S::JoinAs,
    /// The key that proves the passphrase.
    pub key: AccessKey,
    /// The pass that identifies the player, if the server has issued one: see
    /// [`Hello::pass`](sametick_wire::hello::Hello::pass).
    pub pass: Option<Vec<u8>>,
    /// The carrier of each route to the server, the best first.
    pub routes: Vec<Carrier>,
    /// The Unix time in seconds at the time of [`Client::new`](crate::Client::new).
    pub unix_s: u64,
    /// Randomness from the operating system, for nonces and pauses.
    pub random: [u8; 32],
}
