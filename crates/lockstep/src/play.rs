//! The two states of a peer (L3): the confirmed state, advanced only by closed ticks, and the latency state on screen,
//! which runs ahead with own inputs and predictions.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::diff::{Difference, differences};
use sametick_sim::hash::parts;
use sametick_sim::record::decode_inputs;
use sametick_sim::{Game, Inputs, Row, Seat, StateHash, Tick, from_canonical, to_canonical};
use sametick_wire::Malformed;

use crate::history::{Excerpt, History};
use crate::message::{
    CHECK_EVERY, GIVEN_TICKS, MAX_DIFFERENCES, MAX_PARTS, RECENT_TICKS, Run, StateAt, read_ticks,
};
use crate::peer::MAX_PREDICTED;
use crate::planted::{self, Bug};
use crate::recent::Recent;
use crate::rows::{MAX_SEATS, Opaque, Table, row_as_bytes};

/// The depth of the state parts whose hashes are reported.
const PART_DEPTH: usize = 1;

mod back;

/// The simulation of a peer, once the relay has answered.
pub struct Play<G: Game> {
    seat: Option<Seat>,
    confirmed: G,
    confirmed_tick: Tick,
    shown: G,
    shown_tick: Tick,
    /// The table against which closed ticks are coded.
    table: Table,
    rows: Inputs<Opaque>,
    /// The last input of each taken seat in a closed tick.
    last: [Option<G::Input>; MAX_SEATS],
    /// Own inputs of the ticks after the confirmed one; none for ticks before the first played one.
    own: VecDeque<Option<G::Input>>,
    /// The inputs with which the ticks after the confirmed one were simulated.
    guessed: VecDeque<Inputs<G::Input>>,
    spare: Vec<Inputs<G::Input>>,
    /// A closed tick differed from its prediction.
    wrong: bool,
    /// A tick was closed before it was simulated here.
    overtaken: bool,
    /// Every tick up to this one is known to be closed.
    known_tick: Tick,
    recent: Recent<G>,
    /// The last closed ticks, for a relay that lost them.
    past: History,
    /// The state that the relay asked for, for a comparison with the agreed one when it is no longer in `recent`.
    shown_to_relay: Option<(Tick, G)>,
    /// The hash to send for a check.
    check: Option<(Tick, StateHash)>,
    /// Whether the last confirmed tick had an own input.
    had_own: bool,
    /// The tick after which it began.
    begun: Tick,
    /// The tick of a state that the relay wants and that is not confirmed yet.
    wanted: Option<Tick>,
    /// The state that the relay wants, in canonical bytes.
    offered: Option<(Tick, Vec<u8>)>,
    /// The offer has not been sent yet.
    is_offer_due: bool,
}

impl<G: Game> Play<G> {
    /// The beginning of a session whose last closed tick is `closed`.
    pub fn new(seat: Option<Seat>, setup: &G::Setup, closed: Tick) -> Play<G> {
        Play::after(seat, G::new(setup), Tick::ZERO, Table::default(), closed)
    }

    /// The same from the state after a later tick, with the seats taken then.
    pub fn after(seat: Option<Seat>, state: G, tick: Tick, table: Table, closed: Tick) -> Play<G> {
        let mut recent = Recent::new(&state);
        recent.push(tick, &state);
        Play {
            seat,
            shown: state.clone(),
            recent,
            past: History::after(tick, table.clone()),
            last: last_inputs::<G>(&table),
            confirmed: state,
            confirmed_tick: tick,
            shown_tick: tick,
            table,
            rows: Inputs::new(),
            own: VecDeque::new(),
            guessed: VecDeque::new(),
            spare: Vec::new(),
            wrong: false,
            overtaken: false,
            known_tick: closed,
            shown_to_relay: None,
            check: None,
            had_own: false,
            begun: tick,
            wanted: None,
            offered: None,
            is_offer_due: false,
        }
    }

