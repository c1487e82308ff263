//! The lobby: what each member may do before a game (B7).

use sametick_session::message::{Closing, Ending, Event, Parting, Phase, Refusal, Request};
use sametick_session::session::{IDLE_US, Input, RESULTS_US, UNCLAIMED_US};
use sametick_session::settings::Difficulty;

use crate::stage::{ADA, BOB, EVE, MINUTE, SECOND, Stage, bridge, line, name, pong, settings};

#[test]
fn a_session_without_members_closes_after_half_a_minute() {
    let mut stage = Stage::new(pong(), 1, None);
    stage.wait(UNCLAIMED_US - 1);
    assert_eq!(stage.over, None);
    stage.wait(1);
    assert_eq!(stage.over, Some(Ending::Unclaimed));
    assert_eq!((stage.wake_at, stage.session.phase()), (None, Phase::Closed));
    assert_eq!(stage.reserve(ADA, None, None), Err(Refusal::Over));
}

#[test]
fn the_first_member_is_the_creator_and_the_next_inherits() {
    let mut stage = Stage::new(pong(), 1, None);
    let (ada, bob, eve) = (stage.join(ADA), stage.join(BOB), stage.join(EVE));
    assert_eq!(stage.views[&eve].creator, Some(ADA));
    assert_eq!(stage.say(bob, Request::Start {}), Err(Refusal::NotCreator));
    assert_eq!(stage.say(bob, Request::Kick { player: EVE, ban: true }), Err(Refusal::NotCreator));
    // Bob is cut off when the session is handed over: Eve is there.
    stage.handle(Input::Cut(bob));
    stage.say(ada, Request::Leave {}).unwrap();
    assert_eq!(stage.closing_of(ada), Some(Closing::Left));
    assert_eq!(stage.views[&eve].creator, Some(EVE));
    let left = Event::Left { player: ADA, why: Parting::Left };
    assert!(stage.heard.contains(&(eve, left)));
    stage.say(eve, Request::Leave {}).unwrap();
    assert_eq!(stage.session.view().creator, Some(BOB), "better one who is away than none");
}

#[test]
fn seats_are_first_come_first_served() {
    let mut stage = Stage::new(bridge(), 2, None);
    let (ada, bob) = (stage.join(ADA), stage.join(BOB));
    assert_eq!(stage.take(ada, 3), Ok(()));
    assert_eq!(stage.take(bob, 3), Err(Refusal::SeatTaken));
    assert_eq!(stage.take(bob, 12), Err(Refusal::NoSuchSeat), "the third ship takes no part");
    assert_eq!(stage.take(ada, 3), Ok(()), "again is the same");
    assert_eq!(stage.take(ada, 7), Ok(()), "ships may be changed before the game");
    assert_eq!(stage.take(bob, 3), Ok(()));
    // A seat that a ticket is for is held.
    let ticket = stage.reserve(EVE, None, Some(0)).unwrap();
    assert_eq!(stage.take(bob, 0), Err(Refusal::SeatTaken));
    stage.wait(15 * SECOND);
    assert_eq!(stage.take(bob, 0), Ok(()), "for as long as the ticket is good");
    let eve = stage.arrive(ticket);
    assert_eq!(stage.closing_of(eve), Some(Closing::BadTicket));
}

#[test]
fn the_captain_is_the_first_on_the_ship_and_names_it() {
    let mut stage = Stage::new(bridge(), 2, None);
    let (ada, bob) = (stage.join(ADA), stage.join(BOB));
    assert_eq!(stage.say(ada, Request::Rename { name: name("Nowhere") }), Err(Refusal::NoSeat));
    stage.take(bob, 2).unwrap();
    stage.take(ada, 0).unwrap();
    assert_eq!(stage.say(ada, Request::Rename { name: name("Mine") }), Err(Refusal::NotCaptain));
    stage.take(bob, 3).unwrap();
    assert_eq!(stage.say(bob, Request::Rename { name: name("Artemis") }), Ok(()), "other console, same ship");
    assert_eq!(
        (&*stage.views[&ada].groups[0].name, stage.views[&ada].groups[0].captain),
        ("Artemis", Some(BOB))
    );
    stage.take(bob, 6).unwrap();
    assert_eq!(stage.views[&ada].groups[0].captain, Some(ADA));
    assert_eq!(stage.views[&ada].groups[1].captain, Some(BOB));
}

