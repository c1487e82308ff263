//! The envelope, version 2: the messages between a room and scripts in any language.
//!
//! Envelopes are sent as JSON in text frames and as MessagePack in binary ones. Nothing here depends on a game, a room
//! or a socket; docs/protocol.md shows every message.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::strict_json::{no_json, no_message_pack};

/// The version of the envelope.
pub const VERSION: u64 = 2;

/// The deepest nesting of a message: far more than any command needs.
const MAX_DEPTH: usize = 32;

/// The longest feature or action name that is repeated in a fault.
const MAX_WORD: usize = 64;

/// The encoding of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// In text frames.
    Json,
    /// In binary frames.
    MessagePack,
}

/// The fault code, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// `v` is not [`VERSION`].
    BadVersion,
    /// The message cannot be parsed, or is no envelope.
    BadMessage,
    /// Scripts may not send messages of this kind.
    UnknownKind,
    /// The game has no commands for this feature.
    UnknownFeature,
    /// The feature has no such action.
    UnknownAction,
    /// The payload does not fit the action.
    BadPayload,
    /// The message rate is over the limit; the connection ends.
    TooManyMessages,
    /// Too many inputs are queued; the command was dropped.
    TooManyInputs,
    /// A message was too long; the connection ends.
    TooLarge,
    /// Every seat is taken; the connection ends.
    RoomFull,
    /// The token is invalid; the connection ends.
    BadToken,
    /// No seat waits for this `resumeToken`; the connection ends.
    BadResumeToken,
    /// The room or the server refuses it.
    NotAllowed,
    /// It is the game of a session, which is played at its host: `address` is the host's, if known.
    Elsewhere,
    /// The connection ends, not because of a message.
    Closed,
}

impl Code {
    /// All codes.
    pub const ALL: [Code; 15] = [
        Code::BadVersion,
        Code::BadMessage,
        Code::UnknownKind,
        Code::UnknownFeature,
        Code::UnknownAction,
        Code::BadPayload,
        Code::TooManyMessages,
        Code::TooManyInputs,
        Code::TooLarge,
        Code::RoomFull,
        Code::BadToken,
        Code::BadResumeToken,
        Code::NotAllowed,
        Code::Elsewhere,
        Code::Closed,
    ];
}

/// A fault in a message of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The code for programs.
    pub code: Code,
    /// A sentence for people.
    pub message: String,
    /// The number of the faulty message, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The address of the right host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl Fault {
    /// A fault without number and address.
    pub fn new(code: Code, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), seq: None, address: None }
    }

    /// Adds the address of the right host, if known.
    #[must_use]
    pub fn at(self, address: Option<String>) -> Fault {
        Fault { address, ..self }
    }

    /// Adds the number of the faulty message.
    #[must_use]
    pub fn of(self, seq: u64) -> Fault {
        Fault { seq: Some(seq), ..self }
    }
}

/// A message from a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// Asks for a command.
    Command(Command),
    /// Asks for a pong.
    Ping {
        /// The script's own number for it.
        seq: Option<u64>,
        /// The script's clock, in milliseconds.
        client_time: Option<f64>,
    },
    /// Asks to change the character.
    Character(String),
    /// Asks for a full snapshot.
    Resync,
}

/// A command from a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The script's own number for it.
    pub seq: u64,
    /// The part of the game.
    pub feature: String,
    /// The action.
    pub action: String,
    /// When it was made, by the script's clock in milliseconds.
    pub client_time: Option<f64>,
    /// The details of the action.
    pub payload: Value,
}

/// Parses a script's message. The bytes are not trusted: they are parsed fully or refused with a reason.
pub fn parse(encoding: Encoding, bytes: &[u8]) -> Result<Incoming, Fault> {
    let bad = |message: String| Fault::new(Code::BadMessage, message);
    let value = match encoding {
        Encoding::Json => serde_json::from_slice(bytes).map_err(|why| bad(no_json(&why)))?,
        Encoding::MessagePack => from_message_pack(bytes).map_err(bad)?,
    };
    let Value::Object(fields) = value else {
        return Err(bad("an envelope is an object with `v`, `kind` and more".into()));
    };
    let seq = fields.get("seq").and_then(Value::as_u64);
    open(fields).map_err(|fault| Fault { seq, ..fault })
}

