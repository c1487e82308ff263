//! Whatever happens between a host and its views, and whatever peers send to either, neither panics, sends for ever or
//! uses much memory; and a view that is left alone plays on.
//!
//! The input: steps. A step is one byte: the fate of the next message (it arrives, is lost, is altered), or time, or a
//! message that the input itself contains as a part.
#![cfg_attr(fuzzing, no_main)]

use std::collections::VecDeque;

use sametick_arena::{Arena, Input, Setup, pilot};
use sametick_fuzz::part;
use sametick_room::HostConfig;
use sametick_room::host::{self, Host, KnownPlayer};
use sametick_room::view::{self, JoinAs, View};
use sametick_sim::record::Leaving;
use sametick_sim::{Owner, Seat, Time};
use sametick_wire::identity::PlayerId;
use sametick_wire::pacer::Path;
use sametick_wire::{Channel, Member};

const STEPS_US: [u64; 4] = [1_000, 33_334, 150_000, 3_000_000];

/// The most outputs of one step: a few ticks for all players.
const MAX_OUTPUTS: usize = 2_000;

/// A room of arena with its views, and the snapshots that each side keeps.
const ALLOWANCE: usize = 24 << 20;

const SETUP: Setup = Setup { seed: 3, size: 20, bots: 1, seats: 3, points: 0, rocks: true, rounds: false };

sametick_fuzz::target!(allowing ALLOWANCE, |bytes: &[u8]| {
    let mut world = World::new();
    let mut rest = bytes;
    while let Some((step, after)) = rest.split_first() {
        rest = world.step(*step, after);
        world.drain();
    }
});

struct World {
    now: Time,
    host: Host<Arena>,
    views: Vec<(Member, Option<View<Arena>>)>,
    /// Messages to a view, or from one to the host.
    messages: VecDeque<(usize, bool, Channel, Vec<u8>)>,
    next: u64,
    buf: Vec<u8>,
}

impl World {
    fn new() -> World {
        let config = HostConfig { seats: 3, budget_bytes: 200, secret: [5; 32], ..HostConfig::default() };
        let host = Host::new(Time::ZERO, &SETUP, config);
        let mut world = World {
            now: Time::ZERO,
            host,
            views: Vec::new(),
            messages: VecDeque::new(),
            next: 0,
            buf: Vec::new(),
        };
        (0..2).for_each(|_| world.join());
        world.drain();
        world
    }

    fn join(&mut self) {
        let (name, commit) = (String::from("x"), String::new());
        let join =
            JoinAs { name, commit, setup: SETUP, seed: 3, seats: 3, watch: self.next % 3 == 2, listed: true };
        let view = View::new(self.now, &join, Path::default());
        self.views.push((Member(self.next), Some(view)));
        self.next += 1;
    }

