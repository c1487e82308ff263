//! A host, views and the bad network between them, in one process and in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use sametick_room::host::{self, Host, HostConfig};
use sametick_room::view::{self, JoinAs, View};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::replica::{Entity, Hosted, Scene, ViewId};
use sametick_sim::{Rng, Tick, Time};
use sametick_wire::netem::Profile;
use sametick_wire::pacer::Path;
use sametick_wire::pair::{Pair, Side};
use sametick_wire::{Carrier, Channel, Member};

use crate::field::{Drifter, FAR, Field, Happening, MARCHERS, NEAR, Setup, Step, Stone, Walker};

/// Somebody who plays, and the link they do it over.
pub struct Player {
    pub member: Member,
    pub view: View<Field>,
    pub pair: Pair,
    pub gone: bool,
    looks_at: Time,
    /// Where those who never turn were shown last.
    marchers: BTreeMap<u32, [i32; 2]>,
    rng: Rng,
    walking: Step,
    turn_at: Tick,
    pub still: bool,
    pub heard: Vec<(Tick, Happening)>,
    updates: u64,
}

pub struct World {
    pub now: Time,
    pub host: Host<Field>,
    pub players: Vec<Player>,
    profile: Profile,
    seed: u64,
    host_at: Time,
    next: u64,
    pub records: Vec<Record>,
    /// The states of the last seconds, for those who look back.
    pub past: BTreeMap<Tick, Field>,
    /// What each view may have learnt of walkers so far: how often they shouted, while they were near; and what is in
    /// their purse, if they are its own.
    near: BTreeSet<(ViewId, u32, u16)>,
    /// Everything that was shown to be true, for counting.
    pub checked: u64,
}

impl World {
    pub fn new(seed: u64, profile: &str, setup: &Setup, config: HostConfig) -> World {
        World {
            now: Time::ZERO,
            host: Host::new(Time::ZERO, setup, config),
            players: Vec::new(),
            profile: profile.parse().unwrap(),
            seed,
            host_at: Time::ZERO,
            next: 0,
            records: Vec::new(),
            past: BTreeMap::new(),
            near: BTreeSet::new(),
            checked: 0,
        }
    }

    fn pair(&mut self) -> Pair {
        let seed = self.seed.wrapping_mul(1_000).wrapping_add(self.next);
        let mut pair = Pair::new(Carrier::Datagrams, self.profile, seed);
        pair.run_until(self.now);
        pair
    }

    pub fn join(&mut self) -> usize {
        let mut pair = self.pair();
        let join = JoinAs {
            name: format!("player {}", self.next),
            commit: String::new(),
            setup: Setup::default(),
            seed: 0,
            seats: 16,
            watch: false,
            listed: true,
        };
        let path = Path::from(pair.link(Side::A).stats());
        self.players.push(Player {
            member: Member(self.next),
            view: View::new(self.now, &join, path),
            pair,
            gone: false,
            looks_at: self.now,
            marchers: BTreeMap::new(),
            rng: Rng::new(self.seed ^ self.next << 32),
            walking: Step::default(),
            turn_at: Tick::ZERO,
            still: false,
            heard: Vec::new(),
            updates: 0,
        });
        self.next += 1;
        self.players.len() - 1
    }

    /// Comes back over another link.
    pub fn rejoin(&mut self, index: usize) {
        let mut pair = self.pair();
        let player = &mut self.players[index];
        let path = Path::from(pair.link(Side::A).stats());
        (player.member, player.pair, player.gone) = (Member(self.next), pair, false);
        player.view.rejoin(self.now, path);
        self.next += 1;
    }

    /// The host is told that somebody has gone; or nobody is, and the link is just cut.
    pub fn leave(&mut self, index: usize, said: bool) {
        self.players[index].gone = true;
        if said {
            self.host.handle(self.now, host::Input::Closed(self.players[index].member, Leaving::Left));
            self.drain_host();
        }
    }

    pub fn set_profile(&mut self, profile: &str) {
        self.profile = profile.parse().unwrap();
        for player in &mut self.players {
            player.pair.set_profile(self.profile);
        }
    }

