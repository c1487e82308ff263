//! Catching up: a peer loads a save piece by piece, and simulates the ticks after it in slices, so that its driver
//! never waits long.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sametick_sim::{Game, Seat, StateHash, Tick, Time, from_canonical};
use sametick_wire::{Channel, Malformed};

use crate::history::{Excerpt, MAX_HISTORY};
use crate::message::{MAX_STATE, MAX_WANTED, PIECE_BYTES, Piece, SaveHead, ToRelay};
use crate::peer::{Peer, Status};
use crate::play::Play;
use crate::rows::{BAD_TABLE, Table};

/// The first slice; at the usual tens of microseconds per tick, a few milliseconds.
const FIRST_SLICE_TICKS: u32 = 128;

/// The shortest slice, however slow the machine.
const LEAST_SLICE_TICKS: u32 = 16;

/// The longest slice: the screen is updated a few times a second even if the clock seems to stand still.
const MOST_SLICE_TICKS: u32 = 4_096;

/// A slice that takes less is followed by a longer one: half a frame on most screens.
const SHORT_SLICE_US: u64 = 8_000;

/// A slice that takes longer is followed by a shorter one.
const LONG_SLICE_US: u64 = 25_000;

/// The reason for refusing a save whose bytes do not match its hash.
pub const WRONG_SAVE: &str = "the save that the relay sent is not the one that the players agreed on";

/// The progress of catching up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of a save that have arrived, and its size; zero if the peer does not begin with a save.
    pub bytes: (u32, u32),
    /// Ticks that have been simulated, and ticks known to be closed.
    pub ticks: (u32, u32),
}

impl Progress {
    /// Both together, from 0 to 1.
    pub fn share(&self) -> f32 {
        let share = |(done, all): (u32, u32)| (done as f32 / all.max(1) as f32).clamp(0.0, 1.0);
        match (self.bytes.1, self.ticks.1) {
            (0, _) => share(self.ticks),
            (_, 0) => share(self.bytes) / 2.0,
            _ => (share(self.bytes) + share(self.ticks)) / 2.0,
        }
    }
}

/// A save that is being transferred.
#[derive(Clone, Debug)]
pub(super) struct Loading {
    head: SaveHead,
    table: Table,
    seat: Option<Seat>,
    closed: Tick,
    bytes: Vec<u8>,
    /// The offset up to which pieces have been asked for.
    wanted: usize,
}

impl Loading {
    pub const fn seat(&self) -> Option<Seat> {
        self.seat
    }

    fn progress(&self) -> Progress {
        Progress { bytes: (self.bytes.len() as u32, self.head.bytes), ticks: (0, 0) }
    }
}

/// Ticks still to be simulated.
#[derive(Debug)]
pub(super) struct Backlog {
    excerpts: VecDeque<Excerpt>,
    bytes: usize,
    slice_ticks: u32,
    /// When the last slice was simulated.
    sliced_at: Option<Time>,
    /// A slice has been simulated since the last event.
    pub is_sliced: bool,
}

impl Backlog {
    pub const fn new() -> Backlog {
        Backlog {
            excerpts: VecDeque::new(),
            bytes: 0,
            slice_ticks: FIRST_SLICE_TICKS,
            sliced_at: None,
            is_sliced: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.excerpts.is_empty()
    }

    pub fn clear(&mut self) {
        self.excerpts.clear();
        self.bytes = 0;
    }

    /// Adds ticks that can be read by themselves and follow those in the backlog, or `confirmed`.
    pub fn push(&mut self, confirmed: Tick, excerpt: Excerpt) -> Result<(), Malformed> {
        let reach = self.excerpts.back().map_or(confirmed, |last| last.last().max(confirmed));
        let is_next = excerpt.first.0 <= reach.0.saturating_add(1);
        if !is_next || self.bytes + excerpt.bytes.len() > 2 * MAX_HISTORY {
            return Err(Malformed::Forbidden("ticks follow each other"));
        }
        excerpt
            .read(|_, _| ())
            .map_err(|_| Malformed::Forbidden("ticks can be read with the table before them"))?;
        if excerpt.last() > reach {
            self.sliced_at = self.sliced_at.filter(|_| !self.excerpts.is_empty());
            self.bytes += excerpt.bytes.len();
            self.excerpts.push_back(excerpt);
        }
        Ok(())
    }

    /// The number of ticks to simulate now, adapted to how long the last slice took.
    fn next_slice(&mut self, now: Time) -> u32 {
        let ticks = match self.sliced_at.map(|at| now.micros_since(at)) {
            Some(0..SHORT_SLICE_US) => self.slice_ticks * 2,
            Some(LONG_SLICE_US..) => self.slice_ticks / 2,
            _ => self.slice_ticks,
        };
        self.sliced_at = Some(now);
        self.slice_ticks = ticks.clamp(LEAST_SLICE_TICKS, MOST_SLICE_TICKS);
        self.slice_ticks
    }

    fn step<G: Game>(&mut self, now: Time, play: &mut Play<G>) -> Result<(), Malformed> {
        let to = Tick(play.confirmed().0.0.saturating_add(self.next_slice(now)));
        self.is_sliced = true;
        while let Some(excerpt) = self.excerpts.front().filter(|_| play.confirmed().0 < to) {
            play.on_excerpt(excerpt, to)?;
            if play.confirmed().0 >= excerpt.last() {
                self.bytes -= excerpt.bytes.len();
                self.excerpts.pop_front();
            }
        }
        Ok(())
    }
}

impl<G: Game> Peer<G> {
    /// The progress of catching up.
    pub fn catching_up(&self) -> Progress {
        match (&self.loading, &self.play) {
            (Some(loading), _) => loading.progress(),
            (None, Some(play)) => Progress { bytes: self.loaded, ticks: play.progress() },
            (None, None) => Progress::default(),
        }
    }

