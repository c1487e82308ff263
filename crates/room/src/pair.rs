//! Test harness for rooms: a host, views and a simulated bad network between them, in virtual time.
//!
//! ```
//! # #[path = "../tests/it/field.rs"] #[allow(dead_code)] mod field;
//! # use field::{Field, Setup, Step};
//! use sametick_room::{HostConfig, pair::Trial};
//!
//! let mut trial: Trial<Field> = Trial::new(7, "rtt=100ms,loss=5%".parse().unwrap(), &Setup::default(), HostConfig::default());
//! let ada = trial.join(&Setup::default(), |_, _| Step { dx: 1, ..Step::default() });
//! trial.run_millis(2_000, &mut ());
//! assert_eq!(trial.players[ada].view.seat().map(|seat| seat.0), Some(0));
//! ```

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::diff::{Lines, differences};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::replica::Hosted;
use sametick_sim::{Inputs, StateHash, Tick, Time};
use sametick_wire::netem::Profile;
use sametick_wire::pacer::Path;
use sametick_wire::pair::{Pair, Side};
use sametick_wire::{Carrier, Channel, Member};

use crate::host::{self, Host, HostConfig, Keepable};
use crate::view::{self, JoinAs, View};

/// How often players look: the frame interval of a screen.
const LOOK_EVERY_US: u64 = 16_000;

/// The most differing fields that are reported for two states.
const REPORTED: usize = 8;

/// The input of a player in a tick.
pub type Act<G> = Box<dyn FnMut(&View<G>, Tick) -> <G as sametick_sim::Game>::Input>;

/// A player and the link over which that player takes part.
pub struct Player<G: Hosted> {
    /// The host's id of the link.
    pub member: Member,
    /// The player's view.
    pub view: View<G>,
    /// The link; the player is side A.
    pub pair: Pair,
    /// Whether the player has left.
    pub gone: bool,
    act: Act<G>,
    looks_at: Time,
}

/// Observes a running trial.
pub trait Watch<G: Hosted> {
    /// The host has stepped.
    fn stepped(&mut self, host: &Host<G>) {
        let _ = host;
    }

    /// The host has sent a message to a player; it may be lost.
    fn sent(&mut self, member: Member, channel: Channel, bytes: &[u8]) {
        let _ = (member, channel, bytes);
    }

    /// A player has received an update.
    fn updated(&mut self, players: &[Player<G>], index: usize) {
        let _ = (players, index);
    }

    /// A player has drawn a frame.
    fn looked(&mut self, player: &mut Player<G>, index: usize) {
        let _ = (player, index);
    }
}

impl<G: Hosted> Watch<G> for () {}

/// A host, views and the network between them. The same seed always gives the same result.
pub struct Trial<G: Hosted> {
    /// The virtual time.
    pub now: Time,
    /// The host.
    pub host: Host<G>,
    /// All players who have ever joined.
    pub players: Vec<Player<G>>,
    /// The records for the log.
    pub records: Vec<Record>,
    /// The state to be saved, in the order of output.
    pub keepsakes: Vec<(Keepable, Vec<u8>)>,
    setup: G::Setup,
    /// The host's states whose hashes are in the log.
    checked: Vec<(Tick, G)>,
    profile: Profile,
    carrier: Carrier,
    extra_sockets: usize,
    seed: u64,
    host_at: Time,
    next: u64,
    buf: Vec<u8>,
}

impl<G: Hosted> Trial<G> {
    /// A room without players.
    pub fn new(seed: u64, profile: Profile, setup: &G::Setup, config: HostConfig) -> Trial<G> {
        Trial {
            now: Time::ZERO,
            host: Host::new(Time::ZERO, setup, config),
            players: Vec::new(),
            records: Vec::new(),
            keepsakes: Vec::new(),
            setup: setup.clone(),
            checked: Vec::new(),
            profile,
            carrier: Carrier::Datagrams,
            extra_sockets: 0,
            seed,
            host_at: Time::ZERO,
            next: 0,
            buf: Vec::new(),
        }
    }

    /// Sets the kind of carrier for players who join from now on.
    pub fn set_carrier(&mut self, carrier: Carrier) {
        self.carrier = carrier;
    }

    /// Sets the number of extra sockets of players over WebSocket from now on.
    pub fn set_extra_sockets(&mut self, count: usize) {
        self.extra_sockets = count;
        self.players.iter_mut().for_each(|player| player.pair.set_extra_sockets(count));
    }

    fn pair(&mut self) -> (Pair, Path) {
        let seed = self.seed.wrapping_mul(1_000).wrapping_add(self.next);
        let mut pair = Pair::new(self.carrier, self.profile, seed);
        pair.set_extra_sockets(self.extra_sockets);
        pair.run_until(self.now);
        let path = Path::from(pair.link(Side::A).stats());
        (pair, path)
    }

    /// A player joins. Returns the player's index.
    pub fn join(&mut self, setup: &G::Setup, act: impl FnMut(&View<G>, Tick) -> G::Input + 'static) -> usize {
        let (pair, path) = self.pair();
        let join = JoinAs {
            name: format!("player {}", self.next),
            commit: String::new(),
            setup: setup.clone(),
            seed: 0,
            seats: self.host.seats(),
            watch: false,
            listed: true,
        };
        self.players.push(Player {
            member: Member(self.next),
            view: View::new(self.now, &join, path),
            pair,
            gone: false,
            act: Box::new(act),
            looks_at: self.now,
        });
        self.next += 1;
        self.players.len() - 1
    }

