//! Invariants that are checked of every view while a trial runs.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use sametick_room::pair::{Player, Trial, Watch};
use sametick_room::{Host, HostConfig};
use sametick_sim::replica::{Entity, Hosted, Scene, ViewId};
use sametick_sim::{Rng, Tick};

use crate::field::{Drifter, FAR, Field, Happening, MARCHERS, NEAR, Setup, Step, Stone, Walker};

/// A trial of the field, and its checks.
pub struct World {
    pub trial: Trial<Field>,
    pub checks: Checks,
    seed: u64,
    still: Rc<Cell<bool>>,
}

/// The expected state of the views.
#[derive(Default)]
pub struct Checks {
    /// The states of the last seconds.
    pub past: BTreeMap<Tick, Field>,
    /// How often walkers had shouted while they were near a view: all that it may have heard.
    near: BTreeSet<(ViewId, u32, u16)>,
    /// Where walkers who never turn were last shown, to each player.
    marchers: BTreeMap<(usize, u32), [i32; 2]>,
    /// The events each player has received.
    pub heard: BTreeMap<usize, Vec<(Tick, Happening)>>,
    /// The number of entities in updates that were compared.
    pub checked: u64,
}

impl Deref for World {
    type Target = Trial<Field>;

    fn deref(&self) -> &Trial<Field> {
        &self.trial
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Trial<Field> {
        &mut self.trial
    }
}

impl World {
    pub fn new(seed: u64, profile: &str, setup: &Setup, config: HostConfig) -> World {
        let trial = Trial::new(seed, profile.parse().unwrap(), setup, config);
        World { trial, checks: Checks::default(), seed, still: Rc::default() }
    }

    /// A player joins who turns about every half second, and shouts now and then.
    pub fn join(&mut self) -> usize {
        let mut rng = Rng::new(self.seed ^ (self.players.len() as u64) << 32);
        let (mut walking, mut turn_at, still) = (Step::default(), Tick::ZERO, self.still.clone());
        self.trial.join(&Setup::default(), move |_, tick| {
            if still.get() {
                return Step::default();
            }
            if tick >= turn_at {
                turn_at = tick + 10 + rng.below(10) as u32;
                let mut way = || rng.below(3) as i8 - 1;
                walking = Step { dx: way(), dy: way(), shout: false, place: 0 };
            }
            Step { shout: rng.chance(1, 40), ..walking }
        })
    }

    /// All walkers stand still from now on.
    pub fn stand_still(&mut self) {
        self.still.set(true);
    }

    pub fn set_profile(&mut self, profile: &str) {
        self.trial.set_profile(profile.parse().unwrap());
    }

    pub fn run_millis(&mut self, ms: u64) {
        self.trial.run_millis(ms, &mut self.checks);
    }
}

impl Watch<Field> for Checks {
    fn stepped(&mut self, host: &Host<Field>) {
        let (tick, state) = (host.tick(), host.state());
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

    /// A received update has nothing that is out of sight; and two members of a view that have the same update have the
    /// same content.
    fn updated(&mut self, players: &[Player<Field>], index: usize) {
        let view = &players[index].view;
        let (Some(seat), Some(then)) = (view.seat(), self.past.get(&view.newest_tick())) else { return };
        let id = then.view_of(seat);
        let eye = then.eye(id);
        for (walker, shown) in view.newest().iter::<Walker>() {
            let truth = then.walker(walker as u16).expect("a walker in an update exists");
            assert!(distance(eye, truth.at) <= FAR * EDGE, "walker {walker} is out of sight");
            let may_know = shown.shouts == 0 || self.near.contains(&(id, walker, shown.shouts));
            assert!(may_know, "what only those near may know");
            assert!(shown.purse == 0 || truth.crew == id.0, "the purse of {walker}");
            self.checked += 1;
        }
        for (drifter, _) in view.newest().iter::<Drifter>() {
            let away = distance(eye, then.drifters[drifter as usize].at);
            assert!(away <= FAR * EDGE, "drifter {drifter} is out of sight");
            self.checked += 1;
        }
        for (number, stone) in view.newest().iter::<Stone>() {
            assert!(distance(eye, stone.at) <= FAR * EDGE, "stone {number} is out of sight");
            assert!(then.stones.contains(&(number, stone.at)), "stone {number} is gone");
            self.checked += 1;
        }
        let shares = |other: &&Player<Field>| {
            let their = other.view.seat().map(|seat| then.view_of(seat));
            !other.gone && their == Some(id) && other.view.newest_tick() == view.newest_tick()
        };
        for other in players.iter().filter(shares) {
            let mut tables = other.view.newest().tables().iter().zip(view.newest().tables());
            assert!(tables.all(|(a, b)| a.iter().eq(b.iter())), "a crew sees one thing");
            assert_eq!(other.view.newest_own(), view.newest_own());
        }
    }

    /// A walker who never turns is never shown to step back.
    fn looked(&mut self, player: &mut Player<Field>, index: usize) {
        while let Some(event) = player.view.poll_event() {
            self.heard.entry(index).or_default().push(event);
        }
        let before = std::mem::take(&mut self.marchers);
        self.marchers.extend(before.iter().filter(|((whose, _), _)| *whose != index));
        for (id, _, drifter) in player.view.shown::<Drifter>().filter(|(id, ..)| *id < MARCHERS as u32) {
            if let Some(before) = before.get(&(index, id)) {
                let back = before[0] > drifter.at[0] || before[1] > drifter.at[1];
                assert!(!back, "drifter {id} steps back from {before:?} to {:?}", drifter.at);
            }
            self.marchers.insert((index, id), drifter.at);
        }
    }
}

/// Entities do not flicker on the edge of a zone: for leaving, the edge is this much farther out.
const EDGE: f32 = 1.1001;

pub fn distance(eye: Option<[f32; 3]>, at: [i32; 2]) -> f32 {
    let Some([x, y, _]) = eye else { return f32::INFINITY };
    let [x, y] = [at[0] as f32 - x, at[1] as f32 - y];
    (x * x + y * y).sqrt()
}

/// The entities of a state as every near view would have them.
pub fn truth<E: Entity>(state: &Field) -> BTreeMap<u32, E> {
    let mut scene = Scene::new(Field::KINDS);
    state.show(&mut scene);
    scene.iter::<E>().collect()
}
