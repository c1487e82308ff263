//! Who somebody is: a guest with a name, or, where the key of an issuer is configured, whoever an issuer's signed token says.
//!
//! ```text
//! JWT ─ POST /api/session ─► Identity::sign_in ─► worker.rs (a thread) ─► verifier.rs ─► status.rs ─► SignedIn
//!                                                    keys.rs, jwks.rs ◄─ the issuer          Tokens::issue ─► our token
//! ```
//!
//! A signed token is looked at once and exchanged for one of ours, which is what rooms ask for. Settings, claims, codes and
//! what is refused are in [docs/identity.md](../../../docs/identity.md).

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

/// Somebody whose token was good.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// Who they are here.
    pub player: PlayerId,
    /// Who they are for the issuer (`sub`).
    pub subject: String,
    /// In which of the issuer's sessions they signed in (`sid`).
    pub session: Option<String>,
    /// What they are called, if the token says so: at most [`MAX_NAME`] bytes, without control characters.
    pub name: Option<String>,
    /// Until when their token was good.
    pub expires_unix_s: u64,
}

impl fmt::Debug for SignedIn {
    /// Only who they are here: the rest is the issuer's, and theirs.
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

/// A name as others may see it, if something is left of it.
fn tidy(name: &str) -> Option<String> {
    let plain: String = name.chars().filter(|letter| !letter.is_control()).collect();
    let plain = plain.trim();
    let short = plain.get(..plain.floor_char_boundary(MAX_NAME)).unwrap_or_default().trim_end();
    (!short.is_empty()).then(|| short.to_owned())
}

/// How it is found out who somebody is. Clones are one.
#[derive(Clone, Debug)]
pub struct Identity {
    signed: Option<(Worker, Arc<str>)>,
}

impl Identity {
    /// Checks as configured. Without a configuration everybody is whom they say they are.
    pub fn start(config: Option<IdentityConfig>) -> Result<Identity, IdentityError> {
        let Some(config) = config else { return Ok(Identity { signed: None }) };
        let issuer = config.rules.issuer.as_str().into();
        let keys = config.read_keys()?;
        Ok(Identity { signed: Some((Worker::open(config, keys)?, issuer)) })
    }

    /// Whether nobody plays in a room without a good token.
    pub fn requires_tokens(&self) -> bool {
        self.signed.is_some()
    }

    /// Logs a warning if anybody may say they are anybody.
    pub fn warn_if_open(&self) {
        if !self.requires_tokens() {
            tracing::warn!("no key is configured (--jwks-url): anybody may come in under any name");
        }
    }

    /// What is asked of players, in words.
    pub fn asked(&self) -> &'static str {
        match self.signed {
            Some(_) => "players sign in: rooms ask for a token of POST /api/session",
            None => "none: anybody may come in under any name; --jwks-url asks for signed tokens",
        }
    }

    /// Who a signed token says somebody is. `None` where nobody signs in. The work is another thread's, and
    /// begins when it is awaited.
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
    fn names_are_short_and_can_be_shown() {
        assert_eq!(tidy(" Ada\u{7}\n Lovelace ").as_deref(), Some("Ada Lovelace"));
        assert_eq!((tidy(""), tidy(" \u{1b}\t ")), (None, None));
        let long = tidy(&"é".repeat(500)).unwrap();
        assert!((MAX_NAME - 1..=MAX_NAME).contains(&long.len()));
    }
}
