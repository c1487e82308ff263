//! Parses the URL with which a script joins a room: `/api/rooms/{code}/ws?name=Ada`.

use sametick_session::name::is_printable;
use sametick_wire::claims::Claim;
use sametick_wire::hello::{MAX_NAME, MAX_PASS, MAX_SESSION};
use sametick_wire::hex::{from_hex, read_hex};
use sametick_wire::identity::Token;
use sametick_wire::text::is_safe_to_show;
use serde_json::{Map, Value};

use super::script::claim_of;
use crate::strict_json::no_json;

const BEFORE: &str = "/api/rooms/";
const BEHIND: &str = "/ws";

/// The name of a script that gives none.
const NO_NAME: &str = "script";

/// A script's request to join a room.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrance {
    /// The code of the room.
    pub room: String,
    /// The game, if it is named.
    pub game: Option<String>,
    /// The script's name.
    pub name: String,
    /// Whether it only spectates.
    pub watch: bool,
    /// Whether a new room is listed.
    pub listed: bool,
    /// The number of seats of a new room, if given.
    pub seats: Option<u64>,
    /// Setup fields of a new room that differ from the defaults.
    pub setup: Map<String, Value>,
    /// The claim to resume a seat.
    pub resume: Option<Claim>,
    /// The player's token.
    pub token: Option<Token>,
    /// The proof of the passphrase.
    pub proof: Option<[u8; 32]>,
    /// The pass, which names the member in the game of a session.
    pub pass: Option<Vec<u8>>,
}

/// Whether a WebSocket at this path is for a script, even if the rest is wrong: [`Entrance::parse`] returns the error.
pub fn is_of_scripts(path: &str) -> bool {
    path.starts_with(BEFORE)
}

/// The room code in a WebSocket path.
fn room_of_socket(path: &str) -> Option<&str> {
    room_of(path.strip_suffix(BEHIND)?)
}

/// The room code in the path of a room's description.
pub fn room_of(path: &str) -> Option<&str> {
    path.strip_prefix(BEFORE).filter(|code| !code.is_empty() && !code.contains('/'))
}

