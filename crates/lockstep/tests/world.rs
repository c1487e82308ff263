//! A session and its peers over links on a bad network, in virtual time: all peers confirm the same ticks with the same
//! states.

use postcard_schema::Schema;
use sametick_lockstep::inquiry::{Decided, Report};
use sametick_lockstep::message::CHECK_EVERY;
use sametick_lockstep::peer::{Input, JoinAs, Output, Peer, Status};
use sametick_lockstep::relay::{self, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::{Opaque, row_as_bytes};
use sametick_lockstep::session::{Member, Session};
use sametick_sim::record::{Leaving, Record, decode_inputs};
use sametick_sim::{BuildId, Game, Inputs, Rng, SchemaHash, StateHash, Tick, TickRate, Time, to_canonical};
use sametick_wire::Carrier;
use sametick_wire::pair::{Pair, Side};
use serde::{Deserialize, Serialize};

/// Every input affects all later states, so that no difference can disappear.
#[derive(Clone, Serialize, Deserialize, Schema)]
struct Sum {
    tick: u32,
    totals: Vec<u64>,
    held: Vec<u8>,
}

impl Game for Sum {
    const NAME: &'static str = "sum";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([1; 16]);
    type Setup = u64;
    type Input = u8;

    fn new(seed: &u64) -> Sum {
        Sum { tick: 0, totals: vec![*seed; 8], held: vec![0; 8] }
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        self.tick += 1;
        for row in inputs {
            let seat = row.seat.index() % 8;
            if row.joined {
                self.held[seat] = 0;
            }
            self.held[seat] = *row.input_or(&self.held[seat]);
            let mixed = self.totals[seat].rotate_left(7) ^ u64::from(self.held[seat]);
            self.totals[seat] = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(row.left);
        }
    }
}

struct Player {
    pair: Pair,
    peer: Peer<Sum>,
    rng: Rng,
    held: u8,
    still: bool,
    wake_at: Option<Time>,
    /// The hash after each confirmed tick.
    hashes: Vec<StateHash>,
}

const SCHEMA: SchemaHash = SchemaHash::from_bytes([2; SchemaHash::LEN]);

fn key() -> SessionKey {
    SessionKey { build: Sum::BUILD, name: "den".into() }
}

/// A relay's session, its peers, and a link to each.
struct World {
    now: Time,
    relay: Relay,
    relay_wake_at: Time,
    players: Vec<Option<Player>>,
    network: String,
    seed: u64,
    records: Vec<Record>,
    /// When the relay first reported that players differ.
    trouble_at: Option<Time>,
    reports: Vec<(Time, Report)>,
}

impl World {
    fn new(network: &str, seed: u64, ticks_per_packet: u32) -> World {
        let relay =
            Relay::new(RelayConfig { ticks_per_packet: Some(ticks_per_packet), ..RelayConfig::default() });
        World {
            now: Time::ZERO,
            relay,
            relay_wake_at: Time::ZERO,
            players: vec![],
            network: network.into(),
            seed,
            records: vec![],
            trouble_at: None,
            reports: vec![],
        }
    }

    fn session(&self) -> &Session {
        self.relay.find(&key()).and_then(|id| self.relay.session(id)).unwrap()
    }

    fn join(&mut self, watch: bool) {
        let number = self.players.len() as u64;
        let seed = self.seed.wrapping_mul(31).wrapping_add(number);
        let mut pair = Pair::new(Carrier::Datagrams, self.network.parse().unwrap(), seed);
        pair.run_until(self.now);
        let (name, commit) = (format!("p{number}"), "c0ffee".into());
        let join = JoinAs {
            setup: self.seed,
            seed: self.seed,
            seats: 8,
            wait_for: 1,
            name,
            commit,
            watch,
            listed: false,
        };
        let peer = Peer::new(self.now, &join, pair.link(Side::A).stats().into());
        let player = Player {
            pair,
            peer,
            rng: Rng::new(seed),
            held: 0,
            still: false,
            wake_at: Some(self.now),
            hashes: vec![],
        };
        self.players.push(Some(player));
        self.relay.handle(self.now, relay::Input::Opened(Member(number), key(), SCHEMA));
    }

    fn leave(&mut self, index: usize) {
        self.players[index] = None;
        self.relay.handle(self.now, relay::Input::Closed(Member(index as u64), Leaving::Left));
    }

    fn run_millis(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now.plus_micros(1_000);
            self.hear();
            if self.relay_wake_at <= self.now {
                self.relay.handle(self.now, relay::Input::Timeout);
            }
            self.say();
            self.players.iter_mut().flatten().for_each(|player| player.run(self.now));
        }
    }

    /// Passes the peers' messages to the relay.
    fn hear(&mut self) {
        for (index, player) in self.players.iter_mut().enumerate() {
            let Some(player) = player else { continue };
            player.pair.run_until(self.now);
            for (channel, bytes) in player.pair.take(Side::B) {
                self.relay.handle(self.now, relay::Input::Message(Member(index as u64), channel, &bytes));
            }
        }
    }

    /// Sends the relay's messages.
    fn say(&mut self) {
        let mut buf = vec![];
        loop {
            match self.relay.poll_output(&mut buf) {
                relay::Output::Send(Member(to), channel) => {
                    if let Some(player) = &mut self.players[to as usize] {
                        player.pair.send(Side::B, channel, &buf);
                    }
                }
                relay::Output::Close(Member(to), why) => panic!("{to}: {why}"),
                relay::Output::WakeAt(at) => {
                    self.relay_wake_at = at;
                    return;
                }
                relay::Output::Wait => return,
                relay::Output::Record(_, record) => {
                    if matches!(record, Record::Dissent { .. } | Record::Dispute { .. }) {
                        self.trouble_at.get_or_insert(self.now);
                    }
                    self.records.push(record);
                }
                relay::Output::Desync(_, report) => self.reports.push((self.now, *report)),
                relay::Output::Judge(id, tick) => {
                    let state = to_canonical(&self.replay(tick).1).unwrap();
                    self.relay.handle(self.now, relay::Input::Verdict(id, tick, Some(state)));
                }
                _ => {}
            }
        }
    }

    /// Replays what the relay has closed, up to a tick: the hash after each, and the last state.
    fn replay(&self, to: Tick) -> (Vec<StateHash>, Sum) {
        let (mut hashes, mut state) = (vec![], Sum::new(&self.seed));
        let (mut from, mut inputs) = (Tick(1), Inputs::new());
        while let Some(excerpt) = self.session().history().excerpt(from) {
            from = excerpt.first + excerpt.ticks;
            let step = |tick: Tick, rows: &Inputs<Opaque>| {
                if tick <= to {
                    decode_inputs(rows.iter().map(row_as_bytes), &mut inputs);
                    state.step(&inputs);
                    hashes.push(StateHash::of(&state));
                }
            };
            excerpt.read(step).unwrap();
        }
        (hashes, state)
    }

    /// Every peer has the same hash at every tick it has confirmed, and that is the hash of the history replayed.
    fn check(&self, least_ticks: u32) {
        let (replayed, _) = self.replay(Tick(u32::MAX));
        for (index, player) in self.players.iter().enumerate() {
            let Some(player) = player else { continue };
            let hashes = &player.hashes;
            assert!(hashes.len() as u32 >= least_ticks, "{} {index}: {} ticks", self.network, hashes.len());
            let same =
                hashes.iter().zip(&replayed).all(|(ours, theirs)| *ours == StateHash(0) || ours == theirs);
            assert!(same, "{} seed {} peer {index}", self.network, self.seed);
            assert_eq!(*player.peer.status(), Status::Playing);
        }
    }
}

