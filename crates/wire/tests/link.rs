//! One link, with its caller and with a peer that breaks the rules, and what it sends on its own.

use sametick_sim::Time;
use sametick_wire::codec::{Reader, put_varint};
use sametick_wire::frame::{Frame, MAX_CLOSE_TEXT, put_chunk_head, put_message, put_ordered_head, put_ping};
use sametick_wire::link::KEEP_ALIVE_US;
use sametick_wire::packet::{Ack, Head, MAX_DATAGRAM, MAX_QUIC_DATAGRAM, Newest};
use sametick_wire::pair::{Pair, Side};
use sametick_wire::{
    Carrier, Channel, Closed, Delivery, Input, LaneId, Link, Malformed, Output, Reason, SendError,
};

const CARRIERS: [Carrier; 3] = [Carrier::Datagrams, Carrier::DatagramsAndStreams, Carrier::Stream];

/// All outputs of a link at this moment, with their bytes. Ends with `WakeAt` or `Done`.
fn drain(link: &mut Link) -> Vec<(Output, Vec<u8>)> {
    let mut outputs = vec![];
    loop {
        let mut buf = vec![];
        let output = link.poll_output(&mut buf);
        let is_last = matches!(output, Output::WakeAt(_) | Output::Done);
        outputs.push((output, buf));
        if is_last {
            return outputs;
        }
        assert!(outputs.len() < 10_000, "the link never comes to an end: {:?}", outputs.last());
    }
}

fn kinds(link: &mut Link) -> Vec<Output> {
    drain(link).into_iter().map(|(output, _)| output).collect()
}

fn datagrams(link: &mut Link) -> Vec<Vec<u8>> {
    drain(link)
        .into_iter()
        .filter(|(output, _)| *output == Output::Datagram)
        .map(|(_, bytes)| bytes)
        .collect()
}

/// A packet as a peer would send it.
fn packet(number: u16, ack: Option<Ack>, frames: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![];
    Head { number, ack }.put(&mut out);
    frames(&mut out);
    out
}

fn frames(packet: &[u8]) -> Vec<Frame<'_>> {
    let mut reader = Reader::new(packet);
    Head::read(&mut reader).unwrap();
    let mut frames = vec![];
    while !reader.is_empty() {
        frames.push(Frame::read(&mut reader).unwrap());
    }
    frames
}

#[test]
fn messages_that_are_too_long_are_not_taken() {
    for carrier in CARRIERS {
        for channel in Channel::ALL {
            let mut link = Link::new(Time::ZERO, carrier);
            let longest = vec![0; channel.max_message()];
            assert_eq!(link.send(Time::ZERO, channel, &longest), Ok(()), "{carrier:?} {channel:?}");
            let longer = vec![0; channel.max_message() + 1];
            assert_eq!(link.send(Time::ZERO, channel, &longer), Err(SendError::TooLong));
        }
    }
}

#[test]
fn a_full_queue_says_so_and_the_others_go_on() {
    let mut link = Link::new(Time::ZERO, Carrier::Datagrams);
    let longest = vec![0; Channel::Chunks.max_message()];
    assert_eq!(link.send(Time::ZERO, Channel::Chunks, &longest), Ok(()));
    assert_eq!(link.send(Time::ZERO, Channel::Chunks, &longest), Ok(()));
    assert_eq!(link.send(Time::ZERO, Channel::Chunks, b"one more"), Err(SendError::Full));
    assert_eq!(link.send(Time::ZERO, Channel::Control, b"another channel"), Ok(()));
    assert!(link.queued(Channel::Chunks) > 2 * longest.len());
    assert!(link.queued(Channel::Control) > 0 && !link.is_flushed());

    // On a stream inputs are not repeated, so they cannot be given up: the caller is told instead.
    let mut link = Link::new(Time::ZERO, Carrier::Stream);
    let taken = (0..1_000).take_while(|_| link.send(Time::ZERO, Channel::Input, &[0; 400]).is_ok()).count();
    assert!((100..200).contains(&taken), "{taken}");
    assert_eq!(link.send(Time::ZERO, Channel::Input, &[0; 400]), Err(SendError::Full));
    drain(&mut link);
    assert_eq!(link.send(Time::ZERO, Channel::Input, &[0; 400]), Ok(()));
}

