//! Resuming (B9): tokens, time windows, and hosts that crash.

use sametick_session::message::{Closing, Ending, Event, Parting, Phase, Refusal, Request};
use sametick_session::session::{Damaged, GRACE_US, Input, Session, WINDOW_US};
use sametick_sim::Seat;
use sametick_wire::identity::Token;

use crate::stage::{ADA, BOB, EVE, MINUTE, SECOND, SECRET, Stage, bridge, line, under_way};

#[test]
fn a_disconnected_player_has_a_minute_and_keeps_the_seat() {
    let (mut stage, ada, bob) = under_way(2);
    stage.handle(Input::Cut(bob));
    let away = stage.views[&ada].people.iter().find(|person| person.player == BOB).unwrap();
    assert!(away.away && away.seat == Some(Seat(6)), "{away:?}");
    assert_eq!(stage.take(ada, 6), Err(Refusal::SeatTaken));
    stage.wait(WINDOW_US - 1);
    let back = stage.resume(BOB).unwrap();
    assert_eq!((stage.seat_of(BOB), stage.manned[&Seat(6)]), (Some(6), BOB));
    assert_eq!(stage.views[&back].phase, Phase::Running, "with the full state");
    stage.handle(Input::Cut(back));
    stage.wait(WINDOW_US);
    assert_eq!(stage.seat_of(BOB), None);
    assert!(stage.heard.contains(&(ada, Event::Left { player: BOB, why: Parting::Released })));
    assert_eq!(stage.resume(BOB), Err(Closing::BadToken));
}

#[test]
fn a_new_connection_replaces_one_that_seems_alive() {
    let (mut stage, ada, _) = under_way(2);
    let again = stage.resume(ADA).unwrap();
    assert_eq!(stage.closing_of(ada), Some(Closing::CameBack));
    assert_eq!(stage.manned[&Seat(0)], ADA, "for the game nothing has happened");
    // The end of the old connection changes nothing.
    stage.handle(Input::Cut(ada));
    assert_eq!(stage.session.player_of(again), Some(ADA));
    stage.wait(2 * WINDOW_US);
    assert_eq!(stage.seat_of(ADA), Some(0));
}

#[test]
fn an_old_token_is_good_until_the_new_one_has_arrived() {
    let (mut stage, ada, _) = under_way(2);
    let first = stage.tokens[&ADA];
    stage.handle(Input::Cut(ada));
    // The welcome is lost, several times.
    for _ in 0..10 {
        let back = stage.resume_with(ADA, first).unwrap();
        stage.handle(Input::Cut(back));
        stage.wait(20 * SECOND);
    }
    let back = stage.resume_with(ADA, first).unwrap();
    let newest = stage.tokens[&ADA];
    assert_ne!(newest, first);
    stage.say(back, Request::Chat { line: line("back") }).unwrap();
    stage.wait(GRACE_US - 1);
    let back = stage.resume_with(ADA, first).unwrap();
    stage.wait(1);
    assert_eq!(stage.resume_with(ADA, first), Err(Closing::BadToken), "ten seconds after the first word");
    assert_eq!(stage.session.player_of(back), Some(ADA), "who fails takes nobody's place");
    assert!(stage.resume_with(ADA, newest).is_ok());
}

#[test]
fn a_foreign_or_guessed_token_is_refused() {
    let (mut stage, ada, bob) = under_way(2);
    assert_eq!(stage.resume_with(EVE, stage.tokens[&ADA]), Err(Closing::BadToken));
    assert_eq!(stage.resume_with(BOB, stage.tokens[&ADA]), Err(Closing::BadToken));
    assert_eq!(stage.resume_with(ADA, Token::from_bytes([0; 16])), Err(Closing::BadToken));
    assert!(stage.session.player_of(ada).is_some() && stage.session.player_of(bob).is_some());
}

#[test]
fn a_token_dies_when_its_player_is_kicked_or_leaves() {
    let (mut stage, ada, bob) = under_way(2);
    stage.say(ada, Request::Kick { player: BOB, ban: false }).unwrap();
    assert_eq!(stage.closing_of(bob), Some(Closing::Kicked));
    assert_eq!(stage.resume(BOB), Err(Closing::BadToken));
    let old = stage.tokens[&BOB];
    let bob = stage.join(BOB);
    assert_eq!(stage.resume_with(BOB, old), Err(Closing::BadToken), "not even after coming again");
    stage.say(ada, Request::Kick { player: BOB, ban: true }).unwrap();
    assert_eq!(stage.closing_of(bob), Some(Closing::Banned));
    assert_eq!(stage.resume(BOB), Err(Closing::BadToken));
    assert_eq!(stage.reserve(BOB, None, None), Err(Refusal::Banned));
    assert_eq!(stage.say(ada, Request::Kick { player: ADA, ban: true }), Err(Refusal::NoSuchPlayer));
    assert_eq!(stage.say(ada, Request::Kick { player: EVE, ban: true }), Err(Refusal::NoSuchPlayer));
    // A ticket dies as well.
    let ticket = stage.reserve(EVE, None, None).unwrap();
    stage.say(ada, Request::Kick { player: EVE, ban: true }).unwrap();
    let eve = stage.arrive(ticket);
    assert_eq!(stage.closing_of(eve), Some(Closing::BadTicket));
    stage.say(ada, Request::Leave {}).unwrap();
    assert_eq!(stage.resume(ADA), Err(Closing::BadToken));
}

