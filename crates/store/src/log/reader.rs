//! The log reader: opens a log from its end, finds a tick by its groups, and cuts a torn tail.

use std::io;
use std::path::Path;

use sametick_sim::{Row, Tick};

use crate::disk::{FsSource, Source};

use super::beginning;
use super::cursor::{Checks, Records, Ticks};
use super::decoder::LogDecoder;
use super::frame::{FrameKind, MAGIC, PREAMBLE_LEN, VERSION, VERSION_WITH_STATE};
use super::group::GroupHead;
use super::header::Header;
use super::tail::{self, Tail};
use super::timeline::{Position, Timeline};
use super::window::{Fault, Window};
use sametick_sim::record::Record;

/// How much is read at once when everything is read.
const STRETCH: usize = 8 * 1024;

/// How much of each group is read for the index: its first few bytes, and as a rule all of it.
const GROUP_STRETCH: usize = 256;

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The source cannot be read.
    #[error("the log cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The source is not a log.
    #[error("not a log of a session: it does not begin with \"sametick-log\"")]
    NotALog,
    /// The log has another format version.
    #[error("a log of format version {found}; this build reads versions {VERSION} and {VERSION_WITH_STATE}")]
    Version {
        /// The version it states.
        found: u16,
    },
    /// It ends before its first frame does: the session was lost before its first tick.
    #[error("the log ends within its header, after {bytes} bytes: nothing was recorded")]
    NoHeader {
        /// Its length.
        bytes: u64,
    },
    /// It is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why reading cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source cannot be read.
    #[error("the log cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The bytes at this offset are not those that were written.
    #[error("the log is damaged: at byte {offset} there is no valid frame, though the log goes on")]
    Damaged {
        /// Where the frame begins.
        offset: u64,
    },
    /// The frame is whole, but no writer writes it.
    #[error("the log makes no sense: in the {kind:?} frame at byte {offset} there is {what}")]
    Nonsense {
        /// Where the frame begins.
        offset: u64,
        /// Its kind.
        kind: FrameKind,
        /// What is wrong.
        what: &'static str,
    },
}

/// A log that is open for reading. See the [module](super) for an example.
#[derive(Debug)]
pub struct LogReader<S> {
    pub(super) window: Window<S>,
    header: Header,
    /// Where the first frame of the initial state begins, if the log has one.
    state_at: Option<u64>,
    /// Where the first frame after the header and that state begins.
    pub(super) front: u64,
    pub(super) groups: Vec<GroupAt>,
    tail: Tail,
}

/// A group of the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupAt {
    pub(super) offset: u64,
    pub(super) first: Tick,
    /// The last tick of it that no later rewind voids.
    pub(super) holds_to: Tick,
}

/// The totals of a whole log.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How many records there are, void ones included.
    pub records: u64,
    /// How many ticks there are, void ones included.
    pub ticks: u64,
    /// How many of them a rewind voids.
    pub void_ticks: u64,
    /// How many inputs arrived too late.
    pub omissions: u64,
    /// Where the log ends, to go on with it.
    pub position: Position,
}

impl LogReader<FsSource> {
    /// Opens a file.
    pub fn open_file(path: impl AsRef<Path>) -> Result<LogReader<FsSource>, OpenError> {
        LogReader::open(FsSource::open(path)?)
    }
}

impl<S: Source> LogReader<S> {
    /// Opens a log from its end, without reading all of it. A torn tail is not an error: see [`tail`](LogReader::tail).
    pub fn open(source: S) -> Result<LogReader<S>, OpenError> {
        let mut window = Window::new(source, STRETCH);
        let end = window.byte_len()?;
        let (header, state_at, front) = open_header(&mut window, end)?;
        let last = tail::find_last_group(&mut window, front, end)?;
        let first_tick = header.first_tick;
        let nothing = Tail { valid_bytes: front, torn_bytes: 0, last_tick: first_tick, ended: false };
        let mut reader = LogReader { window, header, state_at, front, groups: Vec::new(), tail: nothing };
        let valid = reader.valid_end(last.unwrap_or(front), end)?;
        reader.tail = Tail { valid_bytes: valid, torn_bytes: end - valid, ..nothing };
        reader.load_groups(last)?;
        let timeline = reader.read_last_group()?;
        let next = timeline.as_ref().map_or(first_tick, |timeline| timeline.next);
        reader.tail.last_tick = Tick(next.0.saturating_sub(1));
        reader.tail.ended = timeline.is_some_and(|timeline| timeline.ended);
        Ok(reader)
    }

