//! The rules for resuming a session after a restart, by example.

use std::mem::take;

use sametick_lockstep::message::{self, Claim, Join, Resume, ToPeer, ToRelay};
use sametick_lockstep::relay::{Found, Input, Output, Relay, RelayConfig};
use sametick_lockstep::session::{GIVING_US, MAX_BEHIND, Member, REPORTS_US, START_DELAY_US};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{SchemaHash, Seat, Tick, Time};
use sametick_wire::Channel;

use crate::den::{Den, join, key, live, rewind, welcomed};

#[test]
fn seated_players_are_waited_for_two_seconds_and_then_left() {
    let life = live(200);
    let mut den = life.restarted(200);
    den.now = Time::from_micros(50_000);
    let came = den.join(11, life.having(0, 190));
    assert!(came.messages.is_empty() && came.records.is_empty());
    let came = den.run_to(50_000 + REPORTS_US - 1);
    assert!(came.messages.is_empty() && came.records.is_empty());
    let came = den.run_to(50_000 + REPORTS_US);
    let (seat, first, _) = welcomed(&came, 11);
    assert_eq!((seat, first), (Some(Seat(0)), Tick(191)));
    assert_eq!(came.records, [rewind(190)]);
    let at = 50_000 + REPORTS_US + START_DELAY_US;
    assert!(den.run_to(at + 16_000).ticks.is_empty(), "not before the pause is over");
    let came = den.run_to(at + 17_000);
    let left = Record::Left { tick: Tick(191), seat: Seat(1), why: Leaving::TimedOut };
    assert_eq!((came.ticks, came.records), (vec![Tick(191)], vec![left]));
    // The seat is held for a peer with a claim to it.
    let came = den.join(12, life.having(1, 195));
    assert_eq!(welcomed(&came, 12).0, Some(Seat(1)));
    assert_eq!(welcomed(&came, 12).1, Tick(191), "what it has beyond is void");
}

#[test]
fn with_all_players_back_the_least_tick_is_resumed_at_once() {
    for (haves, log, to) in [([195, 200], 200, 195), ([200, 200], 200, 200), ([150, 150], 200, 150)] {
        let life = live(200);
        let mut den = life.restarted(log);
        assert!(den.join(11, life.having(0, haves[0])).messages.is_empty());
        let came = den.join(12, life.having(1, haves[1]));
        for (member, seat) in [(11, 0), (12, 1)] {
            let (at, first, claim) = welcomed(&came, member);
            assert_eq!((at, first), (Some(Seat(seat)), Tick(to + 1)));
            assert_eq!((claim.restarts, claim.from), (1, Tick(to)));
        }
        assert_eq!(came.records, [rewind(to)], "also where nothing is void: it marks the restart");
        let came = den.run_to(START_DELAY_US + 20_000);
        assert_eq!((came.ticks, came.records.len()), (vec![Tick(to + 1)], 0), "nobody was away");
    }
}

#[test]
fn a_peer_far_behind_does_not_drag_others_back() {
    let life = live(300);
    for (behind, to) in [(MAX_BEHIND, 300 - MAX_BEHIND), (MAX_BEHIND + 1, 300)] {
        let mut den = life.restarted(300);
        den.join(11, life.having(0, 300));
        let came = den.join(12, life.having(1, 300 - behind));
        assert_eq!(came.records, [rewind(to)]);
        assert_eq!(welcomed(&came, 12).0, Some(Seat(1)), "it has its seat all the same");
        assert_eq!(welcomed(&came, 11).1, Tick(to + 1));
    }
    // Alone and without any ticks, it causes no rewind either.
    let mut den = life.restarted(300);
    den.join(11, life.having(0, 0));
    assert_eq!(den.run_to(REPORTS_US).records, [rewind(300)]);
}

#[test]
fn ticks_that_the_relay_lost_are_given_by_peers() {
    let life = live(260);
    let mut den = life.restarted(200);
    den.join(11, life.having(0, 255));
    let mut came = den.join(12, life.having(1, 250));
    let ask = ToPeer::GiveTicks { from: Tick(201) };
    came.messages.sort_by_key(|(member, _)| *member);
    assert_eq!(came.messages, [(Member(11), ask.clone()), (Member(12), ask)]);
    assert!(den.give(11, &life.given(201, 255)).messages.is_empty(), "the other may say something else");
    let came = den.give(12, &life.given(201, 250));
    assert_eq!(came.ticks, (201..=250).map(Tick).collect::<Vec<_>>());
    assert_eq!(take(&mut den.ticks), life.ticks[200..250]);
    assert_eq!(came.records, [rewind(250)]);
    assert_eq!((welcomed(&came, 11).1, welcomed(&came, 12).1), (Tick(251), Tick(251)));
}