#[test]
fn after_a_crash_of_the_host_all_seats_are_held() {
    let (mut stage, ..) = under_way(2);
    stage.restart(5 * MINUTE, Some(1_000));
    assert_eq!((stage.session.phase(), stage.game, stage.manned.len()), (Phase::Running, Some(1), 0));
    assert!(stage.session.view().people.iter().all(|person| person.away));
    stage.wait(WINDOW_US - 1);
    let bob = stage.resume(BOB).unwrap();
    assert_eq!((stage.seat_of(BOB), stage.manned[&Seat(6)]), (Some(6), BOB));
    stage.wait(1);
    assert_eq!(stage.players(), [BOB]);
    assert_eq!(stage.views[&bob].creator, Some(BOB));
    // Tickets of the last incarnation are invalid, and bans hold.
    let eve = stage.join(EVE);
    stage.say(bob, Request::Kick { player: EVE, ban: true }).unwrap();
    assert_eq!(stage.closing_of(eve), Some(Closing::Banned));
    stage.restart(0, None);
    assert_eq!(stage.reserve(EVE, None, None), Err(Refusal::Banned));
    assert!(stage.resume(BOB).is_ok());
}

#[test]
fn old_crashes_of_the_host_do_not_stop_a_game() {
    let (mut stage, ..) = under_way(2);
    stage.restart(SECOND, Some(1_000));
    stage.restart(SECOND, Some(1_010));
    stage.resume(ADA).unwrap();
    stage.restart(SECOND, Some(1_020));
    assert_eq!(stage.over, Some(Ending::Quarantined));
    assert_eq!(stage.resume(ADA), Err(Closing::Over(Ending::Quarantined)));
    stage.restart(SECOND, Some(1_030));
    assert_eq!(stage.over, Some(Ending::Quarantined), "for good");
    assert_eq!(stage.reserve(ADA, None, None), Err(Refusal::Quarantined));
}

#[test]
fn nothing_is_told_that_a_crash_could_undo() {
    let mut stage = Stage::new(bridge(), 2, None);
    let ada = stage.join(ADA);
    stage.is_disk_slow = true;
    let seq = stage.number();
    stage.handle(Input::Say(ada, seq, Request::Take { seat: Seat(3) }));
    assert!(stage.answers.is_empty() && stage.views[&ada].people[0].seat.is_none());
    // More happens while the disk writes; members are not told of it with the first part.
    let next = stage.number();
    stage.handle(Input::Say(ada, next, Request::Ready { ready: true }));
    stage.store();
    assert_eq!(stage.answers, [(ada, seq, Ok(()))]);
    assert!(!stage.views[&ada].people[0].ready);
    stage.store();
    assert_eq!(stage.answers.len(), 2);
    assert!(stage.views[&ada].people[0].ready);
    stage.restart(0, None);
    stage.resume(ADA).unwrap();
    assert_eq!(stage.seat_of(ADA), Some(3));
}

#[test]
fn a_host_that_stops_in_order_keeps_its_sessions() {
    let (mut stage, ada, bob) = under_way(2);
    stage.handle(Input::Suspend);
    assert!(stage.is_suspended);
    assert_eq!(
        (stage.closing_of(ada), stage.closing_of(bob)),
        (Some(Closing::Suspended), Some(Closing::Suspended))
    );
    assert_eq!(stage.wake_at, None);
    for crash in 0..5 {
        stage.restart(crash * SECOND, None);
        assert_eq!(stage.session.phase(), Phase::Running, "that is no crash");
    }
    stage.resume(ADA).unwrap();
    assert_eq!(stage.seat_of(ADA), Some(0));
}

#[test]
fn a_damaged_file_is_refused() {
    let (stage, ..) = under_way(2);
    let disk = stage.disk.clone().unwrap();
    let restore =
        |bytes: &[u8]| Session::restore(stage.now, &SECRET, bytes, None).map(|session| session.view());
    assert!(restore(&disk).is_ok());
    for end in 0..disk.len() {
        assert_eq!(restore(&disk[..end]).err(), Some(Damaged::Bytes));
    }
    for at in 0..disk.len() {
        let mut bytes = disk.clone();
        bytes[at] ^= 1;
        assert_eq!(restore(&bytes).err(), Some(Damaged::Bytes));
    }
}
