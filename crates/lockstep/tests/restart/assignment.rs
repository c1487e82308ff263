//! Seat assignment: the driver decides player and seat of a link, overriding `Join`; by example and over random runs.

use std::collections::BTreeMap;

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::message::ToPeer;
use sametick_lockstep::relay::{Input, LINGER_US, Output};
use sametick_lockstep::session::{CAME_BACK, Member, Participant, REPORTS_US, SEAT_GIVEN, START_DELAY_US};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{Rng, SchemaHash, Seat, Tick, TickRate, Time};
use sametick_wire::identity::PlayerId;

use crate::den::{Came, Den, SEATS, find_welcome, key, live, welcomed};

const SCHEMA: SchemaHash = SchemaHash::from_bytes([3; SchemaHash::LEN]);
const TICK_US: u64 = 1_000_000 / 60;

fn assignment(player: u128, seat: Option<u16>) -> SeatAssignment {
    SeatAssignment {
        player: PlayerId(player),
        name: format!("player {player}"),
        seat: seat.map(Seat),
        game: "den".into(),
        rate: TickRate::hz(60),
        setup: vec![1, 2, 3],
        seed: 7,
        seats: SEATS,
        listed: true,
    }
}

/// Runs for this many ticks.
fn run(den: &mut Den, ticks: u64) -> Came {
    (0..ticks).fold(Came::default(), |came, _| {
        let at = den.now.as_micros() + TICK_US;
        came.and(den.run_to(at))
    })
}

/// A session with player 1 on seat 5 that has run for a while.
fn alone() -> Den {
    let mut den = Den::new(None);
    assert_eq!(welcomed(&den.join_on(1, assignment(1, Some(5)), None), 1).0, Some(Seat(5)));
    run(&mut den, 60);
    den
}

fn participants(den: &Den) -> Vec<(u64, Option<u128>, Option<u16>)> {
    let row = |it: Participant<'_>| (it.member.0, it.player.map(|it| it.0), it.seat.map(|seat| seat.0));
    den.relay.sessions().flat_map(|(_, session)| session.participants().map(row)).collect()
}

fn goings(came: &Came) -> Vec<String> {
    let line = |record: &Record| match record {
        Record::Joined { seat, name, .. } => Some(format!("{name} sits on {}", seat.0)),
        Record::Left { seat, why, .. } => Some(format!("{} is left: {why:?}", seat.0)),
        _ => None,
    };
    came.records.iter().filter_map(line).collect()
}

#[test]
fn the_assignment_overrides_the_join() {
    let mut den = Den::new(None);
    let came = den.join_on(1, assignment(1, Some(5)), None);
    assert_eq!(welcomed(&came, 1).0, Some(Seat(5)));
    assert_eq!(goings(&came), ["player 1 sits on 5"], "it begins with one");
    let facts = den.facts.clone().unwrap();
    assert_eq!((&*facts.game, facts.rate), ("den", TickRate::hz(60)));
    assert_eq!((facts.setup, facts.seed, facts.seats, facts.listed), (vec![1, 2, 3], 7, SEATS, true));
    let came = den.join_on(2, assignment(2, None), None);
    assert_eq!(welcomed(&came, 2).0, None, "watches");
    let came = den.join_on(3, assignment(3, Some(SEATS)), None);
    assert_eq!((came.refused(), came.closed), (vec![3], vec![]), "there is no such seat");
    assert_eq!(participants(&den), [(1, Some(1), Some(5)), (2, Some(2), None)]);
}

#[test]
fn the_same_player_over_another_link_was_never_away() {
    let mut den = alone();
    let came = den.join_on(2, assignment(1, Some(5)), None);
    assert_eq!((welcomed(&came, 2).0, came.closed), (Some(Seat(5)), vec![Member(1)]));
    assert!(run(&mut den, 3).records.is_empty());
    // Also when it is back within the tick in which the link was lost.
    den.leave(2);
    assert_eq!(welcomed(&den.join_on(3, assignment(1, Some(5)), None), 3).0, Some(Seat(5)));
    assert!(run(&mut den, 3).records.is_empty());
    // Later it joins again.
    den.leave(3);
    assert_eq!(goings(&run(&mut den, 60)), ["5 is left: TimedOut"]);
    assert_eq!(goings(&den.join_on(4, assignment(1, Some(5)), None)), ["player 1 sits on 5"]);
}

