//! Tests of `POST /api/session` on a real server, with an issuer beside it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Instant;

use sametick::identity::Algorithm;
use sametick_transport::clock::unix_seconds;
use sametick_wire::access::AccessKey;
use sametick_wire::hex::to_hex;
use sametick_wire::identity::PlayerId;
use serde_json::{Value, json};

use super::issuer::{ISSUER, Issuer, Key, claims_with, published};
use crate::everyone::{Socket, block_on};
use crate::process::Folder;
use crate::web::{Answer, IN_VAIN, Up};

const STATUS_KEY: &str = "sk_test_statuskey";

/// A server that trusts an issuer, and asks it for the status of sessions.
struct Stage {
    folder: Folder,
    issuer: Issuer,
    up: Up,
}

impl Stage {
    fn new(keys: &[&Key], args: &[&str]) -> Stage {
        let folder = Folder::new();
        let issuer = Issuer::start(keys);
        let (jwks, status) = (issuer.url("/jwks"), issuer.url("/sessions/{sid}"));
        let mut all = vec!["--jwks-url", &jwks, "--issuer", ISSUER, "--behind-proxy"];
        all.extend(args.iter().map(|arg| if *arg == "STATUS" { &status } else { *arg }));
        let variables = [("SAMETICK_LOG", "trace"), ("SAMETICK_STATUS_KEY", STATUS_KEY)];
        let up = Up::start_with(&folder, &all, &variables);
        Stage { folder, issuer, up }
    }

    fn show(&self, token: &str) -> Answer {
        exchange(&self.up, token, "")
    }

    fn code(&self, token: &str) -> String {
        let answer = self.show(token);
        let said = answer.json();
        let status = match said["code"].as_str() {
            None => 200,
            Some("identity_unavailable") => 503,
            Some(_) => 401,
        };
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(said["error"].is_string(), status != 200, "a code comes with a sentence: {said}");
        said["code"].as_str().unwrap_or("good").to_owned()
    }
}

fn exchange(up: &Up, token: &str, headers: &str) -> Answer {
    let headers = format!("Authorization: Bearer {token}\r\nContent-Length: 0\r\n{headers}");
    up.ask("POST", "/api/session", &headers)
}

#[test]
fn only_signed_in_players_enter_a_room() {
    let key = Key::new("one", Algorithm::Es256);
    let stage = Stage::new(&[&key], &["--jwt-algorithm", "ES256"]);
    let answer = stage.show(&key.sign(&claims_with(&json!({})))).json();
    let token = answer["token"].as_str().unwrap_or_else(|| panic!("{answer}"));
    block_on(async {
        let mut guest = Socket::open(&stage.up, "den/ws?name=Guest").await.unwrap();
        let told = guest.hear_kind("error").await;
        let why = "sign in first: only those with a token play here";
        assert_eq!((&told["code"], &told["message"]), (&"not_allowed".into(), &why.into()));
        let mut ada = Socket::open(&stage.up, &format!("den/ws?name=Ada&token={token}")).await.unwrap();
        assert_eq!(ada.hear_kind("welcome").await["seat"], 0);
        let next = ada.hear_kind("token").await["token"].as_str().unwrap().to_owned();
        assert_ne!(next, token);
        ada.hear_of(|message| message["own"].is_object()).await;
        drop(ada);
        // The next join needs no new signed token.
        let mut ada = Socket::open(&stage.up, &format!("den/ws?name=Ada&token={next}")).await.unwrap();
        assert_eq!(ada.hear_kind("welcome").await["seat"], 0);
        let unknown = "0".repeat(32);
        let mut eve = Socket::open(&stage.up, &format!("den/ws?name=Eve&token={unknown}")).await.unwrap();
        assert_eq!(eve.hear_kind("error").await["code"], "bad_token");
    });
    let log = Up::log_in(&stage.folder);
    assert!(!log.contains(token), "no token is in the log");
}

#[test]
fn only_signed_in_players_enter_the_lobby() {
    let key = Key::new("one", Algorithm::Es256);
    let stage = Stage::new(&[&key], &["--jwt-algorithm", "ES256", "--host-ports", "off"]);
    let answer = stage.show(&key.sign(&claims_with(&json!({})))).json();
    block_on(async {
        let mut socket = Socket::at(stage.up.addr, "/api/lobby/ws").await.unwrap();
        let hello = |token: Value| json!({"v": 2, "kind": "command", "seq": 1, "feature": "lobby", "action": "hello", "payload": {"token": token}});
        for bad in [Value::Null, "0".repeat(32).into(), "zz".into()] {
            socket.say(&hello(bad)).await;
            assert_eq!(socket.hear_kind("error").await["code"], "bad_token");
        }
        socket.say(&hello(answer["token"].clone())).await;
        let you = socket.hear_kind("answer").await["answer"]["you"].clone();
        assert_eq!((&you["player"], &you["token"]), (&answer["player"], &answer["token"]));
    });
}

