//! An issuer's published keys (JWKS, RFC 7517), as far as the configured algorithm can use them.

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;

use super::signatures::Algorithm;

/// The longest key set that is read: issuers publish two or three keys of less than a kilobyte.
pub const MAX_JWKS_LEN: usize = 256 << 10;

/// The most keys used of one set.
const MAX_KEYS: usize = 64;

/// The keys of an issuer.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    keys: Vec<(Option<String>, DecodingKey)>,
}

/// Why a text yields no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    /// It is no key set.
    #[error("this is no JWKS: JSON with a list `keys`")]
    Unreadable,
    /// It has keys, but none for this algorithm.
    #[error("the JWKS has no key for {}", .0.name())]
    NoKey(Algorithm),
}

#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a published key set. Keys for other purposes are left out.
    pub fn parse(text: &[u8], algorithm: Algorithm) -> Result<KeySet, JwksError> {
        if text.len() > MAX_JWKS_LEN {
            return Err(JwksError::Unreadable);
        }
        let published: Published = serde_json::from_slice(text).map_err(|_| JwksError::Unreadable)?;
        let keys = published.keys.into_iter().filter_map(|key| read(key, algorithm));
        let keys: Vec<_> = keys.take(MAX_KEYS).collect();
        if keys.is_empty() { Err(JwksError::NoKey(algorithm)) } else { Ok(KeySet { keys }) }
    }

    /// The key with this id. A token may omit the id if the set has only one key.
    pub fn find(&self, kid: Option<&str>) -> Option<&DecodingKey> {
        match (kid, &self.keys[..]) {
            (None, [(_, only)]) => Some(only),
            (None, _) => None,
            (kid, keys) => keys.iter().find(|(name, _)| name.as_deref() == kid).map(|(_, key)| key),
        }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the set has no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// A key with its id, if it may sign tokens.
fn read(key: Value, algorithm: Algorithm) -> Option<(Option<String>, DecodingKey)> {
    let is_for_others = |name: &str, ours: &str| key.get(name).is_some_and(|said| said != ours);
    if is_for_others("alg", algorithm.name()) {
        return None;
    }
    let key: Jwk = serde_json::from_value(key).ok()?;
    let is_for_signatures = matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let fits = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), Algorithm::Rs256) => true,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::Es256) => key.curve == EllipticCurve::P256,
        (AlgorithmParameters::OctetKeyPair(key), Algorithm::EdDsa) => key.curve == EllipticCurve::Ed25519,
        _ => false,
    };
    let readable = DecodingKey::from_jwk(&key).ok().filter(|_| fits && is_for_signatures)?;
    Some((key.common.key_id, readable))
}
