//! Deltas decode to exactly what was encoded, cost nothing when nothing changed, and are safe to decode from any bytes.

use proptest::prelude::*;
use sametick_room::delta::{self, MAX_ENTITIES};
use sametick_room::models::{Family, Models};
use sametick_room::snapshot::{KnownEntities, Layout, Mark, Snapshot};
use sametick_sim::replica::{Code, Entity, Field, Kind, Motion};
use sametick_sim::{Quat, Rng, Tick, Vec3};

#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(zone(near within 10.0 at 10 hz), zone(far within 50.0 at 2 hz))]
struct Body {
    #[entity(place, step = 0.01)]
    at: Vec3,
    #[entity(step = 11.0)]
    rotation: Quat,
    #[entity(turn = 256)]
    heading: u8,
    health: u8,
    #[entity(smooth)]
    score: Option<i16>,
}

#[derive(Clone, Debug, PartialEq, Entity)]
struct Mine {
    exact: [i32; 3],
    armed: bool,
}

fn layout() -> Layout {
    Layout::new(&[Body::KIND, Mine::KIND])
}

fn roll(rng: &mut Rng, below: u32) -> u32 {
    rng.below(below.into()) as u32
}

fn mark(id: u32, tick: u32) -> Mark {
    Mark { id, zone: 0, at: Tick(tick) }
}

/// Encodes and decodes with the models of either end, which end up equal.
fn there_and_back(ends: &mut [Models; 2], base: &Snapshot, target: &Snapshot) -> usize {
    let mut bytes = vec![7; 3];
    delta::encode(&mut ends[0], base, target, &mut bytes);
    assert_eq!(bytes[..3], [7; 3], "what was there stays");
    let mut read = Snapshot::new(&layout());
    read.copy_from(base);
    delta::decode(&mut ends[1], base, target.tick, &bytes[3..], &mut read).expect("a delta");
    assert_eq!(read, *target);
    assert!(ends[0] == ends[1], "both ends expect the same");
    bytes.len() - 3
}

fn new_ends() -> [Models; 2] {
    [Models::new(&layout()), Models::new(&layout())]
}

/// A changing world: things move, turn, jump, stop, appear, disappear, and have arbitrary values.
struct World {
    rng: Rng,
    now: Snapshot,
    bodies: Vec<(u32, Body, Vec3)>,
    next: u32,
    wild: bool,
}

impl World {
    fn new(seed: u64, wild: bool) -> World {
        World { rng: Rng::new(seed), now: Snapshot::new(&layout()), bodies: Vec::new(), next: 3, wild }
    }

    fn step(&mut self, ticks: u32) {
        let tick = self.now.tick + ticks;
        if roll(&mut self.rng, 3) == 0 {
            self.next += 1 + roll(&mut self.rng, 300);
            let speed = Vec3::new(self.real(), self.real(), self.real());
            let body = Body {
                at: Vec3::new(self.real() * 50.0, 0.0, 7.0),
                rotation: Quat::IDENTITY,
                heading: 3,
                health: 100,
                score: None,
            };
            self.bodies.push((self.next, body, speed));
        }
        if roll(&mut self.rng, 20) == 0 && !self.bodies.is_empty() {
            let gone = roll(&mut self.rng, self.bodies.len() as u32) as usize;
            self.bodies.remove(gone);
        }
        let before = self.now.clone();
        self.now.tick = tick;
        for table in &mut self.now.tables {
            table.clear();
        }
        for at in 0..self.bodies.len() {
            self.body(at, ticks, &before.tables[0]);
        }
        self.mines(&before.tables[1]);
    }

    fn real(&mut self) -> f32 {
        roll(&mut self.rng, 2_000) as f32 / 1_000.0 - 1.0
    }

