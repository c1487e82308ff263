//! The client of a session: takes closed ticks, sends own inputs in time, predicts unknown inputs, and re-simulates
//! wrong predictions.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Game, Seat, Tick, Time, to_canonical};
use sametick_wire::{Channel, Malformed};

use crate::diagnostics::Diagnostics;
use crate::history::Excerpt;
use crate::message::{self, Claim, Join, MAX_SETUP, Pace, Run, Seated, ToPeer, ToRelay};
use crate::meter::Meter;
use crate::play::Play;
use crate::rows::{BAD_TABLE, Opaque, Table};
use sametick_wire::outbox::Outbox;
use sametick_wire::pacer::{Arrived, MAX_BATCH, Pacer, Path};
pub use sametick_wire::side::{Input, Output};

/// How far the state on screen may run ahead of the confirmed one. Beyond that the peer waits for the relay.
pub const MAX_PREDICTED: u32 = 60;

/// The most runs of ticks kept while ticks before them are missing; further runs are asked for again.
const MAX_EARLY: usize = 64;

/// A missing run is asked for again this often.
const ASK_AGAIN_US: u64 = 500_000;

/// A large transfer may be slow: it is asked for again only when nothing of it has arrived for this long.
const ASK_FOR_MUCH_AGAIN_US: u64 = 2_000_000;

mod acting;
mod copying;
mod giving;
mod joining;
mod loading;

pub use copying::Brought;
use copying::Copies;
use loading::{Backlog, Loading};
pub use loading::{Progress, WRONG_SAVE};

/// The state of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The relay has not answered yet.
    Joining,
    /// Catching up with ticks closed before it joined, or before it was given another state.
    CatchingUp,
    /// Playing or spectating.
    Playing,
    /// The state on screen is so far ahead of the last closed tick that the peer waits for the relay.
    WaitingForRelay,
    /// The join was refused, with the reason.
    Refused(String),
}

/// Figures of a peer, since it joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Wrong predictions that caused a re-simulation.
    pub rollbacks: u64,
    /// Ticks that were re-simulated.
    pub resimulated: u64,
    /// Own inputs that were missing when their tick closed, as the relay counts.
    pub omissions: u32,
    /// How often ticks had to be asked for again.
    pub resends: u64,
    /// How often the peer was desynced and its state replaced.
    pub resyncs: u32,
    /// Ticks without an own input because this machine was away for too long.
    pub skipped: u64,
    /// How often the peer began with a save.
    pub loads: u32,
    /// How often the peer was rewound because the session was resumed from an earlier tick.
    pub rewinds: u32,
    /// Own inputs sent again after rewinds.
    pub sent_again: u64,
}

/// How to join a session.
#[derive(Clone, Debug)]
pub struct JoinAs<G: Game> {
    /// The setup of the session, if this begins it.
    pub setup: G::Setup,
    /// The seed in that setup, for people who read the log.
    pub seed: u64,
    /// The number of seats, if this begins the session.
    pub seats: u16,
    /// With how many players the session begins, if this begins it; players who come earlier wait.
    pub wait_for: u16,
    /// The player's name.
    pub name: String,
    /// The git commit this was built from.
    pub commit: String,
    /// Join as a spectator.
    pub watch: bool,
    /// Whether the session is shown in public lists, if this begins it.
    pub listed: bool,
}

/// The client of a session, for one player or spectator.
pub struct Peer<G: Game> {
    now: Time,
    outbox: Outbox<Channel>,
    /// The join request, for rejoining.
    join: Join,
    claim: Option<Claim>,
    roster: (Vec<Seated>, u16),
    status: Status,
    play: Option<Play<G>>,
    pacer: Pacer,
    meter: Meter,
    /// Runs of ticks that cannot be read yet: ticks before them are missing.
    early: VecDeque<Vec<u8>>,
    asked_at: Option<Time>,
    stats: PeerStats,
    /// The omissions before the last join.
    earlier_omissions: u32,
    /// Own inputs that have not been sent: the tick of the first, and the inputs.
    unsent: (Tick, usize, [Opaque; MAX_BATCH as usize]),
    want_path: bool,
    /// The last confirmed tick that was measured.
    noted: Tick,
    /// The save to begin with, while it is being transferred.
    loading: Option<Loading>,
    /// Bytes of a save that have arrived, and its size.
    loaded: (u32, u32),
    /// Closed ticks still to be simulated.
    backlog: Backlog,
    /// The peer could not rewind as far as asked and has asked for all ticks: messages sent before that are ignored.
    awaits_first: bool,
    copies: Copies,
    /// A protocol violation of the relay that was found too late to be returned.
    fault: Option<Malformed>,
}

