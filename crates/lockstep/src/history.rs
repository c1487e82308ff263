//! Every closed tick of a session, coded, from the first on: what late comers and those who lost their way are sent.

use alloc::vec::Vec;

use sametick_sim::{Inputs, Tick};
use sametick_wire::bits::{BitReader, BitWriter, ReadError};

use crate::rows::{Opaque, Table};

/// A run of ticks that can be read without what came before it has this many: half a second at 60 Hz would cost more
/// in tables than it saves, a minute would make a small gap expensive to mend.
pub const SEGMENT_TICKS: u32 = 300;

/// Ticks kept, as coded bytes. At 4 players and 60 Hz this is a day and a half; beyond it the oldest are forgotten, and
/// nobody can begin at the first tick any more.
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
    /// Segments that have been forgotten.
    forgotten: bool,
}

impl History {
    /// The last tick that has been closed; zero before the first.
    pub fn last(&self) -> Tick {
        self.segments.last().map_or(Tick::ZERO, |segment| segment.first + segment.ticks - 1)
    }

    /// Who sits where after the last tick.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Whether the first ticks are still there.
    pub fn is_whole(&self) -> bool {
        !self.forgotten
    }

    /// The first tick that is kept.
    pub fn first(&self) -> Tick {
        self.segments.first().map_or(Tick(1), |segment| segment.first)
    }

    /// How many bytes are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the next tick.
    pub fn push(&mut self, rows: &Inputs<Opaque>) {
        let next = self.last().next();
        if self.bytes >= MAX_HISTORY {
            self.bytes -= self.segments.remove(0).bytes.len();
            self.forgotten = true;
        }
        if self.segments.last().is_none_or(|segment| segment.ticks == SEGMENT_TICKS) {
            // Room for a quiet game at once, so that a tick in steady state allocates nothing.
            let bytes = Vec::with_capacity(SEGMENT_TICKS as usize);
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

    /// Ticks from `from` on, at most to the end of their segment, in a form that [`Excerpt`] reads without anything
    /// else. None if there are none.
    pub fn excerpt(&self, from: Tick) -> Option<Excerpt> {
        let at = self.segments.partition_point(|segment| segment.first + segment.ticks <= from);
        let segment = self.segments.get(at).filter(|segment| segment.first <= from)?;
        Some(Excerpt {
            first: segment.first,
            ticks: segment.ticks,
            start: segment.start.clone(),
            bytes: segment.bytes.clone(),
        })
    }
}

impl Segment {
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

/// A run of ticks with all that is needed to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The first tick.
    pub first: Tick,
    /// How many there are.
    pub ticks: u32,
    /// Who sat where before the first.
    pub start: Table,
    /// The coded ticks.
    pub bytes: Vec<u8>,
}

impl Excerpt {
    /// Hands each tick to `see`, in order. Returns the table after the last.
    pub fn read(&self, mut see: impl FnMut(Tick, &Inputs<Opaque>)) -> Result<Table, ReadError> {
        let (mut table, mut rows) = (self.start.clone(), Inputs::new());
        let mut reader = BitReader::new(&self.bytes);
        for ticks in 0..self.ticks {
            table.read(&mut reader, &mut rows)?;
            see(self.first + ticks, &rows);
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
                excerpt.read(|tick, rows| if tick >= at { got.push(rows.clone()) }).unwrap();
                at = excerpt.first + excerpt.ticks;
            }
            prop_assert_eq!(got, all.get(from as usize - 1..).unwrap_or_default());
        }
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
