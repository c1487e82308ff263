//! What is written down about a session: the records of its log, and the inputs of one tick as bytes that only the game
//! understands. Whoever closes ticks makes them, whoever keeps or replays a session reads them.

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::DeserializeOwned;

use crate::{Inputs, Restored, Row, Seat, StateHash, Tick, Whose, from_canonical};

/// One thing that happened in a session.
///
/// Records come in the order in which they happened. `Joined` and `Left` come before the inputs of their tick, which is
/// the next one; everything else that has a tick speaks of one that is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Someone sits down, before anything they do in this tick.
    Joined {
        /// Their first tick.
        tick: Tick,
        /// Where.
        seat: Seat,
        /// Who, for people.
        name: String,
        /// The git commit their build was made from.
        commit: String,
    },
    /// Whoever sits there is gone after this tick.
    Left {
        /// Their last tick.
        tick: Tick,
        /// Where.
        seat: Seat,
        /// Of their own will, or not.
        why: Leaving,
    },
    /// A tick is closed: what happened on every taken seat.
    Inputs(TickInputs),
    /// The players agree on the state after a tick.
    Check {
        /// After which tick.
        tick: Tick,
        /// The hash they agree on.
        hash: StateHash,
    },
    /// A player has another state after a tick than was agreed on.
    Dissent {
        /// After which tick.
        tick: Tick,
        /// Who.
        seat: Seat,
        /// The hash they have.
        hash: StateHash,
    },
    /// The state after a tick was saved: a replay can start here.
    Snapshot {
        /// After which tick.
        tick: Tick,
        /// The hash of the saved state.
        hash: StateHash,
        /// Where it is kept.
        place: String,
    },
    /// A state was found to be wrong.
    Desync {
        /// The first bad tick.
        tick: Tick,
        /// Whose state it is.
        seat: Seat,
    },
    /// The players do not agree, and there is no majority: a replay has to decide.
    Dispute {
        /// The first tick they do not agree on.
        tick: Tick,
    },
    /// Everything after a tick is void, in the log before this record: play goes on from there.
    Rewind {
        /// The last tick that holds.
        to: Tick,
    },
    /// The session goes on after a pause or a restart.
    Resumed {
        /// When, in milliseconds of Unix time.
        unix_ms: u64,
    },
    /// The session is over.
    End,
}

impl Record {
    /// The tick it belongs to, if it does to one.
    pub fn tick(&self) -> Option<Tick> {
        match self {
            Record::Joined { tick, .. }
            | Record::Left { tick, .. }
            | Record::Check { tick, .. }
            | Record::Dissent { tick, .. }
            | Record::Snapshot { tick, .. }
            | Record::Desync { tick, .. }
            | Record::Dispute { tick }
            | Record::Rewind { to: tick } => Some(*tick),
            Record::Inputs(inputs) => Some(inputs.tick()),
            Record::Resumed { .. } | Record::End => None,
        }
    }

    /// The seat it is about, if it is about one.
    pub fn seat(&self) -> Option<Seat> {
        match self {
            Record::Joined { seat, .. }
            | Record::Left { seat, .. }
            | Record::Dissent { seat, .. }
            | Record::Desync { seat, .. } => Some(*seat),
            _ => None,
        }
    }

    /// Its name in exports and reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Record::Joined { .. } => "joined",
            Record::Left { why: Leaving::Left, .. } => "left",
            Record::Left { why: Leaving::Kicked, .. } => "kicked",
            Record::Left { why: Leaving::TimedOut, .. } => "timed_out",
            Record::Inputs(_) => "inputs",
            Record::Check { .. } => "check",
            Record::Dissent { .. } => "dissent",
            Record::Snapshot { .. } => "snapshot",
            Record::Desync { .. } => "desync",
            Record::Dispute { .. } => "dispute",
            Record::Rewind { .. } => "rewind",
            Record::Resumed { .. } => "resumed",
            Record::End => "end",
        }
    }
}

/// Why a player is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// They left.
    Left,
    /// They were made to leave.
    Kicked,
    /// Nothing was heard of them for too long.
    TimedOut,
}

/// What happened on every taken seat in one tick. Made once and reused, it allocates nothing per tick.
#[derive(Clone, Debug, Default)]
pub struct TickInputs {
    tick: Tick,
    rows: Vec<Stored>,
    bytes: Vec<u8>,
    /// Whose each is that was brought, and where it ends in `gifts`.
    brought: Vec<(Whose, u32)>,
    gifts: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    seat: Seat,
    joined: bool,
    left: bool,
    present: bool,
    /// Where the input ends in `bytes`; it begins where the one before ends.
    end: u32,
}

impl TickInputs {
    /// Tick 0, and nobody there.
    pub const fn new() -> TickInputs {
        TickInputs {
            tick: Tick::ZERO,
            rows: Vec::new(),
            bytes: Vec::new(),
            brought: Vec::new(),
            gifts: Vec::new(),
        }
    }

