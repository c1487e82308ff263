//! No allocation per tick in steady state, in relay and peers: counted. Only the relay's history takes a new piece of
//! memory every 300 ticks.

use std::collections::VecDeque;

use postcard_schema::Schema;
use sametick_lockstep::history::SEGMENT_TICKS;
use sametick_lockstep::peer::{self, JoinAs, Peer};
use sametick_lockstep::relay::{self, Relay, RelayConfig, SessionKey};
use sametick_lockstep::session::Member;
use sametick_sim::{BuildId, Game, Inputs, Rng, SchemaHash, TickRate, Time};
use sametick_wire::Channel;
use sametick_wire::pacer::Path;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Plain {
    totals: [u64; 4],
}

impl Game for Plain {
    const NAME: &'static str = "plain";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([4; 16]);
    type Setup = ();
    type Input = u8;

    fn new((): &()) -> Plain {
        Plain { totals: [0; 4] }
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        for row in inputs {
            let total = &mut self.totals[row.seat.index()];
            *total = total.rotate_left(5) ^ u64::from(*row.input_or(&0));
        }
    }
}

/// A network with delay only, which reuses its buffers.
#[derive(Default)]
struct Network {
    under_way: VecDeque<(Time, usize, Channel, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl Network {
    const DELAY_US: u64 = 40_000;

    fn send(&mut self, now: Time, whom: usize, channel: Channel, bytes: &[u8]) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        self.under_way.push_back((now.plus_micros(Network::DELAY_US), whom, channel, copy));
    }

    fn poll(&mut self, now: Time) -> Option<(usize, Channel, Vec<u8>)> {
        if self.under_way.front()?.0 > now {
            return None;
        }
        self.under_way.pop_front().map(|(_, whom, channel, bytes)| (whom, channel, bytes))
    }
}

struct World {
    now: Time,
    relay: Relay,
    peers: Vec<(Peer<Plain>, u8)>,
    up: Network,
    down: Network,
    rng: Rng,
    buf: Vec<u8>,
    /// Allocations of the relay and of the peers.
    allocated: [u64; 2],
}

fn counted<T>(count: &mut u64, work: impl FnOnce() -> T) -> T {
    let mut result = None;
    *count += allocation_counter::measure(|| result = Some(work())).count_total;
    result.unwrap()
}

impl World {
    fn new() -> World {
        let path = Path { rtt_us: 2 * Network::DELAY_US, ..Path::default() };
        let join = JoinAs {
            setup: (),
            seed: 0,
            seats: 4,
            wait_for: 1,
            name: "ada".into(),
            commit: String::new(),
            watch: false,
            listed: false,
        };
        let mut relay = Relay::new(RelayConfig::default());
        let key = SessionKey { build: Plain::BUILD, name: "den".into() };
        for member in 0..4 {
            let schema = SchemaHash::from_bytes([0; SchemaHash::LEN]);
            relay.handle(Time::ZERO, relay::Input::Opened(Member(member), key.clone(), schema));
        }
        World {
            now: Time::ZERO,
            relay,
            peers: (0..4).map(|_| (Peer::new(Time::ZERO, &join, path), 0)).collect(),
            up: Network::default(),
            down: Network::default(),
            rng: Rng::new(1),
            buf: Vec::new(),
            allocated: [0; 2],
        }
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 500 {
            self.now = self.now.plus_micros(2_000);
            self.run_relay();
            (0..self.peers.len()).for_each(|index| self.run_peer(index));
        }
    }

    fn run_relay(&mut self) {
        let World { now, relay, up, down, buf, allocated: [count, _], .. } = self;
        while let Some((from, channel, bytes)) = up.poll(*now) {
            let message = relay::Input::Message(Member(from as u64), channel, &bytes);
            counted(count, || relay.handle(*now, message));
            up.spare.push(bytes);
        }
        counted(count, || relay.handle(*now, relay::Input::Timeout));
        loop {
            match counted(count, || relay.poll_output(buf)) {
                relay::Output::Send(Member(to), channel) => down.send(*now, to as usize, channel, buf),
                relay::Output::Close(member, why) => panic!("{member:?}: {why}"),
                relay::Output::WakeAt(_) | relay::Output::Wait => return,
                _ => {}
            }
        }
    }

    fn run_peer(&mut self, index: usize) {
        let World { now, peers, up, down, rng, buf, allocated: [_, count], .. } = self;
        let (peer, held) = &mut peers[index];
        while down.under_way.front().is_some_and(|(at, whom, ..)| *at <= *now && *whom == index) {
            let (_, channel, bytes) = down.poll(*now).unwrap();
            counted(count, || peer.handle(*now, peer::Input::Message(channel, &bytes))).unwrap();
            down.spare.push(bytes);
        }
        loop {
            let input = match counted(count, || peer.poll_output(buf)) {
                peer::Output::Send(channel) => {
                    up.send(*now, index, channel, buf);
                    continue;
                }
                peer::Output::WantInput(_) => {
                    *held ^= u8::from(rng.chance(1, 12));
                    peer::Input::Local(*held)
                }
                peer::Output::WantPath => {
                    peer::Input::Path(Path { rtt_us: 2 * Network::DELAY_US, ..Path::default() })
                }
                peer::Output::WakeAt(_) | peer::Output::Wait => return,
            };
            counted(count, || peer.handle(*now, input)).unwrap();
        }
    }
}

#[test]
fn no_allocation_per_tick_in_steady_state() {
    let mut world = World::new();
    world.run(30);
    assert!(world.allocated.iter().all(|count| *count > 0), "the counter counts");
    world.allocated = [0; 2];
    let rollbacks = |world: &World| world.peers.iter().map(|(peer, _)| peer.stats().rollbacks).sum::<u64>();
    let before = rollbacks(&world);
    world.run(60);
    let [relay, peers] = world.allocated;
    assert!(rollbacks(&world) - before > 1_000, "guesses were wrong and mended");
    assert_eq!(peers, 0, "allocations of four peers in 3,600 ticks");
    let segments = u64::from(3_600 / SEGMENT_TICKS);
    assert!((1..=segments + 2).contains(&relay), "{relay} allocations of the relay in 3,600 ticks");
}
