//! Test world: a server with its handshake, clients that dial it, and carriers that can be cut, blocked and frozen.

use std::collections::BTreeMap;

use sametick_client::{Attempt, Carried, Client, Input, Output, Plan, Side, Status};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{StateHash, Tick, Time};
use sametick_wire::access::{AccessKey, Source};
use sametick_wire::closing::THROWN_OUT;
use sametick_wire::hello::{Answer, Hello, HelloOutcome, HelloVerifier};
use sametick_wire::netem::Profile;
use sametick_wire::netem_carrier::{NetemCarrier, Way};
use sametick_wire::{Carrier, Channel, LaneId, Link, Member, link};

/// The first route carries datagrams, the second one stream, as in a browser.
pub const ROUTES: [Carrier; 2] = [Carrier::DatagramsAndStreams, Carrier::Stream];

/// From good to terrible.
pub const NETWORKS: [&str; 3] =
    ["rtt=10ms", "rtt=100ms,jitter=20ms,loss=5%", "rtt=200ms,jitter=50ms,loss=15%,dup=10%,reorder=10%"];

/// The one-way latency of a message on the best network.
const WAY_US: u64 = 5_000;

/// The delay of a WebSocket's extra sockets after its answer: they are dialled once it is open.
const EXTRA_AFTER_US: u64 = 4 * WAY_US;

/// A server under test, and the way its clients play.
pub trait Server {
    type Side: Side;

    /// A server without memory of those before it.
    fn new(now: Time, run: u8, seed: u64) -> Self;
    /// The parameters of a client's join.
    fn join(seed: u64, number: usize) -> <Self::Side as Side>::JoinAs;
    fn open(&mut self, now: Time, member: Member, hello: &Hello);
    fn message(&mut self, now: Time, member: Member, channel: Channel, bytes: &[u8]);
    fn closed(&mut self, now: Time, member: Member, why: Leaving);
    /// Advances the time.
    fn run(&mut self, now: Time);
    /// The next output, until there is none; bytes are in the buffer.
    fn poll(&mut self, buf: &mut Vec<u8>) -> Option<Wanted>;
    /// A client's input for a tick.
    fn play(side: &Self::Side) -> <Self::Side as Side>::Input;
    /// A state that all clients share, where there is one.
    fn agreed(side: &Self::Side) -> Option<(Tick, StateHash)>;
}

/// An output of a server.
pub enum Wanted {
    Send(Member, Channel),
    Close(Member, &'static str),
    Record(Record),
    Nothing,
}

/// Events in transit to the client besides the bytes of a link.
enum News {
    Answer(Vec<u8>),
    /// A WebSocket has its extra sockets.
    Datagrams,
    Gone,
}

/// The server's end of a carrier.
struct There {
    link: Link,
    member: Member,
    closed: bool,
    carrier: Carrier,
    /// When it gets its extra sockets.
    extra_at: Option<Time>,
}

/// A carrier, both directions.
struct Wire {
    owner: usize,
    attempt: Attempt,
    there: Option<There>,
    net: NetemCarrier<()>,
    /// Arrives at this time.
    hello: Option<(Time, Vec<u8>, Carrier)>,
    news: Vec<(Time, News)>,
    /// Drops everything, both ways, without an error.
    swallows: bool,
    /// The client has closed it.
    hung_up: bool,
}

pub struct Player<S: Side> {
    pub client: Client<S>,
    wake_at: Option<Time>,
    /// Does not run before this time.
    frozen_until: Time,
    /// Which of its routes are blocked.
    pub blocked: [bool; 2],
    /// Every status it had, without repeats.
    pub story: Vec<Status>,
    /// The number of restarts that it had seen when the hashes were recorded.
    restarts: u32,
    pub hashes: BTreeMap<Tick, StateHash>,
    pub dials: Vec<usize>,
}

pub struct World<S: Server> {
    pub now: Time,
    pub server: S,
    door: HelloVerifier,
    wires: Vec<Wire>,
    pub players: Vec<Player<S::Side>>,
    pub records: Vec<Record>,
    next_member: u64,
    profile: Profile,
    seed: u64,
    /// The server is not running.
    pub down: bool,
}

impl<S: Server> World<S> {
    pub fn new(network: &str, seed: u64) -> World<S> {
        let now = Time::from_millis(1_000);
        World {
            now,
            server: S::new(now, 1, seed),
            door: HelloVerifier::new(AccessKey::open()),
            wires: vec![],
            players: vec![],
            records: vec![],
            next_member: 0,
            profile: network.parse().unwrap(),
            seed,
            down: false,
        }
    }

