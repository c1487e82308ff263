//! A simulated visitor of the lobby, who behaves as a page would.

use std::fmt;
use std::time::{Duration, Instant};

use sametick_transport::clock::{random, unix_seconds};
use sametick_transport::endpoint::RawMessage;
use sametick_transport::raw_websocket::Call;
use sametick_wire::access::AccessKey;
use sametick_wire::hex::to_hex;
use serde_json::{Value, json};

use crate::gateway;

/// Time-out of every request.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that is silent for this long counts as cut: pings are answered every few seconds.
const SILENCE: Duration = Duration::from_secs(15);

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection is gone. The last message may have arrived or not.
    Cut(String),
    /// The request was refused, or the answer cannot be understood.
    Failed(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Trouble::Cut(why) | Trouble::Failed(why)) = self;
        f.write_str(why)
    }
}

impl From<Trouble> for String {
    fn from(trouble: Trouble) -> String {
        trouble.to_string()
    }
}

/// A WebSocket client for envelopes.
pub(super) struct EnvelopeClient {
    call: Call,
    feature: &'static str,
    seq: u64,
    /// Received messages that answer no request.
    pub told: Vec<Value>,
    /// The new host of the session, if it was moved.
    pub moved: Option<Value>,
    heard_at: Instant,
}

impl EnvelopeClient {
    pub async fn open(
        authority: &str,
        path: &str,
        feature: &'static str,
        key: &AccessKey,
    ) -> Result<EnvelopeClient, Trouble> {
        let proof = to_hex(&key.page_proof(unix_seconds() / 60));
        let path = format!("{path}?proof={proof}");
        let call = tokio::time::timeout(PATIENCE, Call::open(authority, &path)).await;
        let call = call.map_err(|_| Trouble::Cut("nobody answers".into()))??;
        Ok(EnvelopeClient { call, feature, seq: 0, told: Vec::new(), moved: None, heard_at: Instant::now() })
    }

    pub async fn say(&mut self, action: &str, payload: &Value) -> Result<u64, Trouble> {
        self.seq += 1;
        let EnvelopeClient { seq, feature, .. } = self;
        let said = json!({"v": 2, "kind": "command", "seq": *seq, "feature": *feature, "action": action, "payload": payload});
        self.call.say(RawMessage::Text(said.to_string())).await?;
        Ok(self.seq)
    }

    /// Sends a ping, and fails if the connection is silent for too long.
    pub async fn ping(&mut self) -> Result<(), Trouble> {
        if self.heard_at.elapsed() > SILENCE {
            return Err(Trouble::Cut("the server is silent".into()));
        }
        let ping = json!({"v": 2, "kind": "ping"});
        self.call.say(RawMessage::Text(ping.to_string())).await.map_err(Trouble::from)
    }

    /// The next message other than a pong. Cancel safe.
    pub async fn hear(&mut self) -> Result<Value, Trouble> {
        loop {
            let words =
                self.call.hear().await.ok_or_else(|| Trouble::Cut("the server has hung up".into()))?;
            self.heard_at = Instant::now();
            let RawMessage::Text(text) = words else {
                return Err(Trouble::Failed("JSON was answered by something else".into()));
            };
            let message: Value =
                serde_json::from_str(&text).map_err(|error| Trouble::Failed(error.to_string()))?;
            if message["event"]["moved"].is_object() {
                self.moved = Some(message["event"]["moved"].clone());
                return Err(Trouble::Cut("the session has moved to another host".into()));
            }
            match &message["closing"] {
                Value::Null if message["kind"] == "pong" => {}
                Value::Null => return Ok(message),
                closing if closing == "suspended" => return Err(Trouble::Cut("the host is stopping".into())),
                closing => return Err(Trouble::Failed(format!("closed: {closing}"))),
            }
        }
    }

    /// The next message that matches.
    pub async fn hear_of(&mut self, is_it: impl Fn(&Value) -> bool) -> Result<Value, Trouble> {
        let hearing = async {
            loop {
                let message = self.hear().await?;
                if is_it(&message) {
                    return Ok(message);
                }
                self.told.push(message);
            }
        };
        let heard = tokio::time::timeout(PATIENCE, hearing).await;
        heard.map_err(|_| Trouble::Failed("nothing is answered".into()))?
    }

    pub async fn ask(&mut self, action: &str, payload: &Value) -> Result<Value, Trouble> {
        let seq = self.say(action, payload).await?;
        let answer = self.hear_of(|message| message["seq"] == seq).await?;
        match &answer["kind"] {
            kind if kind == "error" => Err(Trouble::Failed(format!("{action}: {}", answer["code"]))),
            _ => Ok(answer["answer"].clone()),
        }
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Trouble {
        Trouble::Cut(error.to_string())
    }
}

/// A simulated visitor.
pub(super) struct Visitor {
    client: EnvelopeClient,
    /// The token for the lobby.
    pub token: String,
}

/// The way to a place in a session: host and ticket.
pub(super) struct Way {
    pub session: String,
    pub authority: String,
    pub ticket: String,
}

impl Visitor {
    /// Connects as a new player, or as the one with this token.
    pub async fn come(gateway: &str, key: &AccessKey, token: Option<&str>) -> Result<Visitor, Trouble> {
        let mut client = EnvelopeClient::open(gateway, gateway::SOCKET, "lobby", key).await?;
        let answer = client.ask("hello", &json!({ "token": token })).await?;
        let token = answer["you"]["token"].as_str().unwrap_or_default().to_owned();
        Ok(Visitor { client, token })
    }

    pub async fn create(&mut self, gateway: &str, settings: &Value) -> Result<Way, Trouble> {
        let key = to_hex(&random::<16>());
        let wish = json!({"key": key, "name": "bot", "settings": settings, "password": null});
        self.go("create", &wish, gateway).await
    }

    pub async fn join(&mut self, gateway: &str, session: &str) -> Result<Way, Trouble> {
        let wish = json!({"session": session, "name": "bot", "password": null, "seat": null});
        self.go("join", &wish, gateway).await
    }

    async fn go(&mut self, action: &str, wish: &Value, gateway: &str) -> Result<Way, Trouble> {
        let answer = self.client.ask(action, wish).await?;
        match Way::of(&answer["go"], gateway)? {
            Some(way) => Ok(way),
            None => Err(Trouble::Failed(format!("{action}: {}", answer["refused"]))),
        }
    }
}

impl Way {
    /// The place in an answer, if the answer has a ticket.
    pub fn of(told: &Value, gateway: &str) -> Result<Option<Way>, Trouble> {
        let text = |name: &str| told[name].as_str().map(str::to_owned);
        let (Some(session), Some(address), Some(ticket)) = (text("session"), text("address"), text("ticket"))
        else {
            return Ok(None);
        };
        let authority = match address.strip_prefix(':') {
            Some(port) => {
                let name = gateway.rsplit_once(':').map_or(gateway, |(name, _)| name);
                format!("{name}:{port}")
            }
            None => match address.strip_prefix("ws://") {
                Some(authority) => authority.to_owned(),
                None => return Err(Trouble::Failed("hosts over TLS cannot be put under load".into())),
            },
        };
        Ok(Some(Way { session, authority, ticket }))
    }
}
