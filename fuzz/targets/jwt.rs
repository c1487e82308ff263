//! Any signed token or published key set is refused or makes sense; and no token is accepted as another subject's.
//!
//! The input: which of the three, then a token; or what a token says, to be signed; or a set of keys. The code is the
//! server's own files, without the rest of the server.
#![cfg_attr(fuzzing, no_main)]
#![allow(dead_code, reason = "the server uses more of it")]

#[path = "../../crates/server/src/identity/jwks.rs"]
mod jwks;
#[path = "../../crates/server/src/identity/refusal.rs"]
mod refusal;
#[path = "../../crates/server/src/identity/signatures.rs"]
mod signatures;
#[path = "../../crates/server/src/identity/verifier.rs"]
mod verifier;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};

use jwks::KeySet;
use signatures::Algorithm;
use verifier::{LEEWAY_S, Rules, Verifier};

const NOW: u64 = 1_800_000_000;

sametick_fuzz::target!(allowing 200_000, |bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("any 32 bytes are a seed");
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let x = encode(pair.public_key().as_ref());
    let keys = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"k","x":"{x}"}}]}}"#);
    let keys = KeySet::parse(keys.as_bytes(), Algorithm::EdDsa).expect("it is one");
    let rules = Rules {
        algorithm: Algorithm::EdDsa,
        issuer: "i".into(),
        audience: (kind & 4 != 0).then(|| "a".into()),
        authorized_parties: if kind & 8 == 0 { vec![] } else { vec!["p".into()] },
    };
    let verifier = Verifier::new(rules);
    match kind & 3 {
        0 => {
            let token = String::from_utf8_lossy(bytes);
            assert!(verifier.check(&token, &keys, NOW).is_err(), "nobody can have signed that");
        }
        1 => {
            let said = format!("{}.{}", encode(br#"{"alg":"EdDSA","kid":"k"}"#), encode(bytes));
            let token = format!("{said}.{}", encode(pair.sign(said.as_bytes()).as_ref()));
            match verifier.check(&token, &keys, NOW) {
                Ok(claims) => {
                    assert!((1..=255).contains(&claims.subject.len()));
                    assert!(claims.expires_unix_s > NOW - LEEWAY_S);
                }
                Err(refusal) => assert!(!refusal.code().is_empty() && !refusal.sentence().is_empty()),
            }
        }
        _ => {
            for algorithm in Algorithm::ALL {
                let Ok(set) = KeySet::parse(bytes, algorithm) else { continue };
                assert!((1..=64).contains(&set.len()));
                // Invalid keys refuse every token, and do no harm.
                let verifier = Verifier::new(Rules { algorithm, ..verifier.rules().clone() });
                let head = format!(r#"{{"alg":"{}","kid":"k"}}"#, algorithm.name());
                let token = format!("{}.e30.{}", encode(head.as_bytes()), encode(&[7; 64]));
                assert!(verifier.check(&token, &set, NOW).is_err());
            }
        }
    }
});
