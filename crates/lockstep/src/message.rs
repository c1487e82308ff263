//! What peers and relays say to each other. Control messages are postcard; ticks are packed bits.

use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::{Inputs, Seat, Tick};
use sametick_wire::Malformed;
use sametick_wire::bits::{BitReader, BitWriter, ReadError};
use serde::{Deserialize, Serialize};

use crate::rows::{Opaque, Table, put_input, read_input};

/// The most ticks in one message on the input channel: more than a second.
pub const MAX_RUN: u32 = 64;

/// The longest setup a session can be begun with.
pub const MAX_SETUP: usize = 4_096;

const RUN_BITS: u32 = 6;
const TICK_BITS: u32 = 16;

/// From a peer, on the control channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToRelay {
    /// Take part; begins the session if there is none, with this setup.
    Join {
        /// What the game needs to know to begin.
        setup: Vec<u8>,
        /// Ticks a second.
        rate: u16,
        /// How many seats the session has, if this begins it.
        seats: u8,
        /// What the player is called.
        name: String,
        /// Only watch.
        watch: bool,
    },
    /// Some ticks never came: send them again, from this one on.
    Resend {
        /// The first that is missing.
        from: Tick,
    },
}

/// From the relay, on the control channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToPeer {
    /// You take part.
    Welcome {
        /// Where you sit; nowhere if you watch.
        seat: Option<Seat>,
        /// The last tick that has been closed. Everything up to it follows as `Ticks`.
        closed: Tick,
        /// How long ago that was, in microseconds.
        age_us: u64,
        /// What the session was begun with.
        setup: Vec<u8>,
        /// Ticks a second.
        rate: u16,
    },
    /// You do not, and this is why.
    Refused {
        /// A sentence.
        why: String,
    },
    /// Closed ticks that can be read by themselves.
    Ticks {
        /// The first of them.
        first: Tick,
        /// How many.
        ticks: u32,
        /// Who sat where before the first, see [`Table::to_bytes`].
        table: Vec<u8>,
        /// Coded.
        bytes: Vec<u8>,
    },
}

/// How the relay sees a peer's inputs arrive; sent now and then on the state channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// Which report this is.
    pub tick: Tick,
    /// The least time, in microseconds, by which an input came before its tick was closed; negative if it was late.
    pub least_slack_us: i32,
    /// Inputs of this peer that were missing when their tick was closed, since it joined.
    pub omissions: u32,
}

/// Reads a control message; trailing bytes are refused.
pub fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(Malformed::Forbidden),
    }
}

/// The bytes of a control message.
pub fn to_bytes<T: Serialize>(message: &T) -> Vec<u8> {
    postcard::to_allocvec(message).expect("these types always serialise")
}

fn malformed(error: ReadError) -> Malformed {
    match error {
        ReadError::End => Malformed::Truncated,
        ReadError::OutOfRange => Malformed::Forbidden,
        ReadError::TooLong => Malformed::TooLong,
    }
}

/// The head of a run of ticks: the low bits of the first one's number, and how many.
fn put_head(out: &mut BitWriter<'_>, first: Tick, ticks: u32) {
    assert!((1..=MAX_RUN).contains(&ticks), "a run has 1 to {MAX_RUN} ticks");
    out.bits(u64::from(first.0 & 0xffff), TICK_BITS);
    out.bits(u64::from(ticks - 1), RUN_BITS);
}

fn read_head(reader: &mut BitReader<'_>, near: Tick) -> Result<(Tick, u32), ReadError> {
    let low = reader.bits(TICK_BITS)? as u16;
    let ticks = reader.bits(RUN_BITS)? as u32 + 1;
    let first = sametick_wire::packet::widen(low, u64::from(near.0));
    let first = u32::try_from(first).map_err(|_| ReadError::OutOfRange)?;
    first.checked_add(ticks).ok_or(ReadError::OutOfRange)?;
    Ok((Tick(first), ticks))
}

/// A peer's own inputs for consecutive ticks.
pub fn put_inputs<'a>(out: &mut Vec<u8>, first: Tick, inputs: impl ExactSizeIterator<Item = &'a Opaque>) {
    out.clear();
    let mut writer = BitWriter::new(out);
    put_head(&mut writer, first, inputs.len() as u32);
    let mut last = Opaque::EMPTY;
    inputs.for_each(|input| put_input(&mut writer, &mut last, Some(input)));
    writer.finish();
}

/// Reads what [`put_inputs`] wrote; ticks are near `near`.
pub fn read_inputs(bytes: &[u8], near: Tick, mut see: impl FnMut(Tick, Opaque)) -> Result<(), Malformed> {
    let mut reader = BitReader::new(bytes);
    let (first, ticks) = read_head(&mut reader, near).map_err(malformed)?;
    let mut last = Opaque::EMPTY;
    for offset in 0..ticks {
        match read_input(&mut reader, &mut last).map_err(malformed)? {
            Some(input) => see(first + offset, input),
            None => return Err(Malformed::Forbidden),
        }
    }
    reader.finish().map_err(malformed)
}

/// Closed ticks, coded against those before them: for peers that have all of those. The table moves on with them.
pub fn put_ticks<'a>(
    out: &mut Vec<u8>,
    first: Tick,
    table: &mut Table,
    rows: impl ExactSizeIterator<Item = &'a Inputs<Opaque>>,
) {
    out.clear();
    let mut writer = BitWriter::new(out);
    put_head(&mut writer, first, rows.len() as u32);
    rows.for_each(|rows| table.put(&mut writer, rows));
    writer.finish();
}

/// Reads what [`put_ticks`] wrote. The first tick must be the one after `have`: earlier ones have been seen, and later
/// ones cannot be understood yet. Returns which it was.
pub fn read_ticks(
    bytes: &[u8],
    have: Tick,
    table: &mut Table,
    mut see: impl FnMut(Tick, &Inputs<Opaque>),
) -> Result<Run, Malformed> {
    let mut reader = BitReader::new(bytes);
    let (first, ticks) = read_head(&mut reader, have.next()).map_err(malformed)?;
    if first > have.next() {
        return Ok(Run::Early);
    }
    if first < have.next() {
        return Ok(Run::Old);
    }
    let mut rows = Inputs::new();
    for offset in 0..ticks {
        table.read(&mut reader, &mut rows).map_err(malformed)?;
        see(first + offset, &rows);
    }
    reader.finish().map_err(malformed)?;
    Ok(Run::Next)
}

/// Where a run of ticks stands to what a peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// It continues it.
    Next,
    /// The peer has it already.
    Old,
    /// Something is missing before it.
    Early,
}
