//! Whatever four links say to a relay, in whatever order and at whatever times, it does not panic, talk for ever or take
//! much memory.
//!
//! The input: steps. A step is one byte (who, what, and for some an argument) and for messages a part. Some messages are
//! made here, so that sessions begin, close ticks, differ and are judged.
#![cfg_attr(fuzzing, no_main)]

use sametick_fuzz::part;
use sametick_lockstep::compaction::CompactionConfig;
use sametick_lockstep::message::{Join, Piece, StateAt, ToRelay, put_inputs, to_bytes};
use sametick_lockstep::relay::{Input, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::Opaque;
use sametick_lockstep::session::{Member, SessionId};
use sametick_sim::record::Leaving;
use sametick_sim::{BuildId, SchemaHash, StateHash, Tick, Time};
use sametick_wire::Channel;

/// From nothing to a session that is given up.
const STEPS_US: [u64; 4] = [1_000, 16_667, 500_000, 11_000_000];

/// Each closes up to 30 ticks, which are kept: not a stranger's doing, but the clock's.
const MAX_TIMEOUTS: u32 = 40;

/// What one step may lead to: for each link the ticks that were closed, history, reports.
const MAX_OUTPUTS: usize = 2_000;

/// Four sessions at most, each with places for inputs that come early, its last ticks, and what was closed in the time
/// that may pass.
const ALLOWANCE: usize = 4 * 100_000;

/// So often that saves are asked for in the few seconds that a world lives.
const OFTEN: CompactionConfig = CompactionConfig {
    every_us: 1_000_000,
    hot_ticks: 60,
    join_hot_us: 100_000,
    not_before_us: 100_000,
    has_store: false,
};

sametick_fuzz::target!(allowing ALLOWANCE, |bytes: &[u8]| {
    let mut world = World {
        relay: Relay::new(RelayConfig { compaction: OFTEN, ..RelayConfig::default() }),
        now: Time::ZERO,
        buf: Vec::new(),
        timeouts: 0,
        judge: None,
        wanted: None,
    };
    let mut rest = bytes;
    while let Some((step, after)) = rest.split_first() {
        rest = world.step(*step, after);
        world.drain();
    }
});

struct World {
    relay: Relay,
    now: Time,
    buf: Vec<u8>,
    timeouts: u32,
    /// What the relay wants to have judged.
    judge: Option<(SessionId, Tick)>,
    /// Of what it wants a save.
    wanted: Option<(SessionId, Tick)>,
}

impl World {
    /// Returns what is left of the input.
    fn step<'a>(&mut self, step: u8, rest: &'a [u8]) -> &'a [u8] {
        let (member, argument) = (Member(u64::from(step & 3)), step >> 5);
        match step >> 2 & 7 {
            0 => {
                let name = if argument & 1 == 0 { "den" } else { "attic" };
                let key = SessionKey { build: BuildId::from_bytes([argument >> 1; 16]), name: name.into() };
                let schema = SchemaHash::from_bytes([0; SchemaHash::LEN]);
                self.relay.handle(self.now, Input::Opened(member, key, schema));
            }
            1 => self.say(member, Channel::Control, &to_bytes(&ToRelay::Join(join(argument)))),
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
            5 if self.timeouts < MAX_TIMEOUTS => {
                self.timeouts += 1;
                self.now = self.now.plus_micros(STEPS_US[usize::from(argument) % 4]);
                self.relay.handle(self.now, Input::Timeout);
            }
            6 if argument == 7 => self.relay.handle(self.now, Input::Kick(member, "enough")),
            6 if argument >= 3 => self.give_or_want(member, argument),
            6 => self.relay.handle(self.now, Input::Closed(member, Leaving::TimedOut)),
            _ => {
                let (part, after) = part(rest);
                self.say(member, Channel::ALL[usize::from(argument) % 6], part);
                return after;
            }
        }
        rest
    }

    fn closed(&self) -> Tick {
        self.relay.sessions().next().map_or(Tick::ZERO, |(_, session)| session.history().last())
    }

    /// What somebody may be asked for, whether it was or not.
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

    /// What is said about saves, whether it was asked for or not.
    fn give_or_want(&mut self, member: Member, argument: u8) {
        let tick = Tick(self.closed().0 / 30 * 30);
        let message = match argument {
            3 => ToRelay::Offer { tick, bytes: Some(1) },
            4 => ToRelay::Piece(Piece { tick, offset: 0, bytes: vec![4] }),
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

    fn say(&mut self, member: Member, channel: Channel, bytes: &[u8]) {
        self.relay.handle(self.now, Input::Message(member, channel, bytes));
    }

    fn drain(&mut self) {
        for _ in 0..MAX_OUTPUTS {
            match self.relay.poll_output(&mut self.buf) {
                Output::WakeAt(_) | Output::Wait => return,
                Output::Judge(id, tick) => self.judge = Some((id, tick)),
                Output::WantSave(id, tick) => self.wanted = Some((id, tick)),
                Output::Save(id) => {
                    let save = self.relay.session(id).and_then(|session| session.save());
                    assert!(save.is_some_and(|save| StateHash::of_bytes(&save.state) == save.hash));
                }
                Output::Closed(id, tick) => {
                    let rows = self.relay.session(id).and_then(|session| session.rows(tick));
                    assert!(rows.is_some(), "a closed tick can be read when it is announced");
                }
                _ => {}
            }
        }
        panic!("the relay talks for ever");
    }
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
    }
}
