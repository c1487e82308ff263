//! One world: a relay, its clients, the networks between them and a disk, in virtual time, from one seed.

mod back;
mod client_side;
mod crash;
mod mischief;
mod recovery;
mod relay_side;
mod saves;

use std::collections::{BTreeMap, VecDeque};

use sametick_lockstep::relay::{Relay, RelayConfig, SessionKey};
use sametick_lockstep::session::SessionId;
use sametick_sim::{Rng, SchemaHash, Time, schema_hash_of};

use crate::cable::{Bufs, Cable};
use crate::client::Client;
use crate::faults::{FaultCounts, draw_clean, draw_profile};
use crate::games::{Playable, Sum};
use crate::outcome::{Checker, Figures, Outcome, Violation};
use crate::plan::{Plan, Title};
use crate::referee::{Finding, Referee};
use mischief::Event;

/// How many events the trace keeps.
const TRACE: usize = 400;

/// The interval of the bounds checks.
const SECOND_US: u64 = 1_000_000;

/// One world.
pub struct World<G: Playable> {
    plan: Plan,
    now: Time,
    rng: Rng,
    relay: Relay,
    relay_wake_at: Option<Time>,
    /// Whether the relay's process is stalled.
    relay_stalled: bool,
    /// Whether the relay is down.
    relay_down: bool,
    config: RelayConfig,
    /// The number of the next session.
    next_uid: u64,
    /// Whether the relay got an input: it may have outputs.
    relay_told: bool,
    key: SessionKey,
    schema: SchemaHash,
    cables: Vec<Option<Cable>>,
    /// The next event at the relay's end of each cable.
    cables_next: Vec<Time>,
    clients: Vec<Client<G>>,
    next_member: u64,
    referees: Vec<Referee<G>>,
    /// Planned events: at one time, in the order in which they were planned.
    agenda: BTreeMap<(Time, u64), Event>,
    planned: u64,
    calm: bool,
    done: bool,
    /// The last event that delays the return of clients.
    disturbed_at: Time,
    /// When the relay was last killed.
    crashed_at: Time,
    /// Clients that lost their link when the relay was killed, and kept their state.
    awaited: Vec<usize>,
    omissions_before: Option<BTreeMap<(SessionId, u16), u32>>,
    figures: Figures,
    faults: FaultCounts,
    violation: Option<Violation>,
    trace: Option<VecDeque<String>>,
    bufs: Bufs,
    message: Vec<u8>,
}

/// A time after all others.
const NEVER: Time = Time::from_micros(u64::MAX);

impl<G: Playable> World<G> {
    /// The world of a plan; `rng` continues its seed.
    pub fn new(plan: Plan, mut rng: Rng, tracing: bool) -> World<G> {
        let clients = plan.drifts_ppm.iter().map(|drift_ppm| {
            let profile = if plan.bad_networks { draw_profile(&mut rng) } else { draw_clean(&mut rng) };
            let dial_at = Time::from_micros(rng.below(3 * SECOND_US));
            Client::new(*drift_ppm, dial_at, profile, rng.next_u64())
        });
        let clients = clients.collect();
        let mut secret = [0; 32];
        secret.fill_with(|| rng.below(256) as u8);
        let config = RelayConfig {
            ticks_per_packet: plan.ticks_per_packet,
            secret,
            compaction: plan.compaction(),
            finds: true,
        };
        let mut world = World {
            now: Time::ZERO,
            relay: Relay::new(config),
            relay_wake_at: None,
            relay_stalled: false,
            relay_down: false,
            config,
            next_uid: 0,
            relay_told: false,
            key: SessionKey { build: G::BUILD, name: "den".into() },
            schema: schema_hash_of::<G>(),
            cables: Vec::new(),
            cables_next: Vec::new(),
            clients,
            next_member: 0,
            referees: Vec::new(),
            agenda: BTreeMap::new(),
            planned: 0,
            calm: false,
            done: false,
            disturbed_at: Time::ZERO,
            crashed_at: Time::ZERO,
            awaited: Vec::new(),
            omissions_before: None,
            figures: Figures::default(),
            faults: FaultCounts::default(),
            violation: None,
            trace: tracing.then(VecDeque::new),
            bufs: Bufs::default(),
            message: Vec::new(),
            rng,
            plan,
        };
        world.plan_beginning();
        world
    }

    /// Runs it to its end, or to the first violation.
    pub fn run(mut self) -> Outcome {
        while !self.done && self.violation.is_none() {
            self.now = self.now.max(self.next_event());
            self.run_agenda();
            self.run_relay();
            self.run_clients();
        }
        if self.violation.is_none() {
            self.finish();
        }
        let us = self.now.as_micros();
        self.figures.worlds = 1;
        self.figures.simulated_us = us;
        self.figures.crowded_us = if self.clients.len() >= 4 { us } else { 0 };
        self.figures.client_us = us * self.clients.len() as u64;
        let states = self.referees.iter().flat_map(|referee| referee.closed.states.last());
        let figures = [self.figures.states, self.figures.joins, self.figures.resimulated, us];
        let digest = states.chain(&figures).fold(0u64, |sum, word| sum.rotate_left(9) ^ word);
        Outcome {
            seed: self.plan.seed,
            figures: self.figures,
            faults: self.faults,
            digest,
            violation: self.violation,
            trace: self.trace.map(Vec::from).unwrap_or_default(),
        }
    }

    fn next_event(&self) -> Time {
        let mut next = self.agenda.first_key_value().map_or(NEVER, |((at, _), _)| *at);
        if !self.relay_stalled && !self.relay_down {
            next = self.cables_next.iter().fold(next, |next, at| next.min(*at));
            next = next.min(self.relay_wake_at.unwrap_or(NEVER));
        }
        self.clients.iter().fold(next, |next, client| next.min(client.next_at))
    }

    /// Records a violation that the referee of a session reports.
    fn judge(&mut self, result: Result<(), Finding>) {
        if let Err((checker, what)) = result {
            self.fail(checker, what);
        }
    }

    fn fail(&mut self, checker: Checker, what: String) {
        self.note(|| format!("VIOLATION {}: {what}", checker.name()));
        self.violation.get_or_insert(Violation { checker, at: self.now, what });
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            if trace.len() == TRACE {
                trace.pop_front();
            }
            trace.push_back(format!("{} {}", self.now, text()));
        }
    }

    fn referee(&mut self, id: SessionId) -> Option<&mut Referee<G>> {
        self.referees.iter_mut().rfind(|referee| referee.id == id)
    }
}

/// Plays the plan of a seed.
pub fn play(seed: u64, tracing: bool) -> Outcome {
    let (plan, rng) = Plan::draw(seed);
    play_plan(plan, rng, tracing)
}

/// Plays a plan with its game.
pub fn play_plan(plan: Plan, rng: Rng, tracing: bool) -> Outcome {
    match plan.title {
        Title::Sum(10) => World::<Sum<10>>::new(plan, rng, tracing).run(),
        Title::Sum(20) => World::<Sum<20>>::new(plan, rng, tracing).run(),
        Title::Sum(30) => World::<Sum<30>>::new(plan, rng, tracing).run(),
        Title::Sum(_) => World::<Sum<60>>::new(plan, rng, tracing).run(),
        Title::Pong => World::<sametick_pong::Pong>::new(plan, rng, tracing).run(),
    }
}