impl Player {
    fn run(&mut self, now: Time) {
        for (channel, bytes) in self.pair.take(Side::A) {
            let before = self.hashes.len() as u32;
            self.peer.handle(now, Input::Message(channel, &bytes)).unwrap();
            self.note(before);
        }
        if self.wake_at.is_some_and(|at| at <= now) {
            self.peer.handle(now, Input::Timeout).unwrap();
        }
        let mut buf = vec![];
        loop {
            match self.peer.poll_output(&mut buf) {
                Output::Send(channel) => self.pair.send(Side::A, channel, &buf),
                Output::WantInput(_) => {
                    if !self.still && self.rng.chance(1, 12) {
                        self.held ^= 1 << self.rng.below(8);
                    }
                    self.peer.handle(now, Input::Local(self.held)).unwrap();
                }
                Output::WantPath => {
                    let path = self.pair.link(Side::A).stats().into();
                    self.peer.handle(now, Input::Path(path)).unwrap();
                }
                Output::WakeAt(at) => {
                    self.wake_at = Some(at);
                    break;
                }
                Output::Wait => break,
            }
        }
    }

    /// Notes the hash of each newly confirmed tick. Several ticks may have been confirmed by one message; only the
    /// last of them can be seen, so the others are filled in when the history is replayed.
    fn note(&mut self, before: u32) {
        let Some((tick, state)) = self.peer.confirmed() else { return };
        if tick.0 > before {
            assert_eq!(state.tick, tick.0);
            self.hashes.resize(tick.0 as usize - 1, StateHash(0));
            self.hashes.push(StateHash::of(state));
        }
    }
}

