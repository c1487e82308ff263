//! Test harness for protocols: two ends of a link on a bad network in virtual time.
//!
//! ```
//! use sametick_wire::{Carrier, Channel, pair::{Pair, Side}};
//!
//! let mut pair = Pair::new(Carrier::Datagrams, "rtt=200ms,loss=30%".parse().unwrap(), 7);
//! pair.send(Side::A, Channel::Chat, b"hello");
//! pair.run_millis(5_000);
//! assert_eq!(pair.take(Side::B), [(Channel::Chat, b"hello".to_vec())]);
//! ```

use alloc::vec::Vec;

use sametick_sim::Time;

use crate::channel::Channel;
use crate::closing::Closed;
use crate::link::{Carrier, Input, LaneId, Link, Output};
use crate::netem::{self, Netem, Profile, Stats};

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one.
    A,
    /// The other.
    B,
}

impl Side {
    const fn index(self) -> usize {
        self as usize
    }

    /// The other end.
    pub const fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

struct End {
    link: Link,
    wake_at: Option<Time>,
    /// Packets from this end to the other.
    packets: Netem,
    lanes: Netem<LaneId>,
    /// Extra sockets, which carry its datagrams in turn.
    extra: Vec<Netem>,
    next_extra: usize,
    seed: u64,
    buf: Vec<u8>,
    received: Vec<(Channel, Vec<u8>)>,
    closed: Option<Closed>,
}

/// Two links and the network between them.
pub struct Pair {
    now: Time,
    ends: [End; 2],
    buf: Vec<u8>,
    /// Whether messages that arrive are kept, or only counted.
    keep: bool,
    arrived: [u64; 2],
}

impl Pair {
    /// Two links of one kind of carrier over a network with the same faults both ways. One seed gives one result.
    pub fn new(carrier: Carrier, profile: Profile, seed: u64) -> Pair {
        let end = |side: u64| End {
            link: Link::new(Time::ZERO, carrier),
            wake_at: Some(Time::ZERO),
            packets: Netem::new(profile, seed.wrapping_mul(4).wrapping_add(side)),
            lanes: Netem::stream(profile, seed.wrapping_mul(4).wrapping_add(2 + side)),
            extra: Vec::new(),
            next_extra: 0,
            seed: seed.wrapping_mul(1_000),
            buf: Vec::new(),
            received: Vec::new(),
            closed: None,
        };
        Pair { now: Time::ZERO, ends: [end(0), end(1)], buf: Vec::new(), keep: true, arrived: [0; 2] }
    }

    /// Gives both ends of a link over one stream this many extra sockets, which carry datagrams in turn; zero removes
    /// them, with everything in flight on them.
    pub fn set_extra_sockets(&mut self, count: usize) {
        for (end, place) in self.ends.iter_mut().zip(0..) {
            let seeds = end.seed.wrapping_add(place).wrapping_mul(16);
            let profile = *end.lanes.profile();
            let sockets = (0..count as u64).map(|socket| Netem::stream(profile, seeds.wrapping_add(socket)));
            end.extra = sockets.collect();
            end.seed = end.seed.wrapping_add(1);
        }
        for side in [Side::A, Side::B] {
            self.handle(side, Input::Datagrams(count > 0));
        }
    }

    /// Counts messages from now on instead of keeping them, so that the harness itself allocates nothing.
    pub fn count_only(&mut self) {
        self.keep = false;
    }

    /// The number of messages that have arrived at an end.
    pub fn arrived(&self, side: Side) -> u64 {
        self.arrived[side.index()]
    }

    /// The virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// One end's link.
    pub fn link(&mut self, side: Side) -> &mut Link {
        &mut self.ends[side.index()].link
    }

    /// Statistics of the network for the datagrams that `side` sent.
    pub fn network(&self, side: Side) -> Stats {
        self.ends[side.index()].packets.stats()
    }

    /// Changes the network from now on, both ways.
    pub fn set_profile(&mut self, profile: Profile) {
        for end in &mut self.ends {
            end.packets.set_profile(profile);
            end.lanes.set_profile(profile);
            end.extra.iter_mut().for_each(|socket| socket.set_profile(profile));
        }
    }

