//! The words of the database: who, where, by which token, and what a game wrote about it.

use std::fmt;
use std::hash::{Hash, Hasher};

/// The most bytes that a game may keep of one player or one part.
pub const MAX_KEPT: usize = 256;

/// The longest id of a character.
pub const MAX_CHARACTER_BYTES: usize = 24;

/// Keeps apart what is hashed for different purposes.
const USER_CONTEXT: &str = "sametick 2026 player of an issuer";
const PLACE_CONTEXT: &str = "sametick 2026 place of a game";
const TOKEN_CONTEXT: &str = "sametick 2026 token at rest";

/// Who somebody is, across rooms, links and restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerId(pub u128);

impl PlayerId {
    /// A guest's, from random bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> PlayerId {
        PlayerId(u128::from_be_bytes(bytes))
    }

    /// That of somebody whom an issuer knows as `subject`. It is a hash, so that no e-mail and no name is a key.
    pub fn of_user(issuer: &str, subject: &str) -> PlayerId {
        PlayerId::from_bytes(first_bytes(USER_CONTEXT, issuer, subject))
    }

    /// As it is kept.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// From 32 hexadecimal digits, as it is [shown](fmt::Display).
    pub fn from_hex(text: &str) -> Option<PlayerId> {
        from_hex(text).map(PlayerId::from_bytes)
    }
}

impl fmt::Display for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlayerId({self})")
    }
}

/// A room of a game, by its code. It has no build in it: a new build of a game finds its rooms again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u64);

impl PlaceId {
    /// The room with this code of this game.
    pub fn of(game: &str, code: &str) -> PlaceId {
        PlaceId(u64::from_be_bytes(first_bytes(PLACE_CONTEXT, game, code)))
    }
}

/// The secret by which one client is known as a player: 128 random bits. It is never kept and never shown.
#[derive(Clone)]
pub struct Token([u8; 16]);

impl Token {
    /// From random bytes of the operating system.
    pub const fn from_bytes(bytes: [u8; 16]) -> Token {
        Token(bytes)
    }

    /// From what a client sent.
    pub fn from_hex(text: &str) -> Option<Token> {
        from_hex(text).map(Token)
    }

    /// For the client it belongs to, and for nobody else.
    pub fn to_hex(&self) -> String {
        PlayerId::from_bytes(self.0).to_string()
    }

    /// What is kept of it.
    pub fn hash(&self) -> TokenHash {
        let mut hasher = blake3::Hasher::new_derive_key(TOKEN_CONTEXT);
        hasher.update(&self.0);
        TokenHash(*hasher.finalize().as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What is kept of a [`Token`]. Compared in constant time.
#[derive(Clone, Copy)]
pub struct TokenHash(pub [u8; 32]);

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        // The comparison of hashes that takes as long for any two.
        blake3::Hash::from_bytes(self.0) == blake3::Hash::from_bytes(other.0)
    }
}

impl Eq for TokenHash {}

impl Hash for TokenHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// What a game wrote about a player or a part of a room, to be read by the game only. Empty: nothing yet, the game's own
/// beginning.
#[derive(Clone)]
pub struct Kept {
    len: u16,
    bytes: [u8; MAX_KEPT],
}

/// More bytes than may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes, but at most {MAX_KEPT} are kept")]
pub struct TooLong(pub usize);

impl Kept {
    /// Takes a copy.
    pub fn new(bytes: &[u8]) -> Result<Kept, TooLong> {
        let mut kept = Kept::default();
        let room = kept.bytes.get_mut(..bytes.len()).ok_or(TooLong(bytes.len()))?;
        room.copy_from_slice(bytes);
        kept.len = bytes.len() as u16;
        Ok(kept)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Default for Kept {
    fn default() -> Self {
        Kept { len: 0, bytes: [0; MAX_KEPT] }
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Kept {}

impl TryFrom<&[u8]> for Kept {
    type Error = TooLong;

    fn try_from(bytes: &[u8]) -> Result<Kept, TooLong> {
        Kept::new(bytes)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({} bytes)", self.len)
    }
}

/// Is this the id of a character: 1 to 24 of `a` to `z`, `0` to `9` and `-`?
pub fn is_character(id: &str) -> bool {
    let fits = (1..=MAX_CHARACTER_BYTES).contains(&id.len());
    fits && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The first bytes of a hash over two texts that cannot be mistaken for two others.
fn first_bytes<const N: usize>(context: &str, one: &str, other: &str) -> [u8; N] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    hasher.update(&(one.len() as u64).to_le_bytes()).update(one.as_bytes()).update(other.as_bytes());
    let mut bytes = [0; N];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

fn from_hex(text: &str) -> Option<[u8; 16]> {
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_what_they_were() {
        // Rows are found by these: they never change.
        assert_eq!(PlaceId::of("arena", "lobby"), PlaceId::of("arena", "lobby"));
        assert_ne!(PlaceId::of("arena", "lobby"), PlaceId::of("aren", "alobby"));
        assert_eq!(PlayerId::of_user("a", "b").to_string(), "795c21b846129f798b484893816833b0");
        assert_eq!(format!("{:016x}", PlaceId::of("arena", "lobby").0), "05b64cb4fc66c517");
    }

    #[test]
    fn a_token_is_shown_to_nobody() {
        let token = Token::from_hex("00112233445566778899aabbccddeeff").unwrap();
        assert_eq!(token.to_hex(), "00112233445566778899aabbccddeeff");
        let shown = format!("{token:?} {:?}", token.hash());
        assert_eq!(shown, "Token(…) TokenHash(…)");
        assert!(Token::from_hex("+0112233445566778899aabbccddeeff").is_none());
        assert!(Token::from_hex("0011").is_none());
    }

    #[test]
    fn characters_have_plain_ids() {
        assert!(is_character("knight-2") && is_character(&"a".repeat(24)));
        assert!(["", "Knight", "a b", "ä", &"a".repeat(25)].iter().all(|id| !is_character(id)));
    }

    #[test]
    fn kept_bytes_have_a_limit() {
        assert_eq!(Kept::new(&[7; MAX_KEPT]).unwrap().as_bytes(), [7; MAX_KEPT]);
        assert_eq!(Kept::new(&[7; MAX_KEPT + 1]), Err(TooLong(MAX_KEPT + 1)));
        assert!(Kept::default().as_bytes().is_empty());
    }
}