    fn body(&mut self, at: usize, ticks: u32, before: &KnownEntities) {
        let (tick, what) = (self.now.tick, roll(&mut self.rng, 40));
        let (id, body, speed) = &mut self.bodies[at];
        match what {
            0 => speed.y = -speed.y,
            1 => *speed = Vec3::new(0.0, 0.0, 0.0),
            2 => speed.x += 1.5,
            3 => body.health = body.health.wrapping_sub(9),
            4 => body.score = Some(i16::from(body.health) * 100),
            5 => body.score = None,
            _ => {}
        }
        for _ in 0..ticks {
            body.at += *speed;
            let turn = Quat { x: speed.x * 0.1, y: speed.y * 0.1, z: 0.02, w: 1.0 };
            body.rotation = if speed.x == 0.0 { body.rotation } else { turn * body.rotation };
            body.heading = body.heading.wrapping_add((speed.x * 10.0) as i8 as u8);
        }
        let mut slots = [0; 64];
        let slots = &mut slots[..Body::KIND.width()];
        body.put(slots);
        let id = *id;
        if self.wild && roll(&mut self.rng, 8) == 0 {
            let at = roll(&mut self.rng, slots.len() as u32) as usize;
            slots[at] = self.rng.next_u64() as i32;
        }
        let zone = (roll(&mut self.rng, 30) == 0).into();
        let known = before.find(id).ok().map(|at| (before.marks()[at], before.slots(at)));
        let mark = match known {
            Some((mark, codes)) if codes == slots && mark.zone == zone => mark,
            _ => Mark { id, zone, at: Tick(tick.0 - roll(&mut self.rng, 2) * roll(&mut self.rng, 2)) },
        };
        self.now.tables[0].push(mark).copy_from_slice(slots);
    }

    fn mines(&mut self, before: &KnownEntities) {
        let tick = self.now.tick;
        for id in 0..200 {
            let known = before.find(id).ok().map(|at| (before.marks()[at], before.slots(at)));
            match known {
                Some((_, slots)) if roll(&mut self.rng, 300) == 0 => {
                    let mut slots = slots.to_vec();
                    slots[roll(&mut self.rng, 3) as usize] += 1;
                    self.now.tables[1].push(Mark { id, zone: 0, at: tick }).copy_from_slice(&slots);
                }
                Some(_) if roll(&mut self.rng, 2_000) == 0 => {}
                Some((mark, slots)) => self.now.tables[1].push(mark).copy_from_slice(slots),
                None if roll(&mut self.rng, 9) == 0 => {
                    let codes = [id as i32 * 3, 9, i32::MIN, 1];
                    self.now.tables[1].push(Mark { id, zone: 0, at: tick }).copy_from_slice(&codes);
                }
                None => {}
            }
        }
    }
}

/// Every delta builds on the newest packet that arrived, with the models of that packet.
fn lossy_run(seed: u64, wild: bool, updates: u32) -> usize {
    let mut world = World::new(seed, wild);
    let mut held = vec![(Snapshot::new(&layout()), new_ends())];
    let mut bytes = 0;
    for _ in 0..updates {
        let ticks = 1 + roll(&mut world.rng, 4);
        world.step(ticks);
        let base = held.len() - 1 - roll(&mut world.rng, held.len().min(6) as u32) as usize;
        let (base, ends) = &held[base];
        let mut ends = ends.clone();
        bytes += there_and_back(&mut ends, base, &world.now);
        held.push((world.now.clone(), ends));
        held.drain(..held.len().saturating_sub(8));
    }
    bytes
}

#[test]
fn a_world_arrives_whatever_is_lost() {
    for seed in 0..30 {
        lossy_run(seed, false, 150);
    }
}

#[test]
fn codes_that_no_entity_has_arrive_too() {
    for seed in 0..30 {
        lossy_run(seed, true, 80);
    }
}

/// Some motions, each with slots that fit it and slots that do not.
const MOTIONS: [(Motion, Code); 6] = [
    (Motion::Step, Code::Whole { step: 1 }),
    (Motion::Smooth, Code::Real { step: 0.1 }),
    (Motion::Turn(360), Code::Whole { step: 1 }),
    (Motion::Turn(u32::MAX), Code::Whole { step: 1 }),
    (Motion::Rotation, Code::Rotation { bits: 2 }),
    (Motion::Rotation, Code::Rotation { bits: 20 }),
];

fn arbitrary_kind() -> impl Strategy<Value = Kind> {
    let field = (0..MOTIONS.len(), 0u16..6).prop_map(|(motion, slots)| {
        let (motion, code) = MOTIONS[motion];
        Field { name: "", slots, code, motion, zones: 1, hz: None, owner: false, plain: |_, _| None }
    });
    proptest::collection::vec(field, 0..6).prop_map(|fields| Kind {
        name: "",
        feature: "",
        zones: &[],
        fields: fields.leak(),
    })
}

