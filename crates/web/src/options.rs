//! The options of a page, as JSON.

use sametick_sim::contest::Wanted;
use sametick_wire::Carrier;
use sametick_wire::access::AccessKey;
use sametick_wire::hello::MAX_PASS;
use sametick_wire::hex::{from_hex, read_hex};
use sametick_wire::identity::Token;
use serde::Deserialize;

/// In place of the git commit: the committed module cannot know in which commit it will be.
pub const COMMIT: &str = "browser";

/// The most bytes of a claim: twice the longest that exists.
const MAX_CLAIM: usize = 128;

/// Which game to join, where, and with which identity.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The game's name.
    pub game: String,
    /// Where the game is simulated.
    #[serde(default)]
    pub mode: Mode,
    /// The session's name, or the room's.
    pub session: String,
    /// The player's name.
    pub name: String,
    /// The routes to the server, the best first.
    pub routes: Vec<Route>,
    /// The root key in hexadecimal, if there is a passphrase.
    pub key: Option<String>,
    /// The identity token: 32 hexadecimal digits that the server assigned before.
    #[serde(default)]
    pub token: Option<String>,
    /// The claim to a seat that another page of this tab had, in hexadecimal.
    #[serde(default)]
    pub claim: Option<String>,
    /// The pass that the host of a session has issued, in hexadecimal. It overrides all else.
    #[serde(default)]
    pub pass: Option<String>,
    /// The number of players of a new session.
    pub players: u16,
    /// Whether bots play.
    pub bots: bool,
    /// The [scenario](sametick_sim::contest::Contest::SCENARIOS) of a new session. Without one a game has no end of its
    /// own.
    #[serde(default)]
    pub scenario: Option<String>,
    /// The seed of a new session; random if none.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Whether the session is listed.
    pub listed: bool,
    /// Only spectate.
    pub watch: bool,
    /// Milliseconds of Unix time.
    pub unix_ms: f64,
    /// The same moment on the clock of every call.
    pub now_us: f64,
    /// 64 hexadecimal digits from the browser's randomness.
    pub random: String,
}

/// Where the game is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// On every client.
    #[default]
    Lockstep,
    /// On a host.
    Room,
}

/// A route to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// Datagrams and streams.
    WebTransport,
    /// One stream.
    WebSocket,
}

impl Route {
    /// Its name in pages.
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
    /// Parses the options.
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

    /// The parameters of the scenario, if there is one.
    pub fn wanted(&self, seed: u64, seats: u16) -> Option<Wanted<'_>> {
        let scenario = Some(self.scenario.as_deref()?);
        Some(Wanted { seed, seats, scenario, difficulty: 1 })
    }

    /// The identity token. An invalid one counts as none.
    pub fn token(&self) -> Option<Token> {
        self.token.as_deref().and_then(Token::from_hex)
    }

    /// The claim to a seat. An invalid one counts as none.
    pub fn claim(&self) -> Option<Vec<u8>> {
        self.claim.as_deref().and_then(|digits| read_hex(digits, MAX_CLAIM))
    }

    /// The pass that identifies the player.
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
