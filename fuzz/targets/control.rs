//! Any bytes as a control message of lockstep are refused or understood, and understood the same when written again.
//!
//! The input: which kind of message, then its bytes.
#![cfg_attr(fuzzing, no_main)]

use std::fmt::Debug;

use sametick_lockstep::diagnostics::Diagnostics;
use sametick_lockstep::message::{Pace, ToPeer, ToRelay, Way, describe, from_bytes, to_bytes};
use sametick_sim::Tick;
use sametick_wire::Channel;
use serde::Serialize;
use serde::de::DeserializeOwned;

sametick_fuzz::target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => read::<ToRelay>(bytes),
        1 => read::<ToPeer>(bytes),
        2 => read::<Pace>(bytes),
        _ => read::<Diagnostics>(bytes),
    }
    let way = if kind & 4 == 0 { Way::ToRelay } else { Way::ToPeer };
    describe(way, Channel::ALL[usize::from(kind >> 3) % 6], bytes, Tick(5_000));
});

fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let Ok(message) = from_bytes::<T>(bytes) else { return };
    let again = to_bytes(&message);
    assert!(again.len() <= bytes.len());
    assert_eq!(from_bytes(&again), Ok(message));
}
