//! A simulated bad network in front of real carriers: everything that a driver sends and receives passes through
//! [`Netem`].

use alloc::vec::Vec;
use core::array;

use sametick_sim::Time;

use crate::link::{Carrier, EXTRA_SOCKETS, LaneId};
use crate::netem::{self, Netem, Profile};

/// The way of bytes through a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As a datagram.
    Datagram,
    /// As a datagram on one of the extra sockets of a WebSocket link, in turn: late where it would be lost.
    Socket,
    /// On a lane.
    Stream(LaneId),
}

impl Way {
    /// The way of a datagram on a carrier.
    pub fn of_datagram(carrier: Carrier) -> Way {
        if carrier == Carrier::Stream { Way::Socket } else { Way::Datagram }
    }
}

/// One direction: all faults apply to datagrams, streams are only delayed.
struct Direction<K: Copy> {
    datagrams: Netem<K>,
    streams: Netem<(K, LaneId)>,
    sockets: [Netem<K>; EXTRA_SOCKETS],
    next_socket: usize,
    scratch: Vec<u8>,
}

impl<K: Copy> Direction<K> {
    fn new(profile: Profile, seed: u64) -> Direction<K> {
        Direction {
            datagrams: Netem::new(profile, seed),
            streams: Netem::stream(profile, seed.wrapping_add(1)),
            sockets: array::from_fn(|socket| {
                Netem::stream(profile, seed.wrapping_add(16 + 4 * socket as u64))
            }),
            next_socket: 0,
            scratch: Vec::new(),
        }
    }

    fn send(&mut self, now: Time, key: K, way: Way, bytes: &[u8]) {
        match way {
            Way::Datagram => {
                self.scratch.clear();
                self.scratch.extend_from_slice(bytes);
                netem::put_check(&mut self.scratch);
                self.datagrams.send(now, key, &self.scratch);
            }
            Way::Socket => {
                self.next_socket = (self.next_socket + 1) % EXTRA_SOCKETS;
                self.sockets[self.next_socket].send(now, key, bytes);
            }
            Way::Stream(lane) => self.streams.send(now, (key, lane), bytes),
        }
    }

    fn poll(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<(K, Way)> {
        while let Some(key) = self.datagrams.poll(now, buf) {
            // A damaged packet is dropped, as the carrier's cipher would do.
            if let Some(len) = netem::intact(buf).map(<[u8]>::len) {
                buf.truncate(len);
                return Some((key, Way::Datagram));
            }
        }
        if let Some(key) = self.sockets.iter_mut().find_map(|socket| socket.poll(now, buf)) {
            return Some((key, Way::Socket));
        }
        self.streams.poll(now, buf).map(|(key, lane)| (key, Way::Stream(lane)))
    }

    fn next_at(&self) -> Option<Time> {
        let sockets = self.sockets.iter().filter_map(Netem::next_delivery);
        sockets.chain(self.datagrams.next_delivery()).chain(self.streams.next_delivery()).min()
    }
}

/// Both directions of any number of links, each with a key.
pub struct NetemCarrier<K: Copy> {
    incoming: Direction<K>,
    outgoing: Direction<K>,
}

impl<K: Copy> NetemCarrier<K> {
    /// A bad network; the same seed does the same to the same bytes.
    pub fn new(profile: Profile, seed: u64) -> NetemCarrier<K> {
        NetemCarrier {
            incoming: Direction::new(profile, seed),
            outgoing: Direction::new(profile, seed.wrapping_add(2)),
        }
    }

    /// Changes the profile for bytes sent from now on.
    pub fn set_profile(&mut self, profile: Profile) {
        for direction in [&mut self.incoming, &mut self.outgoing] {
            direction.datagrams.set_profile(profile);
            direction.streams.set_profile(profile);
            direction.sockets.iter_mut().for_each(|socket| socket.set_profile(profile));
        }
    }

    /// Passes in bytes from the carrier.
    pub fn incoming(&mut self, now: Time, key: K, way: Way, bytes: &[u8]) {
        self.incoming.send(now, key, way, bytes);
    }

    /// Passes in bytes for the carrier.
    pub fn outgoing(&mut self, now: Time, key: K, way: Way, bytes: &[u8]) {
        self.outgoing.send(now, key, way, bytes);
    }

    /// The next bytes that have arrived from the carrier.
    pub fn poll_incoming(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<(K, Way)> {
        self.incoming.poll(now, buf)
    }

    /// The next bytes to pass to the carrier.
    pub fn poll_outgoing(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<(K, Way)> {
        self.outgoing.poll(now, buf)
    }

    /// When there is something to poll next.
    pub fn next_at(&self) -> Option<Time> {
        self.incoming.next_at().into_iter().chain(self.outgoing.next_at()).min()
    }
}