    /// Begins with a save, in a session whose last closed tick is `closed`. Pieces of the same save that have arrived
    /// before are not asked for again.
    pub(super) fn begin_loading(
        &mut self,
        seat: Option<Seat>,
        closed: Tick,
        head: SaveHead,
    ) -> Result<(), Malformed> {
        let table = Table::from_bytes(&head.table).map_err(|_| BAD_TABLE)?;
        if head.bytes == 0 || head.bytes as usize > MAX_STATE || head.tick == Tick(u32::MAX) {
            return Err(Malformed::Forbidden("a save has at most 8 MiB"));
        }
        let before = self.loading.take().filter(|loading| loading.head == head);
        let bytes = before.map(|loading| loading.bytes).or_else(|| self.copies.take_state(&head));
        let bytes = bytes.unwrap_or_default();
        let is_here = bytes.len() == head.bytes as usize;
        self.loading = Some(Loading { head, table, seat, closed, wanted: bytes.len(), bytes });
        self.backlog.clear();
        self.awaits_first = false;
        self.status = Status::CatchingUp;
        if is_here {
            self.load();
            return self.use_early();
        }
        self.want_pieces();
        Ok(())
    }

    fn want_pieces(&mut self) {
        let Some(loading) = &mut self.loading else { return };
        let (tick, length) = (loading.head.tick, loading.head.bytes as usize);
        let to = length.min(loading.bytes.len() + MAX_WANTED * PIECE_BYTES);
        let from = loading.wanted;
        loading.wanted = to.max(from);
        for offset in (from..to).step_by(PIECE_BYTES) {
            self.tell(Channel::Control, &ToRelay::Want { tick, offset: offset as u32 });
        }
    }

    /// A piece of a save has arrived.
    pub(super) fn on_piece(&mut self, piece: &Piece) -> Result<(), Malformed> {
        // Pieces of a save that was replaced by another may still arrive.
        let Some(loading) = self.loading.as_mut().filter(|it| it.head.tick == piece.tick) else {
            return Ok(());
        };
        let left = loading.head.bytes as usize - loading.bytes.len();
        if piece.offset as usize != loading.bytes.len() || piece.bytes.len() != left.min(PIECE_BYTES) {
            return Err(Malformed::Forbidden("pieces of a save come in order, each of the full size"));
        }
        loading.bytes.extend_from_slice(&piece.bytes);
        if loading.bytes.len() < loading.head.bytes as usize {
            self.want_pieces();
            return Ok(());
        }
        self.load();
        self.use_early()
    }

    /// The save is complete: plays on from it, if its hash is right.
    fn load(&mut self) {
        let Some(Loading { head, table, seat, closed, bytes, .. }) = self.loading.take() else { return };
        let is_right = StateHash::of_bytes(&bytes) == head.hash;
        let state: Option<G> = from_canonical(&bytes).ok().filter(|_| is_right);
        let Some(state) = state.filter(|state| StateHash::of(state) == head.hash) else {
            self.status = Status::Refused(WRONG_SAVE.into());
            return;
        };
        self.stats.loads += 1;
        self.loaded = (head.bytes, head.bytes);
        self.noted = head.tick;
        self.play = Some(Play::after(seat, state, head.tick, table, closed));
        let ask = ToRelay::Resend { from: head.tick.next() };
        self.tell(Channel::Control, &ask);
        self.asked_at = Some(self.now);
    }

    /// The peer was desynced: goes on from this state.
    pub(super) fn on_resync(&mut self, tick: Tick, state: &[u8]) -> Result<(), Malformed> {
        self.backlog.clear();
        let Some(play) = &mut self.play else { return Ok(()) };
        let fields = play.resync(tick, state)?;
        self.stats.resyncs += 1;
        self.tell(Channel::Control, &ToRelay::Resynced { tick, fields });
        // Ticks that were closed after the relay sent this may have arrived already, and are lost with the state.
        let ask = ToRelay::Resend { from: tick.next() };
        self.tell(Channel::Control, &ask);
        self.asked_at = Some(self.now);
        self.use_early()
    }

    /// Simulates a slice of the backlog, if there is one and no slice has been simulated since the last event.
    pub(super) fn simulate_slice(&mut self) {
        let Some(play) = self.play.as_mut().filter(|_| !self.backlog.is_empty()) else { return };
        let result = self.backlog.step(self.now, play);
        let result = if self.backlog.is_empty() { result.and_then(|()| self.use_early()) } else { result };
        self.fault = self.fault.or(result.err());
    }
}