    /// A world with two players on this network.
    pub fn of_two(network: &str, seed: u64) -> World<S> {
        let mut world = World::new(network, seed);
        world.add();
        world.add();
        world.run_until(5_000, "both play", |world| world.plays(0) && world.plays(1));
        world.run_millis(2_000);
        world
    }

    /// The number of connections that a client has lost.
    pub fn losses(&self, number: usize) -> u32 {
        self.players[number].client.totals().losses
    }

    /// The number of departures that the game was told of.
    pub fn departures(&self) -> usize {
        self.records.iter().filter(|record| matches!(record, Record::Left { .. })).count()
    }

    pub fn plan(&self, number: usize) -> Plan<S::Side> {
        let join = S::join(self.seed, number);
        let mut random = [number as u8; 32];
        random[..8].copy_from_slice(&self.seed.to_le_bytes());
        let routes = ROUTES.to_vec();
        let (session, key) = ("den".into(), AccessKey::open());
        Plan { session, join, key, pass: None, routes, unix_s: unix_s(self.now), random }
    }

    /// Adds a client; returns its number.
    pub fn add(&mut self) -> usize {
        let plan = self.plan(self.players.len());
        self.add_with(plan)
    }

    pub fn add_with(&mut self, plan: Plan<S::Side>) -> usize {
        self.players.push(Player {
            client: Client::new(self.now, plan).unwrap(),
            wake_at: Some(self.now),
            frozen_until: Time::ZERO,
            blocked: [false; 2],
            story: vec![],
            restarts: 0,
            hashes: BTreeMap::new(),
            dials: vec![],
        });
        self.players.len() - 1
    }

    /// The carrier of a client drops everything from now on.
    pub fn swallow(&mut self, number: usize) {
        self.wires.iter_mut().filter(|wire| wire.owner == number).for_each(|wire| wire.swallows = true);
    }

    /// Ends the effect of [`World::swallow`].
    pub fn relent(&mut self, number: usize) {
        self.wires.iter_mut().filter(|wire| wire.owner == number).for_each(|wire| wire.swallows = false);
    }

    /// A client does not run for this time; packets for it wait, as in a browser.
    pub fn freeze(&mut self, number: usize, ms: u64) {
        self.players[number].frozen_until = self.now.plus_micros(ms * 1_000);
    }

    /// The server dies and another starts, without its memory.
    pub fn restart(&mut self) {
        self.server = S::new(self.now, 2, self.seed);
        for wire in &mut self.wires {
            wire.there = None;
            wire.news.push((self.now, News::Gone));
        }
    }

    pub fn run_millis(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now.plus_micros(1_000);
            self.run_wires();
            self.server.run(self.now);
            self.drain_server();
            (0..self.players.len()).for_each(|number| self.run_player(number));
        }
    }

    /// Runs until the condition holds, for at most this time; returns how long it took.
    #[track_caller]
    pub fn run_until(&mut self, ms: u64, what: &str, holds: impl Fn(&World<S>) -> bool) -> u64 {
        for passed in 0..ms {
            if holds(self) {
                return passed;
            }
            self.run_millis(1);
        }
        let stories: Vec<_> = self.players.iter().map(|player| &player.story).collect();
        panic!("not within {ms} ms: {what}; {stories:#?}");
    }

    pub fn plays(&self, number: usize) -> bool {
        self.players[number].client.status() == Status::Playing
    }

