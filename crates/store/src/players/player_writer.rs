//! The tick thread's end of the players database: queues writes and questions, and never waits.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rtrb::{Producer, PushError, RingBuffer};

use crate::background::go_to_the_background;

use super::backups;
use super::batch::Batch;
use super::persist::{Ending, PersistState, PersistWorker};
use super::reading::{self, Ask};
use super::sqlite::{Recovery, Sqlite, SqliteOptions};
use super::stats::{Counters, PlayersStats};
use super::storage::{Found, Opener, Purpose, Question, StorageError, Write};

/// How often a closing writer retries to move the overflow into the queue.
const CLOSING_LOOK: Duration = Duration::from_millis(5);

/// How often the depth is checked while a queue fills up: each check reads memory of the other thread.
const LOOKS_PER_QUEUE: usize = 8;

/// Called on another thread when there is an answer to [`poll`](PlayerWriter::poll), or room for the overflow.
pub type Waker = Box<dyn Fn() + Send>;

/// How a [`PlayerWriter`] behaves.
#[derive(Clone, Copy, Debug)]
pub struct PlayerWriterOptions {
    /// The most writes that wait for the thread, at some 300 bytes each. With 1,000 players at a checkpoint a second
    /// each, the default is filled in four seconds; at half of it the thread takes all of them at once.
    pub queue: usize,
    /// How long a write waits before it is written.
    pub usual: Duration,
    /// How long it waits once the queue is more than half full.
    pub hurried: Duration,
    /// How long to wait before a failed database is retried; doubles each time.
    pub first_retry: Duration,
    /// The longest such wait.
    pub max_retry: Duration,
    /// The interval of backups; `None`: no backups.
    pub backup_every: Option<Duration>,
}

impl Default for PlayerWriterOptions {
    fn default() -> Self {
        PlayerWriterOptions {
            queue: 4096,
            usual: Duration::from_secs(5),
            hurried: Duration::from_secs(1),
            first_retry: Duration::from_millis(50),
            max_retry: Duration::from_secs(2),
            backup_every: None,
        }
    }
}

/// Stands for everything that was saved before [`flush`](PlayerWriter::flush) returned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// An answer of the database threads.
#[allow(clippy::large_enum_variant, reason = "there are few, and none is kept for long")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All writes that this ticket stands for are on disk. Reported once for every ticket, in their order.
    Saved(Ticket),
    /// The result of a look-up, by the number of the question.
    Found(u64, Result<Found, StorageError>),
    /// The database fails, with a text for people. It is retried until it works, and nothing is lost meanwhile.
    /// Reported once, not once per try.
    Failing(String),
    /// The database works again.
    Recovered,
    /// A text for the operator: that the file was damaged and what is left, or that it has no backup.
    Notice(String),
}

/// An item of the queue.
#[allow(clippy::large_enum_variant, reason = "nearly all of them are writes")]
pub enum Item {
    Write(Write),
    Flush(Ticket),
}

/// An answer, and the write it requires.
pub type Said = (Answer, Option<Box<Write>>);

/// The tick thread's handle to the players database.
///
/// Call [`poll`](PlayerWriter::poll) until it is empty, or [`tend`](PlayerWriter::tend), once a tick.
/// [`close`](PlayerWriter::close) it at the end: dropping it writes queued items once more and waits for nothing.
pub struct PlayerWriter {
    items: Producer<Item>,
    /// Writes that found the queue full, and everything since: order is kept.
    overflow: Batch,
    /// Tickets in the overflow: each comes before the write of its number. At most two: the oldest stays in its place,
    /// later ones move to the end, which bounds both memory and waiting time.
    marks: VecDeque<(u64, Ticket)>,
    overflows: u64,
    last_ticket: u64,
    pushes_until_look: usize,
    answers: Receiver<Said>,
    questions: Option<Sender<Ask>>,
    thread: Thread,
    /// Carries no messages; it is disconnected when both threads have ended.
    ended: Receiver<()>,
    shared: Arc<PersistState>,
    /// Carries no messages; the backup thread ends when it is disconnected.
    _backups: Option<Sender<()>>,
}