fn from_message_pack(bytes: &[u8]) -> Result<Value, String> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(MAX_DEPTH);
    let value = Value::deserialize(&mut reader).map_err(|why| no_message_pack(&why))?;
    match IgnoredAny::deserialize(&mut reader) {
        Ok(_) => Err("this is no MessagePack of an envelope: something follows it".into()),
        Err(_) => Ok(value),
    }
}

fn open(mut fields: Map<String, Value>) -> Result<Incoming, Fault> {
    match fields.get("v") {
        Some(v) if v.as_u64() == Some(VERSION) => {}
        Some(v) => {
            let message = format!("this server speaks version {VERSION} of the envelope, not {}", short(v));
            return Err(Fault::new(Code::BadVersion, message));
        }
        None => return Err(Fault::new(Code::BadVersion, format!("`v` is missing: it should be {VERSION}"))),
    }
    let kind = word(&fields, "kind")?;
    match kind.as_str() {
        "command" => {
            let seq =
                number(&fields)?.ok_or_else(|| Fault::new(Code::BadMessage, "a command needs a `seq`"))?;
            Ok(Incoming::Command(Command {
                seq,
                feature: word(&fields, "feature")?,
                action: word(&fields, "action")?,
                client_time: time(&fields)?,
                payload: fields.remove("payload").unwrap_or_else(|| Value::Object(Map::new())),
            }))
        }
        "ping" => Ok(Incoming::Ping { seq: number(&fields)?, client_time: time(&fields)? }),
        "character" => Ok(Incoming::Character(word(&fields, "name")?)),
        "resync" => Ok(Incoming::Resync),
        other => {
            let message =
                format!("there is no kind {other:?}; there are command, ping, character and resync");
            Err(Fault::new(Code::UnknownKind, message))
        }
    }
}

/// A value, shortened, for a fault message.
fn short(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > MAX_WORD {
        text.truncate(text.floor_char_boundary(MAX_WORD));
        text.push('…');
    }
    text
}

fn word(fields: &Map<String, Value>, name: &str) -> Result<String, Fault> {
    let fault = |what: &str| Err(Fault::new(Code::BadMessage, format!("`{name}` {what}")));
    match fields.get(name) {
        Some(Value::String(text)) if text.len() > MAX_WORD => fault("is too long"),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => fault(&format!("is a string, not {}", short(other))),
        None => fault("is missing"),
    }
}

fn number(fields: &Map<String, Value>) -> Result<Option<u64>, Fault> {
    match fields.get("seq") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| {
            let message = format!("`seq` is a whole number from 0 on, not {}", short(value));
            Fault::new(Code::BadMessage, message)
        }),
    }
}

fn time(fields: &Map<String, Value>) -> Result<Option<f64>, Fault> {
    match fields.get("clientTime") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| {
            let message = format!("`clientTime` is a number of milliseconds, not {}", short(value));
            Fault::new(Code::BadMessage, message)
        }),
    }
}

/// A message to scripts.
pub trait Outgoing: Serialize {
    /// The envelope's kind.
    const KIND: &'static str;
}

/// Encodes a message to a script.
pub fn encode<M: Outgoing>(encoding: Encoding, message: &M, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Envelope<'a, M> {
        v: u64,
        kind: &'static str,
        #[serde(flatten)]
        message: &'a M,
    }
    let envelope = Envelope { v: VERSION, kind: M::KIND, message };
    out.clear();
    match encoding {
        Encoding::Json => {
            serde_json::to_writer(out, &envelope).expect("our own messages have a form in JSON");
        }
        Encoding::MessagePack => {
            let mut writer = rmp_serde::Serializer::new(out).with_struct_map();
            envelope.serialize(&mut writer).expect("our own messages have a form in MessagePack");
        }
    }
}

impl Outgoing for Fault {
    const KIND: &'static str = "error";
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Parses a value in both encodings and compares the results.
    fn parse_both(value: &Value) -> Result<Incoming, Fault> {
        let one = parse(Encoding::Json, value.to_string().as_bytes());
        let other = parse(Encoding::MessagePack, &rmp_serde::to_vec_named(value).unwrap());
        assert_eq!(one, other, "{value}");
        one
    }

