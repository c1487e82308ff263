//! A WebSocket to the lobby or to a session, with the same envelopes as rooms use.

use std::net::IpAddr;

use sametick_session::message::Refusal;
use sametick_sim::Time;
use sametick_transport::endpoint::{RawEvent, RawMessage};
use sametick_transport::hub::{Key, Links};
use sametick_transport::websocket::MAX_MESSAGE;
use sametick_wire::rate_limit::{RateLimit, TokenBucket};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::rooms::envelope::{Code, Command, Encoding, Fault, Incoming, Outgoing, encode, parse};
use crate::rooms::outgoing::Pong;
use crate::strict_json;

/// The refusal of other kinds of envelopes than lobby and sessions take.
const ONLY_COMMANDS: &str = "here there are only command and ping";

/// Token-bucket rate limiter of commands: faster than clicks on every button of a page.
const COMMANDS: RateLimit = RateLimit::every_us(100_000, 40);

/// A refused command, by its code.
#[derive(Serialize)]
struct Refused {
    code: Refusal,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl Outgoing for Refused {
    const KIND: &'static str = "error";
}

/// A client's connection and its encoding.
pub(crate) struct EnvelopeConnection {
    key: Key,
    /// The client's address.
    pub ip: IpAddr,
    encoding: Encoding,
    bucket: TokenBucket,
}

impl EnvelopeConnection {
    /// A connection that has just opened.
    pub fn new(key: Key, ip: IpAddr) -> EnvelopeConnection {
        EnvelopeConnection { key, ip, encoding: Encoding::Json, bucket: TokenBucket::default() }
    }

    /// The command in a message, if it is one. A bad message is answered with its fault.
    pub fn hear(&mut self, now: Time, links: &mut Links, event: &RawEvent) -> Option<Command> {
        let said = match event {
            RawEvent::Said(RawMessage::Text(text)) => (Encoding::Json, text.as_bytes()),
            RawEvent::Said(RawMessage::Binary(bytes)) => (Encoding::MessagePack, &bytes[..]),
            RawEvent::TooLong => {
                self.say(
                    links,
                    &Fault::new(Code::TooLarge, format!("a message has at most {MAX_MESSAGE} bytes")),
                );
                links.hang_up(self.key);
                return None;
            }
            RawEvent::NoText => {
                self.say(links, &Fault::new(Code::BadMessage, "a text frame has to be UTF-8"));
                links.hang_up(self.key);
                return None;
            }
            RawEvent::Began { .. } | RawEvent::Ended(_) => return None,
        };
        self.encoding = said.0;
        match parse(said.0, said.1) {
            Ok(Incoming::Command(command)) if self.bucket.try_take(now, COMMANDS) => Some(command),
            Ok(Incoming::Command(command)) => {
                self.refuse(links, Some(command.seq), Refusal::TooFast);
                None
            }
            Ok(Incoming::Ping { seq, client_time }) => {
                let server_time = now.as_micros() as f64 / 1_000.0;
                self.say(links, &Pong { seq, client_time, server_time });
                None
            }
            Ok(Incoming::Character(_) | Incoming::Resync) => {
                self.say(links, &Fault::new(Code::UnknownKind, ONLY_COMMANDS));
                None
            }
            Err(fault) if fault.code == Code::UnknownKind => {
                self.say(links, &Fault { message: ONLY_COMMANDS.into(), ..fault });
                None
            }
            Err(fault) => {
                self.say(links, &fault);
                None
            }
        }
    }

    /// Sends a message.
    pub fn say<M: Outgoing>(&self, links: &mut Links, message: &M) {
        let mut bytes = Vec::new();
        encode(self.encoding, message, &mut bytes);
        links.say(self.key, self.encoding.words(bytes));
    }

    /// Sends a refusal.
    pub fn refuse(&self, links: &mut Links, seq: Option<u64>, refusal: Refusal) {
        self.say(links, &Refused { code: refusal, message: refusal.message(), seq });
    }

    /// Sends a fault for a message that cannot be understood.
    pub fn complain(&self, links: &mut Links, seq: u64, code: Code, why: impl Into<String>) {
        self.say(links, &Fault::new(code, why).of(seq));
    }

    /// Closes the connection.
    pub fn hang_up(&self, links: &mut Links) {
        links.hang_up(self.key);
    }
}

/// Parses a command of this feature into a `T`, an enum with the tags `action` and `payload`.
pub(crate) fn asked<T: DeserializeOwned>(command: Command, feature: &str) -> Result<T, (u64, Code, String)> {
    let Command { seq, feature: said, action, payload, .. } = command;
    if said != feature {
        return Err((seq, Code::UnknownFeature, format!("here the only feature is `{feature}`")));
    }
    strict_json::read(json!({ "action": action, "payload": payload })).map_err(|why| {
        let why = why.to_string();
        let is_action = why.starts_with("`action`: ") || why.starts_with(&format!("there is no {action:?}"));
        (seq, if is_action { Code::UnknownAction } else { Code::BadPayload }, why)
    })
}
