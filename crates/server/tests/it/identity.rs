//! Who somebody is: signed tokens, the keys they are checked with, and the exchange for tokens of ours.

#[path = "identity/exchange.rs"]
mod exchange;
#[path = "identity/issuer.rs"]
mod issuer;
#[path = "identity/options.rs"]
mod options;
#[path = "identity/signed.rs"]
mod signed;