fn arbitrary_code() -> impl Strategy<Value = i32> {
    prop_oneof![4 => -3..4, 2 => -600..600, 1 => any::<i32>(), 1 => Just(i32::MIN), 1 => Just(i32::MAX)]
}

/// For each entity whether it exists, its zone, its age, and its codes.
type Rows = Vec<(u32, u8, u32, Vec<i32>)>;

fn arbitrary_rows() -> impl Strategy<Value = Rows> {
    let id = prop_oneof![8 => 0u32..40, 1 => any::<u32>(), 1 => Just(u32::MAX)];
    let codes = proptest::collection::vec(arbitrary_code(), 30);
    let zone = prop_oneof![5 => Just(0u8), 1 => any::<u8>()];
    let age = prop_oneof![5 => 0u32..3, 1 => 0u32..300, 1 => any::<u32>()];
    proptest::collection::vec((id, zone, age, codes), 0..12)
}

fn fill(layout: &Layout, tick: u32, rows: &[Rows]) -> Snapshot {
    let mut snapshot = Snapshot::new(layout);
    snapshot.tick = Tick(tick);
    for (table, rows) in snapshot.tables.iter_mut().zip(rows) {
        let mut rows = rows.clone();
        rows.sort_by_key(|row| row.0);
        rows.dedup_by_key(|row| row.0);
        for (id, zone, age, codes) in &rows {
            let width = table.width();
            let mark = Mark { id: *id, zone: *zone, at: Tick(tick.wrapping_sub(*age)) };
            table.push(mark).copy_from_slice(&codes[..width]);
        }
    }
    snapshot
}

proptest! {
    #[test]
    fn any_snapshot_follows_from_any_other(
        kinds in proptest::collection::vec(arbitrary_kind(), 1..3),
        steps in proptest::collection::vec((0u32..9, [arbitrary_rows(), arbitrary_rows()]), 1..6),
        start in prop_oneof![Just(0u32), 1_000u32..9_000, Just(u32::MAX - 60)],
    ) {
        let layout = Layout::new(&kinds);
        let (mut base, mut read) = (Snapshot::new(&layout), Snapshot::new(&layout));
        let (mut writer, mut reader) = (Models::new(&layout), Models::new(&layout));
        let mut tick = start;
        for (ticks, rows) in &steps {
            tick += ticks;
            let target = fill(&layout, tick, rows);
            let mut bytes = Vec::new();
            delta::encode(&mut writer, &base, &target, &mut bytes);
            delta::decode(&mut reader, &base, target.tick, &bytes, &mut read).unwrap();
            prop_assert_eq!(&read, &target);
            prop_assert!(writer == reader);
            base = target;
        }
    }

    #[test]
    fn arbitrary_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), seed in 0u64..8) {
        let mut world = World::new(seed, false);
        (0..20).for_each(|_| world.step(3));
        let mut ends = new_ends();
        there_and_back(&mut ends, &Snapshot::new(&layout()), &world.now);
        let mut read = Snapshot::new(&layout());
        for _ in 0..4 {
            // The decoded snapshot becomes the base, as in a client.
            let base = world.now.clone();
            if delta::decode(&mut ends[1], &base, base.tick + 1, &bytes, &mut read).is_ok() {
                prop_assert!(read.tables.iter().all(|table| table.marks().len() <= MAX_ENTITIES));
                world.now = read.clone();
            }
        }
    }
}

#[test]
fn flipped_bits_are_read_or_refused() {
    let mut world = World::new(5, false);
    (0..30).for_each(|_| world.step(2));
    let base = world.now.clone();
    let mut ends = new_ends();
    there_and_back(&mut ends, &Snapshot::new(&layout()), &base);
    world.step(3);
    let mut bytes = Vec::new();
    delta::encode(&mut ends[0], &base, &world.now, &mut bytes);
    let (mut read, mut models) = (Snapshot::new(&layout()), ends[1].clone());
    for bit in 0..bytes.len() * 8 {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        models.copy_from(&ends[1]);
        let _ = delta::decode(&mut models, &base, world.now.tick, &wrong, &mut read);
        models.copy_from(&ends[1]);
        let _ = delta::decode(&mut models, &base, world.now.tick, &bytes[..bit / 8], &mut read);
    }
    models.copy_from(&ends[1]);
    delta::decode(&mut models, &base, world.now.tick, &bytes, &mut read).unwrap();
    assert_eq!(read, world.now, "failed reads leave nothing behind");
}

