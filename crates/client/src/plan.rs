//! What a client is told when it begins.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_wire::Carrier;
use sametick_wire::access::AccessKey;

use crate::side::Side;

/// What a client is to do.
#[derive(Clone)]
pub struct Plan<S: Side> {
    /// The session to join, or the room to enter.
    pub session: String,
    /// How to take part in it.
    pub join: S::JoinAs,
    /// What proves the passphrase.
    pub key: AccessKey,
    /// What shows as whom it comes, where the server has given it something for that: see
    /// [`Hello::pass`](sametick_wire::hello::Hello::pass).
    pub pass: Option<Vec<u8>>,
    /// What each way to the server can carry, the best first.
    pub routes: Vec<Carrier>,
    /// The Unix time in seconds at the time of [`Client::new`](crate::Client::new).
    pub unix_s: u64,
    /// From the operating system's randomness, for nonces and pauses.
    pub random: [u8; 32],
}
