//! Benchmark of hashing, saving and cloning a state, compared with the bare hash over existing bytes.

use divan::{Bencher, black_box};
use sametick_sim::{Schema, StateHash, Vec3, canon, to_canonical};
use serde::{Deserialize, Serialize};

fn main() {
    divan::main();
}

/// A typical mixture of fields.
#[derive(Clone, Serialize, Deserialize, Schema)]
struct Entity {
    id: u32,
    pos: Vec3,
    velocity: Vec3,
    health: u16,
    owner: Option<u8>,
    cargo: Vec<u16>,
}

fn state(entities: u32) -> Vec<Entity> {
    let at = |n: u32| Vec3::new(n as f32, n as f32 * 0.5, 7.0);
    let entity = |n: u32| Entity {
        id: n,
        pos: at(n),
        velocity: at(n * 3),
        health: 100,
        owner: n.is_multiple_of(3).then_some(n as u8),
        cargo: (0..n as u16 % 5).collect(),
    };
    (0..entities).map(entity).collect()
}

/// About 1 KB and 64 KB of canonical bytes.
const SIZES: [u32; 2] = [30, 1900];

#[divan::bench(args = SIZES)]
fn hash_of_state(bencher: Bencher<'_, '_>, entities: u32) {
    let state = state(entities);
    bencher.bench(|| StateHash::of(black_box(&state)));
}

#[divan::bench(args = SIZES)]
fn save_into_a_buffer_and_hash_that(bencher: Bencher<'_, '_>, entities: u32) {
    let (state, mut bytes) = (state(entities), Vec::new());
    bencher.bench_local(|| {
        bytes.clear();
        canon::encode(black_box(&state), &mut bytes).expect("a state is serialisable");
        StateHash::of_bytes(&bytes)
    });
}

#[divan::bench(args = SIZES)]
fn postcard_alone(bencher: Bencher<'_, '_>, entities: u32) {
    let (state, mut bytes) = (state(entities), Vec::new());
    bencher.bench_local(|| {
        bytes.clear();
        bytes = postcard::to_extend(black_box(&state), core::mem::take(&mut bytes)).expect("as above");
    });
}

#[divan::bench(args = SIZES)]
fn hash_of_bytes(bencher: Bencher<'_, '_>, entities: u32) {
    let bytes = to_canonical(&state(entities)).expect("a state is serialisable");
    bencher
        .counter(divan::counter::BytesCount::of_slice(&bytes))
        .bench(|| StateHash::of_bytes(black_box(&bytes)));
}
