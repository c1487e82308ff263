//! The relay's rules: which peers meet, which joins are refused, and which links are closed.

use sametick_lockstep::message::{self, Join, ToPeer, ToRelay, put_inputs};
use sametick_lockstep::relay::{Input, LINGER_US, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::Opaque;
use sametick_lockstep::session::{Member, START_DELAY_US, Session};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{BuildId, SchemaHash, Seat, Tick, Time};
use sametick_wire::Channel;

fn key(build: u8) -> SessionKey {
    SessionKey { build: BuildId::from_bytes([build; 16]), name: "den".into() }
}

/// A time after the first tick has begun.
fn at_ms(ms: u64) -> Time {
    Time::from_micros(START_DELAY_US + ms * 1_000)
}

fn session(relay: &Relay, build: u8) -> Option<&Session> {
    relay.find(&key(build)).and_then(|id| relay.session(id))
}

type Sent = (Member, Channel, Vec<u8>);

/// All messages and closed links of the relay's output now.
fn drain(relay: &mut Relay) -> (Vec<Sent>, Vec<Member>) {
    let (mut sent, mut closed, mut buf) = (vec![], vec![], vec![]);
    loop {
        match relay.poll_output(&mut buf) {
            Output::Send(to, channel) => sent.push((to, channel, buf.clone())),
            Output::Close(member, _) => closed.push(member),
            Output::WakeAt(_) | Output::Wait => return (sent, closed),
            _ => {}
        }
    }
}

fn opened(member: Member, key: SessionKey) -> Input<'static> {
    Input::Opened(member, key, SchemaHash::from_bytes([3; SchemaHash::LEN]))
}

fn asking(seats: u16) -> Join {
    Join {
        game: "any".into(),
        commit: "c0ffee".into(),
        setup: vec![7],
        seed: 7,
        rate: 60,
        seats,
        wait_for: 1,
        name: "ada".into(),
        watch: false,
        seat: None,
        listed: false,
        resume: None,
        bring: None,
    }
}

fn join(relay: &mut Relay, member: Member, key: SessionKey, seats: u16) -> ToPeer {
    join_as(relay, opened(member, key), member, asking(seats))
}

fn join_as(relay: &mut Relay, opened: Input<'_>, member: Member, join: Join) -> ToPeer {
    relay.handle(Time::ZERO, opened);
    let join = ToRelay::Join(join);
    relay.handle(Time::ZERO, Input::Message(member, Channel::Control, &message::to_bytes(&join)));
    let (sent, closed) = drain(relay);
    assert_eq!(closed, []);
    let answer = sent.iter().find(|(to, channel, _)| *to == member && *channel == Channel::Control);
    message::from_bytes(&answer.unwrap().2).unwrap()
}

#[test]
fn builds_never_meet() {
    let mut relay = Relay::new(RelayConfig::default());
    for (member, build) in [(1, 1), (2, 1), (3, 2)] {
        let welcome = join(&mut relay, Member(member), key(build), 4);
        assert!(matches!(welcome, ToPeer::Welcome { .. }), "{welcome:?}");
    }
    assert_eq!(session(&relay, 1).unwrap().members(), 2);
    assert_eq!(session(&relay, 2).unwrap().members(), 1);
    relay.handle(at_ms(17), Input::Timeout);
    let (sent, _) = drain(&mut relay);
    let ticks = |build: u64| {
        sent.iter().filter(|(to, channel, _)| *channel == Channel::Input && to.0 == build).count()
    };
    assert_eq!((ticks(1), ticks(2), ticks(3)), (1, 1, 1));
}

#[test]
fn a_peer_with_another_game_schema_or_rate_is_refused() {
    let mut relay = Relay::new(RelayConfig::default());
    join(&mut relay, Member(1), key(1), 4);
    let other_schema = Input::Opened(Member(2), key(1), SchemaHash::from_bytes([4; SchemaHash::LEN]));
    let cases = [
        (other_schema, asking(4), "another schema"),
        (opened(Member(2), key(1)), Join { game: "other".into(), ..asking(4) }, "another game"),
        (opened(Member(2), key(1)), Join { rate: 30, ..asking(4) }, "another tick rate"),
    ];
    for (opened, join, words) in cases {
        match join_as(&mut relay, opened, Member(2), join) {
            ToPeer::Refused { why } => assert!(why.contains(words), "{why}"),
            other => panic!("{words}: {other:?}"),
        }
    }
    assert_eq!(session(&relay, 1).unwrap().members(), 1);
}

