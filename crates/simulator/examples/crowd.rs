//! How long a tick of a crowded arena takes: `cargo run --release -p sametick-simulator --example crowd [PLAYERS…]`.
//!
//! A host and light clients in one process: the clients move, shoot and acknowledge updates half a round trip of two
//! ticks later. Only the host's work is timed.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this measures time")]

use std::collections::VecDeque;
use std::time::Instant;

use sametick_arena::{Arena, Input, Setup, Walk};
use sametick_room::host::{self, Host};
use sametick_room::message::{Join, Report, ToHost, ToView};
use sametick_room::{HostConfig, message};
use sametick_sim::{Game, Rng, Tick, Time, to_canonical};
use sametick_wire::inputs::{Opaque, put_inputs};
use sametick_wire::{Channel, Member, control};

/// Ticks that are timed, after a warm-up.
const TIMED: u32 = 900;
const WARM_UP: u32 = 150;

/// Ticks between an update and its acknowledgement.
const ROUND_TRIP: u32 = 3;

struct Crowd {
    host: Host<Arena>,
    rng: Rng,
    walking: Vec<Input>,
    /// Acknowledgements of members, and when they send them.
    reports: VecDeque<(Tick, Member, Tick)>,
    bytes: u64,
}

impl Crowd {
    fn new(players: u16) -> Crowd {
        let setup =
            Setup { seed: 5, size: 48, bots: 0, seats: players, points: 0, rocks: true, rounds: false };
        let config = HostConfig { seats: players, ..HostConfig::default() };
        let mut crowd = Crowd {
            host: Host::new(Time::ZERO, &setup, config),
            rng: Rng::new(9),
            walking: vec![Input::default(); players.into()],
            reports: VecDeque::new(),
            bytes: 0,
        };
        for member in 0..u64::from(players) {
            let join = ToHost::Join(Join {
                game: Arena::NAME.into(),
                commit: String::new(),
                name: format!("player {member}"),
                setup: to_canonical(&setup).expect("a setup serialises"),
                seed: 5,
                seats: players,
                watch: false,
                listed: false,
                resume: None,
                token: None,
                must_resume: false,
            });
            let bytes = control::to_bytes(&join);
            crowd.host.handle(Time::ZERO, host::Input::Message(Member(member), Channel::Control, &bytes));
        }
        crowd.drain();
        crowd
    }

    fn drain(&mut self) {
        let mut buf = Vec::new();
        loop {
            match self.host.poll_output(&mut buf) {
                host::Output::Send(member, Channel::State) => {
                    self.bytes += buf.len() as u64;
                    let tick = self.host.tick();
                    let update = message::read_update(&buf, tick).expect("an update");
                    self.reports.push_back((tick + ROUND_TRIP, member, update.head.tick));
                }
                host::Output::Send(..) => {
                    let _: Result<ToView, _> = control::from_bytes(&buf);
                }
                host::Output::WakeAt(_) => return,
                _ => {}
            }
        }
    }

    /// Every client sends its input of the next tick, and its acknowledgement.
    fn speak(&mut self, now: Time) {
        let next = self.host.tick().next();
        let mut bytes = Vec::new();
        for member in 0..self.walking.len() {
            if self.rng.chance(1, 15) {
                let way = self.rng.below(9) as i32;
                let walk = Walk::towards(way % 3 - 1, way / 3 - 1);
                let (aim, fire) = (self.rng.below(256) as u8, self.rng.chance(1, 2));
                self.walking[member] = Input { walk, aim, fire, ..Input::default() };
            }
            bytes.clear();
            put_inputs(&mut bytes, next, [Opaque::of(&self.walking[member])].iter());
            let input = host::Input::Message(Member(member as u64), Channel::Input, &bytes);
            self.host.handle(now, input);
        }
        while let Some((_, member, tick)) = self.reports.pop_front_if(|(at, ..)| *at <= next) {
            bytes.clear();
            Report { newest: Some(tick.0 as u16), tick: next, ..Report::default() }.put(&mut bytes);
            self.host.handle(now, host::Input::Message(member, Channel::State, &bytes));
        }
    }
}

fn main() {
    let given: Vec<u16> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let counts = if given.is_empty() { vec![10, 20, 50, 100, 200, 500, 1_000] } else { given };
    let budget_us = 1_000_000 / Arena::RATE.per_second();
    println!(
        "a tick has {budget_us} µs\n\n| players | p50 µs | p99 µs | max µs | B/s to each |\n|---|---|---|---|---|"
    );
    for players in counts {
        let mut crowd = Crowd::new(players);
        let mut times = Vec::new();
        for tick in 1..=WARM_UP + TIMED {
            let now = Time::from_micros(Arena::RATE.due_micros(Tick(tick)));
            if tick == WARM_UP {
                crowd.bytes = 0;
            }
            let began = Instant::now();
            crowd.speak(now);
            crowd.host.handle(now, host::Input::Timeout);
            crowd.drain();
            if tick > WARM_UP {
                times.push(began.elapsed().as_micros());
            }
        }
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        let seconds = f64::from(TIMED) / f64::from(Arena::RATE.per_second());
        let rate = crowd.bytes as f64 / seconds / f64::from(players);
        println!("| {players} | {} | {} | {} | {rate:.0} |", at(50), at(99), at(100));
    }
}
