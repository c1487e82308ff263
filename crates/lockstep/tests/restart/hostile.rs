//! Strangers, liars and crowds can hardly harm a session that is being resumed.

use sametick_lockstep::history::Excerpt;
use sametick_lockstep::message::{self, Claim, Join, Resume, ToPeer, ToRelay};
use sametick_lockstep::relay::{Found, Input, Output};
use sametick_lockstep::rows::Table;
use sametick_lockstep::session::{
    GIVING_US, JoinError, MAX_GIVEN_BYTES, MAX_MEMBERS, Member, REPORTS_US, START_DELAY_US,
};
use sametick_sim::{Rng, SchemaHash, Seat, Tick};
use sametick_wire::Channel;

use crate::den::{Came, Den, Life, find_welcome, join, key, live, live_with};

/// A claim with one field changed.
fn forge(rng: &mut Rng, claim: Claim) -> Claim {
    let mut forged = claim;
    match rng.below(7) {
        0 => forged.member = forged.member.wrapping_add(1 + rng.below(1_000)),
        1 => forged.seat = forged.seat.map(|seat| Seat(seat.0 ^ (1 + rng.below(65_535) as u16))),
        2 => forged.seat = None,
        3 => forged.since = Tick(forged.since.0 ^ (1 + rng.below(1_000) as u32)),
        4 => forged.restarts = forged.restarts.wrapping_add(1 + rng.below(u64::from(u32::MAX)) as u32),
        5 => forged.from = Tick(forged.from.0 ^ (1 + rng.below(1_000) as u32)),
        _ => forged.token[rng.below(16) as usize] ^= 1 << rng.below(8),
    }
    forged
}

#[test]
fn a_forged_claim_causes_no_rewind_and_takes_no_seat() {
    let life = live(300);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let claim = forge(&mut rng, life.claims[1]);
        let resume = Some(Resume { claim, have: Tick(rng.below(700) as u32) });
        let mut den = life.restarted(300);
        let came = den.join(11, resume);
        assert!(came.is_nothing(), "seed {seed}: {claim:?}");
        let came = den.join(12, life.having(0, 300)).and(den.run_to(REPORTS_US));
        assert_eq!(came.rewinds(), [Tick(300)], "seed {seed}: {claim:?}");
        assert!(came.asked().is_empty(), "seed {seed}: {claim:?}");
        let came = came.and(den.run_to(REPORTS_US + START_DELAY_US + 20_000));
        assert_eq!(came.left(), [(Tick(301), Seat(1))], "seed {seed}: the seated player has not come");
        let seat = find_welcome(&came, 11).and_then(|(seat, ..)| seat);
        assert!(seat.is_some() && seat != Some(Seat(0)) && seat != Some(Seat(1)), "seed {seed}: {seat:?}");
        // The seat is still held for its owner.
        let came = den.join(13, life.having(1, 280));
        assert_eq!(find_welcome(&came, 13).unwrap().0, Some(Seat(1)), "seed {seed}");
    }
}

#[test]
fn absurd_ticks_change_nothing_for_the_others() {
    let life = live_with(3, 400);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let absurd = match rng.below(3) {
            0 => 1_001 + rng.below(1_000) as u32,
            1 => u32::MAX - rng.below(200) as u32,
            _ => rng.between(1_001, i32::MAX) as u32,
        };
        let mut den = life.restarted(400);
        let mut came = den.join(11, life.having(0, absurd));
        came = came.and(den.join(12, life.having(1, 390))).and(den.join(13, life.having(2, 395)));
        assert_eq!((came.rewinds(), came.asked()), (vec![Tick(390)], vec![]), "seed {seed}: {absurd}");
        let firsts = [11, 12, 13].map(|member| find_welcome(&came, member).unwrap().1);
        assert_eq!(firsts, [Tick(1), Tick(391), Tick(391)], "seed {seed}: {absurd}");
    }
}

