//! Two links on a bad network, in virtual time, over many seeds.

use sametick_sim::{Rng, Time};
use sametick_wire::netem::Profile;
use sametick_wire::pair::{Pair, Side};
use sametick_wire::{Carrier, Channel, Closed, Delivery, Reason, closing};

const CARRIERS: [Carrier; 3] = [Carrier::Datagrams, Carrier::DatagramsAndStreams, Carrier::Stream];

fn profile(text: &str) -> Profile {
    text.parse().unwrap()
}

/// A message that carries its number and is otherwise arbitrary.
fn message(number: u32, rng: &mut Rng, max: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..rng.below(max)).map(|_| rng.next_u64() as u8));
    bytes
}

fn number(message: &[u8]) -> u32 {
    u32::from_le_bytes(message[..4].try_into().unwrap())
}

/// The number of seeds: `cargo xtask long pairs` sets it.
#[expect(clippy::disallowed_methods, reason = "the environment sets the size of a test")]
fn seeds(usual: u64) -> u64 {
    std::env::var_os("SAMETICK_SEEDS").map_or(usual, |seeds| seeds.to_str().unwrap().parse().unwrap())
}

/// The messages that one side sent on each channel.
#[derive(Default)]
struct Sent {
    by_channel: [Vec<Vec<u8>>; 6],
}

impl Sent {
    fn send(&mut self, pair: &mut Pair, side: Side, channel: Channel, rng: &mut Rng) {
        let max = match channel.delivery() {
            Delivery::Ordered if rng.chance(1, 20) => 8_000,
            Delivery::Ordered => 300,
            Delivery::Redundant => 8,
            Delivery::Newest => 900,
        };
        let sent = &mut self.by_channel[usize::from(channel.number())];
        let message = message(sent.len() as u32, rng, max);
        pair.send(side, channel, &message);
        sent.push(message);
    }

    /// Checks the messages that arrived against the guarantee of each channel.
    fn check(&self, received: &[(Channel, Vec<u8>)], context: &str) {
        for channel in Channel::ALL {
            let sent = &self.by_channel[usize::from(channel.number())];
            let got: Vec<&Vec<u8>> = received.iter().filter(|(c, _)| *c == channel).map(|(_, m)| m).collect();
            assert!(got.iter().all(|m| sent[number(m) as usize] == **m), "{context}: {channel:?} damaged");
            let rising = got.windows(2).all(|pair| number(pair[0]) < number(pair[1]));
            assert!(rising, "{context}: {channel:?} went back");
            match channel.delivery() {
                Delivery::Ordered => assert_eq!(got.len(), sent.len(), "{context}: {channel:?} incomplete"),
                // Given up only when a second of inputs went unacknowledged.
                Delivery::Redundant => assert_eq!(got.len(), sent.len(), "{context}: {channel:?} skipped"),
                Delivery::Newest => assert!(!got.is_empty(), "{context}: {channel:?} silent"),
            }
        }
    }
}

/// Both sides send on every channel for a while; then everything has to have arrived as guaranteed.
fn conversation(carrier: Carrier, extra: usize, profile: Profile, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut pair = Pair::new(carrier, profile, seed);
    pair.set_extra_sockets(extra);
    let mut sent = [Sent::default(), Sent::default()];
    for _ in 0..120 {
        for (side, sent) in [Side::A, Side::B].into_iter().zip(&mut sent) {
            sent.send(&mut pair, side, Channel::Input, &mut rng);
            sent.send(&mut pair, side, Channel::State, &mut rng);
            let ordered = Channel::ALL[rng.below(4) as usize];
            sent.send(&mut pair, side, ordered, &mut rng);
        }
        pair.run_millis(16);
    }
    // Long enough for retries, short enough that an idle link does not time out in a burst of losses.
    for _ in 0..600 {
        if pair.link(Side::A).is_flushed() && pair.link(Side::B).is_flushed() {
            break;
        }
        pair.run_millis(100);
    }
    // A stream may still have to send its bytes again.
    pair.run_millis(if carrier == Carrier::Datagrams { 1_000 } else { 5_000 });
    let context = format!("{carrier:?} with {extra} extra sockets, seed {seed}");
    sent[0].check(&pair.take(Side::B), &context);
    sent[1].check(&pair.take(Side::A), &context);
    for side in [Side::A, Side::B] {
        assert!(pair.link(side).is_flushed(), "{context}");
        assert_eq!(pair.closed(side), None, "{context}");
    }
}

