//! Clients without a fresh proof of the passphrase get not one byte from UDP or native QUIC.
//!
//! A million packets instead of the usual number:
//! `SAMETICK_SILENCE_PACKETS=1000000 cargo test --release -p sametick-transport --test it silence -- --nocapture`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Instant;

use sametick_sim::Rng;
use sametick_transport::clock::random;
use sametick_transport::dial::{Locator, Scheme};
use sametick_transport::proof_journal::ProofJournal;
use sametick_wire::Channel;
use sametick_wire::access::AccessKey;

use crate::echo::{Client, Server, hello, run_client};
use crate::stranger::{
    Overheard, Stranger, between, fill, flip, hello_of, initial, overhear, sealed_first, seconds_from_now,
    unheard,
};

/// How many packets are sent to each listener, unless told otherwise.
const PACKETS: usize = 100_000;

/// Packets between two checks that the server has read them: as many as its socket's buffer holds.
const VOLLEY: usize = 64;

/// Clients that connect and leave while strangers send packets.
const CLIENTS: usize = 20;

const SILENT: [Scheme; 2] = [Scheme::Udp, Scheme::Quic];

fn key() -> AccessKey {
    AccessKey::from_passphrase("a quiet place")
}

fn packet_count() -> usize {
    std::env::var("SAMETICK_SILENCE_PACKETS")
        .map_or(PACKETS, |count| count.parse().expect("a number of packets"))
}

/// Packets that strangers start from. None of them is valid as it is, except for `unheard`.
struct Stock {
    /// Packets with an unused proof: only ever sent damaged.
    unheard: Vec<Vec<u8>>,
    /// All packets of clients that were admitted.
    used: Vec<Vec<u8>>,
    /// Well-formed packets with a proof from another time, or of nothing.
    wrong: Vec<Vec<u8>>,
}

impl Stock {
    fn new(server: &Locator, key: &AccessKey) -> Stock {
        let overheard: Vec<Overheard> = (0..3).map(|_| overhear(server, key)).collect();
        Stock {
            unheard: (0..32).map(|_| unheard(server.scheme, key)).collect(),
            used: overheard.into_iter().flat_map(|overheard| overheard.packets).collect(),
            wrong: match server.scheme {
                Scheme::Udp => wrong_udp(key),
                _ => wrong_quic(key),
            },
        }
    }
}

fn wrong_udp(key: &AccessKey) -> Vec<Vec<u8>> {
    let stranger = AccessKey::open();
    let mut wrong = vec![];
    for n in 0..8 {
        for off_s in [-100_000, -150, 150, 100_000] {
            wrong.push(sealed_first(key, &hello_of(key, seconds_from_now(off_s), n)));
        }
        // The right passphrase outside, and inside another one, a torn one, nothing.
        let inside = hello_of(&stranger, seconds_from_now(0), n);
        wrong.push(sealed_first(key, &inside));
        wrong.push(sealed_first(key, &inside[..inside.len() / 2]));
        wrong.push(sealed_first(key, &[]));
        wrong.push(sealed_first(&stranger, &inside));
    }
    wrong
}

fn wrong_quic(key: &AccessKey) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(8);
    let mut wrong = vec![];
    for _ in 0..8 {
        let mut nonce = [0; 6];
        for off_s in [-100_000, -150, 150, 100_000] {
            fill(&mut rng, &mut nonce);
            wrong.push(initial(&key.connection_id(seconds_from_now(off_s), nonce), vec![]));
        }
        wrong.push(initial(&AccessKey::open().connection_id(seconds_from_now(0), nonce), vec![]));
        let mut id = [0; 20];
        fill(&mut rng, &mut id);
        wrong.push(initial(&id, vec![]));
        wrong.push(initial(&id, vec![5; 40]));
        wrong.push(initial(&id[..8], id.to_vec()));
    }
    wrong
}

