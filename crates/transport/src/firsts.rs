//! Rate limiter for first packets: a token bucket per address, so that a client with the passphrase cannot fill a table
//! alone.

use std::collections::HashMap;
use std::net::IpAddr;

use sametick_wire::Time;
use sametick_wire::rate_limit::{RateLimit, TokenBucket};

use crate::rate_limit::network;

/// 32 a second, and 256 at once.
const LIMIT: RateLimit = RateLimit::per_second(32, 256);

/// How many addresses are tracked; beyond it, all are dropped and start anew: addresses may be forged, and must not
/// lock others out.
const MAX_BUCKETS: usize = 4_096;

/// The token buckets of a listener.
#[derive(Default)]
pub(crate) struct Firsts(HashMap<IpAddr, TokenBucket>);

impl Firsts {
    /// Takes one token of an address; false if there is none.
    pub fn take(&mut self, now: Time, ip: IpAddr) -> bool {
        if self.0.len() >= MAX_BUCKETS {
            self.0.clear();
        }
        self.0.entry(network(ip)).or_default().try_take(now, LIMIT)
    }
}
