//! A gateway, hosts and players on a network that loses, repeats and delays, with crashes of every part, in virtual
//! time from one seed. Invariants, checked after every step:
//! - a seat has one player at most, and a player who keeps to the rules never loses it;
//! - a round of a session starts once, and one key creates one session;
//! - a member is in one session, and knows its full state;
//! - in the end nothing is left: no session, no file, no connection, no pending request.

mod client;
mod machine;

use std::collections::{BTreeMap, BTreeSet};

use sametick_session::catalog::{Catalog, Remembered};
use sametick_session::gateway::{self, Asking, ClientId, Gateway, GatewayConfig};
use sametick_session::host::{self, GatewayId};
use sametick_session::id::{Key, SessionId, Source};
use sametick_session::lobby::{Ask, Filter, Reply};
use sametick_session::message::{Closing, Event, Request};
use sametick_session::password::Weight;
use sametick_session::placing::{FromHost, ToHost};
use sametick_session::session::Session;
use sametick_sim::{Rng, Time};
use sametick_wire::Member;
use sametick_wire::identity::{PlayerId, Token};

use crate::stage::{MINUTE, SECOND, seeds};
use client::{Client, State};
use machine::Machine;

/// Histories in a normal test run.
const SEEDS: u64 = 5_000;

/// A message of a client over a connection to a host.
#[derive(Clone, Debug)]
pub enum Word {
    Arrive(String),
    Resume(SessionId, PlayerId, Token),
    Say(u64, Request),
}

/// A message of a host over a connection.
#[derive(Clone, Debug)]
pub enum Told {
    Event(Event),
    Answer(u64),
    Close(Closing),
}

#[derive(Clone, Debug)]
enum Happening {
    ToGateway(usize, u64, Ask),
    FromGateway(usize, Option<u64>, Reply),
    ToHost(usize, u32, ToHost),
    FromHost(usize, FromHost),
    Up(Member, Word),
    Down(Member, Told),
    /// The host notices that a connection has ended.
    Unplugged(Member),
    Written(usize, u32, SessionId, u64),
    Weighed(usize, u32, u64, Weight),
    GameOver(usize, u32, SessionId),
    Saved(usize, u32, SessionId),
    Act(usize),
    Trouble,
    StartHost(usize),
    StartGateway,
}

/// A connection of a client to a host: ordered and reliable while it lasts.
struct Link {
    client: usize,
    host: usize,
    life: u32,
    is_open: bool,
    up_at: Time,
    down_at: Time,
}

/// Statistics, summed up over histories.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sessions: u64,
    welcomes: u64,
    resumes: u64,
    rounds: u64,
    crashes: u64,
    gateway_crashes: u64,
    lost: u64,
    repeated: u64,
    cuts: u64,
    quarantined: u64,
    moved: u64,
    followed: u64,
    steps: u64,
}

struct World {
    rng: Rng,
    now: Time,
    queue: BTreeMap<(Time, u64), Happening>,
    next: u64,
    gateway: Option<Gateway<Remembered>>,
    run: u32,
    gateway_wake: Option<Time>,
    hosts: Vec<Machine>,
    clients: Vec<Client>,
    links: BTreeMap<Member, Link>,
    /// No more faults.
    is_calm: bool,
    /// All players leave.
    is_evening: bool,
    loss: u64,
    repeats: u64,
    delay_us: u64,
    /// The session that was created for each request.
    claimed: BTreeMap<Key, SessionId>,
    begun: BTreeSet<(SessionId, u32)>,
    kicked: BTreeSet<(SessionId, PlayerId)>,
    /// The first id of a session that has moved.
    roots: BTreeMap<SessionId, SessionId>,
    /// Sessions that a player was told of.
    ids: Vec<SessionId>,
    counts: Counts,
    most_steps: u64,
}