/// Builds a packet that a stranger might send.
fn stranger_packet(rng: &mut Rng, stock: &Stock, scheme: Scheme, packet: &mut Vec<u8>) {
    packet.clear();
    match rng.below(10) {
        0 => {
            packet.resize(rng.below(1_400) as usize, 0);
            fill(rng, packet);
        }
        1 => {
            packet.extend_from_slice(rng.pick(&stock.unheard).unwrap());
            packet.truncate(rng.below(packet.len() as u64) as usize);
        }
        2 | 3 => {
            packet.extend_from_slice(rng.pick(&stock.unheard).unwrap());
            flip_once(rng, packet);
        }
        4 | 5 => packet.extend_from_slice(rng.pick(&stock.used).unwrap()),
        6 => {
            packet.extend_from_slice(rng.pick(&stock.used).unwrap());
            flip(rng, packet);
        }
        7 => packet.extend_from_slice(rng.pick(&stock.wrong).unwrap()),
        // A valid head and a broken rest.
        8 => {
            packet.extend_from_slice(rng.pick(&stock.unheard).unwrap());
            let from = (30 + rng.below(20) as usize).min(packet.len() - 1);
            fill(rng, &mut packet[from..]);
        }
        _ if scheme == Scheme::Quic => quic_bait(rng, stock, packet),
        _ => {
            packet.extend_from_slice(rng.pick(&stock.unheard).unwrap());
            packet.extend_from_slice(&[0; 16][..=rng.below(15) as usize]);
        }
    }
}

/// Flips an odd number of bits, so that the packet differs.
fn flip_once(rng: &mut Rng, packet: &mut [u8]) {
    let bit = rng.below(packet.len() as u64 * 8) as usize;
    packet[bit / 8] ^= 1 << (bit % 8);
}

/// Packets that a QUIC server would answer with a negotiation, a reset or a retry.
fn quic_bait(rng: &mut Rng, stock: &Stock, packet: &mut Vec<u8>) {
    match rng.below(4) {
        0 => {
            packet.extend_from_slice(rng.pick(&stock.unheard).unwrap());
            let version = rng.pick(&[0u32, 2, 0x0a0a_0a0a, 0xff00_001d, 0x6b33_43cf]).unwrap();
            packet[1..5].copy_from_slice(&version.to_be_bytes());
        }
        // A short header with an id that was issued, or that was not.
        kind @ (1 | 2) => {
            packet.resize(40 + rng.below(1_200) as usize, 0);
            fill(rng, packet);
            packet[0] = 0x40 | packet[0] & 0x3f;
            let issued: Vec<&Vec<u8>> = stock.used.iter().filter(|used| used[0] & 0x80 == 0).collect();
            if kind == 1 {
                packet[1..13].copy_from_slice(&rng.pick(&issued).unwrap()[1..13]);
            }
        }
        // 0-RTT, handshake or retry instead of a first packet.
        _ => {
            packet.extend_from_slice(rng.pick(&stock.unheard).unwrap());
            packet[0] = packet[0] & 0xcf | (1 + rng.below(3) as u8) << 4;
        }
    }
}

/// Sends `count` packets from several addresses while clients connect and leave; returns how many of those were
/// admitted.
fn knock(server: &Server, scheme: Scheme, key: &AccessKey, count: usize) -> usize {
    let locator = server.locator(scheme);
    let to = server.addr(scheme);
    let stock = Stock::new(locator, key);
    let mut strangers: Vec<Stranger> = (0..8).map(|_| Stranger::new()).collect();
    let mut rng = Rng::new(count as u64);
    let mut packet = vec![];
    let mut sent = 0;
    let (come, coming) = mpsc::channel();
    let got_in = std::thread::scope(|scope| {
        let clients = scope.spawn(move || coming.into_iter().filter(|()| says_hello(locator, key)).count());
        between(locator, key, |_| {
            for n in 0..VOLLEY.min(count - sent) {
                stranger_packet(&mut rng, &stock, scheme, &mut packet);
                strangers[n % 8].send(to, &packet);
                sent += 1;
                if sent % (count / CLIENTS) == 0 {
                    come.send(()).unwrap();
                }
            }
            strangers.iter_mut().for_each(|stranger| assert_eq!(stranger.listen(), 0, "nothing comes back"));
            sent < count
        });
        drop(come);
        clients.join().unwrap()
    });
    // Once a client has connected and left, every effect of a packet is over.
    assert!(says_hello(locator, key));
    strangers.iter_mut().for_each(|stranger| assert_eq!(stranger.listen(), 0, "nothing comes back"));
    got_in
}

