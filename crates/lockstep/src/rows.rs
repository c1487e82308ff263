//! Opaque inputs of a tick, and their coding against the tick before: one bit for an input that repeats, a few for one
//! that changes. The relay and the log know inputs in this form only (L1).

use alloc::vec::Vec;
use core::fmt;

use sametick_sim::canon::{self, Sink};
use sametick_sim::{Inputs, Row, Seat};
use sametick_wire::bits::{BitReader, BitWriter, ReadError};

/// How many seats a session has at most.
pub const MAX_SEATS: usize = 32;

/// The longest input of one seat in one tick.
pub const MAX_INPUT: usize = 32;

const SEAT_BITS: u32 = 5;
const LEN_BITS: u32 = 6;

/// One seat's input in one tick, as bytes that only the game understands.
#[derive(Clone, Copy)]
pub struct Opaque {
    len: u8,
    bytes: [u8; MAX_INPUT],
}

impl Opaque {
    /// No bytes: what a seat is taken to have done before its first input.
    pub const EMPTY: Opaque = Opaque { len: 0, bytes: [0; MAX_INPUT] };

    /// These bytes, if they are not too many.
    pub fn new(bytes: &[u8]) -> Option<Opaque> {
        let mut opaque = Opaque { len: bytes.len() as u8, ..Opaque::EMPTY };
        opaque.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(opaque)
    }

    /// The canonical bytes of a game's input, without asking for memory.
    ///
    /// # Panics
    /// If they are more than [`MAX_INPUT`], or the input cannot be serialised.
    pub fn of<I: serde::Serialize>(input: &I) -> Opaque {
        let mut opaque = Opaque::EMPTY;
        canon::encode(input, &mut opaque).expect("an input serialises");
        opaque
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The one bit in which two inputs of the same length differ, if it is one.
    fn single_difference(&self, other: &Opaque) -> Option<u32> {
        if self.len != other.len {
            return None;
        }
        let mut found = None;
        for (index, (ours, theirs)) in (0u32..).zip(self.as_bytes().iter().zip(other.as_bytes())) {
            match (ours ^ theirs, found) {
                (0, _) => {}
                (bits, None) if bits.is_power_of_two() => found = Some(index * 8 + bits.trailing_zeros()),
                _ => return None,
            }
        }
        found
    }

    fn toggled(mut self, bit: u32) -> Opaque {
        self.bytes[bit as usize / 8] ^= 1 << (bit % 8);
        self
    }
}

impl Sink for Opaque {
    fn write(&mut self, bytes: &[u8]) {
        let (start, end) = (usize::from(self.len), usize::from(self.len) + bytes.len());
        assert!(end <= MAX_INPUT, "an input has at most {MAX_INPUT} bytes");
        self.bytes[start..end].copy_from_slice(bytes);
        self.len = end as u8;
    }
}

impl PartialEq for Opaque {
    fn eq(&self, other: &Opaque) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Opaque {}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.as_bytes())
    }
}

/// A row whose input is bytes, as logs and games take it.
pub fn row_as_bytes(row: &Row<Opaque>) -> Row<&[u8]> {
    Row {
        seat: row.seat,
        joined: row.joined,
        left: row.left,
        input: row.input.as_ref().map(Opaque::as_bytes),
    }
}

/// Appends an input, coded against the last one of its seat: `0` the same, `10` changed, `11` none.
pub fn put_input(out: &mut BitWriter<'_>, last: &mut Opaque, input: Option<&Opaque>) {
    match input {
        Some(input) if input == last => out.bool(false),
        Some(input) => {
            out.bits(0b01, 2);
            put_change(out, last, input);
            *last = *input;
        }
        None => out.bits(0b11, 2),
    }
}

/// A toggled bit, or the whole of it.
fn put_change(out: &mut BitWriter<'_>, last: &Opaque, input: &Opaque) {
    match last.single_difference(input) {
        Some(bit) => {
            out.bool(true);
            out.ranged(i64::from(bit), 0..=i64::from(last.len) * 8 - 1);
        }
        None => {
            out.bool(false);
            put_whole(out, input);
        }
    }
}

