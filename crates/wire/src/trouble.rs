//! The bad network in front of real carriers: what a driver sends and receives passes through [`Netem`] first.

use alloc::vec::Vec;

use sametick_sim::Time;

use crate::link::LaneId;
use crate::netem::{self, Netem, Profile};

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As a datagram.
    Datagram,
    /// On a lane.
    Stream(LaneId),
}

/// One direction: datagrams suffer everything, streams only delay.
struct Direction<K: Copy> {
    datagrams: Netem<K>,
    streams: Netem<(K, LaneId)>,
    scratch: Vec<u8>,
}

impl<K: Copy> Direction<K> {
    fn new(profile: Profile, seed: u64) -> Direction<K> {
        Direction {
            datagrams: Netem::new(profile, seed),
            streams: Netem::new(profile.without_loss(), seed.wrapping_add(1)),
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
            Way::Stream(lane) => self.streams.send(now, (key, lane), bytes),
        }
    }

    fn poll(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<(K, Way)> {
        while let Some(key) = self.datagrams.poll(now, buf) {
            // A damaged one is dropped, as the carrier's cipher would.
            if let Some(len) = netem::intact(buf).map(<[u8]>::len) {
                buf.truncate(len);
                return Some((key, Way::Datagram));
            }
        }
        self.streams.poll(now, buf).map(|(key, lane)| (key, Way::Stream(lane)))
    }

    fn next_at(&self) -> Option<Time> {
        self.datagrams.next_delivery().into_iter().chain(self.streams.next_delivery()).min()
    }
}

/// Both directions of any number of links, each with a key.
pub struct Trouble<K: Copy> {
    incoming: Direction<K>,
    outgoing: Direction<K>,
}

impl<K: Copy> Trouble<K> {
    /// A bad network; the same seed does the same to the same bytes.
    pub fn new(profile: Profile, seed: u64) -> Trouble<K> {
        Trouble {
            incoming: Direction::new(profile, seed),
            outgoing: Direction::new(profile, seed.wrapping_add(2)),
        }
    }

    /// What is sent from now on suffers this instead.
    pub fn set_profile(&mut self, profile: Profile) {
        for direction in [&mut self.incoming, &mut self.outgoing] {
            direction.datagrams.set_profile(profile);
            direction.streams.set_profile(profile.without_loss());
        }
    }

    /// Something has come from the carrier.
    pub fn incoming(&mut self, now: Time, key: K, way: Way, bytes: &[u8]) {
        self.incoming.send(now, key, way, bytes);
    }

    /// Something is to go to the carrier.
    pub fn outgoing(&mut self, now: Time, key: K, way: Way, bytes: &[u8]) {
        self.outgoing.send(now, key, way, bytes);
    }

    /// What is to be taken as arrived now.
    pub fn poll_incoming(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<(K, Way)> {
        self.incoming.poll(now, buf)
    }

    /// What is to be sent now.
    pub fn poll_outgoing(&mut self, now: Time, buf: &mut Vec<u8>) -> Option<(K, Way)> {
        self.outgoing.poll(now, buf)
    }

    /// When there is something to poll next.
    pub fn next_at(&self) -> Option<Time> {
        self.incoming.next_at().into_iter().chain(self.outgoing.next_at()).min()
    }
}
