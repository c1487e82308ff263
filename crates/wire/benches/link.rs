//! The cost of one end of a link: a tick of a 60 Hz game, bulk, frames compared with plain copying, and the handshake.
//! Both ends run on one thread without a network, so a figure covers sending and receiving.
//!
//! `cargo bench -p sametick-wire --bench link`

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use sametick_sim::{BuildId, SchemaHash, Time};
use sametick_wire::access::{AccessKey, Source};
use sametick_wire::codec::Reader;
use sametick_wire::frame::{Frame, put_message};
use sametick_wire::hello::{Hello, HelloOutcome, HelloVerifier, Identity, Intent, Stamp};
use sametick_wire::{Carrier, Channel, Input, LaneId, Link, Output};

fn main() {
    divan::main();
}

const CARRIERS: [Carrier; 3] = [Carrier::Datagrams, Carrier::DatagramsAndStreams, Carrier::Stream];
const TICK_US: u64 = 1_000_000 / 60;
const NOW_S: u64 = 1_800_000_000;

/// Packets in transit to one end.
#[derive(Default)]
struct Wire {
    bytes: Vec<u8>,
    parts: Vec<(Option<LaneId>, usize)>,
}

impl Wire {
    fn push(&mut self, lane: Option<LaneId>, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.parts.push((lane, bytes.len()));
    }
}

/// Two ends with nothing between them.
struct Ends {
    now: Time,
    links: [Link; 2],
    wires: [Wire; 2],
    spare: Wire,
    buf: Vec<u8>,
    packets: u64,
    messages: u64,
}

impl Ends {
    fn new(carrier: Carrier) -> Ends {
        let link = || Link::new(Time::ZERO, carrier);
        let mut ends = Ends {
            now: Time::ZERO,
            links: [link(), link()],
            wires: Default::default(),
            spare: Wire::default(),
            buf: Vec::new(),
            packets: 0,
            messages: 0,
        };
        ends.settle();
        ends
    }

    fn send(&mut self, end: usize, channel: Channel, message: &[u8]) {
        self.links[end].send(self.now, channel, message).expect("the link takes it");
    }

    /// Collects the outputs of `end`. Returns when it wants to be woken.
    fn drain(&mut self, end: usize) -> Time {
        loop {
            match self.links[end].poll_output(&mut self.buf) {
                Output::Datagram => self.wires[1 - end].push(None, &self.buf),
                Output::Stream(lane) => self.wires[1 - end].push(Some(lane), &self.buf),
                Output::Message(_) => self.messages += 1,
                Output::WakeAt(at) => return at,
                other => panic!("{other:?}"),
            }
        }
    }

    fn deliver(&mut self, end: usize) {
        let mut wire = std::mem::replace(&mut self.wires[end], std::mem::take(&mut self.spare));
        let mut rest = &wire.bytes[..];
        for (lane, len) in wire.parts.drain(..) {
            let (part, tail) = rest.split_at(len);
            rest = tail;
            self.packets += 1;
            let input = lane.map_or(Input::Datagram(part), |lane| Input::Stream(lane, part));
            self.links[end].handle(self.now, input).expect("both ends keep to the protocol");
        }
        wire.bytes.clear();
        self.spare = wire;
    }

    /// Delivers everything in transit. Returns when something is due next.
    fn settle(&mut self) -> Time {
        loop {
            let wake_at = self.drain(0).min(self.drain(1));
            if self.wires.iter().all(|wire| wire.parts.is_empty()) {
                return wake_at;
            }
            self.deliver(0);
            self.deliver(1);
        }
    }

    /// Delivers the packets that both ends send in a tick, after half a tick.
    fn tick(&mut self, channel: Channel, message: &[u8]) {
        for end in [0, 1] {
            self.send(end, channel, message);
            self.drain(end);
        }
        self.now = self.now.plus_micros(TICK_US / 2);
        self.deliver(0);
        self.deliver(1);
        self.drain(0);
        self.drain(1);
        self.now = self.now.plus_micros(TICK_US / 2);
    }

    fn wake(&mut self, at: Time) {
        self.now = self.now.max(at);
        self.links.iter_mut().for_each(|link| link.handle(self.now, Input::Timeout).expect("time passes"));
    }
}

const TICKS: u64 = 600;

/// One item is one message with its packet: queued, sent, received and handed out.
fn bench_ticks(bencher: Bencher<'_, '_>, carrier: Carrier, channel: Channel, message: &[u8]) {
    let mut ends = Ends::new(carrier);
    bencher.counter(ItemsCount::new(2 * TICKS)).bench_local(|| {
        (0..TICKS).for_each(|_| ends.tick(channel, message));
        black_box(ends.messages)
    });
    assert!(
        ends.messages > 0 && ends.packets * 10 < ends.messages * 11,
        "one packet a message, with few more"
    );
}

#[divan::bench(args = CARRIERS)]
fn input_8_bytes(bencher: Bencher<'_, '_>, carrier: Carrier) {
    bench_ticks(bencher, carrier, Channel::Input, &[7; 8]);
}

#[divan::bench(args = CARRIERS)]
fn state_200_bytes(bencher: Bencher<'_, '_>, carrier: Carrier) {
    bench_ticks(bencher, carrier, Channel::State, &[7; 200]);
}

/// Twenty small messages that share a packet: the cost of a message beside its packet.
#[divan::bench(args = CARRIERS)]
fn state_20_a_packet(bencher: Bencher<'_, '_>, carrier: Carrier) {
    let mut ends = Ends::new(carrier);
    bencher.counter(ItemsCount::new(20 * TICKS)).bench_local(|| {
        for _ in 0..TICKS {
            (0..19).for_each(|_| ends.send(0, Channel::State, &[7; 40]));
            ends.tick(Channel::State, &[7; 40]);
        }
        black_box(ends.messages)
    });
}