#[test]
fn seats_are_given_lowest_first_and_a_full_session_says_so() {
    let mut relay = Relay::new(RelayConfig::default());
    for member in 0..2u16 {
        match join(&mut relay, Member(u64::from(member)), key(1), 2) {
            ToPeer::Welcome { seat, setup, .. } => assert_eq!((seat, setup), (Some(Seat(member)), vec![7])),
            other => panic!("{other:?}"),
        }
    }
    let refused = join(&mut relay, Member(9), key(1), 2);
    assert_eq!(refused, ToPeer::Refused { why: "the session is full".into() });
}

#[test]
fn a_peer_that_sends_garbage_is_closed_alone() {
    let mut relay = Relay::new(RelayConfig::default());
    (0..2).for_each(|member| {
        join(&mut relay, Member(member), key(1), 4);
    });
    for (channel, bytes) in [
        (Channel::Control, &b"\xff\xff"[..]),
        (Channel::Input, b""),
        (Channel::Chat, b"hello"),
        // An input for a tick further ahead than allowed.
        (Channel::Input, &{
            let mut out = vec![];
            put_inputs(&mut out, Tick(5_000), [&Opaque::EMPTY].into_iter());
            out
        }),
    ] {
        let stranger = Member(77);
        join(&mut relay, stranger, key(1), 4);
        relay.handle(Time::ZERO, Input::Message(stranger, channel, bytes));
        assert_eq!(drain(&mut relay).1, [stranger], "{channel:?} {bytes:?}");
    }
    assert_eq!(session(&relay, 1).unwrap().members(), 2);
}

#[test]
fn a_name_that_hides_letters_is_refused_by_its_rule() {
    let mut relay = Relay::new(RelayConfig::default());
    relay.handle(Time::ZERO, opened(Member(0), key(1)));
    let join = message::to_bytes(&ToRelay::Join(Join { name: "a\u{202e}b".into(), ..asking(4) }));
    relay.handle(Time::ZERO, Input::Message(Member(0), Channel::Control, &join));
    let mut buf = vec![];
    let Output::Close(_, why) = relay.poll_output(&mut buf) else { panic!("the link is closed") };
    assert_eq!(why, "a name has no control or direction characters");
}

#[test]
fn an_empty_session_waits_for_rejoins_and_is_then_forgotten() {
    let mut relay = Relay::new(RelayConfig::default());
    join(&mut relay, Member(0), key(1), 4);
    relay.handle(Time::ZERO, Input::Closed(Member(0), Leaving::Left));
    relay.handle(Time::from_micros(LINGER_US - 1), Input::Timeout);
    assert!(session(&relay, 1).is_some());
    relay.handle(Time::from_micros(LINGER_US), Input::Timeout);
    assert!(session(&relay, 1).is_none());
    assert_eq!(relay.sessions().count(), 0);
}

#[test]
fn a_late_input_is_an_omission_and_a_repeat_changes_nothing() {
    let mut relay = Relay::new(RelayConfig::default());
    join(&mut relay, Member(0), key(1), 4);
    let send = |relay: &mut Relay, now_ms: u64, tick: u32, byte: u8| {
        let mut out = vec![];
        put_inputs(&mut out, Tick(tick), [&Opaque::new(&[byte]).unwrap()].into_iter());
        relay.handle(at_ms(now_ms), Input::Message(Member(0), Channel::Input, &out));
    };
    send(&mut relay, 1, 2, 5);
    send(&mut relay, 2, 2, 9);
    for ms in [17, 34, 51] {
        relay.handle(at_ms(ms), Input::Timeout);
    }
    send(&mut relay, 52, 3, 1);
    let session = session(&relay, 1).unwrap();
    let mut seen = vec![];
    let excerpt = session.history().excerpt(Tick(1)).unwrap();
    excerpt.read(|_, rows| seen.push(rows.get(Seat(0)).unwrap().input)).unwrap();
    assert_eq!(seen, [None, Opaque::new(&[5]), None], "the first one to come counts");
    let arrivals = session.arrivals(Seat(0)).unwrap();
    assert_eq!(
        (arrivals.omissions, arrivals.late, arrivals.repeated),
        (1, 1, 1),
        "tick 1 was before the first"
    );
}