#[test]
fn an_unchanged_world_costs_nothing() {
    let mut many = Snapshot::new(&layout());
    many.tick = Tick(50);
    for id in 0..10_000 {
        many.tables[0].push(mark(id * 3, 50)).fill(id as i32 % 7);
    }
    let mut ends = new_ends();
    there_and_back(&mut ends, &Snapshot::new(&layout()), &many);
    let mut sizes = Vec::new();
    let mut base = many.clone();
    for tick in 51..400 {
        many.tick = Tick(tick);
        sizes.push(there_and_back(&mut ends, &base, &many));
        base.tick = many.tick;
    }
    let quiet = &sizes[100..];
    assert!(quiet.iter().all(|size| *size <= 1), "{quiet:?}");
    assert!(sizes.iter().sum::<usize>() < 2_000, "{sizes:?}");
}

#[test]
fn too_many_entities_are_refused() {
    let mut many = Snapshot::new(&layout());
    for id in 0..=MAX_ENTITIES as u32 {
        many.tables[1].push(mark(id, 0));
    }
    let (empty, mut bytes) = (Snapshot::new(&layout()), Vec::new());
    delta::encode(&mut Models::new(&layout()), &empty, &many, &mut bytes);
    let mut read = Snapshot::new(&layout());
    assert!(delta::decode(&mut Models::new(&layout()), &empty, Tick(0), &bytes, &mut read).is_err());
}

#[test]
fn a_delta_is_a_small_part_of_a_full_update() {
    let (mut full, mut deltas) = (0, 0);
    let mut world = World::new(9, false);
    let mut ends = new_ends();
    for update in 0..200 {
        let base = world.now.clone();
        world.step(3);
        let size = there_and_back(&mut ends, &base, &world.now);
        if update > 50 {
            deltas += size;
            full += there_and_back(&mut new_ends(), &Snapshot::new(&layout()), &world.now);
        }
    }
    assert!(deltas * 5 < full * 2, "{deltas} of {full}");
}

#[test]
fn no_allocation_in_steady_state() {
    let mut world = World::new(2, false);
    let mut run = Vec::new();
    for _ in 0..120 {
        world.step(2);
        run.push(world.now.clone());
    }
    let (mut writer, mut reader) = (Models::new(&layout()), Models::new(&layout()));
    let (mut bytes, mut read) = (Vec::with_capacity(64 * 1_024), Snapshot::new(&layout()));
    let mut spare = writer.clone();
    let mut play = || {
        writer.reset();
        reader.reset();
        for pair in run.windows(2) {
            bytes.clear();
            spare.copy_from(&writer);
            core::mem::swap(&mut spare, &mut writer);
            delta::encode(&mut writer, &pair[0], &pair[1], &mut bytes);
            delta::decode(&mut reader, &pair[0], pair[1].tick, &bytes, &mut read).unwrap();
        }
    };
    let first = allocation_counter::measure(&mut play);
    assert!(first.count_total > 0, "the counter counts");
    // Again: after an odd number of deltas the buffers are swapped.
    play();
    assert_eq!(allocation_counter::measure(&mut play).count_total, 0);
}

#[test]
fn a_copy_is_the_same_whatever_both_have_learnt_before() {
    let mut rng = Rng::new(7);
    let family = Family::new(&layout());
    // Models of another family are copied too, as a whole.
    let mut all: Vec<Models> = (0..5).map(|_| Models::of(&family)).collect();
    all.push(Models::new(&layout()));
    let (mut world, mut read) = (World::new(3, false), Snapshot::new(&layout()));
    for _ in 0..2_000 {
        let (at, from) = (rng.below(6) as usize, rng.below(6) as usize);
        match rng.below(8) {
            0 => all[at].reset(),
            1 => {
                // Arbitrary bytes, which leave the models in an arbitrary state.
                let bytes: Vec<u8> = (0..20).map(|_| rng.below(256) as u8).collect();
                let _ = delta::decode(&mut all[at], &world.now, world.now.tick + 1, &bytes, &mut read);
            }
            2 | 3 => {
                let base = world.now.clone();
                world.step(1);
                delta::encode(&mut all[at], &base, &world.now, &mut Vec::new());
            }
            _ if at != from => {
                let other = all[from].clone();
                all[at].copy_from(&other);
                assert_eq!(all[at], all[from]);
            }
            _ => {}
        }
    }
}
