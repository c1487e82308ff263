//! Simulation of a relay, its peers and a bad network in virtual time: tests that all peers of a game agree.
//!
//! ```
//! use sametick_lockstep::pair::Trial;
//! use sametick_pong::{Pong, Setup, autopilot};
//! use sametick_sim::StateHash;
//!
//! let mut trial: Trial<Pong> = Trial::new(7, "rtt=100ms,loss=5%".parse().unwrap());
//! for _ in 0..2 {
//!     trial.join(2, &Setup::default(), |peer, _tick| match (peer.shown(), peer.seat()) {
//!         (Some((_, pong)), Some(seat)) => autopilot(pong, seat),
//!         _ => Default::default(),
//!     });
//! }
//! trial.run_millis(3_000);
//! assert!(trial.agreed() > 10);
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sametick_sim::diff::{Difference, Lines, differences};
use sametick_sim::record::{Leaving, Record, TickInputs};
use sametick_sim::{Game, Inputs, StateHash, Tick, Time, schema_hash_of};
use sametick_wire::netem::Profile;
use sametick_wire::pair::{Pair, Side};
use sametick_wire::{Carrier, Member};

use crate::peer::{self, JoinAs, Peer};
use crate::relay::{self, Relay, RelayConfig, SessionKey};
use crate::rows::row_as_bytes;

/// The number of newest states kept to name the fields in which a player's state differs. For an older tick the log is
/// replayed.
const KEPT_TICKS: u32 = 120;

/// The most differing fields that are named.
const REPORTED: usize = 8;

/// The input of a player in a tick.
pub type Act<G> = Box<dyn FnMut(&Peer<G>, Tick) -> <G as Game>::Input>;

/// A player and its link.
pub struct Player<G: Game> {
    /// Its member id on the relay.
    pub member: Member,
    /// Its peer.
    pub peer: Peer<G>,
    /// Its link, whose side A it is.
    pub pair: Pair,
    /// Whether it has left.
    pub gone: bool,
    act: Act<G>,
    wake_at: Option<Time>,
}

/// The state after a tick, as the first player to confirm that tick had it.
struct Confirmed<G> {
    by: usize,
    hash: StateHash,
    /// The state itself, kept for a while.
    state: Option<G>,
}

/// A relay with one session, its peers and the network between them. One seed, one result.
pub struct Trial<G: Game> {
    /// The virtual time.
    pub now: Time,
    /// The relay.
    pub relay: Relay,
    /// All players who have ever joined.
    pub players: Vec<Player<G>>,
    /// The records that a log would have.
    pub records: Vec<Record>,
    profile: Profile,
    carrier: Carrier,
    extra_sockets: usize,
    seed: u64,
    relay_at: Option<Time>,
    /// The setup of the session.
    setup: Option<G::Setup>,
    /// Each tick that a player has confirmed.
    confirmed: BTreeMap<Tick, Confirmed<G>>,
    agreed: u64,
    buf: Vec<u8>,
}

impl<G: Game> Trial<G> {
    /// A relay without players.
    pub fn new(seed: u64, profile: Profile) -> Trial<G> {
        Trial::with_config(seed, profile, RelayConfig::default())
    }

    /// A relay without players, with this configuration.
    pub fn with_config(seed: u64, profile: Profile, config: RelayConfig) -> Trial<G> {
        Trial {
            now: Time::ZERO,
            relay: Relay::new(config),
            players: Vec::new(),
            records: Vec::new(),
            profile,
            carrier: Carrier::Datagrams,
            extra_sockets: 0,
            seed,
            relay_at: None,
            setup: None,
            confirmed: BTreeMap::new(),
            agreed: 0,
            buf: Vec::new(),
        }
    }

    /// Players who join from now on use this carrier.
    pub fn set_carrier(&mut self, carrier: Carrier) {
        self.carrier = carrier;
    }

    /// Players over WebSocket use this many extra sockets from now on.
    pub fn set_extra_sockets(&mut self, count: usize) {
        self.extra_sockets = count;
        self.players.iter_mut().for_each(|player| player.pair.set_extra_sockets(count));
    }

    fn key() -> SessionKey {
        SessionKey { build: G::BUILD, name: "trial".into() }
    }

    /// A player joins. The first player's setup and number of seats are the session's. Returns the player's index.
    pub fn join(
        &mut self,
        seats: u16,
        setup: &G::Setup,
        act: impl FnMut(&Peer<G>, Tick) -> G::Input + 'static,
    ) -> usize {
        self.setup.get_or_insert_with(|| setup.clone());
        let number = self.players.len() as u64;
        let seed = self.seed.wrapping_mul(1_000).wrapping_add(number);
        let mut pair = Pair::new(self.carrier, self.profile, seed);
        pair.set_extra_sockets(self.extra_sockets);
        pair.run_until(self.now);
        let join = JoinAs {
            name: format!("player {number}"),
            commit: String::new(),
            setup: setup.clone(),
            seed: 0,
            seats,
            wait_for: 1,
            watch: false,
            listed: true,
        };
        let peer = Peer::new(self.now, &join, pair.link(Side::A).stats().into());
        let (member, act) = (Member(number), Box::new(act));
        self.players.push(Player { member, peer, pair, gone: false, act, wake_at: Some(self.now) });
        self.relay.handle(self.now, relay::Input::Opened(member, Self::key(), schema_hash_of::<G>()));
        self.players.len() - 1
    }

    /// A player leaves.
    pub fn leave(&mut self, index: usize) {
        let player = &mut self.players[index];
        player.gone = true;
        self.relay.handle(self.now, relay::Input::Closed(player.member, Leaving::Left));
    }

