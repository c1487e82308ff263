//! Whatever a peer sends on any carrier, a link neither panics nor sends for ever, and ends at most once.
//!
//! The input: the carrier, then steps. A step is a byte (the event and the time before it) and its arguments. All that
//! a link allocates for its peer's bytes and for at most 256 small messages of its own counts against the bound, as do
//! the link's own tables.
#![cfg_attr(fuzzing, no_main)]

use sametick_fuzz::part;
use sametick_sim::Time;
use sametick_wire::packet::{Ack, Head, Newest};
use sametick_wire::{Carrier, Channel, Input, LaneId, Link, Output};

const CARRIERS: [Carrier; 3] = [Carrier::Datagrams, Carrier::DatagramsAndStreams, Carrier::Stream];

/// From nothing to a time-out.
const STEPS_US: [u64; 8] = [0, 0, 100, 5_000, 20_000, 400_000, 1_000_000, 11_000_000];

/// Our own messages use memory too, which is not the peer's doing.
const MAX_OWN_MESSAGES: u32 = 256;

/// The most outputs of one step: as many messages as bytes came so far, and a few packets.
const MAX_OUTPUTS_BESIDE_BYTES: usize = 300;

sametick_fuzz::target!(|bytes: &[u8]| {
    let Some((carrier, mut rest)) = bytes.split_first() else { return };
    let mut end = End::new(CARRIERS[usize::from(*carrier) % 3], bytes.len() + MAX_OUTPUTS_BESIDE_BYTES);
    while let Some((step, after)) = rest.split_first() {
        rest = end.step(*step, after);
        end.drain();
    }
});

struct End {
    link: Link,
    now: Time,
    buf: Vec<u8>,
    max_outputs: usize,
    own_messages: u32,
    /// The number of the next packet with a good head.
    number: u16,
    closed: bool,
}

impl End {
    fn new(carrier: Carrier, max_outputs: usize) -> End {
        let link = Link::new(Time::ZERO, carrier);
        let (now, buf) = (Time::ZERO, Vec::new());
        End { link, now, buf, max_outputs, own_messages: 0, number: 0, closed: false }
    }

    /// Returns the rest of the input.
    fn step<'a>(&mut self, step: u8, rest: &'a [u8]) -> &'a [u8] {
        self.now = self.now.plus_micros(STEPS_US[usize::from(step >> 5)]);
        let (part, after) = part(rest);
        let argument = step >> 3 & 3;
        let result = match step & 7 {
            0 => self.link.handle(self.now, Input::Datagram(part)),
            1 | 2 => self.with_head(argument, part),
            3 | 4 => self.link.handle(self.now, Input::Stream(LaneId(argument), part)),
            5 if self.own_messages < MAX_OWN_MESSAGES => {
                self.own_messages += 1;
                let channel = Channel::ALL[usize::from(argument) * 5 / 3];
                // A refusal is fine: the queue may be full, the link closed.
                let _ = self.link.send(self.now, channel, part);
                Ok(())
            }
            // A carrier of one stream gains and loses its extra sockets.
            6 if argument == 2 => self.link.handle(self.now, Input::Datagrams(part.len() % 2 == 0)),
            6 if argument == 3 => {
                self.link.close(self.now, 1, &String::from_utf8_lossy(part));
                Ok(())
            }
            _ => {
                let _ = self.link.handle(self.now, Input::Timeout);
                return rest;
            }
        };
        // An error comes out as `Closed` as well.
        let _ = result;
        after
    }

    /// Frames after a valid head: the fuzzer need not guess the numbers.
    fn with_head(&mut self, argument: u8, frames: &[u8]) -> Result<(), sametick_wire::Malformed> {
        let newest = self.link.stats().packets_sent.wrapping_sub(1) as u16;
        let newest = if argument == 2 { Newest::Short(newest as u8 & 31) } else { Newest::Long(newest) };
        let delay = (argument != 2).then_some(0);
        let ack = (argument & 1 == 0).then_some(Ack { newest, delay, missing: u64::from(argument) });
        let mut packet = Vec::with_capacity(frames.len() + 16);
        Head { number: self.number, ack }.put(&mut packet);
        packet.extend_from_slice(frames);
        self.number = self.number.wrapping_add(1);
        self.link.handle(self.now, Input::Datagram(&packet))
    }

    fn drain(&mut self) {
        for _ in 0..self.max_outputs {
            let output = self.link.poll_output(&mut self.buf);
            assert!(!self.closed || output == Output::Done, "{output:?} after the end");
            match output {
                Output::Message(channel) => assert!(self.buf.len() <= channel.max_message()),
                Output::Closed(_) => self.closed = true,
                Output::WakeAt(_) | Output::Done => return,
                Output::Datagram | Output::Stream(_) => assert!(!self.buf.is_empty()),
            }
        }
        panic!("the link talks for ever");
    }
}
