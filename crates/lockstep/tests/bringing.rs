//! A session that is lost everywhere else begins again from the copy that a peer has kept.

use postcard_schema::Schema;
use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::copy::{MAX_BROUGHT_TICK, SessionCopy, Unfit};
use sametick_lockstep::message::{self, About, Bring, Join, MAX_STATE, Piece, SaveHead, ToPeer, ToRelay};
use sametick_lockstep::pair::Trial;
use sametick_lockstep::peer::{Brought, Peer, Status};
use sametick_lockstep::relay::{
    BRINGING_US, BROUGHT_TOO_SLOWLY, BROUGHT_WRONG, Found, Input, Kept, MAX_BRINGING, Output, Relay,
    RelayConfig, SessionKey,
};
use sametick_lockstep::rows::Table;
use sametick_lockstep::session::{Facts, Member};
use sametick_sim::record::{Leaving, Record, decode_inputs};
use sametick_sim::{
    BuildId, Game, Inputs, SchemaHash, Seat, StateHash, Tick, TickRate, Time, from_canonical,
};
use sametick_wire::Channel;
use sametick_wire::identity::PlayerId;
use sametick_wire::pair::Side;
use serde::{Deserialize, Serialize};

/// A game that never forgets an input, with a state as large as its setup says.
#[derive(Clone, Serialize, Deserialize, Schema)]
struct Laden {
    tick: u32,
    totals: [u64; 4],
    ballast: String,
}

impl Game for Laden {
    const NAME: &'static str = "laden";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([3; 16]);
    type Setup = u32;
    type Input = u8;

