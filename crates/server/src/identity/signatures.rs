//! Token signatures: the supported algorithms, verified by `ring`, which does all other cryptography here.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{DecodingKey, DecodingKeyKind};
use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use ring::signature::{RsaPublicKeyComponents, VerificationAlgorithm};

/// The algorithm of an issuer. Shared secrets are not supported: a server that can verify such a token can also forge
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA of at least 2048 bits, with SHA-256.
    #[default]
    Rs256,
    /// ECDSA on P-256, with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All supported algorithms.
    pub const ALL: [Algorithm; 3] = [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa];

    /// Its name in tokens, keys and settings.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Es256 => "ES256",
            Algorithm::EdDsa => "EdDSA",
        }
    }

    /// The algorithm as the JWT library names it.
    pub(super) const fn in_library(self) -> jsonwebtoken::Algorithm {
        match self {
            Algorithm::Rs256 => jsonwebtoken::Algorithm::RS256,
            Algorithm::Es256 => jsonwebtoken::Algorithm::ES256,
            Algorithm::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

impl std::str::FromStr for Algorithm {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Algorithm, Self::Err> {
        let named = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == text);
        named.ok_or("an algorithm is RS256, ES256 or EdDSA")
    }
}

/// The JWT library's cryptography provider.
static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(Verifier::new(*algorithm, key)?)),
    // Needed only to write keys, which the server never does.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `ring` the library's provider. The library keeps one choice per process; the first stays.
pub(super) fn install() {
    let _ = RING.install_default();
}

struct Verifier {
    algorithm: jsonwebtoken::Algorithm,
    key: DecodingKeyKind,
}

impl Verifier {
    fn new(algorithm: jsonwebtoken::Algorithm, key: &DecodingKey) -> Result<Verifier, Error> {
        let is_ours = Algorithm::ALL.iter().any(|ours| ours.in_library() == algorithm);
        if !is_ours || key.family() != algorithm.family() {
            return Err(ErrorKind::UnsupportedAlgorithm.into());
        }
        Ok(Verifier { algorithm, key: key.kind().clone() })
    }
}

impl signature::Verifier<Vec<u8>> for Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let check = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature)
        };
        let checked = match (self.algorithm, &self.key) {
            (jsonwebtoken::Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (jsonwebtoken::Algorithm::ES256, DecodingKeyKind::SecretOrDer(key)) => {
                check(&ECDSA_P256_SHA256_FIXED, key)
            }
            (jsonwebtoken::Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => check(&ED25519, key),
            _ => Err(ring::error::Unspecified),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Verifier {
    fn algorithm(&self) -> jsonwebtoken::Algorithm {
        self.algorithm
    }
}