#[test]
fn empty_messages_do_not_pile_up_without_limit() {
    let mut link = Link::new(Time::ZERO, Carrier::Stream);
    (0..1_000_000).for_each(|_| link.send(Time::ZERO, Channel::State, b"").unwrap());
    assert!(link.queued(Channel::State) <= 64 << 10);
}

#[test]
fn nothing_is_taken_after_a_close() {
    for carrier in CARRIERS {
        let mut pair = Pair::new(carrier, "rtt=50ms".parse().unwrap(), 1);
        pair.run_millis(1_000);
        pair.close(Side::A, 1, "over");
        for _ in 0..3 {
            for channel in Channel::ALL {
                let now = pair.now();
                assert_eq!(pair.link(Side::A).send(now, channel, b"too late"), Err(SendError::Closed));
            }
            pair.run_millis(1_000);
        }
        assert_eq!(pair.take(Side::B), []);
        assert_eq!(pair.closed(Side::A), Some(&Closed::Here));
        // A second close changes nothing.
        pair.close(Side::A, 2, "again");
        assert_eq!(kinds(pair.link(Side::A)), [Output::Done]);
        let now = pair.now();
        assert_eq!(pair.link(Side::B).send(now, Channel::Chat, b"hello?"), Err(SendError::Closed));
    }
}

/// The number of messages that a link hands out; the first one makes it close.
fn heard_by(link: &mut Link) -> usize {
    let (mut buf, mut heard) = (vec![], 0);
    loop {
        match link.poll_output(&mut buf) {
            Output::Message(_) => {
                heard += 1;
                link.close(Time::ZERO, 1, "enough");
            }
            Output::WakeAt(_) | Output::Done => return heard,
            _ => {}
        }
    }
}

#[test]
fn a_closed_link_hands_out_nothing() {
    for carrier in CARRIERS {
        for also_closes in [false, true] {
            let (mut near, mut far) = (Link::new(Time::ZERO, carrier), Link::new(Time::ZERO, carrier));
            (0..50).for_each(|_| far.send(Time::ZERO, Channel::Control, b"").unwrap());
            (0..5).for_each(|_| far.send(Time::ZERO, Channel::Input, b"x").unwrap());
            let mut packets = drain(&mut far);
            if also_closes {
                far.close(Time::ZERO, 0, "bye");
                packets.extend(drain(&mut far));
            }
            // All of it has arrived when the first message makes the application close the link.
            for (output, bytes) in &packets {
                match output {
                    Output::Datagram => near.handle(Time::ZERO, Input::Datagram(bytes)).unwrap(),
                    Output::Stream(lane) => near.handle(Time::ZERO, Input::Stream(*lane, bytes)).unwrap(),
                    _ => {}
                }
            }
            assert!(near.held() >= 50);
            assert_eq!((heard_by(&mut near), near.held()), (1, 0), "{carrier:?}");
        }
    }
}

#[test]
fn bytes_that_arrive_after_a_close_are_not_kept() {
    let (mut near, mut far) =
        (Link::new(Time::ZERO, Carrier::Datagrams), Link::new(Time::ZERO, Carrier::Datagrams));
    near.close(Time::ZERO, 1, "enough");
    let mut buf = vec![];
    assert_eq!(near.poll_output(&mut buf), Output::Datagram);
    for number in 0..100 {
        let now = Time::from_millis(number);
        far.send(now, Channel::Chunks, &[7; 5_000]).unwrap();
        while far.poll_output(&mut buf) == Output::Datagram {
            near.handle(now, Input::Datagram(&buf)).unwrap();
        }
        assert_eq!(near.held(), 0);
    }
}

