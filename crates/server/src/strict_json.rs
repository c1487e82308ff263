//! Strict reader of JSON values from other programs, with plain errors that name the place.
//!
//! Unlike serde's own formats, it does not accept a list for an object.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// The longest part of a value that is repeated in a message.
const MAX_REPEATED: usize = 40;

/// Reads a value.
pub fn read<T: DeserializeOwned>(value: Value) -> Result<T, Wrong> {
    T::deserialize(Strict(value))
}

/// What is wrong with a value, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The place in the value: `inputs[2].up`.
    place: String,
    what: String,
}

impl Wrong {
    fn new(what: impl Into<String>) -> Wrong {
        Wrong { place: String::new(), what: what.into() }
    }

    /// Moves the place into an outer value.
    fn within(self, outer: &str) -> Wrong {
        let between = if self.place.is_empty() || self.place.starts_with('[') { "" } else { "." };
        Wrong { place: format!("{outer}{between}{}", self.place), ..self }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "`{}`: ", self.place)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Wrong {
        Wrong::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        Wrong::new(format!("{} is expected, not {}", wanted(expected), shown(&found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        de::Error::invalid_type(found, expected)
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Wrong {
        Wrong::new(format!("{} is expected, not one with {len}", wanted(expected)))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Wrong {
        Wrong::new(format!("there is no {}; {}", shown(&Unexpected::Str(name)), list(known)))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Wrong {
        Wrong::new(format!("there is no field {}; {}", shown(&Unexpected::Str(name)), list(known)))
    }

    fn missing_field(name: &'static str) -> Wrong {
        Wrong::new(format!("`{name}` is missing"))
    }

    fn duplicate_field(name: &'static str) -> Wrong {
        Wrong::new(format!("`{name}` is there twice"))
    }
}

fn list(known: &[&str]) -> String {
    match known {
        [] => "there are none".into(),
        [only] => format!("there is {only}"),
        [all @ .., last] => format!("there are {} and {last}", all.join(", ")),
    }
}

/// The expectation of a type, without Rust's terms.
fn wanted(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    let plain = match text.as_str() {
        "f32" | "f64" => "a number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 on",
        "i8" => "a whole number from -128 to 127",
        "i16" => "a whole number from -32768 to 32767",
        "i32" => "a whole number from -2147483648 to 2147483647",
        "i64" | "isize" => "a whole number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" => "text",
        "a sequence" | "an array" => "a list",
        "a map" => "an object",
        "unit" => "null",
        "variant identifier" | "field identifier" => "a name",
        other if other.starts_with("struct") => "an object",
        other if other.starts_with("tuple") => "a list",
        other if other.starts_with("enum") => "a name, or an object with one name",
        other => other,
    };
    plain.to_owned()
}

fn shown(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => value.to_string(),
        Unexpected::Str(text) => {
            let end = text.floor_char_boundary(MAX_REPEATED);
            format!("{:?}{}", &text[..end], if end < text.len() { "…" } else { "" })
        }
        Unexpected::Unit | Unexpected::Option => "null".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "an object".into(),
        _ => "something else".into(),
    }
}

/// A deserializer that reads a value strictly.
pub struct Strict(pub Value);

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Unexpected::Unsigned(number),
            (None, Some(number)) => Unexpected::Signed(number),
            (None, None) => Unexpected::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

impl<'de> Deserializer<'de> for Strict {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(values) => visitor.visit_seq(List { values: values.into_iter(), next: 0 }),
            Value::Object(fields) => visitor.visit_map(Fields { fields: fields.into_iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.0 {
            Value::Object(_) => self.deserialize_any(visitor),
            other => Err(de::Error::invalid_type(unexpected(&other), &"an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(StringDeserializer::<Wrong>::new(name)),
            Value::Object(fields) if fields.len() == 1 => visitor
                .visit_enum(MapAccessDeserializer::new(Fields { fields: fields.into_iter(), value: None })),
            other => Err(de::Error::invalid_type(unexpected(&other), &"enum")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl IntoDeserializer<'_, Wrong> for Strict {
    type Deserializer = Strict;

    fn into_deserializer(self) -> Strict {
        self
    }
}

struct List {
    values: std::vec::IntoIter<Value>,
    next: usize,
}

impl<'de> SeqAccess<'de> for List {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some(value) = self.values.next() else { return Ok(None) };
        let place = format!("[{}]", self.next);
        self.next += 1;
        seed.deserialize(Strict(value)).map(Some).map_err(|wrong| wrong.within(&place))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}

struct Fields {
    fields: <Map<String, Value> as IntoIterator>::IntoIter,
    value: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let Some((name, value)) = self.fields.next() else { return Ok(None) };
        let key = seed.deserialize(StringDeserializer::<Wrong>::new(name.clone()))?;
        self.value = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let (name, value) = self.value.take().ok_or_else(|| Wrong::new("a value without a name"))?;
        seed.deserialize(Strict(value)).map_err(|wrong| wrong.within(&name))
    }
}

/// The content of an enum variant.
pub struct Rest<R>(pub R);

impl<'de, R: Deserializer<'de, Error = Wrong>> VariantAccess<'de> for Rest<R> {
    type Error = Wrong;

    /// Content of a unit variant is ignored.
    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.0.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.0.deserialize_struct("", fields, visitor)
    }
}

/// A syntax error in a JSON text, with its place.
pub fn no_json(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "this is no JSON: it ends too early".into();
    }
    format!("this is no JSON: there is a mistake in line {}, column {}", error.line(), error.column())
}

/// A syntax error in MessagePack, without its decoder's terms.
pub fn no_message_pack(error: &rmp_serde::decode::Error) -> String {
    use rmp_serde::decode::Error;
    let why = match error {
        Error::InvalidMarkerRead(_) | Error::InvalidDataRead(_) => "it ends too early",
        Error::DepthLimitExceeded => "it is nested too deeply",
        // Values that JSON does not have: bytes, extensions, keys that are no text.
        Error::Syntax(_) | Error::TypeMismatch(_) => {
            "only what JSON can say is understood: no bytes, no extensions, and text as keys"
        }
        _ => "a value in it cannot be read",
    };
    format!("this is no MessagePack of an envelope: {why}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        number: f32,
        #[serde(default)]
        count: Option<u8>,
        #[serde(default)]
        list: Vec<Inner>,
        #[serde(default)]
        choice: Choice,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        flag: bool,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        #[default]
        Plain,
        Fields {
            at: i32,
        },
        New(String),
    }

    #[test]
    fn valid_values_are_read() {
        let value =
            json!({"number": 1, "count": null, "list": [{"flag": true}], "choice": {"fields": {"at": -3}}});
        let read: Outer = read(value).unwrap();
        let list = vec![Inner { flag: true }];
        assert_eq!(read, Outer { number: 1.0, count: None, list, choice: Choice::Fields { at: -3 } });
        assert_eq!(super::read::<Choice>(json!("plain")), Ok(Choice::Plain));
        assert_eq!(super::read::<Choice>(json!({"new": "x"})), Ok(Choice::New("x".into())));
    }

    #[test]
    fn errors_are_plain_and_name_the_place() {
        for (value, words) in [
            (json!([1]), "an object is expected, not a list"),
            (json!({"number": "north"}), "`number`: a number is expected, not \"north\""),
            (json!({}), "`number` is missing"),
            (
                json!({"number": 1, "count": 300}),
                "`count`: a whole number from 0 to 255 is expected, not 300",
            ),
            (json!({"number": 1, "count": -1}), "`count`: a whole number from 0 to 255 is expected, not -1"),
            (json!({"number": 1, "list": 5}), "`list`: a list is expected, not 5"),
            (json!({"number": 1, "list": [[true]]}), "`list[0]`: an object is expected, not a list"),
            (
                json!({"number": 1, "list": [{"flag": true}, {"flag": 0}]}),
                "`list[1].flag`: true or false is expected, not 0",
            ),
            (
                json!({"number": 1, "choice": "dance"}),
                "`choice`: there is no \"dance\"; there are plain, fields and new",
            ),
            (json!({"number": 1, "choice": {"fields": {}}}), "`choice.fields`: `at` is missing"),
            (
                json!({"number": 1, "choice": 7}),
                "`choice`: a name, or an object with one name is expected, not 7",
            ),
            (
                json!({"number": 1, "x": 7}),
                "there is no field \"x\"; there are number, count, list and choice",
            ),
        ] {
            let wrong = read::<Outer>(value.clone()).unwrap_err();
            assert_eq!(wrong.to_string(), words, "{value}");
        }
        let long = read::<Outer>(json!({ "number": "é".repeat(100) })).unwrap_err().to_string();
        assert!(long.len() < 100 && long.ends_with("…"), "{long}");
    }
}
