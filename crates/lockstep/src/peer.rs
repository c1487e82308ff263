//! One player's side: the confirmed state, advanced only by closed ticks, and the state on screen, which runs ahead of
//! it with own inputs and guesses (L3). A wrong guess is simulated again from the confirmed state.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Game, Inputs, Seat, Tick, Time, from_canonical, to_canonical};
use sametick_wire::{Channel, Malformed};

use crate::history::Excerpt;
use crate::message::{self, Pace, Run, ToPeer, ToRelay, put_inputs, read_ticks};
use crate::pacer::Pacer;
use crate::rows::{MAX_SEATS, Opaque, Table};

/// How far the state on screen may run ahead of the confirmed one. Beyond it the peer waits for the relay.
pub const MAX_PREDICTED: u32 = 60;

/// Runs of ticks that cannot be understood yet are kept up to this many; more come again when asked for.
const MAX_EARLY: usize = 64;

/// A run that never comes is asked for again this often.
const ASK_AGAIN_US: u64 = 500_000;

/// What happens to a peer.
#[derive(Debug)]
pub enum Input<'a, I> {
    /// A message arrived on the link.
    Message(Channel, &'a [u8]),
    /// The player's input for the tick that was asked for.
    Local(I),
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a peer wants. Bytes are in the buffer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes on this channel.
    Send(Channel),
    /// Hand in the player's input for this tick, with [`Input::Local`].
    WantInput(Tick),
    /// Nothing more before this time.
    WakeAt(Time),
    /// Nothing more until a message comes.
    Wait,
}

/// What a peer is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The relay has not answered yet.
    Joining,
    /// Catching up with ticks that were closed before it came.
    CatchingUp,
    /// Playing or watching.
    Playing,
    /// So far ahead of the last closed tick that it waits for the relay.
    WaitingForRelay,
    /// Turned down, and why.
    Refused(String),
}

/// Figures of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Guesses that were wrong and led to simulating again.
    pub rollbacks: u64,
    /// Ticks that were simulated again.
    pub resimulated: u64,
    /// Own inputs that were missing when their tick closed, as the relay counts.
    pub omissions: u32,
    /// Ticks that had to be asked for again.
    pub resends: u64,
}

/// How to take part.
#[derive(Clone, Debug)]
pub struct JoinAs<G: Game> {
    /// What the session is begun with, if it is not running yet.
    pub setup: G::Setup,
    /// How many seats it has then.
    pub seats: u8,
    /// What the player is called.
    pub name: String,
    /// Only watch.
    pub watch: bool,
}

/// One player's side of a session.
pub struct Peer<G: Game> {
    now: Time,
    outbox: VecDeque<(Channel, Vec<u8>)>,
    status: Status,
    play: Option<Play<G>>,
    /// Runs of ticks that cannot be understood yet: something before them is missing or on its way.
    early: VecDeque<Vec<u8>>,
    asked_at: Option<Time>,
    stats: PeerStats,
    /// A round trip on the link, as its owner knows it.
    rtt_us: u64,
    jitter_us: u64,
}

/// What is known once the relay has answered.
struct Play<G: Game> {
    seat: Option<Seat>,
    confirmed: G,
    confirmed_tick: Tick,
    shown: G,
    shown_tick: Tick,
    /// What closed ticks are coded against.
    table: Table,
    /// The last input of each taken seat in a closed tick.
    last: [Option<G::Input>; MAX_SEATS],
    /// Own inputs of the ticks after the confirmed one; none for ticks before the first that was played.
    own: VecDeque<Option<G::Input>>,
    /// What the ticks after the confirmed one were simulated with.
    guessed: VecDeque<Inputs<G::Input>>,
    spare: Vec<Inputs<G::Input>>,
    /// A closed tick was not as guessed.
    wrong: bool,
    /// Everything up to this tick was closed before we came.
    welcome_tick: Tick,
    /// Where the first own tick is.
    start: Tick,
    pacer: Pacer,
}

