//! A session is taken up again after its relay was killed (L12): rule by rule, in virtual time.

use std::mem::take;

use postcard_schema::Schema;
use sametick_lockstep::history::History;
use sametick_lockstep::message::{self, Claim, Join, Resume, ToPeer, ToRelay, put_ticks, read_inputs};
use sametick_lockstep::peer::{self, JoinAs, Peer};
use sametick_lockstep::relay::{Found, Input, Kept, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_lockstep::session::{Facts, GIVING_US, MAX_BEHIND, Member, REPORTS_US, START_DELAY_US};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{BuildId, Game, Inputs, SchemaHash, Seat, Tick, TickRate, Time};
use sametick_wire::Channel;
use sametick_wire::pacer::Path;
use serde::{Deserialize, Serialize};

const UID: u64 = 77;

/// What came of something that happened to the relay.
#[derive(Default)]
struct Came {
    messages: Vec<(Member, ToPeer)>,
    closed: Vec<Member>,
    /// Records, and ticks as such without rows.
    records: Vec<Record>,
    ticks: Vec<Tick>,
}

struct Den {
    relay: Relay,
    now: Time,
    /// What is found, once it is looked for.
    found: Option<Kept>,
    facts: Option<Facts>,
    ticks: Vec<Inputs<Opaque>>,
}

impl Den {
    fn new(found: Option<Kept>) -> Den {
        let config = RelayConfig { secret: [1; 32], finds: true, ..RelayConfig::default() };
        Den { relay: Relay::new(config), now: Time::ZERO, found, facts: None, ticks: vec![] }
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
                Output::Find(key) => {
                    let kept = self.found.take().map(|kept| Found::Kept(Box::new(kept)));
                    let found = kept.unwrap_or(Found::New { uid: UID });
                    self.relay.handle(self.now, Input::Found(key, found));
                }
                Output::Begun(id) => self.facts = self.relay.session(id).map(|it| it.facts().clone()),
                Output::Closed(id, tick) => {
                    let rows = self.relay.session(id).and_then(|session| session.rows(tick));
                    self.ticks.push(rows.expect("the rows of a closed tick").clone());
                    came.ticks.push(tick);
                }
                Output::WakeAt(_) | Output::Wait => return came,
                _ => {}
            }
        }
    }

    fn join(&mut self, member: u64, resume: Option<Resume>) -> Came {
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
            seat: None,
            listed: false,
            resume,
        };
        let bytes = message::to_bytes(&ToRelay::Join(join));
        self.handle(Input::Message(Member(member), Channel::Control, &bytes))
    }

    fn give(&mut self, member: u64, ticks: &ToRelay) -> Came {
        self.handle(Input::Message(Member(member), Channel::Chunks, &message::to_bytes(ticks)))
    }

    fn run_to(&mut self, us: u64) -> Came {
        self.now = Time::from_micros(us);
        self.handle(Input::Timeout)
    }
}

/// A session of two that ran for some ticks: what it was, its ticks, and the claims of its players on seats 0 and 1.
struct Life {
    facts: Facts,
    ticks: Vec<Inputs<Opaque>>,
    claims: [Claim; 2],
}

fn live(ticks: u32) -> Life {
    let mut den = Den::new(None);
    let claims = [1, 2].map(|member| {
        let came = den.join(member, None);
        welcomed(&came, member).2
    });
    for tick in 1..=u64::from(ticks) {
        let (input, mut bytes) = (Opaque::new(&[tick as u8]).unwrap(), vec![]);
        message::put_inputs(&mut bytes, Tick(tick as u32), [input].iter());
        den.handle(Input::Message(Member(1), Channel::Input, &bytes));
        den.run_to(START_DELAY_US + tick * 1_000_000 / 60 + 1);
    }
    assert_eq!(den.ticks.len(), ticks as usize);
    Life { facts: den.facts.unwrap(), ticks: den.ticks, claims }
}

impl Life {
    /// A relay that is started again, with a log that has the ticks up to this one.
    fn restarted(&self, last: usize) -> Den {
        let mut kept = Kept::new(self.facts.clone(), UID, 0, None);
        self.ticks[..last].iter().for_each(|rows| kept.push(rows));
        Den::new(Some(kept))
    }

    fn having(&self, seat: usize, have: u32) -> Option<Resume> {
        Some(Resume { claim: self.claims[seat], have: Tick(have) })
    }

    /// The ticks up to this one as a peer gives them.
    fn given(&self, from: u32, to: usize) -> ToRelay {
        let mut history = History::default();
        self.ticks[..to].iter().for_each(|rows| history.push(rows));
        let excerpt = history.excerpt(Tick(from)).unwrap();
        let (first, ticks, table) = (excerpt.first, excerpt.ticks, excerpt.start.to_bytes());
        ToRelay::Ticks { first, ticks, table, bytes: excerpt.bytes }
    }
}

