//! Converts `feature`, `action` and `payload` to a game's own command, or to a fault.

use std::cell::Cell;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::envelope::{Code, Command, Fault};
use crate::strict_json::{Rest, Strict, Wrong};

/// Parses a script's command as the game's, as if it were `{feature: {action: payload}}`.
pub fn command_of<C: DeserializeOwned>(wanted: Command) -> Result<C, Fault> {
    let Command { seq, feature, action, payload, .. } = wanted;
    let progress = Cell::new(Code::UnknownFeature);
    let inner = Named { name: &action, next: Code::BadPayload, progress: &progress, rest: Strict(payload) };
    let outer = Named { name: &feature, next: Code::UnknownAction, progress: &progress, rest: inner };
    C::deserialize(outer).map_err(|why| Fault::new(progress.get(), why.to_string()).of(seq))
}

/// An enum tag and its content.
struct Named<'a, R> {
    name: &'a str,
    /// The fault code if the tag is known and its content is not.
    next: Code,
    progress: &'a Cell<Code>,
    rest: R,
}

impl<'de, R: Deserializer<'de, Error = Wrong>> Deserializer<'de> for Named<'_, R> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, R: Deserializer<'de, Error = Wrong>> EnumAccess<'de> for Named<'_, R> {
    type Error = Wrong;
    type Variant = Rest<R>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Rest<R>), Wrong> {
        let name = seed.deserialize(StrDeserializer::<Wrong>::new(self.name))?;
        self.progress.set(self.next);
        Ok((name, Rest(self.rest)))
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
    fn faults_name_the_wrong_level_even_if_a_word_repeats() {
        let wall = json!({"x": 1, "y": 2, "kind": "wall"});
        let table = [
            (
                "dance",
                "place",
                wall.clone(),
                Code::UnknownFeature,
                "there is no \"dance\"; there are movement, build and projectile",
            ),
            ("", "place", wall.clone(), Code::UnknownFeature, "there is no \"\""),
            (
                "build",
                "burn",
                wall.clone(),
                Code::UnknownAction,
                "there is no \"burn\"; there are preview, place, remove and clear_preview",
            ),
            (
                "build",
                "place",
                json!({"x": 1, "y": 2, "kind": "place"}),
                Code::BadPayload,
                "`kind`: there is no \"place\"; there are wall and crate",
            ),
            ("build", "place", json!({"y": 2, "kind": "wall"}), Code::BadPayload, "`x` is missing"),
            ("build", "place", json!("here"), Code::BadPayload, "an object is expected, not \"here\""),
            ("build", "place", json!(null), Code::BadPayload, "an object is expected, not null"),
            (
                "movement",
                "aim",
                json!({"angle": "north"}),
                Code::BadPayload,
                "`angle`: a number is expected, not \"north\"",
            ),
            ("movement", "aim", json!([1]), Code::BadPayload, "an object is expected, not a list"),
            (
                "movement",
                "input_batch",
                json!({"inputs": [{"up": true}, [7, true]]}),
                Code::BadPayload,
                "`inputs[1]`: an object is expected, not a list",
            ),
            (
                "movement",
                "input_batch",
                json!({"inputs": vec![json!({}); 61]}),
                Code::BadPayload,
                "`inputs`: a batch has at most 60 inputs, and this one has 61",
            ),
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
