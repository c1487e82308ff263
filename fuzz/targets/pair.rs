//! Two links whose packets are dropped, repeated, delayed, reordered and cut, as the input says: messages arrive
//! unchanged and in order, and neither link panics or sends for ever.
//!
//! The input: the carrier, then steps of one or two bytes. The bound on memory holds for both links together, what they
//! queue, and the packets between them, since all of these are limited here.
#![cfg_attr(fuzzing, no_main)]

use std::collections::VecDeque;

use sametick_sim::Time;
use sametick_wire::{Carrier, Channel, Closed, Delivery, Input, LaneId, Link, Output};

const CARRIERS: [Carrier; 3] = [Carrier::Datagrams, Carrier::DatagramsAndStreams, Carrier::Stream];
const STEPS_US: [u64; 8] = [0, 100, 1_000, 5_000, 20_000, 100_000, 400_000, 3_000_000];
const LANES: usize = 4;

/// Packets in flight in one direction; more are lost.
const MAX_FLYING: usize = 6;
/// The most bytes that both links together send.
const MAX_SENT_BYTES: usize = 6_000;
const MAX_STEPS: usize = 500;
const MAX_OUTPUTS: usize = 1_000;

sametick_fuzz::target!(|bytes: &[u8]| {
    let Some((carrier, rest)) = bytes.split_first() else { return };
    let mut pair = Pair::new(CARRIERS[usize::from(*carrier) % 3]);
    let mut rest = rest.iter().copied();
    for _ in 0..MAX_STEPS {
        let Some(step) = rest.next() else { break };
        pair.step(step, &mut rest);
    }
});

struct End {
    link: Link,
    /// Its sent packets that have not arrived yet.
    packets: VecDeque<Vec<u8>>,
    lanes: [VecDeque<u8>; LANES],
    /// How many messages it has sent on each channel, and the next expected number from the other side.
    sent: [u16; 6],
    next: [u16; 6],
}

struct Pair {
    now: Time,
    ends: [End; 2],
    buf: Vec<u8>,
    sent_bytes: usize,
    /// Whether a datagram was cut, which no carrier does. If it happens all the same, a link may end, and an input that
    /// was the last in it is cut short.
    cut: bool,
}

impl Pair {
    fn new(carrier: Carrier) -> Pair {
        let end = || End {
            link: Link::new(Time::ZERO, carrier),
            packets: VecDeque::new(),
            lanes: Default::default(),
            sent: [0; 6],
            next: [0; 6],
        };
        let mut pair =
            Pair { now: Time::ZERO, ends: [end(), end()], buf: Vec::new(), sent_bytes: 0, cut: false };
        pair.drain(0);
        pair.drain(1);
        pair
    }

    fn step(&mut self, step: u8, rest: &mut impl Iterator<Item = u8>) {
        let (to, argument) = (usize::from(step & 1), usize::from(step >> 4));
        match step >> 1 & 7 {
            // A packet arrives, not always the first.
            0 | 1 => self.deliver(to, argument),
            // It arrives, and will arrive again.
            2 => {
                let packets = &mut self.ends[1 - to].packets;
                if let Some(packet) = packets.get(argument).filter(|_| packets.len() < MAX_FLYING).cloned() {
                    packets.push_front(packet);
                    self.deliver(to, 0);
                }
            }
            // It is lost, or cut short.
            3 => match self.ends[1 - to].packets.get_mut(argument >> 1) {
                Some(packet) if argument & 1 == 1 => {
                    packet.truncate(usize::from(rest.next().unwrap_or(0)));
                    self.cut = true;
                }
                _ => drop(self.ends[1 - to].packets.remove(argument >> 1)),
            },
            // The next bytes of a lane arrive.
            4 => self.deliver_lane(to, argument % LANES, usize::from(rest.next().unwrap_or(255)) * 16),
            5 => self.send(to, argument % 6, usize::from(rest.next().unwrap_or(0)) * 5),
            6 if argument == 15 => {
                self.ends[to].link.close(self.now, 3, "enough");
                self.drain(to);
            }
            _ => {
                self.now = self.now.plus_micros(STEPS_US[argument % 8]);
                self.handle(to, Input::Timeout);
            }
        }
    }

    fn deliver(&mut self, to: usize, which: usize) {
        if let Some(packet) = self.ends[1 - to].packets.remove(which) {
            self.handle(to, Input::Datagram(&packet));
        }
    }

    fn deliver_lane(&mut self, to: usize, lane: usize, len: usize) {
        let flying = &mut self.ends[1 - to].lanes[lane];
        let bytes: Vec<u8> = flying.drain(..len.min(flying.len())).collect();
        if !bytes.is_empty() {
            self.handle(to, Input::Stream(LaneId(lane as u8), &bytes));
        }
    }

    /// Sends a message that carries its number and is otherwise made from it.
    fn send(&mut self, from: usize, channel: usize, len: usize) {
        let end = &mut self.ends[from];
        let message = message(end.sent[channel], len.min(300));
        if self.sent_bytes + message.len() > MAX_SENT_BYTES {
            return;
        }
        if end.link.send(self.now, Channel::ALL[channel], &message).is_ok() {
            self.sent_bytes += message.len();
            end.sent[channel] += 1;
        }
        self.drain(from);
    }

    fn handle(&mut self, to: usize, input: Input<'_>) {
        let result = self.ends[to].link.handle(self.now, input);
        assert!(result.is_ok() || self.cut, "{result:?} from a link that keeps to the protocol");
        self.drain(to);
    }

    fn drain(&mut self, at: usize) {
        for _ in 0..MAX_OUTPUTS {
            match self.ends[at].link.poll_output(&mut self.buf) {
                Output::Datagram => {
                    let packets = &mut self.ends[at].packets;
                    if packets.len() < MAX_FLYING {
                        packets.push_back(self.buf.as_slice().into());
                    }
                }
                Output::Stream(lane) => self.ends[at].lanes[usize::from(lane.0)].extend(&self.buf),
                Output::Message(channel) => self.check(at, channel),
                Output::Closed(closed) => assert!(self.cut || !matches!(closed, Closed::Violation(_))),
                Output::WakeAt(_) | Output::Done => return,
            }
        }
        panic!("the link talks for ever");
    }

    /// Checks that an arrived message keeps the promise of its channel.
    fn check(&mut self, at: usize, channel: Channel) {
        if self.cut && channel == Channel::Input {
            return;
        }
        let place = usize::from(channel.number());
        let sent = self.ends[1 - at].sent[place];
        let next = &mut self.ends[at].next[place];
        let number = u16::from_le_bytes(*self.buf.first_chunk().expect("a number in front"));
        assert_eq!(self.buf, message(number, self.buf.len() - 2), "{channel:?} damaged");
        assert!(number < sent, "{channel:?} from nowhere");
        match channel.delivery() {
            Delivery::Ordered => assert_eq!(number, *next, "{channel:?} out of order"),
            Delivery::Redundant | Delivery::Newest => assert!(number >= *next, "{channel:?} went back"),
        }
        *next = number + 1;
    }
}

fn message(number: u16, len: usize) -> Vec<u8> {
    let mut message = number.to_le_bytes().to_vec();
    message.resize(2 + len, number as u8);
    message
}