    fn new(bytes: &u32) -> Laden {
        Laden { tick: 0, totals: [0; 4], ballast: "x".repeat(*bytes as usize) }
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        self.tick += 1;
        for row in inputs {
            let total = &mut self.totals[row.seat.index() % 4];
            let all = u64::from(*row.input_or(&0)) | u64::from(row.joined) << 8 | u64::from(row.left) << 9;
            *total = (total.rotate_left(7) ^ all).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
}

fn come(trial: &mut Trial<Laden>, bytes: u32) -> usize {
    let number = trial.players.len() as u32;
    trial.join(4, &bytes, move |_, tick| ((tick.0 / 9 + number) % 5) as u8)
}

/// A player joins with a copy.
fn bring(trial: &mut Trial<Laden>, copy: &SessionCopy) -> usize {
    // Its own setup differs: the copy's is used.
    let index = come(trial, 1);
    let player = &mut trial.players[index];
    player.peer.bring(copy.clone());
    let path = player.pair.link(Side::A).stats().into();
    player.peer.rejoin(trial.now, path);
    index
}

/// The copy of a session that a player has kept.
fn kept(seed: u64, millis: u64, bytes: u32) -> SessionCopy {
    let mut trial: Trial<Laden> = Trial::new(seed, "rtt=30ms".parse().unwrap());
    (0..3).for_each(|_| _ = come(&mut trial, bytes));
    trial.run_millis(millis);
    let copy = trial.players[1].peer.copy("trial").expect("it plays");
    let (tick, state) = trial.players[1].peer.confirmed().unwrap();
    assert_eq!((copy.save.tick, copy.save.hash), (tick, StateHash::of(state)), "what is confirmed");
    assert!(trial.players[1].peer.shown().unwrap().0 > tick, "and not what is shown");
    assert_eq!(copy.check::<Laden>("trial"), Ok(()));
    copy
}

fn brought(trial: &Trial<Laden>, index: usize) -> Option<Brought> {
    trial.players[index].peer.brought()
}

/// Replays the ticks the relay has closed since, from the copy.
fn replay(copy: &SessionCopy, records: &[Record], to: Tick) -> StateHash {
    let (mut state, mut inputs) = (from_canonical::<Laden>(&copy.save.state).unwrap(), Inputs::new());
    for record in records {
        if let Record::Inputs(tick) = record
            && tick.tick() <= to
        {
            decode_inputs(tick.iter(), &mut inputs);
            state.step(&inputs);
        }
    }
    assert_eq!(state.tick, to.0);
    StateHash::of(&state)
}

#[test]
fn a_session_begins_again_with_a_copy_on_any_network() {
    for seed in 0..9 {
        let network =
            ["rtt=20ms", "rtt=120ms,jitter=20ms,loss=5%", "rtt=80ms,loss=25%,dup=20%"][seed as usize % 3];
        let copy = kept(seed, 6_000, 60_000);
        let mut trial: Trial<Laden> = Trial::new(seed + 100, network.parse().unwrap());
        let first = bring(&mut trial, &copy);
        trial.run_millis(10_000);
        assert_eq!(brought(&trial, first), Some(Brought::Taken { tick: copy.save.tick }), "{network}");
        let late = come(&mut trial, 1);
        trial.run_millis(5_000);
        let peers = [first, late].map(|index| &trial.players[index].peer);
        assert!(peers.iter().all(|peer| *peer.status() == Status::Playing), "{network}");
        assert_eq!(peers.map(Peer::brought), [Some(Brought::Taken { tick: copy.save.tick }), None]);
        let (tick, state) = peers[1].confirmed().unwrap();
        assert!(tick.0 > copy.save.tick.0 + 300 && state.ballast.len() == 60_000);
        assert_eq!(StateHash::of(state), replay(&copy, &trial.records, tick), "the records lead there");
        assert!(trial.agreed() > 50, "{network}: {}", trial.agreed());
        assert_eq!(peers[0].stats().loads, 1);
        let facts = trial.relay.sessions().next().unwrap().1.facts();
        assert_eq!((facts.seats, &facts.setup), (4, &copy.facts.setup));
    }
}

#[test]
fn the_copys_players_have_left_and_seats_are_given_anew() {
    let copy = kept(1, 3_000, 10);
    assert_eq!(copy.save.table.taken().count(), 3);
    let mut trial: Trial<Laden> = Trial::new(1, "rtt=20ms".parse().unwrap());
    (0..4).for_each(|_| _ = bring(&mut trial, &copy));
    trial.run_millis(3_000);
    let mut seats: Vec<u16> = trial.players.iter().map(|player| player.peer.seat().unwrap().0).collect();
    seats.sort_unstable();
    assert_eq!(seats, [0, 1, 2, 3]);
    let next = copy.save.tick.next();
    let left = |record: &&Record| matches!(record, Record::Left { tick, .. } if *tick == next);
    assert_eq!(trial.records.iter().filter(left).count(), 3, "in the first tick");
    assert_eq!(trial.records[0], Record::Rewind { to: copy.save.tick });
}

#[test]
fn of_two_copies_the_first_peers_is_used() {
    let (older, newer) = (kept(2, 3_000, 10), kept(2, 5_000, 10));
    let mut trial: Trial<Laden> = Trial::new(2, "rtt=20ms".parse().unwrap());
    let first = bring(&mut trial, &older);
    let second = bring(&mut trial, &newer);
    trial.run_millis(1_000);
    assert_eq!(brought(&trial, first), Some(Brought::Taken { tick: older.save.tick }));
    let Some(Brought::NotNeeded { ours, theirs, is_same }) = brought(&trial, second) else { panic!() };
    assert!(is_same && ours == newer.save.tick && (older.save.tick..ours).contains(&theirs), "{theirs}");
    assert_eq!(*trial.players[second].peer.status(), Status::Playing);
}

#[test]
fn a_session_that_runs_needs_no_copy() {
    let copy = kept(3, 3_000, 10);
    let mut trial: Trial<Laden> = Trial::new(3, "rtt=20ms".parse().unwrap());
    come(&mut trial, 10);
    trial.run_millis(5_000);
    let late = bring(&mut trial, &copy);
    trial.run_millis(2_000);
    let Some(Brought::NotNeeded { ours, theirs, .. }) = brought(&trial, late) else { panic!() };
    assert!(ours == copy.save.tick && theirs > ours);
    assert_eq!(*trial.players[late].peer.status(), Status::Playing);
    // The very copy that the session began with is not needed any more either.
    let mut trial: Trial<Laden> = Trial::new(3, "rtt=20ms".parse().unwrap());
    bring(&mut trial, &copy);
    trial.run_millis(2_000);
    let late = bring(&mut trial, &copy);
    trial.run_millis(2_000);
    let Some(Brought::NotNeeded { ours, theirs, is_same: true }) = brought(&trial, late) else { panic!() };
    assert!(ours == copy.save.tick && theirs > ours);
    // The next copy is of this session and contains what has happened since.
    let again = trial.players[late].peer.copy("trial").unwrap();
    assert!(again.save.tick > theirs);
    assert_eq!(again.check::<Laden>("trial"), Ok(()));
}

#[test]
fn if_the_first_peer_leaves_during_its_copy_the_next_begins() {
    let copy = kept(4, 3_000, 2_000_000);
    let mut trial: Trial<Laden> = Trial::new(4, "rtt=80ms,rate=4mbit".parse().unwrap());
    let first = bring(&mut trial, &copy);
    trial.run_millis(500);
    let second = bring(&mut trial, &copy);
    let third = come(&mut trial, 1);
    trial.run_millis(500);
    assert_eq!(trial.relay.sessions().count(), 0, "everybody waits for the copy");
    trial.leave(first);
    trial.run_millis(30_000);
    assert_eq!(brought(&trial, second), Some(Brought::Taken { tick: copy.save.tick }));
    assert_eq!(*trial.players[third].peer.status(), Status::Playing);
}

/// A check before bringing names what does not fit.
#[test]
fn a_copy_that_does_not_fit_says_what_differs() {
    let good = kept(5, 2_000, 10);
    let with = |change: &dyn Fn(&mut SessionCopy)| {
        let mut copy = good.clone();
        change(&mut copy);
        copy.check::<Laden>("trial").unwrap_err()
    };
    let build = BuildId::from_bytes([9; 16]);
    assert!(matches!(with(&|copy| copy.facts.game = "pong".into()), Unfit::Game { .. }));
    assert!(matches!(with(&|copy| copy.facts.build = build), Unfit::Build { found, .. } if found == build));
    assert_eq!(with(&|copy| copy.facts.schema = SchemaHash::from_bytes([0; 32])), Unfit::Schema);
    assert_eq!(
        with(&|copy| copy.facts.name = "den".into()).to_string(),
        "the save is of the session \"den\", and \"trial\" is to be joined"
    );
    assert!(matches!(with(&|copy| copy.facts.rate = TickRate::hz(30)), Unfit::Rate { found: 30, .. }));
    assert_eq!(with(&|copy| copy.facts.setup = vec![]), Unfit::Setup);
    assert_eq!(with(&|copy| copy.facts.seats = 33), Unfit::Seats { found: 33 });
    assert_eq!(with(&|copy| copy.facts.seats = 2), Unfit::Table { seats: 2 });
    assert!(matches!(with(&|copy| copy.save.tick = Tick::ZERO), Unfit::Tick { .. }));
    assert!(matches!(with(&|copy| copy.save.tick = MAX_BROUGHT_TICK + 1), Unfit::Tick { .. }));
    assert!(matches!(with(&|copy| copy.save.state[0] ^= 1), Unfit::Hash { .. }));
    assert_eq!(with(&|copy| copy.save.state.clear()), Unfit::TooLarge { found: 0 });
    let nonsense = with(&|copy| {
        copy.save.state = vec![0xff; 9];
        copy.save.hash = StateHash::of_bytes(&copy.save.state);
    });
    assert_eq!(nonsense, Unfit::State);
}

/// A relay without peers, and the messages it sent.
struct Den {
    relay: Relay,
    now: Time,
    said: Vec<(Member, ToPeer)>,
    brought: Vec<u64>,
    closed: Vec<Member>,
}

const STATE: &[u8] = &[7; 5_000];

fn key() -> SessionKey {
    SessionKey { build: BuildId::from_bytes([3; 16]), name: "den".into() }
}

fn head() -> SaveHead {
    let (hash, table) = (StateHash::of_bytes(STATE), Table::default().to_bytes());
    SaveHead { tick: Tick(900), hash, bytes: STATE.len() as u32, table }
}

fn join_with(bring: Option<Bring>) -> Join {
    Join {
        game: "laden".into(),
        commit: "c0ffee".into(),
        setup: vec![7],
        seed: 7,
        rate: 60,
        seats: 4,
        wait_for: 1,
        name: "ada".into(),
        watch: false,
        seat: None,
        listed: true,
        resume: None,
        bring,
    }
}

fn offered(save: SaveHead) -> Option<Bring> {
    Some(Bring { save, started_unix_ms: 1_000 })
}

impl Den {
    fn new(finds: bool) -> Den {
        let relay = Relay::new(RelayConfig { finds, ..RelayConfig::default() });
        Den { relay, now: Time::ZERO, said: vec![], brought: vec![], closed: vec![] }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.relay.handle(self.now, input);
        let mut buf = vec![];
        loop {
            match self.relay.poll_output(&mut buf) {
                Output::Send(member, _) => {
                    if let Ok(message) = message::from_bytes(&buf) {
                        self.said.push((member, message));
                    }
                }
                Output::Brought(id) => {
                    self.brought.push(self.relay.session(id).unwrap().started_unix_ms());
                }
                Output::Close(member, _) => self.closed.push(member),
                Output::Wait | Output::WakeAt(_) => return,
                _ => {}
            }
        }
    }

    fn tell(&mut self, member: u64, channel: Channel, message: &ToRelay) {
        self.handle(Input::Message(Member(member), channel, &message::to_bytes(message)));
    }

    fn join(&mut self, member: u64, bring: Option<Bring>) {
        self.handle(Input::Opened(Member(member), key(), SchemaHash::from_bytes([0; 32])));
        self.tell(member, Channel::Control, &ToRelay::Join(join_with(bring)));
    }

    fn refusal(&self, member: u64) -> Option<&str> {
        self.said.iter().find_map(|(to, message)| match message {
            ToPeer::Refused { why } if *to == Member(member) => Some(why.as_str()),
            _ => None,
        })
    }

    fn welcome(&self, member: u64) -> Option<(Tick, Option<SaveHead>, About)> {
        self.said.iter().find_map(|(to, message)| match message {
            ToPeer::Welcome { first, save, about, .. } if *to == Member(member) => {
                Some((*first, save.clone(), about.clone()))
            }
            _ => None,
        })
    }

    /// Answers the last request with the bytes of this state.
    fn give(&mut self, member: u64, state: &[u8]) -> bool {
        let asked = self.said.iter().rev().find_map(|(to, message)| match message {
            ToPeer::GivePiece { tick, offset, bytes } if *to == Member(member) => {
                Some((*tick, *offset, *bytes))
            }
            _ => None,
        });
        let Some((tick, offset, bytes)) = asked else { return false };
        self.said.retain(|(_, message)| !matches!(message, ToPeer::GivePiece { .. }));
        let bytes = state[offset as usize..][..bytes as usize].to_vec();
        self.tell(member, Channel::Chunks, &ToRelay::Piece(Piece { tick, offset, bytes }));
        true
    }

    fn wait(&mut self, us: u64) {
        self.now = self.now.plus_micros(us);
        self.handle(Input::Timeout);
    }
}

#[test]
fn a_copy_unlike_its_head_is_refused_and_the_next_begins() {
    let mut den = Den::new(false);
    den.join(1, offered(head()));
    den.join(2, None);
    assert_eq!((den.welcome(2), den.relay.sessions().count()), (None, 0), "the copy is waited for");
    assert!(
        den.relay.has_joined(Member(1)) && !den.relay.has_joined(Member(2)),
        "long messages are heard of one"
    );
    while den.give(1, &[8; 5_000]) {}
    assert_eq!(den.refusal(1), Some(BROUGHT_WRONG));
    let (first, save, about) = den.welcome(2).expect("it begins at the beginning");
    assert_eq!((first, save, about.commit.as_str()), (Tick(1), None, "c0ffee"));
    assert_eq!((den.brought, den.closed), (vec![], vec![]));
}

#[test]
fn an_impossible_head_is_refused_with_a_reason() {
    let table = {
        let mut inputs = Inputs::new();
        inputs.join(Seat(5));
        inputs.omit(Seat(5));
        let mut history = sametick_lockstep::history::History::default();
        history.push(&inputs);
        history.table().to_bytes()
    };
    let bad = [
        (SaveHead { tick: Tick::ZERO, ..head() }, "tick"),
        (SaveHead { tick: Tick(u32::MAX), ..head() }, "tick"),
        (SaveHead { bytes: 0, ..head() }, "bytes"),
        (SaveHead { bytes: MAX_STATE as u32 + 1, ..head() }, "bytes"),
        (SaveHead { table: vec![0xff; 3], ..head() }, "who sat where"),
        (SaveHead { table, ..head() }, "4 seats"),
    ];
    for (head, word) in bad {
        let mut den = Den::new(false);
        den.join(1, offered(head));
        assert!(den.refusal(1).is_some_and(|why| why.contains(word)), "{word}: {:?}", den.refusal(1));
    }
    let mut den = Den::new(false);
    den.handle(Input::Opened(Member(1), key(), SchemaHash::from_bytes([0; 32])));
    den.tell(1, Channel::Control, &ToRelay::Join(Join { seats: 40, ..join_with(offered(head())) }));
    assert!(den.refusal(1).is_some_and(|why| why.contains("40 seats")));
}

#[test]
fn each_piece_of_a_copy_and_the_whole_copy_time_out() {
    let mut den = Den::new(false);
    den.join(1, offered(head()));
    den.join(2, None);
    den.wait(2_999_999);
    assert_eq!(den.refusal(1), None);
    den.wait(1);
    assert_eq!(den.refusal(1), Some(BROUGHT_TOO_SLOWLY));
    assert!(den.welcome(2).is_some());
    // A piece that was under way does no harm.
    let bytes = STATE[..2_048].to_vec();
    den.tell(1, Channel::Chunks, &ToRelay::Piece(Piece { tick: Tick(900), offset: 0, bytes }));
    assert_eq!(den.closed, []);
    let mut den = Den::new(false);
    let big = vec![7; MAX_STATE];
    den.join(1, offered(SaveHead { bytes: MAX_STATE as u32, hash: StateHash::of_bytes(&big), ..head() }));
    while den.refusal(1).is_none() {
        den.wait(2_500_000);
        den.give(1, &big);
    }
    assert!(den.now.as_micros() <= BRINGING_US, "{}", den.now);
}

#[test]
fn a_peer_that_has_not_joined_may_only_send_pieces() {
    let mut den = Den::new(false);
    den.join(1, offered(head()));
    den.join(2, None);
    den.tell(1, Channel::Control, &ToRelay::Resend { from: Tick(1) });
    assert_eq!(den.closed, [Member(1)]);
    assert!(den.welcome(2).is_some(), "and the next begins");
    let mut den = Den::new(false);
    den.join(1, offered(head()));
    den.handle(Input::Message(Member(1), Channel::Chunks, &[7; 100_000]));
    assert_eq!(den.closed, [Member(1)], "longer than any piece");
    let mut den = Den::new(false);
    den.handle(Input::Opened(Member(1), key(), SchemaHash::from_bytes([0; 32])));
    den.tell(1, Channel::Control, &ToRelay::Offer { tick: Tick(900), bytes: None });
    assert_eq!(den.closed, [Member(1)], "it brings nothing");
}

#[test]
fn a_stored_session_takes_precedence_over_a_copy() {
    let facts = Facts {
        name: "den".into(),
        game: "laden".into(),
        build: key().build,
        commit: "5eed".into(),
        schema: SchemaHash::from_bytes([0; 32]),
        setup: vec![8],
        seed: 8,
        rate: TickRate::hz(60),
        seats: 4,
        listed: true,
    };
    let mut den = Den::new(true);
    den.join(1, offered(head()));
    den.handle(Input::Found(key(), Found::Kept(Box::new(Kept::new(facts, 50, 0, None).started(40)))));
    den.wait(2_000_000);
    let (first, save, about) = den.welcome(1).unwrap();
    assert_eq!((first, save, about.commit.as_str(), about.started_unix_ms), (Tick(1), None, "5eed", 40));
    assert_eq!(den.brought, []);
}

/// The id of a session is its start time, unless that is implausible or would overwrite stored data.
#[test]
fn a_session_keeps_the_time_at_which_it_began() {
    let began = |found: Found| {
        let mut den = Den::new(true);
        den.join(1, offered(head()));
        den.handle(Input::Found(key(), found));
        while den.give(1, STATE) {}
        let (first, save, about) = den.welcome(1).unwrap();
        assert_eq!((first, save), (Tick(901), Some(head())));
        assert_eq!(den.brought, [about.started_unix_ms]);
        about.started_unix_ms
    };
    assert_eq!(began(Found::New { uid: 5_000 }), 1_000);
    assert_eq!(began(Found::New { uid: 900 }), 900, "nothing begins in the future");
    assert_eq!(began(Found::Spoilt { uid: 5_000 }), 5_000);
}

#[test]
fn a_join_on_assignment_brings_no_copy() {
    let mut den = Den::new(true);
    den.handle(Input::Opened(Member(1), key(), SchemaHash::from_bytes([0; 32])));
    let assignment = SeatAssignment {
        player: PlayerId(1),
        name: "ada".into(),
        seat: Some(Seat(0)),
        game: "laden".into(),
        rate: TickRate::hz(60),
        setup: vec![9],
        seed: 9,
        seats: 2,
        listed: false,
    };
    den.handle(Input::Assigned(Member(1), assignment));
    den.tell(1, Channel::Control, &ToRelay::Join(join_with(offered(head()))));
    den.handle(Input::Found(key(), Found::New { uid: 5_000 }));
    let (first, save, about) = den.welcome(1).unwrap();
    assert_eq!((first, save, about.seed), (Tick(1), None, 9));
}

#[test]
fn the_number_of_copies_at_once_is_limited() {
    let mut den = Den::new(false);
    for member in 0..=MAX_BRINGING as u64 {
        let key = SessionKey { name: format!("den {member}"), ..key() };
        den.handle(Input::Opened(Member(member), key, SchemaHash::from_bytes([0; 32])));
        den.tell(member, Channel::Control, &ToRelay::Join(join_with(offered(head()))));
    }
    let refused = |member: u64| den.refusal(member).is_some();
    assert!(!refused(MAX_BRINGING as u64 - 1) && refused(MAX_BRINGING as u64));
    den.handle(Input::Closed(Member(0), Leaving::Left));
    den.join(1_000, offered(head()));
    assert_eq!(den.refusal(1_000), None, "there is room again");
}
