//! Generates random values of a type from its schema alone.

use sametick_sim::schema::{DataModelType, DataModelVariant, NamedType};
use sametick_sim::{Rng, Schema, from_canonical};
use serde::de::DeserializeOwned;

/// How often to retry when a type refuses a value that fits its schema.
const TRIES: usize = 64;

/// How long sequences, maps and texts are, at most: the input of one seat is small.
const MAX_ITEMS: u64 = 4;

/// How wide the generated numbers are.
#[derive(Clone, Copy)]
pub enum Width {
    /// As wide as their type.
    Full,
    /// Small, except 64-bit numbers, which are seeds: the size of a world should not be four thousand million.
    Small,
}

/// A random value of a type. `None` if every attempt was refused.
pub fn value<T: Schema + DeserializeOwned>(rng: &mut Rng, width: Width) -> Option<T> {
    (0..TRIES).find_map(|_| {
        let mut bytes = Vec::new();
        add(T::SCHEMA, rng, width, &mut bytes);
        from_canonical(&bytes).ok()
    })
}

fn add(of: &NamedType, rng: &mut Rng, width: Width, out: &mut Vec<u8>) {
    match of.ty {
        DataModelType::Bool => out.push(rng.below(2) as u8),
        DataModelType::I8 | DataModelType::U8 => out.push(number(rng, 8) as u8),
        DataModelType::I16 | DataModelType::U16 => add_number(rng, narrow(width, 16), out),
        DataModelType::I32 | DataModelType::U32 => add_number(rng, narrow(width, 32), out),
        DataModelType::Usize | DataModelType::Isize => add_number(rng, 8, out),
        DataModelType::I64 | DataModelType::U64 => add_number(rng, 64, out),
        DataModelType::I128 | DataModelType::U128 => add_number(rng, 64, out),
        DataModelType::F32 => out.extend(float(rng).to_le_bytes()),
        DataModelType::F64 => out.extend(f64::from(float(rng)).to_le_bytes()),
        DataModelType::Char => add_text(1, rng, out),
        DataModelType::String | DataModelType::ByteArray => add_text(rng.below(MAX_ITEMS), rng, out),
        DataModelType::Unit | DataModelType::UnitStruct | DataModelType::Schema => {}
        DataModelType::Option(inner) => {
            let there = rng.chance(1, 2);
            out.push(u8::from(there));
            if there {
                add(inner, rng, width, out);
            }
        }
        DataModelType::NewtypeStruct(inner) => add(inner, rng, width, out),
        DataModelType::Seq(item) => {
            let count = add_count(rng, out);
            (0..count).for_each(|_| add(item, rng, width, out));
        }
        DataModelType::Map { key, val } => {
            let count = add_count(rng, out);
            (0..count).for_each(|_| [key, val].into_iter().for_each(|of| add(of, rng, width, out)));
        }
        DataModelType::Tuple(places) | DataModelType::TupleStruct(places) => {
            places.iter().for_each(|place| add(place, rng, width, out));
        }
        DataModelType::Struct(fields) => fields.iter().for_each(|field| add(field.ty, rng, width, out)),
        DataModelType::Enum(variants) => {
            let chosen = rng.below(variants.len() as u64);
            add_varint(chosen, out);
            match variants.get(chosen as usize).map(|variant| variant.ty) {
                None | Some(DataModelVariant::UnitVariant) => {}
                Some(DataModelVariant::NewtypeVariant(inner)) => add(inner, rng, width, out),
                Some(DataModelVariant::TupleVariant(places)) => {
                    places.iter().for_each(|place| add(place, rng, width, out));
                }
                Some(DataModelVariant::StructVariant(fields)) => {
                    fields.iter().for_each(|field| add(field.ty, rng, width, out));
                }
            }
        }
    }
}

fn narrow(width: Width, bits: u64) -> u64 {
    match width {
        Width::Full => bits,
        Width::Small => bits.min(6),
    }
}

/// Small numbers are as frequent as large ones: most edge cases are near zero.
fn number(rng: &mut Rng, bits: u64) -> u64 {
    match rng.below(bits + 1) {
        0 => 0,
        used => rng.next_u64() >> (64 - used),
    }
}

fn add_number(rng: &mut Rng, bits: u64, out: &mut Vec<u8>) {
    add_varint(number(rng, bits), out);
}

fn float(rng: &mut Rng) -> f32 {
    let unit = rng.unit_f32() * 2.0 - 1.0;
    [0.0, 1.0, -1.0, unit, unit, unit * 100.0][rng.below(6) as usize]
}

fn add_count(rng: &mut Rng, out: &mut Vec<u8>) -> u64 {
    let count = rng.below(MAX_ITEMS);
    add_varint(count, out);
    count
}

fn add_text(len: u64, rng: &mut Rng, out: &mut Vec<u8>) {
    add_varint(len, out);
    out.extend((0..len).map(|_| b'a' + rng.below(26) as u8));
}

fn add_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize, Schema)]
    struct Rich {
        flag: bool,
        small: (u8, i8),
        wide: (u16, i32, u64, i128),
        real: (f32, f64),
        text: (char, String),
        list: Vec<Option<u16>>,
        map: BTreeMap<u8, String>,
        choice: Choice,
    }

    #[derive(Debug, PartialEq, Deserialize, Schema)]
    enum Choice {
        Nothing,
        One(u8),
        Two(u8, bool),
        Named { seat: u16 },
    }

    #[test]
    fn every_shape_can_be_generated() {
        let mut rng = Rng::new(5);
        let values: Vec<Rich> = (0..50).map(|_| value(&mut rng, Width::Full).unwrap()).collect();
        assert!(values.iter().any(|rich| rich.choice == Choice::Nothing));
        assert!(values.iter().any(|rich| matches!(rich.choice, Choice::Named { .. })));
        assert!(values.iter().any(|rich| !rich.list.is_empty() && !rich.map.is_empty()));
        assert!(values.iter().any(|rich| rich.wide.2 > u64::from(u32::MAX)));
    }

    #[test]
    fn a_refused_value_is_generated_again() {
        let mut rng = Rng::new(6);
        let input: Option<sametick_pong::Input> = value(&mut rng, Width::Full);
        assert!(input.is_some());
    }
}