    /// The facts about the session.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The canonical bytes of the state before the first tick, if the log has them. Otherwise a log from tick 1 begins
    /// with the setup, and any other one with a save that lies elsewhere.
    pub fn state(&mut self) -> Result<Option<Vec<u8>>, OpenError> {
        let Some(at) = self.state_at else { return Ok(None) };
        let mut state = Vec::new();
        beginning::read(&mut self.window, at, self.front, |part| state.extend_from_slice(part))?;
        Ok(Some(state))
    }

    /// Whether the log has an initial state.
    pub fn has_state(&self) -> bool {
        self.state_at.is_some()
    }

    /// How the log ends.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// Every record in the order in which it was written, void ones and rewinds included.
    pub fn records(&mut self) -> Records<'_, S> {
        Records::new(self, 0)
    }

    /// Every valid record in the order in which it was written: no rewinds, and nothing that they void.
    pub fn holding(&mut self) -> Records<'_, S> {
        self.records().only_holding()
    }

    /// Every valid tick, in order.
    pub fn ticks(&mut self) -> Ticks<'_, S> {
        self.ticks_from(Tick::ZERO)
    }

    /// Every valid tick, in order, from `tick` on.
    pub fn ticks_from(&mut self, tick: Tick) -> Ticks<'_, S> {
        Ticks::new(self, tick)
    }

    /// Every valid state hash check, in the order in which they were made.
    pub fn checks(&mut self) -> Checks<'_, S> {
        Checks::new(self)
    }

    /// The offset of the group that holds a tick; `None` if the tick is not in the log.
    pub fn find(&self, tick: Tick) -> Option<u64> {
        let found = self.group_of(tick).map(|at| self.groups[at].offset);
        found.filter(|_| tick <= self.tail.last_tick)
    }

    /// Reads everything, so that it finds any damage.
    pub fn verify(&mut self) -> Result<Summary, ReadError> {
        let (mut count, mut ticks, mut void_ticks, mut omissions) = (0, 0, 0, 0);
        let mut records = self.records();
        while records.advance()? {
            count += 1;
            if let Record::Inputs(inputs) = records.record() {
                ticks += 1;
                void_ticks += u64::from(inputs.tick() > records.holds_to());
                omissions += inputs.iter().filter(Row::is_omitted).count() as u64;
            }
        }
        let timeline = records.into_timeline();
        let timeline = timeline.unwrap_or_else(|| Timeline::new(self.header.first_tick, Vec::new()));
        let last_group = self.groups.last().map(|group| group.offset);
        let position = Position { timeline, offset: self.tail.valid_bytes, last_group };
        Ok(Summary { records: count, ticks, void_ticks, omissions, position })
    }

    /// The last group that begins at or before `tick`: no later one voids it.
    pub(super) fn group_of(&self, tick: Tick) -> Option<usize> {
        self.groups.iter().rposition(|group| group.first <= tick)
    }

    /// The end of the last valid frame from `from` on; an error if there are valid ones after an invalid one.
    fn valid_end(&mut self, from: u64, end: u64) -> Result<u64, ReadError> {
        let mut at = from;
        while at < end {
            match self.window.frame(at, end).map(|frame| frame.next) {
                Ok(next) => at = next,
                Err(Fault::Io(error)) => return Err(error.into()),
                // Only one frame at a time is being written: more than one is not a torn tail.
                Err(_) if end - at > tail::MAX_TORN || tail::valid_after(&mut self.window, at, end)? => {
                    return Err(ReadError::Damaged { offset: at });
                }
                Err(_) => break,
            }
        }
        Ok(at)
    }

    /// Follows the groups from the last one to the first.
    fn load_groups(&mut self, last: Option<u64>) -> Result<(), ReadError> {
        let mut next = last;
        self.window.stretch = GROUP_STRETCH;
        while let Some(offset) = next {
            let nonsense = |what| ReadError::Nonsense { offset, kind: FrameKind::Group, what };
            let frame = match self.window.frame(offset, self.tail.valid_bytes) {
                Ok(frame) if frame.kind == FrameKind::Group => frame,
                Ok(_) => return Err(nonsense("the end of the chain of groups")),
                Err(Fault::Io(error)) => return Err(error.into()),
                Err(_) => return Err(ReadError::Damaged { offset }),
            };
            let mut payload = frame.payload;
            let group = GroupHead::read(&mut payload).ok_or_else(|| nonsense("not the start of a group"))?;
            self.groups.push(GroupAt { offset, first: group.first, holds_to: Tick(u32::MAX) });
            let before = group.back.map(|back| offset.checked_sub(back).filter(|&at| at >= self.front));
            next = before.map(|at| at.ok_or_else(|| nonsense("a group before the first"))).transpose()?;
        }
        self.window.stretch = STRETCH;
        // The last group was found first; seen from the end, each is void from where a later one begins.
        let mut holds_to = Tick(u32::MAX);
        for group in &mut self.groups {
            group.holds_to = holds_to;
            holds_to = holds_to.min(Tick(group.first.0.saturating_sub(1)));
        }
        self.groups.reverse();
        Ok(())
    }

    fn read_last_group(&mut self) -> Result<Option<Timeline>, ReadError> {
        let last = self.groups.len().saturating_sub(1);
        let mut records = Records::new(self, last);
        while records.next()?.is_some() {}
        Ok(records.into_timeline())
    }

    pub(super) fn decoder(&self) -> LogDecoder {
        LogDecoder::new(&self.header.commit)
    }
}