#[test]
fn an_incomplete_message_takes_little_more_than_its_length() {
    let mut link = Link::new(Time::ZERO, Carrier::Stream);
    let mut bytes = vec![];
    put_chunk_head(&mut bytes, Channel::Chunks, 4_000);
    let mut held = 0;
    for number in 0..500 {
        let mut frame = bytes.clone();
        frame.resize(bytes.len() + 4_000, 0xff);
        if number == 0 {
            // The length of a message of 2 MiB and more.
            frame[bytes.len()..bytes.len() + 4].copy_from_slice(&[0xff, 0xff, 0xff, 0x01]);
        }
        link.handle(Time::ZERO, Input::Stream(LaneId(0), &frame)).unwrap();
        held += 4_000;
        assert_eq!(link.held(), held);
    }
    link.close(Time::ZERO, 1, "enough");
    assert_eq!(link.held(), 0);
}

#[test]
fn the_text_of_a_close_is_cut_between_characters() {
    for (text, expected) in [
        ("é".repeat(150), "é".repeat(100)),
        (format!("a{}", "é".repeat(150)), format!("a{}", "é".repeat(99))),
        ("🦀".repeat(51), "🦀".repeat(50)),
        ("x".repeat(MAX_CLOSE_TEXT), "x".repeat(MAX_CLOSE_TEXT)),
        (String::new(), String::new()),
    ] {
        let mut pair = Pair::new(Carrier::Datagrams, "rtt=50ms".parse().unwrap(), 1);
        pair.close(Side::A, 9, &text);
        pair.run_millis(1_000);
        assert_eq!(pair.closed(Side::B), Some(&Closed::There(Reason { code: 9, text: expected })));
    }
}

#[test]
fn acks_for_packets_that_were_never_sent_end_the_link() {
    const NEVER_SENT: Malformed = Malformed::Forbidden("only packets that were sent are acknowledged");
    let ack = |newest| Some(Ack { newest: Newest::Long(newest), delay: Some(0), missing: 0 });
    let mut link = Link::new(Time::ZERO, Carrier::Datagrams);
    let sent = datagrams(&mut link).len() as u16;
    assert_eq!(link.handle(Time::ZERO, Input::Datagram(&packet(0, ack(sent - 1), |_| {}))), Ok(()));
    let bad = packet(1, ack(sent), |_| {});
    assert_eq!(link.handle(Time::ZERO, Input::Datagram(&bad)), Err(NEVER_SENT));
    let closed = Output::Closed(Closed::Violation(NEVER_SENT));
    assert_eq!(kinds(&mut link), [Output::Datagram, closed, Output::Done]);
}

#[test]
fn messages_that_wait_together_share_a_datagram() {
    let mut link = Link::new(Time::ZERO, Carrier::Datagrams);
    datagrams(&mut link);
    for n in 0..5 {
        for channel in [Channel::State, Channel::Input, Channel::Control, Channel::Chat] {
            link.send(Time::ZERO, channel, &[n; 10]).unwrap();
        }
    }
    let sent = datagrams(&mut link);
    assert_eq!(sent.len(), 1);
    let frames = frames(&sent[0]);
    let messages = frames.iter().filter(|f| matches!(f, Frame::Message { .. })).count();
    let streams = frames.iter().filter(|f| matches!(f, Frame::Ordered { .. })).count();
    let inputs = frames.iter().find_map(|f| match f {
        Frame::Redundant(messages) => Some(messages.len()),
        _ => None,
    });
    assert_eq!((messages, streams, inputs), (5, 2, Some(5)));

    let mut link = Link::new(Time::ZERO, Carrier::Stream);
    (0..20).for_each(|n| link.send(Time::ZERO, Channel::State, &[n; 40]).unwrap());
    assert!(matches!(kinds(&mut link)[..], [Output::Stream(LaneId(0)), Output::WakeAt(_)]));
}