#[test]
fn the_creator_starts_a_game_once_every_manned_ship_is_ready() {
    let mut stage = Stage::new(bridge(), 8, None);
    let (ada, bob, eve) = (stage.join(ADA), stage.join(BOB), stage.join(EVE));
    assert_eq!(stage.say(ada, Request::Start {}), Err(Refusal::NotReady), "nobody sits anywhere");
    assert_eq!(stage.say(ada, Request::Ready { ready: true }), Err(Refusal::NoSeat));
    stage.get_ready(ada, 0);
    stage.take(eve, 1).unwrap();
    stage.take(bob, 6).unwrap();
    assert_eq!(stage.say(ada, Request::Start {}), Err(Refusal::NotReady), "nobody in the second ship is");
    stage.say(bob, Request::Ready { ready: true }).unwrap();
    stage.handle(Input::Cut(bob));
    assert_eq!(stage.say(ada, Request::Start {}), Err(Refusal::NotReady), "who is away is not ready");
    let bob = stage.resume(BOB).unwrap();
    stage.say(bob, Request::Ready { ready: true }).unwrap();
    assert_eq!(stage.say(bob, Request::Start {}), Err(Refusal::NotCreator));
    assert_eq!(stage.say(ada, Request::Start {}), Ok(()), "Eve is not ready, but Ada on her ship is");
    assert_eq!((stage.session.phase(), stage.game), (Phase::Running, Some(1)));
    assert_eq!(stage.manned.len(), 3);
    for wish in [Request::Start {}, Request::Ready { ready: true }, Request::Rename { name: name("x") }] {
        assert_eq!(stage.say(ada, wish), Err(Refusal::NotNow));
    }
}

#[test]
fn a_change_of_settings_before_the_game_clears_ready() {
    let mut stage = Stage::new(bridge(), 8, None);
    let (ada, bob) = (stage.join(ADA), stage.join(BOB));
    stage.get_ready(bob, 6);
    let mut wanted = settings(2);
    wanted.difficulty = Difficulty::new(11).unwrap();
    let change = |settings| Request::Settings { settings };
    assert_eq!(stage.say(bob, change(wanted.clone())), Err(Refusal::NotCreator));
    assert_eq!(stage.say(ada, change(wanted.clone())), Ok(()));
    assert_eq!((&stage.views[&bob].settings, stage.views[&bob].groups.len()), (&wanted, 2));
    assert!(!stage.views[&bob].people[1].ready);
    let mut other_game = wanted.clone();
    other_game.game = name("pong");
    for bad in [settings(0), settings(9), other_game] {
        assert_eq!(stage.say(ada, change(bad)), Err(Refusal::BadSettings));
    }
    assert_eq!(stage.say(ada, change(settings(1))), Err(Refusal::SeatTaken), "Bob sits in the second ship");
    assert!(Difficulty::new(0).is_none() && Difficulty::new(12).is_none());
}

#[test]
fn chat_reaches_all_and_a_flood_is_refused() {
    let mut stage = Stage::new(pong(), 1, None);
    let (ada, bob) = (stage.join(ADA), stage.join(BOB));
    let chat = || Request::Chat { line: line("hello  \u{202e}there") };
    assert_eq!(stage.say(ada, chat()), Ok(()));
    let said = Event::Chat { player: ADA, name: name("Ada"), line: line("hello there") };
    assert!(stage.heard.contains(&(ada, said.clone())) && stage.heard.contains(&(bob, said)));
    let taken = (0..100).filter(|_| stage.say(ada, chat()).is_ok()).count();
    assert_eq!(taken, 4);
    assert_eq!(stage.say(ada, chat()), Err(Refusal::TooFast));
    assert_eq!(stage.say(bob, chat()), Ok(()), "others are not held up");
    // A new connection does not reset the rate limit.
    stage.handle(Input::Cut(ada));
    let ada = stage.resume(ADA).unwrap();
    assert_eq!(stage.say(ada, chat()), Err(Refusal::TooFast));
    stage.wait(SECOND);
    assert_eq!(stage.say(ada, chat()), Ok(()));
}

