//! A thread that writes many logs, so that the tick thread never waits for a disk, not even to open a file.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sametick_sim::Tick;

use crate::background::go_to_the_background;
use crate::disk::{Disk, FsDisk};

use super::encoder::{FrameInfo, LogEncoder};
use super::header::{BadHeader, Header};
use super::reader::{LogReader, OpenError, repair};
use super::tail::Tail;
use super::timeline::Position;
use super::writer::Appender;

/// How a [`LogThread`] behaves when its disk fails.
#[derive(Clone, Copy, Debug)]
pub struct LogThreadOptions {
    /// How many frames of one log may wait for the disk: at one every two seconds, two hours of a session and a
    /// fraction of a megabyte.
    pub max_waiting_frames: usize,
    /// How long to wait before a failed disk is tried again.
    pub retry: Duration,
}

impl Default for LogThreadOptions {
    fn default() -> Self {
        LogThreadOptions { max_waiting_frames: 4096, retry: Duration::from_millis(500) }
    }
}

/// An event about a log.
#[derive(Debug)]
pub enum LogEvent {
    /// The disk has failed; the thread retries until it works, and nothing is lost meanwhile. Reported once per
    /// failure, not once per try.
    Failing(io::Error),
    /// The disk works again.
    Recovered,
}

/// A frame was refused: the log ends before it, for good.
///
/// A log with a hole recreates no state after it, so nothing is written after the first refused frame. Record on in a
/// new log, from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the disk has not kept up, and the log ends here")]
pub struct Refused;

/// A thread that writes logs.
///
/// Dropping it waits until everything is written, or has failed once more.
#[derive(Debug)]
pub struct LogThread {
    commands: Option<Sender<Command>>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<bool>>,
    options: LogThreadOptions,
    next: AtomicU64,
}

/// A log that a [`LogThread`] writes. Dropping it ends the log; frames already taken are still written.
#[derive(Debug)]
pub struct FileLog {
    id: u64,
    commands: Sender<Command>,
    events: Receiver<LogEvent>,
    progress: Arc<Progress>,
    max_waiting: usize,
    refused: bool,
}

/// The progress of the thread with a log.
#[derive(Debug, Default)]
struct Progress {
    /// One more than the last durable tick; 0 before there is one.
    durable_ticks: AtomicU64,
    durable_bytes: AtomicU64,
    waiting: AtomicUsize,
}

type Open = Box<dyn FnMut() -> io::Result<Box<dyn Driven>> + Send>;

enum Command {
    Begin { id: u64, open: Open, events: Sender<LogEvent>, progress: Arc<Progress> },
    Frame { id: u64, frame: Vec<u8>, info: FrameInfo },
    After { id: u64, job: Job },
    End { id: u64 },
}

type Job = Box<dyn FnOnce() + Send>;

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Command::Begin { id, .. }
        | Command::Frame { id, .. }
        | Command::After { id, .. }
        | Command::End { id }) = self;
        write!(f, "Command of log {id}")
    }
}

impl LogThread {
    /// Starts the thread.
    pub fn start(options: LogThreadOptions) -> LogThread {
        let (commands, from_owners) = channel();
        let closing = Arc::new(AtomicBool::new(false));
        let worker = Worker { logs: Vec::new(), options, closing: Arc::clone(&closing), lost: false };
        let thread = thread::spawn(move || {
            go_to_the_background();
            worker.run(&from_owners)
        });
        LogThread {
            commands: Some(commands),
            closing,
            thread: Some(thread),
            options,
            next: AtomicU64::new(0),
        }
    }

    /// Creates a new log in a new file, with its encoder. Missing folders are created; an existing file is an error and
    /// never overwritten.
    pub fn create(
        &self,
        path: impl Into<PathBuf>,
        header: &Header,
    ) -> Result<(FileLog, LogEncoder), BadHeader> {
        Ok((self.create_file(path.into()), LogEncoder::new(header)?))
    }

    /// Like [`create`](LogThread::create), for a log that goes on where another ended, or from a save.
    pub fn create_at(
        &self,
        path: impl Into<PathBuf>,
        header: &Header,
        position: Position,
    ) -> Result<(FileLog, LogEncoder), BadHeader> {
        Ok((self.create_file(path.into()), LogEncoder::continued(header, position)?))
    }

    /// Like [`create_at`](LogThread::create_at), with the state of that save.
    pub fn create_after(
        &self,
        path: impl Into<PathBuf>,
        header: &Header,
        position: Position,
        state: &[u8],
    ) -> Result<(FileLog, LogEncoder), BadHeader> {
        Ok((self.create_file(path.into()), LogEncoder::after(header, position, state)?))
    }

    fn create_file(&self, path: PathBuf) -> FileLog {
        self.begin(move || {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            Ok(Appender::new(FsDisk::create(&path)?, &[]))
        })
    }

