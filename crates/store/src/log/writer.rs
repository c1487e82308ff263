//! Appends frames to a disk in order, and recovers from its failures.

use std::collections::VecDeque;
use std::io;

use sametick_sim::Tick;

use crate::disk::Disk;

use super::encoder::{FrameInfo, LogEncoder, PushError};
use super::header::{BadHeader, Header};
use super::timeline::Position;
use sametick_sim::record::{Record, TickInputs};

/// How many buffers are kept for the next frames; a group and its first data come together.
const MAX_SPARE: usize = 4;

/// Appends frames in order, each synced before the next. After a failure it starts again from what is really stored. It
/// has no clock: the owner decides when to call [`drive`](Appender::drive) again.
#[derive(Debug)]
pub struct Appender<D> {
    disk: D,
    waiting: VecDeque<(Vec<u8>, FrameInfo)>,
    /// Buffers of durable frames, to be used again.
    spare: Vec<Vec<u8>>,
    durable_len: u64,
    durable_crc: u32,
    durable_tick: Option<Tick>,
    /// The disk has failed, and its content beyond `durable_len` is unknown.
    failed: bool,
}

impl<D: Disk> Appender<D> {
    /// Starts on an empty disk, or at the end of a log whose bytes are `existing`.
    pub fn new(disk: D, existing: &[u8]) -> Appender<D> {
        Appender::at(disk, existing.len() as u64, crc32c::crc32c(existing))
    }

    /// Starts at the end of a log of this length with this CRC-32C.
    pub(super) fn at(disk: D, durable_len: u64, durable_crc: u32) -> Appender<D> {
        Appender {
            disk,
            waiting: VecDeque::new(),
            spare: Vec::new(),
            durable_len,
            durable_crc,
            durable_tick: None,
            failed: false,
        }
    }

    /// Takes all ready frames.
    pub fn take_from(&mut self, encoder: &mut LogEncoder) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        while let Some(info) = encoder.poll_frame(&mut buffer) {
            self.push(buffer, info);
            buffer = self.spare.pop().unwrap_or_default();
        }
        self.spare.push(buffer);
    }

    /// Takes a frame.
    pub fn push(&mut self, frame: Vec<u8>, info: FrameInfo) {
        self.waiting.push_back((frame, info));
    }

    /// Appends and syncs the waiting frames. After an error everything that is not durable is still waiting.
    pub fn drive(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            self.drive_one()?;
        }
        Ok(())
    }

    /// Appends and syncs the next frame, if there is one.
    pub fn drive_one(&mut self) -> io::Result<()> {
        let Some((frame, info)) = self.waiting.front() else { return Ok(()) };
        if self.failed {
            self.disk.recover(self.durable_len, self.durable_crc)?;
        }
        self.failed = true;
        self.disk.append(frame)?;
        self.disk.sync()?;
        self.failed = false;
        self.durable_len += frame.len() as u64;
        self.durable_crc = crc32c::crc32c_append(self.durable_crc, frame);
        self.durable_tick = Some(info.last_tick);
        let (frame, _) = self.waiting.pop_front().expect("it was looked at");
        if self.spare.len() < MAX_SPARE {
            self.spare.push(frame);
        }
        Ok(())
    }

    /// How many bytes are durable.
    pub fn durable_len(&self) -> u64 {
        self.durable_len
    }

    /// The last durable tick, of those appended here.
    pub fn durable_tick(&self) -> Option<Tick> {
        self.durable_tick
    }

    /// How many bytes are waiting.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(|(frame, _)| frame.len()).sum()
    }

    /// The disk.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The disk, for tests that make it fail or heal.
    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }
}

/// Why a record is not in the log yet.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The record was refused.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The record was taken, and waits until the disk works again: do not push it again.
    #[error("the log cannot be written: {0}")]
    Disk(#[from] io::Error),
}

/// An encoder and its disk in one: for tools, tests and the simulator. A server uses a [`LogThread`](super::LogThread),
/// which does not wait for a disk.
#[derive(Debug)]
pub struct LogWriter<D> {
    encoder: LogEncoder,
    appender: Appender<D>,
}

impl<D: Disk> LogWriter<D> {
    /// A new log on an empty disk.
    pub fn new(disk: D, header: &Header) -> Result<LogWriter<D>, BadHeader> {
        LogEncoder::new(header).map(|encoder| LogWriter::with_encoder(disk, encoder, &[]))
    }

    /// Goes on at the end of a log whose valid bytes are `existing`.
    pub fn resume(disk: D, header: &Header, position: Position, existing: &[u8]) -> LogWriter<D> {
        LogWriter::with_encoder(disk, LogEncoder::resume(header, position), existing)
    }

    /// Uses an encoder that the caller configured, on a disk that holds `existing`.
    pub fn with_encoder(disk: D, encoder: LogEncoder, existing: &[u8]) -> LogWriter<D> {
        LogWriter { encoder, appender: Appender::new(disk, existing) }
    }

    /// Takes a record, and writes all ready frames.
    pub fn push(&mut self, record: &Record) -> Result<(), WriteError> {
        self.encoder.push(record)?;
        self.drive()
    }

    /// Takes the inputs of a tick, and writes all ready frames.
    pub fn push_inputs(&mut self, inputs: &TickInputs) -> Result<(), WriteError> {
        self.encoder.push_inputs(inputs)?;
        self.drive()
    }

    /// Makes everything durable that was taken.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.encoder.flush();
        self.drive()
    }

    /// The last durable tick, of those appended here.
    pub fn durable_tick(&self) -> Option<Tick> {
        self.appender.durable_tick()
    }

    /// The next tick to close.
    pub fn next_tick(&self) -> Tick {
        self.encoder.next_tick()
    }

    /// The disk.
    pub fn disk(&self) -> &D {
        self.appender.disk()
    }

    /// The disk, for tests that make it fail or heal.
    pub fn disk_mut(&mut self) -> &mut D {
        self.appender.disk_mut()
    }

    fn drive(&mut self) -> Result<(), WriteError> {
        self.appender.take_from(&mut self.encoder);
        Ok(self.appender.drive()?)
    }
}
