//! Bit packing: golden bytes, round trips, error bounds, and hostile input.

use proptest::prelude::*;
use sametick_wire::bits::{BitReader, BitWriter, MAX_VARINT_GROUP, ReadError, ranged_bits};
use sametick_wire::quantise::{Quantised, Quaternion};

const HEIGHT: Quantised = Quantised::with_step(-10.0, 100.0, 0.25);
const TURN: Quaternion = Quaternion::with_bits(9);

fn packed(write: impl FnOnce(&mut BitWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = BitWriter::new(&mut out);
    write(&mut writer);
    let len = writer.finish();
    assert_eq!(len, out.len());
    out
}

#[test]
fn golden_bytes() {
    assert_eq!(packed(|_| {}), []);
    assert_eq!(packed(|w| w.bool(true)), [0b1]);
    assert_eq!(packed(|w| (0..9).for_each(|_| w.bool(true))), [0xff, 0b1]);
    assert_eq!(
        packed(|w| w.bits(0x1234_5678_9abc_def0, 64)),
        [0xf0, 0xde, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12]
    );
    assert_eq!(
        packed(|w| {
            w.bits(0b101, 3);
            w.bits(0x7ff, 11);
            w.bits(0, 1);
            w.bits(1, 1);
        }),
        [0b1111_1101, 0b1011_1111]
    );
    assert_eq!(
        packed(|w| {
            w.bool(true);
            w.bits(u64::MAX, 64);
        }),
        [255, 255, 255, 255, 255, 255, 255, 255, 1]
    );
    assert_eq!(packed(|w| w.ranged(-3, -10..=10)), [7]);
    assert_eq!(packed(|w| w.ranged(5, 5..=5)), []);
    assert_eq!(packed(|w| w.ranged(i64::MAX, i64::MIN..=i64::MAX)), [255; 8]);
    assert_eq!(packed(|w| w.varint(300, 7)), [0b1010_1100, 0b10], "LEB128 when the groups have seven bits");
    assert_eq!(packed(|w| w.varint(5, 3)), [5]);
    assert_eq!(packed(|w| w.varint(9, 3)), [0b0001_1001]);
    assert_eq!(packed(|w| w.varint_signed(-1, 3)), [1]);
    assert_eq!(packed(|w| w.varint_signed(i64::MIN, 32)), [255, 255, 255, 255, 255, 255, 255, 255, 1]);
    assert_eq!(
        packed(|w| {
            w.bool(true);
            w.bytes(b"hi");
        }),
        [0b101, 0, b'h', b'i']
    );
    assert_eq!(
        packed(|w| {
            w.bool(true);
            w.align();
            w.bool(true);
        }),
        [1, 1]
    );
    assert_eq!(packed(|w| w.quantised(-9.5, &HEIGHT)), [2, 0]);
    assert_eq!(packed(|w| w.quantised(f32::INFINITY, &HEIGHT)), [0xb8, 1]);
    assert_eq!(packed(|w| w.quaternion([0.0, 0.0, 0.0, 1.0], &TURN)), [0xff, 0xfb, 0xf7, 0xf]);
    assert_eq!(packed(|w| w.quaternion([0.5, -0.5, 0.5, -0.5], &TURN)), [0x2c, 0x99, 0xbd, 0x4]);
}

#[test]
fn appends_behind_what_is_there() {
    let mut out = vec![9, 9];
    let mut writer = BitWriter::new(&mut out);
    writer.bits(3, 2);
    assert_eq!(writer.len_bits(), 2);
    assert_eq!(writer.finish(), 1);
    assert_eq!(out, [9, 9, 3]);
}

#[test]
fn ranges_take_the_bits_they_need() {
    for (low, high, bits) in
        [(0, 0, 0), (0, 1, 1), (0, 2, 2), (0, 255, 8), (0, 256, 9), (-1, 1, 2), (i64::MIN, i64::MAX, 64)]
    {
        assert_eq!(ranged_bits(low, high), bits);
    }
}

#[test]
fn readers_refuse_what_no_writer_writes() {
    assert_eq!(BitReader::new(&[]).bool(), Err(ReadError::End));
    assert_eq!(BitReader::new(&[0; 7]).bits(57), Err(ReadError::End));
    assert_eq!(BitReader::new(&[21]).ranged(-10..=10), Err(ReadError::OutOfRange));
    assert_eq!(BitReader::new(&[0x80, 0]).varint(7), Err(ReadError::TooLong), "zero in two groups");
    assert_eq!(BitReader::new(&[0xff; 20]).varint(7), Err(ReadError::OutOfRange));
    assert_eq!(
        BitReader::new(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]).varint(7),
        Err(ReadError::OutOfRange)
    );
    assert_eq!(BitReader::new(&[0xff; 40]).varint(1), Err(ReadError::TooLong));
    assert_eq!(BitReader::new(&[3, 1, 2, 3]).bytes(2), Err(ReadError::TooLong));
    assert_eq!(BitReader::new(&[3, 1, 2]).bytes(3), Err(ReadError::End));
    assert_eq!(BitReader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]).bytes(usize::MAX), Err(ReadError::End));
    assert_eq!(BitReader::new(&[255, 1]).quantised(&HEIGHT), Err(ReadError::OutOfRange));
    assert_eq!(BitReader::new(&[255; 4]).quaternion(&TURN), Err(ReadError::OutOfRange));
    assert_eq!(BitReader::new(&[0, 0]).finish(), Err(ReadError::TooLong));
}

