//! The cost of a link: exact counts of bytes and packets, in virtual time. The figures are in docs/protocol.md.

use sametick_sim::Time;
use sametick_wire::pair::{Pair, Side};
use sametick_wire::{Carrier, Channel, LinkStats};

const DOCUMENT: &str = include_str!("../../../docs/protocol.md");

const WARM_UP_S: u64 = 2;
const SECONDS: u64 = 20;

/// A relay (A) that sends seven bytes every `ticks` ticks of 60 Hz, and a peer (B) that sends four bytes each tick,
/// five milliseconds later. `each_tick` is called in between.
fn lockstep(network: &str, ticks: u64, seconds: u64, mut each_tick: impl FnMut(&mut Pair, u64)) -> Pair {
    let mut pair = Pair::new(Carrier::Datagrams, network.parse().unwrap(), 1);
    for tick in 0..seconds * 60 {
        let [low, high] = (tick as u16).to_le_bytes();
        if tick % ticks == 0 {
            pair.send(Side::A, Channel::Input, &[low, high, 3, 1, 4, 1, 5]);
        }
        pair.run_millis(5);
        pair.send(Side::B, Channel::Input, &[low, high, 9, 2]);
        each_tick(&mut pair, tick);
        pair.run_until(Time::from_micros((tick + 1) * 1_000_000 / 60));
    }
    pair
}

fn stats(pair: &mut Pair) -> [LinkStats; 2] {
    [Side::A, Side::B].map(|side| pair.link(side).stats())
}

/// Bytes and packets a second, down from the relay and up from the peer.
fn per_second(network: &str, ticks: u64) -> [(u64, u64); 2] {
    let mut before = [LinkStats::default(); 2];
    let mut pair = lockstep(network, ticks, WARM_UP_S + SECONDS, |pair, tick| {
        if tick + 1 == WARM_UP_S * 60 {
            before = stats(pair);
        }
    });
    let after = stats(&mut pair);
    [0, 1].map(|side| {
        assert_eq!((after[side].redundant_given_up, after[side].redundant_skipped), (0, 0), "{network}");
        let bytes = after[side].bytes_sent - before[side].bytes_sent;
        let packets = after[side].packets_sent - before[side].packets_sent;
        (bytes / SECONDS, packets / SECONDS)
    })
}

#[test]
fn lockstep_costs_what_the_document_says() {
    let mut missing = vec![];
    for (network, name) in
        [("rtt=20ms", "20 ms"), ("rtt=100ms", "100 ms"), ("rtt=100ms,loss=5%", "100 ms, 5 % loss")]
    {
        for (ticks, often) in [(4, "every 4th tick"), (1, "each tick")] {
            let [down, up] = per_second(network, ticks);
            let row = format!("| {name} | {often} | {} in {} | {} in {} |", down.0, down.1, up.0, up.1);
            missing.extend((!DOCUMENT.contains(&row)).then_some(row));
        }
    }
    assert!(missing.is_empty(), "docs/protocol.md lacks:\n{}", missing.join("\n"));
}

#[test]
fn a_relay_that_sends_regularly_sends_nothing_for_acks_alone() {
    for ticks in [1, 2, 3, 4] {
        for network in ["rtt=20ms", "rtt=100ms", "rtt=100ms,jitter=4ms", "rtt=250ms,jitter=10ms,loss=10%"] {
            let [(_, down), (_, up)] = per_second(network, ticks);
            assert_eq!((down, up), (60 / ticks, 60), "{network}, {ticks} ticks a packet");
        }
    }
}

#[test]
fn a_reliable_message_costs_one_packet_for_its_ack() {
    for network in ["rtt=20ms", "rtt=100ms"] {
        let with = |control: bool| {
            let mut pair = lockstep(network, 4, 62, |pair, tick| {
                if control && tick % 30 == 7 {
                    pair.send(Side::B, Channel::Control, b"reliable");
                }
            });
            stats(&mut pair)[0].packets_sent
        };
        let more = with(true) - with(false);
        assert!(more <= 2 * 62, "{network}: {more} packets for 124 messages");
    }
}