impl<G: Game> Peer<G> {
    /// A peer that joins over one link to a relay; `path` is what that link has measured so far.
    ///
    /// # Panics
    /// If the setup cannot be serialised or is longer than [`MAX_SETUP`].
    pub fn new(now: Time, join: &JoinAs<G>, path: Path) -> Peer<G> {
        let setup = to_canonical(&join.setup).expect("a setup serialises");
        assert!(setup.len() <= MAX_SETUP, "a setup has at most {MAX_SETUP} bytes");
        let join = Join {
            game: G::NAME.into(),
            commit: join.commit.clone(),
            setup,
            seed: join.seed,
            rate: G::RATE.per_second() as u16,
            seats: join.seats,
            wait_for: join.wait_for,
            name: join.name.clone(),
            watch: join.watch,
            seat: None,
            listed: join.listed,
            resume: None,
            bring: None,
        };
        let mut peer = Peer {
            now,
            outbox: Outbox::default(),
            join,
            claim: None,
            roster: (Vec::new(), 0),
            status: Status::Joining,
            play: None,
            pacer: Pacer::new(G::RATE, now, path),
            meter: Meter::new(G::RATE, path),
            early: VecDeque::new(),
            asked_at: None,
            stats: PeerStats::default(),
            earlier_omissions: 0,
            unsent: (Tick::ZERO, 0, [Opaque::EMPTY; MAX_BATCH as usize]),
            want_path: false,
            noted: Tick::ZERO,
            loading: None,
            loaded: (0, 0),
            backlog: Backlog::new(),
            awaits_first: false,
            copies: Copies::default(),
            fault: None,
        };
        peer.ask_to_join();
        peer
    }

    /// The current status.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The figures so far.
    pub fn stats(&self) -> PeerStats {
        self.stats
    }

    /// The diagnostics of the connection and of this machine.
    pub fn diagnostics(&self) -> Diagnostics {
        self.meter.last()
    }

    /// The player's seat.
    pub fn seat(&self) -> Option<Seat> {
        match (&self.loading, &self.play) {
            (Some(loading), _) => loading.seat(),
            (None, play) => play.as_ref()?.seat(),
        }
    }

    /// Distinguishes the session from others of its name, once it is known. The same session may go back to an earlier
    /// tick when its relay is restarted.
    pub fn run(&self) -> Option<u64> {
        self.claim.map(|claim| claim.run)
    }

    /// The claim to resume with, once the relay has let the peer in; see [`Peer::take_claim`].
    pub fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// The players by seat, as the relay last reported.
    pub fn roster(&self) -> &[Seated] {
        &self.roster.0
    }

    /// The number of spectators.
    pub fn spectators(&self) -> u16 {
        self.roster.1
    }

    /// The progress of catching up, from 0 to 1; see [`Peer::catching_up`].
    pub fn progress(&self) -> f32 {
        self.catching_up().share()
    }

    /// The confirmed state and its tick.
    pub fn confirmed(&self) -> Option<(Tick, &G)> {
        self.play.as_ref().map(Play::confirmed)
    }

    /// The state on screen and its tick.
    pub fn shown(&self) -> Option<(Tick, &G)> {
        self.play.as_ref().map(Play::shown)
    }

    /// The hashes of the last confirmed ticks from `from` to `to`, as far as they are kept, and the tick of the first.
    pub fn hashes(&self, from: Tick, to: Tick) -> Option<(Tick, Vec<sametick_sim::StateHash>)> {
        self.play.as_ref().map(|play| play.hashes(from, to))
    }

    /// Corrupts the confirmed state, to test what happens when a machine computes wrongly.
    pub fn tamper(&mut self, change: impl FnOnce(&mut G)) {
        if let Some(play) = &mut self.play {
            play.tamper(change);
        }
    }

