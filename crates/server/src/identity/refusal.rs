//! Sign-in refusals: a code for programs, a sentence for people. Neither contains any part of a token.

/// Why a sign-in is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token's `exp` has passed.
    TokenExpired,
    /// The token's `nbf` is in the future.
    TokenNotYetValid,
    /// The token's `iss` is not the configured one.
    WrongIssuer,
    /// The token's `aud` or `azp` is for another application.
    WrongAudience,
    /// The token is unsigned, or signed with another algorithm than the configured one.
    WrongAlgorithm,
    /// No key of the issuer has the token's `kid`.
    UnknownKey,
    /// The signature does not match the key.
    BadSignature,
    /// It is no token, or a claim is missing. Names what is wrong.
    MalformedToken(&'static str),
    /// The issuer says that the session is over, or has not begun.
    Revoked,
    /// The issuer cannot be asked now.
    IdentityUnavailable,
}

impl Refusal {
    /// The code for programs.
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

    /// The sentence for people.
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
