//! The client as a wasm module for browsers: what JavaScript sees of it.
//!
//! JavaScript moves bytes and draws; everything that decides anything is in the pure crates below. [`Client`] is polled: after
//! everything that happens, [`Client::poll`] is called until it answers 0, and again when [`Client::wake_at`] has come.

mod client;
mod demo;
mod diagnostics;
mod options;
mod pong;
mod screen;
mod status;

use sametick_pong::Pong;
use sametick_sim::Game;
use sametick_wire::access::{AccessKey, root_of};
use sametick_wire::hex::{from_hex, to_hex};
use wasm_bindgen::prelude::wasm_bindgen;

pub use client::Client;
pub use demo::Demo;

/// The build ids compiled in, as JSON: `{"pong":"…"}`. A server of another build refuses them.
#[wasm_bindgen]
pub fn builds() -> String {
    format!(r#"{{"{}":"{}"}}"#, Pong::NAME, Pong::BUILD)
}

/// The root key of a passphrase, in hexadecimal: what a page keeps instead of it. Slow on purpose.
#[wasm_bindgen]
pub fn key_from_passphrase(passphrase: &str) -> String {
    to_hex(&root_of(passphrase))
}

/// What a page shows to be told of sessions, in this minute of Unix time, in hexadecimal.
#[wasm_bindgen]
pub fn page_proof(key: &str, unix_minute: f64) -> Result<String, String> {
    let key = AccessKey::from_root(&from_hex(key).ok_or("a key has 64 hexadecimal digits")?);
    Ok(to_hex(&key.page_proof(unix_minute as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_json_by_name() {
        assert_eq!(builds(), format!(r#"{{"pong":"{}"}}"#, Pong::BUILD));
    }

    #[test]
    fn a_page_proves_the_passphrase_that_the_server_has() {
        let root = key_from_passphrase("correct horse");
        let proof = from_hex(&page_proof(&root, 30_000_000.0).unwrap()).unwrap();
        let server = AccessKey::from_passphrase("correct horse");
        assert!(
            [29_999_999, 30_000_000, 30_000_001]
                .map(|minute| server.is_page_proof(minute, &proof))
                .iter()
                .all(|good| *good)
        );
        assert!(!server.is_page_proof(30_000_002, &proof));
        assert!(!AccessKey::from_passphrase("another").is_page_proof(30_000_000, &proof));
        assert!(page_proof("abc", 1.0).is_err());
    }
}
