//! Test issuer of signed tokens, with keys of every kind and a server that publishes them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use sametick::identity::Algorithm;
use sametick::identity::jwks::KeySet;
use sametick::identity::verifier::{Rules, Verifier};
use sametick_transport::clock::unix_seconds;
use serde_json::{Value, json};

/// A fixed RSA key: making one takes seconds.
const RSA: &[u8] = include_bytes!("rsa.pk8");

pub const ISSUER: &str = "https://issuer.example";

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

enum Pair {
    Rsa(RsaKeyPair),
    Es(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

/// A key that tokens are signed with.
pub struct Key {
    pub kid: &'static str,
    pair: Pair,
}

impl Key {
    pub fn new(kid: &'static str, algorithm: Algorithm) -> Key {
        let random = SystemRandom::new();
        let pair = match algorithm {
            Algorithm::Rs256 => Pair::Rsa(RsaKeyPair::from_pkcs8(RSA).unwrap()),
            Algorithm::Es256 => {
                let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
                Pair::Es(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap())
            }
            Algorithm::EdDsa => {
                let made = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Pair::Ed(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
            }
        };
        Key { kid, pair }
    }

    pub fn algorithm(&self) -> Algorithm {
        match self.pair {
            Pair::Rsa(_) => Algorithm::Rs256,
            Pair::Es(_) => Algorithm::Es256,
            Pair::Ed(_) => Algorithm::EdDsa,
        }
    }

    /// The key in its published form.
    pub fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                let RsaPublicKeyComponents { n, e }: RsaPublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({ "kty": "RSA", "n": encode(n), "e": encode(e) })
            }
            Pair::Es(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y) })
            }
            Pair::Ed(pair) => json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key()) }),
        };
        let common = json!({ "kid": self.kid, "alg": self.algorithm().name(), "use": "sig" });
        jwk.as_object_mut().unwrap().extend(common.as_object().unwrap().clone());
        jwk
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_under(&json!({ "alg": self.algorithm().name(), "kid": self.kid, "typ": "JWT" }), claims)
    }

    /// A token with these claims under any header.
    pub fn sign_under(&self, head: &Value, claims: &Value) -> String {
        let said = format!("{}.{}", encode(head.to_string()), encode(claims.to_string()));
        let signature = match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let random = SystemRandom::new();
                pair.sign(&RSA_PKCS1_SHA256, &random, said.as_bytes(), &mut signature).unwrap();
                signature
            }
            Pair::Es(pair) => pair.sign(&SystemRandom::new(), said.as_bytes()).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(said.as_bytes()).as_ref().to_vec(),
        };
        format!("{said}.{}", encode(signature))
    }
}

pub fn published(keys: &[&Key]) -> String {
    json!({ "keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>() }).to_string()
}

pub fn key_set(keys: &[&Key]) -> KeySet {
    KeySet::parse(published(keys).as_bytes(), keys[0].algorithm()).unwrap()
}

pub fn rules(algorithm: Algorithm) -> Rules {
    Rules { algorithm, issuer: ISSUER.into(), audience: None, authorized_parties: Vec::new() }
}

pub fn verifier(algorithm: Algorithm) -> Verifier {
    Verifier::new(rules(algorithm))
}

/// The claims of a good token at this time, in Clerk's form.
pub fn claims_at(now_unix_s: u64) -> Value {
    json!({
        "iss": ISSUER, "sub": "user_2bXYZsubject", "sid": "sess_2bXYZsession", "azp": "https://game.example",
        "iat": now_unix_s - 1, "nbf": now_unix_s - 11, "exp": now_unix_s + 60, "name": "Ada Lovelace",
    })
}

/// The claims of a good token of now, with some of them replaced.
pub fn claims_with(others: &Value) -> Value {
    let mut claims = claims_at(unix_seconds());
    claims.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    claims
}

/// What an issuer's server publishes, and the requests it has received.
#[derive(Default)]
pub struct Published {
    /// The keys; status 500 without.
    pub jwks: Option<String>,
    /// The status of each session; 404 for others.
    pub sessions: BTreeMap<String, String>,
    /// The path of each request, and its bearer key.
    pub asked: Vec<(String, Option<String>)>,
}

/// An issuer's server, which runs until the process ends.
#[derive(Clone)]
pub struct Issuer {
    pub addr: SocketAddr,
    published: Arc<Mutex<Published>>,
}

impl Issuer {
    pub fn start(keys: &[&Key]) -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = Issuer { addr: listener.local_addr().unwrap(), published: Arc::default() };
        issuer.publish(keys);
        let answering = issuer.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let answering = answering.clone();
                std::thread::spawn(move || answering.answer(&stream.unwrap()));
            }
        });
        issuer
    }

    /// What it publishes from now on. While the guard is held, requests wait.
    pub fn published(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap()
    }

    pub fn publish(&self, keys: &[&Key]) {
        self.published().jwks = (!keys.is_empty()).then(|| published(keys));
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// How often its keys were fetched.
    pub fn fetches(&self) -> usize {
        self.published().asked.iter().filter(|(path, _)| path == "/jwks").count()
    }

    fn answer(&self, mut stream: &TcpStream) {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let Some(path) = lines.next().and_then(|line| line.split(' ').nth(1).map(str::to_owned)) else {
            return;
        };
        let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let key = headers.iter().find_map(|line| line.strip_prefix("authorization: ")).map(str::to_owned);
        let mut published = self.published();
        published.asked.push((path.clone(), key));
        let (status, body) = match (path.as_str(), path.strip_prefix("/sessions/")) {
            ("/jwks", _) => published.jwks.clone().map_or((500, String::new()), |jwks| (200, jwks)),
            (_, Some(session)) => match published.sessions.get(session) {
                Some(status) if status.is_empty() => (500, String::new()),
                Some(status) => (200, json!({ "object": "session", "status": status }).to_string()),
                None => (404, String::new()),
            },
            _ => (404, String::new()),
        };
        drop(published);
        // The client may have given up.
        let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    }
}
