//! Closed ticks of a session, coded, from its first tick or from those after a save: sent to late joiners and to peers
//! that lost ticks.

use alloc::vec::Vec;

use sametick_sim::{Inputs, Tick};
use sametick_wire::bits::{BitReader, BitWriter, ReadError};

use crate::rows::{Opaque, Table};

/// The length of a segment, which can be read without the ticks before it: half a second at 60 Hz would cost more in
/// tables than it saves, a minute would make a small gap expensive to repair.
pub const SEGMENT_TICKS: u32 = 300;

/// Coded bytes kept. At 4 players and 60 Hz this is a day and a half; then the oldest ticks are forgotten, and no peer
/// can begin at the first tick any more.
pub const MAX_HISTORY: usize = 8 << 20;

#[derive(Clone, Debug)]
struct Segment {
    first: Tick,
    ticks: u32,
    start: Table,
    bytes: Vec<u8>,
    /// Bits of the last byte that are in use; ticks are not aligned to bytes.
    bits: u64,
}

/// The closed ticks of a session.
#[derive(Clone, Debug, Default)]
pub struct History {
    segments: Vec<Segment>,
    table: Table,
    bytes: usize,
    scratch: Vec<u8>,
    /// The buffer of a forgotten segment, for reuse.
    spare: Vec<u8>,
    /// The tick before the first one kept.
    before: Tick,
}

impl History {
    /// The history of a session that goes on after this tick, with the seats taken then.
    pub fn after(before: Tick, table: Table) -> History {
        History { before, table, ..History::default() }
    }

    /// The last tick that has been closed; zero before the first.
    pub fn last(&self) -> Tick {
        self.segments.last().map_or(self.before, Segment::last)
    }

    /// The seats taken after the last tick.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Whether the history reaches back to the first tick of the session.
    pub fn is_whole(&self) -> bool {
        self.before == Tick::ZERO
    }

    /// The first tick that is kept.
    pub fn first(&self) -> Tick {
        self.before.next()
    }

    /// How many bytes are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the next tick.
    pub fn push(&mut self, rows: &Inputs<Opaque>) {
        let next = self.last().next();
        if self.bytes >= MAX_HISTORY {
            self.forget_first();
        }
        if self.segments.last().is_none_or(|segment| segment.ticks == SEGMENT_TICKS) {
            // Room for a quiet game, so that a tick in steady state allocates nothing.
            let mut bytes = core::mem::take(&mut self.spare);
            bytes.clear();
            bytes.reserve(SEGMENT_TICKS as usize);
            self.segments.push(Segment { first: next, ticks: 0, start: self.table.clone(), bytes, bits: 0 });
        }
        self.scratch.clear();
        let mut writer = BitWriter::new(&mut self.scratch);
        self.table.put(&mut writer, rows);
        let bits = writer.len_bits();
        writer.finish();
        if let Some(segment) = self.segments.last_mut() {
            let before = segment.bytes.len();
            segment.append(&self.scratch, bits);
            segment.ticks += 1;
            self.bytes += segment.bytes.len() - before;
        }
    }

    /// Forgets ticks up to this one, in whole segments.
    pub fn forget(&mut self, to: Tick) {
        while self.segments.first().is_some_and(|segment| segment.last() <= to) {
            self.forget_first();
        }
    }

    /// Forgets the ticks after this one. Returns whether this tick and its seat table are kept.
    pub fn rewind(&mut self, to: Tick) -> bool {
        if to >= self.last() {
            return to == self.last();
        }
        if to < self.before {
            return false;
        }
        let at = self.segments.partition_point(|segment| segment.last() <= to);
        for segment in self.segments.drain(at + 1..) {
            self.bytes -= segment.bytes.len();
        }
        let Some(segment) = self.segments.pop() else { return false };
        self.bytes -= segment.bytes.len();
        self.table = segment.start.clone();
        let excerpt = segment.to_excerpt();
        let read = excerpt.read_to(to, |_, rows| self.push(rows));
        read.is_ok() && self.last() == to
    }

