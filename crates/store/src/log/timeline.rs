//! The position in a session: the next tick, the taken seats, and the joins and leaves that a rewind can undo.
//!
//! Writer and reader keep the same timeline; it decides which record may come next. A record that does not fit is
//! refused: for the writer it is a mistake of the caller, for the reader bytes that no writer writes.

use std::collections::VecDeque;

use sametick_sim::{Row, Seat, Tick};

use super::model::SeatModels;
use super::{MAX_BROUGHT_BYTES, MAX_INPUT_BYTES, MAX_TICK_BROUGHT_BYTES, MAX_TICK_BYTES};
use sametick_sim::record::{Record, TickInputs};

/// How many joins and leaves a rewind can undo. Rewinds go back seconds; this is a full stadium emptied twice.
const MAX_CHANGES: usize = 1024;

/// Why a record cannot come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// It belongs to another tick.
    #[error("a record of tick {tick}, where tick {next} is the next to close")]
    Tick {
        /// Its tick.
        tick: Tick,
        /// The next tick.
        next: Tick,
    },
    /// The seat is taken already.
    #[error("seat {0} is taken")]
    Taken(Seat),
    /// The seat is free, or its player is leaving already.
    #[error("nobody is on seat {0}")]
    Empty(Seat),
    /// The rows of a tick do not match the taken seats, or its joins and leaves.
    #[error("the inputs of tick {0} are not those of the players who are there")]
    Rows(Tick),
    /// An input, or the total of all inputs, is too long.
    #[error("the inputs of tick {0} are longer than a log takes")]
    TooLong(Tick),
    /// The seats at that time are no longer known.
    #[error("a rewind to tick {0} goes too far back")]
    TooFarBack(Tick),
    /// The session is over.
    #[error("the session is over")]
    Ended,
    /// There is no tick after this one.
    #[error("there are no more ticks")]
    LastTick,
}

/// The end position of a log: all that is needed to go on with it, in the same file or in a new one.
#[derive(Clone, Debug)]
pub struct Position {
    pub(super) timeline: Timeline,
    /// The length of the log in bytes.
    pub(super) offset: u64,
    pub(super) last_group: Option<u64>,
}

impl Position {
    /// The position after a lost log, known from a save: after this tick, with these seats taken. Another log begins
    /// there.
    pub fn after(tick: Tick, seats: impl IntoIterator<Item = Seat>) -> Position {
        let mut places: Vec<Place> = seats.into_iter().map(Place::new).collect();
        places.sort_by_key(|place| place.seat);
        places.dedup_by_key(|place| place.seat);
        Position { timeline: Timeline::new(tick.next(), places), offset: 0, last_group: None }
    }

    /// The next tick to close.
    pub fn next_tick(&self) -> Tick {
        self.timeline.next
    }

    /// The length of the log in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The taken seats.
    pub fn seats(&self) -> impl Iterator<Item = Seat> {
        self.timeline.places.iter().map(|place| place.seat)
    }
}

/// A taken seat.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) seat: Seat,
    pub(super) joined: bool,
    pub(super) leaving: bool,
    /// The last input that arrived: the next one is coded against it.
    pub(super) last: Vec<u8>,
    pub(super) models: SeatModels,
}

impl Place {
    pub(super) fn new(seat: Seat) -> Place {
        Place { seat, joined: false, leaving: false, last: Vec::new(), models: SeatModels::NEW }
    }
}

#[derive(Clone, Copy, Debug)]
struct Change {
    tick: Tick,
    seat: Seat,
    came: bool,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    pub(super) next: Tick,
    pub(super) places: Vec<Place>,
    changes: VecDeque<Change>,
    /// The seats before this tick are not known.
    known_from: Tick,
    pub(super) ended: bool,
}

impl Timeline {
    /// Starts before `first`, with these seats taken.
    pub(super) fn new(first: Tick, places: Vec<Place>) -> Timeline {
        Timeline { next: first, places, changes: VecDeque::new(), known_from: first, ended: false }
    }

    /// Whether `record` may come next.
    pub(super) fn check(&self, record: &Record) -> Result<(), Misplaced> {
        if self.ended && !matches!(record, Record::Resumed { .. }) {
            return Err(Misplaced::Ended);
        }
        match *record {
            Record::Joined { tick, seat, .. } => {
                self.upcoming(tick)?;
                self.find(seat).map_or(Ok(()), |_| Err(Misplaced::Taken(seat)))
            }
            Record::Left { tick, seat, .. } => {
                self.upcoming(tick)?;
                let stays = self.find(seat).is_ok_and(|at| !self.places[at].leaving);
                if stays { Ok(()) } else { Err(Misplaced::Empty(seat)) }
            }
            Record::Check { tick, .. }
            | Record::Dissent { tick, .. }
            | Record::Snapshot { tick, .. }
            | Record::Desync { tick, .. }
            | Record::Dispute { tick } => self.closed(tick),
            Record::Rewind { to } => {
                self.closed(to)?;
                if to.next() < self.known_from { Err(Misplaced::TooFarBack(to)) } else { Ok(()) }
            }
            Record::Inputs(ref inputs) => self.check_inputs(inputs),
            Record::Resumed { .. } | Record::End => Ok(()),
        }
    }