/// Reads what [`put_input`] wrote.
pub fn read_input(reader: &mut BitReader<'_>, last: &mut Opaque) -> Result<Option<Opaque>, ReadError> {
    if !reader.bool()? {
        return Ok(Some(*last));
    }
    if reader.bool()? {
        return Ok(None);
    }
    let input = if reader.bool()? {
        if last.len == 0 {
            return Err(ReadError::OutOfRange);
        }
        last.toggled(reader.ranged(0..=i64::from(last.len) * 8 - 1)? as u32)
    } else {
        read_whole(reader)?
    };
    *last = input;
    Ok(Some(input))
}

fn put_whole(out: &mut BitWriter<'_>, input: &Opaque) {
    out.bits(u64::from(input.len), LEN_BITS);
    input.as_bytes().iter().for_each(|byte| out.bits(u64::from(*byte), 8));
}

fn read_whole(reader: &mut BitReader<'_>) -> Result<Opaque, ReadError> {
    let len = reader.bits(LEN_BITS)? as usize;
    let mut input = Opaque { len: len as u8, ..Opaque::EMPTY };
    for byte in input.bytes.get_mut(..len).ok_or(ReadError::TooLong)? {
        *byte = reader.bits(8)? as u8;
    }
    Ok(input)
}

/// Who sits where and did what last: what a tick is coded against. Both sides keep one and feed it the same ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// One bit for each seat, the lowest for the first.
    taken: u32,
    /// What was done last on each seat that is taken; nothing on the others.
    last: [Opaque; MAX_SEATS],
}

const _: () = assert!(MAX_SEATS == u32::BITS as usize);

impl Default for Table {
    fn default() -> Table {
        Table { taken: 0, last: [Opaque::EMPTY; MAX_SEATS] }
    }
}

/// The seats whose bits are set, lowest first.
fn seats(mut bits: u32) -> impl Iterator<Item = Seat> {
    core::iter::from_fn(move || {
        let seat = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (seat < u32::BITS).then_some(Seat(seat as u8))
    })
}

impl Table {
    /// Whether somebody sits there.
    pub fn is_taken(&self, seat: Seat) -> bool {
        seat.index() < MAX_SEATS && self.taken & 1 << seat.0 != 0
    }

    /// Where somebody sits, lowest seat first.
    pub fn taken(&self) -> impl Iterator<Item = Seat> + use<> {
        seats(self.taken)
    }

    fn take(&mut self, seat: Seat, last: Opaque) {
        self.taken |= 1 << seat.0;
        self.last[seat.index()] = last;
    }

