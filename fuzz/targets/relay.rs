//! Whatever four links send to a relay, in any order and at any times, it does not panic, send for ever or use much
//! memory.
//!
//! The input: steps. A step is one byte (member, action, and for some an argument) and for messages a part. Some
//! messages are made here, so that sessions begin, close ticks, desync and are judged. The relay may be killed in
//! between: it then finds what it wrote, less the last ticks, or arbitrary content.
#![cfg_attr(fuzzing, no_main)]

use std::collections::{BTreeMap, BTreeSet};

use sametick_fuzz::part;
use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::compaction::CompactionConfig;
use sametick_lockstep::history::History;
use sametick_lockstep::message::{
    Bring, Claim, Join, Piece, Resume, SaveHead, StateAt, ToPeer, ToRelay, from_bytes, put_inputs, to_bytes,
};
use sametick_lockstep::relay::{Found, Input, Kept, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_lockstep::session::{Facts, Member, Save, SessionId};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{BuildId, Inputs, SchemaHash, Seat, StateHash, Tick, TickRate, Time};
use sametick_wire::Channel;
use sametick_wire::identity::PlayerId;

/// From no time to a session that ends.
const STEPS_US: [u64; 4] = [1_000, 16_667, 500_000, 11_000_000];

/// Each closes up to 30 ticks, which are kept: caused by the clock, not by a peer.
const MAX_TIMEOUTS: u32 = 40;

/// How many ticks the log may have lost when the relay is killed.
const LOST_TICKS: [usize; 4] = [0, 1, 20, 200];

/// The most outputs of one step: for each link the closed ticks, history, reports.
const MAX_OUTPUTS: usize = 4_000;

/// Four sessions at most, each with buffers for early inputs, its last ticks, and the ticks closed in the available
/// time; and the log that is written here.
const ALLOWANCE: usize = 4 * 500_000;

/// Saves often enough for the few seconds that a world lives.
const OFTEN: CompactionConfig = CompactionConfig {
    every_us: 1_000_000,
    hot_ticks: 60,
    join_hot_us: 100_000,
    not_before_us: 100_000,
    has_store: false,
    has_keeper: false,
};

const CONFIG: RelayConfig =
    RelayConfig { ticks_per_packet: None, secret: [7; 32], compaction: OFTEN, finds: true };

sametick_fuzz::target!(allowing ALLOWANCE, |bytes: &[u8]| {
    let mut world = World {
        relay: Relay::new(CONFIG),
        now: Time::ZERO,
        buf: Vec::new(),
        timeouts: 0,
        judge: None,
        wanted: None,
        first: 0,
        logs: BTreeMap::new(),
        running: BTreeMap::new(),
        looked_for: BTreeSet::new(),
        next_uid: 1,
        asked: Tick::ZERO,
        claims: [None; 4],
    };
    let mut rest = bytes;
    while let Some((step, after)) = rest.split_first() {
        rest = world.step(*step, after);
        world.drain();
    }
});

/// The written log of a session.
struct Log {
    facts: Facts,
    uid: u64,
    restarts: u32,
    save: Option<Save>,
    /// The ticks after `before`.
    ticks: Vec<Inputs<Opaque>>,
    before: Tick,
}

impl Log {
    fn kept(&self) -> Kept {
        let save = self.save.clone().filter(|save| self.before <= save.tick && save.tick <= self.last());
        let skipped = save.as_ref().map_or(0, |save| save.tick.ticks_since(self.before) as usize);
        let mut kept = Kept::new(self.facts.clone(), self.uid, self.restarts, save);
        self.ticks.iter().skip(skipped).for_each(|rows| kept.push(rows));
        kept
    }

    fn last(&self) -> Tick {
        self.before + self.ticks.len() as u32
    }
}

struct World {
    relay: Relay,
    now: Time,
    buf: Vec<u8>,
    timeouts: u32,
    /// The desync that the relay wants to have judged.
    judge: Option<(SessionId, Tick)>,
    /// The session and tick it wants a save of.
    wanted: Option<(SessionId, Tick)>,
    /// The first of the four current links: others after each restart.
    first: u64,
    logs: BTreeMap<SessionKey, Log>,
    running: BTreeMap<SessionId, SessionKey>,
    looked_for: BTreeSet<SessionKey>,
    next_uid: u64,
    /// The tick of the last requested part of a state.
    asked: Tick,
    /// The last claims of the clients on each link.
    claims: [Option<Claim>; 4],
}

impl World {
    /// Returns the rest of the input.
    fn step<'a>(&mut self, step: u8, rest: &'a [u8]) -> &'a [u8] {
        let (member, argument) = (Member(self.first + u64::from(step & 3)), step >> 5);
        match step >> 2 & 7 {
            0 => {
                let schema = SchemaHash::from_bytes([0; SchemaHash::LEN]);
                self.relay.handle(self.now, Input::Opened(member, key(argument), schema));
            }
            1 => {
                let claim = self.claims[usize::from(step & 3)].filter(|_| argument & 4 != 0);
                let resume = claim.map(|claim| Resume { claim, have: self.written() });
                let join = Join { resume, ..join(argument) };
                self.say(member, Channel::Control, &to_bytes(&ToRelay::Join(join)));
            }
            2 => {
                let (part, after) = part(rest);
                let input = Opaque::new(&part[..part.len().min(32)]).expect("short");
                let mut inputs = vec![];
                put_inputs(&mut inputs, self.closed() + u32::from(argument), [&input; 3].into_iter());
                self.say(member, Channel::Input, &inputs);
                return after;
            }
            3 => {
                let tick = Tick(self.closed().0 / 30 * 30);
                self.say(member, Channel::Control, &to_bytes(&ToRelay::Check { tick, hash: hash(argument) }));
            }
            4 => self.answer(member, argument),
            5 if argument == 4 => self.restart(LOST_TICKS[usize::from(step & 3)]),
            5 if argument == 5 => self.find(None),
            5 if argument == 6 => {
                let (part, after) = part(rest);
                self.find(Some(part));
                return after;
            }
            5 if argument == 7 => self.give(member),
            5 if self.timeouts < MAX_TIMEOUTS => {
                self.timeouts += 1;
                self.now = self.now.plus_micros(STEPS_US[usize::from(argument) % 4]);
                self.relay.handle(self.now, Input::Timeout);
            }
            6 if argument == 7 => self.relay.handle(self.now, Input::Kick(member, "enough")),
            6 if argument >= 3 => self.give_or_want(member, argument),
            6 => self.relay.handle(self.now, Input::Closed(member, Leaving::TimedOut)),
            7 if argument >= 6 => {
                let Some((what, after)) = rest.split_first() else { return rest };
                let input = match argument {
                    6 => Input::Assigned(member, terms(*what)),
                    _ => Input::End(key(*what), "enough"),
                };
                self.relay.handle(self.now, input);
                return after;
            }
            _ => {
                let (part, after) = part(rest);
                self.say(member, Channel::ALL[usize::from(argument) % 6], part);
                return after;
            }
        }
        rest
    }

    /// Kills and restarts the relay; its log has lost the last ticks.
    fn restart(&mut self, lost: usize) {
        self.relay = Relay::new(CONFIG);
        self.first += 4;
        (self.judge, self.wanted) = (None, None);
        self.running.clear();
        self.looked_for.clear();
        for log in self.logs.values_mut() {
            log.ticks.truncate(log.ticks.len().saturating_sub(lost));
        }
    }

    /// Reports the remains of the requested sessions: what was written, or what these bytes make.
    fn find(&mut self, bytes: Option<&[u8]>) {
        for key in std::mem::take(&mut self.looked_for) {
            let kept = match bytes {
                Some(bytes) => {
                    let log = any_log(&key, self.next_uid, bytes);
                    let kept = log.kept();
                    self.logs.insert(key.clone(), log);
                    Some(kept)
                }
                None => self.logs.get(&key).map(Log::kept),
            };
            let uid = self.next_uid;
            self.next_uid += 1;
            let found = kept.map_or(Found::New { uid }, |kept| Found::Kept(Box::new(kept)));
            self.relay.handle(self.now, Input::Found(key, found));
        }
    }

    /// Sends the last written ticks unchanged to a relay that may have lost some.
    fn give(&mut self, member: Member) {
        let Some(log) = self.logs.values().next() else { return };
        let mut history =
            History::after(log.before, log.save.as_ref().map_or_else(Table::default, |it| it.table.clone()));
        if log.save.is_none() || log.save.as_ref().is_some_and(|save| save.tick == log.before) {
            log.ticks.iter().for_each(|rows| history.push(rows));
        }
        let from = Tick(history.last().0.saturating_sub(100).max(history.first().0));
        let Some(excerpt) = history.excerpt(from) else { return };
        let (first, ticks, table) = (excerpt.first, excerpt.ticks, excerpt.start.to_bytes());
        self.say(
            member,
            Channel::Chunks,
            &to_bytes(&ToRelay::Ticks { first, ticks, table, bytes: excerpt.bytes }),
        );
    }

    /// The last written tick of the first session, and some more for clients that do not know of the crash.
    fn written(&self) -> Tick {
        self.logs.values().next().map_or(Tick::ZERO, |log| log.last() + 20)
    }

    fn closed(&self) -> Tick {
        self.relay.sessions().next().map_or(Tick::ZERO, |(_, session)| session.history().last())
    }

    /// Sends an answer to any request, whether there was one or not.
    fn answer(&mut self, member: Member, argument: u8) {
        let tick = self.closed();
        let message = match argument {
            0..4 => {
                let hashes = (0..30).map(|at| hash(argument * u8::from(at > 20))).collect();
                ToRelay::Hashes { first: Tick(tick.0.saturating_sub(30)), hashes }
            }
            4 | 5 => ToRelay::State(StateAt { tick, parts: vec![], bytes: vec![argument] }),
            6 => ToRelay::Resynced { tick, fields: vec![] },
            _ => {
                if let Some((id, tick)) = self.judge.take() {
                    self.relay.handle(self.now, Input::Verdict(id, tick, Some(vec![4])));
                }
                return;
            }
        };
        self.say(member, Channel::Control, &to_bytes(&message));
    }

    /// Sends a message about saves, whether it was requested or not.
    fn give_or_want(&mut self, member: Member, argument: u8) {
        let tick = Tick(self.closed().0 / 30 * 30);
        let message = match argument {
            3 => ToRelay::Offer { tick, bytes: Some(1) },
            4 => ToRelay::Piece(Piece { tick: self.asked.max(tick), offset: 0, bytes: vec![4] }),
            5 => ToRelay::Want { tick, offset: 0 },
            _ => {
                if let Some((id, tick)) = self.wanted.take() {
                    self.relay.handle(self.now, Input::Made(id, tick, Some(vec![4])));
                    self.relay.handle(self.now, Input::Saved(id, tick));
                }
                return;
            }
        };
        self.say(member, Channel::Control, &to_bytes(&message));
    }

    fn on_begun(&mut self, id: SessionId) {
        let Some(facts) = self.relay.session(id).map(|session| session.facts().clone()) else { return };
        let key = SessionKey { build: facts.build, name: facts.name.clone() };
        // A session that was brought begins with a save.
        let save = self.relay.session(id).and_then(|session| session.save()).cloned();
        let before = save.as_ref().map_or(Tick::ZERO, |save| save.tick);
        let log = Log { facts, uid: id.0, restarts: 0, save, ticks: vec![], before };
        self.logs.insert(key.clone(), log);
        self.running.insert(id, key);
    }

    fn say(&mut self, member: Member, channel: Channel, bytes: &[u8]) {
        self.relay.handle(self.now, Input::Message(member, channel, bytes));
    }

    /// Checks that a client with assigned terms takes part once, on its own seat.
    fn check_terms(&self) {
        for (_, session) in self.relay.sessions() {
            let known = || session.participants().filter(|it| it.player.is_some());
            let players: BTreeSet<_> = known().map(|it| it.player).collect();
            let seats: BTreeSet<_> = session.participants().filter_map(|it| it.seat).collect();
            let seated = session.participants().filter(|it| it.seat.is_some()).count();
            assert_eq!((players.len(), seats.len()), (known().count(), seated));
        }
    }

    fn drain(&mut self) {
        for _ in 0..MAX_OUTPUTS {
            match self.relay.poll_output(&mut self.buf) {
                Output::WakeAt(_) | Output::Wait => return self.check_terms(),
                Output::Judge(id, tick) => self.judge = Some((id, tick)),
                Output::WantSave(id, tick) => self.wanted = Some((id, tick)),
                Output::Save(id) => {
                    let save = self.relay.session(id).and_then(|session| session.save()).cloned();
                    assert!(save.as_ref().is_some_and(|save| StateHash::of_bytes(&save.state) == save.hash));
                    if let Some(log) = self.running.get(&id).and_then(|key| self.logs.get_mut(key)) {
                        log.save = save;
                    }
                }
                Output::Closed(id, tick) => {
                    let rows = self.relay.session(id).and_then(|session| session.rows(tick));
                    let rows = rows.expect("a closed tick can be read when it is announced");
                    if let Some(log) = self.running.get(&id).and_then(|key| self.logs.get_mut(key)) {
                        assert_eq!(log.last().next(), tick, "ticks follow each other");
                        log.ticks.push(rows.clone());
                    }
                }
                Output::Record(id, Record::Rewind { to }) => {
                    if let Some(log) = self.running.get(&id).and_then(|key| self.logs.get_mut(key)) {
                        assert!(to >= log.before && to <= log.last(), "what is void was there");
                        log.restarts += 1;
                        log.ticks.truncate(to.ticks_since(log.before) as usize);
                    }
                }
                Output::Find(key) => {
                    self.looked_for.insert(key);
                }
                Output::Begun(id) | Output::Brought(id) => self.on_begun(id),
                Output::Resumed(id) => {
                    let key = self.logs.iter().find(|(_, log)| log.uid == id.0).map(|(key, _)| key.clone());
                    self.running.extend(key.map(|key| (id, key)));
                }
                Output::Ended(id) => {
                    self.running.remove(&id);
                }
                Output::Send(to, Channel::Control) => match from_bytes(&self.buf) {
                    Ok(ToPeer::Welcome { claim, .. }) => self.claims[(to.0 % 4) as usize] = Some(claim),
                    Ok(ToPeer::GivePiece { tick, .. }) => self.asked = tick,
                    _ => {}
                },
                _ => {}
            }
        }
        panic!("the relay talks for ever");
    }
}

