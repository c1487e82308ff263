//! Every message survives a round trip, and its bytes do not change.

use alloc::string::ToString;
use alloc::vec;

use proptest::collection::vec as many;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::diagnostics::Diagnostics;

fn text() -> impl Strategy<Value = String> {
    "[a-zäß0-9 ]{0,20}"
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    many(any::<u8>(), 0..60)
}

fn seat() -> impl Strategy<Value = Option<Seat>> {
    option::of(any::<u16>().prop_map(Seat))
}

fn tick() -> impl Strategy<Value = Tick> {
    any::<u32>().prop_map(Tick)
}

fn hash() -> impl Strategy<Value = StateHash> {
    any::<u64>().prop_map(StateHash)
}

fn join() -> impl Strategy<Value = Join> {
    let texts = (text(), text(), text());
    let numbers = (any::<u64>(), any::<u16>(), any::<u16>(), any::<u16>(), any::<bool>());
    let back = (any::<bool>(), option::of((claim(), tick())), option::of((head(), any::<u64>())));
    (texts, numbers, bytes(), seat(), back).prop_map(|((game, commit, name), numbers, setup, seat, back)| {
        let (seed, rate, seats, wait_for, watch) = numbers;
        let (listed, resume) = (back.0, back.1.map(|(claim, have)| Resume { claim, have }));
        let bring = back.2.map(|(save, started_unix_ms)| Bring { save, started_unix_ms });
        Join { game, commit, setup, seed, rate, seats, wait_for, name, watch, seat, listed, resume, bring }
    })
}

fn about() -> impl Strategy<Value = About> {
    (any::<u64>(), any::<u16>(), any::<bool>(), text(), any::<u64>()).prop_map(
        |(seed, seats, listed, commit, started_unix_ms)| About {
            seed,
            seats,
            listed,
            commit,
            started_unix_ms,
        },
    )
}

fn claim() -> impl Strategy<Value = Claim> {
    (any::<u64>(), any::<u64>(), seat(), (tick(), any::<u32>(), tick()), any::<[u8; 16]>()).prop_map(
        |(run, member, seat, (since, restarts, from), token)| Claim {
            run,
            member,
            seat,
            since,
            restarts,
            from,
            token,
        },
    )
}

fn seated() -> impl Strategy<Value = Seated> {
    (any::<u16>().prop_map(Seat), text()).prop_map(|(seat, name)| Seated { seat, name })
}

fn difference() -> impl Strategy<Value = Difference> {
    let value = || option::of(text());
    (text(), value(), value()).prop_map(|(path, ours, theirs)| Difference { path, ours, theirs })
}

fn part() -> impl Strategy<Value = Part> {
    (text(), hash()).prop_map(|(path, hash)| Part { path, hash })
}

fn piece() -> impl Strategy<Value = Piece> {
    (tick(), any::<u32>(), bytes()).prop_map(|(tick, offset, bytes)| Piece { tick, offset, bytes })
}

fn head() -> impl Strategy<Value = SaveHead> {
    (tick(), hash(), any::<u32>(), bytes()).prop_map(|(tick, hash, bytes, table)| SaveHead {
        tick,
        hash,
        bytes,
        table,
    })
}

fn to_relay() -> impl Strategy<Value = ToRelay> {
    let state = (tick(), many(part(), 0..5), bytes());
    prop_oneof![
        join().prop_map(ToRelay::Join),
        tick().prop_map(|from| ToRelay::Resend { from }),
        (tick(), hash()).prop_map(|(tick, hash)| ToRelay::Check { tick, hash }),
        (tick(), many(hash(), 0..=MAX_HASHES)).prop_map(|(first, hashes)| ToRelay::Hashes { first, hashes }),
        state.prop_map(|(tick, parts, bytes)| ToRelay::State(StateAt { tick, parts, bytes })),
        (tick(), option::of(any::<u32>())).prop_map(|(tick, bytes)| ToRelay::Offer { tick, bytes }),
        piece().prop_map(ToRelay::Piece),
        (tick(), any::<u32>()).prop_map(|(tick, offset)| ToRelay::Want { tick, offset }),
        (tick(), any::<u32>(), bytes(), bytes()).prop_map(|(first, ticks, table, bytes)| ToRelay::Ticks {
            first,
            ticks,
            table,
            bytes
        }),
        (tick(), many(difference(), 0..5)).prop_map(|(tick, fields)| ToRelay::Resynced { tick, fields }),
    ]
}

