//! How many first packets an address may send: a token bucket for each. A client that can make good ones
//! still cannot fill a table alone.

use std::collections::HashMap;
use std::net::IpAddr;

use sametick_wire::Time;

use crate::pace::network;

/// So many at once, and so many a second after that.
const BURST: u32 = 256;
const PER_SECOND: u32 = 32;

/// How many addresses are remembered; beyond it, all are forgotten and start anew: addresses may be made up, and must not keep
/// others out.
const MAX_BUCKETS: usize = 4_096;

struct Bucket {
    tokens: u32,
    filled_at: Time,
}

/// The buckets of a listener.
#[derive(Default)]
pub(crate) struct Firsts(HashMap<IpAddr, Bucket>);

impl Firsts {
    /// Whether an address may send one more.
    pub fn take(&mut self, now: Time, ip: IpAddr) -> bool {
        if self.0.len() >= MAX_BUCKETS {
            self.0.clear();
        }
        let bucket = self.0.entry(network(ip)).or_insert(Bucket { tokens: BURST, filled_at: now });
        let earned = now.micros_since(bucket.filled_at) * u64::from(PER_SECOND) / 1_000_000;
        if earned > 0 {
            bucket.tokens = bucket.tokens.saturating_add(earned as u32).min(BURST);
            bucket.filled_at = now;
        }
        let has = bucket.tokens > 0;
        bucket.tokens = bucket.tokens.saturating_sub(1);
        has
    }
}
