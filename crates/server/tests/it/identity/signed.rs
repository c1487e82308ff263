//! Tests which signed tokens are accepted, and with which error others are refused.

use proptest::prelude::*;
use ring::hmac;
use sametick::identity::jwks::{JwksError, KeySet};
use sametick::identity::keys::{Keys, Missing};
use sametick::identity::verifier::{Claims, LEEWAY_S, MAX_TOKEN_LEN, Rules, Verifier};
use sametick::identity::{Algorithm, Refusal};
use sametick_wire::Time;
use serde_json::{Value, json};

use super::issuer::{Key, claims_at, encode, key_set, published, rules, verifier};

const NOW: u64 = 1_700_000_000;

/// The claims of a good token, with one replaced; removed if it is null.
fn said(name: &str, value: Value) -> Value {
    let mut claims = claims_at(NOW);
    match value {
        Value::Null => claims.as_object_mut().unwrap().remove(name),
        value => claims.as_object_mut().unwrap().insert(name.into(), value),
    };
    claims
}

fn check(key: &Key, token: &str) -> Result<Claims, Refusal> {
    verifier(key.algorithm()).check(token, &key_set(&[key]), NOW)
}

/// The result of checking a token with these claims, under these rules.
fn judged(rules: Rules, claims: &Value, now: u64) -> Result<Claims, Refusal> {
    let key = Key::new("k", rules.algorithm);
    Verifier::new(rules).check(&key.sign(claims), &key_set(&[&key]), now)
}

fn code(result: Result<Claims, Refusal>) -> &'static str {
    result.map_or_else(Refusal::code, |_| "good")
}

#[test]
fn a_good_token_of_every_algorithm_identifies_its_player() {
    for algorithm in Algorithm::ALL {
        let key = Key::new("k", algorithm);
        let claims = check(&key, &key.sign(&claims_at(NOW))).unwrap();
        assert_eq!(
            (&*claims.subject, claims.session.as_deref()),
            ("user_2bXYZsubject", Some("sess_2bXYZsession"))
        );
        assert_eq!((claims.name.as_deref(), claims.expires_unix_s), (Some("Ada Lovelace"), NOW + 60));
        assert!(!format!("{claims:?}").contains("user"), "what is not printed is in no log");
        // Without a key id it is accepted only if there is exactly one key.
        let nameless = key.sign_under(&json!({ "alg": algorithm.name() }), &claims_at(NOW));
        assert_eq!(code(check(&key, &nameless)), "good");
        let other = Key::new("other", algorithm);
        let both = key_set(&[&key, &other]);
        assert_eq!(verifier(algorithm).check(&nameless, &both, NOW), Err(Refusal::UnknownKey));
    }
}

#[test]
fn a_token_is_good_from_nbf_to_exp_and_five_seconds_around() {
    let times = json!({ "nbf": NOW, "exp": NOW + 60 });
    let mut claims = claims_at(NOW);
    claims.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
    for (now, code_then) in [
        (NOW - LEEWAY_S - 1, "token_not_yet_valid"),
        (NOW - LEEWAY_S, "good"),
        (NOW, "good"),
        (NOW + 60 + LEEWAY_S - 1, "good"),
        (NOW + 60 + LEEWAY_S, "token_expired"),
        (u64::MAX, "token_expired"),
        (0, "token_not_yet_valid"),
    ] {
        assert_eq!(code(judged(rules(Algorithm::EdDsa), &claims, now)), code_then, "{now}");
    }
    let at = |name, value| code(judged(rules(Algorithm::EdDsa), &said(name, value), NOW));
    assert_eq!(at("nbf", Value::Null), "good", "not every issuer says it");
    assert_eq!(at("exp", Value::Null), "malformed_token", "nothing is good for ever");
    assert_eq!(at("exp", json!(NOW as f64 + 0.5)), "good");
    assert_eq!(at("exp", json!(-1)), "token_expired");
    assert_eq!(at("exp", json!(1e300)), "good");
    assert_eq!(at("nbf", json!(1e300)), "token_not_yet_valid");
    for odd in [json!("1900000000"), json!(true), json!([NOW + 60]), json!({})] {
        assert_eq!(at("exp", odd.clone()), "malformed_token", "{odd}");
        assert_eq!(
            at("nbf", odd.clone()),
            "malformed_token",
            "a time that cannot be read is not passed over: {odd}"
        );
    }
}