fn key(argument: u8) -> SessionKey {
    let name = if argument & 1 == 0 { "den" } else { "attic" };
    SessionKey { build: BuildId::from_bytes([argument >> 1; 16]), name: name.into() }
}

/// One of four players, on any seat or as a spectator.
fn terms(what: u8) -> SeatAssignment {
    SeatAssignment {
        player: PlayerId(u128::from(what & 3)),
        name: String::new(),
        seat: (what & 4 == 0).then_some(Seat(u16::from(what >> 3 & 3))),
        game: "fuzz".into(),
        rate: TickRate::hz(60),
        setup: vec![],
        seed: 0,
        seats: 3,
        listed: false,
    }
}

/// A log from these bytes: the first three set the number of resumes, whether there is a save, and its tick; each of
/// the others is a tick of four seats.
fn any_log(key: &SessionKey, uid: u64, bytes: &[u8]) -> Log {
    let (head, bytes) = bytes.split_at(bytes.len().min(3));
    let [restarts, after, has_save] = [0, 1, 2].map(|at| head.get(at).copied().unwrap_or(0));
    let facts = Facts {
        name: key.name.clone(),
        game: "fuzz".into(),
        build: key.build,
        commit: String::new(),
        schema: SchemaHash::from_bytes([0; SchemaHash::LEN]),
        setup: vec![],
        seed: 0,
        rate: TickRate::hz(60),
        seats: 3,
        listed: false,
    };
    let (mut history, mut ticks) = (History::default(), vec![]);
    for byte in bytes {
        let mut rows = Inputs::new();
        for seat in (0..4).map(Seat) {
            let what = byte >> (2 * seat.0) & 3;
            match (history.table().is_taken(seat), what) {
                (false, 3) => {
                    rows.join(seat);
                    rows.omit(seat);
                }
                (false, _) => {}
                (true, 0) => rows.omit(seat),
                (true, _) => rows.set(seat, Opaque::new(&[what]).expect("short")),
            }
            if what == 2 && history.table().is_taken(seat) {
                rows.leave(seat);
            }
        }
        history.push(&rows);
        ticks.push(rows);
    }
    // Nothing before the save is written.
    let saved = Tick(u32::from(after).min(history.last().0));
    let is_saved = has_save & 1 != 0 && saved > Tick::ZERO;
    let state = vec![has_save];
    let save = history.table_after(saved).filter(|_| is_saved).map(|table| Save {
        tick: saved,
        hash: StateHash::of_bytes(&state),
        state,
        table,
    });
    let before = save.as_ref().map_or(Tick::ZERO, |save| save.tick);
    ticks.drain(..before.0 as usize);
    Log { facts, uid, restarts: u32::from(restarts), save, ticks, before }
}

fn hash(argument: u8) -> StateHash {
    StateHash(u64::from(argument))
}

fn join(argument: u8) -> Join {
    Join {
        game: "fuzz".into(),
        commit: String::new(),
        setup: vec![],
        seed: 0,
        rate: 60,
        seats: 3,
        wait_for: u16::from(argument & 1),
        name: String::new(),
        watch: argument & 2 != 0,
        seat: None,
        listed: false,
        resume: None,
        bring: (argument == 5).then(bring),
    }
}

/// A copy whose only byte is the one that is given for every state.
fn bring() -> Bring {
    let (tick, hash) = (Tick(30_000), StateHash::of_bytes(&[4]));
    let save = SaveHead { tick, hash, bytes: 1, table: Table::default().to_bytes() };
    Bring { save, started_unix_ms: 5 }
}