impl PlayerWriter {
    /// Opens or creates a database in a file, migrates it, and starts the threads. If the file was damaged, returns
    /// what is left of it.
    ///
    /// If another program is using the database, the thread waits for it and reports [`Answer::Failing`].
    pub fn open(
        path: &Path,
        options: PlayerWriterOptions,
        waker: Waker,
    ) -> Result<(PlayerWriter, Option<Recovery>), StorageError> {
        let sqlite = SqliteOptions::default();
        let (first, recovery) = match Sqlite::open(path, &sqlite, Purpose::Writing) {
            Ok((storage, recovery)) => (Some(storage), recovery),
            Err(StorageError::Busy(_)) => (None, None),
            Err(error) => return Err(error),
        };
        let mut writer_parts = Parts::new(Sqlite::opener(path, sqlite), options, waker);
        writer_parts.worker.storage = first.map(|storage| Box::new(storage) as _);
        writer_parts.backed_up = options.backup_every.map(|every| (path.to_owned(), every));
        Ok((writer_parts.start(), recovery))
    }

    /// Starts the threads on any database; it is opened by the thread, and again after each failure.
    pub fn start(opener: Opener, options: PlayerWriterOptions, waker: Waker) -> PlayerWriter {
        Parts::new(opener, options, waker).start()
    }

    /// Queues a write. Of writes with the same key the newest counts.
    #[inline]
    pub fn save(&mut self, write: Write) {
        if !self.is_overflowing() {
            match self.items.push(Item::Write(write)) {
                Ok(()) => self.note_push(),
                Err(PushError::Full(item)) => self.overflow(item),
            }
        } else {
            self.overflow(Item::Write(write));
        }
    }

    /// Asks for everything saved so far to be written at once; [`Answer::Saved`] reports when it is on disk.
    ///
    /// Await this before a client is sent its token.
    pub fn flush(&mut self) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.tend();
        if self.is_overflowing() || self.items.push(Item::Flush(ticket)).is_err() {
            self.mark(ticket);
            self.want_room();
        }
        self.thread.unpark();
        ticket
    }

    /// Asks a question; [`poll`](PlayerWriter::poll) returns the answer with the same number. Another thread reads it
    /// from the disk: await a [`flush`](PlayerWriter::flush) first if a recent write matters.
    pub fn ask(&mut self, id: u64, question: Question) {
        if let Some(questions) = &self.questions {
            // The other end lives as long as this one.
            let _ = questions.send((id, question));
        }
    }

    /// Returns the next answer.
    pub fn poll(&mut self) -> Option<Answer> {
        self.tend();
        let (answer, mend) = self.answers.try_recv().ok()?;
        if let Some(write) = mend {
            self.save(*write);
        }
        Some(answer)
    }

    /// Moves the overflow into the queue, as far as there is room.
    pub fn tend(&mut self) {
        while self.is_overflowing() {
            let next = self.overflow.end() - self.overflow.len() as u64;
            let item = match self.marks.front() {
                Some((before, ticket)) if *before <= next => Item::Flush(*ticket),
                _ => match self.overflow.pop() {
                    Some(write) => Item::Write(write),
                    None => return,
                },
            };
            let is_mark = matches!(item, Item::Flush(_));
            match self.items.push(item) {
                Ok(()) if is_mark => {
                    self.marks.pop_front();
                    self.thread.unpark();
                }
                Ok(()) => self.note_push(),
                Err(PushError::Full(item)) => {
                    if let Item::Write(write) = item {
                        self.overflow.unpop(write);
                    }
                    return self.want_room();
                }
            }
        }
    }

    /// The current statistics.
    pub fn stats(&self) -> PlayersStats {
        let capacity = self.items.buffer().capacity();
        PlayersStats {
            queue_depth: capacity - self.items.slots(),
            queue_capacity: capacity,
            overflowing: self.overflow.len(),
            overflows: self.overflows,
            ..self.shared.counters.stats()
        }
    }

    /// Writes everything and ends the threads. Returns whether all of it is on disk; gives up after `patience`.
    pub fn close(mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let ticket = self.flush();
        self.shared.set_ending(Ending::Soon);
        let is_saved = self.await_saved(ticket, deadline);
        self.shared.set_ending(Ending::Now);
        self.questions = None;
        self.thread.unpark();
        if is_saved {
            // A reader that is still busy delays nothing: saved writes are saved.
            let _ = self.ended.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        is_saved
    }

    fn await_saved(&mut self, ticket: Ticket, deadline: Instant) -> bool {
        loop {
            self.tend();
            self.thread.unpark();
            let left = deadline.saturating_duration_since(Instant::now());
            let wait = if self.is_overflowing() { left.min(CLOSING_LOOK) } else { left };
            match self.answers.recv_timeout(wait) {
                Ok((Answer::Saved(saved), _)) if saved >= ticket => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return false,
                _ => {}
            }
        }
    }

    #[inline]
    fn is_overflowing(&self) -> bool {
        !self.overflow.is_empty() || !self.marks.is_empty()
    }

    #[inline]
    fn note_push(&mut self) {
        self.pushes_until_look -= 1;
        if self.pushes_until_look == 0 {
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        let capacity = self.items.buffer().capacity();
        self.pushes_until_look = looks_after(capacity);
        if self.items.slots() * 2 < capacity {
            self.shared.hurry();
            self.thread.unpark();
        }
    }

    #[cold]
    fn overflow(&mut self, item: Item) {
        let Item::Write(write) = item else { return };
        self.overflows += 1;
        self.overflow.push(write);
        Counters::add(&self.shared.counters.coalesced, self.overflow.take_coalesced());
        self.shared.hurry();
        self.want_room();
    }

    fn want_room(&self) {
        if self.shared.want_room() {
            self.thread.unpark();
        }
    }

    fn mark(&mut self, ticket: Ticket) {
        let mark = (self.overflow.end(), ticket);
        if self.marks.len() > 1 {
            self.marks.pop_back();
        }
        self.marks.push_back(mark);
    }
}

impl std::fmt::Debug for PlayerWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlayerWriter").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Drop for PlayerWriter {
    fn drop(&mut self) {
        self.tend();
        self.shared.set_ending(Ending::AfterThis);
        self.thread.unpark();
    }
}

