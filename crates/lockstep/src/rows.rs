//! The inputs of a tick and their coding against the tick before: joins, leaves, and the input of every taken seat. The
//! relay and the log know inputs in this form only (L1).

use alloc::vec::Vec;

use sametick_sim::record::TickInputs;
use sametick_sim::{Inputs, Row, Seat};
use sametick_wire::Malformed;
use sametick_wire::bits::{BitReader, BitWriter, ReadError};
use sametick_wire::inputs::{put_input, put_whole, read_input, read_whole};

pub use sametick_wire::inputs::{MAX_INPUT, Opaque};

/// The most seats of a session.
pub const MAX_SEATS: usize = 32;

/// The error for bytes that are not a [`Table`].
pub(crate) const BAD_TABLE: Malformed = Malformed::Forbidden("a table of seats can be read");

const SEAT_BITS: u32 = 5;

/// The rows of a tick from a log, as the relay has them.
pub fn opaque_rows(inputs: &TickInputs) -> Inputs<Opaque> {
    let mut rows = Inputs::new();
    for row in inputs.iter() {
        if row.joined {
            rows.join(row.seat);
        }
        match row.input {
            Some(input) => rows.set(row.seat, Opaque::new(input).unwrap_or(Opaque::EMPTY)),
            None => rows.omit(row.seat),
        }
        if row.left {
            rows.leave(row.seat);
        }
    }
    rows
}

/// A row whose input is bytes, as logs and games use it.
pub fn row_as_bytes(row: &Row<Opaque>) -> Row<&[u8]> {
    Row {
        seat: row.seat,
        joined: row.joined,
        left: row.left,
        input: row.input.as_ref().map(Opaque::as_bytes),
    }
}

/// The taken seats and their last inputs: what a tick is coded against. Both sides keep one and feed it the same ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// One bit per seat, the lowest for seat 0.
    taken: u32,
    /// The last input on each taken seat; empty on the others.
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
        (seat < u32::BITS).then_some(Seat(seat as u16))
    })
}

impl Table {
    /// Whether the seat is taken.
    pub fn is_taken(&self, seat: Seat) -> bool {
        seat.index() < MAX_SEATS && self.taken & 1 << seat.0 != 0
    }

    /// The taken seats, lowest first.
    pub fn taken(&self) -> impl Iterator<Item = Seat> + use<> {
        seats(self.taken)
    }

    /// The last input on each taken seat.
    pub fn inputs(&self) -> impl Iterator<Item = (Seat, &Opaque)> {
        self.taken().map(|seat| (seat, &self.last[seat.index()]))
    }

    fn take(&mut self, seat: Seat, last: Opaque) {
        self.taken |= 1 << seat.0;
        self.last[seat.index()] = last;
    }

    /// The whole table, for a reader without one: for each seat whether it is taken, and its last input.
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
        for seat in (0..MAX_SEATS as u16).map(Seat) {
            if reader.bool()? {
                table.take(seat, read_whole(&mut reader)?);
            }
        }
        reader.finish()?;
        Ok(table)
    }

    /// Whether a tick continues this table: every taken seat has a row, and no other seats but those that join.
    pub fn fits(&self, rows: &Inputs<Opaque>) -> bool {
        let stays = |seat| rows.get(seat).is_some_and(|row| !row.joined);
        self.taken().all(stays) && rows.iter().all(|row| row.joined || self.is_taken(row.seat))
    }

    /// Appends a tick. Every taken seat must have a row, and no other seats but those that join.
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
                let seat = Seat(reader.bits(SEAT_BITS)? as u16);
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

    /// A random but consistent session: players join, leave, act and are late.
    fn session(seed: u64, ticks: usize) -> Vec<Inputs<Opaque>> {
        let mut rng = Rng::new(seed);
        let mut taken = [false; MAX_SEATS];
        let mut held = [0u8; MAX_SEATS];
        let mut all = vec![];
        for _ in 0..ticks {
            let mut rows = Inputs::new();
            for seat in 0..6usize {
                let at = Seat(seat as u16);
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
