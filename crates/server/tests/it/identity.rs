//! Tests of identity: signed tokens, the keys they are checked with, and their exchange for session tokens.

#[path = "identity/exchange.rs"]
mod exchange;
#[path = "identity/issuer.rs"]
mod issuer;
#[path = "identity/options.rs"]
mod options;
#[path = "identity/signed.rs"]
mod signed;
