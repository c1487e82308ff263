//! The visitors of the lobby: their connections, sign-in and answers.

use sametick_session::catalog::Catalog as _;
use sametick_session::gateway::{Asking, ClientId, Input};
use sametick_session::lobby::{Ask, Reply};
use sametick_sim::Time;
use sametick_transport::clock::random;
use sametick_transport::endpoint::RawEvent;
use sametick_transport::hub::{Key, Links};
use sametick_wire::identity::{PlayerId, Token};
use serde::{Deserialize, Serialize};

use super::{GatewaySide, source_of};
use crate::envelope_connection::{EnvelopeConnection, asked};
use crate::rooms::envelope::{Code, Outgoing};

/// The WebSocket path of the lobby.
pub(crate) const SOCKET: &str = "/api/lobby/ws";

/// The feature in all envelopes of the lobby.
const FEATURE: &str = "lobby";

/// The refusal of a visitor without a token where sign-in is required.
const SIGN_IN: &str =
    "sign in first: exchange a signed token at /api/session, and show the one you are given";

/// A visitor of the lobby.
pub(super) struct Visitor {
    connection: EnvelopeConnection,
    client: ClientId,
    /// The visitor's player id, after the greeting.
    player: Option<PlayerId>,
    /// The token that is being looked up, and the greeting's number.
    asked: Option<(u64, Token)>,
}

/// The first command, with the token from the last visit.
#[derive(Deserialize)]
#[serde(tag = "action", content = "payload", rename_all = "snake_case")]
enum Greeting {
    Hello {
        #[serde(default)]
        token: Option<String>,
    },
}

/// An answer to a command, or, without a number, an update of a subscription.
#[derive(Serialize)]
struct Answer<A: Serialize> {
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    feature: &'static str,
    answer: A,
}

impl<A: Serialize> Outgoing for Answer<A> {
    const KIND: &'static str = "answer";
}

/// The answer to the greeting.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Greeted {
    You {
        #[serde(with = "sametick_session::id::player")]
        player: PlayerId,
        /// The token to show on the next visit. It is secret.
        token: String,
    },
}

impl GatewaySide {
    /// Handles an event of a connection.
    pub fn on_raw(&mut self, now: Time, links: &mut Links, key: Key, event: &RawEvent) {
        match event {
            RawEvent::Began { from, .. } => {
                let client = ClientId(self.next);
                self.next += 1;
                self.clients.insert(client, key);
                let connection = EnvelopeConnection::new(key, from.ip());
                self.visitors.insert(key, Visitor { connection, client, player: None, asked: None });
            }
            RawEvent::Ended(_) => {
                if let Some(visitor) = self.visitors.remove(&key) {
                    self.clients.remove(&visitor.client);
                    self.gateway.handle(now, Input::Gone(visitor.client));
                }
            }
            _ => self.hear(now, links, key, event),
        }
    }

    fn hear(&mut self, now: Time, links: &mut Links, key: Key, event: &RawEvent) {
        let Some(visitor) = self.visitors.get_mut(&key) else { return };
        let Some(command) = visitor.connection.hear(now, links, event) else { return };
        let seq = command.seq;
        let Some(player) = visitor.player else {
            return match asked::<Greeting>(command, FEATURE) {
                Ok(Greeting::Hello { token }) => {
                    let is_strict = self.is_strict;
                    if let Some(token) = visitor.greet(links, seq, token.as_deref(), is_strict) {
                        self.questions.push_back((visitor.client.0, token));
                    }
                    if let Some(processes) = &mut self.processes {
                        processes.wake(now);
                    }
                }
                Err((seq, code, why)) => visitor.connection.complain(links, seq, code, why),
            };
        };
        let checked = asked::<Ask>(command, FEATURE).and_then(|ask| {
            // For a game that only hosts know, the host checks the settings.
            if let Ask::Create { settings, .. } = &ask
                && (self.games.named(&settings.game).is_some()
                    || !self.gateway.catalog().is_offered(&settings.game, settings.mode))
            {
                self.games.check(settings).map_err(|why| (seq, Code::BadPayload, why))?;
            }
            Ok(ask)
        });
        match checked {
            Ok(ask) => {
                let (client, ip) = (visitor.client, visitor.connection.ip);
                let source = source_of(&self.salt, ip);
                self.gateway.handle(now, Input::Ask(Asking { client, seq, player, source, ask }));
            }
            Err((seq, code, why)) => visitor.connection.complain(links, seq, code, why),
        }
    }

    pub(super) fn reply(&mut self, links: &mut Links, client: ClientId, seq: Option<u64>, reply: Reply) {
        let visitor = self.clients.get(&client).and_then(|key| self.visitors.get(key));
        if let Some(visitor) = visitor {
            visitor.connection.say(links, &Answer { seq, feature: FEATURE, answer: reply });
        }
    }

    /// The next token to look up, and its visitor.
    pub fn poll_question(&mut self) -> Option<(u64, Token)> {
        self.questions.pop_front()
    }

    /// Handles the result of a token lookup.
    pub fn known(&mut self, links: &mut Links, client: u64, player: Option<PlayerId>) {
        let key = self.clients.get(&ClientId(client));
        let Some(visitor) = key.and_then(|key| self.visitors.get_mut(key)) else { return };
        if let Some((seq, token)) = visitor.asked.take() {
            match player {
                Some(player) => visitor.welcome(links, seq, player, &token),
                None => visitor.connection.complain(links, seq, Code::BadToken, SIGN_IN),
            }
        }
    }

    /// Closes all visitors' connections.
    pub fn hang_up(&mut self, links: &mut Links) {
        self.visitors.values().for_each(|visitor| visitor.connection.hang_up(links));
    }
}

impl Visitor {
    /// A visitor with a token is the same player as before; one without is a new player. Where sign-in is required, the
    /// token is returned for lookup.
    fn greet(&mut self, links: &mut Links, seq: u64, token: Option<&str>, is_strict: bool) -> Option<Token> {
        let token = match token.map(Token::from_hex) {
            None if is_strict => {
                self.connection.complain(links, seq, Code::BadToken, SIGN_IN);
                return None;
            }
            None => Token::from_bytes(random()),
            Some(Some(token)) => token,
            Some(None) => {
                let why = "`token` is one that this server has given, or none";
                self.connection.complain(links, seq, Code::BadToken, why);
                return None;
            }
        };
        if is_strict {
            self.asked = Some((seq, token));
            return Some(token);
        }
        self.welcome(links, seq, player_of(&token), &token);
        None
    }

    fn welcome(&mut self, links: &mut Links, seq: u64, player: PlayerId, token: &Token) {
        self.player = Some(player);
        let you = Greeted::You { player, token: token.to_hex() };
        self.connection.say(links, &Answer { seq: Some(seq), feature: FEATURE, answer: you });
    }
}

/// The player of a token. Nothing is stored: the token proves the identity at every gateway, and the id does not reveal
/// the token.
fn player_of(token: &Token) -> PlayerId {
    let mut hasher = blake3::Hasher::new_derive_key("sametick 2026 player of a lobby token");
    hasher.update(token.to_hex().as_bytes());
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    PlayerId::from_bytes(id)
}
