//! Generates sample values of a type through its own `Deserialize`: small values in which every variant of every enum
//! occurs, once with each option and sequence filled, and once with them empty.

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;

use serde::Deserializer;
use serde::de::value::U32Deserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

/// The most samples of a type: types have fewer variants than that.
const MAX_SAMPLES: usize = 1_000;

/// The deepest nesting of values. A deeper type refers to itself.
const MAX_DEPTH: usize = 64;

/// Passes samples of a type to `show`, and returns the enums in it. A type that refuses them has no samples.
pub(super) fn samples<T: DeserializeOwned>(mut show: impl FnMut(&T)) -> BTreeSet<Enum> {
    let mut enums = BTreeSet::new();
    for is_full in [true, false] {
        let mut choices = Choices::default();
        for _ in 0..MAX_SAMPLES {
            let sampler = Sampler { choices: &mut choices, is_full, depth: 0 };
            if let Ok(sample) = T::deserialize(sampler) {
                show(&sample);
            }
            if choices.are_exhausted() {
                break;
            }
        }
        enums.extend(choices.asked.into_keys());
    }
    enums
}

/// An enum as its `Deserialize` knows it: its name, and the names of its variants.
pub(super) type Enum = (&'static str, &'static [&'static str]);

/// Which variants of which enums have occurred.
#[derive(Default)]
struct Choices {
    /// How often each enum was asked for.
    asked: BTreeMap<Enum, usize>,
}

impl Choices {
    /// The next variant to sample.
    fn choose(&mut self, name: &'static str, variants: &'static [&'static str]) -> Option<u32> {
        let asked = self.asked.entry((name, variants)).or_default();
        *asked += 1;
        u32::try_from((*asked - 1).checked_rem(variants.len())?).ok()
    }

    /// Whether every variant of every known enum has been sampled.
    fn are_exhausted(&self) -> bool {
        self.asked.iter().all(|((_, variants), asked)| *asked >= variants.len())
    }
}

/// A deserializer that supplies sample values.
struct Sampler<'a> {
    choices: &'a mut Choices,
    /// Whether options and sequences are filled.
    is_full: bool,
    depth: usize,
}

/// The type asks for something that cannot be sampled, or refuses the sample.
#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no sample of this type")
    }
}

impl core::error::Error for Refused {}

impl de::Error for Refused {
    fn custom<T: fmt::Display>(_message: T) -> Refused {
        Refused
    }
}

impl Sampler<'_> {
    fn below(&mut self) -> Result<Sampler<'_>, Refused> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            return Err(Refused);
        }
        Ok(Sampler { choices: &mut *self.choices, is_full: self.is_full, depth })
    }

    const fn number(&self) -> u8 {
        self.is_full as u8
    }

    const fn text(&self) -> &'static str {
        if self.is_full { "a" } else { "" }
    }
}

macro_rules! numbers {
    ($($method:ident => $visit:ident),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            visitor.$visit(self.number().into())
        })*
    };
}

impl<'de> Deserializer<'de> for Sampler<'_> {
    type Error = Refused;

    numbers! {
        deserialize_i8 => visit_i16,
        deserialize_i16 => visit_i16,
        deserialize_i32 => visit_i32,
        deserialize_i64 => visit_i64,
        deserialize_i128 => visit_i128,
        deserialize_u8 => visit_u8,
        deserialize_u16 => visit_u16,
        deserialize_u32 => visit_u32,
        deserialize_u64 => visit_u64,
        deserialize_u128 => visit_u128,
        deserialize_f32 => visit_f32,
        deserialize_f64 => visit_f64,
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Refused> {
        Err(Refused)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_bool(self.is_full)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_char('a')
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_str(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_str(self.text())
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_bytes(self.text().as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_bytes(self.text().as_bytes())
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        if self.is_full { visitor.visit_some(self.below()?) } else { visitor.visit_none() }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self.below()?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let left = self.number().into();
        visitor.visit_seq(Items { of: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_seq(Items { of: self, left: len })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let left = self.number().into();
        visitor.visit_map(Items { of: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let variant = self.choices.choose(name, variants).ok_or(Refused)?;
        visitor.visit_enum(Chosen { of: self, variant })
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Refused> {
        Err(Refused)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }
}

/// The items of a sequence, the entries of a map or the fields of a struct.
struct Items<'a> {
    of: Sampler<'a>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(self.of.below()?).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Items<'_> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        seed.deserialize(self.of.below()?)
    }
}

/// The enum variant being sampled.
struct Chosen<'a> {
    of: Sampler<'a>,
    variant: u32,
}

impl<'de, 'a> EnumAccess<'de> for Chosen<'a> {
    type Error = Refused;
    type Variant = Sampler<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Sampler<'a>), Refused> {
        let number: U32Deserializer<Refused> = self.variant.into_deserializer();
        Ok((seed.deserialize(number)?, self.of))
    }
}

impl<'de> VariantAccess<'de> for Sampler<'_> {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(mut self, seed: T) -> Result<T::Value, Refused> {
        seed.deserialize(self.below()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_tuple(fields.len(), visitor)
    }
}