#[test]
fn a_good_token_is_exchanged_and_others_are_refused_with_a_code() {
    let (key, other) = (Key::new("k", Algorithm::Rs256), Key::new("k", Algorithm::EdDsa));
    let stage = Stage::new(&[&key], &["--audience", "game", "--authorized-party", "https://game.example"]);
    assert!(stage.up.greeting.contains("identity    players sign in"), "{}", stage.up.greeting);
    assert_eq!(stage.up.api("/api/server")["sign_in"], true);
    let claims = |others: Value| {
        let mut claims = claims_with(&json!({ "aud": "game" }));
        claims.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        claims
    };
    let good = key.sign(&claims(json!({})));
    let answers = [stage.show(&good), stage.show(&good)];
    let [one, again] = answers.each_ref().map(Answer::json);
    assert_eq!((answers[0].status, &one["name"]), (200, &"Ada Lovelace".into()), "{one}");
    assert_eq!(one["player"], PlayerId::of_user(ISSUER, "user_2bXYZsubject").to_string());
    assert_eq!((&again["player"], one["token"].as_str().unwrap().len()), (&one["player"], 32));
    assert_ne!(again["token"], one["token"]);
    assert!(one["expires"].as_u64().unwrap() > unix_seconds());
    assert_eq!(answers[0].headers["cache-control"], "no-store");
    assert!(answers[0].headers.contains_key("content-security-policy"));

    let now = unix_seconds();
    let (said, signature) = good.rsplit_once('.').unwrap();
    let other_first = if signature.starts_with('A') { 'B' } else { 'A' };
    let forged = format!("{said}.{other_first}{}", &signature[1..]);
    let with = |others: Value| key.sign(&claims(others));
    for (token, code) in [
        (with(json!({ "exp": now - 10 })), "token_expired"),
        (with(json!({ "nbf": now + 100 })), "token_not_yet_valid"),
        (with(json!({ "iss": "https://other.example" })), "wrong_issuer"),
        (with(json!({ "aud": "other" })), "wrong_audience"),
        (with(json!({ "azp": "https://other.example" })), "wrong_audience"),
        (with(json!({ "sub": "" })), "malformed_token"),
        (other.sign(&claims(json!({}))), "wrong_algorithm"),
        (key.sign_under(&json!({ "alg": "none" }), &claims(json!({}))), "wrong_algorithm"),
        (key.sign_under(&json!({ "alg": "RS256", "kid": "x" }), &claims(json!({}))), "unknown_key"),
        (forged, "bad_signature"),
        ("nonsense".into(), "malformed_token"),
        (format!("{good}.{good}"), "malformed_token"),
    ] {
        assert_eq!(stage.code(&token), code, "{token}");
    }
    assert_eq!(stage.show("nonsense").headers["www-authenticate"], "Bearer");
    for headers in
        ["", "Authorization: Bearer\r\n", "Authorization: Basic YTpi\r\n", "Authorization: \u{e9}\r\n"]
    {
        let answer = stage.up.ask("POST", "/api/session", headers);
        assert_eq!((answer.status, &answer.json()["code"]), (401, &"malformed_token".into()), "{headers}");
    }
    assert_eq!(stage.code(&"x".repeat(10_000)), "malformed_token");
    assert_eq!(stage.up.get("/api/session").headers["allow"], "POST");
    assert_eq!(stage.issuer.fetches(), 1);
}

#[test]
fn other_algorithms_and_a_file_of_keys_work_too() {
    for algorithm in [Algorithm::Es256, Algorithm::EdDsa] {
        let (key, folder) = (Key::new("k", algorithm), Folder::new());
        std::fs::write(folder.path().join("jwks.json"), published(&[&key])).unwrap();
        let file = format!(
            "[identity]\njwks-file = 'jwks.json'\nissuer = '{ISSUER}'\njwt-algorithm = '{}'\n",
            algorithm.name()
        );
        std::fs::write(folder.path().join("up.toml"), file).unwrap();
        let up = Up::start(&folder, &["--config", "up.toml"], None);
        assert_eq!(exchange(&up, &key.sign(&claims_with(&json!({}))), "").status, 200);
        let stranger = Key::new("k", algorithm).sign(&claims_with(&json!({})));
        assert_eq!(exchange(&up, &stranger, "").json()["code"], "bad_signature");
    }
}