fn play(network: &str, seed: u64, ticks_per_packet: u32, seconds: u64) -> World {
    let mut world = World::new(network, seed, ticks_per_packet);
    (0..4).for_each(|_| world.join(false));
    world.run_millis(seconds * 1_000);
    world
}

#[test]
fn everybody_agrees_on_a_clean_network() {
    let world = play("rtt=20ms", 1, 1, 10);
    world.check(580);
}

#[test]
fn everybody_agrees_on_a_terrible_network() {
    for seed in 0..60 {
        let world = play("rtt=250ms,jitter=30ms,loss=15%,dup=10%,reorder=10%", seed, 1 + seed as u32 % 4, 12);
        world.check(550);
    }
}

#[test]
fn players_come_and_go_and_others_spectate() {
    for seed in 0..20 {
        let mut world = play("rtt=80ms,loss=5%", seed, 2, 3);
        world.join(true);
        world.run_millis(2_000);
        world.leave(1);
        world.run_millis(1_000);
        world.join(false);
        world.join(false);
        world.run_millis(3_000);
        let taken = world.players.iter().flatten().filter_map(|player| player.peer.seat()).count();
        assert_eq!(taken, 5, "the seat that was left is taken again");
        world.check(500);
    }
}

/// Omissions of all players so far.
fn omissions(world: &World) -> u32 {
    let of =
        |player: &Player| world.session().arrivals(player.peer.seat()?).map(|arrivals| arrivals.omissions);
    world.players.iter().flatten().filter_map(of).sum()
}

#[test]
fn inputs_arrive_in_time_once_the_pace_is_found() {
    for seed in 0..20 {
        let mut world = play("rtt=60ms,jitter=5ms", seed, 1, 3);
        let before = omissions(&world);
        world.run_millis(20_000);
        assert_eq!(omissions(&world), before, "seed {seed}");
        for player in world.players.iter().flatten() {
            let (shown, confirmed) = (player.peer.shown().unwrap().0, player.peer.confirmed().unwrap().0);
            let depth = shown.ticks_since(confirmed);
            assert!((2..=9).contains(&depth), "seed {seed}: {depth} ticks ahead at 60 ms");
        }
    }
}

#[test]
fn a_relay_that_goes_silent_makes_peers_wait_and_then_go_on() {
    let mut world = play("rtt=40ms", 3, 1, 3);
    world.players.iter_mut().flatten().for_each(|player| player.pair.set_down(true));
    world.run_millis(3_000);
    for player in world.players.iter().flatten() {
        assert_eq!(*player.peer.status(), Status::WaitingForRelay);
    }
    world.players.iter_mut().flatten().for_each(|player| player.pair.set_down(false));
    world.run_millis(3_000);
    world.check(500);
    let resends: u64 = world.players.iter().flatten().map(|player| player.peer.stats().resends).sum();
    assert!(resends >= 4, "what was given up meanwhile was asked for again");
}

#[test]
fn right_predictions_cost_nothing() {
    let mut world = World::new("rtt=100ms", 5, 1);
    (0..2).for_each(|_| world.join(false));
    world.run_millis(3_000);
    // From now on all players hold still.
    world.players.iter_mut().flatten().for_each(|player| player.still = true);
    world.run_millis(1_000);
    let rollbacks =
        |world: &World| world.players.iter().flatten().map(|p| p.peer.stats().rollbacks).sum::<u64>();
    let before = rollbacks(&world);
    world.run_millis(5_000);
    assert_eq!(rollbacks(&world), before);
    world.check(500);
}

/// Flips a bit of one player's confirmed state. Returns when that was and after which tick.
fn flip(world: &mut World, player: usize) -> (Time, Tick) {
    let player = world.players[player].as_mut().unwrap();
    let tick = player.peer.confirmed().unwrap().0;
    player.peer.tamper(|state| state.totals[2] ^= 1 << 17);
    (world.now, tick)
}