    /// The whole table, for somebody who knows nothing: for each seat whether it is taken, and its last input.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = BitWriter::new(&mut bytes);
        for (seat, last) in (0..).map(Seat).zip(&self.last) {
            writer.bool(self.is_taken(seat));
            if self.is_taken(seat) {
                put_whole(&mut writer, last);
            }
        }
        writer.finish();
        bytes
    }

    /// Reads what [`Table::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Table, ReadError> {
        let mut table = Table::default();
        let mut reader = BitReader::new(bytes);
        for seat in (0..MAX_SEATS as u8).map(Seat) {
            if reader.bool()? {
                table.take(seat, read_whole(&mut reader)?);
            }
        }
        reader.finish()?;
        Ok(table)
    }

    /// Appends a tick. Every taken seat must have a row, and no other but those that join.
    pub fn put(&mut self, out: &mut BitWriter<'_>, rows: &Inputs<Opaque>) {
        let events = rows.iter().filter(|row| row.joined || row.left).count();
        out.bool(events > 0);
        if events > 0 {
            out.bits(events as u64 - 1, SEAT_BITS);
        }
        for row in rows.iter().filter(|row| row.joined || row.left) {
            out.bits(u64::from(row.seat.0), SEAT_BITS);
            out.bool(row.joined);
            out.bool(row.left);
            if row.joined {
                self.take(row.seat, Opaque::EMPTY);
            }
        }
        for seat in self.taken() {
            let row = rows.get(seat);
            assert!(row.is_some(), "a taken seat has a row");
            put_input(out, &mut self.last[seat.index()], row.and_then(|row| row.input.as_ref()));
        }
        self.forget_leavers(rows);
    }

    /// Reads a tick into `rows`.
    pub fn read(&mut self, reader: &mut BitReader<'_>, rows: &mut Inputs<Opaque>) -> Result<(), ReadError> {
        rows.clear();
        if reader.bool()? {
            for _ in 0..=reader.bits(SEAT_BITS)? {
                let seat = Seat(reader.bits(SEAT_BITS)? as u8);
                let (joined, left) = (reader.bool()?, reader.bool()?);
                if !joined && !left || joined == self.is_taken(seat) || rows.get(seat).is_some() {
                    return Err(ReadError::OutOfRange);
                }
                if joined {
                    self.take(seat, Opaque::EMPTY);
                    rows.join(seat);
                }
                if left {
                    rows.leave(seat);
                }
            }
        }
        for seat in self.taken() {
            match read_input(reader, &mut self.last[seat.index()])? {
                Some(input) => rows.set(seat, input),
                None => rows.omit(seat),
            }
        }
        self.forget_leavers(rows);
        Ok(())
    }

    fn forget_leavers(&mut self, rows: &Inputs<Opaque>) {
        for row in rows.iter().filter(|row| row.left) {
            self.taken &= !(1 << row.seat.0);
            self.last[row.seat.index()] = Opaque::EMPTY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;
    use sametick_sim::Rng;

    /// A random but consistent session: who comes, goes, acts, is late.
    fn session(seed: u64, ticks: usize) -> Vec<Inputs<Opaque>> {
        let mut rng = Rng::new(seed);
        let mut taken = [false; MAX_SEATS];
        let mut held = [0u8; MAX_SEATS];
        let mut all = vec![];
        for _ in 0..ticks {
            let mut rows = Inputs::new();
            for seat in 0..6usize {
                let at = Seat(seat as u8);
                if !taken[seat] && rng.chance(1, 20) {
                    taken[seat] = true;
                    rows.join(at);
                } else if taken[seat] && rng.chance(1, 60) {
                    rows.leave(at);
                }
                if !taken[seat] {
                    continue;
                }
                held[seat] ^= if rng.chance(1, 8) { 1 << rng.below(8) } else { 0 };
                let len = if seat == 5 { rng.below(MAX_INPUT as u64 + 1) as usize } else { 1 };
                match rng.chance(1, 30) {
                    true => rows.omit(at),
                    false => rows.set(at, Opaque::new(&vec![held[seat]; len]).unwrap()),
                }
                if rows.get(at).is_some_and(|row| row.left) {
                    taken[seat] = false;
                }
            }
            all.push(rows);
        }
        all
    }

    proptest! {
        #[test]
        fn ticks_round_trip(seed: u64) {
            let ticks = session(seed, 200);
            let (mut bytes, mut table) = (vec![], Table::default());
            let mut writer = BitWriter::new(&mut bytes);
            ticks.iter().for_each(|rows| table.put(&mut writer, rows));
            writer.finish();
            let (mut there, mut rows) = (Table::default(), Inputs::new());
            let mut reader = BitReader::new(&bytes);
            for expected in &ticks {
                there.read(&mut reader, &mut rows).unwrap();
                prop_assert_eq!(&rows, expected);
            }
            prop_assert_eq!(Table::from_bytes(&table.to_bytes()), Ok(table.clone()));
            prop_assert_eq!(there, table);
            prop_assert_eq!(reader.finish(), Ok(()));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes: Vec<u8>) {
            let (mut table, mut rows) = (Table::default(), Inputs::new());
            let mut reader = BitReader::new(&bytes);
            while reader.remaining_bits() > 0 && table.read(&mut reader, &mut rows).is_ok() {}
        }
    }

    #[test]
    fn golden_bits() {
        let mut bytes = vec![];
        let mut table = Table::default();
        let mut writer = BitWriter::new(&mut bytes);
        let mut rows = Inputs::new();
        rows.join(Seat(1));
        rows.set(Seat(1), Opaque::new(&[0b101]).unwrap());
        table.put(&mut writer, &rows);
        // Roster, one event, seat 1 joined; changed, not by a bit, one byte: 1 + 5 + 7, 2 + 1 + 6 + 8.
        assert_eq!(writer.len_bits(), 30);
        rows.clear();
        rows.set(Seat(1), Opaque::new(&[0b101]).unwrap());
        table.put(&mut writer, &rows);
        assert_eq!(writer.len_bits(), 32, "a repeated input costs one bit, the tick another");
        rows.set(Seat(1), Opaque::new(&[0b100]).unwrap());
        table.put(&mut writer, &rows);
        assert_eq!(writer.len_bits(), 39, "a toggled button costs six");
        writer.finish();
        assert_eq!(bytes, [0x41, 0x28, 0x41, 0x01, 0x0a]);
    }
}
