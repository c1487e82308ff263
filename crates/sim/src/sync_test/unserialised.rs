//! Finds fields that a type declares but does not serialise, because of `#[serde(skip)]` and similar attributes.
//!
//! The schema of a type lists every field; its canonical bytes have those that are serialised. Both are walked in
//! parallel. A missing field shows in the first value, however late it would matter. Values come from the tested
//! session, and from [`samples`] of the type, because a session need not reach every variant.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::sample::{Enum, samples};
use crate::Schema;
use crate::canon::{self, EncodeError, Path, Sink, Step, Value};
use crate::schema::{DataModelType, DataModelVariant, NamedType, NamedValue, NamedVariant};

/// The declared fields that the bytes of a value leave out.
///
/// # Panics
/// If the value cannot be serialised, as [`StateHash::of`](crate::StateHash::of).
pub(super) fn unserialised<T: Serialize + Schema>(value: &T) -> Vec<String> {
    match walk(value) {
        Ok(found) => found,
        Err(error) => panic!("{} has no canonical bytes: {error}", core::any::type_name::<T>()),
    }
}

/// The declared fields that the bytes of any value of a type leave out, as far as samples of it show.
pub(super) fn unserialised_of<T: Serialize + DeserializeOwned + Schema>() -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |field| {
        if !found.contains(&field) {
            found.push(field);
        }
    };
    // A sample is not made by the game: if it cannot be written, that is no mistake of the game.
    let enums = samples::<T>(|sample| walk(sample).unwrap_or_default().into_iter().for_each(&mut add));
    add_unread_variants(T::SCHEMA, &mut String::new(), &enums, &mut add);
    found
}

/// Adds the variants of enums that their own `Deserialize` does not know: those with `#[serde(skip)]`.
fn add_unread_variants(
    of: &NamedType,
    path: &mut String,
    enums: &BTreeSet<Enum>,
    add: &mut impl FnMut(String),
) {
    if let DataModelType::Enum(variants) = of.ty {
        let known = || enums.iter().filter(|(name, _)| *name == of.name).map(|(_, known)| *known);
        let is_read =
            |variant: &NamedVariant, known: &[&str]| known.iter().any(|name| is_same(variant.name, name));
        // Two enums may have the same name: the one with the most variants in common is meant.
        let of_this = known().max_by_key(|known| variants.iter().filter(|it| is_read(it, known)).count());
        if let Some(known) = of_this.filter(|known| known.len() < variants.len()) {
            let unread = variants.iter().filter(|variant| !is_read(variant, known));
            unread.for_each(|variant| add(format!("{path}::{}", variant.name)));
        }
    }
    for_each_below(of, |step, below| {
        let mark = path.len();
        *path += if path.is_empty() { step.trim_start_matches('.') } else { step };
        add_unread_variants(below, path, enums, add);
        path.truncate(mark);
    });
}

/// Calls a function for each direct component of a type, with the step that leads to it.
fn for_each_below(of: &NamedType, mut each: impl FnMut(&str, &NamedType)) {
    fn places(step: &str, places: &[&NamedType], each: &mut impl FnMut(&str, &NamedType)) {
        places.iter().enumerate().for_each(|(number, place)| each(&format!("{step}.{number}"), place));
    }
    match of.ty {
        DataModelType::NewtypeStruct(inner) => each("", inner),
        DataModelType::Option(inner) => each("?", inner),
        DataModelType::Seq(inner) => each("[]", inner),
        DataModelType::Map { key, val } => {
            each("[]", key);
            each("[]", val);
        }
        // Arrays are tuples too, of equal items.
        DataModelType::Tuple(items) => {
            let is_new = |at: usize| at == 0 || !core::ptr::eq(items[at - 1], items[at]);
            (0..items.len()).filter(|at| is_new(*at)).for_each(|at| each("[]", items[at]));
        }
        DataModelType::TupleStruct(items) => places("", items, &mut each),
        DataModelType::Struct(fields) => {
            fields.iter().for_each(|field| each(&format!(".{}", field.name), field.ty));
        }
        DataModelType::Enum(variants) => {
            for variant in *variants {
                let name = format!("::{}", variant.name);
                match &variant.ty {
                    DataModelVariant::UnitVariant => {}
                    DataModelVariant::NewtypeVariant(inner) => each(&name, inner),
                    DataModelVariant::TupleVariant(items) => places(&name, items, &mut each),
                    DataModelVariant::StructVariant(fields) => {
                        fields.iter().for_each(|field| each(&format!("{name}.{}", field.name), field.ty));
                    }
                }
            }
        }
        _ => {}
    }
}

