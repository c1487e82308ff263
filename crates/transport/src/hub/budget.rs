//! Memory budgets of a server for incomplete messages: per link, per address, and in total.

use std::collections::HashMap;
use std::net::IpAddr;

use sametick_wire::closing::OVER_A_LIMIT;

use super::{App, Hub, Key};

/// The budget of a link before it has joined: a request to join with the longest setup fits.
pub const UNJOINED_BYTES: usize = 8 << 10;

/// The budget after that: the longest message of a relay, a state after a desync with its parts, and the bytes directly
/// behind it.
pub const LINK_BYTES: usize = (16 << 20) + (64 << 10);

/// The budget of all links of one address, for IPv6 of one network.
pub const ADDRESS_BYTES: usize = 24 << 20;

/// The total budget.
pub const ALL_BYTES: usize = 64 << 20;

/// The link that has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// The link itself.
    Link(&'static str),
    /// The link of the same address that holds most.
    Address(&'static str),
    /// The link that holds most of all.
    All(&'static str),
}

/// The bytes that are held.
#[derive(Debug, Default)]
pub(super) struct Held {
    of_address: HashMap<IpAddr, usize>,
    all: usize,
}

impl Held {
    /// Updates the amount that a link of an address holds.
    pub fn change(&mut self, of: IpAddr, before: usize, after: usize) {
        if before == after {
            return;
        }
        self.all = self.all - before + after;
        let held = self.of_address.entry(of).or_default();
        *held = *held - before + after;
        if *held == 0 {
            self.of_address.remove(&of);
        }
    }

    /// The exceeded budget, if a link that holds so much exceeds one.
    pub fn excess(&self, of: IpAddr, held: usize, has_joined: bool) -> Option<Excess> {
        if !has_joined && held > UNJOINED_BYTES {
            Some(Excess::Link("a link that has not joined may have 8 KiB of messages that are not whole"))
        } else if held > LINK_BYTES {
            Some(Excess::Link("too much of messages that are not whole: a link may have 16 MiB"))
        } else if self.of_address.get(&of).is_some_and(|held| *held > ADDRESS_BYTES) {
            Some(Excess::Address("too much of messages that are not whole: an address may have 24 MiB"))
        } else if self.all > ALL_BYTES {
            Some(Excess::All("the server holds too much of messages that are not whole"))
        } else {
            None
        }
    }
}

impl Hub {
    /// Notes that a link has joined, once it has.
    pub(super) fn look_whether_joined(&mut self, key: Key, app: &impl App) {
        if let Some(entry) = self.links.entries.get_mut(&key).filter(|entry| !entry.has_joined)
            && app.has_joined(key)
        {
            entry.has_joined = true;
            self.endpoints[key.endpoint].joined(key.link);
        }
    }

    /// Closes a link if it, its address, or all together exceed their budget.
    pub(super) fn enforce(&mut self, key: Key, app: &impl App) {
        self.look_whether_joined(key, app);
        let Some(excess) = self.links.weigh(key) else { return };
        let of = self.links.entries.get(&key).and_then(|entry| entry.network);
        let (closed, why) = match excess {
            Excess::Link(why) => (Some(key), why),
            Excess::Address(why) => (self.links.largest(of), why),
            Excess::All(why) => (self.links.largest(None), why),
        };
        let Some(closed) = closed else { return };
        let network = self.links.entries.get(&closed).and_then(|entry| entry.network);
        tracing::warn!(network = network.map(tracing::field::display), why, "a link is closed");
        self.links.close(closed, OVER_A_LIMIT, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn links_addresses_and_the_server_have_budgets() {
        let ip = |n: u8| IpAddr::from(Ipv4Addr::new(192, 0, 2, n));
        let mut held = Held::default();
        let of_link = |excess| matches!(excess, Some(Excess::Link(_)));
        assert!(of_link(held.excess(ip(1), UNJOINED_BYTES + 1, false)));
        assert_eq!(held.excess(ip(1), UNJOINED_BYTES, false), None);
        assert_eq!(held.excess(ip(1), LINK_BYTES, true), None);
        assert!(of_link(held.excess(ip(1), LINK_BYTES + 1, true)));
        held.change(ip(1), 0, 20 << 20);
        held.change(ip(1), 0, 4 << 20);
        assert_eq!(held.excess(ip(1), 4 << 20, true), None);
        held.change(ip(1), 0, 1);
        assert!(matches!(held.excess(ip(1), 1, true), Some(Excess::Address(_))));
        assert_eq!(held.excess(ip(2), 1, true), None, "others do not notice");
        held.change(ip(1), 1, 0);
        (2..4).for_each(|n| held.change(ip(n), 0, 20 << 20));
        assert_eq!(held.excess(ip(9), 1, true), None);
        held.change(ip(9), 0, 1);
        assert!(matches!(held.excess(ip(9), 1, true), Some(Excess::All(_))));
        held.change(ip(9), 1, 0);
        held.change(ip(1), 24 << 20, 0);
        (2..4).for_each(|n| held.change(ip(n), 20 << 20, 0));
        assert!(held.of_address.is_empty() && held.all == 0);
    }
}