    fn forget_first(&mut self) {
        let segment = self.segments.remove(0);
        self.bytes -= segment.bytes.len();
        self.before = segment.last();
        self.spare = segment.bytes;
    }

    /// The seats taken after a tick; none if that tick is not kept.
    pub fn table_after(&self, tick: Tick) -> Option<Table> {
        if tick == self.last() {
            return Some(self.table.clone());
        }
        // The table after a tick is the one before the next.
        Some(self.excerpt(tick.next())?.start)
    }

    /// Ticks from `from` on, at most to the end of their segment, in a form that can be read by itself. None if there
    /// are none.
    pub fn excerpt(&self, from: Tick) -> Option<Excerpt> {
        let at = self.segments.partition_point(|segment| segment.first + segment.ticks <= from);
        let segment = self.segments.get(at).filter(|segment| segment.first <= from)?;
        if segment.first == from {
            return Some(segment.to_excerpt());
        }
        let whole = segment.to_excerpt();
        let mut rest = History::after(Tick(from.0 - 1), whole.read_to(Tick(from.0 - 1), |_, _| ()).ok()?);
        let read = whole.read(|tick, rows| {
            if tick >= from {
                rest.push(rows);
            }
        });
        read.ok()?;
        rest.segments.first().map(Segment::to_excerpt)
    }
}

impl Segment {
    fn last(&self) -> Tick {
        self.first + self.ticks - 1
    }

    fn to_excerpt(&self) -> Excerpt {
        let Segment { first, ticks, start, bytes, .. } = self.clone();
        Excerpt { first, ticks, start, bytes }
    }

    /// Appends bits behind the last one in use.
    fn append(&mut self, bytes: &[u8], bits: u64) {
        let used = (self.bits % 8) as u32;
        for byte in bytes {
            match self.bytes.last_mut().filter(|_| used > 0) {
                Some(last) => {
                    *last |= byte << used;
                    self.bytes.push(byte >> (8 - used));
                }
                None => self.bytes.push(*byte),
            }
        }
        self.bits += bits;
        self.bytes.truncate(self.bits.div_ceil(8) as usize);
    }
}

/// A run of ticks with all that is needed to read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The first tick.
    pub first: Tick,
    /// The number of ticks.
    pub ticks: u32,
    /// The seats taken before the first tick.
    pub start: Table,
    /// The coded ticks.
    pub bytes: Vec<u8>,
}

impl Excerpt {
    /// The last tick; the one before the first if there are no ticks.
    pub fn last(&self) -> Tick {
        Tick(self.first.0.saturating_add(self.ticks).saturating_sub(1))
    }

    /// Passes each tick to `see`, in order. Returns the table after the last.
    pub fn read(&self, see: impl FnMut(Tick, &Inputs<Opaque>)) -> Result<Table, ReadError> {
        self.read_to(self.last(), see)
    }

