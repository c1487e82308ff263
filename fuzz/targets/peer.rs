//! Whatever a relay sends to a peer, the peer does not panic, send for ever or use much memory.
//!
//! The input: steps. A step is one byte (action and argument) and for messages a part. Some messages are made here, so
//! that the peer joins, plays, gets other states and catches up.
#![cfg_attr(fuzzing, no_main)]

use postcard_schema::Schema;
use sametick_fuzz::part;
use sametick_lockstep::message::{About, Claim, Pace, Piece, SaveHead, ToPeer, put_ticks, to_bytes};
use sametick_lockstep::peer::{Input, JoinAs, Output, Peer};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_sim::{BuildId, Game, Inputs, Seat, StateHash, Tick, TickRate, Time, to_canonical};
use sametick_wire::Channel;
use sametick_wire::pacer::Path;
use serde::{Deserialize, Serialize};

const STEPS_US: [u64; 4] = [1_000, 16_667, 500_000, 11_000_000];

/// The most outputs of one step: the inputs of a whole prediction window, and a few messages.
const MAX_OUTPUTS: usize = 500;

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Sums {
    totals: [u64; 4],
}

impl Game for Sums {
    const NAME: &'static str = "sums";
    const RATE: TickRate = TickRate::hz(60);
    const BUILD: BuildId = BuildId::from_bytes([4; 16]);
    type Setup = u8;
    type Input = u16;

    fn new(setup: &u8) -> Sums {
        Sums { totals: [u64::from(*setup); 4] }
    }

    fn step(&mut self, inputs: &Inputs<u16>) {
        for row in inputs {
            let total = &mut self.totals[row.seat.index() % 4];
            *total = total.rotate_left(5) ^ u64::from(*row.input_or(&0));
        }
    }
}

sametick_fuzz::target!(|bytes: &[u8]| {
    let name = String::new();
    let (setup, commit) = (1, name.clone());
    let join = JoinAs { setup, seed: 0, seats: 3, wait_for: 0, name, commit, watch: false, listed: false };
    let peer = Peer::new(Time::ZERO, &join, Path::default());
    let mut world = World {
        peer,
        now: Time::ZERO,
        buf: Vec::new(),
        table: Table::default(),
        closed: Tick::ZERO,
        over: false,
    };
    let mut rest = bytes;
    while let Some((step, after)) = rest.split_first() {
        rest = world.step(*step, after);
        world.drain();
        if world.over {
            // After an error the link is closed.
            return;
        }
    }
});

struct World {
    peer: Peer<Sums>,
    now: Time,
    buf: Vec<u8>,
    /// The relay's side of closed ticks.
    table: Table,
    closed: Tick,
    over: bool,
}

