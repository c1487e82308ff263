//! Operations of every tick do not allocate once buffers have grown.

use sametick_sim::{Inputs, Seat, StateHash, canon, from_canonical};

use crate::rich::sample;

fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
}

#[test]
fn hashing_a_state_allocates_nothing() {
    let state = vec![sample(); 100];
    assert_eq!(allocations(|| assert_ne!(StateHash::of(&state), StateHash(0))), 0);
}

#[test]
fn saving_into_a_used_buffer_allocates_nothing() {
    let (state, mut bytes) = (vec![sample(); 100], Vec::new());
    canon::encode(&state, &mut bytes).unwrap();
    bytes.clear();
    assert_eq!(allocations(|| canon::encode(&state, &mut bytes).unwrap()), 0);
}

#[test]
fn inputs_that_are_used_again_allocate_nothing() {
    let mut inputs = Inputs::new();
    let fill = |inputs: &mut Inputs<u16>| {
        inputs.clear();
        (0..16).rev().for_each(|seat| inputs.set(Seat(seat), 7));
    };
    fill(&mut inputs);
    assert_eq!(allocations(|| (0..100).for_each(|_| fill(&mut inputs))), 0);
}

#[test]
fn a_declared_length_allocates_nothing() {
    // 4000 items of a kilobyte are declared, and none of them is complete.
    let mut bytes = vec![0xa0, 0x1f];
    bytes.resize(4002, 0xff);
    let measured = allocation_counter::measure(|| {
        assert!(from_canonical::<Vec<[u64; 32]>>(&bytes).is_err());
        assert!(from_canonical::<String>(&[0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
    });
    assert!(measured.bytes_max < 64 * 1024, "{} bytes", measured.bytes_max);
}