fn walk<T: Serialize + Schema>(value: &T) -> Result<Vec<String>, EncodeError> {
    let mut walk =
        Walk { path: Path::default(), frames: Vec::from([Frame::of(T::SCHEMA, 0)]), found: Vec::new() };
    canon::encode(value, &mut walk)?;
    walk.end_frame();
    Ok(walk.found)
}

/// A parallel walk over a value and its schema.
struct Walk {
    path: Path,
    frames: Vec<Frame>,
    found: Vec<String>,
}

/// The position of the walk: a place in the value, its schema, and what has been written of it.
struct Frame {
    declared: Declared,
    /// The names of the written fields.
    named: Vec<&'static str>,
    /// The number of written fields without names.
    numbered: usize,
    /// It is serialised as another type than declared, as with `#[serde(with)]` and `into`. Then nothing is compared.
    is_other: bool,
    /// The written variant, and whether it has any content.
    variant: Option<(&'static NamedVariant, bool)>,
    /// The number of fields found before the walk came here.
    found_before: usize,
}

/// What a schema declares for a place.
#[derive(Clone, Copy)]
enum Declared {
    Unknown,
    Fields(&'static [&'static NamedValue]),
    Places(&'static [&'static NamedType]),
    Enum(&'static [&'static NamedVariant]),
    Other(&'static DataModelType),
}

impl Declared {
    fn of(of: &'static NamedType) -> Declared {
        match of.ty {
            // A newtype is serialised as its content.
            DataModelType::NewtypeStruct(inner) => Declared::of(inner),
            DataModelType::Struct(fields) => Declared::Fields(fields),
            DataModelType::TupleStruct(places) => Declared::Places(places),
            DataModelType::Enum(variants) => Declared::Enum(variants),
            other => Declared::Other(other),
        }
    }

    fn of_variant(variant: &'static NamedVariant) -> Declared {
        match &variant.ty {
            DataModelVariant::UnitVariant => Declared::Unknown,
            DataModelVariant::NewtypeVariant(inner) => Declared::of(inner),
            DataModelVariant::TupleVariant(places) => Declared::Places(places),
            DataModelVariant::StructVariant(fields) => Declared::Fields(fields),
        }
    }
}

impl Frame {
    fn of(of: &'static NamedType, found_before: usize) -> Frame {
        Frame::new(Declared::of(of), found_before)
    }

    const fn new(declared: Declared, found_before: usize) -> Frame {
        Frame { declared, named: Vec::new(), numbered: 0, is_other: false, variant: None, found_before }
    }

    /// The schema of the place one step down.
    fn step(&mut self, step: Step<'_>) -> Declared {
        let below = match (self.declared, step) {
            (Declared::Fields(fields), Step::Field(name)) => {
                self.named.push(name);
                let exact = fields.iter().find(|field| field.name == name);
                exact.or_else(|| fields.iter().find(|field| is_same(field.name, name))).map(|field| field.ty)
            }
            (Declared::Places(places), Step::Place(place)) => {
                self.numbered += 1;
                places.get(place).copied()
            }
            (Declared::Enum(_), Step::Variant(_)) => {
                let Some((variant, is_entered)) = &mut self.variant else { return Declared::Unknown };
                *is_entered = true;
                return Declared::of_variant(variant);
            }
            (Declared::Other(DataModelType::Option(inner)), Step::Some) => Some(*inner),
            (Declared::Other(DataModelType::Seq(inner)), Step::Item(_)) => Some(*inner),
            (Declared::Other(DataModelType::Tuple(items)), Step::Item(index)) => items.get(index).copied(),
            (Declared::Other(DataModelType::Map { val, .. }), Step::Key(_)) => Some(*val),
            _ => {
                self.is_other = true;
                None
            }
        };
        below.map_or(Declared::Unknown, Declared::of)
    }

