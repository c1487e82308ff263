//! Verifies signed tokens (JWT, RFC 7519). Keys and time are passed in; there is no I/O and no clock.
//!
//! The token's own statements on how to check it are ignored: its algorithm, and keys or key URLs in its header. Claims
//! are read only after the signature is verified.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Validation;
use jsonwebtoken::errors::ErrorKind;
use serde::Deserialize;
use serde_json::Value;

use super::jwks::KeySet;
use super::refusal::Refusal;
use super::signatures::{Algorithm, install};

/// The longest token that is accepted. A cookie, where most tokens are stored, has 4 kB.
pub const MAX_TOKEN_LEN: usize = 8 << 10;

/// The allowed clock difference between issuer and server.
pub const LEEWAY_S: u64 = 5;

/// The longest subject, session or key id.
const MAX_ID_LEN: usize = 255;

/// The rules that a token must meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The signature algorithm.
    pub algorithm: Algorithm,
    /// The exact issuer (`iss`).
    pub issuer: String,
    /// The audience (`aud`), if it is checked.
    pub audience: Option<String>,
    /// The allowed authorized parties (`azp`); not checked if empty.
    pub authorized_parties: Vec<String>,
}

/// The claims of a valid token.
#[derive(Clone, PartialEq, Eq)]
pub struct Claims {
    /// The issuer's id of the player (`sub`).
    pub subject: String,
    /// The issuer's session (`sid`).
    pub session: Option<String>,
    /// The name as the token has it.
    pub name: Option<String>,
    /// When the token expires (`exp`).
    pub expires_unix_s: u64,
}

impl std::fmt::Debug for Claims {
    /// Prints no claims, so that none ends up in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Claims(…)")
    }
}

/// Verifies tokens by fixed rules.
#[derive(Clone, Debug)]
pub struct Verifier {
    rules: Rules,
    validation: Validation,
}

/// The fields read from a token's header.
#[derive(Deserialize)]
struct Head {
    alg: String,
    kid: Option<String>,
    /// Extensions that a reader must understand. The server supports none.
    crit: Option<Value>,
}

/// The fields read from a token's payload. A time that is not a number makes the token malformed.
#[derive(Deserialize)]
struct Payload {
    iss: Option<Value>,
    aud: Option<Value>,
    azp: Option<Value>,
    sub: Option<String>,
    sid: Option<String>,
    sts: Option<Value>,
    exp: Option<f64>,
    nbf: Option<f64>,
    name: Option<Value>,
    preferred_username: Option<Value>,
    username: Option<Value>,
}

const NO_TOKEN: Refusal = Refusal::MalformedToken("this is no signed token (a JWT of three parts)");
const NO_CLAIMS: Refusal = Refusal::MalformedToken("what the token says cannot be read");

impl Verifier {
    /// A verifier with these rules.
    pub fn new(rules: Rules) -> Verifier {
        install();
        let mut validation = Validation::new(rules.algorithm.in_library());
        // The library would read the clock, and treat claims of wrong types as missing. It checks only the signature.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        Verifier { rules, validation }
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The claims of a token, if it is valid now.
    pub fn check(&self, token: &str, keys: &KeySet, now_unix_s: u64) -> Result<Claims, Refusal> {
        let head = read_head(token)?;
        if head.alg != self.rules.algorithm.name() {
            return Err(Refusal::WrongAlgorithm);
        }
        if head.crit.is_some() {
            return Err(Refusal::MalformedToken(
                "the token asks for something (crit) that is not known here",
            ));
        }
        let key = keys.find(head.kid.as_deref()).ok_or(Refusal::UnknownKey)?;
        let read = jsonwebtoken::decode::<Payload>(token, key, &self.validation);
        let payload = read.map_err(|error| match error.kind() {
            ErrorKind::InvalidSignature => Refusal::BadSignature,
            ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => Refusal::WrongAlgorithm,
            ErrorKind::Base64(_) | ErrorKind::InvalidToken => NO_TOKEN,
            _ => NO_CLAIMS,
        })?;
        self.judge(payload.claims, now_unix_s)
    }

    fn judge(&self, said: Payload, now_unix_s: u64) -> Result<Claims, Refusal> {
        let Rules { issuer, audience, authorized_parties, .. } = &self.rules;
        if said.iss.as_ref().and_then(Value::as_str) != Some(issuer) {
            return Err(Refusal::WrongIssuer);
        }
        if audience.as_ref().is_some_and(|audience| !is_for(said.aud.as_ref(), audience)) {
            return Err(Refusal::WrongAudience);
        }
        let party = said.azp.as_ref().and_then(Value::as_str);
        let is_authorized = authorized_parties.iter().any(|authorized| Some(&**authorized) == party);
        if !authorized_parties.is_empty() && !is_authorized {
            return Err(Refusal::WrongAudience);
        }
        let expires_unix_s = check_times(&said, now_unix_s)?;
        // The identity provider Clerk marks a user who has not finished signing in like this.
        if said.sts.as_ref().and_then(Value::as_str) == Some("pending") {
            return Err(Refusal::Revoked);
        }
        let is_id = |id: &String| (1..=MAX_ID_LEN).contains(&id.len());
        let subject = said.sub.filter(is_id);
        let subject =
            subject.ok_or(Refusal::MalformedToken("the token does not say who it is about (sub)"))?;
        let session = said.sid.filter(is_id);
        let names = [said.name, said.preferred_username, said.username];
        let name = names.into_iter().find_map(|name| match name {
            Some(Value::String(name)) if !name.trim().is_empty() => Some(name),
            _ => None,
        });
        Ok(Claims { subject, session, name, expires_unix_s })
    }
}

/// Reads the header of a token without trusting it.
fn read_head(token: &str) -> Result<Head, Refusal> {
    if token.len() > MAX_TOKEN_LEN {
        return Err(Refusal::MalformedToken("the token is too long"));
    }
    let (head, _) = token.split_once('.').ok_or(NO_TOKEN)?;
    let head = URL_SAFE_NO_PAD.decode(head).map_err(|_| NO_TOKEN)?;
    let head: Head = serde_json::from_slice(&head).map_err(|_| NO_TOKEN)?;
    if head.kid.as_ref().is_some_and(|kid| kid.len() > MAX_ID_LEN) {
        return Err(Refusal::MalformedToken("the name of the token's key (kid) is too long"));
    }
    Ok(head)
}

/// Whether an audience claim, one or a list, contains this audience.
fn is_for(said: Option<&Value>, audience: &str) -> bool {
    match said {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(list)) => list.iter().any(|one| one.as_str() == Some(audience)),
        _ => false,
    }
}

/// When the token expires, if it is valid now.
fn check_times(said: &Payload, now_unix_s: u64) -> Result<u64, Refusal> {
    // Times may have a fraction, which is less than the leeway. Values out of range saturate.
    let seconds = |time: f64| time as u64;
    if said.nbf.is_some_and(|from| seconds(from) > now_unix_s.saturating_add(LEEWAY_S)) {
        return Err(Refusal::TokenNotYetValid);
    }
    let until =
        said.exp.ok_or(Refusal::MalformedToken("the token does not say how long it is good (exp)"))?;
    if now_unix_s >= seconds(until).saturating_add(LEEWAY_S) {
        return Err(Refusal::TokenExpired);
    }
    Ok(seconds(until))
}