#[test]
fn no_datagram_is_longer_than_its_carrier_takes() {
    for (carrier, max) in
        [(Carrier::Datagrams, MAX_DATAGRAM), (Carrier::DatagramsAndStreams, MAX_QUIC_DATAGRAM)]
    {
        let mut link = Link::new(Time::ZERO, carrier);
        for n in 0..200usize {
            for channel in Channel::ALL {
                let len = channel.max_message().min(1_500) * (n % 7) / 6;
                link.send(Time::ZERO, channel, &vec![0; len]).unwrap();
            }
            for packet in datagrams(&mut link) {
                assert!(packet.len() <= max, "{carrier:?}: {}", packet.len());
            }
        }
        let long = packet(0, None, |out| (0..max).for_each(|_| out.extend([0x15, 0])));
        assert_eq!(link.handle(Time::ZERO, Input::Datagram(&long)), Err(Malformed::TooLong), "{carrier:?}");
    }
}

#[test]
fn inputs_given_up_during_an_outage_are_counted_on_both_ends() {
    for carrier in [Carrier::Datagrams, Carrier::DatagramsAndStreams] {
        let mut pair = Pair::new(carrier, "rtt=50ms".parse().unwrap(), 3);
        let play = |pair: &mut Pair, ticks: u32| {
            for _ in 0..ticks {
                pair.send(Side::A, Channel::Input, b"an input");
                pair.run_millis(16);
            }
        };
        play(&mut pair, 60);
        assert_eq!(pair.link(Side::A).stats().redundant_given_up, 0);
        pair.set_down(true);
        play(&mut pair, 300);
        pair.set_down(false);
        play(&mut pair, 60);
        pair.run_millis(1_000);
        let given_up = pair.link(Side::A).stats().redundant_given_up;
        let skipped = pair.link(Side::B).stats().redundant_skipped;
        let received = pair.take(Side::B).len() as u64;
        assert_eq!(received + skipped, 60 + 300 + 60, "{carrier:?}: each arrived or is missed");
        // Of those given up, the last before the outage have arrived, but their acks, due within 70 ms, have not.
        assert!(
            (1..=6).contains(&(given_up - skipped)),
            "{carrier:?}: {given_up} given up, {skipped} skipped"
        );
        assert!(
            (200..=300).contains(&skipped),
            "{carrier:?}: a block of inputs survives, not more: {skipped}"
        );
    }
}

#[test]
fn one_later_packet_triggers_the_resend_of_a_late_one() {
    let mut pair = Pair::new(Carrier::Datagrams, "rtt=50ms".parse().unwrap(), 3);
    pair.run_millis(900);
    pair.set_down(true);
    pair.send(Side::A, Channel::Control, b"lost");
    pair.set_down(false);
    pair.run_millis(5);
    pair.send(Side::A, Channel::State, b"later");
    pair.run_millis(300);
    assert_eq!(pair.take(Side::B).len(), 2);
}

#[test]
fn an_idle_link_sends_once_a_second() {
    for carrier in CARRIERS {
        let mut pair = Pair::new(carrier, "rtt=40ms".parse().unwrap(), 1);
        pair.run_millis(1_000);
        let (before, mut silent_ms, mut last) = (pair.link(Side::B).stats(), 0, 0);
        for _ in 0..60_000 / 10 {
            pair.run_millis(10);
            let received = pair.link(Side::B).stats().bytes_received;
            silent_ms = if received == last { silent_ms + 10 } else { 0 };
            last = received;
            assert!(silent_ms <= KEEP_ALIVE_US / 1_000 + 40, "{carrier:?}: silent for {silent_ms} ms");
        }
        // Each end sends a request and an answer once a second, and an answer can be an ack alone.
        let packets = pair.link(Side::B).stats().packets_received - before.packets_received;
        assert!(packets <= 2 * 60 + 2, "{carrier:?}: {packets} packets in a minute");
        let bytes = pair.link(Side::B).stats().bytes_received - before.bytes_received;
        assert!(bytes <= 60 * 20, "{carrier:?}: {bytes} bytes in a minute");
    }
}

