//! No allocation per packet in steady state: counted, on every carrier, with loss and with reliable traffic.

use sametick_wire::pair::{Pair, Side};
use sametick_wire::{Carrier, Channel};

fn play(pair: &mut Pair, frames: u64) {
    let start = pair.now();
    for frame in 1..=frames {
        for side in [Side::A, Side::B] {
            pair.send(side, Channel::Input, b"input");
            pair.send(side, Channel::State, &[7; 200]);
            if frame % 6 == 0 {
                pair.send(side, Channel::Control, &[9; 40]);
                pair.send(side, Channel::Chunks, &[9; 1_500]);
            }
        }
        pair.run_until(start.plus_micros(frame * 1_000_000 / 60));
    }
}

/// Allocations in a minute of 60 Hz on a network, after buffers have grown for `warm_up` minutes.
fn allocations(carrier: Carrier, network: &str, warm_up: u64) -> u64 {
    let mut pair = Pair::new(carrier, network.parse().unwrap(), 11);
    pair.count_only();
    let counted = allocation_counter::measure(|| play(&mut pair, 60 * 60 * warm_up));
    assert!(counted.count_total > 0, "the counter counts");
    let before = pair.arrived(Side::A);
    let steady = allocation_counter::measure(|| play(&mut pair, 60 * 60));
    assert!(pair.arrived(Side::A) - before > 60 * 60, "{carrier:?}: the link is in use");
    steady.count_total
}

const CARRIERS: [Carrier; 3] = [Carrier::Datagrams, Carrier::DatagramsAndStreams, Carrier::Stream];

#[test]
fn no_allocation_per_packet_in_steady_state() {
    for carrier in CARRIERS {
        assert_eq!(allocations(carrier, "rtt=80ms,jitter=5ms", 1), 0, "{carrier:?}");
    }
}

#[test]
fn loss_and_reordering_only_grow_buffers_to_a_new_record() {
    for carrier in CARRIERS {
        // Some 10,000 packets each way.
        let count = allocations(carrier, "rtt=80ms,jitter=5ms,loss=5%,dup=5%,reorder=5%", 20);
        assert!(count <= 8, "{carrier:?}: {count} allocations in a minute");
    }
}