    /// Goes on from the confirmed state, in a session now closed up to `closed`. Predicted ticks are dropped.
    pub fn rejoin(&mut self, seat: Option<Seat>, closed: Tick) {
        self.seat = seat;
        self.known_tick = closed;
        self.own.clear();
        self.spare.extend(self.guessed.drain(..));
        self.shown.clone_from(&self.confirmed);
        self.shown_tick = self.confirmed_tick;
        self.wrong = false;
        self.overtaken = false;
        self.check = None;
    }

    /// The number of confirmed ticks since it began, and of ticks known to be closed.
    pub fn progress(&self) -> (u32, u32) {
        let all = self.known_tick.max(self.confirmed_tick);
        (self.confirmed_tick.ticks_since(self.begun), all.ticks_since(self.begun))
    }

    /// The player's seat.
    pub fn seat(&self) -> Option<Seat> {
        self.seat
    }

    /// The tick that it can resume from on any relay: zero if the seats taken after the confirmed tick are not known.
    pub fn resumable(&self) -> Tick {
        if self.past.last() == self.confirmed_tick { self.confirmed_tick } else { Tick::ZERO }
    }

    /// The seats taken after the confirmed tick, if it is [resumable](Play::resumable).
    pub fn table(&self) -> &Table {
        self.past.table()
    }

    /// The confirmed state and its tick.
    pub fn confirmed(&self) -> (Tick, &G) {
        (self.confirmed_tick, &self.confirmed)
    }

    /// The state on screen and its tick.
    pub fn shown(&self) -> (Tick, &G) {
        (self.shown_tick, &self.shown)
    }

    /// How far the state on screen is ahead of the confirmed one.
    pub fn depth(&self) -> u32 {
        self.shown_tick.ticks_since(self.confirmed_tick)
    }

    /// Whether every tick known to be closed is confirmed.
    pub fn has_caught_up(&self) -> bool {
        self.confirmed_tick >= self.known_tick
    }

    /// The hashes of the last confirmed states, see [`Recent::hashes`].
    pub fn hashes(&self, from: Tick, to: Tick) -> (Tick, Vec<StateHash>) {
        self.recent.hashes(from, to)
    }

    /// The first kept state at or after a tick, for the relay.
    pub fn show_to_relay(&mut self, from: Tick) -> Option<StateAt> {
        let (tick, state) = self.recent.state(from)?;
        self.shown_to_relay = Some((tick, state.clone()));
        let mut parts = parts(state, PART_DEPTH);
        parts.truncate(MAX_PARTS);
        Some(StateAt { tick, parts, bytes: to_canonical(state).ok()? })
    }

    /// The relay wants the state after a tick: a kept one, or a future one.
    pub fn offer(&mut self, tick: Tick) {
        let kept = self.recent.state(tick).filter(|(kept, _)| *kept == tick);
        self.offered = kept.and_then(|(_, state)| to_canonical(state).ok()).map(|bytes| (tick, bytes));
        let is_to_come = tick > self.confirmed_tick && tick.ticks_since(self.confirmed_tick) <= RECENT_TICKS;
        self.wanted = is_to_come.then_some(tick);
        self.is_offer_due = !is_to_come;
    }

    /// The offer to send: the tick of the state and its size. None if no state was asked for or its tick is not
    /// confirmed yet.
    pub fn take_offer(&mut self) -> Option<Option<(Tick, usize)>> {
        let offer = self.offered.as_ref().map(|(tick, bytes)| (*tick, bytes.len()));
        core::mem::take(&mut self.is_offer_due).then_some(offer)
    }

    /// A part of the offered state, which is dropped with its last part.
    pub fn piece(&mut self, tick: Tick, offset: usize, length: usize) -> Option<Vec<u8>> {
        let (_, bytes) = self.offered.as_ref().filter(|(offered, _)| *offered == tick)?;
        let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        let piece = rest[..rest.len().min(length)].to_vec();
        if piece.len() == rest.len() {
            self.offered = None;
        }
        Some(piece)
    }

    /// Whether the last confirmed tick had an own input.
    pub fn had_own(&self) -> bool {
        self.had_own
    }

