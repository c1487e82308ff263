//! The serde serializer behind everything canonical.

use alloc::string::{String, ToString};
use core::fmt::{self, Write};

use serde::{Serialize, ser};

use super::{Sink, Step, Value};

/// Writes one value to a sink.
pub struct Serializer<'a, S> {
    sink: &'a mut S,
}

/// A value has no canonical bytes. That is a mistake in its type, not in its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// A sequence or map that does not know its length beforehand.
    UnknownLength,
    /// An error of the type's own `Serialize`.
    Custom(String),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::UnknownLength => {
                f.write_str("a sequence or map does not know its length beforehand")
            }
            EncodeError::Custom(message) => f.write_str(message),
        }
    }
}

impl core::error::Error for EncodeError {}

impl ser::Error for EncodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        EncodeError::Custom(message.to_string())
    }
}

type Result<T = ()> = core::result::Result<T, EncodeError>;

impl<'a, S: Sink> Serializer<'a, S> {
    /// A serializer that writes to `sink`.
    pub fn new(sink: &'a mut S) -> Self {
        Serializer { sink }
    }

    #[inline]
    fn signed(self, value: i64) -> Result {
        self.sink.value(Value::Signed(value.into()));
        write_varint(self.sink, zig_zag(value));
        Ok(())
    }

    #[inline]
    fn unsigned(self, value: u64) -> Result {
        self.sink.value(Value::Unsigned(value.into()));
        write_varint(self.sink, value);
        Ok(())
    }

    #[inline]
    fn variant(&mut self, index: u32, name: &'static str) {
        self.sink.value(Value::Variant(name));
        write_varint(self.sink, index.into());
    }

    #[inline]
    fn compound(self, kind: Kind) -> Result<Compound<'a, S>> {
        Ok(Compound { sink: self.sink, kind, next: 0 })
    }
}

macro_rules! scalars {
    ($($method:ident: $type:ty => $widened:ident),*) => {
        $(#[inline]
        fn $method(self, value: $type) -> Result {
            self.$widened(value.into())
        })*
    };
}

