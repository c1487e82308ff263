//! How many connections there may be, and how many of one address that have not said hello: whoever opens many and
//! says nothing takes nobody else's place.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::files::most_connections;
use crate::pace::network;

/// Connections of one listener at once, where so many files may be open.
const MAX_CONNECTIONS: usize = 10_000;

/// Those of one address, of IPv6 of one network, that have not said hello. Each has a few seconds to do so.
const MAX_OPENING: u32 = 512;

/// The places of one listener.
#[derive(Clone)]
pub(crate) struct Places {
    table: Arc<Mutex<Table>>,
    max_connections: usize,
    max_opening: u32,
}

#[derive(Default)]
struct Table {
    taken: usize,
    opening: HashMap<IpAddr, u32>,
}

impl Places {
    pub fn new() -> Places {
        Places::at_most(MAX_CONNECTIONS.min(most_connections()), MAX_OPENING)
    }

    /// Other limits.
    pub fn at_most(max_connections: usize, max_opening: u32) -> Places {
        Places { table: Arc::default(), max_connections, max_opening }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for somebody from this address, unless all are taken.
    pub fn take(&self, ip: IpAddr) -> Option<Place> {
        let mut place = self.take_any()?;
        place.belongs_to(ip).then_some(place)
    }

    /// A place for somebody whose address is not known yet.
    pub fn take_any(&self) -> Option<Place> {
        let mut table = self.table();
        if table.taken >= self.max_connections {
            return None;
        }
        table.taken += 1;
        drop(table);
        Some(Place { places: self.clone(), opening: None })
    }
}

/// One connection's place, until it is dropped.
pub(crate) struct Place {
    places: Places,
    /// While it has not said hello.
    opening: Option<IpAddr>,
}

impl Place {
    /// Notes whose place it is while it says no hello. False if they have too many of those.
    pub fn belongs_to(&mut self, ip: IpAddr) -> bool {
        let ip = network(ip);
        if self.opening == Some(ip) {
            return true;
        }
        self.opened();
        let mut table = self.places.table();
        let count = table.opening.entry(ip).or_default();
        if *count >= self.places.max_opening {
            return false;
        }
        *count += 1;
        self.opening = Some(ip);
        true
    }

    /// Notes that the connection has said hello.
    pub fn opened(&mut self) {
        let Some(ip) = self.opening.take() else { return };
        let mut table = self.places.table();
        if let Some(count) = table.opening.get_mut(&ip) {
            *count -= 1;
            if *count == 0 {
                table.opening.remove(&ip);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.opened();
        self.places.table().taken -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn one_address_that_says_nothing_leaves_room_for_others() {
        let places = Places::at_most(5, 2);
        let [loud, quiet] = [1, 2].map(|n| IpAddr::from(Ipv4Addr::new(127, 0, 0, n)));
        let silent = [places.take(loud).unwrap(), places.take(loud).unwrap()];
        assert!(places.take(loud).is_none());
        let mut others: Vec<Place> = (0..3)
            .map(|_| {
                let mut place = places.take(quiet).unwrap();
                place.opened();
                place
            })
            .collect();
        assert!(places.take(quiet).is_none(), "all are taken");
        others.pop();
        assert!(places.take(loud).is_none());
        drop(silent);
        assert!(places.take(loud).is_some());
        drop(others);
        assert_eq!(places.table().taken, 0);
        assert!(places.table().opening.is_empty());
    }
}
