//! The pure half of a writer: turns records into frames. It never touches a disk and never waits.

use std::collections::VecDeque;

use sametick_sim::Tick;

use super::beginning::{self, MAX_BEGINNING_BYTES};
use super::body::{code_input, put_brought, put_end, put_event};
use super::frame::{self, FrameKind, MAGIC, VERSION, VERSION_WITH_STATE};
use super::group;
use super::header::{BadHeader, Header};
use super::model::Models;
use super::timeline::{Misplaced, Position, Timeline};
use super::{MAX_NAME_BYTES, MAX_PLACE_BYTES};
use sametick_sim::record::{Record, TickInputs};
use sametick_wire::range::{Coder, RangeEncoder};

/// A frame is closed when it has this many bytes, whatever its ticks.
const FRAME_BYTES: usize = 16 * 1024;

/// A group is closed at this many bytes, whatever its ticks: a reader goes through so much to find a tick, or the last
/// group from the end.
const GROUP_BYTES: u64 = 24 * 1024;

/// How a log is divided into frames and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderOptions {
    /// After how many ticks a frame is closed: a crash can lose so many. Shorter frames make longer logs, by 6 bytes
    /// each.
    pub frame_ticks: u32,
    /// After how many ticks a group is closed: a reader decodes so many to get to a tick.
    pub group_ticks: u32,
}

impl EncoderOptions {
    /// A frame every two seconds and a group every minute, at this many ticks a second.
    pub fn at(ticks_per_second: u32) -> EncoderOptions {
        EncoderOptions { frame_ticks: 2 * ticks_per_second, group_ticks: 60 * ticks_per_second }
    }
}

/// Why a record was refused. A refusal changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The record cannot come next.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// A name, commit or place is too long.
    #[error("a text of {bytes} bytes, where {max_bytes} are allowed")]
    TextTooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is allowed.
        max_bytes: usize,
    },
}

/// A frame that is to be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameInfo {
    /// Where it lies in the log.
    pub offset: u64,
    /// The last tick in the log up to and including this frame; once the frame is durable, so is that tick.
    pub last_tick: Tick,
}

/// Encodes records into frames.
///
/// All frames have to be appended, in order. A frame is ready after [`frame_ticks`](EncoderOptions::frame_ticks), or on
/// [`flush`](LogEncoder::flush).
#[derive(Debug)]
pub struct LogEncoder {
    options: EncoderOptions,
    commit: String,
    timeline: Timeline,
    models: Models,
    range: RangeEncoder,
    /// The number of records in the open frame.
    open_records: u32,
    open_ticks: u32,
    group: Option<OpenGroup>,
    last_group: Option<u64>,
    /// Where the next frame will lie.
    offset: u64,
    ready: Vec<u8>,
    frames: VecDeque<(usize, FrameInfo)>,
    payload: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct OpenGroup {
    offset: u64,
    ticks: u32,
}

impl LogEncoder {
    /// The encoder of a new log; its first frame is ready.
    pub fn new(header: &Header) -> Result<LogEncoder, BadHeader> {
        let timeline = Timeline::new(header.first_tick, Vec::new());
        LogEncoder::start(header, timeline)
    }

    /// The encoder of a segment: a new file that goes on where another ended. It sets the header's first tick to that.
    pub fn continued(header: &Header, position: Position) -> Result<LogEncoder, BadHeader> {
        let header = Header { first_tick: position.next_tick(), ..header.clone() };
        LogEncoder::start(&header, position.timeline)
    }

    /// Like [`continued`](LogEncoder::continued), with the state it goes on from: the log alone leads to every state
    /// after it.
    ///
    /// # Panics
    /// If the state is empty or has more than [`MAX_BEGINNING_BYTES`](super::MAX_BEGINNING_BYTES).
    pub fn after(header: &Header, position: Position, state: &[u8]) -> Result<LogEncoder, BadHeader> {
        assert!((1..=MAX_BEGINNING_BYTES).contains(&state.len()), "no larger state is ever saved");
        let mut encoder = LogEncoder::continued(header, position)?;
        let version = MAGIC.len()..frame::PREAMBLE_LEN;
        encoder.ready[version].copy_from_slice(&VERSION_WITH_STATE.to_le_bytes());
        for frame in beginning::frames(state, encoder.offset) {
            let start = encoder.ready.len();
            encoder.ready.extend_from_slice(&frame);
            encoder.announce(start);
        }
        Ok(encoder)
    }

    /// Goes on at the end of an existing log.
    pub fn resume(header: &Header, position: Position) -> LogEncoder {
        LogEncoder {
            options: EncoderOptions::at(header.rate.per_second()),
            commit: header.commit.clone(),
            timeline: position.timeline,
            models: Models::new(),
            range: RangeEncoder::default(),
            open_records: 0,
            open_ticks: 0,
            group: None,
            last_group: position.last_group,
            offset: position.offset,
            ready: Vec::new(),
            frames: VecDeque::new(),
            payload: Vec::new(),
        }
    }

