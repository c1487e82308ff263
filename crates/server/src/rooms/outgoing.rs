//! The messages to scripts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::envelope::Outgoing;

/// The first message: the room, and the script's name and seat.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The code of the room.
    pub room: String,
    /// The game.
    pub game: &'static str,
    /// The script's seat number as text, as it is a key in snapshots; none for spectators.
    pub player_id: Option<String>,
    /// The script's seat.
    pub seat: Option<u16>,
    /// The script's name.
    pub name: String,
    /// The rates of steps and updates.
    pub rates: Rates,
    /// The token to resume the seat. It is secret.
    pub resume_token: String,
    /// The last tick.
    pub tick: u32,
    /// The server's clock, in milliseconds.
    pub server_time: f64,
    /// The fields of each kind of entity, by feature.
    pub features: BTreeMap<&'static str, BTreeMap<&'static str, Vec<&'static str>>>,
}

/// Rates per second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rates {
    /// Steps of the game.
    pub step: u32,
    /// Snapshots.
    pub update: u32,
}

/// A command was accepted.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ack {
    /// The number of the command.
    pub seq: u64,
    /// The tick of its first input.
    pub tick: u32,
}

/// A snapshot of the room.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot<F: Serialize> {
    /// Whether it is full or a delta.
    pub mode: Mode,
    /// The tick of the state.
    pub tick: u32,
    /// The server's clock, in milliseconds.
    pub server_time: f64,
    /// The highest number of a completed command.
    pub ack_seq: Option<u64>,
    /// The players, if they have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub players: Option<Vec<Player>>,
    /// The script's private fields, if they have changed; null while it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<Option<F>>,
    /// The visible entities.
    pub features: BTreeMap<&'static str, Feature<F>>,
}

/// The mode of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The full state.
    Full,
    /// The changes since the last snapshot.
    Delta,
}

/// A player in the room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Player {
    /// The seat.
    pub seat: u16,
    /// The name.
    pub name: String,
}

/// The visible entities of a feature, by kind and number.
#[derive(Clone, Debug, Serialize)]
pub struct Feature<F: Serialize> {
    /// New and changed entities, with all fields.
    #[serde(flatten)]
    pub kinds: BTreeMap<&'static str, BTreeMap<String, F>>,
    /// Entities that are no longer visible.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub removed: BTreeMap<&'static str, Vec<u32>>,
}

impl<F: Serialize> Default for Feature<F> {
    fn default() -> Feature<F> {
        Feature { kinds: BTreeMap::new(), removed: BTreeMap::new() }
    }
}

/// The answer to a ping.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pong {
    /// As in the ping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// As in the ping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_time: Option<f64>,
    /// The server's clock, in milliseconds.
    pub server_time: f64,
}

/// An event.
#[derive(Clone, Debug, Serialize)]
pub struct Happened<E: Serialize> {
    /// The tick of the event.
    pub tick: u32,
    /// The event as the game serialises it.
    pub event: E,
}

/// The player's token, once it is on disk.
#[derive(Clone, Serialize)]
pub struct Known {
    /// The token for the `token` parameter of the next connection.
    pub token: String,
}

/// The stored state of the room is on disk.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Saved {
    /// The tick of the stored state.
    pub tick: u32,
}

impl Outgoing for Saved {
    const KIND: &'static str = "saved";
}

/// The speed of the room has changed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pace {
    /// The speed in percent.
    pub percent: u8,
}

impl Outgoing for Pace {
    const KIND: &'static str = "pace";
}

/// The characters of the player.
#[derive(Clone, Debug, Serialize)]
pub struct Cast {
    /// The active character.
    pub active: String,
    /// All available characters.
    pub all: Vec<String>,
}

impl Outgoing for Known {
    const KIND: &'static str = "token";
}

impl Outgoing for Cast {
    const KIND: &'static str = "characters";
}

impl Outgoing for Welcome {
    const KIND: &'static str = "welcome";
}

impl Outgoing for Ack {
    const KIND: &'static str = "ack";
}

impl<F: Serialize> Outgoing for Snapshot<F> {
    const KIND: &'static str = "snapshot";
}

impl Outgoing for Pong {
    const KIND: &'static str = "pong";
}

impl<E: Serialize> Outgoing for Happened<E> {
    const KIND: &'static str = "event";
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rooms::envelope::{Code, Encoding, Fault, encode};

    #[test]
    fn messages_to_scripts_are_the_same_in_both_encodings() {
        let mut feature = Feature::default();
        feature.kinds.entry("avatar").or_default().insert("3".into(), json!({"at": [1, 2]}));
        feature.removed.insert("shot", vec![7]);
        let snapshot = Snapshot {
            mode: Mode::Delta,
            tick: 9,
            server_time: 300.5,
            ack_seq: None,
            players: None,
            own: Some(None),
            features: BTreeMap::from([("movement", feature)]),
        };
        let (mut json, mut packed) = (Vec::new(), Vec::new());
        encode(Encoding::Json, &snapshot, &mut json);
        encode(Encoding::MessagePack, &snapshot, &mut packed);
        let text = String::from_utf8(json).unwrap();
        assert_eq!(
            text,
            r#"{"v":2,"kind":"snapshot","mode":"delta","tick":9,"serverTime":300.5,"ackSeq":null,"own":null,"features":{"movement":{"avatar":{"3":{"at":[1,2]}},"removed":{"shot":[7]}}}}"#
        );
        let same: Value = rmp_serde::from_slice(&packed).unwrap();
        assert_eq!(same, serde_json::from_str::<Value>(&text).unwrap());
        encode(Encoding::Json, &Fault::new(Code::TooManyMessages, "slow down").of(4), &mut packed);
        assert_eq!(
            packed,
            br#"{"v":2,"kind":"error","code":"too_many_messages","message":"slow down","seq":4}"#
        );
    }
}
