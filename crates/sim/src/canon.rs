//! Canonical bytes: the only serialised form of a value, equal on every machine. The format is postcard.
//!
//! All of it comes from one serde serializer that passes a [`Sink`] the bytes *and* their place in the value. Saves,
//! state hashes, part hashes and printed differences are different sinks under the same serializer, so they cannot
//! disagree about a state.
//!
//! The bytes are those of `postcard::to_allocvec`, with one promise more: every NaN is written as the same bits.
//! Which NaN an operation yields is the one thing IEEE 754 leaves to the processor.

mod reading;
mod serializer;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use serializer::{EncodeError, Serializer};

/// Receives a value as canonical bytes and, if the sink uses it, the value's structure.
///
/// Only [`write`](Sink::write) is required; unused methods cost nothing.
pub trait Sink {
    /// The next canonical bytes.
    fn write(&mut self, bytes: &[u8]);

    /// The following bytes belong one step further down, until the matching [`leave`](Sink::leave).
    fn enter(&mut self, _step: Step<'_>) {}

    /// Goes back up one step.
    fn leave(&mut self) {}

    /// The value that the following bytes encode. Called before them.
    fn value(&mut self, _value: Value<'_>) {}

    /// Whether the keys of maps are wanted as text in [`enter`](Sink::enter); that takes some work.
    fn wants_keys(&self) -> bool {
        false
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// One step down into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A field of a struct: `.name`.
    Field(&'static str),
    /// An unnamed field of a tuple struct: `.0`.
    Place(usize),
    /// An item of a sequence, array or tuple: `[0]`.
    Item(usize),
    /// The value of a map under this key: `[key]`. Empty unless [`Sink::wants_keys`].
    Key(&'a str),
    /// Into a variant of an enum: `::Name`.
    Variant(&'static str),
    /// Into an `Option` that is `Some`: `?`.
    Some,
}

/// A value without further steps below it, or the header of one that has them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are those of serde's data model")]
pub enum Value<'a> {
    Bool(bool),
    Signed(i128),
    Unsigned(u128),
    F32(f32),
    F64(f64),
    Char(char),
    Str(&'a str),
    Bytes(&'a [u8]),
    Unit,
    None,
    Some,
    Variant(&'static str),
    Items(usize),
    Entries(usize),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Field(name) => write!(f, ".{name}"),
            Step::Place(place) => write!(f, ".{place}"),
            Step::Item(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
            Step::Variant(name) => write!(f, "::{name}"),
            Step::Some => f.write_str("?"),
        }
    }
}

impl fmt::Display for Value<'_> {
    /// Two values that differ are printed differently (of long byte strings, as good as always).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Signed(value) => write!(f, "{value}"),
            Value::Unsigned(value) => write!(f, "{value}"),
            Value::F32(value) => write!(f, "{value:?}"),
            Value::F64(value) => write!(f, "{value:?}"),
            Value::Char(value) => write!(f, "{value:?}"),
            Value::Str(value) => write!(f, "{value:?}"),
            Value::Bytes(bytes) => fmt_bytes(bytes, f),
            Value::Unit => f.write_str("()"),
            Value::None => f.write_str("None"),
            Value::Some => f.write_str("Some"),
            Value::Variant(name) => f.write_str(name),
            Value::Items(count) => write!(f, "{count} items"),
            Value::Entries(count) => write!(f, "{count} entries"),
        }
    }
}

fn fmt_bytes(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const SHOWN: usize = 64;
    if bytes.len() > SHOWN {
        return write!(f, "{} bytes with hash {}", bytes.len(), crate::StateHash::of_bytes(bytes));
    }
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Passes the whole of `value` to `sink`.
pub fn encode<T: Serialize + ?Sized>(value: &T, sink: &mut impl Sink) -> Result<(), EncodeError> {
    value.serialize(Serializer::new(sink))
}

/// The canonical bytes of `value`. To reuse a buffer, use [`encode`] with a `Vec<u8>` as the sink.
pub fn to_canonical<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    encode(value, &mut bytes)?;
    Ok(bytes)
}

/// Reads a value back from its canonical bytes, all of them.
///
/// Safe to call on untrusted bytes: it does not panic, and allocates for the data it has read, not for declared
/// lengths. (Only a sequence of a type that takes no bytes at all, such as `Vec<()>`, could be declared endless: use a
/// count.) It does accept some bytes that are not canonical, such as a number with leading zeros, so compare values, or
/// bytes encoded anew.
pub fn from_canonical<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let malformed = |error| DecodeError(Reason::Malformed(error));
    let mut deserializer = postcard::Deserializer::from_flavor(reading::Reading(bytes));
    let value = T::deserialize(&mut deserializer).map_err(malformed)?;
    match deserializer.finalize().map_err(malformed)? {
        [] => Ok(value),
        rest => Err(DecodeError(Reason::Trailing(rest.len()))),
    }
}

/// Why bytes are not the canonical bytes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(Reason);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    Trailing(usize),
    Malformed(postcard::Error),
}

impl DecodeError {
    /// Whether the bytes end too early, as opposed to being wrong.
    pub const fn is_truncated(&self) -> bool {
        matches!(self.0, Reason::Malformed(postcard::Error::DeserializeUnexpectedEnd))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Reason::Trailing(bytes) => write!(f, "{bytes} bytes too many after the value"),
            Reason::Malformed(_) if self.is_truncated() => {
                f.write_str("the bytes end in the middle of the value")
            }
            Reason::Malformed(error) => write!(f, "not canonical bytes of this type: {error}"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// A path into a value, kept as text while steps are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    text: String,
    marks: Vec<usize>,
}

impl Path {
    pub(crate) fn enter(&mut self, step: Step<'_>) {
        use fmt::Write;
        self.marks.push(self.text.len());
        let result = match step {
            Step::Field(name) if self.text.is_empty() => write!(self.text, "{name}"),
            step => write!(self.text, "{step}"),
        };
        debug_assert!(result.is_ok(), "writing to a String does not fail");
    }

    pub(crate) fn leave(&mut self) {
        let mark = self.marks.pop();
        self.text.truncate(mark.unwrap_or(0));
    }

    pub(crate) fn depth(&self) -> usize {
        self.marks.len()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The path without the steps below `depth`.
    pub(crate) fn up_to(&self, depth: usize) -> &str {
        let end = self.marks.get(depth).copied().unwrap_or(self.text.len());
        self.text.get(..end).unwrap_or(&self.text)
    }
}