    /// Another tick: what happened on every taken seat, lowest seat first.
    pub fn set<'a>(&mut self, tick: Tick, rows: impl IntoIterator<Item = Row<&'a [u8]>>) {
        self.clear(tick);
        rows.into_iter().for_each(|row| self.push(row));
    }

    /// Another tick, with nobody there yet.
    pub fn clear(&mut self, tick: Tick) {
        self.tick = tick;
        self.rows.clear();
        self.bytes.clear();
        self.brought.clear();
        self.gifts.clear();
    }

    /// Something comes in from outside, before anything that is done.
    ///
    /// # Panics
    /// If all of it comes to 4 GiB.
    pub fn bring(&mut self, whose: Whose, bytes: &[u8]) {
        self.gifts.extend_from_slice(bytes);
        self.brought.push((whose, u32::try_from(self.gifts.len()).expect("what is brought is small")));
    }

    /// What came in from outside, in order.
    pub fn brought(&self) -> impl Iterator<Item = Restored<&[u8]>> {
        let mut start = 0;
        self.brought.iter().map(move |(whose, end)| {
            let bytes = &self.gifts[start..*end as usize];
            start = *end as usize;
            Restored { whose: *whose, bytes }
        })
    }

    /// What a step is told of it, see [`decode_inputs`].
    pub fn decode<I: DeserializeOwned>(&self, inputs: &mut Inputs<I>) {
        decode_inputs(self.iter(), inputs);
        self.brought().for_each(|Restored { whose, bytes }| inputs.bring(whose, bytes.to_vec()));
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If its seat is not higher than those before, or the inputs of a tick come to 4 GiB.
    pub fn push(&mut self, row: Row<&[u8]>) {
        let Row { seat, joined, left, input } = row;
        assert!(self.rows.last().is_none_or(|last| last.seat < seat), "rows come in seat order");
        self.bytes.extend_from_slice(input.unwrap_or(&[]));
        let end = u32::try_from(self.bytes.len()).expect("inputs are small");
        self.rows.push(Stored { seat, joined, left, present: input.is_some(), end });
    }

    /// Which tick.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// What happened on every taken seat, lowest seat first.
    pub fn iter(&self) -> impl Iterator<Item = Row<&[u8]>> {
        let mut start = 0;
        self.rows.iter().map(move |row| {
            let input = &self.bytes[start..row.end as usize];
            start = row.end as usize;
            Row { seat: row.seat, joined: row.joined, left: row.left, input: row.present.then_some(input) }
        })
    }

    /// What happened on a seat; nothing if nobody sits there.
    pub fn get(&self, seat: Seat) -> Option<Row<&[u8]>> {
        self.iter().find(|row| row.seat == seat)
    }

    /// How many seats are taken.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no seat is taken.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl PartialEq for TickInputs {
    fn eq(&self, other: &TickInputs) -> bool {
        self.tick == other.tick && self.iter().eq(other.iter()) && self.brought().eq(other.brought())
    }
}

impl Eq for TickInputs {}

/// What a step is told about a tick of which only the bytes are known. What cannot be read counts as not arrived: the
/// bytes are the same, and so nothing, for everybody.
pub fn decode_inputs<'a, I: DeserializeOwned>(
    rows: impl IntoIterator<Item = Row<&'a [u8]>>,
    inputs: &mut Inputs<I>,
) {
    inputs.clear();
    for row in rows {
        match row.input.and_then(|bytes| from_canonical(bytes).ok()) {
            Some(input) => inputs.set(row.seat, input),
            None => inputs.omit(row.seat),
        }
        if row.joined {
            inputs.join(row.seat);
        }
        if row.left {
            inputs.leave(row.seat);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::to_canonical;

    #[test]
    fn what_cannot_be_read_has_not_arrived() {
        let good = to_canonical(&300u32).unwrap();
        let row = |seat, joined, left, input| Row { seat: Seat(seat), joined, left, input };
        let mut tick = TickInputs::new();
        tick.set(
            Tick(4),
            [
                row(0, true, false, Some(&good[..])),
                row(1, false, true, Some(&good[..1])),
                row(2, false, false, None),
            ],
        );
        let mut inputs: Inputs<u32> = Inputs::new();
        tick.bring(Whose::Player(Seat(2)), b"kept");
        tick.decode(&mut inputs);
        let seen: Vec<_> = inputs.iter().map(|row| (row.seat.0, row.joined, row.left, row.input)).collect();
        assert_eq!(seen, [(0, true, false, Some(300)), (1, false, true, None), (2, false, false, None)]);
        assert!(inputs.brought().eq([Restored { whose: Whose::Player(Seat(2)), bytes: &b"kept"[..] }]));
    }
}