#[test]
fn a_claim_saves_ticks_and_the_assignment_gives_the_seat() {
    let mut den = Den::new(None);
    let (.., claim) = welcomed(&den.join_on(1, assignment(1, Some(5)), None), 1);
    run(&mut den, 60);
    let resume = |have| Some(sametick_lockstep::message::Resume { claim, have: Tick(have) });
    let came = den.join_on(2, assignment(1, Some(5)), resume(20));
    assert_eq!((welcomed(&came, 2).0, welcomed(&came, 2).1), (Some(Seat(5)), Tick(21)));
    let came = den.join_on(3, assignment(1, Some(0)), resume(30));
    assert_eq!((welcomed(&came, 3).0, welcomed(&came, 3).1), (Some(Seat(0)), Tick(31)), "another seat");
    assert_eq!(came.closed, [Member(2)]);
    let all = goings(&came).into_iter().chain(goings(&run(&mut den, 2)));
    assert_eq!(all.collect::<Vec<_>>(), ["player 1 sits on 0", "5 is left: Left"]);
    // A claim alone does not make a peer the player.
    let came = den.join(4, resume(20));
    assert_eq!((welcomed(&came, 4).0, &came.closed[..]), (Some(Seat(1)), &[][..]));
}

#[test]
fn a_seat_changes_player_once_the_game_has_seen_it_left() {
    let mut den = alone();
    let came = den.join_on(2, assignment(2, Some(5)), None);
    assert_eq!(came.closed, [Member(1)]);
    assert!(find_welcome(&came, 2).is_none() && came.refused().is_empty(), "waits for a tick");
    let came = run(&mut den, 1);
    assert_eq!(goings(&came), ["5 is left: Kicked", "player 2 sits on 5"]);
    assert_eq!(welcomed(&came, 2).0, Some(Seat(5)));
    let rows = run(&mut den, 1);
    assert!(rows.records.is_empty());
    let (before, after) = (&den.ticks[den.ticks.len() - 2], &den.ticks[den.ticks.len() - 1]);
    assert!(before.get(Seat(5)).unwrap().left && after.get(Seat(5)).unwrap().joined);
}

#[test]
fn an_overtaken_link_does_not_close_a_later_one() {
    let mut den = alone();
    den.join_on(9, assignment(1, Some(5)), None);
    for seat in [Some(5), Some(4), None] {
        let came = den.join_on(3, assignment(1, seat), None);
        let why = CAME_BACK.to_owned();
        assert_eq!(came.messages, [(Member(3), ToPeer::Refused { why })]);
        assert!(came.closed.is_empty());
    }
    let came = den.join_on(4, assignment(2, Some(5)), None);
    assert_eq!((came.refused(), came.closed.len()), (vec![4], 0));
}

#[test]
fn players_change_seats_with_each_other() {
    let mut den = alone();
    den.join_on(2, assignment(2, Some(6)), None);
    run(&mut den, 1);
    let came = den.join_on(3, assignment(1, Some(6)), None);
    assert_eq!(came.closed, [Member(1), Member(2)]);
    den.join_on(4, assignment(2, Some(5)), None);
    run(&mut den, 2);
    assert_eq!(participants(&den), [(3, Some(1), Some(6)), (4, Some(2), Some(5))]);
}

#[test]
fn an_assigned_session_goes_on_until_it_is_ended() {
    let mut den = alone();
    den.leave(1);
    let ticks = run(&mut den, 60 * (LINGER_US / 1_000_000 + 5)).ticks.len();
    assert!(ticks > 800, "{ticks}");
    den.join_on(2, assignment(1, Some(5)), None);
    den.handle(Input::Opened(Member(3), key(), SCHEMA));
    den.relay.handle(den.now, Input::End(key(), "enough"));
    let mut outputs = vec![];
    while !matches!(outputs.last(), Some(Output::Wait | Output::WakeAt(_))) {
        outputs.push(den.relay.poll_output(&mut vec![]));
    }
    let (two, three) = (Output::Close(Member(2), "enough"), Output::Close(Member(3), "enough"));
    let [.., first, second, Output::Ended(id), Output::Wait] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!((first, second), (&two, &three));
    assert!(den.relay.session(*id).is_some_and(|session| session.history().last() > Tick(800)));
    assert_eq!((den.relay.find(&key()), den.relay.sessions().count()), (None, 0));
    // Another session may have its name.
    let came = den.join_on(5, assignment(1, Some(0)), None);
    assert_eq!(welcomed(&came, 5).0, Some(Seat(0)));
    let ticks = run(&mut den, 60).ticks;
    assert!(ticks.windows(2).all(|pair| pair[1] == pair[0].next()) && ticks.len() > 40, "{ticks:?}");
}

