//! Why somebody is not signed in: a code for programs, a sentence for people. Neither holds anything of a token.

/// Why somebody is not signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its `exp` has passed.
    TokenExpired,
    /// Its `nbf` is still to come.
    TokenNotYetValid,
    /// Its `iss` is another.
    WrongIssuer,
    /// Its `aud` or `azp` says that it was made for others.
    WrongAudience,
    /// It is signed in another way than the configured one, or not at all.
    WrongAlgorithm,
    /// No key of the issuer has its `kid`.
    UnknownKey,
    /// The signature is not that of the key.
    BadSignature,
    /// It is no token, or lacks something. Says what.
    MalformedToken(&'static str),
    /// The issuer says that the session is over, or has not begun.
    Revoked,
    /// Who could tell cannot be asked now.
    IdentityUnavailable,
}

impl Refusal {
    /// What programs go by.
    pub const fn code(self) -> &'static str {
        match self {
            Refusal::TokenExpired => "token_expired",
            Refusal::TokenNotYetValid => "token_not_yet_valid",
            Refusal::WrongIssuer => "wrong_issuer",
            Refusal::WrongAudience => "wrong_audience",
            Refusal::WrongAlgorithm => "wrong_algorithm",
            Refusal::UnknownKey => "unknown_key",
            Refusal::BadSignature => "bad_signature",
            Refusal::MalformedToken(_) => "malformed_token",
            Refusal::Revoked => "revoked",
            Refusal::IdentityUnavailable => "identity_unavailable",
        }
    }

    /// What people are told.
    pub const fn sentence(self) -> &'static str {
        match self {
            Refusal::TokenExpired => "the token has expired: get a new one from where you sign in",
            Refusal::TokenNotYetValid => "the token is not valid yet: are the clocks right?",
            Refusal::WrongIssuer => "the token was made by another issuer than the one this server asks for",
            Refusal::WrongAudience => {
                "the token was made for another audience or another page than this server's"
            }
            Refusal::WrongAlgorithm => "the token is not signed by the algorithm that this server asks for",
            Refusal::UnknownKey => "the token is signed by a key that its issuer does not publish",
            Refusal::BadSignature => "the token's signature is wrong",
            Refusal::MalformedToken(what) => what,
            Refusal::Revoked => "your session is over, or you have not finished signing in: sign in again",
            Refusal::IdentityUnavailable => "who you are cannot be checked just now: try again in a moment",
        }
    }
}
