//! Benchmark of the relay state machine, without sockets: the cost of one tick of a session of four players at 60 Hz,
//! from their inputs to the packets for them, with and without the log encoder; and the size of that log.
//!
//! `taskset -c 1 cargo bench -p sametick --bench relay`
//!
//! Every variant has relays of its own; the variants take turns after every round, and figures are medians of rounds.
//! Each player toggles one of eight buttons five times a second at random, and sends the hash of every thirtieth tick.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    missing_docs,
    reason = "a benchmark reads the clock"
)]

use std::collections::BTreeMap;
use std::time::Instant;

use sametick_lockstep::message::{CHECK_EVERY, Join, ToRelay, put, put_inputs, to_bytes};
use sametick_lockstep::relay::{Input, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::{Opaque, row_as_bytes};
use sametick_lockstep::session::{Member, SessionId};
use sametick_sim::record::TickInputs;
use sametick_sim::{BuildId, Rng, SchemaHash, StateHash, Tick, Time};
use sametick_store::log::{Header, LogEncoder};
use sametick_wire::Channel;

const RATE: u16 = 60;
const BUILD: BuildId = BuildId::from_bytes([4; 16]);

/// Ticks in a round: one check, two reports of the pace.
const TICKS: u32 = 30;
const ROUNDS: usize = 31;
const HOUR: u32 = 60 * 60 * 60;

/// One player's side, without a game.
struct Player {
    member: Member,
    held: u8,
}

/// A relay with sessions that have begun one after the other, and the players of these sessions.
struct World {
    relay: Relay,
    now: Time,
    players: Vec<Player>,
    per_session: usize,
    rng: Rng,
    /// The last closed tick, the same in every session.
    tick: Tick,
    /// By how many ticks a player's hash of a tick is delayed.
    check_after: u32,
    buf: Vec<u8>,
    logs: Option<Logs>,
    packets: u64,
}

/// The encoders of all sessions.
#[derive(Default)]
struct Logs {
    encoders: BTreeMap<SessionId, LogEncoder>,
    inputs: TickInputs,
    frame: Vec<u8>,
    bytes: usize,
}

impl Logs {
    fn drain(&mut self, id: SessionId) {
        let Some(encoder) = self.encoders.get_mut(&id) else { return };
        while encoder.poll_frame(&mut self.frame).is_some() {
            self.bytes += self.frame.len();
        }
    }
}

impl World {
    fn new(sessions: usize, per_session: usize, logged: bool) -> World {
        let players =
            (0..sessions * per_session).map(|member| Player { member: Member(member as u64), held: 0 });
        let mut world = World {
            relay: Relay::new(RelayConfig::default()),
            now: Time::ZERO,
            players: players.collect(),
            per_session,
            rng: Rng::new(1),
            tick: Tick::ZERO,
            check_after: 2,
            buf: vec![],
            logs: logged.then(Logs::default),
            packets: 0,
        };
        let start_us = 1_000_000 / u64::from(RATE) / sessions as u64;
        for session in 0..sessions {
            for member in session * per_session..(session + 1) * per_session {
                world.join(session, Member(member as u64));
            }
            world.now = world.now.plus_micros(start_us);
        }
        world
    }

    fn join(&mut self, session: usize, member: Member) {
        let key = SessionKey { build: BUILD, name: format!("den {session}") };
        let schema = SchemaHash::from_bytes([0; SchemaHash::LEN]);
        let seats = self.per_session as u16;
        let join = Join {
            game: "plain".into(),
            commit: String::new(),
            setup: vec![],
            seed: 0,
            rate: RATE,
            seats,
            wait_for: seats,
            name: "ada".into(),
            watch: false,
            seat: None,
            listed: false,
            resume: None,
            bring: None,
        };
        self.relay.handle(self.now, Input::Opened(member, key, schema));
        let join = to_bytes(&ToRelay::Join(join));
        self.relay.handle(self.now, Input::Message(member, Channel::Control, &join));
        self.drain();
    }

    /// Drains the relay's outputs. Returns the time at which the relay wants to be woken.
    fn drain(&mut self) -> Time {
        loop {
            match self.relay.poll_output(&mut self.buf) {
                Output::Send(..) => self.packets += 1,
                Output::WakeAt(at) => return at,
                Output::Begun(id) => {
                    if let Some(logs) = &mut self.logs {
                        let encoder = LogEncoder::new(&Header::new("plain", "den")).expect("short texts");
                        logs.encoders.insert(id, encoder);
                    }
                }
                Output::Record(id, record) => {
                    if let Some(logs) = &mut self.logs {
                        logs.encoders.get_mut(&id).expect("it has begun").push(&record).expect("a record");
                        logs.drain(id);
                    }
                }
                Output::Closed(id, tick) => self.log_tick(id, tick),
                // Players without a game cannot give a snapshot, and nothing in this benchmark can replay the log.
                Output::WantSave(id, tick) => self.relay.handle(self.now, Input::Made(id, tick, None)),
                other => panic!("{other:?}"),
            }
        }
    }

    fn log_tick(&mut self, id: SessionId, tick: Tick) {
        let Some(logs) = &mut self.logs else { return };
        let rows = self.relay.session(id).and_then(|session| session.rows(tick)).expect("a closed tick");
        logs.inputs.set(tick, rows.iter().map(row_as_bytes));
        logs.encoders.get_mut(&id).expect("it has begun").push_inputs(&logs.inputs).expect("the next tick");
        logs.drain(id);
    }

    /// Sends the players' inputs before the next tick closes, one after the other; `lens` has the length of each.
    fn speak(&mut self, tick: Tick, bytes: &mut Vec<u8>, lens: &mut Vec<usize>) {
        for player in &mut self.players {
            player.held ^= if self.rng.chance(5, u64::from(RATE)) { 1 << self.rng.below(8) } else { 0 };
            let start = bytes.len();
            let input = Opaque::new(&[player.held]).expect("short");
            put_inputs(bytes, tick, [&input].into_iter());
            lens.push(bytes.len() - start);
        }
    }

    /// Plays so many ticks and returns the time that the relay alone took.
    fn play(&mut self, ticks: u32) -> f64 {
        let (mut bytes, mut lens, mut check) = (vec![], vec![], vec![]);
        (1..=ticks).for_each(|ahead| self.speak(self.tick + ahead, &mut bytes, &mut lens));
        let (mut rest, mut lens) = (&bytes[..], lens.iter());
        let start = Instant::now();
        for _ in 0..ticks {
            self.tick = self.tick.next();
            let checked = self.tick.0.checked_sub(self.check_after).filter(|tick| *tick > 0).map(Tick);
            let checked = checked.filter(|tick| tick.0.is_multiple_of(CHECK_EVERY));
            for session in 0..self.players.len() / self.per_session {
                for at in session * self.per_session..(session + 1) * self.per_session {
                    let (message, after) = rest.split_at(*lens.next().expect("as many as were said"));
                    rest = after;
                    let member = self.players[at].member;
                    self.relay.handle(self.now, Input::Message(member, Channel::Input, message));
                    if let Some(tick) = checked {
                        let hash = StateHash::of(&(session, tick));
                        check.clear();
                        put(&mut check, &ToRelay::Check { tick, hash });
                        self.relay.handle(self.now, Input::Message(member, Channel::Control, &check));
                    }
                }
                self.wake();
            }
            if checked.is_some() {
                self.check_after = 2 + self.rng.below(10) as u32;
            }
        }
        let ns = start.elapsed().as_nanos() as f64;
        assert!(rest.is_empty());
        ns / f64::from(ticks) / (self.players.len() / self.per_session) as f64
    }

    /// Closes the next tick of the next session.
    fn wake(&mut self) {
        loop {
            let before = self.packets;
            self.now = self.drain().max(self.now);
            self.relay.handle(self.now, Input::Timeout);
            self.drain();
            if self.packets >= before + self.per_session as u64 {
                return;
            }
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn cost() {
    const SIZES: [usize; 3] = [1, 100, 1_000];
    let worlds = SIZES.into_iter().flat_map(|sessions| [(sessions, false), (sessions, true)]);
    let mut worlds: Vec<(usize, bool, World, Vec<f64>)> = worlds
        .map(|(sessions, logged)| (sessions, logged, World::new(sessions, 4, logged), vec![]))
        .collect();
    for round in 0..=ROUNDS {
        for (sessions, _, world, figures) in &mut worlds {
            // One session gets ten times the ticks: a shorter round is too short for the clock.
            let ns = world.play(TICKS * if *sessions == 1 { 10 } else { 1 });
            // The first round only warms up.
            if round > 0 {
                figures.push(ns);
            }
        }
    }
    let figures: Vec<(usize, bool, f64)> = worlds
        .into_iter()
        .map(|(sessions, logged, _, figures)| (sessions, logged, median(figures)))
        .collect();
    let reference = figures[0].2;
    println!("| sessions | log | ns a tick | a player | ratio | sessions a core at {RATE} Hz |");
    println!("|---------:|-----|----------:|---------:|------:|--------------------------:|");
    for (sessions, logged, ns) in figures {
        let log = if logged { "yes" } else { "no" };
        let per_core = 1e9 / ns / f64::from(RATE);
        println!(
            "| {sessions:>8} | {log:3} | {ns:>9.0} | {:>8.0} | {:>5.2} | {per_core:>25.0} |",
            ns / 4.0,
            ns / reference
        );
    }
}

fn sizes() {
    println!("\n| players | log bytes in an hour | a player |");
    println!("|--------:|---------------------:|---------:|");
    for players in [1, 2, 4] {
        let mut world = World::new(1, players, true);
        (0..HOUR / TICKS).for_each(|_| {
            world.play(TICKS);
        });
        let bytes = world.logs.map_or(0, |logs| logs.bytes);
        println!("| {players:>7} | {bytes:>20} | {:>8} |", bytes / players);
    }
}

fn main() {
    cost();
    sizes();
}