fn says_hello(locator: &Locator, key: &AccessKey) -> bool {
    let client = run_client(locator, key, &hello(), Client::new(vec![(Channel::Chat, b"hello".to_vec())]));
    client.got.len() == 1
}

fn strangers_get_nothing_over(scheme: Scheme) {
    let key = key();
    let server = Server::start(ProofJournal::in_memory(key.clone()));
    let (start, count) = (Instant::now(), packet_count());
    assert_eq!(knock(&server, scheme, &key, count), CLIENTS);
    eprintln!("{scheme:?}: {count} packets, 0 bytes back, {CLIENTS} clients served, {:?}", start.elapsed());
}

#[test]
fn strangers_get_nothing_over_udp() {
    strangers_get_nothing_over(Scheme::Udp);
}

#[test]
fn strangers_get_nothing_over_quic() {
    strangers_get_nothing_over(Scheme::Quic);
}

/// Replays all packets, also damaged, from the client's own address and from others. Answers of a closing connection
/// are not counted; after those there are none.
fn replay(server: &Server, scheme: Scheme, key: &AccessKey, overheard: &mut Overheard) {
    let to = server.addr(scheme);
    let mut other = Stranger::new();
    let mut rng = Rng::new(4);
    let Overheard { packets, way } = overheard;
    let mut quiet_rounds = 0;
    between(server.locator(scheme), key, |round| {
        quiet_rounds = if way.listen() == 0 { quiet_rounds + 1 } else { 0 };
        way.heard = 0;
        assert!(round < 10_000, "{scheme:?}: it never ends");
        for packet in packets.iter() {
            other.send(to, packet);
            way.send(to, packet);
            let mut bait = packet.clone();
            let from = bait.len().min(13);
            fill(&mut rng, &mut bait[from..]);
            bait.resize(bait.len() + 40, 9);
            way.send(to, &bait);
        }
        quiet_rounds < 20
    });
    assert!(says_hello(server.locator(scheme), key));
    assert_eq!((other.listen(), way.listen()), (0, 0), "{scheme:?}");
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let name = format!("sametick-silence-{:016x}", u64::from_le_bytes(random()));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn replayed_packets_get_no_answer_even_after_a_restart() {
    let key = key();
    let folder = Folder::new();
    let proofs = || ProofJournal::open(key.clone(), &folder.0.join("used-proofs")).unwrap();
    let server = Server::start(proofs());
    let mut overheard = SILENT.map(|scheme| overhear(server.locator(scheme), &key));
    for (scheme, overheard) in SILENT.into_iter().zip(&mut overheard) {
        replay(&server, scheme, &key, overheard);
    }
    let at: Vec<SocketAddr> = Scheme::ALL.iter().map(|scheme| server.addr(*scheme)).collect();
    drop(server);
    let server = Server::start_at(proofs(), at.try_into().unwrap());
    for (scheme, overheard) in SILENT.into_iter().zip(&mut overheard) {
        replay(&server, scheme, &key, overheard);
    }
}

#[test]
fn a_new_passphrase_keeps_links_and_refuses_the_old_one() {
    let (old, new) = (key(), AccessKey::from_passphrase("another"));
    for scheme in SILENT {
        let proofs = ProofJournal::in_memory(old.clone());
        let server = Server::start(proofs.clone());
        let locator = server.locator(scheme);
        let mut outside = Stranger::new();
        let first = unheard(scheme, &old);
        between(locator, &old, |round| {
            if round == 1 {
                proofs.set_key(new.clone());
                outside.send(server.addr(scheme), &first);
            }
            if round == 2 {
                assert!(says_hello(locator, &new), "{scheme:?}");
            }
            round < 3
        });
        assert_eq!(outside.listen(), 0, "{scheme:?}");
    }
}
