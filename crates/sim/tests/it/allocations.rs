//! What runs every tick allocates nothing once it is warm.

use sametick_sim::{Inputs, Seat, StateHash, canon};

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