    fn run_wires(&mut self) {
        let World { now, server, door, wires, next_member, down, players, .. } = self;
        let mut buf = vec![];
        for wire in wires.iter_mut() {
            let blocked = wire.hello.as_ref().is_some_and(|(_, _, carrier)| {
                let route = ROUTES.iter().position(|route| route == carrier);
                route.is_some_and(|route| players[wire.owner].blocked[route])
            });
            if let Some((_, bytes, carrier)) = wire.hello.take_if(|hello| hello.0 <= *now) {
                if *down {
                    wire.news.push((now.plus_micros(WAY_US), News::Gone));
                } else if !blocked && !wire.swallows {
                    let source = Source::proven(core::net::Ipv4Addr::LOCALHOST.into());
                    let knock = door.knock(unix_s(*now), source, &bytes);
                    let HelloOutcome::Proven(proven) = knock else {
                        panic!("a fresh and honest hello: {knock:?}")
                    };
                    let member = Member(*next_member);
                    *next_member += 1;
                    server.open(*now, member, &proven.hello);
                    let extra_at = now.plus_micros(EXTRA_AFTER_US);
                    wire.there = Some(There {
                        link: Link::new(*now, carrier),
                        member,
                        closed: false,
                        carrier,
                        extra_at: (carrier == Carrier::Stream).then_some(extra_at),
                    });
                    let answer = Answer::Welcome.to_bytes();
                    wire.news.push((now.plus_micros(WAY_US), News::Answer(answer)));
                    if carrier == Carrier::Stream {
                        wire.news.push((extra_at, News::Datagrams));
                    }
                }
            }
            let Some(there) = &mut wire.there else { continue };
            if there.extra_at.take_if(|at| *at <= *now).is_some() {
                let _ = there.link.handle(*now, link::Input::Datagrams(true));
            }
            while let Some((_, way)) = wire.net.poll_outgoing(*now, &mut buf) {
                let _ = there.link.handle(*now, way_to_input(way, &buf));
            }
            let _ = there.link.handle(*now, link::Input::Timeout);
            if wire.hung_up && !wire.swallows && !there.closed {
                there.closed = true;
                server.closed(*now, there.member, Leaving::Left);
            }
            drain_link(there, server, &mut wire.net, *now, wire.swallows);
        }
    }

    fn drain_server(&mut self) {
        let mut buf = vec![];
        while let Some(wanted) = self.server.poll(&mut buf) {
            match wanted {
                Wanted::Send(member, channel) => {
                    if let Some(there) = at(&mut self.wires, member) {
                        there.link.send(self.now, channel, &buf).unwrap();
                    }
                }
                Wanted::Close(member, why) => {
                    if let Some(there) = at(&mut self.wires, member) {
                        there.link.close(self.now, THROWN_OUT, why);
                    }
                }
                Wanted::Record(record) => self.records.push(record),
                Wanted::Nothing => {}
            }
        }
        for wire in &mut self.wires {
            if let Some(there) = &mut wire.there {
                drain_link(there, &mut self.server, &mut wire.net, self.now, wire.swallows);
            }
        }
    }

    fn run_player(&mut self, number: usize) {
        let World { now, wires, players, .. } = self;
        let player = &mut players[number];
        if player.frozen_until > *now {
            return;
        }
        let mut buf = vec![];
        for wire in wires.iter_mut().filter(|wire| wire.owner == number) {
            let (due, waiting): (Vec<_>, Vec<_>) =
                wire.news.drain(..).partition(|(at, _)| at <= now && !wire.swallows);
            wire.news = waiting;
            for (_, news) in due {
                let carried = match &news {
                    News::Answer(bytes) => Carried::Answer(bytes),
                    News::Datagrams => Carried::Datagrams(true),
                    News::Gone => Carried::Gone("the carrier ended"),
                };
                player.client.handle(*now, Input::Carrier(wire.attempt, carried));
            }
            while let Some((_, way)) = wire.net.poll_incoming(*now, &mut buf) {
                let carried = match way {
                    Way::Datagram | Way::Socket => Carried::Datagram(&buf),
                    Way::Stream(lane) => Carried::Stream(lane, &buf),
                };
                player.client.handle(*now, Input::Carrier(wire.attempt, carried));
            }
        }
        if player.wake_at.is_some_and(|at| at <= *now) {
            player.client.handle(*now, Input::Timeout);
        }
        self.drain_player(number);
    }

