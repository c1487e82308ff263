//! Two players of pong and a relay on bad networks: every message of `lockstep` and every confirmed state, as one hash;
//! and its log.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_lockstep::peer::{self, JoinAs, Peer};
use sametick_lockstep::relay::{self, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::row_as_bytes;
use sametick_lockstep::session::{Facts, Member};
use sametick_pong::{Pong, Setup, autopilot};
use sametick_sim::{Game, StateHash, Tick, Time, schema_hash_of};
use sametick_store::disk::MemDisk;
use sametick_store::log::{Header, LogWriter, TickInputs};
use sametick_wire::pacer::Path;
use sametick_wire::pair::{Pair, Side};
use sametick_wire::{Carrier, Channel};

const NETWORK: &str = "rtt=80ms,jitter=15ms,loss=5%,dup=2%,reorder=2%";
const STEP_MS: u64 = 2;

/// Side A of the pair is the player's, side B the relay's.
struct Player {
    pair: Pair,
    peer: Option<Peer<Pong>>,
    confirmed: Tick,
}

struct World {
    relay: Relay,
    players: Vec<Player>,
    now: Time,
    /// The hash over all messages and confirmed states so far.
    chain: StateHash,
    /// Present once the session has started.
    log: Option<LogWriter<MemDisk>>,
    buf: Vec<u8>,
}

/// A hash over every message of a session, every confirmed state, and the statistics of the peers.
pub fn session(seed: u64, ticks: u32) -> StateHash {
    played(seed, ticks.min(1_200)).outcome()
}

/// The log of a session of about this many ticks.
pub fn record(seed: u64, ticks: u32) -> Vec<u8> {
    let mut log = played(seed, ticks).log.expect("the session has begun");
    log.flush().expect("memory does not fail");
    log.disk().bytes().to_vec()
}

fn played(seed: u64, ticks: u32) -> World {
    let mut relay = Relay::new(RelayConfig::default());
    let mut players = Vec::new();
    for number in 0..2 {
        let key = SessionKey { build: Pong::BUILD, name: "conformance".into() };
        relay.handle(Time::ZERO, relay::Input::Opened(Member(number), key, schema_hash_of::<Pong>()));
        let network = NETWORK.parse().expect("a good profile");
        let pair = Pair::new(Carrier::Datagrams, network, seed.wrapping_add(number));
        players.push(Player { pair, peer: None, confirmed: Tick::ZERO });
    }
    let (chain, buf) = (StateHash(seed), Vec::new());
    let mut world = World { relay, players, now: Time::ZERO, chain, log: None, buf };
    // First the links measure their path, then players join one after the other.
    let end_us = 1_000_000 + u64::from(ticks) * Pong::RATE.tick_micros();
    while world.now.as_micros() < end_us {
        world.step(seed);
    }
    world
}

/// Without the start time, which is the machine's.
fn header_of(facts: &Facts) -> Header {
    Header {
        build: facts.build,
        commit: facts.commit.clone(),
        schema: facts.schema,
        setup: facts.setup.clone(),
        seed: facts.seed,
        rate: facts.rate,
        ..Header::new(facts.game.clone(), facts.name.clone())
    }
}

impl World {
    fn step(&mut self, seed: u64) {
        self.now = self.now.plus_micros(STEP_MS * 1_000);
        for number in 0..self.players.len() {
            self.players[number].pair.run_until(self.now);
            if self.players[number].peer.is_none() && self.now.as_micros() > 100_000 * (1 + number as u64) {
                self.join(number, seed);
            }
            self.run_player(number);
        }
        self.run_relay();
    }

    fn join(&mut self, number: usize, seed: u64) {
        let setup = Setup { seed, ..Setup::default() };
        let (name, commit) = (String::from("ada"), String::new());
        let join = JoinAs { setup, seed, seats: 2, wait_for: 1, name, commit, watch: false, listed: false };
        let path: Path = self.players[number].pair.link(Side::A).stats().into();
        self.players[number].peer = Some(Peer::new(self.now, &join, path));
    }

    fn note(&mut self, from: u8, channel: Channel) {
        self.chain = StateHash::of(&(self.chain, self.now.as_micros(), from, channel.number(), &self.buf));
    }

    fn run_player(&mut self, number: usize) {
        let heard = self.players[number].pair.take(Side::A);
        let Some(mut peer) = self.players[number].peer.take() else { return };
        for (channel, message) in heard {
            peer.handle(self.now, peer::Input::Message(channel, &message)).expect("the relay's own messages");
            self.note_confirmed(number, &peer);
        }
        peer.handle(self.now, peer::Input::Timeout).expect("time passes");
        loop {
            let input = match peer.poll_output(&mut self.buf) {
                peer::Output::Send(channel) => {
                    self.note(number as u8, channel);
                    self.players[number].pair.send(Side::A, channel, &self.buf);
                    continue;
                }
                peer::Output::WantInput(_) => {
                    let played = peer.shown().zip(peer.seat());
                    let input = played.map(|((_, pong), seat)| autopilot(pong, seat)).unwrap_or_default();
                    peer::Input::Local(input)
                }
                peer::Output::WantPath => {
                    peer::Input::Path(self.players[number].pair.link(Side::A).stats().into())
                }
                peer::Output::WakeAt(_) | peer::Output::Wait => break,
            };
            peer.handle(self.now, input).expect("own input");
        }
        self.players[number].peer = Some(peer);
    }

    fn note_confirmed(&mut self, number: usize, peer: &Peer<Pong>) {
        let Some((tick, state)) = peer.confirmed() else { return };
        if core::mem::replace(&mut self.players[number].confirmed, tick) != tick {
            self.chain = StateHash::of(&(self.chain, tick, StateHash::of(state)));
        }
    }

    fn run_relay(&mut self) {
        for number in 0..self.players.len() {
            for (channel, message) in self.players[number].pair.take(Side::B) {
                let member = Member(number as u64);
                self.relay.handle(self.now, relay::Input::Message(member, channel, &message));
            }
        }
        self.relay.handle(self.now, relay::Input::Timeout);
        loop {
            match self.relay.poll_output(&mut self.buf) {
                relay::Output::Send(Member(to), channel) => {
                    self.note(16 + to as u8, channel);
                    self.players[to as usize].pair.send(Side::B, channel, &self.buf);
                }
                relay::Output::WakeAt(_) | relay::Output::Wait => return,
                relay::Output::Close(member, why) => panic!("{member:?}: {why}"),
                output => self.keep(output),
            }
        }
    }

    /// Writes an output to the log, if it belongs there.
    fn keep(&mut self, output: relay::Output) {
        let pushed = match (output, &mut self.log) {
            (relay::Output::Begun(id), log) => {
                let session = self.relay.session(id).expect("it has begun");
                let header = header_of(session.facts());
                *log = Some(LogWriter::new(MemDisk::new(), &header).expect("a good header"));
                return;
            }
            (relay::Output::Record(_, record), Some(log)) => log.push(&record),
            (relay::Output::Closed(id, tick), Some(log)) => {
                let rows =
                    self.relay.session(id).and_then(|session| session.rows(tick)).expect("just closed");
                let mut inputs = TickInputs::new();
                inputs.set(tick, rows.iter().map(row_as_bytes));
                log.push_inputs(&inputs)
            }
            _ => return,
        };
        pushed.expect("records come in order, and memory does not fail");
    }

    fn outcome(&self) -> StateHash {
        let counted = |player: &Player| {
            let stats = player.peer.as_ref().map(Peer::stats).unwrap_or_default();
            (player.confirmed, stats.rollbacks, stats.resimulated, stats.omissions, stats.resyncs)
        };
        let counted: Vec<_> = self.players.iter().map(counted).collect();
        assert!(counted.iter().all(|(tick, ..)| *tick > Tick(1)), "both play: {counted:?}");
        StateHash::of(&(self.chain, counted))
    }
}
