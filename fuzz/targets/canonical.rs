//! Canonical bytes from a stranger decode or are refused, and what decodes encodes to bytes that decode alike.
#![cfg_attr(fuzzing, no_main)]

use sametick_sim::Tick;

sametick_fuzz::target!(|bytes: &[u8]| {
    let Ok(tick) = postcard::from_bytes::<Tick>(bytes) else { return };
    let again = postcard::to_allocvec(&tick).expect("a tick encodes");
    assert_eq!(postcard::from_bytes(&again), Ok(tick));
});