    /// Returns the rest of the input.
    fn step<'a>(&mut self, step: u8, rest: &'a [u8]) -> &'a [u8] {
        let argument = step >> 3;
        match step & 7 {
            // All messages in flight arrive, and time passes.
            0 => {
                while let Some((whose, to_host, channel, bytes)) = self.messages.pop_front() {
                    self.deliver(whose, to_host, channel, &bytes);
                }
                self.pass(argument);
            }
            1 => drop(self.messages.pop_front()),
            2 => {
                if let Some((whose, to_host, channel, mut bytes)) = self.messages.pop_front() {
                    let (part, after) = part(rest);
                    for (place, by) in part.iter().enumerate() {
                        let count = bytes.len().max(1);
                        if let Some(byte) = bytes.get_mut((usize::from(argument) + place * 7) % count) {
                            *byte ^= by;
                        }
                    }
                    self.deliver(whose, to_host, channel, &bytes);
                    return after;
                }
            }
            // A database returns arbitrary rows.
            3 if argument & 16 != 0 => {
                let ((part, after), seat) = (part(rest), Seat(u16::from(argument & 3)));
                let whose = if argument & 8 == 0 { Owner::Player(seat) } else { Owner::Character(seat) };
                self.host.handle(self.now, host::Input::Bring(whose, part));
                return after;
            }
            3 => {
                if let Some(message) = self.messages.pop_front() {
                    self.messages.push_back(message);
                }
            }
            4 if argument & 16 != 0 => self.decide(argument),
            4 => self.pass(argument),
            5 if self.views.len() < 6 && argument & 1 == 0 => self.join(),
            5 => {
                let whose = usize::from(argument) % self.views.len();
                let member = self.views[whose].0;
                self.host.handle(self.now, host::Input::Closed(member, Leaving::TimedOut));
                self.views[whose].0 = Member(self.next);
                self.next += 1;
                if let Some(view) = &mut self.views[whose].1 {
                    view.rejoin(self.now, Path::default());
                }
            }
            _ => {
                let (part, after) = part(rest);
                let channel = Channel::ALL[usize::from(argument) % 6];
                self.deliver(usize::from(argument >> 3) % self.views.len(), step & 1 == 0, channel, part);
                return after;
            }
        }
        rest
    }

    /// The driver assigns the next player and seat.
    fn decide(&mut self, argument: u8) {
        let (player, seat) = (PlayerId(u128::from(argument & 1)), Seat(u16::from(argument >> 1 & 3)));
        let seat = Some(seat).filter(|_| argument & 8 == 0);
        let known = KnownPlayer { player, seat, is_firm: true, kept: &[], character: &[] };
        let member = self.views.last().map_or(Member(0), |(member, _)| *member);
        self.host.handle(self.now, host::Input::KnownPlayer(member, known));
    }

    fn pass(&mut self, argument: u8) {
        self.now = self.now.plus_micros(STEPS_US[usize::from(argument) % 4]);
        self.host.handle(self.now, host::Input::Timeout);
    }

    fn deliver(&mut self, whose: usize, to_host: bool, channel: Channel, bytes: &[u8]) {
        let (member, view) = &mut self.views[whose];
        if to_host {
            self.host.handle(self.now, host::Input::Message(*member, channel, bytes));
        } else if let Some(there) = view
            && there.handle(self.now, view::Input::Message(channel, bytes)).is_err()
        {
            // After an error the link is closed.
            self.host.handle(self.now, host::Input::Closed(*member, Leaving::Kicked));
            *view = None;
        }
    }

    fn drain(&mut self) {
        for outputs in 0.. {
            assert!(outputs < MAX_OUTPUTS, "the host talks for ever");
            match self.host.poll_output(&mut self.buf) {
                host::Output::Send(member, channel) => {
                    let whose =
                        self.views.iter().position(|(other, view)| *other == member && view.is_some());
                    if let Some(whose) = whose {
                        self.messages.push_back((whose, false, channel, self.buf.clone()));
                    }
                }
                host::Output::WakeAt(_) => break,
                _ => {}
            }
        }
        for whose in 0..self.views.len() {
            self.drain_view(whose);
        }
        while self.messages.len() > 400 {
            self.messages.pop_front();
        }
    }

    fn drain_view(&mut self, whose: usize) {
        let Some(view) = &mut self.views[whose].1 else { return };
        let _ = view.handle(self.now, view::Input::Timeout);
        view.look(self.now);
        while view.poll_event().is_some() {}
        for outputs in 0.. {
            assert!(outputs < MAX_OUTPUTS, "a view talks for ever");
            let said = match view.poll_output(&mut self.buf) {
                view::Output::Send(channel) => {
                    self.messages.push_back((whose, true, channel, self.buf.clone()));
                    continue;
                }
                view::Output::WantInput(tick) => {
                    let own = view.predicted().map(|(_, own)| *own);
                    let act = |own| pilot(&own, view.newest(), tick, 1);
                    view::Input::Local(own.map_or_else(Input::default, act))
                }
                view::Output::WantPath => view::Input::Path(Path::default()),
                view::Output::WakeAt(_) | view::Output::Wait => break,
            };
            let _ = view.handle(self.now, said);
        }
        let shown = view.shown::<sametick_arena::Avatar>().count();
        assert!(shown <= 2_000);
        let _ = view.own();
    }
}