#[test]
fn issuer_audience_and_party_have_to_be_the_configured_ones() {
    let base = rules(Algorithm::EdDsa);
    for iss in [json!("https://issuer.example/"), json!("https://ISSUER.example"), json!(1), Value::Null] {
        assert_eq!(code(judged(base.clone(), &said("iss", iss.clone()), NOW)), "wrong_issuer", "{iss}");
    }
    let list = json!(["https://issuer.example"]);
    assert_eq!(code(judged(base.clone(), &said("iss", list), NOW)), "wrong_issuer", "one, not a list");

    let asked = Rules { audience: Some("game".into()), ..base.clone() };
    for (aud, code_then) in [
        (json!("game"), "good"),
        (json!(["other", "game"]), "good"),
        (json!("other"), "wrong_audience"),
        (json!(["other"]), "wrong_audience"),
        (json!("gam"), "wrong_audience"),
        (json!([]), "wrong_audience"),
        (json!(5), "wrong_audience"),
        (Value::Null, "wrong_audience"),
    ] {
        assert_eq!(code(judged(asked.clone(), &said("aud", aud.clone()), NOW)), code_then, "{aud}");
    }
    assert_eq!(code(judged(base.clone(), &said("aud", json!("anyone")), NOW)), "good", "not asked");

    let asked = Rules {
        authorized_parties: vec!["https://a.example".into(), "https://game.example".into()],
        ..base.clone()
    };
    for (azp, code_then) in [
        (json!("https://game.example"), "good"),
        (json!("https://evil.example"), "wrong_audience"),
        (json!(["https://game.example"]), "wrong_audience"),
        (Value::Null, "wrong_audience"),
    ] {
        assert_eq!(code(judged(asked.clone(), &said("azp", azp.clone()), NOW)), code_then, "{azp}");
    }
}

#[test]
fn a_subject_is_required_and_has_a_maximum_length() {
    let sub = |sub: Value| code(judged(rules(Algorithm::EdDsa), &said("sub", sub), NOW));
    assert_eq!((sub(json!("a")), sub(json!("a".repeat(255)))), ("good", "good"));
    for odd in [Value::Null, json!(""), json!("a".repeat(256)), json!(7), json!(["a"])] {
        assert_eq!(sub(odd.clone()), "malformed_token", "{odd}");
    }
}

#[test]
fn an_unfinished_sign_in_is_refused() {
    let sts = |sts: Value| code(judged(rules(Algorithm::EdDsa), &said("sts", sts), NOW));
    assert_eq!((sts(json!("active")), sts(json!("pending")), sts(json!(1))), ("good", "revoked", "good"));
}

#[test]
fn a_name_is_taken_from_where_issuers_put_it() {
    let named = |others: Value| {
        let mut claims = said("name", Value::Null);
        claims.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        judged(rules(Algorithm::EdDsa), &claims, NOW).unwrap().name
    };
    assert_eq!(named(json!({})), None);
    assert_eq!(named(json!({ "username": "ada", "email": "ada@example.org" })).as_deref(), Some("ada"));
    assert_eq!(named(json!({ "preferred_username": "ada", "name": "" })).as_deref(), Some("ada"));
    assert_eq!(named(json!({ "name": 5, "username": ["x"] })), None, "an odd name is none");
}

