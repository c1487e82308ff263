//! A test harness for the writer: waits without sleeping, on a database that the test can stop, fail and start.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use sametick_store::players::{
    Answer, Found, Kept, Opened, Opener, PlaceId, PlayerId, PlayerWriter, PlayerWriterOptions, Purpose,
    Question, Sqlite, SqliteOptions, Storage, StorageError, Ticket, Token, Waker, Write,
};
use tempfile::TempDir;

/// Longer than anything here takes on a machine with other work.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const GAME: &str = "arena";
pub const CODE: &str = "lobby";
pub const FAR_FUTURE_S: u64 = 1 << 40;

/// A writer, and a way to wait for it.
pub struct Kit {
    pub writer: PlayerWriter,
    pub woken: Receiver<()>,
    pub heard: VecDeque<Answer>,
}

impl Kit {
    pub fn open(path: &Path) -> Kit {
        let (waker, woken) = waker();
        let (writer, aside) = PlayerWriter::open(path, PlayerWriterOptions::default(), waker).unwrap();
        assert_eq!(aside, None);
        Kit { writer, woken, heard: VecDeque::new() }
    }

    pub fn start(opener: Opener, options: PlayerWriterOptions) -> Kit {
        let (waker, woken) = waker();
        Kit { writer: PlayerWriter::start(opener, options, waker), woken, heard: VecDeque::new() }
    }

    /// Waits for the next answer.
    pub fn next(&mut self) -> Answer {
        loop {
            if let Some(answer) = self.heard.pop_front().or_else(|| self.writer.poll()) {
                return answer;
            }
            self.woken.recv_timeout(PATIENCE).expect("something is said");
        }
    }

    /// Flushes, and waits until all is on disk; earlier answers are put aside.
    pub fn flush(&mut self) {
        let ticket = self.writer.flush();
        self.await_saved(ticket);
    }

    pub fn await_saved(&mut self, ticket: Ticket) {
        let mut others = VecDeque::new();
        loop {
            match self.next() {
                Answer::Saved(saved) if saved == ticket => break,
                Answer::Saved(saved) => assert!(saved < ticket, "tickets are answered in order"),
                other => others.push_back(other),
            }
        }
        self.heard = others;
    }

    pub fn ask(&mut self, question: &Question) -> Result<Found, StorageError> {
        self.writer.ask(77, question.clone());
        let mut others = VecDeque::new();
        loop {
            match self.next() {
                Answer::Found(77, found) => {
                    self.heard = others;
                    return found;
                }
                other => others.push_back(other),
            }
        }
    }

    /// This player's checkpoint, by its tick.
    pub fn tick_of(&mut self, player: PlayerId) -> Option<u32> {
        let found = self.ask(&about(player)).unwrap();
        found.checkpoint.map(|row| row.tick)
    }
}

pub fn waker() -> (Waker, Receiver<()>) {
    let (wake, woken) = channel();
    // A test that has ended drops its receiver.
    (Box::new(move || wake.send(()).unwrap_or_default()), woken)
}

pub fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("players.sqlite");
    (folder, path)
}

pub fn place() -> PlaceId {
    PlaceId::of(GAME, CODE)
}

pub fn about(player: PlayerId) -> Question {
    Question {
        player: Some(player),
        game: GAME.into(),
        code: CODE.into(),
        with_place: true,
        ..Question::default()
    }
}

pub fn with_token(token: &Token) -> Question {
    Question {
        token: Some(token.hash()),
        game: GAME.into(),
        code: CODE.into(),
        now_unix_s: 1_000,
        with_place: true,
        ..Question::default()
    }
}

pub fn checkpoint(player: u128, tick: u32) -> Write {
    let kept = Kept::new(&tick.to_le_bytes().repeat(20)).unwrap();
    Write::Checkpoint {
        place: place(),
        player: PlayerId(player),
        seat: 3,
        tick,
        kept,
        unix_ms: u64::from(tick),
    }
}

/// The fate of a database's next write.
#[derive(Clone, Debug)]
pub enum Mishap {
    Error(StorageError),
    Panic,
}

/// The controls of a test over a database.
#[derive(Clone, Default)]
pub struct Strings(Arc<(Mutex<Pulled>, Condvar)>);

#[derive(Default)]
struct Pulled {
    stopped: bool,
    mishaps: VecDeque<Mishap>,
    opened: Vec<Purpose>,
    closed: usize,
    /// How many writes have begun.
    begun: usize,
    max_pages: Option<u32>,
}

impl Strings {
    /// Blocks writes after they have begun.
    pub fn stop(&self) {
        self.pull(|pulled| pulled.stopped = true);
    }

    pub fn go(&self) {
        self.pull(|pulled| pulled.stopped = false);
    }

    pub fn mishap(&self, mishap: Mishap) {
        self.pull(|pulled| pulled.mishaps.push_back(mishap));
    }

    pub fn limit_pages(&self, pages: u32) {
        self.pull(|pulled| pulled.max_pages = Some(pages));
    }

    pub fn opened(&self) -> Vec<Purpose> {
        self.0.0.lock().unwrap().opened.clone()
    }

    pub fn closed(&self) -> usize {
        self.0.0.lock().unwrap().closed
    }

    /// Waits until a write has begun that is not the first `before`.
    pub fn await_begun(&self, before: usize) {
        let pulled = self.0.0.lock().unwrap();
        let (_pulled, timeout) =
            self.0.1.wait_timeout_while(pulled, PATIENCE, |it| it.begun <= before).unwrap();
        assert!(!timeout.timed_out(), "a write begins");
    }

    pub fn begun(&self) -> usize {
        self.0.0.lock().unwrap().begun
    }

    /// SQLite in a file, with these controls.
    pub fn sqlite(&self, path: &Path) -> Opener {
        let (path, strings) = (path.to_owned(), self.clone());
        Box::new(move |purpose| {
            let (inner, aside) = Sqlite::open(&path, &SqliteOptions::default(), purpose)?;
            strings.pull(|pulled| pulled.opened.push(purpose));
            let storage = Box::new(Puppet { inner, strings: strings.clone() });
            Ok(Opened { storage, note: aside.map(|aside| aside.to_string()) })
        })
    }

    fn pull(&self, how: impl FnOnce(&mut Pulled)) {
        how(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }
}

struct Puppet {
    inner: Sqlite,
    strings: Strings,
}

impl Storage for Puppet {
    fn write(&mut self, batch: &[Write]) -> Result<(), StorageError> {
        self.strings.pull(|pulled| pulled.begun += 1);
        let pulled = self.strings.0.0.lock().unwrap();
        let mut pulled = self.strings.0.1.wait_while(pulled, |pulled| pulled.stopped).unwrap();
        let (mishap, max_pages) = (pulled.mishaps.pop_front(), pulled.max_pages);
        drop(pulled);
        if let Some(pages) = max_pages {
            self.inner.limit_pages(pages)?;
        }
        match mishap {
            Some(Mishap::Error(error)) => Err(error),
            Some(Mishap::Panic) => panic!("on purpose"),
            None => self.inner.write(batch),
        }
    }

    fn look_up(&mut self, question: &Question) -> Result<Found, StorageError> {
        self.inner.look_up(question)
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        self.strings.pull(|pulled| pulled.closed += 1);
    }
}
