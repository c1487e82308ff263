//! What a page says when it begins, as JSON.

use sametick_sim::contest::Wanted;
use sametick_wire::Carrier;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::MAX_PASS;
use sametick_wire::hex::{from_hex, read_hex};
use sametick_wire::identity::Token;
use serde::Deserialize;

/// In place of the git commit: the committed module cannot know in which commit it will be.
pub const COMMIT: &str = "browser";

/// The most bytes of a claim: twice those of the longest that there is.
const MAX_CLAIM: usize = 128;

/// How to play, where, and as whom.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The game's name.
    pub game: String,
    /// Who decides.
    #[serde(default)]
    pub mode: Mode,
    /// The session's name, or the room's.
    pub session: String,
    /// The player's name.
    pub name: String,
    /// The ways to the server, the best first.
    pub routes: Vec<Route>,
    /// The root key in hexadecimal, where a passphrase is asked for.
    pub key: Option<String>,
    /// Who the player is: 32 hexadecimal digits that the server gave before.
    #[serde(default)]
    pub token: Option<String>,
    /// What brings the player back to a seat that another page of this tab had, in hexadecimal.
    #[serde(default)]
    pub claim: Option<String>,
    /// What the host of a session gave to show who one is, in hexadecimal. It decides about everything else.
    #[serde(default)]
    pub pass: Option<String>,
    /// How many players the session is for, if it has to be begun.
    pub players: u16,
    /// Whether bots play.
    pub bots: bool,
    /// Which of the game's [scenarios](sametick_sim::contest::Contest::SCENARIOS) it is then. Without one a game has no end of its own.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Where all its randomness comes from then; another one each time if this is not said.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Whether strangers may be shown it.
    pub listed: bool,
    /// Only watch.
    pub watch: bool,
    /// Milliseconds of Unix time.
    pub unix_ms: f64,
    /// The time that goes with it, as in every call.
    pub now_us: f64,
    /// 64 hexadecimal digits from the browser's randomness.
    pub random: String,
}

/// Who decides what happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Every machine computes everything.
    #[default]
    Lockstep,
    /// A host does.
    Room,
}

/// A way to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// Datagrams and streams.
    WebTransport,
    /// One stream.
    WebSocket,
}

impl Route {
    /// As pages call it.
    pub fn name(self) -> &'static str {
        match self {
            Route::WebTransport => "webtransport",
            Route::WebSocket => "websocket",
        }
    }

    /// What it can carry.
    pub fn carrier(self) -> Carrier {
        match self {
            Route::WebTransport => Carrier::DatagramsAndStreams,
            Route::WebSocket => Carrier::Stream,
        }
    }
}

impl Options {
    /// Reads what a page says.
    pub fn from_json(json: &str) -> Result<Options, String> {
        let options: Options = serde_json::from_str(json).map_err(|error| format!("bad options: {error}"))?;
        if options.routes.is_empty() {
            return Err("no route to the server".into());
        }
        Ok(options)
    }

    /// The key that proves the passphrase, or that of a server without one.
    pub fn access_key(&self) -> Result<AccessKey, String> {
        match &self.key {
            Some(key) => {
                let root = from_hex(key).ok_or("a key has 64 hexadecimal digits")?;
                Ok(AccessKey::from_root(&root))
            }
            None => Ok(AccessKey::open()),
        }
    }

    /// What the scenario asks for, if there is one.
    pub fn wanted(&self, seed: u64, seats: u16) -> Option<Wanted<'_>> {
        let scenario = Some(self.scenario.as_deref()?);
        Some(Wanted { seed, seats, scenario, difficulty: 1 })
    }

    /// Who the player is. What is no token is as if there were none.
    pub fn token(&self) -> Option<Token> {
        self.token.as_deref().and_then(Token::from_hex)
    }

    /// What brings the player back to their seat. What is no claim is as if there were none.
    pub fn claim(&self) -> Option<Vec<u8>> {
        self.claim.as_deref().and_then(|digits| read_hex(digits, MAX_CLAIM))
    }

    /// What shows as whom the player comes.
    pub fn pass(&self) -> Result<Option<Vec<u8>>, String> {
        let digits = self.pass.as_deref().unwrap_or_default();
        let pass = read_hex(digits, MAX_PASS)
            .ok_or("a pass has an even number of hexadecimal digits, and not too many")?;
        Ok((!pass.is_empty()).then_some(pass))
    }

    /// The randomness.
    pub fn random(&self) -> Result<[u8; 32], String> {
        from_hex(&self.random).ok_or_else(|| "random has 64 hexadecimal digits".into())
    }
}
