//! A log in a file, written by a thread of its own: whoever closes ticks never waits for a disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sametick_sim::Tick;

use crate::disk::{Disk, FsDisk};

use super::encoder::{FrameInfo, LogEncoder};
use super::header::Header;
use super::reader::{LogReader, OpenError, repair};
use super::tail::Tail;
use super::writer::Appender;

/// How a [`FileLog`] behaves when its disk does not.
#[derive(Clone, Copy, Debug)]
pub struct FileLogOptions {
    /// How many frames may wait for the disk: at one a second, an hour of a session, and a fraction of a megabyte.
    pub max_waiting_frames: usize,
    /// How long to wait before a failed disk is tried again.
    pub retry: Duration,
}

impl Default for FileLogOptions {
    fn default() -> Self {
        FileLogOptions { max_waiting_frames: 4096, retry: Duration::from_millis(500) }
    }
}

/// What the thread has to say.
#[derive(Debug)]
pub enum LogEvent {
    /// The disk has failed; it is tried again until it works, and nothing is lost meanwhile. Said once per failure, not
    /// once per try.
    Trouble(io::Error),
    /// The disk works again.
    Recovered,
}

/// A frame could not be taken: the log ends before it, for good.
///
/// A log with a hole recreates no state after it, so nothing is written after the first frame that was refused. Record on in
/// a new log, from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the disk has not kept up, and the log ends here")]
pub struct Refused;

/// A log in a file that a thread of its own writes.
///
/// Dropping it waits until everything is written, or has failed once more.
#[derive(Debug)]
pub struct FileLog {
    frames: Option<SyncSender<(Vec<u8>, FrameInfo)>>,
    events: Receiver<LogEvent>,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<bool>>,
    refused: bool,
}

/// How far the thread has come, and whether it should give up.
#[derive(Debug, Default)]
struct Progress {
    /// One more than the last durable tick; 0 before there is one.
    durable_ticks: AtomicU64,
    durable_bytes: AtomicU64,
    closing: AtomicBool,
}

impl FileLog {
    /// A new log in a new file, with the encoder for it.
    pub fn create(path: impl Into<PathBuf>, header: &Header) -> io::Result<(FileLog, LogEncoder)> {
        let path = path.into();
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let encoder = LogEncoder::new(header).map_err(invalid)?;
        let appender = Appender::new(FsDisk::create(&path)?, &[]);
        Ok((FileLog::start(appender, FileLogOptions::default()), encoder))
    }

    /// Goes on with a log in a file: all of it is read, and a torn tail is cut, which the [`Tail`] tells.
    pub fn resume(path: impl Into<PathBuf>) -> Result<(FileLog, LogEncoder, Tail), OpenError> {
        let path = path.into();
        let tail = repair(&path)?;
        let existing = std::fs::read(&path)?;
        let mut reader = LogReader::open(&existing[..])?;
        let position = reader.verify()?.position;
        let encoder = LogEncoder::resume(reader.header(), position);
        let appender = Appender::new(FsDisk::open(&path)?, &existing);
        Ok((FileLog::start(appender, FileLogOptions::default()), encoder, tail))
    }

    /// Starts the thread for any disk.
    pub fn start<D: Disk + Send + 'static>(appender: Appender<D>, options: FileLogOptions) -> FileLog {
        let (frames, from_ticks) = sync_channel(options.max_waiting_frames);
        let (to_ticks, events) = channel();
        let progress = Arc::new(Progress::default());
        let writing = Writing { appender, events: to_ticks, progress: Arc::clone(&progress) };
        let thread = thread::spawn(move || writing.run(&from_ticks, options.retry));
        FileLog { frames: Some(frames), events, progress, thread: Some(thread), refused: false }
    }

    /// Hands over everything that is ready. Never waits.
    pub fn take_from(&mut self, encoder: &mut LogEncoder) -> Result<(), Refused> {
        let mut frame = Vec::new();
        while let Some(info) = encoder.poll_frame(&mut frame) {
            let frame = std::mem::take(&mut frame);
            let taken = |frames: &SyncSender<_>| frames.try_send((frame, info)).is_ok();
            self.refused = self.refused || !self.frames.as_ref().is_some_and(taken);
        }
        if self.refused { Err(Refused) } else { Ok(()) }
    }

    /// The last tick that would survive a crash, of those written here.
    pub fn durable_tick(&self) -> Option<Tick> {
        let ticks = self.progress.durable_ticks.load(Ordering::Acquire);
        ticks.checked_sub(1).and_then(|tick| u32::try_from(tick).ok()).map(Tick)
    }

    /// How many bytes would survive a crash, once something was written here.
    pub fn durable_bytes(&self) -> u64 {
        self.progress.durable_bytes.load(Ordering::Acquire)
    }

    /// What the thread has said since, one thing at a time. Never waits.
    pub fn poll_event(&mut self) -> Option<LogEvent> {
        self.events.try_recv().ok()
    }

    /// Waits until everything is written or the disk has failed once more. Returns what was not polled, and whether
    /// everything is written.
    pub fn close(mut self) -> (Vec<LogEvent>, bool) {
        let done = self.join() && !self.refused;
        (self.events.try_iter().collect(), done)
    }

    fn join(&mut self) -> bool {
        self.frames = None;
        self.progress.closing.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return false };
        thread.thread().unpark();
        // A panic of the thread has been reported by the panic itself.
        thread.join().unwrap_or(false)
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        self.join();
    }
}

/// The thread's side.
struct Writing<D> {
    appender: Appender<D>,
    events: Sender<LogEvent>,
    progress: Arc<Progress>,
}

impl<D: Disk> Writing<D> {
    /// Returns whether everything was written.
    fn run(mut self, frames: &Receiver<(Vec<u8>, FrameInfo)>, retry: Duration) -> bool {
        while let Ok((frame, info)) = frames.recv() {
            self.appender.push(frame, info);
            if !self.write(retry) {
                return false;
            }
        }
        true
    }

    /// Tries until the frame is durable. What comes meanwhile waits in the channel, which is bounded.
    fn write(&mut self, retry: Duration) -> bool {
        let mut troubled = false;
        loop {
            match self.appender.drive() {
                Ok(()) => break,
                Err(error) if !troubled => self.say(LogEvent::Trouble(error)),
                Err(_) if self.progress.closing.load(Ordering::Acquire) => return false,
                Err(_) => {}
            }
            troubled = true;
            if !self.progress.closing.load(Ordering::Acquire) {
                thread::park_timeout(retry);
            }
        }
        if troubled {
            self.say(LogEvent::Recovered);
        }
        let ticks = self.appender.durable_tick().map_or(0, |tick| u64::from(tick.0) + 1);
        self.progress.durable_ticks.store(ticks, Ordering::Release);
        self.progress.durable_bytes.store(self.appender.durable_len(), Ordering::Release);
        true
    }

    fn say(&self, event: LogEvent) {
        // Nobody listens any more while the log is being closed.
        let _ = self.events.send(event);
    }
}