    /// Cuts or restores the network, both ways.
    pub fn set_down(&mut self, down: bool) {
        self.ends.iter_mut().for_each(|end| end.packets.set_down(down));
    }

    /// Sends a message from one end.
    ///
    /// # Panics
    /// If the link refuses it.
    pub fn send(&mut self, side: Side, channel: Channel, message: &[u8]) {
        let now = self.now;
        self.ends[side.index()].link.send(now, channel, message).expect("the link takes the message");
        self.drain(side);
    }

    /// Closes one end.
    pub fn close(&mut self, side: Side, code: u8, text: &str) {
        let now = self.now;
        self.link(side).close(now, code, text);
        self.drain(side);
    }

    /// The messages that have arrived at one end since the last call.
    pub fn take(&mut self, side: Side) -> Vec<(Channel, Vec<u8>)> {
        core::mem::take(&mut self.ends[side.index()].received)
    }

    /// Why one end's link has ended, if it has.
    pub fn closed(&self, side: Side) -> Option<&Closed> {
        self.ends[side.index()].closed.as_ref()
    }

    /// Advances virtual time.
    pub fn run_millis(&mut self, ms: u64) {
        self.run_until(self.now.plus_micros(ms * 1_000));
    }

    /// Advances virtual time up to a moment.
    pub fn run_until(&mut self, until: Time) {
        while let Some(next) = self.next_event().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            for side in [Side::A, Side::B] {
                self.deliver(side);
                if self.ends[side.index()].wake_at.is_some_and(|at| at <= self.now) {
                    self.handle(side, Input::Timeout);
                }
            }
        }
        self.now = until;
    }

    fn next_event(&self) -> Option<Time> {
        let of = |end: &End| {
            let extra = end.extra.iter().filter_map(Netem::next_delivery).min();
            [end.wake_at, end.packets.next_delivery(), end.lanes.next_delivery(), extra]
        };
        self.ends.iter().flat_map(of).flatten().min()
    }

    /// Delivers packets from the other end that have arrived by now to `side`.
    fn deliver(&mut self, side: Side) {
        let from = side.other().index();
        let mut packet = core::mem::take(&mut self.buf);
        while self.ends[from].packets.poll(self.now, &mut packet).is_some() {
            if let Some(intact) = netem::intact(&packet) {
                self.handle(side, Input::Datagram(intact));
            }
        }
        for socket in 0..self.ends[from].extra.len() {
            while self.ends[from].extra[socket].poll(self.now, &mut packet).is_some() {
                self.handle(side, Input::Datagram(&packet));
            }
        }
        while let Some(lane) = self.ends[from].lanes.poll(self.now, &mut packet) {
            self.handle(side, Input::Stream(lane, &packet));
        }
        self.buf = packet;
    }

    fn handle(&mut self, side: Side, input: Input<'_>) {
        let now = self.now;
        // An error also comes out as `Closed`, which is what tests check.
        let _ = self.link(side).handle(now, input);
        self.drain(side);
    }

    fn drain(&mut self, side: Side) {
        let (now, index) = (self.now, side.index());
        let end = &mut self.ends[index];
        let mut buf = core::mem::take(&mut end.buf);
        loop {
            match end.link.poll_output(&mut buf) {
                Output::Datagram if !end.extra.is_empty() => {
                    let socket = end.next_extra % end.extra.len();
                    end.next_extra += 1;
                    end.extra[socket].send(now, (), &buf);
                }
                Output::Datagram => {
                    netem::put_check(&mut buf);
                    end.packets.send(now, (), &buf);
                }
                Output::Stream(lane) => end.lanes.send(now, lane, &buf),
                Output::Message(channel) => {
                    self.arrived[index] += 1;
                    if self.keep {
                        end.received.push((channel, buf.clone()));
                    }
                }
                Output::Closed(closed) => end.closed = Some(closed),
                Output::WakeAt(at) => {
                    end.wake_at = Some(at);
                    break;
                }
                Output::Done => {
                    end.wake_at = None;
                    break;
                }
            }
        }
        end.buf = buf;
    }
}