    /// Passes each tick up to this one to `see`, in order. Returns the table after the last of them.
    pub fn read_to(&self, to: Tick, mut see: impl FnMut(Tick, &Inputs<Opaque>)) -> Result<Table, ReadError> {
        let (mut table, mut rows) = (self.start.clone(), Inputs::new());
        let mut reader = BitReader::new(&self.bytes);
        let ticks = to.0.saturating_add(1).saturating_sub(self.first.0).min(self.ticks);
        for offset in 0..ticks {
            table.read(&mut reader, &mut rows)?;
            see(self.first + offset, &rows);
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;
    use sametick_sim::{Rng, Seat};

    proptest! {
        #[test]
        fn any_tick_can_be_read_again(seed: u64, ticks in 1u32..1_000, from in 1u32..1_000) {
            let mut rng = Rng::new(seed);
            let (mut history, mut all) = (History::default(), vec![]);
            for tick in 1..=ticks {
                let mut rows = Inputs::new();
                for seat in (0..3).map(Seat) {
                    if tick == 1 {
                        rows.join(seat);
                    }
                    let input = [rng.below(3) as u8];
                    match rng.below(10) {
                        0 => rows.omit(seat),
                        _ => rows.set(seat, Opaque::new(&input).unwrap()),
                    }
                }
                history.push(&rows);
                all.push(rows);
                prop_assert_eq!(history.last(), Tick(tick));
            }
            let (mut at, mut got) = (Tick(from), vec![]);
            while let Some(excerpt) = history.excerpt(at) {
                prop_assert_eq!(excerpt.first, at);
                excerpt.read(|_, rows| got.push(rows.clone())).unwrap();
                at = excerpt.first + excerpt.ticks;
            }
            prop_assert_eq!(got, all.get(from as usize - 1..).unwrap_or_default());
            let (mut after, to) = (Table::default(), from.min(ticks));
            let mut bytes = vec![];
            all.iter().take(to as usize).for_each(|rows| after.put(&mut BitWriter::new(&mut bytes), rows));
            prop_assert_eq!(history.table_after(Tick(to)), Some(after));
            let mut shorter = history.clone();
            shorter.forget(Tick(to));
            prop_assert!(shorter.first() <= Tick(to + 1) && shorter.first().0 + SEGMENT_TICKS > to);
            prop_assert_eq!((shorter.last(), shorter.table()), (history.last(), history.table()));
            prop_assert_eq!(shorter.table_after(Tick(to)), history.table_after(Tick(to)));
            prop_assert_eq!(shorter.excerpt(Tick(to + 1)), history.excerpt(Tick(to + 1)));
            prop_assert_eq!(shorter.bytes(), shorter.segments.iter().map(|it| it.bytes.len()).sum::<usize>());
            let mut back = history.clone();
            prop_assert!(back.rewind(Tick(to)) && back.last() == Tick(to));
            prop_assert_eq!(Some(back.table().clone()), history.table_after(Tick(to)));
            all.iter().skip(to as usize).for_each(|rows| back.push(rows));
            prop_assert_eq!((back.last(), back.table(), back.bytes()), (history.last(), history.table(), history.bytes()));
            prop_assert_eq!(back.excerpt(Tick(ticks)), history.excerpt(Tick(ticks)));
            prop_assert!(!back.rewind(Tick(ticks + 1)) && back.last() == Tick(ticks));
            prop_assert!(back.rewind(Tick::ZERO) && back.bytes() == 0 && *back.table() == Table::default());
        }
    }

    #[test]
    fn a_session_can_go_on_after_a_tick() {
        let (mut earlier, mut rows) = (History::default(), Inputs::new());
        rows.join(Seat(3));
        rows.set(Seat(3), Opaque::new(&[5]).unwrap());
        earlier.push(&rows);
        let mut history = History::after(Tick(700), earlier.table().clone());
        assert_eq!((history.first(), history.last(), history.is_whole()), (Tick(701), Tick(700), false));
        assert!(history.excerpt(Tick(701)).is_none() && history.excerpt(Tick(1)).is_none());
        rows.clear();
        rows.set(Seat(3), Opaque::new(&[4]).unwrap());
        history.push(&rows);
        let mut got = vec![];
        history.excerpt(Tick(701)).unwrap().read(|tick, rows| got.push((tick, rows.clone()))).unwrap();
        assert_eq!(got, [(Tick(701), rows)]);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_go_first() {
        let (mut history, mut rng, mut tick) = (History::default(), Rng::new(1), 0u32);
        while history.is_whole() || tick < 20_000 {
            tick += 1;
            let mut rows = Inputs::new();
            for seat in (0..32).map(Seat) {
                if tick == 1 {
                    rows.join(seat);
                }
                let input: [u8; 32] = core::array::from_fn(|_| rng.below(256) as u8);
                rows.set(seat, Opaque::new(&input).unwrap());
            }
            history.push(&rows);
            assert!(history.bytes() <= MAX_HISTORY + 2 * 1_100);
        }
        assert!(history.first() > Tick(1) && history.excerpt(Tick(1)).is_none());
        let kept = history.excerpt(history.first()).unwrap();
        assert_eq!((kept.first, history.last()), (history.first(), Tick(tick)));
        kept.read(|_, _| {}).unwrap();
    }
}
