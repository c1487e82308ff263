//! A room like that of a bridge game: 150 entities, 48 players in 8 crews that see all of them, and a network that
//! loses 2 % of all packets, independently for each player.

use std::collections::VecDeque;

use sametick_room::view::{self, JoinAs};
use sametick_room::{Host, HostConfig, View, host};
use sametick_sim::replica::{PredictionError, Entity, Hosted, Kind, NoCommand, Scene, ViewId};
use sametick_sim::{BuildId, Game, Inputs, Rng, Schema, Seat, Tick, TickRate, Time, Vec2, maths};
use sametick_wire::pacer::Path;
use sametick_wire::{Channel, Member};
use serde::{Deserialize, Serialize};

use crate::clock::thread_ns;

const CREWS: u16 = 8;
const CREW: u16 = 6;
const SHIPS: u32 = 60;
const MISSILES: u32 = 30;
const ROCKS: u32 = 60;
const WIDE: f32 = 5_000.0;
const LATENCY_US: u64 = 40_000;

/// Turns the ship of a crew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
struct Helm {
    turn: i8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Craft {
    at: [f32; 2],
    heading: f32,
    turn: f32,
    speed: f32,
    shields: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Bridge {
    tick: Tick,
    rng: Rng,
    craft: Vec<Craft>,
    rocks: Vec<[f32; 2]>,
}

/// A ship or a missile.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Vessel {
    #[entity(place, step = 0.1)]
    at: Vec2,
    #[entity(turn = 1024)]
    heading: u16,
    shields: u8,
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Rock {
    #[entity(place, step = 0.1)]
    at: Vec2,
}

/// A bridge predicts nothing: its crew are spectators.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Orders {
    turn: i8,
}

impl Game for Bridge {
    const NAME: &'static str = "bridge";
    const RATE: TickRate = TickRate::hz(20);
    const BUILD: BuildId = BuildId::from_bytes([0; 16]);
    type Setup = ();
    type Input = Helm;

    fn new((): &()) -> Bridge {
        let mut rng = Rng::new(3);
        let mut real = |size: f32| (rng.below(20_001) as f32 / 10_000.0 - 1.0) * size;
        let mut craft = Vec::new();
        for number in 0..SHIPS + MISSILES {
            let speed = if number < SHIPS { 40.0 + real(30.0) } else { 250.0 };
            let at = [real(WIDE), real(WIDE)];
            craft.push(Craft { at, heading: real(3.1), turn: 0.0, speed, shields: 100 });
        }
        let rocks = (0..ROCKS).map(|_| [real(WIDE), real(WIDE)]).collect();
        Bridge { tick: Tick::ZERO, craft, rocks, rng }
    }

    fn step(&mut self, inputs: &Inputs<Helm>) {
        self.tick = self.tick.next();
        for row in inputs {
            let ship = &mut self.craft[usize::from(row.seat.0 / CREW)];
            if let Some(input) = row.input.filter(|_| row.seat.0 % CREW == 0) {
                ship.turn = f32::from(input.turn) * 0.3;
            }
        }
        for (number, craft) in self.craft.iter_mut().enumerate() {
            // Captains change their minds every 4 seconds, missiles steer twice a second.
            let often = if number < SHIPS as usize { 80 } else { 10 };
            if number >= usize::from(CREWS) && self.rng.chance(1, often) {
                craft.turn = (self.rng.below(3) as f32 - 1.0) * 0.3;
            }
            if self.rng.chance(1, 200) {
                craft.shields = craft.shields.wrapping_sub(7);
            }
            craft.heading += craft.turn / 20.0;
            let way = [maths::cos(craft.heading), maths::sin(craft.heading)];
            for (at, way) in craft.at.iter_mut().zip(way) {
                *at += way * craft.speed / 20.0;
                if at.abs() > WIDE {
                    *at = -at.clamp(-WIDE, WIDE);
                }
            }
        }
    }
}

impl Hosted for Bridge {
    const KINDS: &'static [Kind] = &[Vessel::KIND, Rock::KIND];
    const UPDATES: TickRate = TickRate::hz(10);
    type Own = Orders;
    type Event = ();
    type Command = NoCommand;

    fn view_of(&self, seat: Seat) -> ViewId {
        ViewId(seat.0 / CREW)
    }

    fn eye(&self, view: ViewId) -> Option<[f32; 3]> {
        let [x, y] = self.craft.get(usize::from(view.0))?.at;
        Some([x, y, 0.0])
    }

    fn show(&self, scene: &mut Scene) {
        for (id, craft) in (0..).zip(&self.craft) {
            let heading = (craft.heading * (1_024.0 / core::f32::consts::TAU)) as i32 & 1_023;
            let at = Vec2::new(craft.at[0], craft.at[1]);
            scene.put(id, None, &Vessel { at, heading: heading as u16, shields: craft.shields });
        }
        for (id, at) in (0..).zip(&self.rocks) {
            scene.put(id, None, &Rock { at: Vec2::new(at[0], at[1]) });
        }
    }

    fn own(&self, _: ViewId) -> Option<Orders> {
        None
    }

    fn predict(_: &mut Orders, _: &Helm, _: &Scene) {}

    fn prediction_error(_: &Orders, _: &Orders) -> PredictionError {
        PredictionError::default()
    }