    /// The fields declared at this place and not written: paths from here, or a remark.
    fn missing(&self) -> Vec<String> {
        match (self.declared, self.variant) {
            (Declared::Fields(fields), _) if !self.is_other && self.named.len() < fields.len() => {
                let is_missing = |field: &&&NamedValue| {
                    holds_something(field.ty) && !self.named.iter().any(|name| is_same(field.name, name))
                };
                fields.iter().filter(is_missing).map(|field| format!(".{}", field.name)).collect()
            }
            (Declared::Places(places), _) if !self.is_other => {
                let declared = places.iter().filter(|place| holds_something(place)).count();
                match declared.saturating_sub(self.numbered) {
                    0 => Vec::new(),
                    missing => Vec::from([format!(" ({missing} of its {} places)", places.len())]),
                }
            }
            (Declared::Enum(_), Some((variant, false))) => match &variant.ty {
                DataModelVariant::NewtypeVariant(inner) if holds_something(inner) => {
                    Vec::from([format!("::{}.0", variant.name)])
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

impl Walk {
    fn end_frame(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let missing = frame.missing();
        if matches!(frame.declared, Declared::Places(_)) && !missing.is_empty() {
            // It is unknown which places were written, so what was found in them may be wrong.
            self.found.truncate(frame.found_before);
        }
        for rest in missing {
            let path = self.path.as_str();
            let field = if path.is_empty() {
                rest.trim_start_matches('.').to_string()
            } else {
                format!("{path}{rest}")
            };
            if !self.found.contains(&field) {
                self.found.push(field);
            }
        }
    }
}

impl Sink for Walk {
    fn write(&mut self, _bytes: &[u8]) {}

    fn enter(&mut self, step: Step<'_>) {
        let declared = self.frames.last_mut().map_or(Declared::Unknown, |frame| frame.step(step));
        self.frames.push(Frame::new(declared, self.found.len()));
        self.path.enter(match step {
            // A field is missing in all items alike.
            Step::Item(_) | Step::Key(_) => Step::Key(""),
            step => step,
        });
    }

    fn leave(&mut self) {
        self.end_frame();
        self.path.leave();
    }

    fn value(&mut self, value: Value<'_>) {
        let Some(frame) = self.frames.last_mut() else { return };
        match (frame.declared, value) {
            (Declared::Enum(variants), Value::Variant(name)) => {
                let variant = variants.iter().find(|variant| is_same(variant.name, name));
                frame.variant = variant.map(|variant| (*variant, false));
            }
            _ => frame.is_other = true,
        }
    }

    // Only so that the inside of keys is hidden from the walk.
    fn wants_keys(&self) -> bool {
        true
    }
}

/// Whether two names are the same apart from `#[serde(rename_all)]`, which schemas do not follow.
fn is_same(declared: &str, written: &str) -> bool {
    let plain = |name: &str| -> String {
        name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
    };
    declared == written || plain(declared) == plain(written)
}

/// Whether values of a type take any bytes. One that takes none, such as `PhantomData`, is not missed.
fn holds_something(of: &NamedType) -> bool {
    match of.ty {
        DataModelType::Unit | DataModelType::UnitStruct => false,
        DataModelType::NewtypeStruct(inner) => holds_something(inner),
        DataModelType::Tuple(items) | DataModelType::TupleStruct(items) => {
            items.iter().any(|item| holds_something(item))
        }
        DataModelType::Struct(fields) => fields.iter().any(|field| holds_something(field.ty)),
        _ => true,
    }
}