/// A peer's ticks with one field changed.
fn garble(rng: &mut Rng, given: &ToRelay) -> ToRelay {
    let mut garbled = given.clone();
    let ToRelay::Ticks { first, ticks, table, bytes } = &mut garbled else { panic!("{given:?}") };
    for _ in 0..1 + rng.below(3) {
        match rng.below(8) {
            0 => *first = Tick(rng.next_u64() as u32),
            1 => *first = Tick(first.0.wrapping_add_signed(rng.between(-5, 5))),
            2 => *ticks = rng.below(301) as u32,
            3 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
            4 => table.truncate(rng.below(table.len() as u64 + 1) as usize),
            5 => table.iter_mut().take(1 + rng.below(8) as usize).for_each(|byte| *byte ^= 1 << rng.below(8)),
            6 => (0..rng.below(50)).for_each(|_| bytes.push(rng.next_u64() as u8)),
            _ if !bytes.is_empty() => {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
            _ => {}
        }
    }
    garbled
}

/// Three peers come back to a relay that lacks ticks: the first gives drawn ticks, the other two the true ones.
fn with_a_liar(life: &Life, lie: &[ToRelay]) -> (Den, Came) {
    let mut den = life.restarted(300);
    let mut came = Came::default();
    for seat in 0..3 {
        came = came.and(den.join(11 + seat as u64, life.having(seat, 420)));
    }
    assert_eq!(came.asked(), [11, 12, 13]);
    for given in lie {
        came = came.and(den.give(11, given));
    }
    for member in [12, 13] {
        for given in life.given_all(301, 420) {
            came = came.and(den.give(member, &given));
        }
    }
    (den, came)
}

#[test]
fn one_liar_among_three_is_outvoted_whatever_it_says() {
    let life = live_with(3, 420);
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let lie: Vec<ToRelay> = life.given_all(301, 420).iter().map(|it| garble(&mut rng, it)).collect();
        let (mut den, mut came) = with_a_liar(&life, &lie);
        // A liar that gives too little is waited for.
        came = came.and(den.run_to(GIVING_US));
        assert_eq!(came.rewinds(), [Tick(420)], "seed {seed}");
        assert!(den.ticks[..120] == life.ticks[300..], "seed {seed}");
    }
}

#[test]
fn two_who_tell_the_same_lie_outvote_the_third() {
    // The relay cannot tell which peers lie: the majority's ticks are used, and the desync check shows who differs.
    let life = live_with(3, 420);
    let truth = life.given(301, 420);
    let mut rng = Rng::new(1);
    let (lie, believed) = loop {
        // Some garbled ticks can be read as others.
        let lie = garble(&mut rng, &truth);
        let mut den = life.restarted(300);
        (0..3).for_each(|seat| drop(den.join(11 + seat as u64, life.having(seat, 420))));
        den.give(12, &truth);
        den.give(11, &lie);
        let came = den.give(13, &lie);
        if came.rewinds() == [Tick(420)] && den.ticks[..120] != life.ticks[300..] {
            break (lie, (den, came));
        }
    };
    let (mut den, came) = believed;
    assert_ne!(lie, truth);
    let rows = den.ticks.clone();
    for member in [11, 12, 13] {
        assert_eq!(find_welcome(&came, member).unwrap().1, Tick(421));
    }
    // A later peer gets the same ticks.
    den.run_to(START_DELAY_US);
    let came = den.join_as(14, true, None);
    let mut sent = vec![];
    for (_, message) in came.messages {
        let ToPeer::Ticks { first, ticks, table, bytes } = message else { continue };
        let excerpt = Excerpt { first, ticks, start: Table::from_bytes(&table).unwrap(), bytes };
        excerpt.read(|_, rows| sent.push(rows.clone())).unwrap();
    }
    assert!(sent[300..420] == rows[..120]);
}

#[test]
fn garbled_ticks_of_the_only_giver_are_taken_all_or_none() {
    let life = live_with(1, 420);
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let given: Vec<ToRelay> = life.given_all(301, 420).iter().map(|it| garble(&mut rng, it)).collect();
        let mut den = life.restarted(300);
        let mut came = den.join(11, life.having(0, 420));
        assert_eq!(came.asked(), [11]);
        for given in &given {
            came = came.and(den.give(11, given));
        }
        came = came.and(den.run_to(GIVING_US));
        let to = came.rewinds();
        assert!(to == [Tick(300)] || to == [Tick(420)], "seed {seed}: {to:?}");
        // The session goes on in either case.
        let came = den.run_to(GIVING_US + START_DELAY_US + 40_000);
        assert!(!came.ticks.is_empty(), "seed {seed}");
    }
}

#[test]
fn a_peer_that_gives_too_many_ticks_is_closed() {
    let life = live(420);
    let mut den = life.restarted(300);
    den.join(11, life.having(0, 420));
    den.join(12, life.having(1, 420));
    let huge =
        ToRelay::Ticks { first: Tick(301), ticks: 1, table: vec![], bytes: vec![0; MAX_GIVEN_BYTES + 1] };
    assert_eq!(den.give(11, &huge).closed, [Member(11)]);
    // A peer that waits but was not asked, and a peer that is not connected.
    den.join_as(13, true, None);
    assert!(den.give(13, &life.given(301, 420)).is_nothing());
    assert!(den.give(14, &life.given(301, 420)).rewinds().is_empty());
    let came = den.give(12, &life.given(301, 420));
    assert_eq!(came.rewinds(), [Tick(420)], "the one who is left is heard");
    // Once the session goes on, given ticks are ignored.
    assert!(den.give(12, &life.given(301, 420)).is_nothing());
}

