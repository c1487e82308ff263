//! The persist thread: takes queued writes, keeps the newest by key, and writes until the database has them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rtrb::Consumer;

use super::batch::Batch;
use super::player_writer::{Answer, Item, PlayerWriterOptions, Said, Ticket, Waker};
use super::stats::Counters;
use super::storage::{Opener, Purpose, Storage, StorageError};

/// How urgently the threads have to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ending {
    /// They run on.
    Never,
    /// The writer waits for the last writes: a database that fails is retried often.
    Soon,
    /// They end once the waiting writes are written, or have failed once more.
    AfterThis,
    /// They end at once.
    Now,
}

/// The state that the threads and the writer share.
pub struct PersistState {
    pub counters: Counters,
    pub open: Opener,
    pub reader: Mutex<Reader>,
    pub reader_may_look: Condvar,
    /// Held while a backup is made, and while the database is opened anew.
    pub files: Mutex<()>,
    waker: Mutex<Waker>,
    hurry: AtomicBool,
    wants_room: AtomicBool,
    suspect: AtomicBool,
    ending: AtomicU8,
}

/// The reader's connection. It is here so that the persist thread can close it before it opens the database anew: only
/// then is everything read again from the disk.
#[derive(Default)]
pub struct Reader {
    pub storage: Option<Box<dyn Storage>>,
    /// Whether the database could be opened; `None` before the first try.
    pub usable: Option<Result<(), StorageError>>,
}

impl PersistState {
    pub fn new(open: Opener, waker: Mutex<Waker>) -> PersistState {
        PersistState {
            counters: Counters::default(),
            open,
            reader: Mutex::default(),
            reader_may_look: Condvar::new(),
            files: Mutex::default(),
            waker,
            hurry: AtomicBool::new(false),
            wants_room: AtomicBool::new(false),
            suspect: AtomicBool::new(false),
            ending: AtomicU8::new(Ending::Never as u8),
        }
    }

    /// Notes that the queue is filling up.
    pub fn hurry(&self) {
        self.hurry.store(true, Ordering::Relaxed);
    }

    /// Notes that the queue is full: its owner wants to be woken when there is room. Returns whether that is new.
    pub fn want_room(&self) -> bool {
        !self.wants_room.swap(true, Ordering::AcqRel)
    }

    fn wake(&self) {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)();
    }

    /// Notes that a read found damage: the database is to be checked and set aside.
    pub fn suspect(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }

    pub fn set_ending(&self, ending: Ending) {
        self.ending.fetch_max(ending as u8, Ordering::AcqRel);
    }

    pub fn ends(&self, by: Ending) -> bool {
        self.ending.load(Ordering::Acquire) >= by as u8
    }

    pub fn reader(&self) -> MutexGuard<'_, Reader> {
        // The state is consistent after a panic: no update is made in more than one step.
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message to the tick thread.
    pub fn say(&self, answers: &Sender<Said>, said: Said) {
        // The receiver is gone once the writer is.
        let _ = answers.send(said);
        self.wake();
    }
}

/// The persist thread's state.
pub struct PersistWorker {
    items: Consumer<Item>,
    answers: Sender<Said>,
    pub shared: Arc<PersistState>,
    options: PlayerWriterOptions,
    /// Writes that are not on disk yet. They outlive a panic of the storage.
    batch: Batch,
    pub storage: Option<Box<dyn Storage>>,
    /// The last ticket received, and the last one answered.
    asked: u64,
    answered: u64,
    last_write: Instant,
    hurried: bool,
    /// When a failed database is retried, and the length of that wait.
    retry: Option<(Instant, Duration)>,
}

impl PersistWorker {
    pub fn new(
        items: Consumer<Item>,
        answers: Sender<Said>,
        shared: Arc<PersistState>,
        options: PlayerWriterOptions,
    ) -> PersistWorker {
        PersistWorker {
            items,
            answers,
            shared,
            options,
            batch: Batch::default(),
            storage: None,
            asked: 0,
            answered: 0,
            last_write: Instant::now(),
            hurried: false,
            retry: None,
        }
    }

