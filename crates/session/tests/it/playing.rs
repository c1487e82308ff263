//! While a game runs (B8): joining, switching consoles, autopilots.

use sametick_session::message::{Closing, Ending, Phase, Refusal, Request};
use sametick_session::session::{ABANDONED_US, Input, WINDOW_US};
use sametick_sim::Seat;

use crate::stage::{ADA, BOB, EVE, SECOND, Stage, bridge, under_way};

#[test]
fn consoles_may_be_switched_and_ships_may_not() {
    let (mut stage, ada, bob) = under_way(8);
    assert_eq!(stage.take(ada, 4), Ok(()));
    assert_eq!(stage.manned.keys().copied().collect::<Vec<_>>(), [Seat(4), Seat(6)]);
    assert_eq!(stage.take(ada, 7), Err(Refusal::OtherGroup));
    assert_eq!(stage.take(bob, 4), Err(Refusal::SeatTaken));
    // Standing up first is no way around it.
    stage.say(ada, Request::Stand {}).unwrap();
    assert_eq!(stage.manned.keys().copied().collect::<Vec<_>>(), [Seat(6)]);
    assert_eq!(stage.take(ada, 7), Err(Refusal::OtherGroup));
    assert_eq!(stage.take(ada, 5), Ok(()));
}

#[test]
fn a_player_may_join_while_the_game_runs() {
    let (mut stage, ada, _) = under_way(8);
    let eve = stage.join(EVE);
    assert_eq!((stage.views[&eve].phase, stage.seat_of(EVE)), (Phase::Running, None));
    assert_eq!(stage.take(eve, 0), Err(Refusal::SeatTaken));
    assert_eq!(stage.take(eve, 7), Ok(()));
    assert_eq!(stage.manned[&Seat(7)], EVE);
    assert_eq!(stage.take(eve, 1), Err(Refusal::OtherGroup), "from then on she is on that ship");
    // With a seat on the ticket.
    stage.say(eve, Request::Leave {}).unwrap();
    let ticket = stage.reserve(EVE, None, Some(1)).unwrap();
    assert!(!stage.manned.contains_key(&Seat(1)), "a ticket steers no ship");
    assert_eq!(stage.take(ada, 1), Err(Refusal::SeatTaken));
    stage.arrive(ticket);
    assert_eq!(stage.manned[&Seat(1)], EVE);
    assert_eq!(stage.reserve(sametick_wire::identity::PlayerId(9), None, Some(1)), Err(Refusal::SeatTaken));
}

#[test]
fn a_game_goes_on_for_a_while_without_players() {
    let (mut stage, ada, bob) = under_way(8);
    stage.say(bob, Request::Leave {}).unwrap();
    assert_eq!(
        stage.manned.keys().copied().collect::<Vec<_>>(),
        [Seat(0)],
        "an autopilot has the second ship"
    );
    assert_eq!(stage.session.phase(), Phase::Running);
    stage.handle(Input::Cut(ada));
    assert!(stage.manned.is_empty(), "at once: nobody is there");
    stage.wait(WINDOW_US);
    assert!(stage.players().is_empty());
    stage.wait(ABANDONED_US - SECOND);
    let eve = stage.join(EVE);
    assert_eq!(stage.views[&eve].creator, Some(EVE));
    stage.say(eve, Request::Leave {}).unwrap();
    stage.wait(ABANDONED_US);
    assert_eq!((stage.over, stage.game), (Some(Ending::Abandoned), None));
}

#[test]
fn a_crashed_game_resumes_until_its_third_crash_in_a_minute() {
    let (mut stage, ..) = under_way(8);
    stage.handle(Input::Crashed(1_000));
    stage.handle(Input::Crashed(1_030));
    assert_eq!((stage.session.phase(), stage.manned.len()), (Phase::Running, 2));
    stage.handle(Input::Crashed(1_075));
    assert_eq!(stage.session.phase(), Phase::Running, "the first was more than a minute before");
    stage.handle(Input::Crashed(1_076));
    assert_eq!((stage.over, stage.game), (Some(Ending::Quarantined), None));
    assert_eq!(stage.reserve(ADA, None, None), Err(Refusal::Quarantined), "players are told why");
}

#[test]
fn all_forty_eight_consoles_are_played() {
    let mut stage = Stage::new(bridge(), 8, None);
    let members: Vec<_> =
        (0..48).map(|player| stage.join(sametick_wire::identity::PlayerId(player))).collect();
    for (member, seat) in members.iter().zip(0..) {
        stage.get_ready(*member, seat);
    }
    assert_eq!(stage.reserve(sametick_wire::identity::PlayerId(99), None, None), Err(Refusal::Full));
    stage.say(members[0], Request::Start {}).unwrap();
    assert_eq!(stage.manned.len(), 48);
    for member in &members[6..] {
        stage.handle(Input::Cut(*member));
    }
    assert_eq!(stage.manned.len(), 6);
    stage.wait(WINDOW_US);
    assert_eq!(stage.players().len(), 6);
    stage.say(members[3], Request::Leave {}).unwrap();
    assert_eq!(stage.manned.len(), 5);
}

#[test]
fn a_removed_player_is_gone_from_the_game_in_any_state() {
    let (mut stage, ada, bob) = under_way(2);
    let eve = stage.join(EVE);
    stage.handle(Input::Cut(bob));
    assert_eq!(stage.guests.len(), 3, "links to the game may outlive others");
    stage.say(ada, Request::Kick { player: BOB, ban: true }).unwrap();
    assert!(!stage.guests.contains(&BOB), "was away");
    stage.say(ada, Request::Kick { player: EVE, ban: false }).unwrap();
    assert!(!stage.guests.contains(&EVE), "had no seat");
    assert_eq!(stage.closing_of(eve), Some(Closing::Kicked));
    stage.handle(Input::Cut(ada));
    stage.wait(WINDOW_US);
    assert!(stage.guests.is_empty(), "was released");
}
