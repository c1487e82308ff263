//! Unproven clients of a server without a passphrase: their first packet was answered, and they have not shown yet that
//! they receive at their address. Such packets can be sent in any number and from forged addresses, so nothing else is
//! stored for them, and the application does not learn of them.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use sametick_wire::Time;
use sametick_wire::access::ProofId;
use sametick_wire::hello::Proven;

use super::Key;

/// How many are stored; then the oldest is dropped, and may try again.
const MAX_UNMET: usize = 4_096;

/// The longest time one is stored: a client has given up by then.
const PATIENCE_US: u64 = 5_000_000;

/// An unproven client.
pub(super) struct Client {
    pub from: SocketAddr,
    pub proven: Proven,
    pub proof: ProofId,
}

/// All unproven clients.
#[derive(Default)]
pub(super) struct Unmet {
    clients: HashMap<Key, Client>,
    /// Oldest first; some have been proven meanwhile.
    order: VecDeque<(Time, Key)>,
}

impl Unmet {
    pub fn insert(&mut self, now: Time, key: Key, client: Client) {
        self.clients.insert(key, client);
        self.order.push_back((now, key));
    }

    pub fn contains(&self, key: Key) -> bool {
        self.clients.contains_key(&key)
    }

    pub fn take(&mut self, key: Key) -> Option<Client> {
        self.clients.remove(&key)
    }

    /// Removes and returns the next one that has expired.
    pub fn poll_given_up(&mut self, now: Time) -> Option<Key> {
        while let Some((since, key)) = self.order.front().copied() {
            let is_over = now.micros_since(since) >= PATIENCE_US || self.order.len() > MAX_UNMET;
            if !is_over {
                return None;
            }
            self.order.pop_front();
            if self.clients.remove(&key).is_some() {
                return Some(key);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::LinkId;
    use sametick_wire::hello::{Hello, Identity, Intent};
    use sametick_wire::{BuildId, SchemaHash};

    fn client() -> Client {
        let identity =
            Identity { build: BuildId::from_bytes([0; 16]), schema: SchemaHash::from_bytes([0; 32]) };
        let hello = Hello { identity, intent: Intent::Ping, name: String::new(), pass: None };
        let proof = ProofId { id: [0; 16], stamped_s: 0 };
        Client { from: ([127, 0, 0, 1], 1).into(), proven: Proven { hello, unspent: Some(proof) }, proof }
    }

    fn key(n: u64) -> Key {
        Key { endpoint: 0, link: LinkId(n) }
    }

    #[test]
    fn the_oldest_unproven_client_is_dropped_and_all_time_out() {
        let mut unmet = Unmet::default();
        for n in 0..MAX_UNMET as u64 {
            unmet.insert(Time::from_millis(n), key(n), client());
        }
        assert!(unmet.take(key(1)).is_some() && unmet.take(key(1)).is_none());
        assert_eq!(unmet.poll_given_up(Time::from_millis(4_100)), None);
        unmet.insert(Time::from_millis(4_100), key(9_999), client());
        assert_eq!(unmet.poll_given_up(Time::from_millis(4_100)), Some(key(0)));
        assert_eq!(unmet.poll_given_up(Time::from_millis(4_100)), None);
        let all = std::iter::from_fn(|| unmet.poll_given_up(Time::from_millis(20_000))).count();
        assert_eq!(all, MAX_UNMET - 1);
        assert!(!unmet.contains(key(9_999)));
    }
}