#[test]
fn the_server_chooses_the_algorithm_and_not_the_token() {
    let key = Key::new("k", Algorithm::Rs256);
    let claims = claims_at(NOW);
    let body = |head: &Value| format!("{}.{}", encode(head.to_string()), encode(claims.to_string()));
    // The public key, in every form in which it might be mistaken for a secret.
    let jwk = key.jwk();
    for secret in [jwk["n"].as_str().unwrap().to_owned(), jwk.to_string(), published(&[&key])] {
        let said = body(&json!({ "alg": "HS256", "kid": "k" }));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), said.as_bytes());
        assert_eq!(check(&key, &format!("{said}.{}", encode(tag))), Err(Refusal::WrongAlgorithm));
    }
    for none in ["none", "None", "NONE", "", "nOnE", "RS512", "PS256", "rs256", "RS256 ", "ES256", "EdDSA"] {
        let said = body(&json!({ "alg": none, "kid": "k" }));
        for signature in ["", "AA"] {
            assert_eq!(check(&key, &format!("{said}.{signature}")), Err(Refusal::WrongAlgorithm), "{none}");
        }
    }
    let unsigned = body(&json!({ "alg": "RS256", "kid": "k" }));
    assert_eq!(check(&key, &format!("{unsigned}.")), Err(Refusal::BadSignature));
    assert_eq!(code(check(&key, &unsigned)), "malformed_token");
    for odd in [json!({ "kid": "k" }), json!({ "alg": 1 }), json!({ "alg": ["RS256"] }), json!([]), json!(1)]
    {
        assert_eq!(code(check(&key, &format!("{}.", body(&odd)))), "malformed_token", "{odd}");
    }
    // A key in the token itself, or an address of keys in it, is not trusted.
    let (ours, theirs) = (Key::new("k", Algorithm::EdDsa), Key::new("k", Algorithm::EdDsa));
    let head = json!({ "alg": "EdDSA", "kid": "k", "jwk": theirs.jwk(), "jku": "https://evil.example/jwks" });
    assert_eq!(check(&ours, &theirs.sign_under(&head, &claims)), Err(Refusal::BadSignature));
    let head = json!({ "alg": "EdDSA", "kid": "k", "crit": ["b64"], "b64": false });
    assert_eq!(code(check(&ours, &ours.sign_under(&head, &claims))), "malformed_token");
}