    pub fn drain_player(&mut self, number: usize) {
        let mut buf = vec![];
        let (now, profile) = (self.now, self.profile);
        loop {
            let player = &mut self.players[number];
            let output = player.client.poll_output(&mut buf);
            match output {
                Output::Dial(attempt, route) => {
                    player.dials.push(route);
                    let seed = self.seed ^ (u64::from(attempt.0) << 8) ^ number as u64;
                    let hello = Some((now.plus_micros(WAY_US), buf.clone(), ROUTES[route]));
                    let net = NetemCarrier::new(profile, seed);
                    let (there, news) = (None, vec![]);
                    let (swallows, hung_up) = (false, false);
                    self.wires.push(Wire {
                        owner: number,
                        attempt,
                        there,
                        net,
                        hello,
                        news,
                        swallows,
                        hung_up,
                    });
                }
                Output::Datagram(attempt) => {
                    let way = Way::of_datagram(ROUTES[player.client.route()]);
                    self.carry(number, attempt, way, &buf);
                }
                Output::Stream(attempt, lane) => self.carry(number, attempt, Way::Stream(lane), &buf),
                Output::HangUp(attempt) => {
                    let ours = |wire: &&mut Wire| wire.owner == number && wire.attempt == attempt;
                    self.wires.iter_mut().filter(ours).for_each(|wire| wire.hung_up = true);
                }
                Output::WantInput(_) => {
                    let input = S::play(player.client.side().expect("it is asked for an input"));
                    player.client.handle(now, Input::Local(input));
                }
                Output::WakeAt(at) => {
                    player.wake_at = Some(at);
                    break;
                }
                Output::Done => {
                    player.wake_at = None;
                    break;
                }
            }
        }
        self.players[number].look(S::agreed);
    }

    fn carry(&mut self, number: usize, attempt: Attempt, way: Way, bytes: &[u8]) {
        let wire = self.wires.iter_mut().find(|wire| wire.owner == number && wire.attempt == attempt);
        let wire = wire.expect("a carrier that was dialled");
        assert!(!wire.hung_up, "nothing is sent after hanging up");
        if !wire.swallows {
            wire.net.outgoing(self.now, (), way, bytes);
        }
    }

    /// All clients that know a tick have the same state after it.
    #[track_caller]
    pub fn assert_agreement(&self) {
        let mut seen: BTreeMap<Tick, StateHash> = BTreeMap::new();
        let mut compared = 0;
        for (tick, hash) in self.players.iter().flat_map(|player| &player.hashes) {
            compared += usize::from(seen.contains_key(tick));
            assert_eq!(seen.entry(*tick).or_insert(*hash), hash, "after tick {tick}");
        }
        assert!(compared > 0, "nothing was compared");
    }
}

impl<S: Side> Player<S> {
    fn look(&mut self, agreed: fn(&S) -> Option<(Tick, StateHash)>) {
        let status = self.client.status();
        if self.story.last() != Some(&status) {
            self.story.push(status);
        }
        if let Some((tick, hash)) = self.client.side().and_then(agreed) {
            // A restarted session has other states.
            if self.restarts != self.client.totals().restarts {
                self.restarts = self.client.totals().restarts;
                self.hashes.clear();
            }
            self.hashes.split_off(&tick);
            self.hashes.insert(tick, hash);
        }
    }
}

fn way_to_input(way: Way, bytes: &[u8]) -> link::Input<'_> {
    match way {
        Way::Datagram | Way::Socket => link::Input::Datagram(bytes),
        Way::Stream(LaneId(lane)) => link::Input::Stream(LaneId(lane), bytes),
    }
}

fn at(wires: &mut [Wire], member: Member) -> Option<&mut There> {
    wires.iter_mut().filter_map(|wire| wire.there.as_mut()).find(|there| there.member == member)
}

/// Handles the outputs of the server's end of a link.
fn drain_link<S: Server>(
    there: &mut There,
    server: &mut S,
    net: &mut NetemCarrier<()>,
    now: Time,
    swallows: bool,
) {
    let mut buf = vec![];
    loop {
        match there.link.poll_output(&mut buf) {
            link::Output::Datagram if swallows => {}
            link::Output::Stream(_) if swallows => {}
            link::Output::Datagram => net.incoming(now, (), Way::of_datagram(there.carrier), &buf),
            link::Output::Stream(lane) => net.incoming(now, (), Way::Stream(lane), &buf),
            link::Output::Message(channel) => server.message(now, there.member, channel, &buf),
            link::Output::Closed(why) if !there.closed => {
                there.closed = true;
                let leaving = match why {
                    sametick_wire::Closed::TimedOut => Leaving::TimedOut,
                    _ => Leaving::Left,
                };
                server.closed(now, there.member, leaving);
            }
            link::Output::Closed(_) => {}
            link::Output::WakeAt(_) | link::Output::Done => return,
        }
    }
}

/// All clocks are right.
fn unix_s(now: Time) -> u64 {
    1_800_000_000 + now.as_micros() / 1_000_000
}