    /// Applies `record`, which must be allowed to come next. The coding caller takes the inputs itself.
    pub(super) fn apply(&mut self, record: &Record) {
        match *record {
            Record::Joined { tick, seat, .. } => {
                let at = self.find(seat).unwrap_or_else(|at| at);
                self.places.insert(at, Place { joined: true, ..Place::new(seat) });
                self.remember(Change { tick, seat, came: true });
            }
            Record::Left { tick, seat, .. } => {
                self.places
                    .iter_mut()
                    .filter(|place| place.seat == seat)
                    .for_each(|place| place.leaving = true);
                self.remember(Change { tick, seat, came: false });
            }
            Record::Rewind { to } => self.rewind(to),
            Record::Resumed { .. } => self.ended = false,
            Record::End => self.ended = true,
            _ => {}
        }
    }

    fn rewind(&mut self, to: Tick) {
        while let Some(change) = self.changes.pop_back_if(|change| change.tick > to) {
            match (self.find(change.seat), change.came) {
                (Ok(at), true) => drop(self.places.remove(at)),
                (Err(at), false) => self.places.insert(at, Place::new(change.seat)),
                _ => {}
            }
        }
        for place in &mut self.places {
            // The reference of the next inputs must not depend on void ones.
            *place = Place::new(place.seat);
        }
        self.next = to.next();
    }

    /// Whether the rows of `inputs` are those of the taken seats.
    pub(super) fn check_inputs(&self, inputs: &TickInputs) -> Result<(), Misplaced> {
        let tick = inputs.tick();
        if self.ended {
            return Err(Misplaced::Ended);
        }
        self.upcoming(tick)?;
        if tick.0 == u32::MAX {
            return Err(Misplaced::LastTick);
        }
        let fits = |(place, row): (&Place, Row<&[u8]>)| {
            place.seat == row.seat && place.joined == row.joined && place.leaving == row.left
        };
        if self.places.len() != inputs.len() || !self.places.iter().zip(inputs.iter()).all(fits) {
            return Err(Misplaced::Rows(tick));
        }
        let longest = inputs.iter().filter_map(|row| row.input).map(<[u8]>::len).max().unwrap_or(0);
        // A seat that omits this tick keeps its last input.
        let held = |(place, row): (&Place, Row<&[u8]>)| row.input.map_or(place.last.len(), <[u8]>::len);
        let all = self.places.iter().zip(inputs.iter()).map(held).sum::<usize>();
        let brought = inputs.brought().map(|brought| brought.bytes.len());
        let (longest_brought, all_brought) =
            brought.fold((0, 0), |(longest, all), length| (longest.max(length), all + length));
        let fits = longest <= MAX_INPUT_BYTES
            && all <= MAX_TICK_BYTES
            && longest_brought <= MAX_BROUGHT_BYTES
            && all_brought <= MAX_TICK_BROUGHT_BYTES;
        if fits { Ok(()) } else { Err(Misplaced::TooLong(tick)) }
    }

    /// Ends the tick: players who joined are seated, players who were leaving are gone.
    pub(super) fn close_tick(&mut self) {
        self.next = self.next.next();
        self.places.retain_mut(|place| {
            place.joined = false;
            !place.leaving
        });
    }

    /// Resets the coding models; the taken seats stay.
    pub(super) fn reset_models(&mut self) {
        self.places.iter_mut().for_each(|place| place.models = SeatModels::NEW);
    }

    fn upcoming(&self, tick: Tick) -> Result<(), Misplaced> {
        if tick == self.next { Ok(()) } else { Err(Misplaced::Tick { tick, next: self.next }) }
    }

    fn closed(&self, tick: Tick) -> Result<(), Misplaced> {
        if tick < self.next { Ok(()) } else { Err(Misplaced::Tick { tick, next: self.next }) }
    }

    fn find(&self, seat: Seat) -> Result<usize, usize> {
        self.places.binary_search_by_key(&seat, |place| place.seat)
    }

    fn remember(&mut self, change: Change) {
        if self.changes.len() == MAX_CHANGES
            && let Some(oldest) = self.changes.pop_front()
        {
            self.known_from = oldest.tick.max(self.known_from).next();
        }
        self.changes.push_back(change);
    }
}