    /// A player rejoins over another link.
    pub fn rejoin(&mut self, index: usize) {
        let (pair, path) = self.pair();
        let player = &mut self.players[index];
        (player.member, player.pair, player.gone) = (Member(self.next), pair, false);
        player.view.rejoin(self.now, path);
        self.next += 1;
    }

    /// A player leaves. Without `said`, the host is not notified.
    pub fn leave(&mut self, index: usize, said: bool) {
        self.players[index].gone = true;
        if said {
            self.host.handle(self.now, host::Input::Closed(self.players[index].member, Leaving::Left));
            self.drain_host(&mut ());
        }
    }

    /// Changes the network profile of all players from now on.
    pub fn set_profile(&mut self, profile: Profile) {
        self.profile = profile;
        self.players.iter_mut().for_each(|player| player.pair.set_profile(profile));
    }

    /// Advances the virtual time.
    pub fn run_millis(&mut self, ms: u64, watch: &mut impl Watch<G>) {
        for _ in 0..ms {
            self.now = self.now.plus_micros(1_000);
            if self.host_at <= self.now {
                self.host.handle(self.now, host::Input::Timeout);
                self.drain_host(watch);
            }
            for index in 0..self.players.len() {
                if !self.players[index].gone {
                    self.run_player(index, watch);
                }
            }
        }
    }

    /// Replays the log and compares the states with those of the host. Returns how many states were compared.
    ///
    /// # Panics
    /// If the log leads to another state than the host's. The message names the tick and the first fields that differ.
    pub fn replay(&self) -> u32 {
        let (mut state, mut inputs) = (G::new(&self.setup), Inputs::new());
        let (mut checked, mut compared) = (self.checked.iter(), 0);
        for record in &self.records {
            match record {
                Record::Inputs(closed) => {
                    closed.decode(&mut inputs);
                    state.step(&inputs);
                }
                Record::Check { tick, hash } => {
                    compared += 1;
                    let was = checked.by_ref().find(|(at, _)| at == tick).map(|(_, was)| was);
                    let found = was.map(|was| differences(was, &state, REPORTED)).unwrap_or_default();
                    let ours = StateHash::of(&state);
                    assert!(
                        ours == *hash,
                        "the host and the replay of its log have different states after tick {tick} \
                         (hash {hash} != {ours}):{}",
                        Lines(&found)
                    );
                }
                _ => {}
            }
        }
        compared
    }

    fn run_player(&mut self, index: usize, watch: &mut impl Watch<G>) {
        let now = self.now;
        self.players[index].pair.run_until(now);
        for (channel, bytes) in self.players[index].pair.take(Side::A) {
            let view = &mut self.players[index].view;
            let before = view.stats().updates;
            view.handle(now, view::Input::Message(channel, &bytes)).expect("the host speaks the protocol");
            if channel == Channel::State && view.stats().updates > before {
                watch.updated(&self.players, index);
            }
        }
        let player = &mut self.players[index];
        player.drain(now, &mut self.buf);
        let member = player.member;
        for (channel, bytes) in player.pair.take(Side::B) {
            self.host.handle(now, host::Input::Message(member, channel, &bytes));
        }
        if player.looks_at <= now {
            player.looks_at = now.plus_micros(LOOK_EVERY_US);
            player.view.look(now);
            watch.looked(player, index);
        }
        self.drain_host(watch);
    }

    fn drain_host(&mut self, watch: &mut impl Watch<G>) {
        loop {
            match self.host.poll_output(&mut self.buf) {
                host::Output::Send(member, channel) => {
                    watch.sent(member, channel, &self.buf);
                    let mut there = self.players.iter_mut().filter(|player| !player.gone);
                    if let Some(player) = there.find(|player| player.member == member) {
                        player.pair.send(Side::B, channel, &self.buf);
                    }
                }
                host::Output::Close(..) | host::Output::Kept(_) => {}
                host::Output::Keep(what) => self.keepsakes.push((what, self.buf.clone())),
                host::Output::Record(record) => {
                    if let Record::Check { tick, .. } = record
                        && self.host.tick() == tick
                    {
                        self.checked.push((tick, self.host.state().clone()));
                    }
                    self.records.push(record);
                }
                host::Output::Stepped(_) => {
                    self.records.push(Record::Inputs(self.host.inputs().clone()));
                    watch.stepped(&self.host);
                }
                host::Output::WakeAt(at) => {
                    self.host_at = at;
                    break;
                }
            }
        }
    }
}

impl<G: Hosted> Player<G> {
    fn drain(&mut self, now: Time, buf: &mut Vec<u8>) {
        let Player { view, pair, act, .. } = self;
        let _ = view.handle(now, view::Input::Timeout);
        loop {
            let said = match view.poll_output(buf) {
                view::Output::Send(channel) => {
                    pair.send(Side::A, channel, buf);
                    continue;
                }
                view::Output::WantInput(tick) => view::Input::Local(act(view, tick)),
                view::Output::WantPath => view::Input::Path(Path::from(pair.link(Side::A).stats())),
                view::Output::WakeAt(_) | view::Output::Wait => break,
            };
            let _ = view.handle(now, said);
        }
    }
}