    /// Goes on with a log in a file: reads all of it on the caller's thread, and cuts a torn tail, which the [`Tail`]
    /// reports.
    pub fn resume(&self, path: impl Into<PathBuf>) -> Result<(FileLog, LogEncoder, Tail), OpenError> {
        let path = path.into();
        let tail = repair(&path)?;
        let existing = std::fs::read(&path)?;
        let mut reader = LogReader::open(&existing[..])?;
        let position = reader.verify()?.position;
        let header = reader.header().clone();
        let (log, encoder) = self.resume_at(path, &header, position, &existing);
        Ok((log, encoder, tail))
    }

    /// Like [`resume`](LogThread::resume), for a log that was read already: its end position, and all of its bytes.
    pub fn resume_at(
        &self,
        path: impl Into<PathBuf>,
        header: &Header,
        position: Position,
        existing: &[u8],
    ) -> (FileLog, LogEncoder) {
        let (path, encoder) = (path.into(), LogEncoder::resume(header, position));
        let (len, crc) = (existing.len() as u64, crc32c::crc32c(existing));
        (self.begin(move || Ok(Appender::at(FsDisk::open(&path)?, len, crc))), encoder)
    }

    /// Starts a log on any disk. The thread calls `open`, again after each failure.
    pub fn begin<D: Disk + Send + 'static>(
        &self,
        mut open: impl FnMut() -> io::Result<Appender<D>> + Send + 'static,
    ) -> FileLog {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let open: Open = Box::new(move || Ok(Box::new(open()?)));
        let (to_owner, events) = channel();
        let progress = Arc::new(Progress::default());
        let commands = self.commands.clone().expect("it is taken only when the log_thread is dropped");
        let begin = Command::Begin { id, open, events: to_owner, progress: Arc::clone(&progress) };
        // A panic of the thread was reported; the log then refuses its first frame.
        let _ = commands.send(begin);
        FileLog {
            id,
            commands,
            events,
            progress,
            max_waiting: self.options.max_waiting_frames,
            refused: false,
        }
    }

    /// Waits until all logs are written or their disk has failed once more. Returns whether everything is written. Logs
    /// that have not ended are ended.
    pub fn close(mut self) -> bool {
        self.join()
    }

    fn join(&mut self) -> bool {
        self.closing.store(true, Ordering::Release);
        self.commands = None;
        let Some(thread) = self.thread.take() else { return false };
        // The panic of the thread was reported by the panic itself.
        thread.join().unwrap_or(false)
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.join();
    }
}

impl FileLog {
    /// Hands over all ready frames. Never waits.
    pub fn take_from(&mut self, encoder: &mut LogEncoder) -> Result<(), Refused> {
        let mut frame = Vec::new();
        while let Some(info) = encoder.poll_frame(&mut frame) {
            let frame = std::mem::take(&mut frame);
            let waiting = self.progress.waiting.fetch_add(1, Ordering::AcqRel);
            let send = || self.commands.send(Command::Frame { id: self.id, frame, info }).is_ok();
            self.refused = self.refused || waiting >= self.max_waiting || !send();
        }
        if self.refused { Err(Refused) } else { Ok(()) }
    }

    /// Runs a job on the thread once everything handed over is written, or its disk has failed: for other work with
    /// files that the caller must not wait for, such as a copy of the log.
    pub fn after(&self, job: impl FnOnce() + Send + 'static) {
        // A panic of the thread was reported.
        let _ = self.commands.send(Command::After { id: self.id, job: Box::new(job) });
    }

    /// The last tick written here that is durable.
    pub fn durable_tick(&self) -> Option<Tick> {
        let ticks = self.progress.durable_ticks.load(Ordering::Acquire);
        ticks.checked_sub(1).and_then(|tick| u32::try_from(tick).ok()).map(Tick)
    }

    /// How many bytes are durable, once something was written here.
    pub fn durable_bytes(&self) -> u64 {
        self.progress.durable_bytes.load(Ordering::Acquire)
    }

    /// Returns the next event of the thread. Never waits.
    pub fn poll_event(&mut self) -> Option<LogEvent> {
        self.events.try_recv().ok()
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        // A thread that is gone has nothing to end.
        let _ = self.commands.send(Command::End { id: self.id });
    }
}

/// A log on a disk of any type.
trait Driven: Send {
    fn push(&mut self, frame: Vec<u8>, info: FrameInfo);
    fn drive_one(&mut self) -> io::Result<()>;
    fn durable(&self) -> (u64, Option<Tick>);
}

impl<D: Disk + Send> Driven for Appender<D> {
    fn push(&mut self, frame: Vec<u8>, info: FrameInfo) {
        Appender::push(self, frame, info);
    }

    fn drive_one(&mut self) -> io::Result<()> {
        Appender::drive_one(self)
    }