    pub fn run_millis(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now.plus_micros(1_000);
            if self.host_at <= self.now {
                self.host.handle(self.now, host::Input::Timeout);
                self.drain_host();
            }
            for index in 0..self.players.len() {
                if !self.players[index].gone {
                    self.run_player(index);
                }
            }
        }
    }

    fn run_player(&mut self, index: usize) {
        let now = self.now;
        self.players[index].pair.run_until(now);
        for (channel, bytes) in self.players[index].pair.take(Side::A) {
            self.players[index].view.handle(now, view::Input::Message(channel, &bytes)).unwrap();
            if channel == Channel::State {
                self.check_update(index);
                self.check_crew(index);
            }
        }
        let player = &mut self.players[index];
        player.drain(now);
        let member = player.member;
        for (channel, bytes) in player.pair.take(Side::B) {
            self.host.handle(now, host::Input::Message(member, channel, &bytes));
        }
        self.drain_host();
        if self.players[index].looks_at <= now {
            self.players[index].looks_at = now.plus_micros(16_000);
            self.players[index].look(now);
        }
    }

    fn drain_host(&mut self) {
        let mut buf = Vec::new();
        loop {
            match self.host.poll_output(&mut buf) {
                host::Output::Send(member, channel) => {
                    let found =
                        self.players.iter_mut().find(|player| player.member == member && !player.gone);
                    if let Some(player) = found {
                        player.pair.send(Side::B, channel, &buf);
                    }
                }
                host::Output::Close(..) => {}
                host::Output::Record(record) => self.records.push(record),
                host::Output::Stepped(tick) => {
                    self.records.push(Record::Inputs(self.host.inputs().clone()));
                    self.remember(tick);
                }
                host::Output::WakeAt(at) => {
                    self.host_at = at;
                    break;
                }
            }
        }
    }

    fn remember(&mut self, tick: Tick) {
        let state = self.host.state();
        let views: BTreeSet<ViewId> =
            state.walkers.iter().flatten().map(|walker| ViewId(walker.crew)).collect();
        for view in views {
            for (id, walker) in (0..).zip(&state.walkers) {
                let Some(walker) = walker else { continue };
                if distance(state.eye(view), walker.at) <= NEAR * EDGE {
                    self.near.insert((view, id, walker.shouts));
                }
            }
        }
        self.past.insert(tick, state.clone());
        self.past.retain(|past, _| tick.ticks_since(*past) < 240);
    }

    /// What has just come over the wire speaks of nothing that is out of sight.
    fn check_update(&mut self, index: usize) {
        let view = &self.players[index].view;
        if view.stats().updates == self.players[index].updates {
            return;
        }
        let (Some(seat), Some(then)) = (view.seat(), self.past.get(&view.newest_tick())) else { return };
        let id = then.view_of(seat);
        let eye = then.eye(id);
        for (walker, shown) in view.newest().iter::<Walker>() {
            let truth = then.walker(walker as u16).expect("who is gone is not told of");
            assert!(distance(eye, truth.at) <= FAR * EDGE, "walker {walker} is out of sight");
            assert!(
                shown.shouts == 0 || self.near.contains(&(id, walker, shown.shouts)),
                "what only those near may know"
            );
            assert!(shown.purse == 0 || truth.crew == id.0, "the purse of {walker}");
            self.checked += 1;
        }
        for (drifter, _) in view.newest().iter::<Drifter>() {
            assert!(
                distance(eye, then.drifters[drifter as usize].at) <= FAR * EDGE,
                "drifter {drifter} is out of sight"
            );
            self.checked += 1;
        }
        for (number, stone) in view.newest().iter::<Stone>() {
            assert!(distance(eye, stone.at) <= FAR * EDGE, "stone {number} is out of sight");
            assert!(then.stones.contains(&(number, stone.at)), "stone {number} is gone");
            self.checked += 1;
        }
        self.players[index].updates = view.stats().updates;
    }

    /// Two who share a view and have the same update have the same.
    fn check_crew(&mut self, index: usize) {
        let view = &self.players[index].view;
        let same = |other: &&Player| {
            !other.gone
                && other.view.view_id() == view.view_id()
                && other.view.newest_tick() == view.newest_tick()
                && other.view.stats().updates > 0
                && view.stats().updates > 0
        };
        for other in self.players.iter().filter(same) {
            assert!(
                other
                    .view
                    .newest()
                    .tables()
                    .iter()
                    .zip(view.newest().tables())
                    .all(|(a, b)| a.iter().eq(b.iter()))
            );
            assert_eq!(other.view.newest_own(), view.newest_own());
        }
    }
}

impl Player {
    fn drain(&mut self, now: Time) {
        let mut buf = Vec::new();
        self.view.handle(now, view::Input::Timeout).unwrap();
        loop {
            match self.view.poll_output(&mut buf) {
                view::Output::Send(channel) => self.pair.send(Side::A, channel, &buf),
                view::Output::WantInput(tick) => {
                    let input = self.act(tick);
                    self.view.handle(now, view::Input::Local(input)).unwrap();
                }
                view::Output::WantPath => {
                    let path = Path::from(self.pair.link(Side::A).stats());
                    self.view.handle(now, view::Input::Path(path)).unwrap();
                }
                view::Output::WakeAt(_) | view::Output::Wait => break,
            }
        }
    }

    /// Turns about every half second, and shouts now and then.
    fn act(&mut self, tick: Tick) -> Step {
        if self.still {
            return Step::default();
        }
        if tick >= self.turn_at {
            self.turn_at = tick + 10 + self.rng.below(10) as u32;
            let mut way = || self.rng.below(3) as i8 - 1;
            self.walking = Step { dx: way(), dy: way(), shout: false, place: 0 };
        }
        Step { shout: self.rng.chance(1, 40), ..self.walking }
    }

    /// Who never turns is never shown to step back.
    fn look(&mut self, now: Time) {
        self.view.look(now);
        while let Some(event) = self.view.poll_event() {
            self.heard.push(event);
        }
        let before = std::mem::take(&mut self.marchers);
        for (id, _, drifter) in self.view.shown::<Drifter>().filter(|(id, ..)| *id < MARCHERS as u32) {
            if let Some(before) = before.get(&id) {
                let back = before[0] > drifter.at[0] || before[1] > drifter.at[1];
                assert!(!back, "drifter {id} steps back from {before:?} to {:?}", drifter.at);
            }
            self.marchers.insert(id, drifter.at);
        }
    }
}

/// Nobody flickers on the edge of a zone: it is this much farther out for who is in it.
const EDGE: f32 = 1.1001;

pub fn distance(eye: Option<[f32; 3]>, at: [i32; 2]) -> f32 {
    let Some([x, y, _]) = eye else { return f32::INFINITY };
    let [x, y] = [at[0] as f32 - x, at[1] as f32 - y];
    (x * x + y * y).sqrt()
}

/// The entities of a state as everyone near would have them.
pub fn truth<E: Entity>(state: &Field) -> BTreeMap<u32, E> {
    let mut scene = Scene::new(Field::KINDS);
    state.show(&mut scene);
    scene.iter::<E>().collect()
}
