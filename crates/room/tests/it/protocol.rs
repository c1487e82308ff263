//! The examples of room messages in docs/protocol.md match the code.

use std::fmt::Write;

use sametick_room::message::{
    Characters, Head, Join, PaceHead, Report, Seated, ToHost, ToView, Welcome, put_event, put_pace,
    put_update,
};
use sametick_sim::{Seat, Tick};
use sametick_wire::claims::Claim;
use sametick_wire::control::to_bytes;
use sametick_wire::identity::Token;

const DOCUMENT: &str = include_str!("../../../../docs/protocol.md");

#[track_caller]
fn documented(what: &str, bytes: &[u8]) {
    let mut line = format!("{what:9}");
    for byte in bytes {
        write!(line, " {byte:02x}").unwrap();
    }
    assert!(DOCUMENT.contains(&format!("{line}\n")), "docs/protocol.md lacks:\n{line}");
}

const CLAIM: Claim = Claim { run: 300, token: [9; 16] };

#[test]
fn control_messages() {
    let join = Join {
        game: "arena".into(),
        commit: "0123abc".into(),
        name: "ada".into(),
        setup: vec![7, 48, 3, 16],
        seed: 7,
        seats: 16,
        watch: false,
        listed: true,
        resume: None,
        token: Some(Token::from_bytes([7; 16])),
        must_resume: false,
    };
    documented("Enter", &to_bytes(&ToHost::Join(join)));
    let welcome =
        Welcome { seat: Some(Seat(1)), view: 1, tick: Tick(300), age_us: 9_000, claim: CLAIM, is_back: true };
    documented("Admitted", &to_bytes(&ToView::Welcome(welcome)));
    documented("Full", &to_bytes(&ToView::Refused { why: "the room is full".into(), bad_token: false }));
    let ada = Seated { seat: Seat(1), name: "ada".into() };
    documented("Everybody", &to_bytes(&ToView::Roster { seated: vec![ada.clone()] }));
    documented("Came", &to_bytes(&ToView::Came(ada)));
    documented("Went", &to_bytes(&ToView::Went(Seat(1))));
    documented("View", &to_bytes(&ToView::View(2)));
    documented("Switch", &to_bytes(&ToHost::Character("smith".into())));
    documented("Token", &to_bytes(&ToView::Token(Token::from_bytes([8; 16]))));
    let characters = Characters {
        active: "scout".into(),
        all: vec![("scout".into(), vec![1, 2, 0, 5]), ("smith".into(), vec![])],
    };
    documented("Cast", &to_bytes(&ToView::Characters(characters)));
    documented("Saved", &to_bytes(&ToView::Saved(Tick(301))));
    documented("Slowed", &to_bytes(&ToView::Pace(40)));
    documented("Event", &to_bytes(&ToView::Event { tick: Tick(301), bytes: vec![2, 1, 0] }));
}

#[test]
fn reports_and_updates() {
    let mut bytes = Vec::new();
    let (newest, mask) = (Some(300), 0b100_100);
    Report { newest, mask, clock_us: 10_000_000, tick: Tick(308), ago_us: 4_000, rtt: 3_125 }.put(&mut bytes);
    documented("Report", &bytes);
    let (mut update, mut events) = (Vec::new(), Vec::new());
    put_pace(&mut update, Some(&PaceHead { slack: Some(125), omissions: 2 }));
    put_event(&mut events, 1, &[0, 5]);
    let head = Head { tick: Tick(303), base: Some(Tick(300)), partial: false };
    put_update(&mut update, &head, &[0xde, 0x1a], &events);
    documented("Update", &update);
}