    #[test]
    fn messages_are_parsed_in_both_encodings() {
        let payload = json!({"inputs": [{"seq": 101, "up": true}], "far": -1.5});
        let said = json!({"v": 2, "kind": "command", "seq": 42, "feature": "movement", "action": "input_batch",
            "clientTime": 1234.56, "payload": payload, "more": null});
        let Ok(Incoming::Command(command)) = parse_both(&said) else { panic!() };
        assert_eq!((command.seq, command.client_time), (42, Some(1234.56)));
        assert_eq!((command.feature.as_str(), command.action.as_str()), ("movement", "input_batch"));
        assert_eq!(command.payload, payload);
        let ping = parse_both(&json!({"v": 2, "kind": "ping", "seq": 7, "clientTime": 3}));
        assert_eq!(ping, Ok(Incoming::Ping { seq: Some(7), client_time: Some(3.0) }));
        assert_eq!(parse_both(&json!({"v": 2, "kind": "resync"})), Ok(Incoming::Resync));
    }

    #[test]
    fn a_fault_has_code_sentence_and_message_number() {
        let table = [
            (json!([1, 2]), Code::BadMessage, "an envelope is an object"),
            (json!({"kind": "ping"}), Code::BadVersion, "`v` is missing: it should be 2"),
            (json!({"v": 1, "kind": "ping"}), Code::BadVersion, "version 2 of the envelope, not 1"),
            (json!({"v": "2", "kind": "ping"}), Code::BadVersion, "not \"2\""),
            (json!({"v": 2}), Code::BadMessage, "`kind` is missing"),
            (json!({"v": 2, "kind": 5}), Code::BadMessage, "`kind` is a string, not 5"),
            (json!({"v": 2, "kind": "x".repeat(65)}), Code::BadMessage, "`kind` is too long"),
            (
                json!({"v": 2, "kind": "hop"}),
                Code::UnknownKind,
                "no kind \"hop\"; there are command, ping, character and",
            ),
            (json!({"v": 2, "kind": "command"}), Code::BadMessage, "a command needs a `seq`"),
            (json!({"v": 2, "kind": "command", "seq": -1}), Code::BadMessage, "from 0 on, not -1"),
            (json!({"v": 2, "kind": "ping", "seq": 1.5}), Code::BadMessage, "from 0 on, not 1.5"),
            (json!({"v": 2, "kind": "command", "seq": 1}), Code::BadMessage, "`feature` is missing"),
            (
                json!({"v": 2, "kind": "command", "seq": 1, "feature": "build", "action": []}),
                Code::BadMessage,
                "`action` is a string, not []",
            ),
            (
                json!({"v": 2, "kind": "ping", "clientTime": "now"}),
                Code::BadMessage,
                "milliseconds, not \"now\"",
            ),
        ];
        for (said, code, words) in table {
            let fault = parse_both(&said).unwrap_err();
            assert!(fault.code == code && fault.message.contains(words), "{said}: {fault:?}");
        }
        let numbered = parse_both(&json!({"v": 3, "seq": 9})).unwrap_err();
        assert_eq!(numbered.seq, Some(9));
    }

    #[test]
    fn garbage_and_trailing_bytes_are_refused() {
        let bad = |encoding, bytes: &[u8]| parse(encoding, bytes).unwrap_err();
        for bytes in [&b""[..], b"{", b"nonsense", b"\xff\xfe", b"{} {}"] {
            let fault = bad(Encoding::Json, bytes);
            assert!(fault.message.starts_with("this is no JSON: "), "{fault:?}");
        }
        let mut two = rmp_serde::to_vec_named(&json!({"v": 2, "kind": "ping"})).unwrap();
        two.push(0xc0);
        let deep = [0x91; 5_000];
        for bytes in [
            &b""[..],
            &[0xc1],
            &[0xdf, 0xff, 0xff, 0xff, 0xff],
            &[0xdb, 0xff, 0xff, 0xff, 0xff, 1],
            &two,
            &deep,
        ] {
            let fault = bad(Encoding::MessagePack, bytes);
            assert!(fault.message.starts_with("this is no MessagePack of an envelope: "), "{fault:?}");
        }
        // Bytes, a number as a key, an extension: JSON has none of these.
        for bytes in [&[0x81, 0xa1, b'v', 0xc4, 1, 0][..], &[0x81, 1, 2], &[0xd4, 1, 0], &[0xc4, 1, 0]] {
            let fault = bad(Encoding::MessagePack, bytes);
            assert!(fault.message.contains("only what JSON can say"), "{fault:?}");
        }
        assert_eq!(bad(Encoding::Json, "[".repeat(10_000).as_bytes()).code, Code::BadMessage);
    }
}
