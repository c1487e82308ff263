//! Rooms with more entities in sight than fit into an update.

use std::collections::{BTreeMap, VecDeque};

use sametick_room::pair::{Player, Trial, Watch};
use sametick_room::{Host, HostConfig};
use sametick_sim::Rng;
use sametick_wire::{Channel, Member};

use crate::swarm::{Body, Setup, Swarm};

/// The state of every body in the last second, and the sizes of updates.
#[derive(Default)]
struct Past {
    states: VecDeque<BTreeMap<u32, Body>>,
    bytes: BTreeMap<usize, Vec<usize>>,
}

/// A second of states, and the current one.
const SECOND: usize = 31;

impl Watch<Swarm> for Past {
    fn stepped(&mut self, host: &Host<Swarm>) {
        self.states.push_front(host.state().bodies().collect());
        self.states.truncate(SECOND);
    }

    fn updated(&mut self, players: &[Player<Swarm>], index: usize) {
        self.bytes.entry(index).or_default().push(players[index].view.stats().update_bytes);
    }
}

impl Past {
    /// The number of bodies, present for the whole second, whose state is more than a second old at the player.
    fn stale(&self, player: &Player<Swarm>) -> usize {
        let known: BTreeMap<u32, Body> = player.view.newest().iter().collect();
        let there = |id: &&u32| self.states.iter().all(|state| state.contains_key(id));
        let is_fresh = |id: &u32| {
            known.get(id).is_some_and(|body| self.states.iter().any(|state| state.get(id) == Some(body)))
        };
        self.states[0].keys().filter(there).filter(|id| !is_fresh(id)).count()
    }

    fn mean_bytes(&mut self, index: usize) -> f64 {
        let bytes = self.bytes.remove(&index).unwrap_or_default();
        bytes.iter().sum::<usize>() as f64 / bytes.len().max(1) as f64
    }
}

/// High latency: a joining player gets lost data a third of a second later.
const LINE: &str = "rtt=300ms,loss=5%";

/// Bodies of which one in 150 is pushed in every tick: a settled update of these has some 180 bytes.
fn bodies(seed: u64, bodies: u32) -> Setup {
    Setup { seed, bodies, pushed: 150, ..Setup::default() }
}

fn trial(setup: &Setup) -> Trial<Swarm> {
    Trial::new(setup.seed, "rtt=10ms".parse().unwrap(), setup, HostConfig::default())
}

/// Runs three seconds in which no state at the player may be older than one second.
fn run_fresh(trial: &mut Trial<Swarm>, past: &mut Past, player: usize) {
    past.bytes.clear();
    for _ in 0..30 {
        trial.run_millis(100, past);
        assert_eq!(past.stale(&trial.players[player]), 0, "older than a second at {:?}", trial.now);
    }
}

#[test]
fn a_client_that_joins_over_a_long_lossy_line_settles() {
    for (seed, count) in (0..8).map(|seed| (seed, 250)).chain([(8, 500)]) {
        let setup = bodies(seed, count);
        let (mut trial, mut past) = (trial(&setup), Past::default());
        let settled = trial.join(&setup, |_, _| ());
        trial.run_millis(2_000, &mut past);
        trial.set_profile(LINE.parse().unwrap());
        trial.run_millis(1_000, &mut past);
        let joined = trial.join(&setup, |_, _| ());
        trial.run_millis(2_000, &mut past);
        run_fresh(&mut trial, &mut past, joined);
        let (settled, joined) = (past.mean_bytes(settled), past.mean_bytes(joined));
        println!(
            "seed {seed}, {count} bodies: {joined:.0} bytes an update, {settled:.0} of a settled client"
        );
        assert!(joined <= 1.25 * settled, "seed {seed}: {joined:.0} bytes an update, not {settled:.0}");
    }
}