impl<G: Game> Peer<G> {
    /// A peer that asks to take part. Its messages go over one link to a relay.
    pub fn new(now: Time, join: &JoinAs<G>, rtt_us: u64, jitter_us: u64) -> Peer<G> {
        let setup = to_canonical(&join.setup).expect("a setup serialises");
        let rate = G::RATE.per_second() as u16;
        let (seats, name, watch) = (join.seats, join.name.clone(), join.watch);
        let join = ToRelay::Join { setup, rate, seats, name, watch };
        Peer {
            now,
            outbox: VecDeque::from([(Channel::Control, message::to_bytes(&join))]),
            status: Status::Joining,
            play: None,
            early: VecDeque::new(),
            asked_at: None,
            stats: PeerStats::default(),
            rtt_us,
            jitter_us,
        }
    }

    /// What the peer is doing.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The figures so far.
    pub fn stats(&self) -> PeerStats {
        self.stats
    }

    /// Where the player sits.
    pub fn seat(&self) -> Option<Seat> {
        self.play.as_ref()?.seat
    }

    /// The confirmed state and its tick.
    pub fn confirmed(&self) -> Option<(Tick, &G)> {
        self.play.as_ref().map(|play| (play.confirmed_tick, &play.confirmed))
    }

    /// The state on screen and its tick.
    pub fn shown(&self) -> Option<(Tick, &G)> {
        self.play.as_ref().map(|play| (play.shown_tick, &play.shown))
    }

    /// Takes what happened. After an error the relay does not speak the protocol.
    pub fn handle(&mut self, now: Time, input: Input<'_, G::Input>) -> Result<(), Malformed> {
        self.now = self.now.max(now);
        match input {
            Input::Message(Channel::Control, bytes) => self.on_control(message::from_bytes(bytes)?),
            Input::Message(Channel::Input, bytes) => self.on_ticks(bytes),
            Input::Message(Channel::State, bytes) => {
                let report: Pace = message::from_bytes(bytes)?;
                self.stats.omissions = report.omissions;
                self.play.iter_mut().for_each(|play| play.pacer.on_report(&report));
                Ok(())
            }
            Input::Message(..) => Err(Malformed::Forbidden),
            Input::Local(input) => {
                self.on_local(input);
                Ok(())
            }
            Input::Timeout => Ok(()),
        }
    }