    /// Runs until the end, whatever panics.
    pub fn run(mut self) {
        if self.storage.is_some() {
            self.let_read(Ok(()));
        }
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.work())) {
            Counters::add(&self.shared.counters.restarts, 1);
            // A storage that has panicked may do so again when it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(self.storage.take())));
            self.fail(&StorageError::Other(format!("its thread was restarted: {}", words_of(&*panic))));
        }
        self.let_read(Err(StorageError::Other("it is closed".to_owned())));
    }

    fn work(&mut self) {
        loop {
            let is_last = self.shared.ends(Ending::AfterThis);
            self.gather();
            let now = Instant::now();
            let due = self.due();
            if self.shared.ends(Ending::Now) {
                return;
            } else if is_last {
                return self.write_once_more();
            } else if due.is_some_and(|at| at <= now) {
                self.write(now);
            } else {
                let until = due.map_or(self.options.usual, |at| at - now);
                thread::park_timeout(until.min(self.options.usual));
            }
        }
    }

    /// Takes at most one full queue: a caller that keeps filling it must not keep this thread from writing.
    fn gather(&mut self) {
        for _ in 0..self.items.buffer().capacity() {
            match self.items.pop() {
                Ok(Item::Write(write)) => self.batch.push(write),
                Ok(Item::Flush(Ticket(ticket))) => self.asked = ticket,
                Err(_) => break,
            }
        }
        Counters::add(&self.shared.counters.coalesced, self.batch.take_coalesced());
        if self.shared.wants_room.swap(false, Ordering::AcqRel) {
            self.shared.wake();
        }
        self.hurried |= self.shared.hurry.swap(false, Ordering::Relaxed);
        if self.shared.suspect.swap(false, Ordering::Relaxed) {
            self.storage = None;
        }
    }

    /// When to write next; `None` if nothing is waiting.
    fn due(&self) -> Option<Instant> {
        let is_asked = self.storage.is_none() || self.asked > self.answered;
        let wait = if self.hurried { self.options.hurried } else { self.options.usual };
        let wanted = if is_asked {
            Some(self.last_write)
        } else {
            (!self.batch.is_empty()).then_some(self.last_write + wait)
        };
        let (retry_at, waited) = match self.retry {
            Some((at, waited)) => (at, waited),
            None => return wanted,
        };
        // A caller that waits for the end has less patience.
        let early = waited.saturating_sub(self.options.first_retry);
        let at = if self.shared.ends(Ending::Soon) { retry_at - early } else { retry_at };
        wanted.map(|wanted| wanted.max(at))
    }

    fn write(&mut self, now: Instant) {
        let rows = self.batch.len();
        match self.try_write() {
            Ok(()) => self.succeed(rows, now),
            Err(error) => self.fail(&error),
        }
    }

    fn write_once_more(&mut self) {
        if !self.batch.is_empty() || self.asked > self.answered {
            self.write(Instant::now());
        }
    }

    fn try_write(&mut self) -> Result<(), StorageError> {
        let storage = match &mut self.storage {
            Some(storage) => storage,
            None => self.storage.insert(open_anew(&self.shared, &self.answers)?),
        };
        let result = if self.batch.is_empty() { Ok(()) } else { storage.write(self.batch.as_slice()) };
        if result.as_ref().is_err_and(StorageError::needs_reopening) {
            self.storage = None;
        }
        result
    }

    fn succeed(&mut self, rows: usize, begun: Instant) {
        if rows > 0 {
            self.batch.clear();
            self.shared.counters.note_flush(rows, begun.elapsed());
        }
        self.last_write = Instant::now();
        self.hurried = false;
        if self.retry.take().is_some() {
            self.say(Answer::Recovered);
        }
        while self.answered < self.asked {
            self.answered += 1;
            self.say(Answer::Saved(Ticket(self.answered)));
        }
    }

    fn fail(&mut self, error: &StorageError) {
        Counters::add(&self.shared.counters.errors, 1);
        let wait = match self.retry {
            Some((_, waited)) => (waited * 2).min(self.options.max_retry),
            None => self.options.first_retry,
        };
        if self.retry.replace((Instant::now() + wait, wait)).is_none() {
            self.say(Answer::Failing(error.to_string()));
        }
    }

    fn say(&self, answer: Answer) {
        self.shared.say(&self.answers, (answer, None));
    }

    fn let_read(&self, usable: Result<(), StorageError>) {
        let mut reader = self.shared.reader();
        if usable.is_err() {
            reader.storage = None;
        }
        reader.usable = Some(usable);
        self.shared.reader_may_look.notify_all();
    }
}

/// Opens the database while no other connection has it open, so that its content is read from the disk.
fn open_anew(shared: &PersistState, answers: &Sender<Said>) -> Result<Box<dyn Storage>, StorageError> {
    let files = shared.files.lock().unwrap_or_else(PoisonError::into_inner);
    let mut reader = shared.reader();
    reader.storage = None;
    let opened = (shared.open)(Purpose::Writing);
    reader.usable = Some(opened.as_ref().map(|_| ()).map_err(Clone::clone));
    drop(reader);
    drop(files);
    shared.reader_may_look.notify_all();
    let opened = opened?;
    if let Some(note) = opened.note {
        shared.say(answers, (Answer::Notice(note), None));
    }
    Ok(opened.storage)
}

/// The message of a panic.
pub fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked")
}
