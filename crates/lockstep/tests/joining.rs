//! Late join with a save that a player gave; the other players do not notice.

use postcard_schema::Schema;
use sametick_lockstep::compaction::CompactionConfig;
use sametick_lockstep::history::{Excerpt, History};
use sametick_lockstep::message::{
    self, About, Claim, Join, PIECE_BYTES, Piece, Resume, SaveHead, ToPeer, ToRelay,
};
use sametick_lockstep::pair::Trial;
use sametick_lockstep::peer::{self, JoinAs, Peer, Status, WRONG_SAVE};
use sametick_lockstep::relay::{Input, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::Table;
use sametick_lockstep::session::{JOIN_PATIENCE_US, KEPT_IN, Member, STORED_AS, Session};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{BuildId, Game, Inputs, SchemaHash, Seat, StateHash, Tick, TickRate, Time, to_canonical};
use sametick_wire::Channel;
use sametick_wire::pacer::Path;
use serde::{Deserialize, Serialize};

const SECOND_US: u64 = 1_000_000;

/// A game that never forgets an input, with a state as large as its setup says.
#[derive(Clone, Serialize, Deserialize, Schema)]
struct Heavy<const HZ: u16> {
    tick: u32,
    totals: [u64; 32],
    /// A text, which is written and hashed as a whole: a large state must not make the test slow.
    ballast: String,
}

impl<const HZ: u16> Game for Heavy<HZ> {
    const NAME: &'static str = "heavy";
    const RATE: TickRate = TickRate::hz(HZ);
    const BUILD: BuildId = BuildId::from_bytes([HZ as u8; 16]);
    type Setup = u32;
    type Input = u8;

    fn new(bytes: &u32) -> Self {
        Heavy {
            tick: 0,
            totals: [0; 32],
            ballast: (0..*bytes).map(|at| (b'a' + (at % 23) as u8) as char).collect(),
        }
    }

    fn step(&mut self, inputs: &Inputs<u8>) {
        self.tick += 1;
        for row in inputs {
            let total = &mut self.totals[row.seat.index()];
            let all = u64::from(*row.input_or(&0)) | u64::from(row.joined) << 8 | u64::from(row.left) << 9;
            *total = (total.rotate_left(7) ^ all).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
}

/// Saves every so many seconds, and for a peer that has to catch up with more than three.
fn saving_every(seconds: u64) -> RelayConfig {
    let compaction = CompactionConfig {
        every_us: seconds * SECOND_US,
        join_hot_us: 3 * SECOND_US,
        not_before_us: SECOND_US,
        ..CompactionConfig::default()
    };
    RelayConfig { compaction, ..RelayConfig::default() }
}

fn session<G: Game>(trial: &Trial<G>) -> &Session {
    trial.relay.sessions().next().expect("it runs").1
}

/// A player joins who toggles a bit now and then.
fn come<const HZ: u16>(trial: &mut Trial<Heavy<HZ>>, bytes: u32) -> usize {
    let number = trial.players.len() as u32;
    trial.join(32, &bytes, move |_, tick| ((tick.0 / 9 + number) % 5) as u8)
}

fn snapshots(records: &[Record]) -> Vec<Tick> {
    let tick = |record: &Record| match record {
        Record::Snapshot { tick, place, .. } if place == KEPT_IN => Some(*tick),
        _ => None,
    };
    records.iter().filter_map(tick).collect()
}

#[test]
fn a_late_joiner_begins_with_a_save_and_is_in_sync() {
    for seed in 0..12 {
        let network =
            ["rtt=20ms", "rtt=120ms,jitter=20ms,loss=5%", "rtt=60ms,loss=20%,dup=20%"][seed as usize % 3];
        let mut trial: Trial<Heavy<60>> =
            Trial::with_config(seed, network.parse().unwrap(), saving_every(10));
        (0..1 + seed % 3).for_each(|_| {
            come(&mut trial, 3_000);
        });
        trial.run_millis(25_000);
        let saves = snapshots(&trial.records);
        assert!((2..=3).contains(&saves.len()), "{saves:?} on {network}");
        let late = come(&mut trial, 3_000);
        trial.run_millis(6_000);
        let peer = &trial.players[late].peer;
        assert_eq!((peer.status(), peer.stats().loads), (&Status::Playing, 1), "{network}");
        assert!(peer.catching_up().bytes.0 > 3_000 && peer.progress() > 0.999);
        let (tick, begun) = (peer.confirmed().unwrap().0, peer.catching_up().ticks.0);
        assert!(session(&trial).history().last().ticks_since(tick) < 40 && begun < 20 * 60);
        assert_eq!(session(&trial).agreement().mismatches(), 0);
    }
}

/// By the relay's clock the joiner's save is newer than three seconds, or the wait was for nothing.
#[test]
fn a_join_makes_a_save_if_there_is_much_to_catch_up_with() {
    let mut trial: Trial<Heavy<60>> = Trial::with_config(1, "rtt=40ms".parse().unwrap(), saving_every(1_000));
    come(&mut trial, 500);
    trial.run_millis(20_000);
    assert_eq!(snapshots(&trial.records), []);
    let late = come(&mut trial, 500);
    trial.run_millis(2_000);
    let saves = snapshots(&trial.records);
    assert!(saves.len() == 1 && saves[0] > Tick(1_100), "{saves:?}");
    assert_eq!(trial.players[late].peer.stats().loads, 1);
    assert_eq!(*trial.players[late].peer.status(), Status::Playing);
    // For the next joiner the save is recent enough, also while the first may still be catching up.
    let next = come(&mut trial, 500);
    trial.run_millis(1_000);
    assert_eq!((snapshots(&trial.records).len(), trial.players[next].peer.stats().loads), (1, 1));
}

#[test]
fn without_a_save_all_ticks_are_sent() {
    let mut trial: Trial<Heavy<60>> = Trial::new(1, "rtt=40ms".parse().unwrap());
    come(&mut trial, 500);
    trial.run_millis(20_000);
    let late = come(&mut trial, 500);
    trial.run_millis(2_000);
    let peer = &trial.players[late].peer;
    assert_eq!((peer.status(), peer.stats().loads), (&Status::Playing, 0));
    assert!(peer.catching_up().ticks.0 > 1_200);
}

/// Ticks before a save are forgotten once no peer can need them, so sessions can go on for ever.
#[test]
fn the_hot_log_stays_short() {
    let mut trial: Trial<Heavy<10>> = Trial::with_config(1, "rtt=40ms".parse().unwrap(), saving_every(10));
    come(&mut trial, 100);
    come(&mut trial, 100);
    let mut most = 0;
    for _ in 0..40 {
        trial.run_millis(10_000);
        let history = session(&trial).history();
        most = most.max(history.last().ticks_since(history.first()));
    }
    assert!(session(&trial).history().first() > Tick(3_000));
    // A minute for peers that come back, and a segment.
    assert!(most <= 600 + 300 + 100, "{most}");
    let late = come(&mut trial, 100);
    trial.run_millis(5_000);
    assert_eq!(*trial.players[late].peer.status(), Status::Playing);
}

/// Twenty peers with a state of a mebibyte each, over lines of four megabits: players have no omissions and no late
/// inputs, neither while one of them gives the save nor while the others load it.
#[test]
fn twenty_join_at_once_and_no_player_notices() {
    let network = "rtt=50ms,rate=4mbit,queue=64kB";
    let mut trial: Trial<Heavy<20>> = Trial::with_config(3, network.parse().unwrap(), saving_every(12));
    let players: Vec<usize> = (0..4).map(|_| come(&mut trial, 1 << 20)).collect();
    trial.run_millis(10_000);
    let arrivals = |trial: &Trial<Heavy<20>>| {
        let seats = players.iter().map(|at| trial.players[*at].peer.seat().unwrap());
        seats.map(|seat| session(trial).arrivals(seat).unwrap()).collect::<Vec<_>>()
    };
    let before = arrivals(&trial);
    while session(&trial).save().is_none() {
        trial.run_millis(100);
    }
    println!("the save is there after {}", trial.now);
    let joiners: Vec<usize> = (0..20).map(|_| come(&mut trial, 1 << 20)).collect();
    let mut seconds = 0;
    while joiners.iter().any(|at| *trial.players[*at].peer.status() != Status::Playing) {
        trial.run_millis(1_000);
        seconds += 1;
        assert!(seconds < 40, "they never get there");
    }
    let after = arrivals(&trial);
    let bytes: u64 = joiners.iter().map(|at| u64::from(trial.players[*at].peer.catching_up().bytes.0)).sum();
    println!("{} joined within {seconds} s, with {bytes} bytes of saves", joiners.len());
    assert!(bytes > 20 << 20);
    for (before, after) in before.iter().zip(&after) {
        println!("least slack {:?} µs before, {:?} after", before.least_slack_us, after.least_slack_us);
        assert_eq!((before.omissions, before.late), (after.omissions, after.late));
        assert!(after.least_slack_us.unwrap() > 0);
    }
    trial.run_millis(500);
}

/// A relay with peers that only send messages.
struct Den {
    relay: Relay,
    now: Time,
}

#[derive(Default)]
struct Came {
    messages: Vec<(Member, ToPeer)>,
    closed: Vec<Member>,
    records: Vec<Record>,
    saves: usize,
    wanted: Vec<Tick>,
}

const HASH: fn(&[u8]) -> StateHash = StateHash::of_bytes;

impl Den {
    fn new(has_store: bool) -> Den {
        let mut config = saving_every(10);
        config.compaction.has_store = has_store;
        Den { relay: Relay::new(config), now: Time::ZERO }
    }

    fn id(&self) -> sametick_lockstep::session::SessionId {
        self.relay.sessions().next().unwrap().0
    }

    fn session(&self) -> &Session {
        self.relay.sessions().next().unwrap().1
    }

    fn handle(&mut self, input: Input<'_>) -> Came {
        self.relay.handle(self.now, input);
        let (mut came, mut buf) = (Came::default(), vec![]);
        loop {
            match self.relay.poll_output(&mut buf) {
                Output::Send(to, Channel::Control | Channel::Chunks) => {
                    came.messages.push((to, message::from_bytes(&buf).unwrap()));
                }
                Output::Close(member, _) => came.closed.push(member),
                Output::Record(_, record) => came.records.push(record),
                Output::Save(_) => came.saves += 1,
                Output::WantSave(_, tick) => came.wanted.push(tick),
                Output::WakeAt(_) | Output::Wait => return came,
                _ => {}
            }
        }
    }

    fn join(&mut self, member: u64) -> Came {
        let key = SessionKey { build: BuildId::from_bytes([1; 16]), name: "den".into() };
        self.handle(Input::Opened(Member(member), key, SchemaHash::from_bytes([3; SchemaHash::LEN])));
        let join = Join {
            game: "any".into(),
            commit: String::new(),
            setup: vec![],
            seed: 0,
            rate: 60,
            seats: 8,
            wait_for: 1,
            name: format!("p{member}"),
            watch: false,
            seat: None,
            listed: false,
            resume: None,
            bring: None,
        };
        self.say(member, &ToRelay::Join(join))
    }

    fn say(&mut self, member: u64, message: &ToRelay) -> Came {
        self.handle(Input::Message(Member(member), Channel::Control, &message::to_bytes(message)))
    }

    /// Runs to a tick; at every check these members report this state.
    fn run_to(&mut self, tick: u32, members: &[u64], state: &[u8]) -> Came {
        let mut all = Came::default();
        while self.session().history().last() < Tick(tick) {
            self.now = self.now.plus_micros(2_000);
            let came = self.handle(Input::Timeout);
            let closed = self.session().history().last();
            all.add(came);
            if closed.0 > 0 && closed.0.is_multiple_of(30) && self.session().agreement().agreed() < closed {
                for member in members {
                    all.add(self.say(*member, &ToRelay::Check { tick: closed, hash: HASH(state) }));
                }
            }
        }
        all
    }
}

impl Came {
    fn add(&mut self, other: Came) {
        self.messages.extend(other.messages);
        self.closed.extend(other.closed);
        self.records.extend(other.records);
        self.saves += other.saves;
        self.wanted.extend(other.wanted);
    }

    /// The member that is asked for a save, and the tick.
    fn asked(&self) -> Option<(u64, Tick)> {
        self.messages.iter().find_map(|(to, message)| match message {
            ToPeer::GiveSave { tick } => Some((to.0, *tick)),
            _ => None,
        })
    }

    fn pieces(&self) -> Vec<(Tick, u32, u32)> {
        let piece = |message: &ToPeer| match message {
            ToPeer::GivePiece { tick, offset, bytes } => Some((*tick, *offset, *bytes)),
            _ => None,
        };
        self.messages.iter().filter_map(|(_, message)| piece(message)).collect()
    }

    fn welcome(&self) -> Option<(Tick, Option<SaveHead>)> {
        self.messages.iter().find_map(|(_, message)| match message {
            ToPeer::Welcome { first, save, .. } => Some((*first, save.clone())),
            _ => None,
        })
    }
}

#[test]
fn players_are_asked_for_a_save_only_if_the_driver_has_none() {
    let state = [7; 100];
    for knows in [true, false] {
        let mut den = Den::new(false);
        let mut config = saving_every(10);
        config.compaction.has_keeper = true;
        den.relay = Relay::new(config);
        den.join(1);
        let came = den.run_to(630, &[1], &state);
        let [wanted] = came.wanted[..] else { panic!("asked once: {:?}", came.wanted) };
        assert_eq!((came.asked(), came.saves), (None, 0));
        // A peer that joins meanwhile waits for the save.
        assert_eq!(den.join(2).welcome(), None);
        let id = den.id();
        let came = den.handle(Input::Made(id, wanted, knows.then(|| state.to_vec())));
        if knows {
            assert_eq!((came.asked(), came.saves), (None, 1));
            assert_eq!(came.welcome().unwrap().1.unwrap().tick, wanted);
            assert_eq!(snapshots(&came.records), [wanted]);
        } else {
            let agreed = den.session().agreement().agreed();
            assert_eq!((came.asked(), came.saves), (Some((1, agreed)), 0));
        }
    }
}

/// Gives a whole state to the relay that asks for it.
fn give(den: &mut Den, member: u64, tick: Tick, state: &[u8]) -> Came {
    let mut came = den.say(member, &ToRelay::Offer { tick, bytes: Some(state.len() as u32) });
    while let Some((tick, offset, bytes)) = came.pieces().last().copied() {
        let bytes = state[offset as usize..][..bytes as usize].to_vec();
        let next = den.say(member, &ToRelay::Piece(Piece { tick, offset, bytes }));
        came.messages.clear();
        came.add(next);
    }
    came
}

#[test]
fn a_peer_that_lies_or_is_silent_gives_no_save() {
    let (mut den, state) = (Den::new(false), vec![7u8; 5_000]);
    (1..=3).for_each(|member| drop(den.join(member)));
    let came = den.run_to(630, &[1, 2, 3], &state);
    let (first, tick) = came.asked().unwrap();
    assert!(tick > Tick(560));
    // The bytes do not have the agreed hash.
    let came = give(&mut den, first, tick, &[8; 5_000]);
    assert_eq!((came.saves, den.session().save()), (0, None));
    let (second, _) = came.asked().unwrap();
    assert_ne!(first, second);
    // Nothing arrives.
    let came = den.run_to(630 + 60 * 4, &[1, 2, 3], &state);
    let (third, tick) = came.asked().unwrap();
    assert!(third != first && third != second);
    let came = give(&mut den, third, tick, &state);
    assert_eq!(came.saves, 1);
    let save = den.session().save().unwrap();
    assert_eq!((save.tick, save.hash, &save.state), (tick, HASH(&state), &state));
    let marker = Record::Snapshot { tick, hash: HASH(&state), place: KEPT_IN.into() };
    assert!(came.records.contains(&marker));
}

#[test]
fn if_no_peer_can_give_a_save_a_replay_is_asked_for() {
    let (mut den, state) = (Den::new(false), vec![7u8; 50]);
    den.join(1);
    let came = den.run_to(630, &[1], &state);
    let (_, tick) = came.asked().unwrap();
    // It has no state, and then none for a future tick either.
    let came = den.say(1, &ToRelay::Offer { tick, bytes: None });
    let (_, ahead) = came.asked().unwrap();
    assert!(ahead > tick);
    let came = den.say(1, &ToRelay::Offer { tick: ahead, bytes: None });
    let wanted = came.wanted[0];
    let came = den.handle(Input::Made(den.id(), wanted, Some(vec![8; 50])));
    assert_eq!(came.saves, 0, "the players agree on something else");
    let came = den.handle(Input::Made(den.id(), wanted, Some(state.clone())));
    assert_eq!((came.saves, den.session().save().unwrap().tick), (1, wanted));
}

#[test]
fn the_end_of_a_session_that_is_stored_is_saved_by_replay() {
    let (mut den, state) = (Den::new(true), vec![7u8; 50]);
    den.join(1);
    den.run_to(200, &[1], &state);
    den.handle(Input::Closed(Member(1), Leaving::Left));
    let came = den.run_to(260, &[], &state);
    assert_eq!(came.wanted, [Tick(201)], "once, after the tick in which the last one left");
    let came = den.handle(Input::Made(den.id(), Tick(201), Some(state)));
    assert_eq!(came.saves, 1);
    assert!(!den.session().save().unwrap().table.is_taken(Seat(0)));
}

#[test]
fn nothing_is_forgotten_before_its_save_is_stored() {
    let (mut den, state) = (Den::new(true), vec![7u8; 50]);
    den.join(1);
    let mut ticks = 0;
    let mut saved = vec![];
    while saved.len() < 8 {
        ticks += 30;
        if let Some((member, tick)) = den.run_to(ticks, &[1], &state).asked() {
            let came = give(&mut den, member, tick, &state);
            assert!(came.saves == 1 && came.records.is_empty());
            saved.push(tick);
        }
    }
    assert!(den.session().history().is_whole() && ticks > 70 * 60);
    let tick = *saved.last().unwrap();
    let came = den.handle(Input::Saved(den.id(), tick));
    let marker = Record::Snapshot { tick, hash: HASH(&state), place: STORED_AS.into() };
    assert_eq!(came.records, [marker]);
    assert!(!den.session().history().is_whole());
    assert!(den.session().history().first().0 + 60 * 60 <= ticks, "a minute is kept for those who come back");
    // A second report changes nothing.
    assert!(den.handle(Input::Saved(den.id(), tick)).records.is_empty());
}

#[test]
fn a_join_waits_for_a_save_only_for_a_limited_time() {
    let (mut den, state) = (Den::new(false), vec![7u8; 50]);
    den.join(1);
    den.run_to(500, &[1], &state);
    let came = den.join(2);
    assert_eq!(came.welcome(), None);
    let (giver, tick) = came.asked().unwrap();
    assert_eq!(giver, 1);
    let asked_at = den.now;
    let mut late = Came::default();
    while late.welcome().is_none() {
        den.now = den.now.plus_micros(1_000);
        late.add(den.handle(Input::Timeout));
    }
    assert!((JOIN_PATIENCE_US..JOIN_PATIENCE_US + 40_000).contains(&den.now.micros_since(asked_at)));
    assert_eq!(late.welcome(), Some((Tick(1), None)));
    // A save that comes later is used for the next joiner.
    assert_eq!(give(&mut den, 1, tick, &state).saves, 1);
    let (first, save) = den.join(3).welcome().unwrap();
    assert_eq!((first, save.unwrap().hash), (tick.next(), HASH(&state)));
}

/// What a peer needs to catch up is kept for a minute; after that it begins again with a newer save.
#[test]
fn a_joiner_that_falls_behind_begins_again_with_a_newer_save() {
    let (mut den, state) = (Den::new(false), vec![7u8; 50]);
    den.join(1);
    let came = den.run_to(630, &[1], &state);
    let (_, tick) = came.asked().unwrap();
    give(&mut den, 1, tick, &state);
    let (first, _) = den.join(2).welcome().unwrap();
    assert_eq!(first, tick.next());
    // No save is made while it catches up, for a minute.
    let came = den.run_to(630 + 59 * 60, &[1], &state);
    assert!(came.asked().is_none() && den.session().history().first() <= first);
    for round in 0..200 {
        if let Some((giver, tick)) = den.run_to(630 + 59 * 60 + round * 60, &[1], &state).asked() {
            assert_eq!(give(&mut den, giver, tick, &state).saves, 1);
        }
    }
    assert!(den.session().history().first() > first);
    let came = den.say(2, &ToRelay::Resend { from: first });
    let newest = den.session().save().unwrap().tick;
    let load = |message: &ToPeer| matches!(message, ToPeer::Load(head) if head.tick == newest);
    assert!(came.closed.is_empty() && came.messages.iter().any(|(_, message)| load(message)));
    let came = den.say(2, &ToRelay::Want { tick: newest, offset: 0 });
    assert!(matches!(&came.messages[..], [(Member(2), ToPeer::Piece(piece))] if piece.bytes == state));
    let came = den.say(2, &ToRelay::Resend { from: newest.next() });
    assert!(matches!(&came.messages[..], [] | [(Member(2), ToPeer::Ticks { .. }), ..]));
}

/// A peer's requests for pieces are answered, and other requests close its link.
#[test]
fn pieces_are_sent_as_asked_for_and_nonsense_is_refused() {
    let (mut den, state) = (Den::new(false), (0..40_000u32).map(|at| at as u8).collect::<Vec<_>>());
    den.join(1);
    let came = den.run_to(630, &[1], &state);
    let (_, tick) = came.asked().unwrap();
    assert_eq!(give(&mut den, 1, tick, &state).saves, 1);
    let (_, head) = den.join(2).welcome().unwrap();
    assert_eq!(head.unwrap().bytes, 40_000);
    let mut got = vec![];
    for offset in (0..40_000).step_by(PIECE_BYTES) {
        let came = den.say(2, &ToRelay::Want { tick, offset });
        let piece = came.messages.iter().find_map(|(_, message)| match message {
            ToPeer::Piece(piece) => Some(piece.clone()),
            _ => None,
        });
        let piece = piece.unwrap();
        assert_eq!((piece.tick, piece.offset), (tick, offset));
        got.extend(piece.bytes);
    }
    assert_eq!(got, state);
    // Another tick may be of an earlier save; peers that play need no pieces.
    assert!(den.say(2, &ToRelay::Want { tick: Tick(3), offset: 0 }).closed.is_empty());
    assert!(den.say(1, &ToRelay::Want { tick, offset: 0 }).messages.is_empty());
    for (member, offset) in [(3, 1), (4, 49_152)] {
        den.join(member);
        assert_eq!(den.say(member, &ToRelay::Want { tick, offset }).closed, [Member(member)]);
    }
}

type Small = Heavy<60>;

/// Regression: a peer kept the state of the session before while it loaded the next one's save, and resumed with it.
#[test]
fn state_of_another_session_is_dropped_before_a_save_comes() {
    let good = to_canonical(&Small::new(&50_000)).unwrap();
    let (mut peer, _) = peer_that_loads(head_of(&to_canonical(&Small::new(&5)).unwrap()));
    let bytes = to_canonical(&Small::new(&5)).unwrap();
    tell(&mut peer, &ToPeer::Piece(Piece { tick: Tick(300), offset: 0, bytes })).unwrap();
    assert_eq!(peer.confirmed().map(|(tick, _)| tick), Some(Tick(300)));
    peer.rejoin(Time::ZERO, Path::default());
    said(&mut peer);
    let claim = Claim {
        run: 2,
        member: 0,
        seat: None,
        since: Tick::ZERO,
        restarts: 0,
        from: Tick::ZERO,
        token: [1; 16],
    };
    tell(&mut peer, &welcome_with(SaveHead { tick: Tick(30), ..head_of(&good) }, claim)).unwrap();
    assert!(peer.confirmed().is_none());
    peer.rejoin(Time::ZERO, Path::default());
    let resume = Some(Resume { claim, have: Tick::ZERO });
    assert!(matches!(&said(&mut peer)[..], [ToRelay::Join(join)] if join.resume == resume));
}

fn peer_that_loads(head: SaveHead) -> (Peer<Small>, Vec<ToRelay>) {
    let join = JoinAs {
        setup: 0,
        seed: 0,
        seats: 2,
        wait_for: 1,
        name: "p1".into(),
        commit: String::new(),
        watch: false,
        listed: false,
    };
    let mut peer = Peer::<Small>::new(Time::ZERO, &join, Path::default());
    tell(
        &mut peer,
        &welcome_with(
            head,
            Claim {
                run: 1,
                member: 0,
                seat: None,
                since: Tick::ZERO,
                restarts: 0,
                from: Tick::ZERO,
                token: [1; 16],
            },
        ),
    )
    .unwrap();
    let said = said(&mut peer);
    (peer, said)
}

fn welcome_with(head: SaveHead, claim: Claim) -> ToPeer {
    ToPeer::Welcome {
        seat: Some(Seat(0)),
        closed: head.tick + 100,
        first: head.tick.next(),
        age_us: 0,
        setup: to_canonical(&0u32).unwrap(),
        rate: 60,
        claim,
        save: Some(head),
        about: About::default(),
    }
}

fn tell(peer: &mut Peer<Small>, message: &ToPeer) -> Result<(), sametick_wire::Malformed> {
    peer.handle(Time::ZERO, peer::Input::Message(Channel::Control, &message::to_bytes(message)))
}

fn said(peer: &mut Peer<Small>) -> Vec<ToRelay> {
    let (mut messages, mut buf) = (vec![], vec![]);
    while let peer::Output::Send(_) = peer.poll_output(&mut buf) {
        messages.push(message::from_bytes(&buf).unwrap());
    }
    messages
}

fn head_of(bytes: &[u8]) -> SaveHead {
    let table = Table::default().to_bytes();
    SaveHead { tick: Tick(300), hash: HASH(bytes), bytes: bytes.len() as u32, table }
}

/// Plays this many quiet ticks into a history, and returns the relay's messages with them.
fn quiet_ticks(count: u32) -> Vec<ToPeer> {
    let mut history = History::default();
    (0..count).for_each(|_| history.push(&Inputs::new()));
    let (mut from, mut all) = (Tick(1), vec![]);
    while let Some(excerpt) = history.excerpt(from) {
        from = excerpt.first + excerpt.ticks;
        let Excerpt { first, ticks, start, bytes } = excerpt;
        all.push(ToPeer::Ticks { first, ticks, table: start.to_bytes(), bytes });
    }
    all
}

/// However much there is to catch up with, a call returns quickly: on a slow machine after few ticks.
#[test]
fn catching_up_comes_in_slices() {
    for (slice_us, most) in [(0, 4_096), (30_000, 128)] {
        let bytes = to_canonical(&Small::new(&0)).unwrap();
        let head = SaveHead { tick: Tick(1), ..head_of(&bytes) };
        let (mut peer, _) = peer_that_loads(head);
        tell(&mut peer, &ToPeer::Piece(Piece { tick: Tick(1), offset: 0, bytes })).unwrap();
        quiet_ticks(20_000).iter().for_each(|ticks| tell(&mut peer, ticks).unwrap());
        let (mut now, mut slices) = (Time::ZERO, vec![]);
        while peer.confirmed().unwrap().0 < Tick(20_000) {
            let before = peer.confirmed().unwrap().0;
            peer.handle(now, peer::Input::Timeout).unwrap();
            let mut buf = vec![];
            let output = loop {
                match peer.poll_output(&mut buf) {
                    peer::Output::Send(_) => {}
                    output => break output,
                }
            };
            let after = peer.confirmed().unwrap().0;
            if after < Tick(20_000) {
                assert_eq!(output, peer::Output::WakeAt(now), "it wants to go on at once");
                assert_eq!(*peer.status(), Status::CatchingUp);
            }
            slices.push(after.ticks_since(before));
            now = now.plus_micros(slice_us);
        }
        assert!(slices.iter().all(|ticks| *ticks <= most), "{slices:?}");
        assert!(slices.len() < 20_000 / 16 + 2 && (slice_us == 0) == (slices.len() < 30), "{}", slices.len());
    }
}

#[test]
fn a_save_unlike_its_head_is_refused_with_a_reason() {
    let good = to_canonical(&Small::new(&50)).unwrap();
    let lies: [(SaveHead, Vec<u8>); 3] = [
        (SaveHead { hash: StateHash(1), ..head_of(&good) }, good.clone()),
        (head_of(&[9; 20]), vec![9; 20]),
        (head_of(&good), vec![0; good.len()]),
    ];
    for (head, bytes) in lies {
        let (mut peer, _) = peer_that_loads(head);
        tell(&mut peer, &ToPeer::Piece(Piece { tick: Tick(300), offset: 0, bytes })).unwrap();
        assert_eq!(*peer.status(), Status::Refused(WRONG_SAVE.into()));
        assert!(peer.confirmed().is_none());
    }
    let (mut peer, wants) = peer_that_loads(head_of(&good));
    assert!(wants.contains(&ToRelay::Want { tick: Tick(300), offset: 0 }));
    tell(&mut peer, &ToPeer::Piece(Piece { tick: Tick(300), offset: 0, bytes: good })).unwrap();
    assert_eq!((peer.status(), peer.confirmed().unwrap().0), (&Status::CatchingUp, Tick(300)));
    assert_eq!(said(&mut peer), [ToRelay::Resend { from: Tick(301) }]);
}

#[test]
fn pieces_that_were_not_asked_for_are_a_violation() {
    let good = to_canonical(&Small::new(&50_000)).unwrap();
    for (offset, length) in [(1, PIECE_BYTES), (0, PIECE_BYTES - 1), (0, PIECE_BYTES + 1)] {
        let (mut peer, _) = peer_that_loads(head_of(&good));
        let bytes = vec![0; length];
        assert!(tell(&mut peer, &ToPeer::Piece(Piece { tick: Tick(300), offset, bytes })).is_err());
    }
    let (mut peer, _) = peer_that_loads(head_of(&good));
    tell(&mut peer, &ToPeer::Piece(Piece { tick: Tick(299), offset: 7, bytes: vec![] })).unwrap();
}

#[test]
fn received_pieces_are_not_asked_for_again_on_a_new_link() {
    let good = to_canonical(&Small::new(&50_000)).unwrap();
    let (mut peer, wants) = peer_that_loads(head_of(&good));
    assert_eq!(
        wants.len(),
        1 + good.len().div_ceil(PIECE_BYTES),
        "the join, and all pieces of so small a save"
    );
    let bytes = good[..PIECE_BYTES].to_vec();
    tell(&mut peer, &ToPeer::Piece(Piece { tick: Tick(300), offset: 0, bytes })).unwrap();
    assert_eq!(peer.catching_up().bytes, (PIECE_BYTES as u32, good.len() as u32));
    said(&mut peer);
    peer.rejoin(Time::ZERO, Path::default());
    tell(
        &mut peer,
        &welcome_with(
            head_of(&good),
            Claim {
                run: 1,
                member: 0,
                seat: None,
                since: Tick::ZERO,
                restarts: 0,
                from: Tick::ZERO,
                token: [2; 16],
            },
        ),
    )
    .unwrap();
    let again = said(&mut peer);
    let first = ToRelay::Want { tick: Tick(300), offset: PIECE_BYTES as u32 };
    assert_eq!(again.iter().find(|it| matches!(it, ToRelay::Want { .. })), Some(&first));
}
