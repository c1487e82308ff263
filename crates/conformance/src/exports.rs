//! What a wasm module made of this crate exports: plain functions of numbers, so that any host can call them.

#![allow(unsafe_code, reason = "an exported name is an unsafe attribute; there is no unsafe block in here")]

use crate::{identity, pong, run, session, talk};

/// The hash over all ticks of a run. The seed comes in two halves, low half first.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_chain(seed_low: u32, seed_high: u32, ticks: u32) -> u64 {
    run(seed(seed_low, seed_high), ticks).chain.0
}

/// The hash of the last state of a run.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_last(seed_low: u32, seed_high: u32, ticks: u32) -> u64 {
    run(seed(seed_low, seed_high), ticks).last.0
}

/// The hash of a conversation of two links.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_talk(seed_low: u32, seed_high: u32, ticks: u32) -> u64 {
    talk(seed(seed_low, seed_high), ticks).0
}

/// The hash of a crowd's game of pong.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_pong(seed_low: u32, seed_high: u32, ticks: u32) -> u64 {
    pong(seed(seed_low, seed_high), ticks).0
}

/// The hash of a session of lockstep.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_session(seed_low: u32, seed_high: u32, ticks: u32) -> u64 {
    session(seed(seed_low, seed_high), ticks).0
}

/// Eight bytes of the build id as a big-endian number, so that it prints as they do: word 0 or 1; then zero.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_build(word: u32) -> u64 {
    big_endian_word(identity().0.as_bytes(), word)
}

/// Eight bytes of the schema hash as a big-endian number: word 0 to 3; then zero.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_schema(word: u32) -> u64 {
    big_endian_word(identity().1.as_bytes(), word)
}

fn seed(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn big_endian_word(bytes: &[u8], word: u32) -> u64 {
    bytes.as_chunks().0.get(word as usize).map_or(0, |word| u64::from_be_bytes(*word))
}
