//! A player's identity, and the secret token that proves it.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::hex;

/// Separates hashes for different purposes.
const USER_CONTEXT: &str = "sametick 2026 player of an issuer";
const TOKEN_CONTEXT: &str = "sametick 2026 token at rest";

/// The identity of a player, across rooms, links and restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerId(pub u128);

impl PlayerId {
    /// The id of a guest, from random bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> PlayerId {
        PlayerId(u128::from_be_bytes(bytes))
    }

    /// The id of the user whom an issuer knows as `subject`. It is a hash, so that no e-mail and no name is a key.
    pub fn of_user(issuer: &str, subject: &str) -> PlayerId {
        PlayerId::from_bytes(digest(USER_CONTEXT, issuer, subject))
    }

    /// The stored form.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// From 32 hexadecimal digits, as it is [shown](fmt::Display).
    pub fn from_hex(text: &str) -> Option<PlayerId> {
        hex::from_hex(text).map(PlayerId::from_bytes)
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

/// The secret that proves a player's identity: 128 random bits. A server never stores it and never shows it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token([u8; 16]);

impl Token {
    /// From random bytes of the operating system.
    pub const fn from_bytes(bytes: [u8; 16]) -> Token {
        Token(bytes)
    }

    /// From a client's message.
    pub fn from_hex(text: &str) -> Option<Token> {
        hex::from_hex(text).map(Token)
    }

    /// For the client that it belongs to, and for no other use.
    pub fn to_hex(&self) -> String {
        hex::to_hex(&self.0)
    }

    /// The stored form.
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

/// The stored form of a [`Token`]. Compared in constant time.
#[derive(Clone, Copy)]
pub struct TokenHash(pub [u8; 32]);

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        // This comparison of hashes takes constant time.
        blake3::Hash::from_bytes(self.0) == blake3::Hash::from_bytes(other.0)
    }
}

impl Eq for TokenHash {}

impl core::hash::Hash for TokenHash {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// The first bytes of a hash over two texts, unambiguous between pairs of texts and between contexts.
pub fn digest<const N: usize>(context: &str, one: &str, other: &str) -> [u8; N] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    hasher.update(&(one.len() as u64).to_le_bytes()).update(one.as_bytes()).update(other.as_bytes());
    let mut bytes = [0; N];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn ids_are_stable() {
        // Rows are found by these: they never change.
        assert_eq!(PlayerId::of_user("a", "b").to_string(), "795c21b846129f798b484893816833b0");
        assert_ne!(PlayerId::of_user("ab", ""), PlayerId::of_user("a", "b"));
    }

    #[test]
    fn a_token_is_never_shown() {
        let token = Token::from_hex("00112233445566778899aabbccddeeff").unwrap();
        assert_eq!(token.to_hex(), "00112233445566778899aabbccddeeff");
        let shown = format!("{token:?} {:?}", token.hash());
        assert_eq!(shown, "Token(…) TokenHash(…)");
        assert!(Token::from_hex("+0112233445566778899aabbccddeeff").is_none());
        assert!(Token::from_hex("0011").is_none());
    }
}
