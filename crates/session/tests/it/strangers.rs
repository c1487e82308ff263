//! Access: passwords, tickets and connections that are refused, and what a refusal reveals.

use sametick_session::message::{Closing, Refusal, Request};
use sametick_session::password::Password;
use sametick_session::session::{Input, Output, Reserve};

use crate::stage::{ADA, BOB, EVE, SECOND, Stage, name, pong};

#[test]
fn a_wrong_password_looks_like_a_missing_session() {
    let mut stage = Stage::new(pong(), 1, Some("secret"));
    let ask = stage.number();
    let maker = Reserve { ask, player: ADA, name: name("Ada"), password: None, seat: None, is_maker: true };
    stage.handle(Input::Reserve(maker));
    let ticket = stage.reserved.pop().unwrap().1.unwrap();
    let ada = stage.arrive(ticket);
    for wrong in [None, Some("Secret"), Some("")] {
        assert_eq!(stage.reserve(EVE, wrong, None), Err(Refusal::NotFound));
    }
    assert!(stage.reserve(BOB, Some("secret"), None).is_ok());
    assert!(stage.reserve(ADA, None, None).is_ok(), "who is in needs none");
    // A banned player without the password learns nothing either.
    stage.say(ada, Request::Kick { player: BOB, ban: true }).unwrap();
    assert_eq!(stage.reserve(BOB, None, None), Err(Refusal::NotFound));
    assert_eq!(stage.reserve(BOB, Some("secret"), None), Err(Refusal::Banned));
    stage.say(ada, Request::Password { password: Password::new("other") }).unwrap();
    assert_eq!(stage.reserve(EVE, Some("secret"), None), Err(Refusal::NotFound));
    assert!(stage.reserve(EVE, Some("other"), None).is_ok());
    assert!(stage.views[&ada].locked);
    stage.say(ada, Request::Password { password: None }).unwrap();
    assert!(!stage.views[&ada].locked);
    assert!(stage.reserve(sametick_wire::identity::PlayerId(8), None, None).is_ok());
}

#[test]
fn guessing_is_rate_limited_and_its_memory_bounded() {
    let mut stage = Stage::new(pong(), 1, Some("secret"));
    let mut asked = 0;
    for ask in 0..10_000 {
        let password = Password::new(&format!("guess {ask}"));
        let reserve = Reserve { ask, player: EVE, name: name("Eve"), password, seat: None, is_maker: false };
        stage.session.handle(stage.now, Input::Reserve(reserve));
        while let output = stage.session.poll_output()
            && !matches!(output, Output::WakeAt(_))
        {
            asked += usize::from(matches!(output, Output::Weigh(..)));
        }
        assert!(stage.session.is_sound());
    }
    assert_eq!(asked, 8, "not more at once than are being weighed");
    stage.wait(SECOND);
    assert!(asked <= 8);
}

#[test]
fn a_ticket_is_good_once() {
    let mut stage = Stage::new(pong(), 1, None);
    let ticket = stage.reserve(ADA, None, None).unwrap();
    let ada = stage.arrive(ticket.clone());
    let again = stage.arrive(ticket.clone());
    assert_eq!((stage.closing_of(ada), stage.closing_of(again)), (None, Some(Closing::BadTicket)));
    // A second ticket does not make a second Ada.
    let second = stage.reserve(ADA, None, Some(3)).unwrap();
    assert_eq!(second.seat, None);
    let newer = stage.arrive(second);
    assert_eq!((stage.closing_of(ada), stage.closing_of(newer)), (Some(Closing::CameBack), None));
    assert_eq!(stage.players(), [ADA]);
    let other = stage.arrive(ticket);
    assert_eq!(stage.closing_of(other), Some(Closing::BadTicket));
}

#[test]
fn a_connection_of_no_member_is_ignored() {
    let mut stage = Stage::new(pong(), 1, None);
    let ada = stage.join(ADA);
    stage.handle(Input::Say(sametick_wire::Member(999), 1, Request::Leave {}));
    stage.handle(Input::Cut(sametick_wire::Member(999)));
    stage.handle(Input::Weighed(
        77,
        Password::new("x").unwrap().weigh_lightly(sametick_session::password::Salt([0; 16])),
    ));
    assert!(stage.answers.is_empty());
    assert_eq!(stage.session.player_of(ada), Some(ADA));
}