/// The records of desyncs, and at which tick.
fn troubles(world: &World) -> Vec<&Record> {
    let is_trouble = |record: &&Record| {
        matches!(record, Record::Desync { .. } | Record::Dispute { .. } | Record::Dissent { .. })
    };
    world.records.iter().filter(is_trouble).collect()
}

fn agreed_until(world: &World) -> Tick {
    let check = |record: &Record| matches!(record, Record::Check { .. }).then(|| record.tick()).flatten();
    world.records.iter().filter_map(check).max().unwrap_or_default()
}

#[test]
fn a_flipped_bit_is_found_named_and_resynced() {
    let networks =
        ["rtt=30ms", "rtt=100ms,jitter=20ms,loss=5%", "rtt=250ms,loss=10%,reorder=10%", "rtt=10ms,loss=20%"];
    for (seed, network) in (0..80).zip(networks.iter().cycle()) {
        let mut world = play(network, seed, 1 + seed as u32 % 3, 5);
        world.run_millis(seed * 37 % 500);
        let odd = seed as usize % 4;
        let (at, before) = flip(&mut world, odd);
        world.run_millis(4_000);
        let [(found_at, report)] = &world.reports[..] else {
            panic!("seed {seed}: {:?}", world.reports.len())
        };
        // A state flipped after one tick is first wrong in the next.
        assert_eq!(report.tick, before.next(), "seed {seed}");
        assert_eq!(report.decided, Decided::ByMajority);
        assert_eq!(report.witnesses[1].seat, world.players[odd].as_ref().unwrap().peer.seat());
        assert_eq!(report.parts(), ["totals"]);
        let paths: Vec<&str> = report.fields.iter().map(|field| field.path.as_str()).collect();
        assert_eq!(paths, ["totals[2]"], "seed {seed}");
        assert!(report.resynced);
        let Some(Record::Dissent { tick: check, .. }) = troubles(&world).first() else {
            panic!("seed {seed}")
        };
        assert!(check.ticks_since(before) <= CHECK_EVERY);
        assert!(found_at.micros_since(at) < 3_000_000, "seed {seed}");
        if *network == "rtt=30ms" {
            // The desynced peer is known after 30 ticks and a round trip, and all about it two more round trips later.
            let (known_us, found_us) =
                (world.trouble_at.unwrap().micros_since(at), found_at.micros_since(at));
            assert!(known_us <= 500_000 + 30_000, "seed {seed}: {known_us}");
            assert!(found_us <= 500_000 + 4 * 30_000 + 10_000, "seed {seed}: {found_us}");
        }
        let stats = world.players[odd].as_ref().unwrap().peer.stats();
        assert_eq!(stats.resyncs, 1);
        // The session goes on in agreement.
        let session = world.session();
        assert!(session.history().last().ticks_since(agreed_until(&world)) < 4 * CHECK_EVERY, "seed {seed}");
        let replayed = world.replay(Tick(u32::MAX)).0;
        for player in world.players.iter().flatten() {
            let (tick, state) = player.peer.confirmed().unwrap();
            assert_eq!(StateHash::of(state), replayed[tick.0 as usize - 1], "seed {seed}");
            assert!(session.history().last().ticks_since(tick) < 40, "seed {seed}: {tick:?} on {network}");
        }
    }
}

#[test]
fn between_two_players_a_replay_of_the_log_decides() {
    for seed in 0..20 {
        let mut world = World::new("rtt=80ms,loss=2%", seed, 1);
        (0..2).for_each(|_| world.join(false));
        world.run_millis(4_000 + seed * 37 % 500);
        let odd = seed as usize % 2;
        let (_, before) = flip(&mut world, odd);
        world.run_millis(4_000);
        let [(_, report)] = &world.reports[..] else { panic!("seed {seed}: {:?}", world.reports.len()) };
        assert_eq!((report.tick, report.decided), (before.next(), Decided::ByReplay), "seed {seed}");
        assert_eq!(report.witnesses[1].seat, world.players[odd].as_ref().unwrap().peer.seat());
        assert!(report.witnesses.iter().all(|witness| witness.state.is_some()), "both states are kept");
        assert!(!report.witnesses[0].odd && report.witnesses[1].odd && report.resynced);
        assert_eq!(report.fields[0].path, "totals[2]");
        assert!(matches!(troubles(&world)[..], [Record::Dispute { .. }, Record::Desync { .. }]));
        assert!(!world.session().agreement().is_disputed());
        assert!(world.session().history().last().ticks_since(agreed_until(&world)) < 2 * CHECK_EVERY);
    }
}