#[test]
fn a_join_during_the_lookup_is_told_when_the_session_ends() {
    let mut den = Den::new(None);
    den.relay.handle(den.now, Input::Opened(Member(1), key(), SCHEMA));
    den.relay.handle(den.now, Input::End(key(), "enough"));
    assert_eq!(den.relay.poll_output(&mut vec![]), Output::Close(Member(1), "enough"));
    assert_eq!(den.relay.poll_output(&mut vec![]), Output::Wait);
}

#[test]
fn after_a_restart_an_assignment_needs_no_claim() {
    let life = live(200);
    let mut den = life.restarted(200);
    den.now = Time::from_micros(50_000);
    assert!(den.join_on(11, assignment(1, Some(0)), life.having(0, 190)).is_nothing());
    // The other player has lost its claim. No other player is waited for.
    let came = den.join_on(12, assignment(2, Some(1)), None);
    assert_eq!((welcomed(&came, 11).0, welcomed(&came, 11).1), (Some(Seat(0)), Tick(191)));
    assert_eq!((welcomed(&came, 12).0, welcomed(&came, 12).1), (Some(Seat(1)), Tick(1)));
    let later = run(&mut den, 60);
    assert!(goings(&came).is_empty() && goings(&later).is_empty() && later.ticks.len() > 30);
    // A player whose assignment changed last moment gets the assigned seat.
    let mut den = life.restarted(200);
    den.join_on(11, assignment(1, Some(3)), life.having(0, 190));
    let came = den.run_to(REPORTS_US);
    assert_eq!(
        (welcomed(&came, 11).0, goings(&came)),
        (Some(Seat(3)), vec!["player 1 sits on 3".to_owned()])
    );
    let left = den.run_to(REPORTS_US + START_DELAY_US + 2 * TICK_US);
    assert_eq!(goings(&left), ["0 is left: TimedOut", "1 is left: TimedOut"]);
    // A player that joins twice waits once.
    let mut den = life.restarted(200);
    den.join_on(11, assignment(1, Some(0)), life.having(0, 190));
    let came = den.join_on(12, assignment(1, Some(0)), life.having(0, 190));
    assert_eq!(came.closed, [Member(11)]);
    let came = den.run_to(REPORTS_US);
    assert_eq!((welcomed(&came, 12).0, came.closed.len()), (Some(Seat(0)), 0));
}

/// Players join, change seats, disconnect and are kicked, with at most one player assigned to a seat. In any order,
/// every player has its last assigned seat over one link, and the game sees each seat taken and left in turn.
#[test]
fn every_player_has_its_last_assigned_seat() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut den = Den::new(None);
        let mut links: BTreeMap<u128, (u64, Option<u16>)> = BTreeMap::new();
        let mut next = 1;
        for _ in 0..200 {
            let player = 1 + u128::from(rng.below(5));
            match rng.below(10) {
                0..=4 => {
                    let free: Vec<u16> = (0..SEATS)
                        .filter(|seat| !links.iter().any(|(who, it)| *who != player && it.1 == Some(*seat)))
                        .collect();
                    let seat = rng.pick(&free).copied().filter(|_| rng.chance(5, 6));
                    den.join_on(next, assignment(player, seat), None);
                    links.insert(player, (next, seat));
                    next += 1;
                }
                5 => {
                    if let Some((link, _)) = links.remove(&player) {
                        den.leave(link);
                    }
                }
                6 => {
                    if let Some((link, _)) = links.remove(&player) {
                        let came = den.handle(Input::Kick(Member(link), SEAT_GIVEN));
                        assert_eq!(came.closed, [Member(link)]);
                    }
                }
                _ => drop(run(&mut den, rng.below(4))),
            }
        }
        run(&mut den, 2);
        let mut expected: Vec<_> =
            links.iter().map(|(player, (link, seat))| (*link, Some(*player), *seat)).collect();
        expected.sort_unstable();
        assert_eq!(participants(&den), expected, "seed {seed}");
        let mut taken = [false; SEATS as usize];
        for rows in &den.ticks {
            for row in rows {
                let taken = &mut taken[row.seat.index()];
                assert!(row.joined != *taken, "seed {seed}");
                *taken = !row.left;
            }
        }
        let is_taken = |seat: usize| links.values().any(|(_, it)| *it == Some(seat as u16));
        if !den.ticks.is_empty() {
            assert_eq!(taken, core::array::from_fn(is_taken), "seed {seed}");
        }
    }
}

#[test]
fn a_kicked_player_may_be_let_in_again() {
    let mut den = alone();
    den.handle(Input::Kick(Member(1), "out"));
    assert_eq!(goings(&run(&mut den, 1)), [format!("5 is left: {:?}", Leaving::Kicked)]);
    assert_eq!(welcomed(&den.join_on(2, assignment(1, Some(5)), None), 2).0, Some(Seat(5)));
}