#[test]
fn padding_has_to_be_zero() {
    let read_one = |byte: u8| {
        let bytes = [byte];
        let mut reader = BitReader::new(&bytes);
        reader.bool().and_then(|_| reader.finish())
    };
    assert_eq!(read_one(0b1), Ok(()));
    assert_eq!(read_one(0b11), Err(ReadError::OutOfRange));
    assert_eq!(read_one(0x81), Err(ReadError::OutOfRange));
}

#[test]
#[should_panic(expected = "fit the bits")]
fn writing_too_large_a_value_panics() {
    packed(|w| w.bits(4, 2));
}

#[test]
#[should_panic(expected = "lie in the range")]
fn writing_out_of_range_panics() {
    packed(|w| w.ranged(11, -10..=10));
}

#[test]
fn reading_and_writing_do_not_allocate_in_steady_state() {
    let mut out = Vec::with_capacity(100);
    let counted = allocation_counter::measure(|| {
        let mut writer = BitWriter::new(&mut out);
        writer.ranged(7, 0..=9);
        writer.quaternion([0.1, 0.2, 0.3, 0.4], &TURN);
        writer.bytes(b"in place");
        writer.finish();
        let mut reader = BitReader::new(&out);
        assert_eq!(reader.ranged(0..=9), Ok(7));
        assert!(reader.quaternion(&TURN).is_ok());
        assert_eq!(reader.bytes(8), Ok(&b"in place"[..]));
        assert_eq!(reader.finish(), Ok(()));
    });
    assert_eq!(counted.count_total, 0);
}

/// One value of every kind, with the parameters to read it.
#[derive(Clone, Debug)]
enum Field {
    Bool(bool),
    Bits(u64, u32),
    Ranged(i64, i64, i64),
    Varint(u64, u32),
    Signed(i64, u32),
    Bytes(Vec<u8>),
    Align,
    Height(f32),
    Turn([f32; 4]),
}

impl Field {
    fn write(&self, w: &mut BitWriter<'_>) {
        match *self {
            Field::Bool(value) => w.bool(value),
            Field::Bits(value, n) => w.bits(value, n),
            Field::Ranged(value, low, high) => w.ranged(value, low..=high),
            Field::Varint(value, group) => w.varint(value, group),
            Field::Signed(value, group) => w.varint_signed(value, group),
            Field::Bytes(ref bytes) => w.bytes(bytes),
            Field::Align => w.align(),
            Field::Height(value) => w.quantised(value, &HEIGHT),
            Field::Turn(value) => w.quaternion(value, &TURN),
        }
    }

