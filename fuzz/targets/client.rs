//! Whatever a server and its carriers do, a client does not panic, send for ever or use much memory.
//!
//! The input: steps. A step is one byte (action and argument) and for raw bytes a part. The server has a link of its
//! own, so that the client joins, plays, loses its connection and resumes.
#![cfg_attr(fuzzing, no_main)]

use sametick_client::{Attempt, Carried, Client, Input, Output, Plan};
use sametick_conformance::{Medley, Order, Setup};
use sametick_fuzz::part;
use sametick_lockstep::message::{About, Claim, Pace, Seated, ToPeer, put_ticks, to_bytes};
use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_sim::{Inputs, Seat, Tick, Time, to_canonical};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Answer, Refusal};
use sametick_wire::{Carrier, Channel, LaneId, Link, link};

const STEPS_US: [u64; 4] = [1_000, 16_667, 500_000, 11_000_000];

const ROUTES: [Carrier; 2] = [Carrier::DatagramsAndStreams, Carrier::Stream];

/// The most outputs of one step: the inputs of a whole prediction window, and a few messages.
const MAX_OUTPUTS: usize = 1_000;

// Links have tables of their own, and each new connection makes two.
sametick_fuzz::target!(allowing 64 << 20, |bytes: &[u8]| {
    let join = JoinAs {
        setup: Setup { seed: 1 },
        seed: 1,
        seats: 4,
        wait_for: 0,
        name: String::new(),
        commit: String::new(),
        watch: false,
        listed: false,
    };
    let plan = Plan {
        session: "den".into(),
        join,
        key: AccessKey::open(),
        pass: None,
        routes: ROUTES.to_vec(),
        unix_s: 0,
        random: [7; 32],
    };
    let client = Client::new(Time::ZERO, plan).expect("names are short");
    let mut world = World {
        client,
        now: Time::ZERO,
        lines: Vec::new(),
        speaking: 0,
        dialled: Attempt::default(),
        table: Table::default(),
        closed: Tick::ZERO,
        buf: Vec::new(),
    };
    world.drain();
    let mut rest = bytes;
    while let Some((step, after)) = rest.split_first() {
        rest = world.step(*step, after);
        world.drain();
    }
});

struct World {
    client: Client<Peer<Medley>>,
    now: Time,
    /// The open carriers, and the one that events happen to: one, and for a while another one beside it.
    lines: Vec<Line>,
    speaking: usize,
    /// The last connection attempt.
    dialled: Attempt,
    /// The relay's side of closed ticks.
    table: Table,
    closed: Tick,
    buf: Vec<u8>,
}

struct Line {
    attempt: Attempt,
    route: usize,
    /// The server's end, once it has answered.
    server: Option<Link>,
}