#[test]
fn every_guarantee_holds_on_a_terrible_network() {
    let bad = profile("rtt=200ms,jitter=20ms,loss=30%,dup=50%,reorder=20%,corrupt=2%");
    for seed in 0..seeds(2_000) {
        conversation(Carrier::Datagrams, 0, bad, seed);
    }
    for seed in 0..seeds(2_000) / 4 {
        conversation(Carrier::DatagramsAndStreams, 0, bad, seed);
        conversation(Carrier::Stream, 0, bad, seed);
        conversation(Carrier::Stream, 1 + seed as usize % 4, bad, seed);
    }
}

#[test]
fn every_guarantee_holds_when_losses_come_in_bursts() {
    let bad = profile("rtt=120ms,loss=20%,burst=4,reorder=5%");
    // One seed in some 6,000 (171 is one) draws a burst of 25 packets at the end, which is a legitimate time-out.
    for seed in 200..500 {
        conversation(Carrier::Datagrams, 0, bad, seed);
    }
}

#[test]
fn every_guarantee_holds_on_a_perfect_network() {
    for carrier in CARRIERS {
        conversation(carrier, 0, Profile::default(), 1);
    }
}

/// The same run twice gives the same bytes.
#[test]
fn a_seed_decides_everything() {
    let run = || {
        let mut pair = Pair::new(Carrier::Datagrams, profile("rtt=80ms,jitter=30ms,loss=10%"), 42);
        let mut rng = Rng::new(42);
        let mut sent = Sent::default();
        (0..200).for_each(|_| {
            sent.send(&mut pair, Side::A, Channel::Chat, &mut rng);
            sent.send(&mut pair, Side::A, Channel::State, &mut rng);
            pair.run_millis(10);
        });
        (pair.take(Side::B), pair.link(Side::A).stats(), pair.network(Side::A))
    };
    assert_eq!(run(), run());
}

/// Sends at 60 Hz both ways for `seconds`.
fn play(pair: &mut Pair, seconds: u64) {
    let start = pair.now();
    for frame in 1..=seconds * 60 {
        pair.send(Side::A, Channel::State, b"a state of the world");
        pair.send(Side::B, Channel::State, b"a state of the world");
        pair.run_until(start.plus_micros(frame * 1_000_000 / 60));
    }
}

#[test]
fn round_trip_and_loss_are_those_of_the_network() {
    for (seed, loss, rtt_ms) in
        (0..).zip([(0, 20), (2, 50), (5, 100), (10, 200), (30, 200)]).map(|(s, (l, r))| (s, l, r))
    {
        let text = format!("rtt={rtt_ms}ms,loss={loss}%");
        let mut pair = Pair::new(Carrier::Datagrams, profile(&text), seed);
        play(&mut pair, 120);
        pair.set_profile(profile(&format!("rtt={rtt_ms}ms")));
        play(&mut pair, 3);
        for side in [Side::A, Side::B] {
            let (stats, network) = (pair.link(side).stats(), pair.network(side));
            let rtt = stats.rtt_us.unwrap();
            assert!(rtt.abs_diff(rtt_ms * 1_000) < 1_000, "{text}: RTT {rtt} µs");
            assert!(stats.jitter_us < 500, "{text}: jitter {} µs of none", stats.jitter_us);
            // Every ack covers 64 packets, so next to nothing is missed: within 2 % of the packets really lost.
            let off = stats.packets_lost.abs_diff(network.lost);
            assert!(off * 50 <= network.lost + 50, "{text}: lost {} of {}", stats.packets_lost, network.lost);
            let there = pair.link(side.other()).stats();
            let missing = there.packets_expected - there.packets_received;
            assert!(missing.abs_diff(network.lost) <= 6, "{text}: missing {missing} of {}", network.lost);
        }
    }
}