    /// Reads a field of the same kind. Floats are compared after the rounding with which they are written.
    fn read(&self, r: &mut BitReader<'_>) -> Result<bool, ReadError> {
        Ok(match *self {
            Field::Bool(value) => r.bool()? == value,
            Field::Bits(value, n) => r.bits(n)? == value,
            Field::Ranged(value, low, high) => r.ranged(low..=high)? == value,
            Field::Varint(value, group) => r.varint(group)? == value,
            Field::Signed(value, group) => r.varint_signed(group)? == value,
            Field::Bytes(ref bytes) => r.bytes(40)? == bytes,
            Field::Align => r.align().map(|()| true)?,
            Field::Height(value) => Some(r.quantised(&HEIGHT)?) == HEIGHT.decode(HEIGHT.encode(value)),
            Field::Turn(value) => Some(r.quaternion(&TURN)?) == TURN.decode(TURN.encode(value)),
        })
    }
}

fn any_u64() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64u32).prop_map(|(value, shift)| value >> shift)
}

fn any_field() -> impl Strategy<Value = Field> {
    let bits =
        (any::<u64>(), 0..=64u32).prop_map(|(v, n)| Field::Bits(v.checked_shr(64 - n).unwrap_or(0), n));
    let ranged = any::<[i64; 3]>().prop_map(|mut v| {
        v.sort_unstable();
        Field::Ranged(v[1], v[0], v[2])
    });
    let group = || 1..=MAX_VARINT_GROUP;
    prop_oneof![
        any::<bool>().prop_map(Field::Bool),
        bits,
        ranged,
        (any_u64(), group()).prop_map(|(value, group)| Field::Varint(value, group)),
        (any_u64(), group()).prop_map(|(value, group)| Field::Signed(value as i64, group)),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Field::Bytes),
        Just(Field::Align),
        proptest::num::f32::ANY.prop_map(Field::Height),
        proptest::array::uniform4(-1.0..1.0f32).prop_map(Field::Turn),
    ]
}

/// Directions all over the sphere, including those with equal, zero and tiny components.
fn any_rotation() -> impl Strategy<Value = [f32; 4]> {
    let component = || prop_oneof![4 => -1.0..1.0f32, 1 => Just(0.0), 1 => Just(1.0), 1 => Just(-1.0), 1 => -1e-6..1e-6f32];
    proptest::array::uniform4(component())
        .prop_filter("needs a direction", |q| q.iter().any(|c| c.abs() > 1e-3))
}

fn unit(rotation: [f32; 4]) -> [f64; 4] {
    let rotation = rotation.map(f64::from);
    let length = libm::sqrt(rotation.iter().map(|c| c * c).sum());
    rotation.map(|c| c / length)
}

/// The squared length of the difference between two rotations, independent of their signs.
fn distance_squared(a: [f64; 4], b: [f64; 4]) -> f64 {
    let squared = |sign: f64| a.iter().zip(&b).map(|(a, b)| (a - sign * b) * (a - sign * b)).sum::<f64>();
    let (same, opposite) = (squared(1.0), squared(-1.0));
    if same < opposite { same } else { opposite }
}