    /// Handles an event. An error means that the relay violates the protocol.
    pub fn handle(&mut self, now: Time, input: Input<'_, G::Input>) -> Result<(), Malformed> {
        self.now = self.now.max(now);
        self.backlog.is_sliced = false;
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        match input {
            Input::Message(Channel::Control | Channel::Chunks, bytes) => {
                self.on_control(message::from_bytes(bytes)?)
            }
            Input::Message(Channel::Input, bytes) => self.on_ticks(bytes),
            Input::Message(Channel::State, bytes) => {
                let report: Pace = message::from_bytes(bytes)?;
                self.stats.omissions = self.earlier_omissions.saturating_add(report.omissions);
                let Pace { tick, least_slack_us, omissions, .. } = report;
                self.pacer.on_report(&Arrived { tick, least_slack_us, omissions });
                self.meter.on_report(&report);
                Ok(())
            }
            Input::Message(..) => Err(Malformed::Forbidden(
                "a relay speaks on the channels for control, chunks, input and state",
            )),
            Input::Local(input) => {
                self.on_local(input);
                Ok(())
            }
            Input::Path(path) => {
                self.want_path = false;
                self.pacer.on_path(path);
                self.meter.on_path(path);
                Ok(())
            }
            Input::Timeout => Ok(()),
        }
    }