#[test]
fn one_fetch_serves_all_requests_and_unknown_keys_cause_none() {
    let key = Key::new("k", Algorithm::EdDsa);
    let stage = Stage::new(&[&key], &["--jwt-algorithm", "EdDSA"]);
    // Forty requests of many addresses wait for the issuer's first fetch, or come just after it.
    let held = stage.issuer.published();
    let ask = |n: u32, kid: &str| {
        let head = json!({ "alg": "EdDSA", "kid": kid });
        let token = key.sign_under(&head, &claims_with(&json!({})));
        exchange(&stage.up, &token, &format!("X-Forwarded-For: 192.0.2.{n}\r\n"))
    };
    let statuses = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..20)
            .flat_map(|n| [(n, "k".to_owned()), (n, format!("made-up-{n}"))])
            .map(|(n, kid)| scope.spawn(move || (kid == "k", ask(n, &kid).status)))
            .collect();
        drop(held);
        asking.into_iter().map(|asked| asked.join().unwrap()).collect::<Vec<_>>()
    });
    for (is_good, status) in statuses {
        assert_eq!(status, if is_good { 200 } else { 401 });
    }
    for n in 0..200 {
        let answer = ask(n % 200, &format!("another-{n}"));
        assert_eq!(answer.json()["code"], "unknown_key");
    }
    assert_eq!(stage.issuer.fetches(), 1);
}

#[test]
fn an_issuer_that_is_down_is_retried_and_old_keys_stay_good() {
    let key = Key::new("k", Algorithm::EdDsa);
    let stage = Stage::new(&[], &["--jwt-algorithm", "EdDSA"]);
    let token = key.sign(&claims_with(&json!({})));
    // A request during a fetch waits for its end; one before the next fetch fails at once.
    assert_eq!(stage.code(&token), "identity_unavailable");
    let refused = stage.show(&token);
    assert_eq!((refused.status, &*refused.headers["retry-after"]), (503, "2"));
    stage.issuer.publish(&[&key]);
    let begun = Instant::now();
    // Tries are counted by address.
    let mut addresses = (0..=u32::MAX).map(|n| format!("X-Forwarded-For: {}\r\n", Ipv4Addr::from_bits(n)));
    while exchange(&stage.up, &token, &addresses.next().unwrap()).status != 200 {
        assert!(begun.elapsed() < IN_VAIN);
        std::thread::yield_now();
    }
    stage.issuer.publish(&[]);
    assert_eq!(stage.code(&token), "good");
    let log = Up::log_in(&stage.folder);
    assert!(log.contains("the issuer's keys cannot be had"), "{log}");
}

#[test]
fn a_session_that_is_over_is_refused() {
    let key = Key::new("k", Algorithm::EdDsa);
    let stage = Stage::new(&[&key], &["--jwt-algorithm", "EdDSA", "--status-url", "STATUS"]);
    let states = [("going", "active"), ("ended", "ended"), ("revoked", "revoked"), ("broken", "")];
    stage.issuer.published().sessions =
        states.iter().map(|(name, state)| ((*name).into(), (*state).into())).collect::<BTreeMap<_, _>>();
    for (session, code) in [
        ("going", "good"),
        ("ended", "revoked"),
        ("revoked", "revoked"),
        ("gone", "revoked"),
        ("broken", "identity_unavailable"),
        ("../jwks", "revoked"),
        ("", "malformed_token"),
    ] {
        assert_eq!(stage.code(&key.sign(&claims_with(&json!({ "sid": session })))), code, "{session}");
    }
    let expired = key.sign(&claims_with(&json!({ "sid": "going", "exp": 1 })));
    assert_eq!(stage.code(&expired), "token_expired");
    let asked = stage.issuer.published().asked.split_off(1);
    assert_eq!(asked.len(), 6, "bad tokens ask nothing: {asked:?}");
    let shown = Some(format!("Bearer {STATUS_KEY}"));
    assert!(asked.iter().all(|(path, key)| path.starts_with("/sessions/") && *key == shown), "{asked:?}");
    assert!(asked.iter().any(|(path, _)| path == "/sessions/%2E%2E%2Fjwks"), "{asked:?}");
}

