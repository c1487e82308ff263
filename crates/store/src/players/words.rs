//! The value types of the players database: room ids, token hashes and game data.

use std::fmt;

pub use sametick_sim::replica::MAX_KEPT;
use sametick_wire::identity::digest;
pub use sametick_wire::identity::{PlayerId, Token, TokenHash};

/// The longest id of a character.
pub const MAX_CHARACTER_BYTES: usize = 24;

/// Domain separation of the hash.
const PLACE_CONTEXT: &str = "sametick 2026 place of a game";

/// The id of a room, derived from its game and code. It does not depend on the build: a new build of a game finds its
/// rooms again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u64);

impl PlaceId {
    /// The room with this code of this game.
    pub fn of(game: &str, code: &str) -> PlaceId {
        PlaceId(u64::from_be_bytes(digest(PLACE_CONTEXT, game, code)))
    }
}

/// Opaque data that a game wrote about a player or a part of a room. Empty: the game's own default.
#[derive(Clone)]
pub struct Kept {
    len: u16,
    bytes: [u8; MAX_KEPT],
}

/// The data is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes, but at most {MAX_KEPT} are kept")]
pub struct TooLong(pub usize);

impl Kept {
    /// Copies the bytes, if they are not too long.
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

/// Whether this is the id of a character: 1 to 24 of `a` to `z`, `0` to `9` and `-`.
pub fn is_character(id: &str) -> bool {
    let fits = (1..=MAX_CHARACTER_BYTES).contains(&id.len());
    fits && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_ids_never_change() {
        // Rows are found by these ids: they never change.
        assert_eq!(PlaceId::of("arena", "lobby"), PlaceId::of("arena", "lobby"));
        assert_ne!(PlaceId::of("arena", "lobby"), PlaceId::of("aren", "alobby"));
        assert_eq!(format!("{:016x}", PlaceId::of("arena", "lobby").0), "05b64cb4fc66c517");
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
