//! The cost of bit packing compared with copying whole values, in the same run. Rates are per item.
//!
//! `cargo bench -p sametick-wire --bench bits`

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use sametick_sim::Rng;
use sametick_wire::bits::{BitReader, BitWriter};
use sametick_wire::quantise::{Quantised, Quaternion};

const ITEMS: usize = 10_000;
const POSITION: Quantised = Quantised::with_step(-512.0, 512.0, 1.0 / 512.0);
const TURN: Quaternion = Quaternion::with_bits(9);

fn main() {
    divan::main();
}

/// One of each kind of field a game sends; four fields count as four items.
#[derive(Clone, Copy)]
struct Mixed {
    alive: bool,
    health: i64,
    score: u64,
    height: f32,
}

fn mixed() -> Vec<Mixed> {
    let mut rng = Rng::new(1);
    let one = |_| Mixed {
        alive: rng.chance(1, 2),
        health: rng.below(101) as i64,
        score: rng.next_u64() >> rng.below(50).max(14),
        height: rng.unit_f32() * 1000.0 - 500.0,
    };
    (0..ITEMS / 4).map(one).collect()
}

fn integers() -> Vec<u32> {
    let mut rng = Rng::new(2);
    (0..ITEMS).map(|_| rng.below(1_000) as u32).collect()
}

fn rotations() -> Vec<[f32; 4]> {
    let mut rng = Rng::new(3);
    (0..ITEMS).map(|_| [0; 4].map(|_| rng.unit_f32() - 0.5)).collect()
}

/// Measures `write` into a vector that has grown already, as in steady state.
fn bench_write(bencher: Bencher<'_, '_>, mut write: impl FnMut(&mut Vec<u8>)) {
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(ITEMS)).bench_local(|| {
        out.clear();
        write(&mut out);
        black_box(out.len())
    });
}

fn bench_read<R>(bencher: Bencher<'_, '_>, bytes: &[u8], mut read: impl FnMut(&[u8]) -> R) {
    bencher.counter(ItemsCount::new(ITEMS)).bench_local(|| read(black_box(bytes)));
}

fn packed(write: impl FnOnce(&mut BitWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = BitWriter::new(&mut out);
    write(&mut writer);
    writer.finish();
    out
}

/// References: the same amount of data in whole bytes.
mod reference {
    use super::*;

    #[divan::bench]
    fn memcpy_u32(bencher: Bencher<'_, '_>) {
        let bytes: Vec<u8> = integers().iter().flat_map(|value| value.to_le_bytes()).collect();
        bench_write(bencher, |out| out.extend_from_slice(black_box(&bytes)));
    }

    #[divan::bench]
    fn write_u32(bencher: Bencher<'_, '_>) {
        let values = integers();
        bench_write(bencher, |out| {
            values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        });
    }

    #[divan::bench]
    fn read_u32(bencher: Bencher<'_, '_>) {
        let bytes: Vec<u8> = integers().iter().flat_map(|value| value.to_le_bytes()).collect();
        bench_read(bencher, &bytes, |bytes| {
            bytes.as_chunks::<4>().0.iter().map(|four| u64::from(u32::from_le_bytes(*four))).sum::<u64>()
        });
    }

    #[divan::bench]
    fn write_mixed(bencher: Bencher<'_, '_>) {
        let values = mixed();
        bench_write(bencher, |out| {
            for value in &values {
                out.push(u8::from(value.alive));
                out.push(value.health as u8);
                out.extend_from_slice(&value.score.to_le_bytes());
                out.extend_from_slice(&value.height.to_le_bytes());
            }
        });
    }

    #[divan::bench]
    fn write_quaternion(bencher: Bencher<'_, '_>) {
        let values = rotations();
        let write = |out: &mut Vec<u8>, rotation: &[f32; 4]| {
            rotation.iter().for_each(|component| out.extend_from_slice(&component.to_le_bytes()));
        };
        bench_write(bencher, |out| values.iter().for_each(|rotation| write(out, rotation)));
    }
}

fn write_mixed_fields(writer: &mut BitWriter<'_>, values: &[Mixed]) {
    for value in values {
        writer.bool(value.alive);
        writer.ranged(value.health, 0..=100);
        writer.varint(value.score, 7);
        writer.quantised(value.height, &POSITION);
    }
}

#[divan::bench]
fn write_mixed(bencher: Bencher<'_, '_>) {
    let values = mixed();
    bench_write(bencher, |out| {
        let mut writer = BitWriter::new(out);
        write_mixed_fields(&mut writer, &values);
        writer.finish();
    });
}

#[divan::bench]
fn read_mixed(bencher: Bencher<'_, '_>) {
    let bytes = packed(|writer| write_mixed_fields(writer, &mixed()));
    bench_read(bencher, &bytes, |bytes| {
        let mut reader = BitReader::new(bytes);
        for _ in 0..ITEMS / 4 {
            black_box(reader.bool().unwrap());
            black_box(reader.ranged(0..=100).unwrap());
            black_box(reader.varint(7).unwrap());
            black_box(reader.quantised(&POSITION).unwrap());
        }
    });
}

#[divan::bench]
fn write_ranged(bencher: Bencher<'_, '_>) {
    let values = integers();
    bench_write(bencher, |out| {
        let mut writer = BitWriter::new(out);
        values.iter().for_each(|&value| writer.ranged(i64::from(value), 0..=999));
        writer.finish();
    });
}

#[divan::bench]
fn read_ranged(bencher: Bencher<'_, '_>) {
    let bytes =
        packed(|writer| integers().iter().for_each(|&value| writer.ranged(i64::from(value), 0..=999)));
    bench_read(bencher, &bytes, |bytes| {
        let mut reader = BitReader::new(bytes);
        (0..ITEMS).map(|_| reader.ranged(0..=999).unwrap()).sum::<i64>()
    });
}

#[divan::bench]
fn write_quaternion(bencher: Bencher<'_, '_>) {
    let values = rotations();
    bench_write(bencher, |out| {
        let mut writer = BitWriter::new(out);
        values.iter().for_each(|&rotation| writer.quaternion(rotation, &TURN));
        writer.finish();
    });
}

#[divan::bench]
fn read_quaternion(bencher: Bencher<'_, '_>) {
    let bytes = packed(|writer| rotations().iter().for_each(|&rotation| writer.quaternion(rotation, &TURN)));
    bench_read(bencher, &bytes, |bytes| {
        let mut reader = BitReader::new(bytes);
        (0..ITEMS).for_each(|_| {
            black_box(reader.quaternion(&TURN).unwrap());
        });
    });
}
