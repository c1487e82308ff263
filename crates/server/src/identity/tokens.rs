//! Our own tokens: what a signed one is exchanged for.

use std::pin::Pin;

use sametick_transport::clock::{random, unix_seconds};
use sametick_wire::identity::Token;

use super::SignedIn;

/// A token that is kept, and what its owner is told with it.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The token itself.
    pub token: Token,
    /// What they are called, if that is known.
    pub name: Option<String>,
    /// Until when it is good.
    pub expires_unix_s: u64,
}

/// A token that is being kept; `None` if it cannot be.
pub type Issuing = Pin<Box<dyn Future<Output = Option<Issued>> + Send>>;

/// Makes tokens, and keeps them so that rooms know them. The boundary between who somebody is and where that is kept.
pub trait Tokens: Send + Sync + 'static {
    /// A new token for somebody who has signed in, there when it is kept. It is called and awaited on the thread that runs
    /// the ticks, so it must not wait itself.
    fn issue(&self, who: &SignedIn) -> Issuing;
}

/// How long a token is good that nobody keeps.
const UNKEPT_S: u64 = 86_400;

/// Tokens that are kept nowhere: whoever has one has signed in, and nobody asks for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unkept;

impl Tokens for Unkept {
    fn issue(&self, who: &SignedIn) -> Issuing {
        let expires_unix_s = unix_seconds() + UNKEPT_S;
        let issued = Issued { token: Token::from_bytes(random()), name: who.name.clone(), expires_unix_s };
        Box::pin(std::future::ready(Some(issued)))
    }
}
