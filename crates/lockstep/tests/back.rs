//! Resume: a peer with a valid claim gets its seat and its progress back, and no other peer does.

use postcard_schema::Schema;
use sametick_lockstep::message::{self, About, Claim, Join, Resume, ToPeer, ToRelay};
use sametick_lockstep::peer::{self, JoinAs, Peer, Status};
use sametick_lockstep::relay::{Input, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::Opaque;
use sametick_lockstep::session::{Member, START_DELAY_US};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{BuildId, Game, Inputs, SchemaHash, Seat, Tick, TickRate, Time};
use sametick_wire::Channel;
use sametick_wire::pacer::Path;
use serde::{Deserialize, Serialize};

/// The relay's output for one event.
#[derive(Default)]
struct Came {
    messages: Vec<(Member, ToPeer)>,
    closed: Vec<Member>,
    records: Vec<Record>,
}

struct Den {
    relay: Relay,
    now: Time,
}

impl Den {
    fn new(secret: u8) -> Den {
        let config = RelayConfig { secret: [secret; 32], ..RelayConfig::default() };
        Den { relay: Relay::new(config), now: Time::ZERO }
    }

    fn handle(&mut self, input: Input<'_>) -> Came {
        self.relay.handle(self.now, input);
        let (mut came, mut buf) = (Came::default(), vec![]);
        loop {
            match self.relay.poll_output(&mut buf) {
                Output::Send(to, Channel::Control) => {
                    came.messages.push((to, message::from_bytes(&buf).unwrap()));
                }
                Output::Close(member, _) => came.closed.push(member),
                Output::Record(_, record) => came.records.push(record),
                Output::WakeAt(_) | Output::Wait => return came,
                _ => {}
            }
        }
    }

    fn join(&mut self, member: u64, seat: Option<Seat>, resume: Option<Resume>) -> Came {
        let key = SessionKey { build: BuildId::from_bytes([1; 16]), name: "den".into() };
        self.handle(Input::Opened(Member(member), key, SchemaHash::from_bytes([3; SchemaHash::LEN])));
        let join = Join {
            game: "any".into(),
            commit: String::new(),
            setup: vec![],
            seed: 0,
            rate: 60,
            seats: 2,
            wait_for: 1,
            name: format!("p{member}"),
            watch: false,
            seat,
            listed: false,
            resume,
            bring: None,
        };
        let bytes = message::to_bytes(&ToRelay::Join(join));
        self.handle(Input::Message(Member(member), Channel::Control, &bytes))
    }

    fn hand_in(&mut self, member: u64, tick: u32) {
        let mut bytes = vec![];
        message::put_inputs(&mut bytes, Tick(tick), [Opaque::EMPTY].iter());
        self.handle(Input::Message(Member(member), Channel::Input, &bytes));
    }

    fn run_until_tick(&mut self, tick: u64) -> Came {
        self.now = Time::from_micros(START_DELAY_US + tick * 1_000_000 / 60 + 1);
        self.handle(Input::Timeout)
    }
}

/// Seat, first tick that follows, and claim of a welcomed member.
fn welcomed(came: &Came, member: u64) -> (Option<Seat>, Tick, Claim) {
    let welcome = came.messages.iter().find_map(|(to, message)| match message {
        ToPeer::Welcome { seat, first, claim, .. } if *to == Member(member) => Some((*seat, *first, *claim)),
        _ => None,
    });
    welcome.unwrap_or_else(|| panic!("{:?}", came.messages))
}

/// A session of two at tick 30, and the claim of the first.
fn two_at_tick_30(den: &mut Den) -> Claim {
    let (_, _, claim) = welcomed(&den.join(1, None, None), 1);
    den.join(2, None, None);
    den.run_until_tick(30);
    claim
}

fn having(claim: Claim, tick: u32) -> Option<Resume> {
    Some(Resume { claim, have: Tick(tick) })
}

#[test]
fn a_peer_back_before_its_old_link_times_out_never_left() {
    let mut den = Den::new(1);
    let claim = two_at_tick_30(&mut den);
    let came = den.join(3, Some(Seat(0)), having(claim, 20));
    let (seat, first, fresh) = welcomed(&came, 3);
    assert_eq!((seat, first), (Some(Seat(0)), Tick(21)));
    assert_eq!(came.closed, [Member(1)], "the dead link is closed");
    assert!(fresh != claim && fresh.run == claim.run, "a claim is good once");
    let sent_first = came.messages.iter().find_map(|(_, message)| match message {
        ToPeer::Ticks { first, .. } => Some(*first),
        _ => None,
    });
    assert!(sent_first.is_some_and(|first| first <= Tick(21)));
    let later = den.run_until_tick(31);
    assert!(came.records.is_empty() && later.records.is_empty(), "for the game nothing happened");
    // The end of the old link, noticed late, takes nothing away.
    let came = den.handle(Input::Closed(Member(1), Leaving::TimedOut));
    assert!(came.records.is_empty() && came.closed.is_empty());
    assert!(den.run_until_tick(32).records.is_empty());
}

#[test]
fn an_old_or_invented_claim_takes_no_seat() {
    let mut den = Den::new(1);
    let claim = two_at_tick_30(&mut den);
    den.join(3, Some(Seat(0)), having(claim, 20));
    den.hand_in(3, 31);
    let invented = Claim { token: [0; 16], ..claim };
    for (member, claim) in [(4, claim), (5, invented)] {
        let came = den.join(member, Some(Seat(0)), having(claim, 20));
        let refused = ToPeer::Refused { why: "the session is full".into() };
        assert_eq!(came.messages, [(Member(member), refused)]);
        assert!(came.closed.is_empty());
    }
}

#[test]
fn a_claim_is_valid_until_an_input_shows_the_next_arrived() {
    let mut den = Den::new(1);
    let claim = two_at_tick_30(&mut den);
    den.join(3, Some(Seat(0)), having(claim, 20));
    // That welcome was lost with its link, and so is the next one.
    for member in [4, 5] {
        let came = den.join(member, Some(Seat(0)), having(claim, 20));
        let (seat, first, _) = welcomed(&came, member);
        assert_eq!((seat, first), (Some(Seat(0)), Tick(21)));
        assert_eq!(came.closed, [Member(member - 1)]);
        assert!(came.records.is_empty());
    }
}

#[test]
fn an_overtaken_join_does_not_close_the_later_link() {
    let mut den = Den::new(1);
    let claim = two_at_tick_30(&mut den);
    den.join(4, Some(Seat(0)), having(claim, 20));
    let came = den.join(3, Some(Seat(0)), having(claim, 20));
    assert!(matches!(came.messages[..], [(Member(3), ToPeer::Refused { .. })]), "{:?}", came.messages);
    assert!(came.closed.is_empty());
}

#[test]
fn a_resuming_peer_gets_its_free_seat_or_another() {
    let mut den = Den::new(1);
    let claim = two_at_tick_30(&mut den);
    den.handle(Input::Closed(Member(1), Leaving::TimedOut));
    let left = den.run_until_tick(31);
    assert!(matches!(left.records[..], [Record::Left { seat: Seat(0), .. }]), "{:?}", left.records);
    let came = den.join(3, Some(Seat(0)), having(claim, 25));
    assert_eq!(welcomed(&came, 3).0, Some(Seat(0)));
    assert!(matches!(&came.records[..], [Record::Joined { seat: Seat(0), .. }]), "{:?}", came.records);
    // Another player has the seat when it comes back once more: it takes a free one.
    let (_, _, claim) = welcomed(&came, 3);
    for member in [2, 3] {
        den.handle(Input::Closed(Member(member), Leaving::TimedOut));
    }
    den.run_until_tick(32);
    den.join(4, Some(Seat(0)), None);
    let came = den.join(5, Some(Seat(0)), having(claim, 31));
    assert_eq!(welcomed(&came, 5).0, Some(Seat(1)));
}

#[test]
fn a_peer_back_within_the_same_tick_never_left() {
    let mut den = Den::new(1);
    let claim = two_at_tick_30(&mut den);
    den.handle(Input::Closed(Member(1), Leaving::Left));
    let came = den.join(3, Some(Seat(0)), having(claim, 30));
    assert_eq!(welcomed(&came, 3).0, Some(Seat(0)));
    assert!(den.run_until_tick(31).records.is_empty());
}

#[test]
fn a_peer_back_before_its_first_tick_joins_once() {
    let mut den = Den::new(1);
    two_at_tick_30(&mut den);
    den.handle(Input::Closed(Member(2), Leaving::Left));
    den.run_until_tick(31);
    let came = den.join(3, None, None);
    assert!(matches!(came.records[..], [Record::Joined { .. }]), "{:?}", came.records);
    let (seat, _, claim) = welcomed(&came, 3);
    let came = den.join(4, seat, having(claim, 0));
    assert_eq!(welcomed(&came, 4).0, seat);
    assert!(came.records.is_empty(), "{:?}", came.records);
}

#[test]
fn after_a_restart_with_a_new_secret_all_peers_begin_anew() {
    let claim = two_at_tick_30(&mut Den::new(1));
    let mut den = Den::new(2);
    den.join(1, None, None);
    den.run_until_tick(60);
    let (seat, first, fresh) = welcomed(&den.join(2, Some(Seat(0)), having(claim, 30)), 2);
    assert_eq!((seat, first), (Some(Seat(1)), Tick(1)));
    assert_ne!(fresh.run, claim.run);
}

#[test]
fn a_peer_with_an_impossible_tick_is_sent_all_ticks() {
    let mut den = Den::new(1);
    let claim = two_at_tick_30(&mut den);
    for (member, have) in [(3, 31), (4, 3_000), (5, u32::MAX)] {
        let came = den.join(member, Some(Seat(0)), having(claim, have));
        assert_eq!(welcomed(&came, member).1, Tick(1), "nobody has tick {have} yet");
    }
}

/// A game that only counts.
#[derive(Clone, Serialize, Deserialize, Schema)]
struct Count(u32);

impl Game for Count {
    const NAME: &'static str = "count";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([1; 16]);
    type Setup = ();
    type Input = u8;

    fn new((): &()) -> Count {
        Count(0)
    }

    fn step(&mut self, _: &Inputs<u8>) {
        self.0 += 1;
    }
}

/// The messages that a peer sends next.
fn said(peer: &mut Peer<Count>) -> Vec<ToRelay> {
    let (mut messages, mut buf) = (vec![], vec![]);
    while let peer::Output::Send(Channel::Control) = peer.poll_output(&mut buf) {
        messages.push(message::from_bytes(&buf).unwrap());
    }
    messages
}

#[test]
fn a_peer_refused_on_rejoin_does_not_play_on() {
    let join = JoinAs {
        setup: (),
        seed: 0,
        seats: 2,
        wait_for: 1,
        name: "p1".into(),
        commit: String::new(),
        watch: false,
        listed: false,
    };
    let mut peer = Peer::<Count>::new(Time::ZERO, &join, Path::default());
    let tell = |peer: &mut Peer<Count>, message: &ToPeer| {
        peer.handle(Time::ZERO, peer::Input::Message(Channel::Control, &message::to_bytes(message))).unwrap();
    };
    let claim = Claim {
        run: 1,
        member: 0,
        seat: None,
        since: Tick::ZERO,
        restarts: 0,
        from: Tick::ZERO,
        token: [1; 16],
    };
    let (seat, closed, first) = (Some(Seat(0)), Tick::ZERO, Tick(1));
    let welcome = ToPeer::Welcome {
        seat,
        closed,
        first,
        age_us: 0,
        setup: vec![],
        rate: 60,
        claim,
        save: None,
        about: About::default(),
    };
    tell(&mut peer, &welcome);
    said(&mut peer);
    assert_eq!(*peer.status(), Status::Playing);
    peer.rejoin(Time::ZERO, Path::default());
    let resume = Some(Resume { claim, have: Tick::ZERO });
    assert!(matches!(&said(&mut peer)[..], [ToRelay::Join(join)] if join.resume == resume));
    tell(&mut peer, &ToPeer::Refused { why: "the session is full".into() });
    assert!(said(&mut peer).is_empty());
    assert_eq!(*peer.status(), Status::Refused("the session is full".into()));
}

#[test]
fn every_member_gets_the_roster() {
    let mut den = Den::new(1);
    let names = |came: &Came, member: u64| -> Vec<String> {
        let roster = came.messages.iter().rev().find_map(|(to, message)| match message {
            ToPeer::Roster { players, spectators: 0 } if *to == Member(member) => Some(players.clone()),
            _ => None,
        });
        roster.unwrap().into_iter().map(|seated| format!("{} {}", seated.seat.0, seated.name)).collect()
    };
    den.join(1, None, None);
    let came = den.join(2, None, None);
    assert_eq!(names(&came, 1), ["0 p1", "1 p2"]);
    assert_eq!(names(&came, 2), ["0 p1", "1 p2"]);
    den.run_until_tick(2);
    let came = den.handle(Input::Closed(Member(1), Leaving::Left));
    assert_eq!(names(&came, 2), ["1 p2"]);
}