#[test]
fn jitter_is_that_of_the_network() {
    // The difference between two round trips is the sum of four delays, each uniform within the jitter j: its mean
    // size is 14/15 j. At 60 Hz packets are too far apart for these j to be cut short by the network's order.
    for jitter_ms in [2u64, 4, 8] {
        let text = format!("rtt=100ms,jitter={jitter_ms}ms");
        let mut pair = Pair::new(Carrier::Datagrams, profile(&text), jitter_ms);
        play(&mut pair, 5);
        let rounds = 100;
        let sum: u64 = (0..rounds)
            .map(|_| {
                play(&mut pair, 1);
                pair.link(Side::A).stats().jitter_us
            })
            .sum();
        let (estimate, expected) = (sum / rounds, jitter_ms * 1_000 * 14 / 15);
        assert!(estimate.abs_diff(expected) * 8 < expected, "{text}: {estimate} µs, not {expected}");
        let rtt = pair.link(Side::A).stats().rtt_us.unwrap();
        assert!(rtt.abs_diff(100_000) < jitter_ms * 1_000, "{text}: RTT {rtt} µs");
    }
}

#[test]
fn bulk_never_delays_inputs() {
    // 4 Mbit/s with a queue of half a second: bulk could fill it, and every input would wait behind it.
    for carrier in CARRIERS {
        let mut pair = Pair::new(carrier, profile("rtt=60ms,rate=4mbit,queue=250kB"), 5);
        pair.send(Side::A, Channel::Chunks, &vec![7; 2 << 20]);
        let (mut delays, mut started, mut got) = (vec![], vec![], 0);
        for frame in 0..60 * 30u64 {
            started.push(pair.now());
            pair.send(Side::A, Channel::Input, &(frame as u32).to_le_bytes());
            let until = Time::from_micros((frame + 1) * 1_000_000 / 60);
            while pair.now() < until {
                pair.run_until(pair.now().plus_micros(1_000).min(until));
                for (channel, message) in pair.take(Side::B) {
                    match channel {
                        Channel::Input => {
                            delays.push(pair.now().micros_since(started[number(&message) as usize]));
                        }
                        _ => got += message.len(),
                    }
                }
            }
        }
        assert_eq!(got, 2 << 20, "{carrier:?}: the bulk arrives meanwhile");
        delays.sort_unstable();
        let (median, worst) = (delays[delays.len() / 2], delays[delays.len() * 99 / 100]);
        assert!(median < 45_000 && worst < 80_000, "{carrier:?}: median {median} µs, 99 % {worst} µs");
    }
}

#[test]
fn the_longest_message_arrives_on_every_carrier() {
    let long: Vec<u8> = (0..16 << 20).map(|i: u32| ((i * 7) >> 3) as u8).collect();
    for carrier in CARRIERS {
        let mut pair = Pair::new(carrier, profile("rtt=20ms,loss=1%"), 9);
        pair.send(Side::A, Channel::Chunks, &long);
        pair.send(Side::A, Channel::Control, b"not stuck behind it");
        pair.run_millis(120_000);
        let got = pair.take(Side::B);
        assert_eq!(got[0], (Channel::Control, b"not stuck behind it".to_vec()), "{carrier:?}");
        assert!(got.len() == 2 && got[1].1 == long, "{carrier:?}");
    }
}

#[test]
fn a_carrier_that_is_reliable_pays_for_no_acks() {
    let mut pair = Pair::new(Carrier::Stream, profile("rtt=40ms"), 1);
    for frame in 1..=600u64 {
        pair.send(Side::A, Channel::Input, &[1, 2, 3, 4]);
        pair.run_until(Time::from_micros(frame * 1_000_000 / 60));
    }
    let (a, b) = (pair.link(Side::A).stats(), pair.link(Side::B).stats());
    // Kind and length around each message, and a ping a second at most.
    assert!(a.bytes_sent <= 600 * (4 + 2) + 10 * 6, "{}", a.bytes_sent);
    assert!(b.bytes_sent <= 11 * 6, "{}", b.bytes_sent);
}

#[test]
fn an_idle_link_stays_alive_and_costs_little() {
    for carrier in CARRIERS {
        let mut pair = Pair::new(carrier, profile("rtt=100ms,loss=30%"), 3);
        pair.run_millis(600_000);
        for side in [Side::A, Side::B] {
            assert_eq!(pair.closed(side), None, "{carrier:?}");
            let per_second = pair.link(side).stats().bytes_sent / 600;
            assert!(per_second < 60, "{carrier:?}: {per_second} bytes a second");
        }
    }
}

