//! One link, both ends: frames, channels, acks and redundancy, handshake, bit packing, and the bad network as a library.
#![no_std]

extern crate alloc;

pub mod backoff;
pub mod bits;
pub mod netem;
pub mod quantise;