    /// How often two players confirmed the same tick, and had the same state.
    pub fn agreed(&self) -> u64 {
        self.agreed
    }

    /// Advances the virtual time.
    ///
    /// # Panics
    /// If two players confirm the same tick with different states, or a join is refused. The message about states names
    /// the tick, both players and the first fields that differ.
    pub fn run_millis(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now.plus_micros(1_000);
            for player in self.players.iter_mut().filter(|player| !player.gone) {
                player.pair.run_until(self.now);
                for (channel, bytes) in player.pair.take(Side::B) {
                    self.relay.handle(self.now, relay::Input::Message(player.member, channel, &bytes));
                }
            }
            if self.relay_at.is_some_and(|at| at <= self.now) {
                self.relay.handle(self.now, relay::Input::Timeout);
            }
            self.drain_relay();
            for index in 0..self.players.len() {
                if !self.players[index].gone {
                    self.run_player(index);
                }
            }
        }
    }

    fn drain_relay(&mut self) {
        loop {
            match self.relay.poll_output(&mut self.buf) {
                relay::Output::Send(member, channel) => {
                    let mut there = self.players.iter_mut().filter(|player| !player.gone);
                    if let Some(player) = there.find(|player| player.member == member) {
                        player.pair.send(Side::B, channel, &self.buf);
                    }
                }
                relay::Output::Close(member, why) => panic!("{member:?} is turned down: {why}"),
                relay::Output::Record(_, record) => self.records.push(record),
                relay::Output::Closed(id, tick) => {
                    let rows = self.relay.session(id).and_then(|session| session.rows(tick));
                    let mut inputs = TickInputs::new();
                    inputs.set(tick, rows.into_iter().flatten().map(row_as_bytes));
                    self.records.push(Record::Inputs(inputs));
                }
                relay::Output::WakeAt(at) => {
                    self.relay_at = Some(at);
                    return;
                }
                relay::Output::Wait => return,
                _ => {}
            }
        }
    }

    fn run_player(&mut self, index: usize) {
        let player = &mut self.players[index];
        let before = player.peer.confirmed().map(|(tick, _)| tick);
        player.run(self.now, &mut self.buf);
        let peer = &self.players[index].peer;
        let Some((tick, state)) = peer.confirmed().filter(|(tick, _)| Some(*tick) != before) else {
            return;
        };
        let hash = StateHash::of(state);
        match self.confirmed.get(&tick) {
            Some(first) if first.hash == hash => self.agreed += 1,
            Some(first) => panic!("{}", self.disagreement(tick, first, index, state)),
            None => {
                let newest = self.confirmed.last_key_value().map_or(tick, |(newest, _)| tick.max(*newest));
                let oldest = Tick(newest.0.saturating_sub(KEPT_TICKS));
                let state = (tick >= oldest).then(|| state.clone());
                self.confirmed.insert(tick, Confirmed { by: index, hash, state });
                let old = self.confirmed.range_mut(..oldest).rev().map(|(_, confirmed)| &mut confirmed.state);
                old.take_while(|state| state.is_some()).for_each(|state| *state = None);
            }
        }
    }

    /// The differences of a player's state from that of the first player who confirmed the tick.
    fn disagreement(&self, tick: Tick, first: &Confirmed<G>, index: usize, state: &G) -> String {
        let [before, now] = [first.by, index].map(|player| format!("player {player}"));
        let replayed =
            || self.replayed(tick).map(|replayed| ("the log", differences(&replayed, state, REPORTED)));
        let kept = first.state.as_ref().map(|first| (&before[..], differences(first, state, REPORTED)));
        let found = kept.or_else(replayed).filter(|(_, found)| !found.is_empty());
        let (other, found) = found.unwrap_or_else(|| {
            // The first player is wrong and its state is gone: only the hashes can be shown.
            let [ours, theirs] = [first.hash, StateHash::of(state)].map(|hash| Some(hash.to_string()));
            (&before, Vec::from([Difference { path: String::new(), ours, theirs }]))
        });
        format!(
            "{before} and {now} have different states after tick {tick} ({other} != {now}):{}",
            Lines(&found)
        )
    }

    /// The state after a tick by a replay of the log, if the log goes that far.
    fn replayed(&self, tick: Tick) -> Option<G> {
        let mut state = G::new(self.setup.as_ref()?);
        let (mut inputs, mut last) = (Inputs::new(), Tick::ZERO);
        let ticks = self.records.iter().filter_map(|record| match record {
            Record::Inputs(inputs) => Some(inputs),
            _ => None,
        });
        for closed in ticks.take_while(|closed| closed.tick() <= tick) {
            closed.decode(&mut inputs);
            state.step(&inputs);
            last = closed.tick();
        }
        (last == tick).then_some(state)
    }
}

impl<G: Game> Player<G> {
    fn run(&mut self, now: Time, buf: &mut Vec<u8>) {
        let Player { peer, pair, act, .. } = self;
        for (channel, bytes) in pair.take(Side::A) {
            peer.handle(now, peer::Input::Message(channel, &bytes)).expect("the relay speaks the protocol");
        }
        if self.wake_at.is_some_and(|at| at <= now) {
            let _ = peer.handle(now, peer::Input::Timeout);
        }
        self.wake_at = loop {
            let said = match peer.poll_output(buf) {
                peer::Output::Send(channel) => {
                    pair.send(Side::A, channel, buf);
                    continue;
                }
                peer::Output::WantInput(tick) => peer::Input::Local(act(peer, tick)),
                peer::Output::WantPath => peer::Input::Path(pair.link(Side::A).stats().into()),
                peer::Output::WakeAt(at) => break Some(at),
                peer::Output::Wait => break None,
            };
            let _ = peer.handle(now, said);
        };
    }
}