    fn durable(&self) -> (u64, Option<Tick>) {
        (self.durable_len(), self.durable_tick())
    }
}

/// The thread's state for all logs.
struct Worker {
    logs: Vec<Writing>,
    options: LogThreadOptions,
    closing: Arc<AtomicBool>,
    /// Something was not written before the end.
    lost: bool,
}

/// The thread's state for one log.
struct Writing {
    id: u64,
    open: Open,
    opened: Option<Box<dyn Driven>>,
    /// Frames that came before the file was open.
    early: Vec<(Vec<u8>, FrameInfo)>,
    waiting: usize,
    jobs: Vec<Job>,
    ended: bool,
    events: Sender<LogEvent>,
    progress: Arc<Progress>,
    /// When a failed disk is tried again.
    retry_at: Option<Instant>,
    tries: u32,
}

impl Worker {
    /// Runs until all logs end. Returns whether everything was written.
    fn run(mut self, commands: &Receiver<Command>) -> bool {
        loop {
            let is_open = self.listen(commands);
            let closing = self.closing.load(Ordering::Acquire);
            let now = Instant::now();
            for log in &mut self.logs {
                log.drive(now, self.options.retry, closing);
                log.do_jobs();
            }
            let gives_up = |log: &Writing| closing && log.tries > 1;
            self.lost |= self.logs.iter().any(|log| log.waiting > 0 && gives_up(log));
            self.logs.retain(|log| log.waiting > 0 && !gives_up(log) || !(log.ended || closing && !is_open));
            if !is_open && self.logs.is_empty() {
                return !self.lost;
            }
        }
    }

    /// Takes pending commands, waiting if there is nothing to do. Returns whether more can come.
    fn listen(&mut self, commands: &Receiver<Command>) -> bool {
        let closing = self.closing.load(Ordering::Acquire);
        let is_busy = self.logs.iter().any(|log| log.waiting > 0 && (log.retry_at.is_none() || closing));
        let wait = if is_busy { Duration::ZERO } else { self.options.retry };
        let mut next = commands.recv_timeout(wait);
        loop {
            match next {
                Ok(command) => self.take(command),
                Err(RecvTimeoutError::Timeout) => return !closing,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            next = commands.recv_timeout(Duration::ZERO);
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Begin { id, open, events, progress } => self.logs.push(Writing {
                id,
                open,
                opened: None,
                early: Vec::new(),
                waiting: 0,
                jobs: Vec::new(),
                ended: false,
                events,
                progress,
                retry_at: None,
                tries: 0,
            }),
            Command::Frame { id, frame, info } => {
                if let Some(log) = self.logs.iter_mut().find(|log| log.id == id) {
                    log.waiting += 1;
                    match &mut log.opened {
                        Some(opened) => opened.push(frame, info),
                        None => log.early.push((frame, info)),
                    }
                }
            }
            Command::After { id, job } => {
                if let Some(log) = self.logs.iter_mut().find(|log| log.id == id) {
                    log.jobs.push(job);
                }
            }
            Command::End { id } => {
                self.logs.iter_mut().filter(|log| log.id == id).for_each(|log| log.ended = true);
            }
        }
    }
}

impl Writing {
    /// Writes the next frame, if there is one and a retry is due.
    fn drive(&mut self, now: Instant, retry: Duration, closing: bool) {
        if self.waiting == 0 || !closing && self.retry_at.is_some_and(|at| now < at) {
            return;
        }
        match self.write_one() {
            Ok(()) if self.retry_at.take().is_some() => {
                self.tries = 0;
                self.say(LogEvent::Recovered);
            }
            Ok(()) => {}
            Err(error) => {
                if self.retry_at.replace(now + retry).is_none() {
                    self.say(LogEvent::Failing(error));
                }
                self.tries += 1;
            }
        }
    }

    fn do_jobs(&mut self) {
        if self.waiting == 0 || self.retry_at.is_some() {
            self.jobs.drain(..).for_each(|job| job());
        }
    }

    fn write_one(&mut self) -> io::Result<()> {
        if self.opened.is_none() {
            let mut opened = (self.open)()?;
            self.early.drain(..).for_each(|(frame, info)| opened.push(frame, info));
            self.opened = Some(opened);
        }
        let Some(opened) = &mut self.opened else { return Ok(()) };
        opened.drive_one()?;
        self.waiting -= 1;
        self.progress.waiting.fetch_sub(1, Ordering::AcqRel);
        let (bytes, tick) = opened.durable();
        let ticks = tick.map_or(0, |tick| u64::from(tick.0) + 1);
        self.progress.durable_ticks.store(ticks, Ordering::Release);
        self.progress.durable_bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    fn say(&self, event: LogEvent) {
        // The receiver is gone once the log has ended.
        let _ = self.events.send(event);
    }
}