/// Reads the header, and finds where the initial state and the first group begin.
fn open_header<S: Source>(window: &mut Window<S>, end: u64) -> Result<(Header, Option<u64>, u64), OpenError> {
    let preamble = window.bytes(0, PREAMBLE_LEN)?;
    if !preamble.iter().zip(MAGIC).all(|(ours, theirs)| ours == theirs) {
        return Err(OpenError::NotALog);
    }
    let Some((_, version)) = preamble.split_last_chunk::<2>().filter(|_| preamble.len() == PREAMBLE_LEN)
    else {
        return Err(OpenError::NoHeader { bytes: end });
    };
    let found = u16::from_le_bytes(*version);
    let has_state = match found {
        VERSION => false,
        VERSION_WITH_STATE => true,
        _ => return Err(OpenError::Version { found }),
    };
    let offset = PREAMBLE_LEN as u64;
    let nonsense = |what| ReadError::Nonsense { offset, kind: FrameKind::Header, what };
    let cut = match window.frame(offset, end) {
        Ok(frame) if frame.kind == FrameKind::Header => {
            let header = Header::from_bytes(frame.payload).ok_or_else(|| nonsense("not a header"))?;
            let next = frame.next;
            if !has_state {
                return Ok((header, None, next));
            }
            let front = beginning::read(window, next, end, |_| ())?;
            return Ok((header, Some(next), front));
        }
        Ok(_) => return Err(nonsense("no header").into()),
        Err(Fault::Io(error)) => return Err(error.into()),
        Err(fault) => matches!(fault, Fault::Cut),
    };
    if cut && !tail::valid_after(window, offset, end)? {
        return Err(OpenError::NoHeader { bytes: end });
    }
    Err(ReadError::Damaged { offset }.into())
}

/// Cuts the torn tail of a file, if it has one, and returns how the log ended.
///
/// A log that is damaged in the middle is not touched.
pub fn repair(path: impl AsRef<Path>) -> Result<Tail, OpenError> {
    let path = path.as_ref();
    let tail = LogReader::open_file(path)?.tail();
    if tail.torn_bytes > 0 {
        let file = std::fs::OpenOptions::new().write(true).open(path)?;
        file.set_len(tail.valid_bytes)?;
        file.sync_all()?;
    }
    Ok(tail)
}