#[test]
fn an_idle_lobby_closes_after_half_an_hour() {
    let mut stage = Stage::new(pong(), 1, None);
    let (ada, bob) = (stage.join(ADA), stage.join(BOB));
    stage.wait(29 * MINUTE);
    stage.say(bob, Request::Chat { line: line("anybody?") }).unwrap();
    stage.wait(IDLE_US - 1);
    assert_eq!(stage.over, None);
    // A refused request is no activity.
    assert!(stage.say(bob, Request::Start {}).is_err());
    stage.wait(1);
    assert_eq!(stage.over, Some(Ending::Idle));
    assert_eq!(stage.closing_of(ada), Some(Closing::Over(Ending::Idle)));
    assert_eq!(stage.resume(ADA), Err(Closing::Over(Ending::Idle)), "tokens die with the session");
}

#[test]
fn a_session_takes_as_many_players_as_it_has_seats() {
    let mut stage = Stage::new(pong(), 1, None);
    for player in 1..=3 {
        stage.join(sametick_wire::identity::PlayerId(player));
    }
    let fourth = sametick_wire::identity::PlayerId(4);
    let fifth = sametick_wire::identity::PlayerId(5);
    let ticket = stage.reserve(fourth, None, None).unwrap();
    assert_eq!(stage.reserve(fifth, None, None), Err(Refusal::Full), "a player with a ticket is on the way");
    assert_eq!(stage.reserve(fourth, None, None), Ok(ticket.clone()), "asked again is the same");
    stage.wait(15 * SECOND);
    assert!(stage.reserve(fifth, None, None).is_ok());
    let late = stage.arrive(ticket);
    assert_eq!(stage.closing_of(late), Some(Closing::BadTicket));
}

#[test]
fn two_players_with_one_name_are_told_apart() {
    let mut stage = Stage::new(pong(), 1, None);
    for player in [ADA, BOB, EVE] {
        let ask = stage.number();
        let reserve = sametick_session::session::Reserve {
            ask,
            player,
            name: name("ada"),
            password: None,
            seat: None,
            is_maker: false,
        };
        stage.handle(Input::Reserve(reserve));
        let ticket = stage.reserved.pop().unwrap().1.unwrap();
        stage.arrive(ticket);
    }
    let names: Vec<String> =
        stage.session.view().people.iter().map(|person| person.name.to_string()).collect();
    assert_eq!(names, ["ada", "ada 2", "ada 3"]);
}

#[test]
fn results_stay_five_minutes_and_a_rematch_keeps_seats() {
    let mut stage = Stage::new(pong(), 1, None);
    let (ada, bob) = (stage.join(ADA), stage.join(BOB));
    stage.get_ready(ada, 0);
    stage.get_ready(bob, 1);
    stage.say(ada, Request::Start {}).unwrap();
    assert_eq!(stage.say(ada, Request::Rematch {}), Err(Refusal::NotNow));
    stage.handle(Input::Ended("{\"won\":0}".into()));
    assert_eq!(stage.views[&bob].phase, Phase::Results);
    assert_eq!(stage.views[&bob].results.as_deref(), Some("{\"won\":0}"));
    assert_eq!(stage.take(bob, 2), Err(Refusal::NotNow));
    stage.wait(RESULTS_US - 1);
    assert_eq!(stage.say(bob, Request::Rematch {}), Err(Refusal::NotCreator));
    assert_eq!(stage.say(ada, Request::Rematch {}), Ok(()));
    assert_eq!((stage.views[&bob].phase, &stage.views[&bob].results), (Phase::Lobby, &None));
    assert_eq!((stage.seat_of(ADA), stage.seat_of(BOB)), (Some(0), Some(1)));
    assert_eq!(stage.say(ada, Request::Start {}), Err(Refusal::NotReady));
    stage.get_ready(ada, 0);
    stage.say(ada, Request::Start {}).unwrap();
    assert_eq!(stage.game, Some(2));
    stage.handle(Input::Ended(String::new()));
    stage.wait(RESULTS_US);
    assert_eq!(stage.over, Some(Ending::Finished));
    assert_eq!(stage.closing_of(bob), Some(Closing::Over(Ending::Finished)));
    assert_eq!(stage.session.view().people, []);
}
