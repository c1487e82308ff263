//! Canonical bytes of an untrusted peer decode or are refused; what decodes has one encoding, and that decodes to the
//! same.
#![cfg_attr(fuzzing, no_main)]

use sametick_conformance::Order;
use sametick_sim::{Seat, Tick, from_canonical, to_canonical};

/// One seat's input of one tick: the value that peers send most.
type Sent = (Tick, Seat, Order);

sametick_fuzz::target!(|bytes: &[u8]| {
    let Ok(sent) = from_canonical::<Sent>(bytes) else { return };
    let encoded = to_canonical(&sent).expect("what was decoded encodes");
    let again: Sent = from_canonical(&encoded).expect("canonical bytes decode");
    // Bytes and not values: a NaN does not equal itself.
    assert_eq!(to_canonical(&again), Ok(encoded));
});