#[test]
fn a_busy_stream_measures_its_round_trip() {
    let mut pair = Pair::new(Carrier::Stream, "rtt=80ms".parse().unwrap(), 1);
    for frame in 1..=180u64 {
        pair.send(Side::A, Channel::Input, b"input");
        pair.send(Side::B, Channel::State, b"state");
        pair.run_until(Time::from_micros(frame * 1_000_000 / 60));
    }
    for side in [Side::A, Side::B] {
        let rtt_us = pair.link(side).stats().rtt_us;
        assert!(rtt_us.is_some_and(|rtt_us| rtt_us.abs_diff(80_000) < 1_000), "{rtt_us:?}");
    }
}

#[test]
fn a_piece_beyond_the_stream_window_ends_the_link() {
    const WINDOW: u64 = 1 << 20;
    let piece = |number, offset| {
        packet(number, None, |out| {
            put_ordered_head(out, Channel::Chat, offset, 1);
            out.push(0);
        })
    };
    let mut link = Link::new(Time::ZERO, Carrier::Datagrams);
    assert_eq!(link.handle(Time::ZERO, Input::Datagram(&piece(0, WINDOW - 1))), Ok(()));
    let beyond = link.handle(Time::ZERO, Input::Datagram(&piece(1, WINDOW))).unwrap_err();
    assert!(beyond.rule().contains("at most 1 MiB beyond"), "{beyond}");
    let outputs = kinds(&mut link);
    assert_eq!(outputs, [Output::Datagram, Output::Closed(Closed::Violation(beyond)), Output::Done]);
}

/// A bad length is found when it is parsed, which may be long after its bytes came.
#[test]
fn a_bad_length_behind_a_good_message_ends_the_link_once() {
    let mut stream = vec![1, b'a'];
    put_varint(&mut stream, (Channel::Chat.max_message() + 1) as u64);
    let in_packet = packet(0, None, |out| {
        put_ordered_head(out, Channel::Chat, 0, stream.len());
        out.extend_from_slice(&stream);
    });
    let mut on_lane = vec![];
    put_chunk_head(&mut on_lane, Channel::Chat, stream.len());
    on_lane.extend_from_slice(&stream);
    for (carrier, input) in [
        (Carrier::Datagrams, Input::Datagram(&in_packet)),
        (Carrier::DatagramsAndStreams, Input::Stream(LaneId(1), &on_lane)),
        (Carrier::Stream, Input::Stream(LaneId(0), &on_lane)),
    ] {
        let mut link = Link::new(Time::ZERO, carrier);
        drain(&mut link);
        assert_eq!(link.handle(Time::ZERO, input), Ok(()));
        let closed = Output::Closed(Closed::Violation(Malformed::TooLong));
        let told = if carrier == Carrier::Datagrams { Output::Datagram } else { Output::Stream(LaneId(0)) };
        let outputs = [Output::Message(Channel::Chat), told, closed, Output::Done];
        assert_eq!(kinds(&mut link), outputs, "{carrier:?}");
        assert_eq!(kinds(&mut link), [Output::Done], "{carrier:?}");
    }
}

#[test]
fn a_peer_that_never_acknowledges_costs_bounded_memory() {
    let mut link = Link::new(Time::ZERO, Carrier::Datagrams);
    for number in 0..20_000u32 {
        let now = Time::from_millis(u64::from(number));
        link.handle(now, Input::Datagram(&packet(number as u16, None, |out| put_ping(out, 1)))).unwrap();
        drain(&mut link);
    }
    let stats = link.stats();
    assert!(stats.packets_sent >= 5_000, "it acknowledges what it gets");
    // The packets that are remembered may still be acknowledged.
    assert_eq!(stats.packets_sent - stats.packets_lost, 2_048);
}

