//! The client as a wasm module for browsers: what JavaScript sees of it.
//!
//! JavaScript moves bytes and draws; everything that decides anything is in the pure crates below.

use sametick_pong::Pong;
use sametick_sim::Game;
use wasm_bindgen::prelude::wasm_bindgen;

/// The build ids compiled in, as JSON: `{"pong":"…"}`. A server of another build refuses them.
#[wasm_bindgen]
pub fn builds() -> String {
    format!(r#"{{"{}":"{}"}}"#, Pong::NAME, Pong::BUILD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_json_by_name() {
        assert_eq!(builds(), format!(r#"{{"pong":"{}"}}"#, Pong::BUILD));
    }
}