impl Entrance {
    /// Parses a path with its query. The error is a sentence; unknown parameters are ignored.
    pub fn parse(target: &str) -> Result<Entrance, String> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let code = room_of_socket(path).ok_or("a script comes in at /api/rooms/CODE/ws")?;
        let room = decode(code).ok_or("the code of a room is UTF-8, percent-encoded")?;
        check_code(&room)?;
        let mut entrance = Entrance {
            room,
            game: None,
            name: NO_NAME.into(),
            watch: false,
            listed: true,
            seats: None,
            setup: Map::new(),
            resume: None,
            token: None,
            proof: None,
            pass: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value).ok_or_else(|| format!("`{name}` is UTF-8, percent-encoded"))?;
            entrance.set(name, value)?;
        }
        Ok(entrance)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let flag = || match value.as_str() {
            "" | "1" | "true" => Ok(true),
            "0" | "false" => Ok(false),
            _ => Err(format!("`{name}` is 0 or 1")),
        };
        match name {
            "name" | "playerId" if !is_safe_to_show(&value) => {
                return Err(format!("a {name} has no control or direction characters"));
            }
            "name" if value.len() > MAX_NAME => return Err(format!("a name has at most {MAX_NAME} bytes")),
            "name" if !value.trim().is_empty() => self.name = value,
            // It names a script that has no other name.
            "playerId" if value.len() > MAX_NAME => {
                return Err(format!("a playerId has at most {MAX_NAME} bytes"));
            }
            "playerId" if self.name == NO_NAME && !value.trim().is_empty() => self.name = value,
            "game" => self.game = Some(value),
            "watch" => self.watch = flag()?,
            "listed" => self.listed = flag()?,
            "seats" => {
                // The range is checked later, where the game is known.
                self.seats = Some(value.parse().map_err(|_| "`seats` is a whole number".to_owned())?);
            }
            "setup" => {
                let setup: Value =
                    serde_json::from_str(&value).map_err(|why| format!("`setup`: {}", no_json(&why)))?;
                let Value::Object(setup) = setup else { return Err("`setup` is an object in JSON".into()) };
                self.setup = setup;
            }
            "resumeToken" if !value.is_empty() => {
                let claim = claim_of(&value).ok_or("`resumeToken` is the one of a welcome")?;
                self.resume = Some(claim);
            }
            "token" if !value.is_empty() => {
                let token = Token::from_hex(&value).ok_or("`token` is one that this server has given")?;
                self.token = Some(token);
            }
            "proof" => self.proof = Some(from_hex(&value).ok_or("`proof` has 64 hexadecimal digits")?),
            "pass" => {
                let pass = read_hex(&value, MAX_PASS).ok_or("`pass` is the one that the session has told")?;
                self.pass = Some(pass);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Checks a room code.
pub fn check_code(code: &str) -> Result<(), &'static str> {
    if (1..=MAX_SESSION).contains(&code.len()) && is_printable(code) {
        Ok(())
    } else {
        Err("a room is called by 1 to 64 bytes of printable text")
    }
}

/// Decodes percent-encoded text; a plus is a space.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match byte {
            b'%' => {
                let (digits, behind) = rest.split_at_checked(2)?;
                rest = behind;
                let [value] = from_hex(std::str::from_utf8(digits).ok()?)?;
                bytes.push(value);
            }
            b'+' => bytes.push(b' '),
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_urls_are_parsed() {
        let plain = Entrance::parse("/api/rooms/den/ws").unwrap();
        assert_eq!((plain.room.as_str(), plain.name.as_str(), plain.watch), ("den", "script", false));
        for query in ["playerId=Ada", "playerId=7&name=Ada", "name=Ada&playerId=7"] {
            assert_eq!(Entrance::parse(&format!("/api/rooms/den/ws?{query}")).unwrap().name, "Ada");
        }
        let token = "01".repeat(24);
        let all = Entrance::parse(&format!(
            "/api/rooms/the%20den/ws?name=Ada+%C3%A9&game=arena&watch&listed=0&seats=9&more=x&setup=%7B%22bots%22:0%7D\
             &resumeToken={token}&token={}&proof={}",
            "07".repeat(16),
            "ab".repeat(32)
        ))
        .unwrap();
        assert_eq!(
            (all.room.as_str(), all.name.as_str(), all.game.as_deref()),
            ("the den", "Ada é", Some("arena"))
        );
        assert_eq!((all.watch, all.listed, all.seats, all.proof), (true, false, Some(9), Some([0xab; 32])));
        assert_eq!(all.resume.map(|claim| (claim.run, claim.token)), Some((0x0101_0101_0101_0101, [1; 16])));
        assert_eq!(all.token, Some(Token::from_bytes([7; 16])));
        assert_eq!(all.setup.get("bots"), Some(&Value::from(0)));
    }

    #[test]
    fn errors_in_script_urls_are_named() {
        for (target, words) in [
            ("/api/rooms//ws", "comes in at"),
            ("/api/rooms/a/b/ws", "comes in at"),
            ("/api/rooms/a%0a/ws", "printable"),
            ("/api/rooms/a%E2%80%AEb/ws", "printable"),
            ("/api/rooms/%E2%80%8B/ws", "printable"),
            ("/api/rooms/%ff/ws", "percent-encoded"),
            ("/api/rooms/a/ws?name=%4", "`name` is UTF-8"),
            ("/api/rooms/a/ws?watch=maybe", "`watch` is 0 or 1"),
            ("/api/rooms/a/ws?seats=many", "`seats` is a whole number"),
            ("/api/rooms/a/ws?name=%0a", "a name has no control"),
            ("/api/rooms/a/ws?playerId=a%E2%80%AEb", "a playerId has no control"),
            ("/api/rooms/a/ws?setup=[]", "`setup` is an object in JSON"),
            ("/api/rooms/a/ws?resumeToken=zz", "`resumeToken` is the one"),
            ("/api/rooms/a/ws?token=zz", "`token` is one that"),
            ("/api/rooms/a/ws?proof=zz", "64 hexadecimal digits"),
            ("/api/rooms/a/ws?pass=zz", "`pass` is the one"),
        ] {
            let why = Entrance::parse(target).unwrap_err();
            assert!(why.contains(words), "{target}: {why}");
        }
        let long = format!("/api/rooms/a/ws?name={}", "x".repeat(MAX_NAME + 1));
        assert!(Entrance::parse(&long).unwrap_err().contains("at most"));
    }
}
