//! Passwords of sessions: stored as slow hashes, compared in constant time, with rate-limited guesses.

use alloc::string::String;
use core::fmt;

use sametick_wire::access::stretch;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use sametick_wire::rate_limit::RateLimit;

/// The longest password, in bytes.
pub const MAX_PASSWORD: usize = 64;

/// The rate limit of guesses for one source: ten mistyped passwords, then one every six seconds.
pub const GUESSES: RateLimit = RateLimit::every_us(6_000_000, 10);

/// The rate limit of guesses at one session, for all sources together: an attacker may have many sources.
pub const GUESSES_OF_ALL: RateLimit = RateLimit::every_us(500_000, 60);

/// The most sources with a rate limiter of their own; further ones share one.
pub const MAX_GUESSERS: usize = 4_096;

/// The password that a player typed. It is never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Password(String);

impl Password {
    /// Checks the text; none if it is empty or too long.
    pub fn new(typed: &str) -> Option<Password> {
        (1..=MAX_PASSWORD).contains(&typed.len()).then(|| Password(typed.into()))
    }

    /// Whether the length is valid: a deserialised value may have any.
    pub fn is_sound(&self) -> bool {
        (1..=MAX_PASSWORD).contains(&self.0.len())
    }

    /// Hashes it with a salt: 19 MiB and some tens of milliseconds, so call it on a thread of its own.
    pub fn weigh(&self, salt: Salt) -> Weight {
        Weight(stretch(&self.0, &salt.0))
    }

    /// A cheap hash, for tests.
    #[doc(hidden)]
    pub fn weigh_lightly(&self, salt: Salt) -> Weight {
        Weight(*blake3::Hasher::new().update(&salt.0).update(self.0.as_bytes()).finalize().as_bytes())
    }
}

/// Makes the hashes of equal passwords differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Salt(pub [u8; 16]);

/// The hash of a password. Compared in constant time.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Weight([u8; 32]);

impl PartialEq for Weight {
    fn eq(&self, other: &Weight) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Weight {}

/// A password as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The salt of the hash.
    pub salt: Salt,
    /// The hash.
    pub weight: Weight,
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

impl fmt::Debug for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Weight(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_compared_by_its_hash_and_never_shown() {
        let word = |text| Password::new(text).unwrap();
        let salt = Salt([7; 16]);
        assert_eq!(word("open").weigh(salt), word("open").weigh(salt));
        assert_ne!(word("open").weigh(salt), word("Open").weigh(salt));
        assert_ne!(word("open").weigh_lightly(salt), word("open").weigh_lightly(Salt([8; 16])));
        assert!(Password::new("").is_none() && Password::new(&"x".repeat(65)).is_none());
        assert_eq!(
            alloc::format!("{:?} {:?}", word("open"), word("open").weigh_lightly(salt)),
            "Password(…) Weight(…)"
        );
    }
}
