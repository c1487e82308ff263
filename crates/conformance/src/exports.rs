//! The exports of the wasm module: plain functions of numbers, so that any runtime can call them.

#![allow(unsafe_code, reason = "an exported name is an unsafe attribute; there is no unsafe block in here")]

use core::cell::RefCell;

use alloc::vec::Vec;

use crate::{Replay, arena, identity, pong, replay, room, run, session, talk};

std::thread_local! {
    /// The log to replay, as far as it was passed in.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static REPLAY: RefCell<Replay> = RefCell::default();
}

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

/// The hash of a crowd's game of arena.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_arena(seed_low: u32, seed_high: u32, ticks: u32) -> u64 {
    arena(seed(seed_low, seed_high), ticks).0
}

/// The hash of a room.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_room(seed_low: u32, seed_high: u32, ticks: u32) -> u64 {
    room(seed(seed_low, seed_high), ticks).0
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

/// Passes in the next byte of a log.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_log_byte(byte: u32) {
    LOG.with_borrow_mut(|log| log.push(byte as u8));
}

/// Replays the log that was passed in, and returns the number of its ticks.
///
/// # Panics
/// If it is no log of this build, or does not replay to the hashes that its players agreed on.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_replay() -> u32 {
    let done = LOG.with_borrow(|log| replay(log)).expect("a log that replays");
    let ticks = done.hashes.len() as u32;
    REPLAY.set(done);
    ticks
}

/// The number of agreed hashes that the last replay reproduced.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_replay_checks() -> u32 {
    REPLAY.with_borrow(|done| done.checks)
}

/// The hash after a tick of the last replay; zero if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn sametick_replay_hash(tick: u32) -> u64 {
    let at = (tick as usize).wrapping_sub(1);
    REPLAY.with_borrow(|done| done.hashes.get(at).map_or(0, |hash| hash.0))
}

fn seed(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn big_endian_word(bytes: &[u8], word: u32) -> u64 {
    bytes.as_chunks().0.get(word as usize).map_or(0, |word| u64::from_be_bytes(*word))
}