    /// Replaces the options.
    #[must_use]
    pub fn with_options(mut self, options: EncoderOptions) -> LogEncoder {
        self.options = options;
        self
    }

    /// The next tick to close.
    pub fn next_tick(&self) -> Tick {
        self.timeline.next
    }

    /// Takes a record.
    pub fn push(&mut self, record: &Record) -> Result<(), PushError> {
        check_texts(record)?;
        match record {
            Record::Inputs(inputs) => return self.push_inputs(inputs),
            Record::Rewind { .. } => {
                self.timeline.check(record)?;
                self.flush();
                self.timeline.apply(record);
                self.open_group(true);
            }
            _ => {
                self.timeline.check(record)?;
                self.open_frame();
                put_event(&mut self.range, &mut self.models, &self.commit, self.timeline.next, record);
                self.timeline.apply(record);
                self.open_records += 1;
                self.close_if_full();
            }
        }
        Ok(())
    }

    /// Takes the inputs of a tick, which closes it. Like [`push`](LogEncoder::push) without a [`Record`].
    pub fn push_inputs(&mut self, inputs: &TickInputs) -> Result<(), PushError> {
        self.timeline.check_inputs(inputs)?;
        self.open_frame();
        for brought in inputs.brought() {
            put_brought(&mut self.range, &mut self.models, brought);
        }
        self.range.bit(self.models.event(), false);
        for (place, row) in self.timeline.places.iter_mut().zip(inputs.iter()) {
            code_input(&mut self.range, &mut self.models, place, row.input);
        }
        self.models.note_tick();
        self.timeline.close_tick();
        self.open_records += 1;
        self.open_ticks += 1;
        self.close_if_full();
        Ok(())
    }

    /// Closes the open frame, if it holds anything.
    pub fn flush(&mut self) {
        if self.open_records == 0 {
            return;
        }
        put_end(&mut self.range, &mut self.models);
        let payload = self.range.finish();
        let start = self.ready.len();
        frame::put(&mut self.ready, self.offset, FrameKind::Data, payload);
        self.announce(start);
        let group = self.group.as_mut().expect("a frame lies in a group");
        group.ticks += self.open_ticks;
        let full = group.ticks >= self.options.group_ticks || self.offset - group.offset >= GROUP_BYTES;
        if full {
            self.group = None;
        }
        (self.open_records, self.open_ticks) = (0, 0);
    }

    /// Moves the next frame to append into `out`, replacing its content.
    pub fn poll_frame(&mut self, out: &mut Vec<u8>) -> Option<FrameInfo> {
        let (len, info) = self.frames.pop_front()?;
        out.clear();
        out.extend(self.ready.drain(..len));
        Some(info)
    }

    fn start(header: &Header, timeline: Timeline) -> Result<LogEncoder, BadHeader> {
        let bytes = header.to_bytes()?;
        let mut encoder = LogEncoder::resume(header, Position { timeline, offset: 0, last_group: None });
        encoder.ready.extend_from_slice(MAGIC);
        encoder.ready.extend_from_slice(&VERSION.to_le_bytes());
        frame::put(&mut encoder.ready, frame::PREAMBLE_LEN as u64, FrameKind::Header, &bytes);
        encoder.announce(0);
        Ok(encoder)
    }

    fn open_frame(&mut self) {
        if self.group.is_none() {
            self.open_group(false);
        }
        if self.open_records == 0 {
            self.range.begin();
        }
    }

    fn open_group(&mut self, rewound: bool) {
        self.models.reset();
        self.timeline.reset_models();
        let back = self.last_group.map(|last| self.offset - last);
        self.payload.clear();
        group::put(&mut self.payload, back, rewound, &self.timeline);
        let start = self.ready.len();
        self.last_group = Some(self.offset);
        self.group = Some(OpenGroup { offset: self.offset, ticks: 0 });
        frame::put(&mut self.ready, self.offset, FrameKind::Group, &self.payload);
        self.announce(start);
    }

    /// Announces the bytes in `ready` from `start` on as a frame.
    fn announce(&mut self, start: usize) {
        let len = self.ready.len() - start;
        let last_tick = Tick(self.timeline.next.0.saturating_sub(1));
        self.frames.push_back((len, FrameInfo { offset: self.offset, last_tick }));
        self.offset += len as u64;
    }

    fn close_if_full(&mut self) {
        if self.open_ticks >= self.options.frame_ticks || self.range.len() >= FRAME_BYTES {
            self.flush();
        }
    }
}

fn check_texts(record: &Record) -> Result<(), PushError> {
    let texts = match record {
        Record::Joined { name, commit, .. } => [(name, MAX_NAME_BYTES), (commit, MAX_NAME_BYTES)],
        Record::Snapshot { place, .. } => [(place, MAX_PLACE_BYTES); 2],
        _ => return Ok(()),
    };
    match texts.iter().find(|(text, max_bytes)| text.len() > *max_bytes) {
        Some(&(text, max_bytes)) => Err(PushError::TextTooLong { bytes: text.len(), max_bytes }),
        None => Ok(()),
    }
}
