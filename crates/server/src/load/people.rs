//! Somebody who looks for a session, and somebody who is in one, by hand: as a page would, without one.

use std::time::Duration;

use sametick_transport::clock::{random, unix_seconds};
use sametick_transport::endpoint::Words;
use sametick_transport::talk::Call;
use sametick_wire::access::AccessKey;
use sametick_wire::hex::to_hex;
use serde_json::{Value, json};

use crate::gateway;
use crate::hosting;

/// Nothing takes longer than this, or it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A conversation in envelopes.
pub(super) struct Talk {
    call: Call,
    feature: &'static str,
    seq: u64,
    /// What was told that nobody has asked for.
    told: Vec<Value>,
}

impl Talk {
    async fn open(
        authority: &str,
        path: &str,
        feature: &'static str,
        key: &AccessKey,
    ) -> Result<Talk, String> {
        let proof = to_hex(&key.page_proof(unix_seconds() / 60));
        let path = format!("{path}?proof={proof}");
        let call = tokio::time::timeout(PATIENCE, Call::open(authority, &path)).await;
        let call = call.map_err(|_| "nobody answers")?.map_err(|error| error.to_string())?;
        Ok(Talk { call, feature, seq: 0, told: Vec::new() })
    }

    async fn say(&mut self, action: &str, payload: &Value) -> Result<u64, String> {
        self.seq += 1;
        let Talk { seq, feature, .. } = self;
        let said = json!({"v": 2, "kind": "command", "seq": *seq, "feature": *feature, "action": action, "payload": payload});
        self.call.say(Words::Text(said.to_string())).await.map_err(|error| error.to_string())?;
        Ok(self.seq)
    }

    /// Keeps the connection alive.
    pub async fn ping(&mut self) -> Result<(), String> {
        let ping = json!({"v": 2, "kind": "ping"});
        self.call.say(Words::Text(ping.to_string())).await.map_err(|error| error.to_string())
    }

    /// What is said next.
    pub async fn hear(&mut self) -> Result<Value, String> {
        let words = self.call.hear().await.ok_or("the server has hung up")?;
        match words {
            Words::Text(text) => serde_json::from_str(&text).map_err(|error| error.to_string()),
            Words::Binary(_) => Err("JSON was answered by something else".into()),
        }
    }

    /// The next message that is like this.
    async fn hear_of(&mut self, is_it: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let hearing = async {
            loop {
                let message = self.hear().await?;
                if is_it(&message) {
                    return Ok(message);
                }
                self.told.push(message);
            }
        };
        tokio::time::timeout(PATIENCE, hearing).await.map_err(|_| "nothing is answered")?
    }

    async fn ask(&mut self, action: &str, payload: &Value) -> Result<Value, String> {
        let seq = self.say(action, payload).await?;
        let answer = self.hear_of(|message| message["seq"] == seq).await?;
        match &answer["kind"] {
            kind if kind == "error" => Err(format!("{action}: {}", answer["code"])),
            _ => Ok(answer["answer"].clone()),
        }
    }
}

/// Somebody in the lobby.
pub(super) struct Visitor(Talk);

/// A place in a session.
pub(super) struct Way {
    pub session: String,
    authority: String,
    ticket: String,
}

impl Visitor {
    pub async fn come(gateway: &str, key: &AccessKey) -> Result<Visitor, String> {
        let mut talk = Talk::open(gateway, gateway::SOCKET, "lobby", key).await?;
        talk.ask("hello", &json!({ "token": null })).await?;
        Ok(Visitor(talk))
    }

    pub async fn create(&mut self, gateway: &str, settings: &Value) -> Result<Way, String> {
        let key = to_hex(&random::<16>());
        let wish = json!({"key": key, "name": "bot", "settings": settings, "password": null});
        way(&self.0.ask("create", &wish).await?, gateway, "create")
    }

    pub async fn join(&mut self, gateway: &str, session: &str) -> Result<Way, String> {
        let wish = json!({"session": session, "name": "bot", "password": null, "seat": null});
        way(&self.0.ask("join", &wish).await?, gateway, "join")
    }
}

fn way(answer: &Value, gateway: &str, what: &str) -> Result<Way, String> {
    let text = |name: &str| answer["go"][name].as_str().map(str::to_owned);
    let (Some(session), Some(address), Some(ticket)) = (text("session"), text("address"), text("ticket"))
    else {
        return Err(format!("{what}: {}", answer["refused"]));
    };
    let authority = match address.strip_prefix(':') {
        Some(port) => {
            let name = gateway.rsplit_once(':').map_or(gateway, |(name, _)| name);
            format!("{name}:{port}")
        }
        None => address.strip_prefix("ws://").ok_or("hosts over TLS cannot be put under load")?.to_owned(),
    };
    Ok(Way { session, authority, ticket })
}

/// Somebody in a session.
pub(super) struct Member {
    pub talk: Talk,
    pub authority: String,
}

impl Member {
    pub async fn arrive(way: &Way, key: &AccessKey) -> Result<Member, String> {
        let mut talk = Talk::open(&way.authority, hosting::SOCKET, "session", key).await?;
        talk.say("arrive", &json!({"ticket": way.ticket})).await?;
        let said = talk.hear_of(|message| message["kind"] == "closing" || message["kind"] == "event").await?;
        if said["event"]["welcome"].is_null() {
            return Err(format!("arrive: {}", said["closing"]));
        }
        Ok(Member { talk, authority: way.authority.clone() })
    }

    pub async fn does(&mut self, action: &str, payload: &Value) -> Result<(), String> {
        self.talk.ask(action, payload).await.map(|_| ())
    }

    /// The next event of this name.
    pub async fn event(&mut self, name: &str) -> Result<Value, String> {
        let is_it = |message: &Value| !message["event"][name].is_null();
        let message = match self.talk.told.iter().position(is_it) {
            Some(at) => self.talk.told.remove(at),
            None => self.talk.hear_of(is_it).await?,
        };
        Ok(message["event"][name].clone())
    }
}