#[test]
fn estimates_are_right_while_acks_wait() {
    for (network, rtt_us) in
        [("rtt=20ms", 20_000), ("rtt=100ms,loss=5%", 100_000), ("rtt=200ms,loss=15%", 200_000)]
    {
        let mut pair = lockstep(network, 4, 120, |pair, tick| {
            if tick == 60 * 118 {
                pair.set_profile(format!("rtt={}ms", rtt_us / 1_000).parse().unwrap());
            }
        });
        for side in [Side::A, Side::B] {
            let (stats, network_did) = (pair.link(side).stats(), pair.network(side));
            let rtt = stats.rtt_us.unwrap();
            assert!(rtt.abs_diff(rtt_us) < 1_000, "{network} {side:?}: RTT {rtt} µs");
            assert!(stats.jitter_us < 500, "{network} {side:?}: jitter {} µs", stats.jitter_us);
            let off = stats.packets_lost.abs_diff(network_did.lost);
            assert!(
                off * 50 <= network_did.lost + 50,
                "{network}: lost {} of {}",
                stats.packets_lost,
                network_did.lost
            );
        }
    }
}

/// Late packets are not lost, even if their ack is delayed.
#[test]
fn reordered_packets_are_not_counted_as_lost() {
    let mut pair = lockstep("rtt=100ms,reorder=10%", 4, 60, |_, _| {});
    let [a, b] = stats(&mut pair);
    assert_eq!((a.packets_lost, b.packets_lost), (0, 0));
}

/// The mean latency of reliable messages among lockstep traffic.
fn reliable_us(network: &str, ticks: u64) -> u64 {
    let (mut sent, mut delays) = (vec![], vec![]);
    lockstep(network, ticks, 120, |pair, tick| {
        let took = |pair: &mut Pair, sent: &[Time], delays: &mut Vec<u64>| {
            let arrived = pair.take(Side::A).into_iter().filter(|(channel, _)| *channel == Channel::Control);
            for _ in arrived {
                delays.push(pair.now().micros_since(sent[delays.len()]));
            }
        };
        if tick % 7 == 0 && tick < 60 * 110 {
            sent.push(pair.now());
            pair.send(Side::B, Channel::Control, b"reliable");
        }
        for _ in 0..11 {
            took(pair, &sent, &mut delays);
            pair.run_millis(1);
        }
        took(pair, &sent, &mut delays);
    });
    assert_eq!(sent.len(), delays.len());
    delays.iter().sum::<u64>() / delays.len() as u64
}

#[test]
fn reliable_messages_are_not_resent_later_than_before() {
    // The means of a version in which every ack left within 20 ms.
    for (network, ticks, before_us) in [
        ("rtt=20ms,loss=5%", 4, 14_926),
        ("rtt=100ms,loss=5%", 4, 59_763),
        ("rtt=100ms,loss=20%", 4, 105_290),
        ("rtt=20ms,loss=5%", 1, 13_449),
        ("rtt=100ms,loss=5%", 1, 58_978),
        ("rtt=100ms,loss=20%", 1, 99_080),
    ] {
        let mean_us = reliable_us(network, ticks);
        assert!(mean_us < before_us * 21 / 20, "{network}, {ticks} ticks a packet: {mean_us} µs");
    }
}

/// Milliseconds until two megabytes on the bulk channel have arrived.
fn bulk_ms(network: &str) -> u64 {
    let mut pair = Pair::new(Carrier::Datagrams, network.parse().unwrap(), 1);
    pair.run_millis(500);
    pair.send(Side::A, Channel::Chunks, &vec![7; 2 << 20]);
    let from = pair.now();
    while pair.take(Side::B).is_empty() {
        pair.run_millis(1);
    }
    pair.now().micros_since(from) / 1_000
}

#[test]
fn bulk_is_not_slower_than_before() {
    for (network, before_ms) in [("rtt=20ms", 241), ("rtt=100ms", 1_183), ("rtt=100ms,loss=5%", 2_100)] {
        let ms = bulk_ms(network);
        assert!(ms <= before_ms, "{network}: {ms} ms");
    }
}