impl World {
    /// Returns the rest of the input.
    fn step<'a>(&mut self, step: u8, rest: &'a [u8]) -> &'a [u8] {
        let argument = step >> 3;
        let raw = part(rest);
        match step & 7 {
            0 => {
                self.carried(Carried::Answer(raw.0));
                return raw.1;
            }
            1 => self.answer(argument),
            2 => {
                self.carried(Carried::Datagram(raw.0));
                return raw.1;
            }
            3 => {
                self.carried(Carried::Stream(LaneId(argument), raw.0));
                return raw.1;
            }
            4 => self.carried(Carried::Gone("gone")),
            5 => self.say(argument),
            6 => {
                self.now = self.now.plus_micros(STEPS_US[usize::from(argument) % 4]);
                self.client.handle(self.now, Input::Timeout);
            }
            _ => match argument {
                0 => self.client.set_netem(None, 1),
                1 => {
                    self.client.set_netem(Some("rtt=50ms,jitter=9ms,loss=9%".parse().expect("a profile")), 1)
                }
                2 => self.client.drop_link(self.now, 300_000),
                3..8 => self.speaking = usize::from(argument & 1),
                _ => self.client.leave(self.now),
            },
        }
        rest
    }

    fn line(&mut self) -> Option<&mut Line> {
        let at = self.speaking.min(self.lines.len().saturating_sub(1));
        self.lines.get_mut(at)
    }

    fn carried(&mut self, carried: Carried<'_>) {
        // Events of a closed carrier are ignored.
        let attempt = self.line().map(|line| line.attempt).unwrap_or(self.dialled);
        self.client.handle(self.now, Input::Carrier(attempt, carried));
    }

    fn answer(&mut self, argument: u8) {
        let answer = match argument {
            0..28 => Answer::Welcome,
            28 => Answer::Refused(Refusal::Other("later".into())),
            _ => Answer::Refused(Refusal::Version { server: 2, client: 1 }),
        };
        let now = self.now;
        if let Some(line) = self.line() {
            line.server = (answer == Answer::Welcome).then(|| Link::new(now, ROUTES[line.route]));
        }
        self.carried(Carried::Answer(&answer.to_bytes()));
    }

    /// The server sends a valid message over its link.
    fn say(&mut self, argument: u8) {
        let (tick, agreed) = (self.closed, Tick::ZERO);
        let (channel, message) = match argument & 7 {
            0 | 3 => {
                let have = self.client.side().and_then(|peer| peer.confirmed()).map_or(Tick::ZERO, |it| it.0);
                let first = if argument & 7 == 0 { Tick(1) } else { have.next() };
                let seat = Some(Seat(u16::from(argument >> 3)));
                let (run, member, since, restarts, from) = (1, 3, Tick(1), 0, Tick::ZERO);
                let claim = Claim { run, member, seat, since, restarts, from, token: [9; 16] };
                let setup = to_canonical(&Setup { seed: 1 }).expect("it serialises");
                let (closed, age_us, rate) = (self.closed, 0, 60);
                let welcome = ToPeer::Welcome {
                    seat,
                    closed,
                    first,
                    age_us,
                    setup,
                    rate,
                    claim,
                    save: None,
                    about: About::default(),
                };
                (Channel::Control, to_bytes(&welcome))
            }
            1 => (Channel::Input, self.close()),
            2 => {
                let pace = Pace { tick, least_slack_us: Some(900), omissions: 0, agreed, mismatches: 0 };
                (Channel::State, to_bytes(&pace))
            }
            4 => (Channel::Control, to_bytes(&ToPeer::Refused { why: "full".into() })),
            5 => {
                let players = vec![Seated { seat: Seat(argument.into()), name: "ada".into() }];
                (Channel::Control, to_bytes(&ToPeer::Roster { players, spectators: 9 }))
            }
            6 => (Channel::Control, to_bytes(&ToPeer::GiveState { tick })),
            _ => {
                let now = self.now;
                if let Some(server) = self.line().and_then(|line| line.server.as_mut()) {
                    server.close(now, argument >> 3, "enough");
                }
                return;
            }
        };
        let now = self.now;
        if let Some(server) = self.line().and_then(|line| line.server.as_mut()) {
            // A refusal is fine: the link may be closed.
            let _ = server.send(now, channel, &message);
        }
    }

    fn close(&mut self) -> Vec<u8> {
        let mut rows = Inputs::new();
        if !self.table.is_taken(Seat(0)) {
            rows.join(Seat(0));
        }
        rows.set(Seat(0), Opaque::of(&Order::Wait));
        self.closed = self.closed.next();
        let mut bytes = vec![];
        put_ticks(&mut bytes, self.closed, &mut self.table, [&rows].into_iter());
        bytes
    }

    fn drain(&mut self) {
        self.drain_server();
        for _ in 0..MAX_OUTPUTS {
            match self.client.poll_output(&mut self.buf) {
                Output::Dial(attempt, route) => {
                    assert!(self.lines.len() < 2 && attempt > self.dialled, "one carrier, and one beside it");
                    self.dialled = attempt;
                    self.lines.push(Line { attempt, route, server: None });
                }
                Output::HangUp(attempt) => {
                    let at = self.lines.iter().position(|line| line.attempt == attempt);
                    self.lines.remove(at.expect("what is hung up was dialled"));
                }
                Output::Datagram(attempt) => self.hear(attempt, |buf| link::Input::Datagram(buf)),
                Output::Stream(attempt, lane) => self.hear(attempt, |buf| link::Input::Stream(lane, buf)),
                Output::WantInput(_) => self.client.handle(self.now, Input::Local(Order::Wait)),
                Output::WakeAt(_) | Output::Done => return,
            }
        }
        panic!("the client talks for ever");
    }

    /// The server reads what the client sends over a line.
    fn hear(&mut self, attempt: Attempt, input: impl FnOnce(&[u8]) -> link::Input<'_>) {
        let line = self.lines.iter_mut().find(|line| line.attempt == attempt);
        if let Some(server) = &mut line.expect("what is spoken on was dialled").server {
            let _ = server.handle(self.now, input(&self.buf));
        }
    }

    fn drain_server(&mut self) {
        for at in 0..self.lines.len() {
            self.drain_line(at);
        }
    }

    fn drain_line(&mut self, at: usize) {
        for _ in 0..MAX_OUTPUTS {
            let Line { attempt, server: Some(server), .. } = &mut self.lines[at] else { return };
            let (attempt, output) = (*attempt, server.poll_output(&mut self.buf));
            let bytes = core::mem::take(&mut self.buf);
            let mut tell =
                |carried: Carried<'_>| self.client.handle(self.now, Input::Carrier(attempt, carried));
            match output {
                link::Output::Datagram => tell(Carried::Datagram(&bytes)),
                link::Output::Stream(lane) => tell(Carried::Stream(lane, &bytes)),
                link::Output::WakeAt(_) | link::Output::Done => return,
                link::Output::Message(_) | link::Output::Closed(_) => {}
            }
            self.buf = bytes;
        }
        panic!("the server's link talks for ever");
    }
}