#[test]
fn ticks_that_no_peer_can_give_are_void() {
    let life = live(260);
    let nothing = ToRelay::Ticks { first: Tick(201), ticks: 0, table: vec![], bytes: vec![] };
    let wrong = |change: fn(&mut Tick, &mut u32, &mut Vec<u8>, &mut Vec<u8>)| {
        let mut given = life.given(201, 255);
        if let ToRelay::Ticks { first, ticks, table, bytes } = &mut given {
            change(first, ticks, table, bytes);
        }
        given
    };
    let answers = [
        nothing,
        wrong(|_, _, _, bytes| bytes.truncate(3)),
        wrong(|_, _, table, _| table.clear()),
        wrong(|first, _, _, _| *first = Tick(u32::MAX)),
        wrong(|first, _, _, _| *first = Tick(202)),
        life.given(1, 200),
    ];
    for answer in answers {
        let mut den = life.restarted(200);
        den.join(11, life.having(0, 255));
        den.join(12, life.having(1, 255));
        den.give(11, &answer);
        let came = den.give(12, &answer);
        assert_eq!((came.ticks.len(), &came.records[..]), (0, &[rewind(200)][..]), "{answer:?}");
        assert_eq!(welcomed(&came, 11).1, Tick(201));
    }
    // Silence is not waited for.
    let mut den = life.restarted(200);
    den.join(11, life.having(0, 255));
    den.join(12, life.having(1, 255));
    assert!(den.run_to(GIVING_US - 1).records.is_empty());
    assert_eq!(den.run_to(GIVING_US).records, [rewind(200)]);
    // A peer that sends too much is closed.
    let mut den = life.restarted(200);
    den.join(11, life.having(0, 255));
    den.join(12, life.having(1, 255));
    let came = den.give(11, &wrong(|_, ticks, _, _| *ticks = u32::MAX));
    assert_eq!(came.closed, [Member(11)]);
    let came = den.give(12, &wrong(|_, _, _, bytes| *bytes = vec![0; 1 << 20]));
    assert_eq!(came.closed, [Member(12)]);
}

#[test]
fn a_stranger_who_joins_first_does_not_end_the_wait() {
    let life = live(200);
    let forged = Claim { seat: Some(Seat(1)), ..life.claims[0] };
    for resume in [None, Some(Resume { claim: forged, have: Tick(120) })] {
        let mut den = life.restarted(200);
        assert!(den.join(11, resume).is_nothing());
        den.run_to(REPORTS_US - 1);
        den.join(12, life.having(0, 190));
        let came = den.join(13, life.having(1, 195));
        assert_eq!(came.records[0], rewind(190));
        let seats = [12, 13].map(|member| welcomed(&came, member).0);
        assert_eq!(seats, [Some(Seat(0)), Some(Seat(1))]);
        // No player comes: the stranger waits until the reports' time-out and not longer.
        let mut den = life.restarted(200);
        assert!(den.join(11, resume).is_nothing() && den.run_to(REPORTS_US - 1).is_nothing());
        let came = den.run_to(REPORTS_US);
        assert_eq!(came.records[0], rewind(200));
        let came = came.and(den.run_to(REPORTS_US + START_DELAY_US + 20_000));
        assert_eq!(came.left(), [(Tick(201), Seat(0)), (Tick(201), Seat(1))]);
    }
}

#[test]
fn absurd_reports_change_nothing() {
    let life = live(200);
    let mut den = life.restarted(200);
    den.join(11, life.having(0, u32::MAX));
    let came = den.join(12, life.having(1, 180));
    assert_eq!(came.records, [rewind(180)]);
    assert_eq!(welcomed(&came, 11).1, Tick(1), "nobody believes that");
}

#[test]
fn joins_wait_while_a_session_is_looked_up() {
    let config = RelayConfig { finds: true, ..RelayConfig::default() };
    let mut den = Den::new(None);
    den.relay = Relay::new(config);
    let schema = SchemaHash::from_bytes([3; SchemaHash::LEN]);
    den.relay.handle(den.now, Input::Opened(Member(1), key(), schema));
    let join = Join { resume: live(1).having(0, 1), ..join(1) };
    let bytes = message::to_bytes(&ToRelay::Join(join));
    den.relay.handle(den.now, Input::Message(Member(1), Channel::Control, &bytes));
    assert_eq!(den.relay.poll_output(&mut vec![]), Output::Find(key()));
    assert_eq!(den.relay.poll_output(&mut vec![]), Output::Wait);
    // A second join is a violation; and a peer that has left is not waited for.
    den.relay.handle(den.now, Input::Message(Member(1), Channel::Control, &bytes));
    assert!(matches!(den.relay.poll_output(&mut vec![]), Output::Close(Member(1), _)));
    den.relay.handle(den.now, Input::Found(key(), Found::New { uid: 5 }));
    assert_eq!((den.relay.poll_output(&mut vec![]), den.relay.sessions().count()), (Output::Wait, 0));
}
