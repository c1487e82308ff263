//! Connection limits of a listener, in total and per address, so that no address uses up all connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::files::most_connections;
use crate::rate_limit::network;

/// The most connections of one listener, where so many files may be open.
const MAX_CONNECTIONS: usize = 10_000;

/// The most connections of one address, for IPv6 of one network, before and after the hello.
pub const MAX_EACH: usize = 512;

/// The connection slots of one listener.
#[derive(Clone)]
pub struct ConnectionSlots {
    table: Arc<Mutex<Table>>,
    max_connections: usize,
    max_each: usize,
}

#[derive(Default)]
struct Table {
    taken: usize,
    of_address: HashMap<IpAddr, usize>,
}

impl Default for ConnectionSlots {
    fn default() -> ConnectionSlots {
        ConnectionSlots::of_each(MAX_EACH)
    }
}

impl ConnectionSlots {
    /// Slots with this limit per address.
    pub fn of_each(max_each: usize) -> ConnectionSlots {
        ConnectionSlots::at_most(MAX_CONNECTIONS.min(most_connections()), max_each)
    }

    /// Slots with both limits given.
    pub(crate) fn at_most(max_connections: usize, max_each: usize) -> ConnectionSlots {
        ConnectionSlots { table: Arc::default(), max_connections, max_each }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot for this address, unless all are taken.
    pub(crate) fn take(&self, ip: IpAddr) -> Option<ConnectionSlot> {
        let mut place = self.take_any()?;
        place.belongs_to(ip).then_some(place)
    }

    /// Takes a slot for a connection whose address is not known yet.
    pub(crate) fn take_any(&self) -> Option<ConnectionSlot> {
        let mut table = self.table();
        if table.taken >= self.max_connections {
            return None;
        }
        table.taken += 1;
        drop(table);
        Some(ConnectionSlot { places: self.clone(), of: None })
    }
}

/// The slot of one connection; dropping it frees it.
pub(crate) struct ConnectionSlot {
    places: ConnectionSlots,
    of: Option<IpAddr>,
}

impl ConnectionSlot {
    /// Assigns the slot to an address. False if the address has too many.
    pub fn belongs_to(&mut self, ip: IpAddr) -> bool {
        let ip = network(ip);
        if self.of == Some(ip) {
            return true;
        }
        self.is_nobodys();
        let mut table = self.places.table();
        let count = table.of_address.entry(ip).or_default();
        if *count >= self.places.max_each {
            return false;
        }
        *count += 1;
        self.of = Some(ip);
        true
    }

    /// Whether at most half of all slots, and half of those of its address, are taken: then there is room for optional
    /// connections.
    pub fn leaves_room(&self) -> bool {
        let table = self.places.table();
        let of_address = self.of.and_then(|ip| table.of_address.get(&ip)).copied().unwrap_or(0);
        2 * table.taken <= self.places.max_connections && 2 * of_address <= self.places.max_each
    }

    fn is_nobodys(&mut self) {
        let Some(ip) = self.of.take() else { return };
        let mut table = self.places.table();
        if let Some(count) = table.of_address.get_mut(&ip) {
            *count -= 1;
            if *count == 0 {
                table.of_address.remove(&ip);
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.is_nobodys();
        self.places.table().taken -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn one_address_leaves_room_for_others() {
        let places = ConnectionSlots::at_most(5, 2);
        let [loud, quiet, other] = [1, 2, 3].map(|n| IpAddr::from(Ipv4Addr::new(127, 0, 0, n)));
        let of_loud = [places.take(loud).unwrap(), places.take(loud).unwrap()];
        assert!(places.take(loud).is_none());
        let mut others: Vec<ConnectionSlot> = [quiet, quiet, other].map(|ip| places.take(ip).unwrap()).into();
        assert!(places.take(other).is_none(), "all are taken");
        others.pop();
        assert!(places.take(loud).is_none());
        drop(of_loud);
        assert!(places.take(loud).is_some());
        drop(others);
        assert_eq!(places.table().taken, 0);
        assert!(places.table().of_address.is_empty());
    }

    #[test]
    fn there_is_room_while_half_of_the_slots_are_free() {
        let places = ConnectionSlots::at_most(8, 6);
        let [one, other] = [1, 2].map(|n| IpAddr::from(Ipv4Addr::new(192, 0, 2, n)));
        let mut taken: Vec<ConnectionSlot> = (0..3).map(|_| places.take(one).unwrap()).collect();
        assert!(taken.iter().all(ConnectionSlot::leaves_room));
        taken.push(places.take(one).unwrap());
        let of_other = places.take(other).unwrap();
        assert!(!taken[0].leaves_room(), "of its address");
        assert!(!of_other.leaves_room(), "of all");
        taken.pop();
        assert!(taken[0].leaves_room() && of_other.leaves_room());
    }

    #[test]
    fn behind_a_proxy_a_slot_belongs_to_the_last_named_address() {
        let places = ConnectionSlots::at_most(5, 1);
        let [one, other] = [1, 2].map(|n| IpAddr::from(Ipv4Addr::new(192, 0, 2, n)));
        let mut place = places.take_any().unwrap();
        assert!(place.belongs_to(one) && place.belongs_to(one));
        assert!(places.take(one).is_none());
        assert!(place.belongs_to(other) && places.take(one).is_some());
    }
}
