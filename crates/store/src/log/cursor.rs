//! Iterators over a log: all records as written, or only the valid ones.

use sametick_sim::{StateHash, Tick};

use crate::disk::Source;

use super::decoder::LogDecoder;
use super::frame::FrameKind;
use super::reader::{LogReader, ReadError};
use super::timeline::Timeline;
use super::window::Fault;
use sametick_sim::record::{Record, TickInputs};

/// Records in the order in which they were written: all of them, or only those that no rewind voids.
#[derive(Debug)]
pub struct Records<'a, S> {
    reader: &'a mut LogReader<S>,
    decoder: LogDecoder,
    /// The group that is read.
    group: usize,
    /// The group that the next group frame begins.
    next_group: usize,
    frame: u64,
    next: u64,
    end: u64,
    only_holding: bool,
}

impl<'a, S: Source> Records<'a, S> {
    /// Starts at the group of this number.
    pub(super) fn new(reader: &'a mut LogReader<S>, group: usize) -> Records<'a, S> {
        let next = if group == 0 { reader.front } else { reader.groups[group].offset };
        let end = reader.tail().valid_bytes;
        let decoder = reader.decoder();
        Records { reader, decoder, group, next_group: group, frame: next, next, end, only_holding: false }
    }

    /// Returns the next record; `None` at the end.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend what it reuses")]
    pub fn next(&mut self) -> Result<Option<&Record>, ReadError> {
        if self.advance()? { Ok(Some(self.record())) } else { Ok(None) }
    }

    /// Skips rewinds and the records that they void.
    #[must_use]
    pub(super) fn only_holding(mut self) -> Records<'a, S> {
        self.only_holding = true;
        self
    }

    /// Moves to the next record, which the decoder then holds; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, ReadError> {
        while self.advance_any()? {
            let rewind = matches!(self.record(), Record::Rewind { .. });
            let void = rewind || self.record().tick().is_some_and(|tick| tick > self.holds_to());
            if !self.only_holding || !void {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn advance_any(&mut self) -> Result<bool, ReadError> {
        loop {
            let offset = self.frame;
            let nonsense = |kind, what| ReadError::Nonsense { offset, kind, what };
            if self.decoder.next().map_err(|what| nonsense(FrameKind::Data, what))?.is_some() {
                return Ok(true);
            }
            if self.next >= self.end {
                return Ok(false);
            }
            if self.next_frame()? {
                return Ok(true);
            }
        }
    }

    /// Begins the next frame; true if that alone is a record.
    fn next_frame(&mut self) -> Result<bool, ReadError> {
        self.frame = self.next;
        let offset = self.frame;
        let nonsense = |kind, what| ReadError::Nonsense { offset, kind, what };
        let frame = match self.reader.window.frame(offset, self.end) {
            Ok(frame) => frame,
            Err(Fault::Io(error)) => return Err(error.into()),
            Err(_) => return Err(ReadError::Damaged { offset }),
        };
        self.next = frame.next;
        match frame.kind {
            FrameKind::Header => Err(nonsense(FrameKind::Header, "a second header")),
            FrameKind::State => Err(nonsense(FrameKind::State, "a state after the beginning")),
            FrameKind::Data => {
                self.decoder.begin_data(frame.payload).map_err(|what| nonsense(frame.kind, what))?;
                Ok(false)
            }
            FrameKind::Group => {
                if self.reader.groups.get(self.next_group).is_none_or(|group| group.offset != offset) {
                    return Err(nonsense(frame.kind, "a group that the others do not lead to"));
                }
                self.group = self.next_group;
                self.next_group += 1;
                let rewind =
                    self.decoder.begin_group(frame.payload).map_err(|what| nonsense(frame.kind, what))?;
                Ok(rewind.is_some())
            }
        }
    }

    /// The last tick of the current group that no later rewind voids.
    pub(super) fn holds_to(&self) -> Tick {
        self.reader.groups.get(self.group).map_or(Tick::ZERO, |group| group.holds_to)
    }

    /// The last record.
    pub(super) fn record(&self) -> &Record {
        self.decoder.record()
    }

    pub(super) fn into_timeline(self) -> Option<Timeline> {
        self.decoder.into_timeline()
    }
}

/// Every valid tick, in order.
#[derive(Debug)]
pub struct Ticks<'a, S> {
    records: Records<'a, S>,
    from: Tick,
}

impl<'a, S: Source> Ticks<'a, S> {
    pub(super) fn new(reader: &'a mut LogReader<S>, from: Tick) -> Ticks<'a, S> {
        // Before the first group there is nothing to skip; after the last tick, nothing to find.
        let group = reader.group_of(from).unwrap_or(0);
        Ticks { records: Records::new(reader, group).only_holding(), from }
    }

    /// Returns the next valid tick; `None` at the end.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend what it reuses")]
    pub fn next(&mut self) -> Result<Option<&TickInputs>, ReadError> {
        while self.records.advance()? {
            if self.records.decoder.inputs().is_some_and(|inputs| inputs.tick() >= self.from) {
                return Ok(self.records.decoder.inputs());
            }
        }
        Ok(None)
    }
}

/// Every valid state hash check, in the order in which they were made.
#[derive(Debug)]
pub struct Checks<'a, S> {
    records: Records<'a, S>,
}

impl<'a, S: Source> Checks<'a, S> {
    pub(super) fn new(reader: &'a mut LogReader<S>) -> Checks<'a, S> {
        Checks { records: reader.holding() }
    }
}

impl<S: Source> Iterator for Checks<'_, S> {
    type Item = Result<(Tick, StateHash), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.records.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
            if let Record::Check { tick, hash } = *self.records.record() {
                return Some(Ok((tick, hash)));
            }
        }
    }
}