#[test]
fn a_session_can_wait_for_its_players() {
    let mut relay = Relay::new(RelayConfig::default());
    let mut welcomes = vec![];
    for member in 0..4 {
        relay.handle(Time::ZERO, opened(Member(member), key(1)));
        let join = message::to_bytes(&ToRelay::Join(Join { wait_for: 3, ..asking(4) }));
        relay.handle(Time::ZERO, Input::Message(Member(member), Channel::Control, &join));
        if member == 1 {
            // A player who leaves before it begins leaves no trace.
            relay.handle(Time::ZERO, Input::Closed(Member(1), Leaving::Left));
        }
        let (sent, _) = drain(&mut relay);
        let is_welcome =
            |(_, _, bytes): &&Sent| matches!(message::from_bytes(bytes), Ok(ToPeer::Welcome { .. }));
        welcomes.push(sent.iter().filter(is_welcome).count());
        relay.handle(Time::from_millis(member), Input::Timeout);
        assert_eq!(session(&relay, 1).unwrap().history().last(), Tick(0));
    }
    assert_eq!(welcomes, [0, 0, 0, 3], "all are welcomed together");
    relay.handle(Time::from_millis(4).plus_micros(START_DELAY_US + 16_667), Input::Timeout);
    let rows = session(&relay, 1).unwrap().rows(Tick(1)).unwrap().clone();
    let joined: Vec<u16> = rows.iter().filter(|row| row.joined).map(|row| row.seat.0).collect();
    assert_eq!(joined, [0, 1, 2]);
}

#[test]
fn a_kicked_peer_is_told_and_the_others_see_its_seat_left() {
    let mut relay = Relay::new(RelayConfig::default());
    (0..2).for_each(|member| {
        join(&mut relay, Member(member), key(1), 4);
    });
    relay.handle(at_ms(17), Input::Timeout);
    drain(&mut relay);
    relay.handle(at_ms(18), Input::Kick(Member(1), "enough"));
    let (mut buf, mut closed) = (vec![], vec![]);
    loop {
        match relay.poll_output(&mut buf) {
            Output::Close(member, why) => closed.push((member, why)),
            Output::WakeAt(_) => break,
            _ => {}
        }
    }
    assert_eq!(closed, [(Member(1), "enough")]);
    relay.handle(at_ms(34), Input::Timeout);
    let mut left = vec![];
    loop {
        match relay.poll_output(&mut buf) {
            Output::Record(_, Record::Left { tick, seat, why }) => left.push((tick, seat, why)),
            Output::WakeAt(_) => break,
            _ => {}
        }
    }
    assert_eq!(left, [(Tick(2), Seat(1), Leaving::Kicked)]);
    assert_eq!(session(&relay, 1).unwrap().members(), 1);
    // A removed peer's messages are ignored.
    relay.handle(at_ms(35), Input::Message(Member(1), Channel::Control, b"?"));
    assert_eq!(drain(&mut relay).1, [Member(1)]);
}

#[test]
fn repeated_resend_requests_are_rate_limited() {
    let mut relay = Relay::new(RelayConfig::default());
    join(&mut relay, Member(0), key(1), 4);
    relay.handle(at_ms(1_000), Input::Timeout);
    drain(&mut relay);
    let resend = message::to_bytes(&ToRelay::Resend { from: Tick(1) });
    let mut answers = 0;
    for ms in 0..500 {
        relay.handle(at_ms(1_000 + ms), Input::Message(Member(0), Channel::Control, &resend));
        answers += drain(&mut relay).0.iter().filter(|(_, channel, _)| *channel == Channel::Control).count();
    }
    assert!((4..=6).contains(&answers), "{answers} answers in half a second");
}
