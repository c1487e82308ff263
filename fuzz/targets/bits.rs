//! From any bits, every kind of value is read or refused; a value that is written again gives the same bits, and floats
//! and rotations lie within their bounds.
//!
//! The input: how many operations, one byte for each, then the bits.
#![cfg_attr(fuzzing, no_main)]

use sametick_wire::bits::{BitReader, BitWriter, MAX_VARINT_GROUP, ReadError};
use sametick_wire::quantise::{Quantised, Quaternion};

const RANGES: [(i64, i64); 6] =
    [(0, 0), (0, 1), (-10, 10), (0, 1_000), (i64::MIN, i64::MAX), (i64::MIN, i64::MIN + 2)];

/// Each with its bounds.
const FLOATS: [(Quantised, f32, f32); 4] = [
    (Quantised::with_bits(-1.0, 1.0, 1), -1.0, 1.0),
    (Quantised::with_step(-512.0, 512.0, 1.0 / 512.0), -512.0, 512.0),
    (Quantised::with_bits(f32::MIN, f32::MAX, 32), f32::MIN, f32::MAX),
    (Quantised::with_step(0.0, 1.0, 0.3), 0.0, 1.0),
];

sametick_fuzz::target!(|bytes: &[u8]| {
    let Some((count, rest)) = bytes.split_first() else { return };
    let (operations, bits) = rest.split_at(rest.len().min(usize::from(*count)));
    let (mut reader, mut out) = (BitReader::new(bits), Vec::new());
    let mut writer = BitWriter::new(&mut out);
    for operation in operations {
        let before = reader.clone();
        if read_and_write(*operation, &mut reader, &mut writer).is_err() {
            // What follows an error is unspecified.
            reader = before;
            break;
        }
    }
    let read = bits.len() as u64 * 8 - reader.remaining_bits();
    assert_eq!(writer.len_bits(), read);
    writer.finish();
    let (whole, part) = ((read / 8) as usize, read % 8);
    assert_eq!(out[..whole], bits[..whole]);
    if part > 0 {
        assert_eq!(out[whole], bits[whole] & ((1 << part) - 1));
    }
    let _ = reader.finish();
});

/// Reads one value and writes it again.
fn read_and_write(
    operation: u8,
    reader: &mut BitReader<'_>,
    writer: &mut BitWriter<'_>,
) -> Result<(), ReadError> {
    let argument = u32::from(operation >> 3);
    match operation & 7 {
        0 => writer.bool(reader.bool()?),
        1 => {
            let n = (argument * 2 + 3) % 65;
            writer.bits(reader.bits(n)?, n);
        }
        2 => {
            let (low, high) = RANGES[argument as usize % RANGES.len()];
            writer.ranged(reader.ranged(low..=high)?, low..=high);
        }
        3 => {
            let group = argument % MAX_VARINT_GROUP + 1;
            writer.varint(reader.varint(group)?, group);
        }
        4 => {
            let group = argument % MAX_VARINT_GROUP + 1;
            writer.varint_signed(reader.varint_signed(group)?, group);
        }
        5 => {
            let (float, low, high) = &FLOATS[argument as usize % FLOATS.len()];
            // A rotation of few bits, or a step finer than f32, need not give its code again: the code is copied.
            let code = reader.clone().bits(float.bits())?;
            let value = reader.quantised(float)?;
            assert!((*low..=*high).contains(&value), "{value}");
            writer.bits(code, float.bits());
        }
        6 => {
            let turn = Quaternion::with_bits(argument % 19 + 2);
            let code = reader.clone().bits(turn.bits())?;
            let length: f32 = reader.quaternion(&turn)?.iter().map(|part| part * part).sum();
            assert!((length - 1.0).abs() < 1e-5, "{length}");
            writer.bits(code, turn.bits());
        }
        _ if argument == 0 => {
            reader.align()?;
            writer.align();
        }
        _ => writer.bytes(reader.bytes(argument as usize * 100)?),
    }
    Ok(())
}
