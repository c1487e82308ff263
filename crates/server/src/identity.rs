//! Player identity: a guest with a name, or, where an issuer's key is configured, the subject of a signed token.
//!
//! ```text
//! JWT ─ POST /api/session ─► Identity::sign_in ─► worker.rs (a thread) ─► verifier.rs ─► status.rs ─► SignedIn
//!                                                    keys.rs, jwks.rs ◄─ the issuer          Tokens::issue ─► our token
//! ```
//!
//! A signed token is checked once and exchanged for one of ours, which rooms require. Settings, claims, codes and
//! refusals are in [docs/identity.md](../../../docs/identity.md).

pub mod jwks;
pub mod keys;
pub mod refusal;
pub mod settings;
mod signatures;
mod status;
pub mod tokens;
pub mod verifier;
mod worker;

use std::fmt;
use std::sync::Arc;

use sametick_wire::hello::MAX_NAME;
use sametick_wire::identity::PlayerId;

pub use refusal::Refusal;
pub use settings::{IdentityArgs, IdentityConfig, IdentityError};
pub use signatures::Algorithm;

use verifier::Claims;
use worker::Worker;

/// The identity from a valid token.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The player id on this server.
    pub player: PlayerId,
    /// The issuer's id of the player (`sub`).
    pub subject: String,
    /// The issuer's session of this sign-in (`sid`).
    pub session: Option<String>,
    /// The name, if the token has one: at most [`MAX_NAME`] bytes, without control characters.
    pub name: Option<String>,
    /// When the token expires.
    pub expires_unix_s: u64,
}

impl fmt::Debug for SignedIn {
    /// Prints only the player id: the other fields are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignedIn({})", self.player)
    }
}

impl SignedIn {
    fn new(issuer: &str, claims: Claims) -> SignedIn {
        let Claims { subject, session, name, expires_unix_s } = claims;
        let player = PlayerId::of_user(issuer, &subject);
        SignedIn { player, subject, session, name: name.as_deref().and_then(tidy), expires_unix_s }
    }
}

/// A name without control characters and of limited length, if anything is left.
fn tidy(name: &str) -> Option<String> {
    let plain: String = name.chars().filter(|letter| !letter.is_control()).collect();
    let plain = plain.trim();
    let short = plain.get(..plain.floor_char_boundary(MAX_NAME)).unwrap_or_default().trim_end();
    (!short.is_empty()).then(|| short.to_owned())
}

/// Checks identity as configured. Clones share one worker.
#[derive(Clone, Debug)]
pub struct Identity {
    signed: Option<(Worker, Arc<str>)>,
}

impl Identity {
    /// Starts with this configuration. Without one, players are who they claim to be.
    pub fn start(config: Option<IdentityConfig>) -> Result<Identity, IdentityError> {
        let Some(config) = config else { return Ok(Identity { signed: None }) };
        let issuer = config.rules.issuer.as_str().into();
        let keys = config.read_keys()?;
        Ok(Identity { signed: Some((Worker::open(config, keys)?, issuer)) })
    }

    /// Whether rooms require a valid token.
    pub fn requires_tokens(&self) -> bool {
        self.signed.is_some()
    }

    /// Logs a warning if identities are not checked.
    pub fn warn_if_open(&self) {
        if !self.requires_tokens() {
            tracing::warn!("no key is configured (--jwks-url): anybody may come in under any name");
        }
    }

    /// The policy in words, for the start-up output.
    pub fn asked(&self) -> &'static str {
        match self.signed {
            Some(_) => "players sign in: rooms ask for a token of POST /api/session",
            None => "none: anybody may come in under any name; --jwks-url asks for signed tokens",
        }
    }

    /// The identity in a signed token; `None` where no sign-in is configured. The check runs on another thread and
    /// begins when the future is polled.
    pub fn sign_in(
        &self,
        token: &str,
    ) -> Option<impl Future<Output = Result<SignedIn, Refusal>> + Send + use<>> {
        let (worker, issuer) = self.signed.clone()?;
        let checked = worker.check(token.to_owned());
        Some(async move { checked.await.map(|claims| SignedIn::new(&issuer, claims)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_printable() {
        assert_eq!(tidy(" Ada\u{7}\n Lovelace ").as_deref(), Some("Ada Lovelace"));
        assert_eq!((tidy(""), tidy(" \u{1b}\t ")), (None, None));
        let long = tidy(&"é".repeat(500)).unwrap();
        assert!((MAX_NAME - 1..=MAX_NAME).contains(&long.len()));
    }
}
