//! How much of messages that are not whole yet a server holds: for a link, for an address, and for all.

use std::collections::HashMap;
use std::net::IpAddr;

use sametick_wire::closing::OVER_A_LIMIT;

use super::{App, Hub, Key};

/// What a link may make a server hold before it has joined anything: the request to join, with the longest setup, fits.
pub const UNJOINED_BYTES: usize = 8 << 10;

/// After that: the longest message that a relay takes, a state of a desync with its parts, and what comes right behind it.
pub const LINK_BYTES: usize = (16 << 20) + (64 << 10);

/// What the links of one address may hold together, of IPv6 those of one network.
pub const ADDRESS_BYTES: usize = 24 << 20;

/// What all may.
pub const ALL_BYTES: usize = 64 << 20;

/// Who has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// The link itself.
    Link(&'static str),
    /// The link of the same address that holds most.
    Address(&'static str),
    /// The link that holds most of all.
    All(&'static str),
}

/// What is held.
#[derive(Debug, Default)]
pub(super) struct Held {
    of_address: HashMap<IpAddr, usize>,
    all: usize,
}

impl Held {
    /// A link of an address holds another amount than before.
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

    /// Whether a link that holds so much is too much for somebody.
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
    /// Notes that a link takes part in something, once it does.
    pub(super) fn look_whether_joined(&mut self, key: Key, app: &impl App) {
        if let Some(entry) = self.links.entries.get_mut(&key).filter(|entry| !entry.has_joined)
            && app.has_joined(key)
        {
            entry.has_joined = true;
            self.endpoints[key.endpoint].joined(key.link);
        }
    }

    /// Closes a link if it, its address, or all hold more than they may.
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
    fn a_link_an_address_and_all_have_their_budgets() {
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