const BULK: usize = 4 << 20;

/// A long message from end to end, with all acks and time as fast as the pace allows.
#[divan::bench(args = CARRIERS)]
fn bulk(bencher: Bencher<'_, '_>, carrier: Carrier) {
    let message = vec![7; BULK];
    let mut ends = Ends::new(carrier);
    bencher.counter(BytesCount::new(BULK)).bench_local(|| {
        let before = ends.messages;
        ends.send(0, Channel::Chunks, &message);
        while ends.messages == before {
            let wake_at = ends.settle();
            ends.wake(wake_at);
        }
    });
}

/// A packet's worth of frames, next to copying the same bytes.
mod frames {
    use super::*;

    const COUNT: usize = 20;
    const LEN: usize = 50;

    fn packet() -> Vec<u8> {
        let mut out = Vec::new();
        (0..COUNT).for_each(|_| put_message(&mut out, Channel::State, &[7; LEN]));
        out
    }

    #[divan::bench]
    fn reference_memcpy(bencher: Bencher<'_, '_>) {
        let (packet, mut out) = (packet(), Vec::new());
        bencher.counter(BytesCount::new(packet.len())).bench_local(|| {
            out.clear();
            out.extend_from_slice(black_box(&packet));
            black_box(out.len())
        });
    }

    #[divan::bench]
    fn reference_memcpy_in_parts(bencher: Bencher<'_, '_>) {
        let (packet, mut out) = (packet(), Vec::new());
        bencher.counter(BytesCount::new(packet.len())).bench_local(|| {
            out.clear();
            black_box(&packet).chunks(LEN + 2).for_each(|part| out.extend_from_slice(part));
            black_box(out.len())
        });
    }

    #[divan::bench]
    fn encode(bencher: Bencher<'_, '_>) {
        let (message, mut out) = ([7; LEN], Vec::new());
        bencher.counter(BytesCount::new(packet().len())).bench_local(|| {
            out.clear();
            (0..COUNT).for_each(|_| put_message(&mut out, Channel::State, black_box(&message)));
            black_box(out.len())
        });
    }

    #[divan::bench]
    fn decode(bencher: Bencher<'_, '_>) {
        let packet = packet();
        bencher.counter(BytesCount::new(packet.len())).bench_local(|| {
            let mut reader = Reader::new(black_box(&packet));
            while !reader.is_empty() {
                black_box(Frame::read(&mut reader).expect("frames"));
            }
        });
    }
}

/// The cost of a first packet, with and without a valid proof. One item is one packet.
mod door {
    use super::*;

    const SOURCE: Source = Source::proven(core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST));

    fn stamp(number: u64) -> Stamp {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        Stamp { unix_s: NOW_S, nonce }
    }

    fn hello() -> Hello {
        let identity =
            Identity { build: BuildId::from_bytes([1; 16]), schema: SchemaHash::from_bytes([2; 32]) };
        Hello { identity, intent: Intent::Join { session: "den".into() }, name: "ada".into(), pass: None }
    }

    fn door() -> HelloVerifier {
        HelloVerifier::new(AccessKey::open())
    }

    #[divan::bench]
    fn hello_made(bencher: Bencher<'_, '_>) {
        let (hello, key) = (hello(), AccessKey::open());
        let mut number = 0;
        bencher.counter(ItemsCount::new(1u8)).bench_local(|| {
            number += 1;
            hello.to_bytes(&key, stamp(number))
        });
    }

    /// The proof is valid and is spent; includes remembering it and forgetting stale ones.
    #[divan::bench]
    fn hello_proven(bencher: Bencher<'_, '_>) {
        let (hello, key, mut door) = (hello(), AccessKey::open(), door());
        let mut number = 0;
        let bytes = || {
            number += 1;
            // A hundred players a second, so that the memory of proofs stays at its usual size.
            let at = Stamp { unix_s: NOW_S + number / 100, ..stamp(number) };
            let source = Source::proven(core::net::Ipv4Addr::from_bits(number as u32).into());
            (at.unix_s, source, hello.to_bytes(&key, at).expect("short texts"))
        };
        let inputs = bencher.counter(ItemsCount::new(1u8)).with_inputs(bytes);
        inputs.bench_local_values(|(unix_s, source, bytes)| {
            let knock = door.knock(unix_s, source, &bytes);
            assert!(matches!(knock, HelloOutcome::Proven(_)), "{knock:?}");
        });
    }

    /// Valid in form, invalid in its keyed hash: the greatest cost that a client without the passphrase can cause.
    #[divan::bench]
    fn hello_without_proof(bencher: Bencher<'_, '_>) {
        let mut bytes = hello().to_bytes(&AccessKey::open(), stamp(1)).expect("short texts");
        *bytes.last_mut().expect("a body") ^= 1;
        let mut door = door();
        bencher.counter(ItemsCount::new(1u8)).bench_local(|| door.knock(NOW_S, SOURCE, black_box(&bytes)));
    }

    #[divan::bench]
    fn connection_id_without_proof(bencher: Bencher<'_, '_>) {
        let (mut door, id) = (door(), [7; 20]);
        bencher
            .counter(ItemsCount::new(1u8))
            .bench_local(|| door.check_connection_id(NOW_S, SOURCE, black_box(&id)));
    }

    #[divan::bench]
    fn connection_id_checked(bencher: Bencher<'_, '_>) {
        let key = AccessKey::open();
        let id = key.connection_id(NOW_S, [1; 6]);
        bencher.counter(ItemsCount::new(1u8)).bench_local(|| key.check_connection_id(NOW_S, black_box(&id)));
    }
}