fn to_peer() -> impl Strategy<Value = ToPeer> {
    let save = (option::of(head()), about());
    let welcome = (seat(), (tick(), tick()), any::<i64>(), bytes(), any::<u16>(), claim(), save);
    prop_oneof![
        welcome.prop_map(|(seat, (closed, first), age_us, setup, rate, claim, (save, about))| {
            ToPeer::Welcome { seat, closed, first, age_us, setup, rate, claim, save, about }
        }),
        tick().prop_map(|tick| ToPeer::GiveSave { tick }),
        (tick(), any::<u32>(), any::<u32>()).prop_map(|(tick, offset, bytes)| ToPeer::GivePiece {
            tick,
            offset,
            bytes
        }),
        piece().prop_map(ToPeer::Piece),
        head().prop_map(ToPeer::Load),
        tick().prop_map(|from| ToPeer::GiveTicks { from }),
        (many(seated(), 0..5), any::<u16>())
            .prop_map(|(players, spectators)| ToPeer::Roster { players, spectators }),
        text().prop_map(|why| ToPeer::Refused { why }),
        (tick(), any::<u32>(), bytes(), bytes()).prop_map(|(first, ticks, table, bytes)| ToPeer::Ticks {
            first,
            ticks,
            table,
            bytes
        }),
        (tick(), tick()).prop_map(|(from, to)| ToPeer::GiveHashes { from, to }),
        tick().prop_map(|tick| ToPeer::GiveState { tick }),
        (tick(), bytes()).prop_map(|(tick, state)| ToPeer::Resync { tick, state }),
    ]
}

proptest! {
    #[test]
    fn messages_to_the_relay_round_trip(message in to_relay()) {
        let bytes = to_bytes(&message);
        prop_assert_eq!(from_bytes(&bytes), Ok(message));
        let cut: Result<ToRelay, Malformed> = from_bytes(&bytes[..bytes.len() - 1]);
        prop_assert!(cut.is_err());
        let longer: Result<ToRelay, Malformed> = from_bytes(&[&bytes[..], &[0]].concat());
        prop_assert!(longer.is_err());
    }

    #[test]
    fn messages_to_a_peer_round_trip(message in to_peer()) {
        prop_assert_eq!(from_bytes(&to_bytes(&message)), Ok(message));
    }

    #[test]
    fn reports_round_trip(
        tick in tick(), least_slack_us: Option<i32>, omissions: u32, agreed in tick(), mismatches: u32, rtt: u32,
    ) {
        let pace = Pace { tick, least_slack_us, omissions, agreed, mismatches };
        prop_assert_eq!(from_bytes(&to_bytes(&pace)), Ok(pace));
        let diagnostics = Diagnostics { input_rtt_us: rtt, omissions, agreed, ..Diagnostics::default() };
        prop_assert_eq!(from_bytes(&to_bytes(&diagnostics)), Ok(diagnostics));
    }
}

/// docs/protocol.md has the bytes of every kind of message, compared by tests/protocol.rs; these are the first ones.
#[test]
fn golden_kinds() {
    let tick = Tick(300);
    let first_bytes = [
        to_bytes(&ToRelay::Resend { from: tick }),
        to_bytes(&ToRelay::Check { tick, hash: StateHash(5) }),
        to_bytes(&ToRelay::Hashes { first: tick, hashes: vec![StateHash(1)] }),
        to_bytes(&ToPeer::Refused { why: "full".to_string() }),
        to_bytes(&ToPeer::GiveHashes { from: Tick(1), to: tick }),
        to_bytes(&ToPeer::GiveState { tick }),
    ];
    let expected: [&[u8]; 6] = [
        &[1, 0xac, 2],
        &[2, 0xac, 2, 5],
        &[3, 0xac, 2, 1, 1],
        &[1, 4, b'f', b'u', b'l', b'l'],
        &[3, 1, 0xac, 2],
        &[4, 0xac, 2],
    ];
    assert_eq!(first_bytes, expected);
}

#[test]
fn long_lists_are_refused() {
    let hashes = |count| to_bytes(&ToRelay::Hashes { first: Tick(1), hashes: vec![StateHash(1); count] });
    assert!(from_bytes::<ToRelay>(&hashes(MAX_HASHES)).is_ok());
    assert_eq!(from_bytes::<ToRelay>(&hashes(MAX_HASHES + 1)), Err(sametick_wire::control::UNREADABLE));
    let part = Part { path: String::new(), hash: StateHash(1) };
    let state = |count| StateAt { tick: Tick(1), parts: vec![part.clone(); count], bytes: vec![] };
    assert!(from_bytes::<ToRelay>(&to_bytes(&ToRelay::State(state(MAX_PARTS)))).is_ok());
    assert!(from_bytes::<ToRelay>(&to_bytes(&ToRelay::State(state(MAX_PARTS + 1)))).is_err());
}
