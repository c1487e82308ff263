//! The records of a session's log, and the inputs of one tick as bytes that only the game can decode. Relay and host
//! write records; storage and replay read them.

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::DeserializeOwned;

use crate::{Inputs, Owner, Restored, Row, Seat, StateHash, Tick, from_canonical};

/// One thing that happened in a session.
///
/// Records are in the order of events. `Joined` and `Left` come before the inputs of their tick, which is the next one;
/// all other records with a tick refer to a closed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A player joins, before acting in this tick.
    Joined {
        /// The player's first tick.
        tick: Tick,
        /// The seat.
        seat: Seat,
        /// The display name.
        name: String,
        /// The git commit of the player's build.
        commit: String,
    },
    /// The player leaves after this tick.
    Left {
        /// The player's last tick.
        tick: Tick,
        /// The seat.
        seat: Seat,
        /// The reason.
        why: Leaving,
    },
    /// A tick is closed, with the inputs of all taken seats.
    Inputs(TickInputs),
    /// The players agree on the state after a tick.
    Check {
        /// The tick.
        tick: Tick,
        /// The agreed hash.
        hash: StateHash,
    },
    /// A player's state after a tick differs from the agreed one.
    Dissent {
        /// The tick.
        tick: Tick,
        /// The seat.
        seat: Seat,
        /// The player's hash.
        hash: StateHash,
    },
    /// The state after a tick was saved: a replay can start here.
    Snapshot {
        /// The tick.
        tick: Tick,
        /// The hash of the saved state.
        hash: StateHash,
        /// The location of the snapshot.
        place: String,
    },
    /// A desynced state was found.
    Desync {
        /// The first tick that differs.
        tick: Tick,
        /// The seat of the desynced player.
        seat: Seat,
    },
    /// The players disagree, and there is no majority: a replay has to decide.
    Dispute {
        /// The first tick on which they disagree.
        tick: Tick,
    },
    /// All ticks after this one that are in the log before this record are void: play continues from there.
    Rewind {
        /// The last valid tick.
        to: Tick,
    },
    /// The session continues after a pause or a restart.
    Resumed {
        /// The time, in milliseconds of Unix time.
        unix_ms: u64,
    },
    /// The session has ended.
    End,
}

impl Record {
    /// The tick of the record, if it has one.
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

    /// The seat of the record, if it has one.
    pub fn seat(&self) -> Option<Seat> {
        match self {
            Record::Joined { seat, .. }
            | Record::Left { seat, .. }
            | Record::Dissent { seat, .. }
            | Record::Desync { seat, .. } => Some(*seat),
            _ => None,
        }
    }

    /// The name in exports and reports.
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

/// Why a player has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// The player left voluntarily.
    Left,
    /// The player was kicked.
    Kicked,
    /// No packet arrived from the player for too long.
    TimedOut,
}

/// The inputs of all taken seats in one tick. Made once and reused, it allocates nothing per tick.
#[derive(Clone, Debug, Default)]
pub struct TickInputs {
    tick: Tick,
    rows: Vec<Stored>,
    bytes: Vec<u8>,
    /// The owner of each piece of loaded state, and its end in `gifts`.
    brought: Vec<(Owner, u32)>,
    gifts: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    seat: Seat,
    joined: bool,
    left: bool,
    present: bool,
    /// The end of the input in `bytes`; it begins where the previous one ends.
    end: u32,
}

impl TickInputs {
    /// Tick 0, without any taken seat.
    pub const fn new() -> TickInputs {
        TickInputs {
            tick: Tick::ZERO,
            rows: Vec::new(),
            bytes: Vec::new(),
            brought: Vec::new(),
            gifts: Vec::new(),
        }
    }

    /// Replaces the content with another tick: the rows of all taken seats, lowest seat first.
    pub fn set<'a>(&mut self, tick: Tick, rows: impl IntoIterator<Item = Row<&'a [u8]>>) {
        self.clear(tick);
        rows.into_iter().for_each(|row| self.push(row));
    }

    /// Replaces the content with another tick, without rows.
    pub fn clear(&mut self, tick: Tick) {
        self.tick = tick;
        self.rows.clear();
        self.bytes.clear();
        self.brought.clear();
        self.gifts.clear();
    }

    /// Adds saved state, loaded before all actions of the tick.
    ///
    /// # Panics
    /// If the total reaches 4 GiB.
    pub fn bring(&mut self, owner: Owner, bytes: &[u8]) {
        self.gifts.extend_from_slice(bytes);
        self.brought.push((owner, u32::try_from(self.gifts.len()).expect("what is brought is small")));
    }

    /// The saved state that is loaded, in order.
    pub fn brought(&self) -> impl Iterator<Item = Restored<&[u8]>> {
        let mut start = 0;
        self.brought.iter().map(move |(owner, end)| {
            let bytes = &self.gifts[start..*end as usize];
            start = *end as usize;
            Restored { owner: *owner, bytes }
        })
    }

    /// Decodes the inputs of a step, see [`decode_inputs`].
    pub fn decode<I: DeserializeOwned>(&self, inputs: &mut Inputs<I>) {
        decode_inputs(self.iter(), inputs);
        self.brought().for_each(|Restored { owner, bytes }| inputs.bring(owner, bytes.to_vec()));
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If its seat is not higher than those before, or the inputs of a tick reach 4 GiB.
    pub fn push(&mut self, row: Row<&[u8]>) {
        let Row { seat, joined, left, input } = row;
        assert!(self.rows.last().is_none_or(|last| last.seat < seat), "rows come in seat order");
        self.bytes.extend_from_slice(input.unwrap_or(&[]));
        let end = u32::try_from(self.bytes.len()).expect("inputs are small");
        self.rows.push(Stored { seat, joined, left, present: input.is_some(), end });
    }

    /// The tick.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// The rows of all taken seats, lowest seat first.
    pub fn iter(&self) -> impl Iterator<Item = Row<&[u8]>> {
        let mut start = 0;
        self.rows.iter().map(move |row| {
            let input = &self.bytes[start..row.end as usize];
            start = row.end as usize;
            Row { seat: row.seat, joined: row.joined, left: row.left, input: row.present.then_some(input) }
        })
    }

    /// The row of a seat; none if it is empty.
    pub fn get(&self, seat: Seat) -> Option<Row<&[u8]>> {
        self.iter().find(|row| row.seat == seat)
    }

    /// The number of taken seats.
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

/// Decodes the inputs of a step from bytes. An input that cannot be decoded counts as missing: the bytes are the same
/// for all peers, and so is the result.
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
    fn undecodable_inputs_count_as_missing() {
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
        tick.bring(Owner::Player(Seat(2)), b"kept");
        tick.decode(&mut inputs);
        let seen: Vec<_> = inputs.iter().map(|row| (row.seat.0, row.joined, row.left, row.input)).collect();
        assert_eq!(seen, [(0, true, false, Some(300)), (1, false, true, None), (2, false, false, None)]);
        assert!(inputs.brought().eq([Restored { owner: Owner::Player(Seat(2)), bytes: &b"kept"[..] }]));
    }
}
