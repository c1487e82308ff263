//! Two links over a bad network: packets, coding and proofs of `wire`, as one hash.

use alloc::vec::Vec;

use sametick_sim::{BuildId, Rng, SchemaHash, StateHash};
use sametick_wire::access::AccessKey;
use sametick_wire::bits::{BitReader, BitWriter};
use sametick_wire::hello::{Hello, Identity, Intent, Stamp};
use sametick_wire::pair::{Pair, Side};
use sametick_wire::quantise::{Quantised, Quaternion};
use sametick_wire::{Carrier, Channel, LinkStats};

const NETWORK: &str = "rtt=80ms,jitter=15ms,loss=10%,dup=5%,reorder=5%,corrupt=1%,rate=2mbit,queue=50kB";

/// A hash over all arrivals, their times, and the measurements of both ends, for each kind of carrier.
pub fn talk(seed: u64, ticks: u32) -> StateHash {
    let carriers = [Carrier::Datagrams, Carrier::DatagramsAndStreams, Carrier::Stream];
    let spoken = carriers.map(|carrier| converse(carrier, seed, ticks.min(600)));
    StateHash::of(&(spoken, first_message(seed), packed(seed)))
}

fn converse(carrier: Carrier, seed: u64, ticks: u32) -> StateHash {
    let mut rng = Rng::new(seed);
    let mut pair = Pair::new(carrier, NETWORK.parse().expect("a good profile"), seed);
    let mut hash = StateHash(seed);
    for _ in 0..ticks {
        for side in [Side::A, Side::B] {
            let channel = Channel::ALL[rng.below(6) as usize];
            let message: Vec<u8> = (0..rng.below(200)).map(|_| rng.next_u64() as u8).collect();
            pair.send(side, channel, &message);
        }
        pair.run_millis(16);
        for side in [Side::A, Side::B] {
            for (channel, message) in pair.take(side) {
                hash = StateHash::of(&(hash, channel.number(), message));
            }
        }
    }
    let stats = [Side::A, Side::B].map(|side| measured(&pair.link(side).stats()));
    StateHash::of(&(hash, stats))
}

fn measured(stats: &LinkStats) -> (Option<u64>, u64, u64, u64, u64) {
    (stats.rtt_us, stats.jitter_us, stats.packets_lost, stats.bytes_sent, stats.bytes_resent)
}

fn first_message(seed: u64) -> StateHash {
    let identity = Identity { build: BuildId::from_bytes([7; 16]), schema: SchemaHash::from_bytes([8; 32]) };
    let intent = Intent::Join { session: "conformance".into() };
    let hello = Hello { identity, intent, name: "ada".into(), pass: None };
    let stamp = Stamp { unix_s: seed, nonce: [9; 16] };
    let key = AccessKey::from_passphrase("the same everywhere");
    let bytes = hello.to_bytes(&key, stamp).expect("short texts");
    StateHash::of(&(bytes, key.connection_id(seed, [1; 6])))
}

/// Floats encoded to bits and back.
fn packed(seed: u64) -> StateHash {
    let (mut rng, mut bytes, mut back) = (Rng::new(seed), Vec::new(), Vec::new());
    let (position, rotation) = (Quantised::with_step(-256.0, 256.0, 0.01), Quaternion::with_bits(9));
    let turn = |rng: &mut Rng| [0; 4].map(|_: i32| rng.unit_f32() * 2.0 - 1.0);
    for _ in 0..200 {
        bytes.clear();
        let mut writer = BitWriter::new(&mut bytes);
        writer.quantised(rng.unit_f32() * 600.0 - 300.0, &position);
        writer.quaternion(turn(&mut rng), &rotation);
        writer.finish();
        let mut reader = BitReader::new(&bytes);
        back.push((reader.quantised(&position).ok(), reader.quaternion(&rotation).ok()));
    }
    StateHash::of(&back)
}