    /// Whether the relay has closed ticks that had not been simulated here, since the last call. At a low rate the
    /// state on screen is level with the confirmed one for a part of every tick; that alone does not count.
    pub fn take_overtaken(&mut self) -> bool {
        core::mem::take(&mut self.overtaken)
    }

    /// The hash that is due to be sent.
    pub fn take_check(&mut self) -> Option<(Tick, StateHash)> {
        self.check.take()
    }

    /// Runs the state on screen ahead, without own inputs.
    pub fn run_ahead(&mut self, to: Tick) {
        let most = self.confirmed_tick + MAX_PREDICTED;
        while self.shown_tick < to.min(most) {
            self.predict(None);
        }
    }

    /// Handles closed ticks, whether or not they continue those that are known.
    pub fn on_run(&mut self, bytes: &[u8]) -> Result<Run, Malformed> {
        let mut table = core::mem::take(&mut self.table);
        let mut rows = core::mem::take(&mut self.rows);
        let misread = planted::has(Bug::NumbersMisread);
        let near = if misread { self.confirmed_tick } else { self.confirmed_tick.max(self.known_tick) };
        let have = (self.confirmed_tick, near);
        let run = read_ticks(bytes, have, &mut table, &mut rows, |tick, rows| self.confirm(tick, rows));
        self.table = table;
        self.rows = rows;
        self.mend_past();
        run
    }

    /// Restarts the history of closed ticks where they do not continue it. A relay may be untrusted.
    fn mend_past(&mut self) {
        if self.past.last() != self.confirmed_tick {
            self.past = History::after(self.confirmed_tick, self.table.clone());
        }
    }

    /// Handles closed ticks that can be read by themselves, up to `to`.
    pub fn on_excerpt(&mut self, excerpt: &Excerpt, to: Tick) -> Result<(), Malformed> {
        if excerpt.first > self.confirmed_tick.next() {
            return Err(Malformed::Forbidden("ticks follow each other"));
        }
        let before = self.confirmed_tick;
        let mut fresh = false;
        let table = excerpt.read_to(to, |tick, rows| {
            if tick > before {
                fresh = true;
                self.confirm(tick, rows);
            }
        });
        let table =
            table.map_err(|_| Malformed::Forbidden("ticks can be read with the table before them"))?;
        if fresh && !planted::has(Bug::TableKept) {
            self.table = table;
        }
        self.mend_past();
        Ok(())
    }

    /// Applies a closed tick to the confirmed state, and notes whether its prediction was right.
    fn confirm(&mut self, tick: Tick, rows: &Inputs<Opaque>) {
        let mut inputs = self.spare.pop().unwrap_or_default();
        decode_inputs(rows.iter().map(row_as_bytes), &mut inputs);
        for row in &inputs {
            let last = &mut self.last[row.seat.index()];
            if row.joined {
                *last = None;
            }
            if let Some(input) = &row.input {
                *last = Some(input.clone());
            }
            if row.left {
                *last = None;
            }
        }
        self.had_own = self.seat.and_then(|seat| inputs.get(seat)).is_some_and(|row| row.input.is_some());
        if planted::has(Bug::OwnInputKept)
            && let (Some(seat), Some(Some(own)), false) = (self.seat, self.own.front(), self.had_own)
        {
            inputs.set(seat, own.clone());
        }
        self.confirmed.step(&inputs);
        self.confirmed_tick = tick;
        if self.past.last().next() == tick && self.past.table().fits(rows) {
            self.past.push(rows);
            self.past.forget(Tick(tick.0.saturating_sub(GIVEN_TICKS)));
        }
        self.keep(tick);
        self.own.pop_front();
        match self.guessed.pop_front() {
            Some(guess) => {
                self.wrong |= guess != inputs && !is_overlooked(&guess, &inputs);
                self.spare.push(guess);
            }
            None => {
                self.wrong = true;
                self.overtaken = true;
                self.shown_tick = tick;
            }
        }
        self.spare.push(inputs);
    }

