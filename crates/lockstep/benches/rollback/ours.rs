//! Our peer, with a relay simulated by its messages.

use sametick_lockstep::message::{About, CHECK_EVERY, Claim, Pace, ToPeer, put, put_ticks, to_bytes};
use sametick_lockstep::peer::{Input, JoinAs, Output, Peer};
use sametick_lockstep::rows::{Opaque, Table};
use sametick_sim::{Inputs, Seat, Tick, Time};
use sametick_wire::Channel;
use sametick_wire::pacer::{PACE_EVERY, Path};

use super::Contestant;
use super::game::Plain;

const OWN: u8 = 1;

/// The measured peer sits on seat 0.
pub struct Ours<const WORDS: usize> {
    peer: Box<Peer<Plain<WORDS>>>,
    now: Time,
    depth: u32,
    /// The last tick that was closed, and the table for the next.
    closed: Tick,
    table: Table,
    rows: Inputs<Opaque>,
    remote: u8,
    message: Vec<u8>,
    report: Vec<u8>,
    buf: Vec<u8>,
}

impl<const WORDS: usize> Ours<WORDS> {
    /// A frame with a wrong prediction goes back this far.
    pub fn new(depth: u32) -> Self {
        let name = String::new();
        let join = JoinAs {
            setup: (),
            seed: 0,
            seats: 2,
            name: name.clone(),
            commit: name,
            watch: false,
            listed: false,
            wait_for: 0,
        };
        let mut peer: Box<Peer<Plain<WORDS>>> = Box::new(Peer::new(Time::ZERO, &join, Path::default()));
        let claim = Claim {
            run: 1,
            member: 0,
            seat: None,
            since: Tick::ZERO,
            restarts: 0,
            from: Tick::ZERO,
            token: [9; 16],
        };
        let welcome = ToPeer::Welcome {
            seat: Some(Seat(0)),
            closed: Tick::ZERO,
            first: Tick(1),
            age_us: 0,
            setup: vec![],
            rate: 60,
            claim,
            save: None,
            about: About::default(),
        };
        peer.handle(Time::ZERO, Input::Message(Channel::Control, &to_bytes(&welcome))).expect("a welcome");
        let mut ours = Ours {
            peer,
            now: Time::ZERO,
            depth,
            closed: Tick::ZERO,
            table: Table::default(),
            rows: Inputs::new(),
            remote: 0,
            message: vec![],
            report: vec![],
            buf: vec![],
        };
        // The peer begins with its own lead; these timeouts bring it to the wanted depth.
        while ours.ahead() <= depth {
            ours.peer.handle(ours.now, Input::Timeout).expect("time passes");
            ours.play();
        }
        while ours.ahead() > depth + 1 {
            ours.close(false);
            ours.take();
        }
        ours
    }

    fn ahead(&self) -> u32 {
        self.peer.shown().map_or(0, |(shown, _)| shown.ticks_since(self.closed))
    }

    /// Closes a tick on the relay.
    fn close(&mut self, wrong: bool) {
        self.closed = self.closed.next();
        self.remote ^= u8::from(wrong);
        self.rows.clear();
        for (seat, input) in [(Seat(0), OWN), (Seat(1), self.remote)] {
            if self.closed == Tick(1) {
                self.rows.join(seat);
            }
            self.rows.set(seat, Opaque::new(&[input]).expect("short"));
        }
        self.message.clear();
        put_ticks(&mut self.message, self.closed, &mut self.table, [&self.rows].into_iter());
        self.report.clear();
        if self.closed.0.is_multiple_of(PACE_EVERY) {
            let (tick, agreed) = (self.closed, Tick::ZERO);
            let pace = Pace { tick, least_slack_us: None, omissions: 0, agreed, mismatches: 0 };
            put(&mut self.report, &pace);
        }
    }

    /// Takes a closed tick.
    fn take(&mut self) {
        self.peer.handle(self.now, Input::Message(Channel::Input, &self.message)).expect("a tick");
        if !self.report.is_empty() {
            self.peer.handle(self.now, Input::Message(Channel::State, &self.report)).expect("a report");
        }
    }

    /// Runs until the peer wants to wait.
    fn play(&mut self) {
        loop {
            let input = match self.peer.poll_output(&mut self.buf) {
                Output::Send(_) => continue,
                Output::WantInput(_) => Input::Local(OWN),
                Output::WantPath => Input::Path(Path::default()),
                Output::WakeAt(at) => {
                    self.now = at;
                    return;
                }
                Output::Wait => panic!("{:?}", self.peer.status()),
            };
            self.peer.handle(self.now, input).expect("our own input");
        }
    }
}

impl<const WORDS: usize> Contestant for Ours<WORDS> {
    fn prepare(&mut self, wrong: bool) {
        assert_eq!(self.ahead(), self.depth + 1, "one tick is taken, so many are simulated again");
        self.close(wrong);
    }

    fn frame(&mut self) {
        self.take();
        self.play();
    }

    fn hashed(&self) -> bool {
        self.closed.0.is_multiple_of(CHECK_EVERY)
    }

    fn resimulated(&self) -> u64 {
        self.peer.stats().resimulated
    }
}