impl World {
    fn new(seed: u64, counts: Counts) -> World {
        let mut rng = Rng::new(seed);
        let hosts = 1 + rng.below(3) as u32;
        let clients = 2 + rng.below(4) as usize;
        let terrible = rng.chance(2, 3);
        let mut world = World {
            loss: if terrible { rng.below(30) } else { 0 },
            repeats: if terrible { rng.below(50) } else { 0 },
            delay_us: 1_000 + rng.below(if terrible { 3 * SECOND } else { SECOND / 10 }),
            now: Time::from_micros(SECOND),
            queue: BTreeMap::new(),
            next: 0,
            gateway: None,
            run: 0,
            gateway_wake: None,
            hosts: (0..hosts).map(|id| Machine::new(id, 1 + rng.below(4) as u16)).collect(),
            clients: (0..clients).map(Client::new).collect(),
            links: BTreeMap::new(),
            is_calm: false,
            is_evening: false,
            claimed: BTreeMap::new(),
            begun: BTreeSet::new(),
            kicked: BTreeSet::new(),
            roots: BTreeMap::new(),
            ids: Vec::new(),
            counts,
            most_steps: counts.steps + 200_000,
            rng,
        };
        world.at(0, Happening::StartGateway);
        for host in 0..world.hosts.len() {
            world.at(0, Happening::StartHost(host));
        }
        for client in 0..clients {
            let wait_us = world.rng.below(3 * SECOND);
            world.at(wait_us, Happening::Act(client));
        }
        if terrible {
            world.at(5 * SECOND, Happening::Trouble);
        }
        world
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn at(&mut self, wait_us: u64, happening: Happening) {
        let (at, number) = (self.now.plus_micros(wait_us), self.number());
        self.queue.insert((at, number), happening);
    }

    /// Sends over a network that loses, repeats and delays.
    fn send(&mut self, happening: &Happening) {
        let mut copies = 1;
        if !self.is_calm {
            if self.rng.below(100) < self.loss {
                self.counts.lost += 1;
                copies = 0;
            }
            if self.rng.below(100) < self.repeats {
                self.counts.repeated += 1;
                copies += 1;
            }
        }
        for _ in 0..copies {
            let usual = 1_000 + self.rng.below(self.delay_us);
            // A few messages are very late.
            let late = if self.rng.chance(1, 50) && !self.is_calm { self.rng.below(40 * SECOND) } else { 0 };
            self.at(usual + late, happening.clone());
        }
    }

    fn run_for(&mut self, us: u64) {
        let until = self.now.plus_micros(us);
        loop {
            let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
            let hosts = self.hosts.iter().filter_map(Machine::wake_at).min();
            let Some(at) =
                [queued, hosts, self.gateway_wake].into_iter().flatten().min().filter(|at| *at <= until)
            else {
                break;
            };
            self.now = self.now.max(at);
            self.counts.steps += 1;
            assert!(self.counts.steps < self.most_steps, "a machine that never sleeps");
            if queued == Some(at) {
                let (_, happening) = self.queue.pop_first().expect("it was there just now");
                self.happen(happening);
            } else if self.gateway_wake == Some(at) {
                self.tell_gateway(gateway::Input::Timeout);
            } else if let Some(host) = self.hosts.iter().position(|machine| machine.wake_at() == Some(at)) {
                self.tell_host(host, host::Input::Timeout);
            }
        }
        self.now = until;
    }

    /// Runs until nothing is in transit between players and hosts.
    fn run_until_still(&mut self) {
        let is_on_its_way = |happening: &Happening| {
            use Happening::{Down, Unplugged, Up, Weighed, Written};
            matches!(happening, Up(..) | Down(..) | Unplugged(_) | Written(..) | Weighed(..))
        };
        while self.queue.values().any(is_on_its_way) {
            self.run_for(SECOND / 10);
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::ToGateway(client, seq, ask) => {
                let player = self.clients[client].player;
                let (id, source) = (ClientId(client as u64), Source(client as u64));
                self.tell_gateway(gateway::Input::Ask(Asking { client: id, seq, player, source, ask }));
            }
            Happening::FromGateway(client, seq, reply) => self.replied(client, seq, reply),
            Happening::ToHost(host, run, ask) => {
                self.tell_host(host, host::Input::Gateway(GatewayId(run.into()), ask));
            }
            Happening::FromHost(host, said) => {
                let id = self.hosts[host].id;
                self.tell_gateway(gateway::Input::Host(id, said));
            }
            Happening::Up(member, word) => self.up(member, word),
            Happening::Down(member, told) => self.told(member, told),
            Happening::Unplugged(member) => self.unplugged(member),
            Happening::Written(host, life, session, revision) => {
                if self.hosts[host].written(life, session, revision) {
                    self.tell_host(host, host::Input::Stored(session, revision));
                }
            }
            Happening::Weighed(host, life, work, weight) if self.hosts[host].life == life => {
                self.tell_host(host, host::Input::Weighed(work, weight));
            }
            Happening::GameOver(host, life, session) if self.hosts[host].life == life => {
                self.tell_host(host, host::Input::Ended(session, "{}".into()));
            }
            Happening::Saved(host, life, session) if self.hosts[host].life == life => {
                self.tell_host(host, host::Input::Saved(session));
            }
            Happening::Weighed(..) | Happening::GameOver(..) | Happening::Saved(..) => {}
            Happening::Act(client) => self.act(client),
            Happening::Trouble => self.trouble(),
            Happening::StartHost(host) => self.start_host(host),
            Happening::StartGateway => self.start_gateway(),
        }
    }

    fn start_gateway(&mut self) {
        self.run += 1;
        // It starts without memory.
        let config = GatewayConfig { run: self.run, ..GatewayConfig::default() };
        self.gateway = Some(Gateway::new(self.now, Remembered::default(), config));
        self.tell_gateway(gateway::Input::Timeout);
    }

    fn tell_gateway(&mut self, input: gateway::Input) {
        let Some(gateway) = &mut self.gateway else { return };
        gateway.handle(self.now, input);
        loop {
            let Some(gateway) = &mut self.gateway else { return };
            match gateway.poll_output() {
                gateway::Output::Reply(client, seq, reply) => {
                    self.send(&Happening::FromGateway(client.0 as usize, seq, reply));
                }
                gateway::Output::Host(host, ask) => {
                    let run = self.run;
                    self.send(&Happening::ToHost(host.0 as usize, run, ask));
                }
                gateway::Output::Lost(..) => {}
                gateway::Output::WakeAt(at) => {
                    self.gateway_wake = at;
                    return;
                }
            }
        }
    }

    /// Injects a fault, and schedules the next one.
    fn trouble(&mut self) {
        if self.is_calm {
            return;
        }
        let host = self.rng.below(self.hosts.len() as u64) as usize;
        match self.rng.below(6) {
            0 => self.crash_host(host),
            1 if self.hosts[host].is_up() => self.tell_host(host, host::Input::Drain(5 * SECOND)),
            2 => {
                self.counts.gateway_crashes += u64::from(self.gateway.is_some());
                (self.gateway, self.gateway_wake) = (None, None);
                let wait_us = self.rng.below(8 * SECOND);
                self.at(wait_us, Happening::StartGateway);
            }
            _ => {
                let open: Vec<Member> =
                    self.links.iter().filter(|(_, link)| link.is_open).map(|(member, _)| *member).collect();
                if let Some(member) = self.rng.pick(&open).copied() {
                    self.counts.cuts += 1;
                    self.cut(member);
                }
            }
        }
        let wait_us = self.rng.below(12 * SECOND);
        self.at(wait_us, Happening::Trouble);
    }

    /// The invariants that hold at any time.
    fn check(&self, host: usize) {
        for session in self.hosts[host].sessions() {
            assert!(session.is_sound(), "{:?}", session.id());
            assert_eq!(session.id().host, self.hosts[host].id, "a session is where its name says");
            self.hosts[host].check_manned(session);
            self.hosts[host].check_guests(session);
        }
        let keys: BTreeSet<Key> = self.hosts[host].sessions().map(Session::key).collect();
        assert_eq!(keys.len(), self.hosts[host].sessions().count(), "a request makes one session");
    }

    /// Once nothing is in transit: each client that believes it is in a session is, and knows its full state.
    fn check_members(&self) {
        for client in &self.clients {
            let State::In { member, view } = &client.state else { continue };
            let host = self.links[member].host;
            let session = self.hosts[host].session(view.session).expect("the session runs somewhere");
            assert_eq!(session.player_of(*member), Some(client.player));
            assert_eq!(**view, session.view(), "and knows what is known there");
        }
        let mut places = BTreeMap::new();
        for session in self.hosts.iter().flat_map(Machine::sessions) {
            for person in session.view().people.iter().filter(|person| !person.away) {
                assert_eq!(places.insert(person.player, session.id()), None, "one place each");
            }
        }
    }

    fn check_nothing_left(&self) {
        for machine in &self.hosts {
            machine.check_nothing_left();
        }
        let gateway = self.gateway.as_ref().expect("it was started again");
        assert_eq!(gateway.waiting(), 0);
        let (listed, _) = gateway.catalog().list(self.now, &Filter::default(), 10);
        assert_eq!(listed, [], "nothing is listed that is not there");
        assert!(self.links.values().all(|link| !link.is_open), "nobody is connected");
    }
}

fn history(seed: u64, counts: Counts) -> Counts {
    let mut world = World::new(seed, counts);
    let busy_us = 20 * SECOND + world.rng.below(70 * SECOND);
    world.run_for(busy_us);
    world.is_calm = true;
    world.start_all();
    // By now late messages have arrived, disconnected players are back or released, and no player starts anything new.
    world.run_for(90 * SECOND);
    world.run_until_still();
    world.check_members();
    world.is_evening = true;
    world.run_for(20 * SECOND);
    // No requests any more: a gateway that starts last of all hears from the hosts of every session.
    assert_eq!(world.gateway.take().map(|gateway| gateway.waiting()), Some(0));
    world.gateway_wake = None;
    world.run_for(11 * MINUTE);
    world.start_gateway();
    world.run_for(10 * SECOND);
    world.check_nothing_left();
    world.counts
}

#[test]
fn no_seat_is_double_no_session_runs_twice_nothing_leaks() {
    let mut sum = Counts::default();
    let many = seeds(SEEDS);
    for seed in 0..many {
        let counts = std::panic::catch_unwind(|| history(seed, sum));
        sum = counts.unwrap_or_else(|_| panic!("seed {seed}"));
    }
    println!("{many} histories: {sum:?}");
    assert!(sum.sessions > many && sum.resumes > many / 4 && sum.rounds > many / 4, "much happens: {sum:?}");
    assert!(sum.moved > many / 20 && sum.followed > many / 20, "sessions move: {sum:?}");
}