/// Among several members of a view, one often misses the base of the others, so it takes a little longer.
#[test]
fn a_crew_that_joins_over_a_long_lossy_line_settles() {
    for seed in 0..4 {
        let setup = Setup { shared: true, ..bodies(seed, 250) };
        let (mut trial, mut past) = (trial(&setup), Past::default());
        trial.set_profile(LINE.parse().unwrap());
        let [first, ..] = [0; 3].map(|_| trial.join(&setup, |_, _| ()));
        trial.run_millis(3_000, &mut past);
        run_fresh(&mut trial, &mut past, first);
        let joined = past.mean_bytes(first);
        trial.run_millis(5_000, &mut past);
        run_fresh(&mut trial, &mut past, first);
        let settled = past.mean_bytes(first);
        println!("seed {seed}: {joined:.0} bytes an update for a crew, {settled:.0} five seconds later");
        assert!(joined <= 1.25 * settled, "seed {seed}: {joined:.0} bytes an update, not {settled:.0}");
    }
}

/// Checks that no update exceeds its budget, whatever was lost before.
struct Longest {
    budget: usize,
    updates: u64,
    longest: usize,
}

/// Bytes of an update besides entities and events: the pace header, its ticks and a length.
const HEADS: usize = 20;

impl Watch<Swarm> for Longest {
    fn sent(&mut self, _: Member, channel: Channel, bytes: &[u8]) {
        if channel == Channel::State {
            let length = bytes.len();
            assert!(length <= self.budget + HEADS, "an update of {length} bytes, not {}", self.budget);
            self.longest = self.longest.max(length);
            self.updates += 1;
        }
    }
}

/// Hundreds of bodies that appear, disappear and are pushed, and players who join, rejoin and are disconnected on a bad
/// network.
fn crowd(seed: u64) -> Longest {
    let mut rng = Rng::new(seed);
    let bodies = 100 + rng.below(500) as u32;
    let mut one_in =
        |least: u64, most: u64| if rng.chance(1, 2) { 0 } else { (least + rng.below(most)) as u32 };
    let setup = Setup {
        seed,
        bodies,
        replaced: one_in(20, 500),
        pushed: one_in(2, 60),
        jolted: one_in(20, 60),
        shared: one_in(1, 1) > 0,
    };
    let budget = if rng.chance(1, 3) { 32 + rng.below(200) as usize } else { 900 };
    let config = HostConfig { budget_bytes: budget, ..HostConfig::default() };
    let line = |rng: &mut Rng| {
        let (rtt, jitter, loss) = (rng.below(300), rng.below(60), rng.below(25));
        format!("rtt={rtt}ms,jitter={jitter}ms,loss={loss}%").parse().unwrap()
    };
    let mut trial: Trial<Swarm> = Trial::new(seed, line(&mut rng), &setup, config);
    let mut longest = Longest { budget, updates: 0, longest: 0 };
    for _ in 0..6 {
        match rng.below(4) {
            0 if !trial.players.is_empty() => {
                let index = rng.below(trial.players.len() as u64) as usize;
                trial.leave(index, rng.chance(1, 2));
                trial.run_millis(rng.below(300), &mut longest);
                trial.rejoin(index);
            }
            1 => {
                let profile = line(&mut rng);
                trial.set_profile(profile);
            }
            _ => {
                trial.join(&setup, |_, _| ());
            }
        }
        trial.run_millis(100 + rng.below(700), &mut longest);
        if let Some(player) = trial.players.first_mut().filter(|_| rng.chance(1, 4)) {
            player.pair.set_down(true);
            trial.run_millis(rng.below(2_000), &mut longest);
            trial.players[0].pair.set_down(false);
        }
    }
    longest
}

#[test]
fn no_update_is_longer_than_it_may_be() {
    let mut updates = 0;
    for seed in 0..40 {
        let longest = crowd(seed);
        // Updates with more to send than fits use their budget.
        assert!(longest.budget < 200 || longest.longest > longest.budget / 2, "seed {seed}");
        updates += longest.updates;
    }
    assert!(updates > 5_000, "{updates}");
}
