//! Three players of arena in a room on a bad network: every state of the host, every update as decoded, and everything
//! shown and predicted, as one hash; and its log.

use alloc::vec::Vec;

use sametick_arena::{Arena, Avatar, Player, Preview, Projectile, Setup, Structure, pilot};
use sametick_room::pair::{self, Trial, Watch};
use sametick_room::{Host, HostConfig, View};
use sametick_sim::replica::{Entity, hosted_schema_of};
use sametick_sim::{Game, StateHash, to_canonical};
use sametick_store::disk::MemDisk;
use sametick_store::log::{Header, LogWriter};

const NETWORK: &str = "rtt=80ms,jitter=15ms,loss=5%,dup=2%,reorder=2%";
const SEATS: u16 = 3;

/// The hash so far.
struct Chain(StateHash);

impl Chain {
    fn add<T: serde::Serialize>(&mut self, what: &T) {
        self.0 = StateHash::of(&(self.0, what));
    }
}

impl Watch<Arena> for Chain {
    fn stepped(&mut self, host: &Host<Arena>) {
        self.add(&(host.tick(), StateHash::of(host.state())));
    }

    fn updated(&mut self, players: &[pair::Player<Arena>], index: usize) {
        let view = &players[index].view;
        let mut codes = Vec::new();
        for table in view.newest().tables() {
            for (row, slots) in table.iter() {
                codes.push(row.id as i32);
                codes.extend_from_slice(slots);
            }
        }
        codes.extend(view.newest_own().map(|own| codes_of(&own)).unwrap_or_default());
        self.add(&(index, view.newest_tick(), codes));
    }

    fn looked(&mut self, player: &mut pair::Player<Arena>, index: usize) {
        let view = &mut player.view;
        let mut codes = Vec::new();
        shown::<Player>(view, &mut codes);
        shown::<Avatar>(view, &mut codes);
        shown::<Structure>(view, &mut codes);
        shown::<Preview>(view, &mut codes);
        shown::<Projectile>(view, &mut codes);
        codes.extend(view.own().map(|own| codes_of(&own)).unwrap_or_default());
        self.add(&(index, codes));
        while let Some(event) = view.poll_event() {
            self.add(&event);
        }
    }
}

fn codes_of<E: Entity>(entity: &E) -> Vec<i32> {
    let mut slots = alloc::vec![0; E::KIND.width()];
    entity.put(&mut slots);
    slots
}

fn shown<E: Entity>(view: &View<Arena>, codes: &mut Vec<i32>) {
    for (id, zone, entity) in view.shown::<E>() {
        codes.extend([id as i32, i32::from(zone)]);
        codes.extend(codes_of(&entity));
    }
}

fn setup(seed: u64) -> Setup {
    Setup { seed, bots: 5, seats: SEATS, ..Setup::default() }
}

fn played(seed: u64, ticks: u32, chain: &mut Chain) -> Trial<Arena> {
    let (network, setup) = (NETWORK.parse().expect("a good profile"), setup(seed));
    let mut trial = Trial::new(seed, network, &setup, HostConfig { seats: SEATS, ..HostConfig::default() });
    for _ in 0..SEATS {
        trial.join(&setup, move |view, tick| {
            view.predicted().map(|(_, own)| pilot(own, view.newest(), tick, seed)).unwrap_or_default()
        });
        trial.run_millis(100, chain);
    }
    while trial.host.tick().0 < ticks {
        trial.run_millis(10, chain);
    }
    trial
}

/// A hash over a room of at most this many ticks, and the statistics of its views.
pub fn room(seed: u64, ticks: u32) -> StateHash {
    let mut chain = Chain(StateHash(seed));
    let trial = played(seed, ticks.min(600), &mut chain);
    for player in &trial.players {
        let stats = player.view.stats();
        assert!(stats.updates > 20, "it is told: {stats:?}");
        chain.add(&(stats.bytes, stats.updates, stats.lost, stats.frozen_us, stats.errors.sum_ms.to_bits()));
    }
    chain.0
}

/// The log of a room of about this many ticks.
pub fn record_room(seed: u64, ticks: u32) -> Vec<u8> {
    let trial = played(seed, ticks, &mut Chain(StateHash(seed)));
    let header = Header {
        build: Arena::BUILD,
        schema: hosted_schema_of::<Arena>(),
        setup: to_canonical(&setup(seed)).expect("a setup serialises"),
        seed,
        rate: Arena::RATE,
        ..Header::new(Arena::NAME, "conformance")
    };
    let mut log = LogWriter::new(MemDisk::new(), &header).expect("a good header");
    for record in &trial.records {
        log.push(record).expect("records come in order, and memory does not fail");
    }
    log.flush().expect("memory does not fail");
    log.disk().bytes().to_vec()
}