impl<'a, S: Sink> ser::Serializer for Serializer<'a, S> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = Compound<'a, S>;
    type SerializeTuple = Compound<'a, S>;
    type SerializeTupleStruct = Compound<'a, S>;
    type SerializeTupleVariant = Compound<'a, S>;
    type SerializeMap = Compound<'a, S>;
    type SerializeStruct = Compound<'a, S>;
    type SerializeStructVariant = Compound<'a, S>;

    scalars! {
        serialize_i16: i16 => signed,
        serialize_i32: i32 => signed,
        serialize_i64: i64 => signed,
        serialize_u16: u16 => unsigned,
        serialize_u32: u32 => unsigned,
        serialize_u64: u64 => unsigned
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result {
        self.sink.value(Value::Bool(value));
        self.sink.write(&[value.into()]);
        Ok(())
    }

    #[inline]
    fn serialize_i8(self, value: i8) -> Result {
        self.sink.value(Value::Signed(value.into()));
        self.sink.write(&value.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_u8(self, value: u8) -> Result {
        self.sink.value(Value::Unsigned(value.into()));
        self.sink.write(&[value]);
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result {
        self.sink.value(Value::Signed(value));
        write_wide_varint(self.sink, ((value << 1) ^ (value >> 127)) as u128);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result {
        self.sink.value(Value::Unsigned(value));
        write_wide_varint(self.sink, value);
        Ok(())
    }

    #[inline]
    fn serialize_f32(self, value: f32) -> Result {
        self.sink.value(Value::F32(value));
        let one_nan = if value.is_nan() { CANONICAL_NAN_32 } else { value.to_bits() };
        self.sink.write(&one_nan.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result {
        self.sink.value(Value::F64(value));
        let one_nan = if value.is_nan() { CANONICAL_NAN_64 } else { value.to_bits() };
        self.sink.write(&one_nan.to_le_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result {
        self.sink.value(Value::Char(value));
        write_prefixed(self.sink, value.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result {
        self.sink.value(Value::Str(value));
        write_prefixed(self.sink, value.as_bytes());
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result {
        self.sink.value(Value::Bytes(value));
        write_prefixed(self.sink, value);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result {
        self.sink.value(Value::None);
        self.sink.write(&[0]);
        Ok(())
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        self.sink.value(Value::Some);
        self.sink.write(&[1]);
        inside(self.sink, Step::Some, value)
    }

    fn serialize_unit(self) -> Result {
        self.sink.value(Value::Unit);
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_unit_variant(mut self, _: &'static str, index: u32, variant: &'static str) -> Result {
        self.variant(index, variant);
        Ok(())
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result {
        self.variant(index, variant);
        inside(self.sink, Step::Variant(variant), value)
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq> {
        let len = len.ok_or(EncodeError::UnknownLength)?;
        self.sink.value(Value::Items(len));
        write_varint(self.sink, len as u64);
        self.compound(Kind::Items)
    }

    #[inline]
    fn serialize_tuple(self, _len: usize) -> Result<Self::SerializeTuple> {
        self.compound(Kind::Items)
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _len: usize) -> Result<Self::SerializeTupleStruct> {
        self.compound(Kind::Places)
    }

    fn serialize_tuple_variant(
        mut self,
        _name: &'static str,
        index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        self.variant(index, variant);
        self.sink.enter(Step::Variant(variant));
        self.compound(Kind::Places)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap> {
        let len = len.ok_or(EncodeError::UnknownLength)?;
        self.sink.value(Value::Entries(len));
        write_varint(self.sink, len as u64);
        self.compound(Kind::Items)
    }

    #[inline]
    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Self::SerializeStruct> {
        self.compound(Kind::Places)
    }

    #[inline]
    fn serialize_struct_variant(
        mut self,
        _name: &'static str,
        index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeStructVariant> {
        self.variant(index, variant);
        self.sink.enter(Step::Variant(variant));
        self.compound(Kind::Places)
    }
}

/// A sequence, tuple, struct or map that is being written.
pub struct Compound<'a, S> {
    sink: &'a mut S,
    kind: Kind,
    next: usize,
}

/// How the parts of a compound without names are numbered.
#[derive(Clone, Copy)]
enum Kind {
    Items,
    Places,
}

impl<S: Sink> Compound<'_, S> {
    #[inline]
    fn numbered<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        let step = match self.kind {
            Kind::Items => Step::Item(self.next),
            Kind::Places => Step::Place(self.next),
        };
        self.next += 1;
        inside(self.sink, step, value)
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result {
        inside(self.sink, Step::Field(name), value)
    }

    /// Ends a compound that is also inside a variant.
    fn leave(self) -> Result {
        self.sink.leave();
        Ok(())
    }
}

macro_rules! compound {
    ($($trait:ident, $part:ident: $with:ident($($name:ident: $type:ty)?), $end:expr;)*) => {
        $(impl<S: Sink> ser::$trait for Compound<'_, S> {
            type Ok = ();
            type Error = EncodeError;

            #[inline]
            fn $part<T: Serialize + ?Sized>(&mut self, $($name: $type,)? value: &T) -> Result {
                self.$with($($name,)? value)
            }

            #[inline]
            fn end(self) -> Result {
                $end(self)
            }
        })*
    };
}

compound! {
    SerializeSeq, serialize_element: numbered(), |_| Ok(());
    SerializeTuple, serialize_element: numbered(), |_| Ok(());
    SerializeTupleStruct, serialize_field: numbered(), |_| Ok(());
    SerializeTupleVariant, serialize_field: numbered(), Compound::leave;
    SerializeStruct, serialize_field: field(name: &'static str), |_| Ok(());
    SerializeStructVariant, serialize_field: field(name: &'static str), Compound::leave;
}

impl<S: Sink> ser::SerializeMap for Compound<'_, S> {
    type Ok = ();
    type Error = EncodeError;

    /// The key's bytes belong to the entry it opens, so that no byte of a map lies outside its entries.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        if !self.sink.wants_keys() {
            self.sink.enter(Step::Key(""));
            return key.serialize(Serializer::new(&mut *self.sink));
        }
        let mut text = KeyText::default();
        key.serialize(Serializer::new(&mut text))?;
        self.sink.enter(Step::Key(&text.0));
        key.serialize(Serializer::new(&mut BytesOnly(self.sink)))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        value.serialize(Serializer::new(&mut *self.sink))?;
        self.sink.leave();
        Ok(())
    }

    fn end(self) -> Result {
        Ok(())
    }
}

/// Passes on bytes and hides structure. Dynamic, or a map as a key of a map would be a type without end.
struct BytesOnly<'a>(&'a mut dyn Sink);

impl Sink for BytesOnly<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }
}

/// A key as text: its values, with commas between them.
#[derive(Default)]
struct KeyText(String);

impl Sink for KeyText {
    fn write(&mut self, _bytes: &[u8]) {}

    fn value(&mut self, value: Value<'_>) {
        let comma = if self.0.is_empty() { "" } else { "," };
        let result = write!(self.0, "{comma}{value}");
        debug_assert!(result.is_ok(), "writing to a String does not fail");
    }
}

/// The bits every NaN is written as: positive, quiet, without payload.
const CANONICAL_NAN_32: u32 = 0x7fc0_0000;
const CANONICAL_NAN_64: u64 = 0x7ff8_0000_0000_0000;

#[inline]
fn inside<S: Sink, T: Serialize + ?Sized>(sink: &mut S, step: Step<'_>, value: &T) -> Result {
    sink.enter(step);
    value.serialize(Serializer::new(sink))?;
    sink.leave();
    Ok(())
}

const fn zig_zag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn write_prefixed(sink: &mut (impl Sink + ?Sized), bytes: &[u8]) {
    write_varint(sink, bytes.len() as u64);
    sink.write(bytes);
}

/// Seven bits to a byte, lowest first, the top bit set on all but the last.
#[inline]
fn write_varint(sink: &mut (impl Sink + ?Sized), value: u64) {
    // Most numbers in a game are small; one byte of known length needs no call to copy it.
    if value < 0x80 {
        sink.write(&[value as u8]);
    } else {
        write_longer_varint(sink, value);
    }
}

fn write_longer_varint(sink: &mut (impl Sink + ?Sized), mut value: u64) {
    let mut bytes = [0; 10];
    let mut len = 0;
    while value >= 0x80 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    sink.write(&bytes[..=len]);
}

fn write_wide_varint(sink: &mut (impl Sink + ?Sized), mut value: u128) {
    let mut bytes = [0; 19];
    let mut len = 0;
    while value >= 0x80 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    sink.write(&bytes[..=len]);
}
