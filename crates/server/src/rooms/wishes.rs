//! From `feature`, `action` and `payload` to a game's own command, and what was wrong if there is none.

use std::cell::Cell;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Error as JsonError;

use super::envelope::{Code, Command, Fault};

/// The game's command for what a script wants, as if it were `{feature: {action: payload}}`.
pub fn command_of<C: DeserializeOwned>(wanted: Command) -> Result<C, Fault> {
    let Command { seq, feature, action, payload, .. } = wanted;
    let progress = Cell::new(Code::UnknownFeature);
    let inner = Named { name: &action, next: Code::BadPayload, progress: &progress, rest: payload };
    let outer = Named { name: &feature, next: Code::UnknownAction, progress: &progress, rest: inner };
    C::deserialize(outer).map_err(|why| Fault::new(progress.get(), why.to_string()).of(seq))
}

/// One choice, and what comes with it.
struct Named<'a, R> {
    name: &'a str,
    /// What is wrong if this is a name, and something else is not.
    next: Code,
    progress: &'a Cell<Code>,
    rest: R,
}

impl<'de, R: Deserializer<'de, Error = JsonError>> Deserializer<'de> for Named<'_, R> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, R: Deserializer<'de, Error = JsonError>> EnumAccess<'de> for Named<'_, R> {
    type Error = JsonError;
    type Variant = Rest<R>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Rest<R>), JsonError> {
        let name = seed.deserialize(StrDeserializer::<JsonError>::new(self.name))?;
        self.progress.set(self.next);
        Ok((name, Rest(self.rest)))
    }
}

/// What comes with a choice.
struct Rest<R>(R);

impl<'de, R: Deserializer<'de, Error = JsonError>> VariantAccess<'de> for Rest<R> {
    type Error = JsonError;

    /// Whatever comes with a choice that takes nothing is left alone.
    fn unit_variant(self) -> Result<(), JsonError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, JsonError> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, JsonError> {
        self.0.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.0.deserialize_struct("payload", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use sametick_arena::Command as Arena;
    use serde_json::{Value, json};

    use super::*;

    fn command(feature: &str, action: &str, payload: Value) -> Result<Arena, Fault> {
        command_of(Command {
            seq: 5,
            feature: feature.into(),
            action: action.into(),
            client_time: None,
            payload,
        })
    }

    #[test]
    fn commands_of_a_game_are_made_of_feature_action_and_payload() {
        for (feature, action, payload) in [
            ("movement", "input_batch", json!({"inputs": [{"seq": 101, "up": true, "right": true}]})),
            ("movement", "aim", json!({"angle": 0.5})),
            ("build", "preview", json!({"x": 3, "y": 4, "kind": "wall"})),
            ("build", "remove", json!({"x": 3, "y": 4})),
            ("build", "clear_preview", json!({})),
            ("projectile", "fire", json!({"angle": 2})),
        ] {
            let whole = serde_json::from_value(json!({feature: {action: payload}})).unwrap();
            assert_eq!(command(feature, action, payload), Ok(whole), "{feature}.{action}");
        }
    }

    #[test]
    fn what_was_wrong_is_told_apart_also_where_the_same_word_is_wrong_twice() {
        let wall = json!({"x": 1, "y": 2, "kind": "wall"});
        let table = [
            (
                "dance",
                "place",
                wall.clone(),
                Code::UnknownFeature,
                "unknown variant `dance`, expected one of `movement`",
            ),
            ("", "place", wall.clone(), Code::UnknownFeature, "unknown variant ``"),
            (
                "build",
                "burn",
                wall.clone(),
                Code::UnknownAction,
                "unknown variant `burn`, expected one of `preview`",
            ),
            (
                "build",
                "place",
                json!({"x": 1, "y": 2, "kind": "place"}),
                Code::BadPayload,
                "expected `wall` or `crate`",
            ),
            ("build", "place", json!({"y": 2, "kind": "wall"}), Code::BadPayload, "missing field `x`"),
            ("build", "place", json!("here"), Code::BadPayload, "invalid type: string \"here\""),
            ("build", "place", json!(null), Code::BadPayload, "invalid type: null"),
            ("movement", "aim", json!({"angle": "north"}), Code::BadPayload, "expected f32"),
            ("movement", "aim", json!([]), Code::BadPayload, "invalid"),
        ];
        for (feature, action, payload, code, words) in table {
            let fault = command(feature, action, payload).unwrap_err();
            assert!(fault.code == code && fault.message.contains(words) && fault.seq == Some(5), "{fault:?}");
        }
    }

    #[test]
    fn a_game_without_commands_has_no_features() {
        let wanted = Command {
            seq: 1,
            feature: "any".into(),
            action: "thing".into(),
            client_time: None,
            payload: json!({}),
        };
        let fault = command_of::<sametick_sim::replica::NoCommand>(wanted).unwrap_err();
        assert_eq!(fault.code, Code::UnknownFeature);
    }
}