#[test]
fn ten_seconds_of_silence_are_a_time_out() {
    let mut pair = Pair::new(Carrier::Datagrams, profile("rtt=50ms"), 3);
    pair.run_millis(5_000);
    pair.set_down(true);
    pair.run_millis(9_000);
    assert_eq!(pair.closed(Side::A), None);
    pair.set_down(false);
    pair.send(Side::A, Channel::Chat, b"still here");
    pair.run_millis(3_000);
    assert_eq!(pair.take(Side::B), [(Channel::Chat, b"still here".to_vec())]);
    pair.set_down(true);
    pair.run_millis(11_100);
    assert_eq!(pair.closed(Side::A), Some(&Closed::TimedOut));
    assert_eq!(pair.closed(Side::B), Some(&Closed::TimedOut));
}

#[test]
fn a_close_carries_its_reason() {
    for carrier in CARRIERS {
        for seed in 0..50 {
            let mut pair = Pair::new(carrier, profile("rtt=100ms,loss=20%"), seed);
            pair.send(Side::B, Channel::Chat, b"hello");
            pair.run_millis(2_000);
            pair.close(Side::A, 4, "the server restarts");
            pair.run_millis(15_000);
            assert_eq!(pair.closed(Side::A), Some(&Closed::Here));
            let reason = Reason { code: 4, text: "the server restarts".into() };
            let there = pair.closed(Side::B).unwrap();
            // Five packets in a row can be lost: then it is a time-out.
            assert!(*there == Closed::There(reason) || *there == Closed::TimedOut, "{there:?}");
        }
    }
}

#[test]
fn garbage_ends_the_link_without_panic() {
    use sametick_wire::{Input, LaneId, Link, Output};
    let mut buf = Vec::new();
    for (carrier, input, words) in [
        (Carrier::Datagrams, Input::Datagram(&[0, 0, 0, 0x70 | 9]), "a known kind"),
        (Carrier::Datagrams, Input::Datagram(&[0]), "ends where its last value does"),
        (Carrier::Datagrams, Input::Datagram(&[0, 0, 4, 9, 0, 0]), "only packets that were sent"),
        (Carrier::Stream, Input::Datagram(&[0, 0, 0]), "no datagrams"),
        (Carrier::Stream, Input::Stream(LaneId(1), &[0]), "no such stream"),
        (Carrier::DatagramsAndStreams, Input::Datagram(&[0, 0, 0, 0x30, 0, 1, 1]), "go by streams"),
    ] {
        let mut link = Link::new(Time::ZERO, carrier);
        while !matches!(link.poll_output(&mut buf), Output::WakeAt(_)) {}
        let error = link.handle(Time::ZERO, input).unwrap_err();
        assert!(error.rule().contains(words), "{carrier:?} {input:?}: {error}");
        let last = link.poll_output(&mut buf);
        assert!(matches!(last, Output::Datagram | Output::Stream(LaneId(0))), "{last:?}");
        assert!(buf.windows(words.len()).any(|part| part == words.as_bytes()), "{words}: {buf:?}");
        assert_eq!(link.poll_output(&mut buf), Output::Closed(Closed::Violation(error)));
        assert_eq!(link.poll_output(&mut buf), Output::Done);
    }
}

#[test]
fn a_peer_that_breaks_a_rule_is_told_which() {
    use sametick_wire::Input;
    for carrier in [Carrier::Datagrams, Carrier::DatagramsAndStreams] {
        let mut pair = Pair::new(carrier, "rtt=50ms".parse().unwrap(), 1);
        pair.run_millis(1_000);
        let now = pair.now();
        let broken = pair.link(Side::A).handle(now, Input::Datagram(&[0])).unwrap_err();
        pair.run_millis(1_000);
        assert_eq!(pair.closed(Side::A), Some(&Closed::Violation(broken)));
        let reason = Reason { code: closing::THROWN_OUT, text: broken.rule().into() };
        assert_eq!(pair.closed(Side::B), Some(&Closed::There(reason)));
    }
}