#[test]
fn a_link_that_was_suspended_for_a_week_does_not_overflow() {
    for carrier in CARRIERS {
        let mut pair = Pair::new(carrier, "rtt=0ms".parse().unwrap(), 1);
        pair.send(Side::A, Channel::Chunks, &vec![7; 8 << 20]);
        pair.run_millis(20_000);
        assert!(pair.link(Side::A).is_flushed(), "{carrier:?}: the window has grown");
        let later = pair.now().plus_micros(7 * 86_400 * 1_000_000);
        pair.link(Side::A).send(later, Channel::Chunks, b"good morning").unwrap();
        assert!(drain(pair.link(Side::A)).len() > 1, "{carrier:?}");
        assert_eq!(pair.link(Side::A).handle(later, Input::Timeout), Ok(()));
        assert_eq!(kinds(pair.link(Side::A)), [Output::Closed(Closed::TimedOut), Output::Done]);
    }
}

#[test]
fn unreliable_messages_are_accepted_only_where_allowed() {
    const OWN_FRAME: Malformed = Malformed::Forbidden(
        "in packets, inputs are in a block and reliable messages go by streams if there are any",
    );
    const LANE: Malformed = Malformed::Forbidden("a stream carries messages, prompts and closes");
    let input = packet(0, None, |out| put_message(out, Channel::Input, b"not repeated"));
    let mut link = Link::new(Time::ZERO, Carrier::Datagrams);
    assert_eq!(link.handle(Time::ZERO, Input::Datagram(&input)), Err(OWN_FRAME));
    let mut state = vec![];
    put_message(&mut state, Channel::State, b"on a lane that is not for it");
    let mut link = Link::new(Time::ZERO, Carrier::DatagramsAndStreams);
    assert_eq!(link.handle(Time::ZERO, Input::Stream(LaneId(0), &state)), Err(LANE));
    let mut chat = vec![];
    put_chunk_head(&mut chat, Channel::Chat, 0);
    let mut link = Link::new(Time::ZERO, Carrier::DatagramsAndStreams);
    assert_eq!(link.handle(Time::ZERO, Input::Stream(LaneId(0), &chat)), Err(LANE));
    assert!(Channel::ALL.iter().filter(|channel| channel.delivery() == Delivery::Ordered).count() == 4);
}

#[test]
fn bulk_to_a_stalled_peer_stays_below_the_carriers_limit() {
    for carrier in [Carrier::DatagramsAndStreams, Carrier::Stream] {
        let mut now = Time::ZERO;
        let [mut sender, mut reader] = [Link::new(now, carrier), Link::new(now, carrier)];
        let mut buf = vec![];
        sender.send(now, Channel::Chunks, &vec![7; 12 << 20]).unwrap();
        let mut kept = 0;
        // Reads for two seconds, which lets the window grow to its limit, then no more.
        for ms in 0..9_000 {
            now = now.plus_micros(1_000);
            sender.handle(now, Input::Timeout).unwrap();
            loop {
                match sender.poll_output(&mut buf) {
                    Output::Stream(lane) if ms < 2_000 => {
                        reader.handle(now, Input::Stream(lane, &buf)).unwrap();
                    }
                    Output::Stream(_) => kept += buf.len(),
                    Output::WakeAt(_) => break,
                    _ => {}
                }
            }
            loop {
                match reader.poll_output(&mut buf) {
                    Output::Stream(lane) if ms < 2_000 => {
                        sender.handle(now, Input::Stream(lane, &buf)).unwrap();
                    }
                    Output::WakeAt(_) => break,
                    _ => {}
                }
            }
        }
        assert!((100_000..130 << 10).contains(&kept), "{carrier:?}: {kept}");
    }
}
