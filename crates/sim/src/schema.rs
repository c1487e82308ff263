//! Describes types as text and as a hash, so that two builds can check that their bytes have the same meaning.
//!
//! The text has one line for every place in a type, with the whole path to it. A field that is renamed, retyped, moved,
//! added or removed changes a line, and the first line that differs shows the change:
//!
//! ```
//! use sametick_sim::{Schema, schema};
//!
//! #[derive(Schema)]
//! struct Ship { name: String, pos: (f32, f32) }
//!
//! assert_eq!(schema::description::<Ship>(), "\
//! Ship: struct
//! Ship.name: string
//! Ship.pos: tuple
//! Ship.pos.0: f32
//! Ship.pos.1: f32
//! ");
//! ```

use alloc::format;
use alloc::string::String;

pub use postcard_schema::schema::{DataModelType, DataModelVariant, NamedType, NamedValue, NamedVariant};

use crate::{Schema, SchemaHash};

/// Changed whenever the form of a description changes.
const DOMAIN: &str = "sametick 2026-11 schema v1";

/// The description of one type.
pub fn description<T: Schema + ?Sized>() -> String {
    describe(&[T::SCHEMA])
}

/// The schema hash of one type; of several, as a tuple: `schema::hash::<(Hello, Welcome)>()`.
pub fn hash<T: Schema + ?Sized>() -> SchemaHash {
    hash_description(&description::<T>())
}

/// The description of several types, in this order.
pub fn describe(types: &[&NamedType]) -> String {
    let mut text = String::new();
    for of in types {
        add_type(&escaped(of.name), "", of.ty, &mut text);
    }
    text
}

/// The hash of a description.
pub fn hash_description(description: &str) -> SchemaHash {
    SchemaHash::from_bytes(blake3::derive_key(DOMAIN, description.as_bytes()))
}

/// The first line in which two descriptions differ, for people. `None` if they are equal.
pub fn first_difference(ours: &str, theirs: &str) -> Option<String> {
    let (mut our_lines, mut their_lines) = (ours.lines(), theirs.lines());
    loop {
        match (our_lines.next(), their_lines.next()) {
            (None, None) => return None,
            (ours, theirs) if ours == theirs => {}
            (ours, theirs) => {
                let [ours, theirs] = [ours, theirs].map(|line| line.unwrap_or("nothing more"));
                return Some(format!("ours has `{ours}`, theirs has `{theirs}`"));
            }
        }
    }
}

/// Adds the lines of a type at `path`. `name` is that of a named type in a place that has its own name.
fn add_type(path: &str, name: &str, ty: &DataModelType, text: &mut String) {
    let gap = if name.is_empty() { "" } else { " " };
    *text += &format!("{path}: {}{gap}{name}\n", kind(ty));
    match ty {
        DataModelType::Option(inner) => add_place(&format!("{path}?"), inner, text),
        DataModelType::Seq(item) => add_place(&format!("{path}[]"), item, text),
        DataModelType::NewtypeStruct(inner) => add_place(&format!("{path}.0"), inner, text),
        DataModelType::Tuple(places) | DataModelType::TupleStruct(places) => add_places(path, places, text),
        DataModelType::Map { key, val } => {
            add_place(&format!("{path}[key]"), key, text);
            add_place(&format!("{path}[]"), val, text);
        }
        DataModelType::Struct(fields) => add_fields(path, fields, text),
        DataModelType::Enum(variants) => {
            for (number, variant) in variants.iter().enumerate() {
                add_variant(&format!("{path}::{number} {}", escaped(variant.name)), variant.ty, text);
            }
        }
        _ => {}
    }
}

fn add_place(path: &str, of: &NamedType, text: &mut String) {
    // The names of other types ("Vec<T>", "u32") only repeat their kind.
    let named = matches!(
        of.ty,
        DataModelType::Struct(_)
            | DataModelType::TupleStruct(_)
            | DataModelType::NewtypeStruct(_)
            | DataModelType::UnitStruct
            | DataModelType::Enum(_)
    );
    let name = if named { escaped(of.name) } else { String::new() };
    add_type(path, &name, of.ty, text);
}

fn add_places(path: &str, places: &[&NamedType], text: &mut String) {
    for (number, place) in places.iter().enumerate() {
        add_place(&format!("{path}.{number}"), place, text);
    }
}

fn add_fields(path: &str, fields: &[&NamedValue], text: &mut String) {
    for field in fields {
        add_place(&format!("{path}.{}", escaped(field.name)), field.ty, text);
    }
}

fn add_variant(path: &str, variant: &DataModelVariant, text: &mut String) {
    let kind = match variant {
        DataModelVariant::UnitVariant => "unit",
        DataModelVariant::NewtypeVariant(_) => "newtype",
        DataModelVariant::TupleVariant(_) => "tuple",
        DataModelVariant::StructVariant(_) => "struct",
    };
    *text += &format!("{path}: {kind}\n");
    match variant {
        DataModelVariant::UnitVariant => {}
        DataModelVariant::NewtypeVariant(inner) => add_place(&format!("{path}.0"), inner, text),
        DataModelVariant::TupleVariant(places) => add_places(path, places, text),
        DataModelVariant::StructVariant(fields) => add_fields(path, fields, text),
    }
}

/// Escapes a name that could be mistaken for the surrounding lines.
fn escaped(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_<>,(' )&".contains(c);
    if name.chars().all(plain) { name.into() } else { format!("{name:?}") }
}

fn kind(ty: &DataModelType) -> &'static str {
    match ty {
        DataModelType::Bool => "bool",
        DataModelType::I8 => "i8",
        DataModelType::U8 => "u8",
        DataModelType::I16 => "i16",
        DataModelType::I32 => "i32",
        DataModelType::I64 => "i64",
        DataModelType::I128 => "i128",
        DataModelType::U16 => "u16",
        DataModelType::U32 => "u32",
        DataModelType::U64 => "u64",
        DataModelType::U128 => "u128",
        DataModelType::Usize => "usize",
        DataModelType::Isize => "isize",
        DataModelType::F32 => "f32",
        DataModelType::F64 => "f64",
        DataModelType::Char => "char",
        DataModelType::String => "string",
        DataModelType::ByteArray => "bytes",
        DataModelType::Option(_) => "option",
        DataModelType::Unit => "unit",
        DataModelType::UnitStruct => "unit struct",
        DataModelType::NewtypeStruct(_) => "newtype",
        DataModelType::Seq(_) => "sequence",
        DataModelType::Tuple(_) => "tuple",
        DataModelType::TupleStruct(_) => "tuple struct",
        DataModelType::Map { .. } => "map",
        DataModelType::Struct(_) => "struct",
        DataModelType::Enum(_) => "enum",
        DataModelType::Schema => "schema",
    }
}
