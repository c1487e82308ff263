//! Entity deltas on generated scenes, beside raw, packed and compressed state.

use sametick_room::delta;
use sametick_room::models::Models;
use sametick_room::snapshot::{Layout, Mark, Snapshot};
use sametick_sim::replica::Entity;
use sametick_sim::{Quat, Tick, Vec3};

use crate::clock::thread_ns;
use crate::physics::Transform;
use crate::references::{Zstd, packed_bits};
use crate::scenes;

/// Steps of 0.01 m, and of less than 0.001 in a component of a rotation.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Ball {
    #[entity(place, step = 0.01)]
    at: Vec3,
    #[entity(step = 11.0)]
    rotation: Quat,
}

/// 512 steps to the metre, components of 9 bits.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Cube {
    #[entity(place, step = 0.001953125)]
    at: Vec3,
    #[entity(step = 9.0)]
    rotation: Quat,
    interacting: bool,
}

impl From<&Transform> for Ball {
    fn from(from: &Transform) -> Ball {
        let ([x, y, z], [a, b, c, d]) = (from.at, from.rotation);
        Ball { at: Vec3::new(x, y, z), rotation: Quat { x: a, y: b, z: c, w: d } }
    }
}

impl From<&Transform> for Cube {
    fn from(from: &Transform) -> Cube {
        let Ball { at, rotation } = from.into();
        Cube { at, rotation, interacting: from.awake }
    }
}

/// Measures and prints everything.
pub fn run() {
    println!(
        "| scene | base | change | raw | packed | zstd | ours, bits | bytes | a moving one, bits | encode ns | decode ns |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for half in [20.0, 10.0] {
        let (frames, bounces) = scenes::bouncing(60, half);
        let name = format!("250 balls, box of {} m, {bounces:.1} bounces a second each", 2.0 * half);
        rows::<Ball>(&name, &frames, [1, 3]);
    }
    let frames = scenes::cubes(60);
    rows::<Cube>("901 cubes", &frames, [1, 6]);
}

/// The rows of a scene, for bases of so many frames before.
fn rows<E: Entity + for<'a> From<&'a Transform>>(name: &str, frames: &[Vec<Transform>], backs: [usize; 2]) {
    let layout = Layout::new(&[E::KIND]);
    let frames = snapshots::<E>(&layout, frames);
    let packed = packed_bits(&frames);
    for back in backs {
        let Measured { entities, changed, bytes, zstd, encode_ns, decode_ns } =
            measure(&layout, &frames, back);
        let of = |what: usize, entities: usize| what as f64 / entities as f64;
        println!(
            "| {name} | {back} | {:.1} % | 224 | {packed} | {:.2} | {:.2} | {:.2} | {:.1} | {:.0} | {:.0} |",
            of(changed * 100, entities),
            of(zstd * 8, entities),
            of(bytes * 8, entities),
            of(bytes, entities),
            of(bytes * 8, changed),
            of(encode_ns as usize, entities),
            of(decode_ns as usize, entities),
        );
    }
}

/// The scene as a host would hold it: an entity's tick is that of its last change.
fn snapshots<E: Entity + for<'a> From<&'a Transform>>(
    layout: &Layout,
    frames: &[Vec<Transform>],
) -> Vec<Snapshot> {
    let mut all: Vec<Snapshot> = Vec::new();
    for (frame, tick) in frames.iter().zip(1..) {
        let mut snapshot = Snapshot::new(layout);
        snapshot.tick = Tick(tick);
        for (id, transform) in (0..).zip(frame) {
            let mut codes = vec![0; E::KIND.width()];
            E::from(transform).put(&mut codes);
            let last = all.last().map(|last| &last.tables[0]);
            let kept = last.filter(|last| last.slots(id as usize) == codes);
            let at = kept.map_or(Tick(tick), |last| last.marks()[id as usize].at);
            snapshot.tables[0].push(Mark { id, zone: 0, at }).copy_from_slice(&codes);
        }
        all.push(snapshot);
    }
    all
}

/// Sums over all deltas but the first, which have no base.
#[derive(Default)]
struct Measured {
    entities: usize,
    /// Those that changed since the base.
    changed: usize,
    bytes: usize,
    zstd: usize,
    encode_ns: u64,
    decode_ns: u64,
}

/// Codes every frame against the one `back` frames before it, with the models that both ends had after that one: any
/// packet in between may be lost. Compares the decoded frame.
fn measure(layout: &Layout, frames: &[Snapshot], back: usize) -> Measured {
    let mut ends = vec![[Models::new(layout), Models::new(layout)]; back];
    let (mut bytes, mut read, none) = (Vec::new(), Snapshot::new(layout), Snapshot::new(layout));
    let (mut sums, mut zstd) = (Measured::default(), Zstd::new());
    for (at, target) in frames.iter().enumerate() {
        let base = at.checked_sub(back).map_or(&none, |at| &frames[at]);
        let [writer, reader] = &mut ends[at % back];
        bytes.clear();
        let start = thread_ns();
        delta::encode(writer, base, target, &mut bytes);
        let encoded = thread_ns();
        delta::decode(reader, base, target.tick, &bytes, &mut read).expect("a delta");
        let decoded = thread_ns();
        assert_eq!(read, *target);
        if at >= back {
            sums.bytes += bytes.len();
            sums.entities += target.len();
            sums.changed += target.tables[0].marks().iter().filter(|mark| mark.at > base.tick).count();
            sums.zstd += zstd.packet(base, target);
            sums.encode_ns += encoded - start;
            sums.decode_ns += decoded - encoded;
        }
    }
    sums
}