    /// What the peer wants next.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        if let Some((channel, bytes)) = self.outbox.pop_front() {
            buf.clear();
            buf.extend_from_slice(&bytes);
            return Output::Send(channel);
        }
        let Some(play) = &mut self.play else { return Output::Wait };
        if !play.has_caught_up() {
            return Output::Wait;
        }
        if play.shown_tick.ticks_since(play.confirmed_tick) >= MAX_PREDICTED {
            self.status = Status::WaitingForRelay;
            play.pacer.restart(self.now);
            return Output::Wait;
        }
        self.status = Status::Playing;
        if play.pacer.next_at() > self.now {
            return Output::WakeAt(play.pacer.next_at());
        }
        if play.seat.is_some() {
            return Output::WantInput(play.shown_tick.next());
        }
        play.pacer.advance(play.shown_tick.next());
        play.predict(None);
        Output::WakeAt(play.pacer.next_at())
    }

    fn on_control(&mut self, message: ToPeer) -> Result<(), Malformed> {
        match (message, &mut self.play) {
            (ToPeer::Welcome { seat, closed, age_us, setup, rate }, None) => {
                if u32::from(rate) != G::RATE.per_second()
                    || seat.is_some_and(|seat| seat.index() >= MAX_SEATS)
                {
                    return Err(Malformed::Forbidden);
                }
                let setup = from_canonical(&setup).map_err(|_| Malformed::Forbidden)?;
                self.begin(seat, &setup, closed, age_us);
                self.use_early()
            }
            (ToPeer::Refused { why }, None) => {
                self.status = Status::Refused(why);
                Ok(())
            }
            (ToPeer::Ticks { first, ticks, table, bytes }, Some(_)) => {
                let start = Table::from_bytes(&table).map_err(|_| Malformed::Forbidden)?;
                self.on_excerpt(&Excerpt { first, ticks, start, bytes })
            }
            _ => Err(Malformed::Forbidden),
        }
    }

    fn begin(&mut self, seat: Option<Seat>, setup: &G::Setup, closed: Tick, age_us: u64) {
        let tick_us = G::RATE.tick_micros().max(1);
        // Where the relay stands now, and how far ahead of it our inputs have to be.
        let relay_now = closed + ((age_us + self.rtt_us / 2) / tick_us) as u32;
        let ahead = ((self.rtt_us / 2 + 2 * self.jitter_us) / tick_us) as u32 + 2;
        self.status = Status::CatchingUp;
        let pacer = Pacer::new(G::RATE, self.now, self.jitter_us);
        let mut play = Play::new(seat, setup, closed, relay_now + ahead, pacer);
        play.launch();
        self.play = Some(play);
    }

    /// Closed ticks that continue what we have, or do not yet.
    fn on_ticks(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if self.early.len() == MAX_EARLY {
            self.early.pop_front();
        }
        self.early.push_back(bytes.to_vec());
        self.use_early()
    }

    /// Uses every run that can be understood now, and asks for what is missing before the others.
    fn use_early(&mut self) -> Result<(), Malformed> {
        let Some(play) = &mut self.play else { return Ok(()) };
        let mut result = Ok(());
        loop {
            let mut progress = false;
            self.early.retain(|bytes| match play.on_run(bytes) {
                Ok(run) => {
                    progress |= run == Run::Next;
                    run == Run::Early
                }
                Err(error) => {
                    result = Err(error);
                    false
                }
            });
            if !progress {
                break;
            }
        }
        self.ask_for_missing();
        self.settle();
        result
    }

    fn ask_for_missing(&mut self) {
        let Some(play) = self.play.as_ref().filter(|play| play.has_caught_up()) else { return };
        if self.early.is_empty() {
            self.asked_at = None;
        } else if self.asked_at.is_none_or(|at| self.now.micros_since(at) >= ASK_AGAIN_US) {
            self.asked_at = Some(self.now);
            self.stats.resends += 1;
            let ask = ToRelay::Resend { from: play.confirmed_tick.next() };
            self.outbox.push_back((Channel::Control, message::to_bytes(&ask)));
        }
    }

    fn on_excerpt(&mut self, excerpt: &Excerpt) -> Result<(), Malformed> {
        if let Some(play) = &mut self.play {
            play.on_excerpt(excerpt)?;
        }
        self.use_early()
    }

    /// Simulates again what was guessed wrong.
    fn settle(&mut self) {
        let Some(play) = &mut self.play else { return };
        if play.has_caught_up() && core::mem::take(&mut play.wrong) {
            self.stats.rollbacks += 1;
            self.stats.resimulated += u64::from(play.repair());
        }
    }

    fn on_local(&mut self, input: G::Input) {
        let Some(play) = self.play.as_mut().filter(|play| play.seat.is_some()) else { return };
        let bytes = to_canonical(&input).expect("an input serialises");
        let opaque = Opaque::new(&bytes).expect("an input is short, see MAX_INPUT");
        let tick = play.shown_tick.next();
        play.predict(Some(input));
        play.pacer.advance(tick);
        let mut packed = Vec::new();
        put_inputs(&mut packed, tick, [&opaque].into_iter());
        self.outbox.push_back((Channel::Input, packed));
    }
}

impl<G: Game> Play<G> {
    fn new(seat: Option<Seat>, setup: &G::Setup, closed: Tick, start: Tick, pacer: Pacer) -> Play<G> {
        let confirmed = G::new(setup);
        Play {
            seat,
            shown: confirmed.clone(),
            confirmed,
            confirmed_tick: Tick::ZERO,
            shown_tick: Tick::ZERO,
            table: Table::default(),
            last: [const { None }; MAX_SEATS],
            own: VecDeque::new(),
            guessed: VecDeque::new(),
            spare: Vec::new(),
            wrong: false,
            welcome_tick: closed,
            start,
            pacer,
        }
    }

