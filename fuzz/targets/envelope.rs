//! Any envelope of a script, in either encoding, is refused with a sentence or understood.
//!
//! The input: which encoding, then the bytes. The code is the server's own file, without the rest of the server.
#![cfg_attr(fuzzing, no_main)]

#[allow(dead_code, reason = "what scripts are told is no matter of foreign bytes")]
#[path = "../../crates/server/src/rooms/envelope.rs"]
mod envelope;
#[allow(dead_code, reason = "payloads are read by what they are for")]
#[path = "../../crates/server/src/strict_json.rs"]
mod strict_json;

use envelope::{Encoding, Incoming, encode, parse};

sametick_fuzz::target!(allowing 100_000, |bytes: &[u8]| {
    let Some((encoding, bytes)) = bytes.split_first() else { return };
    let encoding = if encoding % 2 == 0 { Encoding::Json } else { Encoding::MessagePack };
    match parse(encoding, bytes) {
        Ok(Incoming::Command(command)) => {
            assert!(command.feature.len() <= 64 && command.action.len() <= 64);
        }
        Ok(Incoming::Character(name)) => assert!(name.len() <= 64),
        Ok(Incoming::Ping { .. } | Incoming::Resync) => {}
        Err(fault) => {
            let mut out = Vec::new();
            encode(encoding, &fault, &mut out);
            assert!(out.len() < 1_000, "{fault:?}");
        }
    }
});
