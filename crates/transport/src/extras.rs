//! Extra sockets: WebSockets that carry the datagrams of a WebSocket link in turn. A packet lost on one of them delays
//! nothing on the others, so a link with extra sockets has some late datagrams instead of stalls.
//!
//! A client names its link by a random number when it requests the link's own socket (`?link=`), and requests extra
//! sockets by that number (`?extra=`) once the link is open. Each message on an extra socket is one datagram.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sametick_wire::hex::{from_hex, to_hex};
use sametick_wire::link::EXTRA_SOCKETS;

use crate::clock::random;
use crate::endpoint::LinkId;

/// The write limit of an extra socket: a few datagrams. Datagrams beyond it are dropped, as by a full queue.
pub(crate) const MAX_EXTRA_UNWRITTEN: usize = 16 << 10;

/// The random number that ties extra sockets to their link. Only the client and the server know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinkName([u8; 16]);

impl LinkName {
    pub fn random() -> LinkName {
        LinkName(random())
    }

    /// The query that opens the link's own socket.
    pub fn to_query(self) -> String {
        format!("link={}", to_hex(&self.0))
    }

    /// The query that opens an extra socket.
    pub fn to_extra_query(self) -> String {
        format!("extra={}", to_hex(&self.0))
    }
}

/// The purpose of a WebSocket, by its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A link, perhaps with a name for its extra sockets.
    Link(Option<LinkName>),
    /// An extra socket.
    Extra(LinkName),
}

impl Wanted {
    /// Parses a query. A bad name counts as none: the link works without.
    pub fn parse(query: Option<&str>) -> Wanted {
        let named = |field: &str| {
            let mut fields = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
            fields.find(|(name, _)| *name == field).and_then(|(_, hex)| from_hex(hex)).map(LinkName)
        };
        named("extra").map_or_else(|| Wanted::Link(named("link")), Wanted::Extra)
    }
}

/// The open links of a listener that can have extra sockets.
#[derive(Clone, Default)]
pub(crate) struct Extras(Arc<Mutex<HashMap<LinkName, Named>>>);

struct Named {
    link: LinkId,
    extra: usize,
}

impl Extras {
    fn table(&self) -> MutexGuard<'_, HashMap<LinkName, Named>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a link have extra sockets until this is dropped. A name in use cannot be taken by another link.
    pub fn enter(&self, name: LinkName, link: LinkId) -> Option<Entered> {
        match self.table().entry(name) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(Named { link, extra: 0 });
                Some(Entered { extras: self.clone(), name })
            }
        }
    }

    /// Adds a socket to a link that is open and has fewer than [`EXTRA_SOCKETS`].
    pub fn add(&self, name: LinkName) -> Option<Extra> {
        let mut table = self.table();
        let named = table.get_mut(&name).filter(|named| named.extra < EXTRA_SOCKETS)?;
        named.extra += 1;
        let link = named.link;
        drop(table);
        Some(Extra { extras: self.clone(), name, link })
    }
}

/// A link that can have extra sockets.
pub(crate) struct Entered {
    extras: Extras,
    name: LinkName,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.extras.table().remove(&self.name);
    }
}

/// An extra socket.
pub(crate) struct Extra {
    extras: Extras,
    name: LinkName,
    /// Its link.
    pub link: LinkId,
}

impl Drop for Extra {
    fn drop(&mut self) {
        if let Some(named) = self.extras.table().get_mut(&self.name).filter(|named| named.link == self.link) {
            named.extra -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_from_a_query() {
        let name = LinkName([0xab; 16]);
        let hex = "ab".repeat(16);
        assert_eq!(Wanted::parse(Some(&name.to_query())), Wanted::Link(Some(name)));
        assert_eq!(Wanted::parse(Some(&format!("a=b&extra={hex}"))), Wanted::Extra(name));
        for bad in ["", "link", "link=", "link=ab", "link=abc", "extra=zz", &format!("extra={hex}00")] {
            assert_eq!(Wanted::parse(Some(bad)), Wanted::Link(None), "{bad}");
        }
        assert_eq!(Wanted::parse(None), Wanted::Link(None));
    }

    #[test]
    fn an_open_link_has_a_limited_number_of_extra_sockets() {
        let (extras, name) = (Extras::default(), LinkName::random());
        assert!(extras.add(name).is_none(), "the link is not open yet");
        let entered = extras.enter(name, LinkId(7)).unwrap();
        assert!(extras.enter(name, LinkId(8)).is_none(), "another link has this name");
        let mut sockets: Vec<Extra> = (0..EXTRA_SOCKETS).map(|_| extras.add(name).unwrap()).collect();
        assert!(sockets.iter().all(|socket| socket.link == LinkId(7)));
        assert!(extras.add(name).is_none(), "it has enough");
        sockets.pop();
        sockets.push(extras.add(name).unwrap());
        drop(entered);
        assert!(extras.add(name).is_none(), "the link has ended");
        let _another = extras.enter(name, LinkId(9)).unwrap();
        drop(sockets);
        assert!(extras.add(name).is_some());
        assert_eq!(extras.table()[&name].extra, 0);
    }
}