impl World {
    /// Returns the rest of the input.
    fn step<'a>(&mut self, step: u8, rest: &'a [u8]) -> &'a [u8] {
        let argument = step >> 3;
        let (channel, message) = match step & 7 {
            0 => {
                let (seat, closed) =
                    ((argument & 4 == 0).then_some(Seat(u16::from(argument & 3))), self.closed);
                let age_us = i64::from(argument) * 3_000 - 40_000;
                // The session may have been resumed from an earlier tick.
                let back = if argument & 24 == 24 { 1 + 9 * u32::from(argument & 3) } else { 0 };
                let (restarts, from) = (u32::from(back > 0), closed);
                let (run, member, since) = (1, 3, Tick(1));
                let claim = Claim { run, member, seat, since, restarts, from, token: [9; 16] };
                let have = self.peer.confirmed().map_or(Tick::ZERO, |(tick, _)| tick);
                let first = if argument & 16 == 0 { Tick(1) } else { have.next() };
                let first = Tick(first.0.saturating_sub(back).max(1));
                let closed = if back > 0 { first - 1 } else { closed };
                self.closed = closed;
                let (setup, rate) = (vec![1], 60);
                let save = (argument & 24 == 8).then(|| self.head(argument));
                let about = About { seed: 7, seats: 4, ..About::default() };
                let welcome =
                    ToPeer::Welcome { seat, closed, first, age_us, setup, rate, claim, save, about };
                (Channel::Control, to_bytes(&welcome))
            }
            1 => (Channel::Input, self.close(argument)),
            2 => {
                let (tick, agreed) = (self.closed, Tick::ZERO);
                let least_slack_us = Some(i32::from(argument) * 8_000 - 100_000);
                let omissions = if argument == 15 { u32::MAX } else { argument.into() };
                let pace = Pace { tick, least_slack_us, omissions, agreed, mismatches: 0 };
                (Channel::State, to_bytes(&pace))
            }
            3 => (Channel::Control, to_bytes(&self.ask(argument))),
            4 => {
                self.now = self.now.plus_micros(STEPS_US[usize::from(argument) % 4]);
                if argument >> 2 == 7 {
                    self.peer.rejoin(self.now, Path::default());
                }
                self.over |= self.peer.handle(self.now, Input::Timeout).is_err();
                return rest;
            }
            _ => {
                let (part, after) = part(rest);
                self.say(Channel::ALL[usize::from(argument) % 6], part);
                return after;
            }
        };
        self.say(channel, &message);
        rest
    }

    /// Closes the next tick: seated players join, act, are late, leave.
    fn close(&mut self, argument: u8) -> Vec<u8> {
        let mut rows = Inputs::new();
        for seat in (0..2).map(Seat) {
            if !self.table.is_taken(seat) {
                rows.join(seat);
            }
            match argument & 3 {
                0 => rows.omit(seat),
                input => rows.set(seat, Opaque::new(&[input]).expect("short")),
            }
            if u16::from(argument >> 2) == 5 + seat.0 {
                rows.leave(seat);
            }
        }
        self.closed = self.closed.next();
        let mut bytes = vec![];
        put_ticks(&mut bytes, self.closed, &mut self.table, [&rows].into_iter());
        bytes
    }

    /// A valid save, or sometimes an invalid one.
    fn head(&self, argument: u8) -> SaveHead {
        let bytes = to_canonical(&Sums { totals: [7; 4] }).expect("plain numbers");
        let tick = Tick(self.closed.0.saturating_sub(u32::from(argument & 3)));
        let hash = StateHash(StateHash::of_bytes(&bytes).0 ^ u64::from(argument == 11));
        SaveHead { tick, hash, bytes: bytes.len() as u32, table: self.table.to_bytes() }
    }

    fn ask(&self, argument: u8) -> ToPeer {
        let tick = Tick(self.closed.0.saturating_sub(u32::from(argument >> 3)));
        match argument & 7 {
            4 => ToPeer::GiveSave { tick: tick + u32::from(argument >> 4) },
            5 => ToPeer::GivePiece { tick, offset: u32::from(argument >> 4), bytes: 9 },
            6 => ToPeer::Load(self.head(argument >> 3)),
            7 => {
                let bytes = to_canonical(&Sums { totals: [7; 4] }).expect("plain numbers");
                ToPeer::Piece(Piece { tick, offset: 0, bytes })
            }
            0 => ToPeer::GiveHashes { from: tick, to: self.closed },
            1 => ToPeer::GiveState { tick },
            2 => ToPeer::Ticks {
                first: tick,
                ticks: 3,
                table: self.table.to_bytes(),
                bytes: vec![argument; 3],
            },
            _ => {
                let state = to_canonical(&Sums { totals: [7; 4] }).expect("plain numbers");
                ToPeer::Resync { tick, state }
            }
        }
    }

    fn say(&mut self, channel: Channel, bytes: &[u8]) {
        self.over |= self.peer.handle(self.now, Input::Message(channel, bytes)).is_err();
    }

    fn drain(&mut self) {
        for _ in 0..MAX_OUTPUTS {
            let input = match self.peer.poll_output(&mut self.buf) {
                Output::Send(_) => continue,
                Output::WantInput(tick) => Input::Local(tick.0 as u16 / 4),
                Output::WantPath => Input::Path(Path { rtt_us: 40_000, sent: 100, ..Path::default() }),
                Output::WakeAt(_) | Output::Wait => return,
            };
            self.over |= self.peer.handle(self.now, input).is_err();
        }
        panic!("the peer talks for ever");
    }
}