    fn command(_: &Helm, command: NoCommand, _: &mut Vec<Helm>) {
        match command {}
    }
}

/// A message on its way to the host, or to a player.
struct Mail {
    at: Time,
    player: usize,
    to_host: bool,
    channel: Channel,
    bytes: Vec<u8>,
}

/// The room, its players, and the networks between them.
struct Room {
    now: Time,
    host: Host<Bridge>,
    views: Vec<View<Bridge>>,
    mail: VecDeque<Mail>,
    rng: Rng,
    host_ns: u64,
    buf: Vec<u8>,
}

impl Room {
    fn new() -> Room {
        let config = HostConfig { seats: CREWS * CREW, ..HostConfig::default() };
        let join = |number: u16| JoinAs {
            name: number.to_string(),
            commit: String::new(),
            setup: (),
            seed: 0,
            seats: CREWS * CREW,
            watch: false,
            listed: true,
        };
        let path = Path { rtt_us: 2 * LATENCY_US, ..Path::default() };
        let views = (0..CREWS * CREW).map(|number| View::new(Time::ZERO, &join(number), path)).collect();
        Room {
            now: Time::ZERO,
            host: Host::new(Time::ZERO, &(), config),
            views,
            mail: VecDeque::new(),
            rng: Rng::new(4),
            host_ns: 0,
            buf: Vec::new(),
        }
    }

    /// Sends the content of the buffer. Of unreliable messages one in fifty is lost.
    fn post(&mut self, player: usize, to_host: bool, channel: Channel) {
        let lossy = matches!(channel, Channel::State | Channel::Input);
        if !(lossy && self.rng.chance(1, 50)) {
            let at = self.now.plus_micros(LATENCY_US);
            self.mail.push_back(Mail { at, player, to_host, channel, bytes: self.buf.clone() });
        }
    }

    fn drain_host(&mut self) {
        loop {
            let start = thread_ns();
            let output = self.host.poll_output(&mut self.buf);
            self.host_ns += thread_ns() - start;
            match output {
                host::Output::Send(member, channel) => self.post(member.0 as usize, false, channel),
                host::Output::WakeAt(_) => break,
                _ => {}
            }
        }
    }

    fn drain_view(&mut self, player: usize) {
        loop {
            let view = &mut self.views[player];
            let said = match view.poll_output(&mut self.buf) {
                view::Output::Send(channel) => {
                    self.post(player, true, channel);
                    continue;
                }
                view::Output::WantInput(tick) => {
                    view::Input::Local(Helm { turn: (tick.0 / 100 + player as u32 / 6) as i8 % 3 - 1 })
                }
                view::Output::WantPath => {
                    view::Input::Path(Path { rtt_us: 2 * LATENCY_US, ..Path::default() })
                }
                _ => break,
            };
            view.handle(self.now, said).expect("what was asked for");
        }
    }

    fn deliver(&mut self) {
        while self.mail.front().is_some_and(|mail| mail.at <= self.now) {
            let Some(Mail { player, to_host, channel, bytes, .. }) = self.mail.pop_front() else { return };
            if to_host {
                let start = thread_ns();
                self.host.handle(self.now, host::Input::Message(Member(player as u64), channel, &bytes));
                self.host_ns += thread_ns() - start;
                self.drain_host();
            } else {
                let message = view::Input::Message(channel, &bytes);
                self.views[player].handle(self.now, message).expect("the host speaks the protocol");
            }
        }
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 200 {
            self.now = self.now.plus_micros(5_000);
            self.deliver();
            let start = thread_ns();
            self.host.handle(self.now, host::Input::Timeout);
            self.host_ns += thread_ns() - start;
            self.drain_host();
            for player in 0..self.views.len() {
                self.views[player].handle(self.now, view::Input::Timeout).expect("time passes");
                self.drain_view(player);
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.views.iter().map(|view| view.stats().bytes).sum()
    }
}

/// Measures and prints.
pub fn run() {
    const SECONDS: u64 = 60;
    let mut room = Room::new();
    room.run(10);
    let (bytes, before) = (room.bytes(), room.host.stats());
    room.host_ns = 0;
    room.run(SECONDS);
    let (players, stats) = (room.views.len() as u64, room.host.stats());
    let updates = (stats.updates - before.updates) / u64::from(CREWS);
    let each = (room.bytes() - bytes) as f64 / (players * SECONDS) as f64;
    let lost: u64 = room.views.iter().map(|view| view.stats().lost).sum();
    let entities: usize = room.views.iter().map(|view| view.stats().entities).sum();
    println!("\n| bridge: {players} players in {CREWS} crews, 2 % loss | |\n|---|---:|");
    println!("| entities that a player knows of | {:.1} |", entities as f64 / players as f64);
    println!("| received by a player, bytes a second | {each:.0} |");
    println!("| bytes of an update | {:.1} |", each / 10.0);
    println!(
        "| host, µs an update of all crews, game and inputs included | {:.0} |",
        room.host_ns as f64 / 1e3 / updates as f64
    );
    println!(
        "| updates lost or of no use, of 1,000 | {:.1} |",
        lost as f64 * 1e3 / (players * (SECONDS + 10) * 10) as f64
    );
}