#[test]
fn a_published_set_gives_only_keys_that_fit() {
    let keys = Algorithm::ALL.map(|algorithm| Key::new(algorithm.name(), algorithm));
    let mut all: Vec<Value> = keys.iter().map(Key::jwk).collect();
    for (name, value) in
        [("use", json!("enc")), ("alg", json!("PS256")), ("n", json!("???")), ("kty", json!("oct"))]
    {
        let mut odd = keys[0].jwk();
        odd[name] = value;
        all.push(odd);
    }
    all.extend([json!(5), json!({}), json!({ "kty": "oct", "k": "c2VjcmV0", "alg": "HS256" })]);
    let all = json!({ "keys": all, "more": 1 }).to_string();
    for (algorithm, key) in Algorithm::ALL.into_iter().zip(&keys) {
        let set = KeySet::parse(all.as_bytes(), algorithm).unwrap();
        assert_eq!(set.len(), 1, "{algorithm:?}");
        assert_eq!(code(verifier(algorithm).check(&key.sign(&claims_at(NOW)), &set, NOW)), "good");
    }
    let parse = |text: &str| KeySet::parse(text.as_bytes(), Algorithm::Rs256).map(|set| set.len());
    assert_eq!(parse(r#"{"keys":[]}"#), Err(JwksError::NoKey(Algorithm::Rs256)));
    for odd in [
        "",
        "{}",
        "[]",
        r#"{"keys":1}"#,
        "<html>",
        &format!(r#"{{"keys":[],"x":"{}"}}"#, "x".repeat(300_000)),
    ] {
        assert_eq!(parse(odd), Err(JwksError::Unreadable));
    }
}

#[test]
fn keys_are_rotated_and_revoked() {
    let (old, new) = (Key::new("old", Algorithm::Es256), Key::new("new", Algorithm::Es256));
    let verifier = verifier(Algorithm::Es256);
    let [by_old, by_new] = [&old, &new].map(|key| key.sign(&claims_at(NOW)));
    let second = |n: u64| Time::from_micros(n * 1_000_000);
    let mut keys = Keys::fetched_at(second(0), key_set(&[&old]));
    assert_eq!(verifier.check(&by_new, keys.set(), NOW), Err(Refusal::UnknownKey));
    assert_eq!(keys.miss(second(59)), Missing::Refused(Refusal::UnknownKey));
    assert_eq!(keys.miss(second(60)), Missing::Wait);
    assert!(keys.begin(second(60)));
    keys.fetched(second(61), key_set(&[&old, &new]));
    assert_eq!(code(verifier.check(&by_new, keys.set(), NOW)), "good");
    assert_eq!(code(verifier.check(&by_old, keys.set(), NOW)), "good");
    // The old key is revoked: after ten minutes at most it is not trusted any more.
    assert!(keys.begin(second(660)));
    keys.fetched(second(661), key_set(&[&new]));
    assert_eq!(verifier.check(&by_old, keys.set(), NOW), Err(Refusal::UnknownKey));
    // A forged key with the same id is not trusted.
    let forged = Key::new("new", Algorithm::Es256).sign(&claims_at(NOW));
    assert_eq!(verifier.check(&forged, keys.set(), NOW), Err(Refusal::BadSignature));
}

/// Any JSON, not too deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{0,5}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_random_text_is_a_valid_token(text in ".{0,300}", parts in prop::collection::vec(any::<Vec<u8>>(), 0..6)) {
        let key = Key::new("k", Algorithm::EdDsa);
        prop_assert_eq!(code(check(&key, &text)), "malformed_token");
        let parts: Vec<String> = parts.into_iter().map(encode).collect();
        prop_assert_eq!(code(check(&key, &parts.join("."))), "malformed_token");
    }

    #[test]
    fn a_token_with_any_change_is_refused(at: prop::sample::Index, by in "[A-Za-z0-9._=\u{e9}-]") {
        let key = Key::new("k", Algorithm::EdDsa);
        let good = key.sign(&claims_at(NOW));
        let at = at.index(good.len());
        let changed = format!("{}{by}{}", &good[..at], &good[at + 1..]);
        prop_assert_eq!(check(&key, &changed).is_ok(), changed == good);
        let longer = format!("{}{by}{}", &good[..at], &good[at..]);
        prop_assert!(check(&key, &longer).is_err());
        prop_assert!(check(&key, &good[..at]).is_err());
    }

    #[test]
    fn claims_of_any_shape_are_refused_or_make_sense(
        name in prop::sample::select(vec!["iss", "sub", "sid", "exp", "nbf", "aud", "azp", "name", "username"]),
        value in any_json(),
        whole in any_json(),
    ) {
        let key = Key::new("k", Algorithm::EdDsa);
        if let Ok(claims) = check(&key, &key.sign(&said(name, value))) {
            prop_assert!((1..=255).contains(&claims.subject.len()) && claims.expires_unix_s > NOW - LEEWAY_S);
        }
        prop_assert!(check(&key, &key.sign(&whole)).is_err());
        prop_assert!(check(&key, &key.sign_under(&whole, &claims_at(NOW))).is_err());
    }
}

#[test]
fn a_token_that_is_too_long_is_refused() {
    let key = Key::new("k", Algorithm::EdDsa);
    let padded = |len: usize| key.sign(&said("padding", json!("x".repeat(len))));
    assert_eq!(code(check(&key, &padded(MAX_TOKEN_LEN / 2))), "good");
    assert_eq!(code(check(&key, &padded(MAX_TOKEN_LEN))), "malformed_token");
}