#[test]
fn nothing_secret_is_in_the_log_at_any_level() {
    let key = Key::new("k", Algorithm::EdDsa);
    let stage = Stage::new(&[&key], &["--jwt-algorithm", "EdDSA", "--status-url", "STATUS"]);
    stage.issuer.published().sessions.insert("sess_2bXYZsession".into(), "active".into());
    let other = Key::new("k", Algorithm::EdDsa);
    let tokens = [
        key.sign(&claims_with(&json!({}))),
        key.sign(&claims_with(&json!({ "exp": 1 }))),
        key.sign(&claims_with(&json!({ "iss": "https://other.example" }))),
        key.sign(&claims_with(&json!({ "sid": "sess_another" }))),
        key.sign_under(&json!({ "alg": "EdDSA", "kid": "kid_unknown" }), &claims_with(&json!({}))),
        other.sign(&claims_with(&json!({}))),
        "notatokenatall".into(),
    ];
    let mut secrets: Vec<String> =
        ["user_2b", "sess_", "Lovelace", "other.example", "kid_unknown", STATUS_KEY]
            .map(str::to_owned)
            .into();
    for token in &tokens {
        secrets.extend(token.split('.').map(str::to_owned));
        secrets.extend(stage.show(token).json()["token"].as_str().map(str::to_owned));
    }
    // A session of unknown status is logged, too.
    stage.issuer.published().sessions.insert("sess_2bXYZsession".into(), String::new());
    assert_eq!(stage.code(&tokens[0]), "identity_unavailable");
    stage.up.signal("-INT");
    let (clean, out) = stage.up.end();
    let log = Up::log_in(&stage.folder);
    assert!(clean && log.contains("it cannot be asked whether sessions go on"), "{log}");
    assert!(log.contains("token_expired") && log.contains("DEBUG"), "everything is logged: {log}");
    assert!(secrets.len() > 20);
    for secret in secrets {
        assert!(!log.contains(&secret) && !out.contains(&secret), "{secret} in {log}{out}");
    }
}

#[test]
fn tries_count_by_address_and_foreign_origins_are_refused() {
    let key = Key::new("k", Algorithm::EdDsa);
    let stage = Stage::new(&[&key], &["--jwt-algorithm", "EdDSA", "--origin", "https://friend.example"]);
    let token = key.sign(&claims_with(&json!({})));
    let from = |origin: &str| exchange(&stage.up, &token, &format!("Origin: {origin}\r\n"));
    assert_eq!(from("https://friend.example").status, 200);
    assert_eq!(from(&format!("http://{}", stage.up.addr)).status, 200);
    let refused = from("https://evil.example");
    assert_eq!((refused.status, &refused.json()["code"]), (403, &"wrong_origin".into()));
    assert!(!refused.headers.contains_key("access-control-allow-origin"));

    let at = |ip: &str| exchange(&stage.up, "x", &format!("X-Forwarded-For: {ip}\r\n"));
    let begun = Instant::now();
    let limited = (0..200).map(|_| at("192.0.2.1")).find(|answer| answer.status == 429);
    let limited = limited.unwrap_or_else(|| panic!("200 tries in {:?}", begun.elapsed()));
    assert_eq!(limited.json()["code"], "too_many_requests");
    assert_eq!(at("192.0.2.2").status, 401, "others are not slowed down");
}

#[test]
fn the_exchange_requires_the_passphrase_too() {
    let key = Key::new("k", Algorithm::EdDsa);
    let folder = Folder::new();
    std::fs::write(folder.path().join("jwks.json"), published(&[&key])).unwrap();
    let args = ["--jwks-file", "jwks.json", "--issuer", ISSUER, "--jwt-algorithm", "EdDSA"];
    let up = Up::start(&folder, &args, Some("sesame"));
    let token = key.sign(&claims_with(&json!({})));
    assert_eq!(exchange(&up, &token, "").status, 401);
    let proof = to_hex(&AccessKey::from_passphrase("sesame").page_proof(unix_seconds() / 60));
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(up.ask("POST", &format!("/api/session?proof={proof}"), &bearer).status, 200);
}

#[test]
fn without_a_key_all_may_join_and_a_warning_is_logged() {
    let folder = Folder::new();
    let up = Up::start(&folder, &[], None);
    let said = "identity    none: anybody may come in under any name; --jwks-url asks for signed tokens";
    assert!(up.greeting.contains(said), "{}", up.greeting);
    let log = Up::log_in(&folder);
    assert!(log.contains("WARN") && log.contains("anybody may come in under any name"), "{log}");
    assert_eq!(up.api("/api/server")["sign_in"], false);
    let answer = exchange(&up, "x.y.z", "");
    assert_eq!((answer.status, &answer.json()["code"]), (404, &"no_identity".into()));
}