proptest! {
    #[test]
    fn fields_round_trip(fields in proptest::collection::vec(any_field(), 0..60)) {
        let bytes = packed(|w| fields.iter().for_each(|field| field.write(w)));
        let mut reader = BitReader::new(&bytes);
        for field in &fields {
            prop_assert_eq!(field.read(&mut reader), Ok(true), "{:?}", field);
        }
        prop_assert!(reader.remaining_bits() < 8);
        prop_assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        fields in proptest::collection::vec(any_field(), 0..60),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut reader = BitReader::new(&bytes);
        for field in &fields {
            let before = reader.remaining_bits();
            if field.read(&mut reader).is_err() {
                break;
            }
            prop_assert!(reader.remaining_bits() <= before);
        }
    }

    #[test]
    fn truncated_fields_are_refused(fields in proptest::collection::vec(any_field(), 1..30), cut in 1..100usize) {
        let bytes = packed(|w| fields.iter().for_each(|field| field.write(w)));
        let mut reader = BitReader::new(&bytes[..bytes.len().saturating_sub(cut)]);
        let mut all = fields.iter().map(|field| field.read(&mut reader));
        let intact = all.by_ref().all(|read| read == Ok(true));
        prop_assert!(!intact || bytes.is_empty());
    }

    #[test]
    fn length_in_bits_is_exact(fields in proptest::collection::vec(any_field(), 0..20)) {
        let mut out = Vec::new();
        let mut writer = BitWriter::new(&mut out);
        fields.iter().for_each(|field| field.write(&mut writer));
        let len_bits = writer.len_bits();
        prop_assert_eq!(writer.finish() as u64, len_bits.div_ceil(8));
    }

    #[test]
    fn quantised_floats_are_off_by_half_a_step(
        min in -1e4..1e4f32, width in 0.01..1e4f32, bits in 1..=20u32, at in 0.0..=1.0f32,
    ) {
        let max = min + width;
        let value = (min + at * width).clamp(min, max);
        let coarse = width / (1 << (bits - 1)) as f32;
        for (quantised, step) in [
            (Quantised::with_bits(min, max, bits), (f64::from(max) - f64::from(min)) / f64::from((1u32 << bits) - 1)),
            (Quantised::with_step(min, max, coarse), f64::from(coarse)),
        ] {
            let read = quantised.decode(quantised.encode(value)).unwrap();
            let rounding = f64::from((min.abs() + max.abs()) * f32::EPSILON);
            prop_assert!((f64::from(read) - f64::from(value)).abs() <= step / 2.0 + rounding);
            prop_assert!((min..=max).contains(&read));
            prop_assert!(quantised.bits() <= bits + 1);
        }
    }

    #[test]
    fn quantised_floats_are_stable_and_clamped(min in -100.0..100.0f32, width in 1.0..1000f32, bits in 1..=12u32) {
        let max = min + width;
        let quantised = Quantised::with_bits(min, max, bits);
        prop_assert_eq!(quantised.bits(), bits);
        for code in 0..1u32 << bits {
            prop_assert_eq!(quantised.encode(quantised.decode(code).unwrap()), code);
        }
        prop_assert_eq!(quantised.decode(1 << bits), None);
        let round_trip = |value| quantised.decode(quantised.encode(value));
        prop_assert_eq!([f32::NAN, f32::NEG_INFINITY, min - 1.0, min].map(round_trip), [Some(min); 4]);
        prop_assert_eq!([f32::INFINITY, f32::MAX, max + 1.0, max].map(round_trip), [Some(max); 4]);
    }

    #[test]
    fn rotations_are_off_by_less_than_two_steps(rotation in any_rotation(), component_bits in 5..=20u32) {
        let quaternion = Quaternion::with_bits(component_bits);
        let read = quaternion.decode(quaternion.encode(rotation)).unwrap();
        let limit = 2.0 * quaternion.step() + 4.0 * f64::from(f32::EPSILON);
        prop_assert!(distance_squared(unit(rotation), read.map(f64::from)) <= limit * limit);
    }

    #[test]
    fn a_rotation_and_its_negative_give_the_same_bits(rotation in any_rotation(), component_bits in 2..=20u32) {
        let quaternion = Quaternion::with_bits(component_bits);
        let code = quaternion.encode(rotation);
        prop_assert_eq!(code, quaternion.encode(rotation.map(|c| -c)));
        prop_assert!(code >> quaternion.bits() == 0);
    }

    #[test]
    fn every_rotation_read_has_length_one(code: u64, component_bits in 2..=20u32) {
        let quaternion = Quaternion::with_bits(component_bits);
        if let Some(read) = quaternion.decode(code & (u64::MAX >> (64 - quaternion.bits()))) {
            let length_squared: f32 = read.iter().map(|c| c * c).sum();
            prop_assert!((length_squared - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn a_rotation_without_direction_is_the_identity() {
    let identity = [0.0, 0.0, 0.0, 1.0];
    for component_bits in 2..=20 {
        let quaternion = Quaternion::with_bits(component_bits);
        for odd in
            [[0.0; 4], [f32::NAN; 4], [1.0, f32::INFINITY, 0.0, 0.0], identity, [0.0, -0.0, 0.0, -1e-40]]
        {
            assert_eq!(quaternion.decode(quaternion.encode(odd)), Some(identity), "{odd:?}");
        }
    }
}