fn looks_after(capacity: usize) -> usize {
    (capacity / LOOKS_PER_QUEUE).max(1)
}

/// Both ends of all channels, before the threads run.
struct Parts {
    worker: PersistWorker,
    items: Producer<Item>,
    answers: Receiver<Said>,
    to_owner: Sender<Said>,
    /// The file to back up, and the interval.
    backed_up: Option<(PathBuf, Duration)>,
}

impl Parts {
    fn new(opener: Opener, options: PlayerWriterOptions, waker: Waker) -> Parts {
        let (items, from_owner) = RingBuffer::new(options.queue.max(2));
        let (to_owner, answers) = channel();
        let shared = Arc::new(PersistState::new(opener, Mutex::new(waker)));
        let worker = PersistWorker::new(from_owner, to_owner.clone(), shared, options);
        Parts { worker, items, answers, to_owner, backed_up: None }
    }

    fn start(self) -> PlayerWriter {
        let Parts { worker, items, answers, to_owner, backed_up } = self;
        let shared = Arc::clone(&worker.shared);
        let (ends, ended) = channel();
        let (questions, asked) = channel();
        let backups = backed_up.map(|(path, every)| {
            let (alive, is_alive) = channel();
            let (shared, to_owner) = (Arc::clone(&shared), to_owner.clone());
            thread::spawn(move || {
                go_to_the_background();
                backups::run(&path, every, &shared, &to_owner, &is_alive);
            });
            alive
        });
        let (reader_shared, reader_ends) = (Arc::clone(&shared), ends.clone());
        thread::spawn(move || {
            go_to_the_background();
            reading::run(&asked, &to_owner, &reader_shared);
            drop(reader_ends);
        });
        let persist = thread::spawn(move || {
            go_to_the_background();
            worker.run();
            drop(ends);
        });
        PlayerWriter {
            pushes_until_look: looks_after(items.buffer().capacity()),
            items,
            overflow: Batch::default(),
            marks: VecDeque::new(),
            overflows: 0,
            last_ticket: 0,
            answers,
            questions: Some(questions),
            thread: persist.thread().clone(),
            ended,
            shared,
            _backups: backups,
        }
    }
}
