//! What scripts are told, message by message.

use std::collections::BTreeMap;

use serde::Serialize;

use super::envelope::Outgoing;

/// The first message: where one is, and as whom.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The code of the room.
    pub room: String,
    /// The game that is played in it.
    pub game: &'static str,
    /// The number of the own seat as text, as keys in snapshots are; none for those who only look.
    pub player_id: Option<String>,
    /// The own seat.
    pub seat: Option<u16>,
    /// The own name.
    pub name: String,
    /// How often things happen.
    pub rates: Rates,
    /// Lets one come back to the same seat. Nobody else should know it.
    pub resume_token: String,
    /// The last tick.
    pub tick: u32,
    /// The server's clock, in milliseconds.
    pub server_time: f64,
    /// What there is to see: the fields of the kinds of each feature.
    pub features: BTreeMap<&'static str, BTreeMap<&'static str, Vec<&'static str>>>,
}

/// How many times a second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rates {
    /// The game steps.
    pub step: u32,
    /// Snapshots are sent.
    pub update: u32,
}

/// A command has been taken.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ack {
    /// Which.
    pub seq: u64,
    /// The tick in which its doing begins.
    pub tick: u32,
}

/// What is known of the room.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot<F: Serialize> {
    /// Everything, or what has changed since the last one.
    pub mode: Mode,
    /// After which tick.
    pub tick: u32,
    /// The server's clock, in milliseconds.
    pub server_time: f64,
    /// The highest number of a command that is done.
    pub ack_seq: Option<u64>,
    /// Who is there, if that has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub players: Option<Vec<Player>>,
    /// What only oneself knows, if that has changed: nothing while one has nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<Option<F>>,
    /// What is seen.
    pub features: BTreeMap<&'static str, Feature<F>>,
}

/// How much a snapshot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Everything.
    Full,
    /// What has changed.
    Delta,
}

/// Somebody who is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Player {
    /// Where they sit.
    pub seat: u16,
    /// What they are called.
    pub name: String,
}

/// What is seen of a feature: entities by kind and number.
#[derive(Clone, Debug, Serialize)]
pub struct Feature<F: Serialize> {
    /// Those that are new or have changed, in full.
    #[serde(flatten)]
    pub kinds: BTreeMap<&'static str, BTreeMap<String, F>>,
    /// Those that are not seen any more.
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
    /// As it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// As it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_time: Option<f64>,
    /// The server's clock, in milliseconds.
    pub server_time: f64,
}

/// Something happened.
#[derive(Clone, Debug, Serialize)]
pub struct Happened<E: Serialize> {
    /// In which tick.
    pub tick: u32,
    /// What, as the game writes it.
    pub event: E,
}

/// What shows who the script is, once that is on disk.
#[derive(Clone, Serialize)]
pub struct Known {
    /// For the `token` of the query, the next time.
    pub token: String,
}

/// What is kept of the room is on disk.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Saved {
    /// As it was after this tick.
    pub tick: u32,
}

impl Outgoing for Saved {
    const KIND: &'static str = "saved";
}

/// The room runs slower, or at its speed again.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pace {
    /// Of a hundred.
    pub percent: u8,
}

impl Outgoing for Pace {
    const KIND: &'static str = "pace";
}

/// Who the script can be.
#[derive(Clone, Debug, Serialize)]
pub struct Cast {
    /// The character that it plays.
    pub active: String,
    /// All that it may play.
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
    fn what_scripts_are_told_is_the_same_in_both_encodings() {
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
