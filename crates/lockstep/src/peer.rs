//! One player's side of a session: takes closed ticks, hands in own inputs early enough, guesses what is not known yet, and
//! simulates again what was guessed wrong.

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

/// How far the state on screen may run ahead of the confirmed one. Beyond it the peer waits for the relay.
pub const MAX_PREDICTED: u32 = 60;

/// Runs of ticks that cannot be understood yet are kept up to this many; more come again when asked for.
const MAX_EARLY: usize = 64;

/// A run that never comes is asked for again this often.
const ASK_AGAIN_US: u64 = 500_000;

/// Much that is on its way may come slowly; it is asked for again only when nothing of it has come for this long.
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

/// What a peer is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The relay has not answered yet.
    Joining,
    /// Catching up with ticks that were closed before it came, or after it was given another state.
    CatchingUp,
    /// Playing or watching.
    Playing,
    /// So far ahead of the last closed tick that it waits for the relay.
    WaitingForRelay,
    /// Turned down, and why.
    Refused(String),
}

/// Figures of a peer, since it joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Guesses that were wrong and led to simulating again.
    pub rollbacks: u64,
    /// Ticks that were simulated again.
    pub resimulated: u64,
    /// Own inputs that were missing when their tick closed, as the relay counts.
    pub omissions: u32,
    /// How often ticks had to be asked for again.
    pub resends: u64,
    /// How often the state was wrong and had to be replaced.
    pub resyncs: u32,
    /// Ticks without an own input because this machine was away for too long.
    pub skipped: u64,
    /// How often it began with a save.
    pub loads: u32,
    /// How often it went back to an earlier tick, because the session was taken up again from there.
    pub rewinds: u32,
    /// Own inputs that it sent once more then.
    pub sent_again: u64,
}

/// How to take part.
#[derive(Clone, Debug)]
pub struct JoinAs<G: Game> {
    /// What the session is begun with, if it is not running yet.
    pub setup: G::Setup,
    /// The seed in that setup, for people who read the log.
    pub seed: u64,
    /// How many seats it has then.
    pub seats: u16,
    /// With how many players it begins then; those who come before wait.
    pub wait_for: u16,
    /// What the player is called.
    pub name: String,
    /// The git commit this was built from.
    pub commit: String,
    /// Only watch.
    pub watch: bool,
    /// Whether strangers may be shown the session, if this begins it.
    pub listed: bool,
}

/// One player's side of a session.
pub struct Peer<G: Game> {
    now: Time,
    outbox: Outbox<Channel>,
    /// What was asked for, to ask for it again.
    join: Join,
    claim: Option<Claim>,
    roster: (Vec<Seated>, u16),
    status: Status,
    play: Option<Play<G>>,
    pacer: Pacer,
    meter: Meter,
    /// Runs of ticks that cannot be understood yet: something before them is missing or on its way.
    early: VecDeque<Vec<u8>>,
    asked_at: Option<Time>,
    stats: PeerStats,
    /// The omissions before the last time it joined.
    earlier_omissions: u32,
    /// Own inputs that have not been sent: the tick of the first, and the inputs.
    unsent: (Tick, usize, [Opaque; MAX_BATCH as usize]),
    want_path: bool,
    /// The last confirmed tick that was measured.
    noted: Tick,
    /// The save that it begins with, while that is on its way.
    loading: Option<Loading>,
    /// How much of one has come, and how much there was.
    loaded: (u32, u32),
    /// Closed ticks that are still to be simulated.
    backlog: Backlog,
    /// It could not go back as far as it was told to, and has asked for everything: what comes before that is of no use.
    awaits_first: bool,
    copies: Copies,
    /// What the relay said that was found too late not to be the protocol.
    fault: Option<Malformed>,
}

impl<G: Game> Peer<G> {
    /// A peer that asks to take part. Its messages go over one link to a relay; `path` is what that link knows so far.
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

    /// What the peer is doing.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The figures so far.
    pub fn stats(&self) -> PeerStats {
        self.stats
    }

    /// How the connection and this machine are doing.
    pub fn diagnostics(&self) -> Diagnostics {
        self.meter.last()
    }

    /// Where the player sits.
    pub fn seat(&self) -> Option<Seat> {
        match (&self.loading, &self.play) {
            (Some(loading), _) => loading.seat(),
            (None, play) => play.as_ref()?.seat(),
        }
    }

    /// What tells the session from others of its name, once it is known. The same session may go back to an earlier tick when its
    /// relay was restarted.
    pub fn run(&self) -> Option<u64> {
        self.claim.map(|claim| claim.run)
    }

    /// What brings it back to its seat, once the relay has let it in: also in another program, with [`Peer::take_claim`].
    pub fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// Who plays, by seat, as far as the relay has told.
    pub fn roster(&self) -> &[Seated] {
        &self.roster.0
    }

    /// How many only watch.
    pub fn watchers(&self) -> u16 {
        self.roster.1
    }

    /// How much of what happened before it came is here, from 0 to 1; see [`Peer::catching_up`].
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

    /// Changes the confirmed state behind everybody's back: a test of what happens when a machine computes wrongly.
    pub fn tamper(&mut self, change: impl FnOnce(&mut G)) {
        if let Some(play) = &mut self.play {
            play.tamper(change);
        }
    }

    /// Takes what happened. After an error the relay does not speak the protocol.
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

    /// What the peer wants next. It never simulates much at once: with much to catch up with it wants to be woken at once,
    /// again and again.
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
        // Whoever had to wait goes on when it is as far ahead as it should be: it would be long in getting there otherwise.
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
        // After a long absence only those ticks are asked for whose inputs can still be in time.
        let (tick, useless) = (play.shown().0.next(), overdue.saturating_sub(self.pacer.useful_ticks()));
        if useless > 0 {
            self.send_inputs();
            self.skip_tick(tick);
            return self.poll_output(buf);
        }
        Output::WantInput(tick)
    }

    /// A tick that nobody hands in an input for.
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
            (ToPeer::Roster { players, watchers }, _) => {
                self.roster = (players, watchers);
                Ok(())
            }
            (
                message @ (ToPeer::Load(_)
                | ToPeer::Piece(_)
                | ToPeer::GiveSave { .. }
                | ToPeer::GivePiece { .. }),
                _,
            ) => self.on_save_message(message),
            // Of no use before the save is there.
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

    /// Closed ticks that continue what we have, or do not yet.
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

    /// Uses every run that can be understood now, and asks for what is missing before the others.
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

    /// After closed ticks have been taken: simulates again what was guessed wrong, and does what is due.
    fn settle(&mut self) {
        let Some(play) = &mut self.play else { return };
        if !play.has_caught_up() {
            return;
        }
        let confirmed = play.confirmed().0;
        // Also at the beginning: the last of what was closed before we came is here.
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