    fn has_caught_up(&self) -> bool {
        self.confirmed_tick >= self.welcome_tick
    }

    /// Runs the state on screen ahead to where own ticks begin, once everything closed before is there.
    fn launch(&mut self) {
        if self.has_caught_up() && self.shown_tick < self.start {
            let most = self.confirmed_tick + MAX_PREDICTED;
            while self.shown_tick < self.start.min(most) {
                self.predict(None);
            }
            self.start = Tick::ZERO;
        }
    }

    fn on_run(&mut self, bytes: &[u8]) -> Result<Run, Malformed> {
        let mut table = core::mem::take(&mut self.table);
        let have = self.confirmed_tick;
        let run = read_ticks(bytes, have, &mut table, |tick, rows| self.confirm(tick, rows));
        self.table = table;
        self.launch();
        run
    }

    fn on_excerpt(&mut self, excerpt: &Excerpt) -> Result<(), Malformed> {
        if excerpt.first > self.confirmed_tick.next() {
            return Err(Malformed::Forbidden);
        }
        let before = self.confirmed_tick;
        let mut fresh = false;
        let table = excerpt.read(|tick, rows| {
            if tick > before {
                fresh = true;
                self.confirm(tick, rows);
            }
        });
        let table = table.map_err(|_| Malformed::Forbidden)?;
        if fresh {
            self.table = table;
        }
        self.launch();
        Ok(())
    }

    /// Takes a closed tick into the confirmed state, and notes whether it was as guessed.
    fn confirm(&mut self, tick: Tick, rows: &Inputs<Opaque>) {
        let mut inputs = self.spare.pop().unwrap_or_default();
        inputs.clear();
        for row in rows {
            if row.joined {
                inputs.join(row.seat);
                self.last[row.seat.index()] = None;
            }
            // What cannot be read is nothing; it is the same bytes, and so nothing, for everybody.
            match row.input.as_ref().and_then(|input| from_canonical::<G::Input>(input.as_bytes()).ok()) {
                Some(input) => {
                    self.last[row.seat.index()] = Some(input.clone());
                    inputs.set(row.seat, input);
                }
                None => inputs.omit(row.seat),
            }
            if row.left {
                inputs.leave(row.seat);
                self.last[row.seat.index()] = None;
            }
        }
        self.confirmed.step(&inputs);
        self.confirmed_tick = tick;
        self.own.pop_front();
        match self.guessed.pop_front() {
            Some(guess) => {
                self.wrong |= guess != inputs;
                self.spare.push(guess);
            }
            None => {
                self.wrong = true;
                self.shown_tick = tick;
            }
        }
        self.spare.push(inputs);
    }

    /// One more tick on screen, with our own input and what the others probably do.
    fn predict(&mut self, own: Option<G::Input>) {
        self.own.push_back(own);
        self.simulate(self.own.len() - 1);
    }

    /// Simulates the tick whose own input is at this place.
    fn simulate(&mut self, at: usize) {
        let mut inputs = self.spare.pop().unwrap_or_default();
        inputs.clear();
        for seat in (0..MAX_SEATS as u8).map(Seat).filter(|seat| self.table.is_taken(*seat)) {
            let input = if Some(seat) == self.seat {
                self.own[at].clone()
            } else {
                let before =
                    self.guessed.back().and_then(|guess| guess.get(seat)).and_then(|row| row.input.as_ref());
                before.or(self.last[seat.index()].as_ref()).map(G::guess)
            };
            match input {
                Some(input) => inputs.set(seat, input),
                None => inputs.omit(seat),
            }
        }
        self.shown.step(&inputs);
        self.shown_tick = self.shown_tick.next();
        self.guessed.push_back(inputs);
    }

    /// Simulates everything after the confirmed tick again. Returns how many ticks that were.
    fn repair(&mut self) -> u32 {
        self.shown.clone_from(&self.confirmed);
        self.shown_tick = self.confirmed_tick;
        self.spare.extend(self.guessed.drain(..));
        (0..self.own.len()).for_each(|at| self.simulate(at));
        self.own.len() as u32
    }
}