    fn keep(&mut self, tick: Tick) {
        // No relay asks for states of ticks from before this peer joined.
        if tick.0 + RECENT_TICKS + CHECK_EVERY > self.known_tick.0 {
            self.recent.push(tick, &self.confirmed);
        }
        if self.wanted == Some(tick) {
            self.offered = to_canonical(&self.confirmed).ok().map(|bytes| (tick, bytes));
            (self.wanted, self.is_offer_due) = (None, true);
        }
        if tick.0.is_multiple_of(CHECK_EVERY) && tick >= self.known_tick {
            self.check = Some((tick, StateHash::of(&self.confirmed)));
        }
    }

    /// Simulates one more tick on screen, with the own input and predicted remote inputs.
    pub fn predict(&mut self, own: Option<G::Input>) {
        self.own.push_back(own);
        self.simulate(self.own.len() - 1);
    }

    /// Simulates the tick whose own input is at this index.
    fn simulate(&mut self, at: usize) {
        let mut inputs = self.spare.pop().unwrap_or_default();
        inputs.clear();
        for seat in self.table.taken() {
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

    /// Re-simulates wrong predictions. Returns the number of ticks; none if every prediction was right.
    pub fn settle(&mut self) -> Option<u32> {
        if !self.has_caught_up() || !core::mem::take(&mut self.wrong) {
            return None;
        }
        self.shown.clone_from(&self.confirmed);
        self.shown_tick = self.confirmed_tick;
        self.spare.extend(self.guessed.drain(..));
        (0..self.own.len()).for_each(|at| self.simulate(at));
        Some(self.own.len() as u32)
    }

    /// Goes back to the agreed state of a tick; the closed ticks after it follow. Returns the differences.
    pub fn resync(&mut self, tick: Tick, state: &[u8]) -> Result<Vec<Difference>, Malformed> {
        if tick > self.confirmed_tick {
            return Err(Malformed::Forbidden("a resync is of a tick that was closed"));
        }
        let good: G =
            from_canonical(state).map_err(|_| Malformed::Forbidden("a state is of the game's type"))?;
        let shown = self.shown_to_relay.take();
        let shown = shown.as_ref().map(|(tick, state)| (*tick, state));
        let ours = [shown, self.recent.state(tick)].into_iter().flatten().find(|(kept, _)| *kept == tick);
        let fields = ours.map(|(_, ours)| differences(ours, &good, MAX_DIFFERENCES)).unwrap_or_default();
        for _ in 0..self.confirmed_tick.ticks_since(tick) {
            self.own.push_front(None);
            self.guessed.push_front(Inputs::new());
        }
        self.known_tick = self.confirmed_tick;
        // The wrong state of that tick is removed too, or it would be found again.
        self.recent.rewind(Tick(tick.0.saturating_sub(1)));
        self.recent.push(tick, &good);
        if self.past.rewind(tick) {
            self.table = self.past.table().clone();
            self.last = last_inputs::<G>(&self.table);
        } else {
            // Restarted by the ticks that follow, which state the seats taken.
            self.past = History::default();
        }
        self.confirmed = good;
        self.confirmed_tick = tick;
        self.wrong = true;
        self.check = None;
        (self.wanted, self.offered) = (None, None);
        Ok(fields)
    }

    /// Corrupts the confirmed state, to test what happens then.
    pub fn tamper(&mut self, change: impl FnOnce(&mut G)) {
        change(&mut self.confirmed);
    }
}

/// The last input on each taken seat.
fn last_inputs<G: Game>(table: &Table) -> [Option<G::Input>; MAX_SEATS] {
    let mut last = [const { None }; MAX_SEATS];
    for (seat, input) in table.inputs() {
        last[seat.index()] = from_canonical(input.as_bytes()).ok();
    }
    last
}

/// Whether a wrong prediction is ignored: only with the planted bug.
fn is_overlooked<I: PartialEq>(guess: &Inputs<I>, inputs: &Inputs<I>) -> bool {
    let wrong = |(ours, theirs): &(&Row<I>, &Row<I>)| ours != theirs;
    planted::has(Bug::ResimulationSkipped) && guess.iter().zip(inputs).filter(wrong).count() == 1
}