/// Omissions of four players from the fourth second to the end, and how far ahead they ended up.
fn late_omissions(network: &str, seed: u64, seconds: u64) -> (u32, u32) {
    let mut world = play(network, seed, 1, 3);
    let before = omissions(&world);
    world.run_millis((seconds - 3) * 1_000);
    let depth =
        |player: &Player| player.peer.shown().unwrap().0.ticks_since(player.peer.confirmed().unwrap().0);
    let depth = world.players.iter().flatten().map(depth).max().unwrap();
    (omissions(&world) - before, depth)
}

/// How many seeds to try: the number from `cargo xtask long pace`, or a few.
#[expect(clippy::disallowed_methods, reason = "a test takes its size from its caller")]
fn seeds(usual: u64) -> u64 {
    std::env::var_os("SAMETICK_SEEDS").map_or(usual, |seeds| seeds.to_str().unwrap().parse().unwrap())
}

#[test]
fn no_input_is_late_once_the_pace_is_found() {
    let (seeds, seconds) = (seeds(12), 60);
    for network in ["rtt=20ms", "rtt=100ms,jitter=20ms,loss=5%"] {
        let (mut total, mut deepest) = (0, 0);
        for seed in 0..seeds {
            let (omissions, depth) = late_omissions(network, seed, seconds);
            if omissions > 0 {
                println!("{network}: seed {seed}: {omissions} omissions");
            }
            total += omissions;
            deepest = deepest.max(depth);
        }
        println!("{network}: {seeds} seeds of {seconds} s, {total} omissions, at most {deepest} ticks ahead");
        assert_eq!(total, 0, "{network}");
    }
}

#[test]
fn no_peer_begins_further_ahead_than_the_path_needs() {
    for (network, most) in [("rtt=1ms", 10), ("rtt=100ms", 18)] {
        let mut world = World::new(network, 5, 1);
        (0..2).for_each(|_| world.join(false));
        for _ in 0..40 {
            world.run_millis(50);
            for player in world.players.iter().flatten() {
                let Some((confirmed, shown)) = player.peer.confirmed().zip(player.peer.shown()) else {
                    continue;
                };
                let depth = shown.0.ticks_since(confirmed.0);
                assert!(depth <= most, "{network}: {depth} ticks ahead at {:?}", world.now);
            }
        }
        assert_eq!(omissions(&world), 0, "{network}: and nobody is late for the first tick");
        let first = world.session().history().excerpt(Tick(1)).unwrap();
        let late = |rows: &Inputs<Opaque>| rows.iter().filter(|row| row.input.is_none()).count();
        let mut missing = 0;
        first.read(|_, rows| missing += late(rows)).unwrap();
        // A peer that joins after another has begun the session has a few ticks to come in.
        assert!(missing <= 1, "{network}: {missing}");
    }
}

#[test]
fn a_relay_that_stood_still_leaves_no_peer_far_ahead() {
    let mut world = play("rtt=40ms", 8, 1, 12);
    let depths = |world: &World| -> Vec<u32> {
        let depth =
            |player: &Player| player.peer.shown().unwrap().0.ticks_since(player.peer.confirmed().unwrap().0);
        world.players.iter().flatten().map(depth).collect()
    };
    let before = depths(&world);
    // The relay does nothing for two seconds; the messages sent meanwhile are queued.
    for _ in 0..2_000 {
        world.now = world.now.plus_micros(1_000);
        world.players.iter_mut().flatten().for_each(|player| player.run(world.now));
    }
    world.run_millis(2_000);
    let after = depths(&world);
    assert!(after.iter().zip(&before).all(|(after, before)| *after <= before + 6), "{before:?} {after:?}");
    world.check(700);
}

#[test]
fn late_joiners_do_not_vote_on_earlier_states() {
    let mut world = World::new("rtt=40ms", 6, 1);
    (0..3).for_each(|_| world.join(false));
    world.run_millis(500);
    let (_, before) = flip(&mut world, 0);
    assert!(before < Tick(20));
    while world.session().history().last() < Tick(31) {
        world.run_millis(1);
    }
    (0..4).for_each(|_| world.join(false));
    world.run_millis(4_000);
    let [(_, report)] = &world.reports[..] else { panic!("{}", world.reports.len()) };
    assert_eq!((report.check, report.tick), (Tick(30), before.next()));
    assert!(report.resynced);
}