    /// What the peer wants next. It never simulates much in one call: while it has much to catch up with, it wants to
    /// be woken at once.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        if !self.backlog.is_sliced {
            self.simulate_slice();
        }
        if let Some(channel) = self.outbox.pop(buf) {
            return Output::Send(channel);
        }
        if !self.backlog.is_empty() && self.status.takes_part() {
            self.status = Status::CatchingUp;
            return Output::WakeAt(self.now);
        }
        let Some(play) = self.play.as_mut().filter(|_| self.status.takes_part()) else {
            return Output::Wait;
        };
        if self.want_path {
            return Output::WantPath;
        }
        if !play.has_caught_up() || self.loading.is_some() {
            self.status = Status::CatchingUp;
            return Output::Wait;
        }
        // A peer that had to wait goes on at its usual lead: it would take long to get there otherwise.
        let is_waiting = self.status == Status::WaitingForRelay;
        let enough = if is_waiting { self.pacer.lead_ticks().min(MAX_PREDICTED) } else { MAX_PREDICTED };
        if play.depth() >= enough {
            self.status = Status::WaitingForRelay;
            self.pacer.restart(self.now);
            return Output::Wait;
        }
        self.status = Status::Playing;
        if play.seat().is_none() {
            return Output::Wait;
        }
        if self.pacer.next_at() > self.now {
            return Output::WakeAt(self.pacer.next_at());
        }
        let overdue = self.pacer.overdue_ticks(self.now);
        self.meter.on_tick(self.now, play.confirmed().0, play.depth(), overdue);
        // After a long absence only those ticks are simulated whose inputs can still be in time.
        let (tick, useless) = (play.shown().0.next(), overdue.saturating_sub(self.pacer.useful_ticks()));
        if useless > 0 {
            self.send_inputs();
            self.skip_tick(tick);
            return self.poll_output(buf);
        }
        Output::WantInput(tick)
    }

    /// Skips a tick for which no input is sent.
    fn skip_tick(&mut self, tick: Tick) {
        self.stats.skipped += 1;
        if let Some(play) = &mut self.play {
            play.predict(None);
        }
        self.pacer.advance(tick);
        self.do_duties(tick);
    }

    fn on_control(&mut self, message: ToPeer) -> Result<(), Malformed> {
        match (message, &mut self.play) {
            (welcome @ ToPeer::Welcome { .. }, _) if self.status == Status::Joining => {
                self.on_welcome(welcome)
            }
            (ToPeer::Refused { why }, _) if self.status == Status::Joining => {
                self.status = Status::Refused(why);
                Ok(())
            }
            (ToPeer::GiveTicks { from }, _) => {
                self.on_give_ticks(from);
                Ok(())
            }
            (ToPeer::GivePiece { tick, offset, bytes }, _) if self.status == Status::Joining => {
                self.give_brought(tick, offset, bytes);
                Ok(())
            }
            _ if !self.status.takes_part() => {
                Err(Malformed::Forbidden("the first message of a relay is Welcome or Refused"))
            }
            (ToPeer::Roster { players, spectators }, _) => {
                self.roster = (players, spectators);
                Ok(())
            }
            (
                message @ (ToPeer::Load(_)
                | ToPeer::Piece(_)
                | ToPeer::GiveSave { .. }
                | ToPeer::GivePiece { .. }),
                _,
            ) => self.on_save_message(message),
            // Ticks cannot be used before the save has arrived.
            (ToPeer::Ticks { .. }, _) if self.loading.is_some() => Ok(()),
            (ToPeer::Ticks { first, .. }, _) if self.awaits_first && first > Tick(1) => Ok(()),
            (ToPeer::Ticks { first, ticks, table, bytes }, Some(play)) => {
                let start = Table::from_bytes(&table).map_err(|_| BAD_TABLE)?;
                (self.asked_at, self.awaits_first) = (Some(self.now), false);
                self.backlog.push(play.confirmed().0, Excerpt { first, ticks, start, bytes })
            }
            (ToPeer::GiveHashes { from, to }, Some(play)) => {
                let (first, hashes) = play.hashes(from, to);
                self.tell(Channel::Control, &ToRelay::Hashes { first, hashes });
                Ok(())
            }
            (ToPeer::GiveState { tick }, Some(play)) => {
                if let Some(state) = play.show_to_relay(tick) {
                    self.tell(Channel::Chunks, &ToRelay::State(state));
                }
                Ok(())
            }
            (ToPeer::Resync { tick, state }, Some(_)) => self.on_resync(tick, &state),
            _ => Err(Malformed::Forbidden("a relay welcomes once")),
        }
    }

    fn tell<T: serde::Serialize>(&mut self, channel: Channel, message: &T) {
        self.outbox.push(channel, |out| message::put(out, message));
    }

    /// Handles closed ticks, whether or not they continue those that are known.
    fn on_ticks(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let play = self.play.as_mut().filter(|_| self.status.takes_part());
        let run = play.map_or(Ok(Run::Early), |play| play.on_run(bytes))?;
        if run == Run::Early {
            if self.early.len() == MAX_EARLY {
                self.early.pop_front();
            }
            self.early.push_back(bytes.to_vec());
        }
        self.use_early()
    }

    /// Uses every run that can be read now, and asks for the ticks missing before the others.
    fn use_early(&mut self) -> Result<(), Malformed> {
        let Some(play) = self.play.as_mut().filter(|_| self.status.takes_part()) else { return Ok(()) };
        let mut result = Ok(());
        let mut progress = !self.early.is_empty();
        while progress {
            progress = false;
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
        }
        self.ask_for_missing();
        self.settle();
        result
    }

    fn ask_for_missing(&mut self) {
        let is_coming = self.loading.is_some() || !self.backlog.is_empty();
        let Some(play) = self.play.as_ref().filter(|_| !is_coming) else { return };
        let patience_us = if play.has_caught_up() { ASK_AGAIN_US } else { ASK_FOR_MUCH_AGAIN_US };
        if self.early.is_empty() {
            self.asked_at = None;
        } else if self.asked_at.is_none_or(|at| self.now.micros_since(at) >= patience_us) {
            self.asked_at = Some(self.now);
            self.stats.resends += 1;
            let ask = ToRelay::Resend { from: play.confirmed().0.next() };
            self.tell(Channel::Control, &ask);
        }
    }

    /// After closed ticks: re-simulates wrong predictions and does what is due.
    fn settle(&mut self) {
        let Some(play) = &mut self.play else { return };
        if !play.has_caught_up() {
            return;
        }
        let confirmed = play.confirmed().0;
        // Also at the beginning: the last tick closed before the join is here.
        let (had_own, overtaken) = (play.had_own(), play.take_overtaken());
        if let Some(ticks) = play.settle() {
            self.stats.rollbacks += u64::from(ticks > 0);
            self.stats.resimulated += u64::from(ticks);
        }
        if let Some((tick, hash)) = play.take_check() {
            self.tell(Channel::Control, &ToRelay::Check { tick, hash });
        }
        self.tell_offer(confirmed);
        if overtaken {
            self.launch(confirmed);
        }
        self.note_confirmed(confirmed, had_own);
    }
}