#[test]
fn givers_who_leave_are_not_waited_for() {
    let life = live(420);
    let mut den = life.restarted(300);
    den.join(11, life.having(0, 420));
    den.join(12, life.having(1, 420));
    den.leave(11);
    let came = den.give(12, &life.given(301, 420));
    assert_eq!(came.rewinds(), [Tick(420)]);
    // All givers leave.
    let mut den = life.restarted(300);
    den.join(11, life.having(0, 420));
    den.join(12, life.having(1, 420));
    den.join_as(13, true, None);
    den.leave(11);
    den.leave(12);
    let came = den.run_to(GIVING_US);
    assert_eq!(came.rewinds(), [Tick(300)], "for the one who watches");
}

#[test]
fn a_peer_that_says_anything_else_while_it_waits_is_closed() {
    let life = live(300);
    let messages = [
        ToRelay::Resend { from: Tick(1) },
        ToRelay::Check { tick: Tick(30), hash: sametick_sim::StateHash(1) },
        ToRelay::Want { tick: Tick(30), offset: 0 },
        ToRelay::Join(join(11)),
    ];
    for message in &messages {
        let mut den = life.restarted(300);
        den.join(11, life.having(0, 300));
        let bytes = message::to_bytes(message);
        let came = den.handle(Input::Message(Member(11), Channel::Control, &bytes));
        assert_eq!(came.closed, [Member(11)], "{message:?}");
    }
}

#[test]
fn no_more_peers_wait_than_can_be_members() {
    let life = live(300);
    let full = |came: &Came, member: u64| {
        let why = JoinError::Full.text();
        came.messages.contains(&(Member(member), ToPeer::Refused { why: why.into() }))
    };
    // While the session is looked up.
    let mut den = Den::new(None);
    let schema = SchemaHash::from_bytes([3; SchemaHash::LEN]);
    let (mut buf, mut found) = (vec![], 0);
    for member in 1..=MAX_MEMBERS as u64 + 1 {
        den.relay.handle(den.now, Input::Opened(Member(member), key(), schema));
        let bytes = message::to_bytes(&ToRelay::Join(Join { watch: true, ..join(member) }));
        den.relay.handle(den.now, Input::Message(Member(member), Channel::Control, &bytes));
        loop {
            match den.relay.poll_output(&mut buf) {
                Output::Find(_) => found += 1,
                Output::Send(to, _) => assert_eq!(to, Member(MAX_MEMBERS as u64 + 1)),
                Output::Wait | Output::WakeAt(_) => break,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(found, 1, "it is looked for once");
    let came = den.handle(Input::Found(key(), Found::New { uid: 5 }));
    assert!(came.refused().is_empty());
    // While the seated players are waited for.
    let mut den = life.restarted(300);
    for member in 0..MAX_MEMBERS as u64 {
        assert!(den.join_as(1_000 + member, true, None).is_nothing());
    }
    assert!(full(&den.join(5_000, None), 5_000));
    let came = den.join(5_001, life.having(0, 300));
    assert!(full(&came, 5_001), "also with a good claim: a crowd of spectators is not thrown out for it");
    let came = den.run_to(REPORTS_US);
    assert_eq!(came.rewinds(), [Tick(300)]);
    assert_eq!(
        (0..MAX_MEMBERS as u64).filter(|it| find_welcome(&came, 1_000 + it).is_some()).count(),
        MAX_MEMBERS
    );
}

#[test]
fn a_claim_that_joins_repeatedly_waits_once() {
    let life = live(300);
    let mut den = life.restarted(300);
    for member in 11..500 {
        let came = den.join(member, life.having(0, 290));
        let expected = if member == 11 { vec![] } else { vec![Member(member - 1)] };
        assert_eq!(came.closed, expected);
    }
    let came = den.join(500, life.having(1, 295));
    assert_eq!(came.rewinds(), [Tick(290)]);
    assert_eq!(find_welcome(&came, 499).unwrap().0, Some(Seat(0)));
}

/// Regression: the relay then checked such a session in an endless loop.
#[test]
fn a_peer_that_leaves_while_waiting_leaves_no_trace() {
    let life = live(300);
    let mut den = life.restarted(300);
    den.join(11, life.having(0, 290));
    den.leave(11);
    assert!(den.run_to(REPORTS_US + 1).is_nothing());
    // The next peer starts the two seconds anew.
    assert!(den.join(12, life.having(0, 290)).is_nothing());
    assert!(den.run_to(2 * REPORTS_US).is_nothing());
    assert_eq!(den.run_to(2 * REPORTS_US + 1).rewinds(), [Tick(290)]);
    // The same while lost ticks are asked for.
    let life = live_with(1, 420);
    let mut den = life.restarted(300);
    assert_eq!(den.join(11, life.having(0, 420)).asked(), [11]);
    den.leave(11);
    assert!(den.run_to(GIVING_US).is_nothing());
    assert_eq!(den.join(12, life.having(0, 420)).asked(), [12]);
    // No peer comes any more: the session is given up.
    den.leave(12);
    for second in 2..=13 {
        assert!(den.run_to(second * 1_000_000).is_nothing());
    }
    assert_eq!(den.relay.sessions().count(), 0);
}