/// Seat, first tick that follows, and claim of whoever was welcomed.
fn find_welcome(came: &Came, member: u64) -> Option<(Option<Seat>, Tick, Claim)> {
    came.messages.iter().find_map(|(to, message)| match message {
        ToPeer::Welcome { seat, first, claim, .. } if *to == Member(member) => Some((*seat, *first, *claim)),
        _ => None,
    })
}

#[track_caller]
fn welcomed(came: &Came, member: u64) -> (Option<Seat>, Tick, Claim) {
    find_welcome(came, member).unwrap_or_else(|| panic!("{:?}", came.messages))
}

fn rewind(to: u32) -> Record {
    Record::Rewind { to: Tick(to) }
}

#[test]
fn who_sat_there_is_waited_for_two_seconds_and_then_has_left() {
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
    // The seat is held for whoever comes back with a claim to it.
    let came = den.join(12, life.having(1, 195));
    assert_eq!(welcomed(&came, 12).0, Some(Seat(1)));
    assert_eq!(welcomed(&came, 12).1, Tick(191), "what it has beyond is void");
}

#[test]
fn all_go_on_from_the_least_tick_and_nobody_is_waited_for_if_all_are_there() {
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
fn who_is_far_behind_drags_nobody_back() {
    let life = live(300);
    for (behind, to) in [(MAX_BEHIND, 300 - MAX_BEHIND), (MAX_BEHIND + 1, 300)] {
        let mut den = life.restarted(300);
        den.join(11, life.having(0, 300));
        let came = den.join(12, life.having(1, 300 - behind));
        assert_eq!(came.records, [rewind(to)]);
        assert_eq!(welcomed(&came, 12).0, Some(Seat(1)), "it has its seat all the same");
        assert_eq!(welcomed(&came, 11).1, Tick(to + 1));
    }
    // Alone and with nothing, it takes nothing back either.
    let mut den = life.restarted(300);
    den.join(11, life.having(0, 0));
    assert_eq!(den.run_to(REPORTS_US).records, [rewind(300)]);
}

#[test]
fn what_the_relay_has_lost_is_given_by_those_who_have_it() {
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
fn what_nobody_can_give_is_void() {
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
    // Whoever sends too much is closed.
    let mut den = life.restarted(200);
    den.join(11, life.having(0, 255));
    den.join(12, life.having(1, 255));
    let came = den.give(11, &wrong(|_, ticks, _, _| *ticks = u32::MAX));
    assert_eq!(came.closed, [Member(11)]);
    let came = den.give(12, &wrong(|_, _, _, bytes| *bytes = vec![0; 1 << 20]));
    assert_eq!(came.closed, [Member(12)]);
}

#[test]
fn without_a_good_claim_nobody_is_waited_for() {
    let life = live(200);
    let forged = Claim { seat: Some(Seat(1)), ..life.claims[0] };
    for resume in [None, Some(Resume { claim: forged, have: Tick(120) })] {
        let mut den = life.restarted(200);
        let came = den.join(11, resume);
        assert_eq!(came.records[0], rewind(200));
        let mut records = came.records;
        records.extend(den.run_to(START_DELAY_US + 20_000).records);
        let left = records.iter().filter(|record| matches!(record, Record::Left { tick: Tick(201), .. }));
        assert_eq!(left.count(), 2, "{records:?}");
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
fn joins_wait_while_a_session_is_looked_for() {
    let config = RelayConfig { finds: true, ..RelayConfig::default() };
    let mut den = Den { relay: Relay::new(config), ..Den::new(None) };
    let key = SessionKey { build: BuildId::from_bytes([1; 16]), name: "den".into() };
    let schema = SchemaHash::from_bytes([3; SchemaHash::LEN]);
    den.relay.handle(den.now, Input::Opened(Member(1), key.clone(), schema));
    let life = live(1);
    let join = Join {
        game: "any".into(),
        commit: String::new(),
        setup: vec![],
        seed: 0,
        rate: 60,
        seats: 2,
        wait_for: 1,
        name: "ada".into(),
        watch: false,
        seat: None,
        listed: false,
        resume: life.having(0, 1),
    };
    let bytes = message::to_bytes(&ToRelay::Join(join));
    den.relay.handle(den.now, Input::Message(Member(1), Channel::Control, &bytes));
    assert_eq!(den.relay.poll_output(&mut vec![]), Output::Find(key.clone()));
    assert_eq!(den.relay.poll_output(&mut vec![]), Output::Wait);
    // Once more is once too often; and who has gone is not waited for.
    den.relay.handle(den.now, Input::Message(Member(1), Channel::Control, &bytes));
    assert!(matches!(den.relay.poll_output(&mut vec![]), Output::Close(Member(1), _)));
    den.relay.handle(den.now, Input::Found(key, Found::New { uid: 5 }));
    assert_eq!((den.relay.poll_output(&mut vec![]), den.relay.sessions().count()), (Output::Wait, 0));
}

/// A game that adds up.
#[derive(Clone, Serialize, Deserialize, Schema)]
struct Total(u64);

impl Game for Total {
    const NAME: &'static str = "total";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([1; 16]);
    type Setup = ();
    type Input = u8;

    fn new((): &()) -> Total {
        Total(0)
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        self.0 = inputs.iter().fold(self.0.rotate_left(5), |sum, row| sum ^ u64::from(*row.input_or(&0)));
    }
}

fn tell(peer: &mut Peer<Total>, now: Time, message: &ToPeer) {
    peer.handle(now, peer::Input::Message(Channel::Control, &message::to_bytes(message))).unwrap();
}

/// Lets a peer play up to a time; what it hands in for a tick is its number. Returns what it sent.
fn run(peer: &mut Peer<Total>, now: Time) -> Vec<(Channel, Vec<u8>)> {
    let (mut sent, mut buf) = (vec![], vec![]);
    loop {
        match peer.poll_output(&mut buf) {
            peer::Output::Send(channel) => sent.push((channel, buf.clone())),
            peer::Output::WantInput(tick) => peer.handle(now, peer::Input::Local(tick.0 as u8)).unwrap(),
            peer::Output::WantPath => peer.handle(now, peer::Input::Path(Path::default())).unwrap(),
            peer::Output::WakeAt(_) | peer::Output::Wait => return sent,
        }
    }
}

#[test]
fn a_peer_goes_back_sends_its_inputs_again_and_gives_what_it_has() {
    let claim = live(1).claims[0];
    let welcome = |closed: u32, first: u32, age_us| ToPeer::Welcome {
        seat: Some(Seat(0)),
        closed: Tick(closed),
        first: Tick(first),
        age_us,
        setup: vec![],
        rate: 60,
        claim,
        save: None,
    };
    let join = JoinAs::<Total> {
        setup: (),
        seed: 0,
        seats: 2,
        wait_for: 1,
        name: "ada".into(),
        commit: String::new(),
        watch: false,
        listed: false,
    };
    let at = |tick: u32| Time::from_micros(START_DELAY_US + u64::from(tick) * 1_000_000 / 60);
    let mut peer = Peer::new(Time::ZERO, &join, Path::default());
    tell(&mut peer, Time::ZERO, &welcome(0, 1, -(START_DELAY_US as i64)));
    let (mut table, mut totals) = (Table::default(), vec![Total(0)]);
    for tick in 1..=100 {
        let (mut rows, mut bytes) = (Inputs::new(), vec![]);
        if tick == 1 {
            rows.join(Seat(0));
        }
        rows.set(Seat(0), Opaque::new(&[tick as u8]).unwrap());
        put_ticks(&mut bytes, Tick(tick), &mut table, [&rows].into_iter());
        peer.handle(at(tick), peer::Input::Message(Channel::Input, &bytes)).unwrap();
        run(&mut peer, at(tick));
        totals.push(peer.confirmed().map(|(_, state)| state.clone()).unwrap());
    }
    let shown = peer.shown().unwrap().0;
    assert!(shown >= Tick(100));
    peer.rejoin(at(300), Path::default());
    run(&mut peer, at(300));
    tell(&mut peer, at(301), &ToPeer::GiveTicks { from: Tick(91) });
    let given = run(&mut peer, at(301));
    let [(Channel::Chunks, bytes)] = &given[..] else { panic!("{given:?}") };
    let Ok(ToRelay::Ticks { first, ticks, .. }) = message::from_bytes(bytes) else {
        panic!("ticks are given")
    };
    assert!(first <= Tick(91) && first.0 + ticks == 101);
    tell(&mut peer, at(302), &welcome(80, 81, -(START_DELAY_US as i64)));
    let (tick, state) = peer.confirmed().map(|(tick, state)| (tick, state.0)).unwrap();
    assert_eq!((tick, state, peer.stats().rewinds), (Tick(80), totals[80].0, 1));
    let mut again = vec![];
    for (_, bytes) in run(&mut peer, at(302)).iter().filter(|(channel, _)| *channel == Channel::Input) {
        read_inputs(bytes, Tick(80), |tick, input| again.push((tick, input.as_bytes()[0]))).unwrap();
    }
    let expected: Vec<(Tick, u8)> = (81..=shown.0).map(|tick| (Tick(tick), tick as u8)).collect();
    assert_eq!(again, expected, "what it did is done again, as it was");
    assert_eq!(peer.shown().unwrap().0, shown, "and nobody sees a jump");
}
