//! Passwords of sessions: kept as what a slow hash makes of them, compared in constant time, guessed slowly.

use alloc::string::String;
use core::fmt;

use sametick_wire::access::stretch;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::pace::Limit;

/// The longest password, in bytes.
pub const MAX_PASSWORD: usize = 64;

/// How often one source may try: ten mistyped words, then one every six seconds.
pub const GUESSES: Limit = Limit { every_us: 6_000_000, burst: 10 };

/// How often all together may try one session: those who know the word are few, those who guess may be many.
pub const GUESSES_OF_ALL: Limit = Limit { every_us: 500_000, burst: 60 };

/// So many sources have a limit of their own; more than that share one.
pub const MAX_GUESSERS: usize = 4_096;

/// What somebody typed. Shown to nobody.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Password(String);

impl Password {
    /// From what was typed; none if it is empty or too long.
    pub fn new(typed: &str) -> Option<Password> {
        (1..=MAX_PASSWORD).contains(&typed.len()).then(|| Password(typed.into()))
    }

    /// Whether it is one: what was read from a message may be anything.
    pub fn is_sound(&self) -> bool {
        (1..=MAX_PASSWORD).contains(&self.0.len())
    }

    /// What it comes down to with a salt: 19 MiB and some tens of milliseconds, so not on a thread that has other things to do.
    pub fn weigh(&self, salt: Salt) -> Weight {
        Weight(stretch(&self.0, &salt.0))
    }

    /// The same at no cost, for tests.
    #[doc(hidden)]
    pub fn weigh_lightly(&self, salt: Salt) -> Weight {
        Weight(*blake3::Hasher::new().update(&salt.0).update(self.0.as_bytes()).finalize().as_bytes())
    }
}

/// Makes equal passwords come down to different weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Salt(pub [u8; 16]);

/// What a password comes down to. Compared in constant time.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Weight([u8; 32]);

impl PartialEq for Weight {
    fn eq(&self, other: &Weight) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Weight {}

/// What is kept of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// With which it was weighed.
    pub salt: Salt,
    /// What it came down to.
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
    fn a_password_is_told_by_its_weight_and_shown_to_nobody() {
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
