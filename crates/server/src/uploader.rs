//! Uploads saves and logs on a thread of its own: saves to the data folder, and both to the object store if one is
//! configured. Only the newest save of a session matters: a waiting one is replaced by the next.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use sametick_sim::Tick;
use sametick_store::log::LogReader;
use sametick_store::saves::{
    ColdError, ColdLog, FolderStore, ObjectStore, Outcome, Piece, Place, Retention, Save, SaveInfo, SaveSync,
    SessionKey, StoreError, Todo, retain,
};
use sametick_transport::clock::{Clock, random, unix_ms};
use sametick_transport::hub_waker::HubWaker;
use sametick_wire::backoff::Backoff;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, LocalSet};

use crate::recorder;

/// How often another process may append first before the log there counts as a different one.
const MAX_RACES: u32 = 8;

/// An encoded save.
struct Packed {
    id: recorder::Place,
    key: SessionKey,
    info: SaveInfo,
    bytes: Vec<u8>,
}

enum Job {
    Bring(recorder::Place, SessionKey, Box<Save>),
    /// A session is over, and its log is written. The function runs once the log is uploaded everywhere.
    End(SessionKey, Box<dyn FnOnce() + Send>),
    /// Delete old sessions, except these.
    Tidy(BTreeSet<SessionKey>),
    /// No more jobs follow; running uploads have this long.
    Finish(Duration),
}

/// A destination of uploads.
#[derive(Clone)]
struct Target {
    store: Arc<dyn ObjectStore>,
    name: String,
    /// Whether this is the data folder: a save counts as stored once it is there.
    is_local: bool,
    /// Whether old sessions are being deleted there.
    is_tidied: Rc<Cell<bool>>,
}

/// The uploader thread.
pub(crate) struct Uploader {
    jobs: Option<mpsc::UnboundedSender<Job>>,
    saved: Receiver<(recorder::Place, Tick)>,
    thread: Option<JoinHandle<bool>>,
}

impl Uploader {
    /// Starts the thread. It writes saves to the data folder, and to a second place if there is one. Rings the waker
    /// when a save is in the data folder.
    pub fn start(
        data: &Path,
        store: Option<&Place>,
        keep: Retention,
        waker: HubWaker,
    ) -> Result<Uploader, StoreError> {
        let local = Arc::new(FolderStore::open(data)?) as Arc<dyn ObjectStore>;
        let mut stores = vec![(local, data.display().to_string(), true)];
        if let Some(place) = store.filter(|place| !is_folder(place, data)) {
            stores.push((place.open()?, place.to_string(), false));
        }
        let (jobs, todo) = mpsc::unbounded_channel();
        let (news, saved) = std::sync::mpsc::channel();
        let (data, clock) = (data.to_owned(), Clock::start());
        let thread = std::thread::Builder::new().name("uploader".into()).spawn(move || {
            let target = |(store, name, is_local)| Target { store, name, is_local, is_tidied: Rc::default() };
            let targets = stores.into_iter().map(target).collect();
            Rounds { targets, data, keep, clock, news, waker }.run(todo)
        });
        let thread = thread.map_err(|error| StoreError(format!("no thread for saves: {error}")))?;
        Ok(Uploader { jobs: Some(jobs), saved, thread: Some(thread) })
    }

    /// Returns a function that queues the upload of a save. It does not block.
    pub fn bring(&self, id: recorder::Place, key: SessionKey, save: Save) -> impl FnOnce() + Send + use<> {
        self.later(Job::Bring(id, key, Box::new(save)))
    }

    /// Returns a function to call when a session is over and its log is written in the data folder. `done` is called
    /// once the log is uploaded everywhere: a server that resumes the session there finds all of it.
    pub fn when_ended(
        &self,
        key: SessionKey,
        done: impl FnOnce() + Send + 'static,
    ) -> impl FnOnce() + Send + 'static {
        self.later(Job::End(key, Box::new(done)))
    }

    fn later(&self, job: Job) -> impl FnOnce() + Send + use<> {
        let jobs = self.jobs.clone();
        // A thread that has ended has logged why.
        move || _ = jobs.map(|jobs| jobs.send(job))
    }

    /// Waits for the next save that is in the data folder.
    pub fn wait(&self, at_most: Duration) -> Option<(recorder::Place, Tick)> {
        self.saved.recv_timeout(at_most).ok()
    }

    /// Deletes old sessions, except these.
    pub fn tidy(&self, running: BTreeSet<SessionKey>) {
        self.later(Job::Tidy(running))();
    }

    /// The next save that is in the data folder. Does not block.
    pub fn poll(&self) -> Option<(recorder::Place, Tick)> {
        self.saved.try_recv().ok()
    }

    /// Waits until all uploads are done, but at most this long. Returns whether they are.
    pub fn close(mut self, patience: Duration) -> bool {
        self.later(Job::Finish(patience))();
        self.jobs = None;
        self.thread.take().is_none_or(|thread| thread.join().unwrap_or(false))
    }
}

/// Whether a place is the data folder itself, which needs no second upload.
fn is_folder(place: &Place, data: &Path) -> bool {
    let Place::Folder(folder) = place else { return false };
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    real(folder).is_some_and(|folder| real(data) == Some(folder))
}

/// The state of the uploader thread.
struct Rounds {
    targets: Vec<Target>,
    data: PathBuf,
    keep: Retention,
    clock: Clock,
    news: Sender<(recorder::Place, Tick)>,
    waker: HubWaker,
}

impl Rounds {
    fn run(self, todo: mpsc::UnboundedReceiver<Job>) -> bool {
        sametick_store::go_to_the_background();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => LocalSet::new().block_on(&runtime, self.go(todo)),
            Err(error) => {
                tracing::error!(%error, "no saves are kept");
                false
            }
        }
    }

    async fn go(self, mut todo: mpsc::UnboundedReceiver<Job>) -> bool {
        // The newest save to upload, by destination and session.
        let mut wanted: HashMap<(usize, SessionKey), watch::Sender<Arc<Packed>>> = HashMap::new();
        let mut under_way = JoinSet::new();
        let mut patience = Duration::ZERO;
        while let Some(job) = todo.recv().await {
            match job {
                Job::Bring(id, key, save) => {
                    let Some(packed) = pack(id, key, *save) else { continue };
                    for (number, target) in self.targets.iter().enumerate() {
                        let wanted = wanted.entry((number, packed.key.clone()));
                        wanted.and_modify(|sender| _ = sender.send(packed.clone())).or_insert_with(|| {
                            let (sender, newest) = watch::channel(packed.clone());
                            let log = self.data.join(packed.key.log());
                            let way = Way { target: target.clone(), log, clock: self.clock };
                            let news = target.is_local.then(|| (self.news.clone(), self.waker.clone()));
                            under_way.spawn_local(way.carry(newest, news));
                            sender
                        });
                    }
                }
                Job::End(key, done) => {
                    wanted.retain(|(_, other), _| *other != key);
                    let others = self.targets.iter().filter(|target| !target.is_local).cloned();
                    let (log, clock) = (self.data.join(key.log()), self.clock);
                    let ways: Vec<Way> =
                        others.map(|target| Way { target, log: log.clone(), clock }).collect();
                    under_way.spawn_local(async move {
                        for way in &ways {
                            way.carry_log(&key).await;
                        }
                        done();
                    });
                }
                Job::Finish(at_most) => patience = at_most,
                Job::Tidy(running) => {
                    while under_way.try_join_next().is_some() {}
                    // Spawned, because a store that does not answer would delay saves to the other. A destination that
                    // is still busy is tidied when the next session ends.
                    for target in self.targets.iter().filter(|target| !target.is_tidied.replace(true)) {
                        let (target, running, keep) = (target.clone(), running.clone(), self.keep);
                        under_way.spawn_local(async move {
                            tidy(&target, keep, &running).await;
                            target.is_tidied.set(false);
                        });
                    }
                }
            }
        }
        drop(wanted);
        let all = async { while under_way.join_next().await.is_some() {} };
        tokio::time::timeout(patience, all).await.is_ok()
    }
}

fn pack(id: recorder::Place, key: SessionKey, save: Save) -> Option<Arc<Packed>> {
    match save.to_bytes() {
        Ok(bytes) => Some(Arc::new(Packed { id, key, info: save.info, bytes })),
        Err(error) => {
            tracing::error!(session = key.id(), %error, "a session cannot be saved");
            None
        }
    }
}

async fn tidy(target: &Target, keep: Retention, running: &BTreeSet<SessionKey>) {
    match retain(&*target.store, keep, running, unix_ms()).await {
        Ok(deleted) => deleted.iter().for_each(|key| {
            tracing::info!(session = key.id(), place = target.name, "an old session was deleted");
        }),
        Err(trouble) => tracing::warn!(place = target.name, %trouble, "old sessions are not deleted"),
    }
}

/// The uploads from one session to one destination.
struct Way {
    target: Target,
    /// The log of the session in the data folder.
    log: PathBuf,
    clock: Clock,
}

impl Way {
    /// Uploads the newest save until there are no more, and before each save the present log: a stored save is never
    /// further than its stored log.
    async fn carry(
        self,
        mut newest: watch::Receiver<Arc<Packed>>,
        news: Option<(Sender<(recorder::Place, Tick)>, HubWaker)>,
    ) {
        loop {
            let packed = newest.borrow_and_update().clone();
            if !self.target.is_local {
                self.carry_log(&packed.key).await;
            }
            let Some(outcome) = self.bring(&packed, &mut newest).await else { continue };
            tell(&self.target, &packed, &outcome);
            let is_kept = matches!(outcome, Outcome::Written | Outcome::AlreadyThere);
            if let Some((saved, waker)) = news.as_ref().filter(|_| is_kept) {
                // The server may have stopped in the meantime.
                let _ = saved.send((packed.id, packed.info.tick));
                waker.ring();
            }
            if newest.changed().await.is_err() {
                return;
            }
        }
    }

    /// Uploads one save; `None` if a newer one arrives first.
    async fn bring(&self, packed: &Packed, newest: &mut watch::Receiver<Arc<Packed>>) -> Option<Outcome> {
        let Way { target, clock, .. } = self;
        let mut sync = SaveSync::new(packed.info.clone(), u64::from_le_bytes(random()));
        let (place, session) = (&target.name, packed.key.id());
        let mut is_told = false;
        loop {
            while sync.advance(&*target.store, &packed.key.save(), &packed.bytes, &|| clock.now()).await {}
            let until = match sync.todo(clock.now()) {
                Todo::Done(outcome) => return Some(outcome),
                Todo::WaitUntil(until) => clock.instant(until).into(),
                // The sync has a next step.
                Todo::Head | Todo::Peek | Todo::Put(_) => continue,
            };
            if let Some(why) = sync.trouble().filter(|_| !is_told) {
                tracing::warn!(session, place, why, "a save could not be brought; it is tried again");
                is_told = true;
            }
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                changed = newest.changed() => {
                    if changed.is_ok() {
                        return None;
                    }
                    // There will be no newer save: keep trying with this one.
                    tokio::time::sleep_until(until).await;
                }
            }
        }
    }

    /// Appends the missing part of the log, with retries until it succeeds.
    async fn carry_log(&self, key: &SessionKey) {
        let (place, session) = (&self.target.name, key.id());
        let mut backoff = Backoff::new(u64::from_le_bytes(random()));
        let (mut is_told, mut races) = (false, 0);
        loop {
            match self.append_log(key).await {
                Ok(()) => return,
                // Another process has appended first: there is less to upload.
                Err(ColdError::Elsewhere { .. }) if races < MAX_RACES => races += 1,
                Err(ColdError::Store(why)) if !is_told => {
                    tracing::warn!(session, place, %why, "a log could not be brought; it is tried again");
                    is_told = true;
                }
                Err(ColdError::Store(_)) => {}
                Err(why) => return tracing::error!(session, place, %why, "a log is not brought any further"),
            }
            tokio::time::sleep_until(self.clock.instant(backoff.next(self.clock.now())).into()).await;
        }
    }

    async fn append_log(&self, key: &SessionKey) -> Result<(), ColdError> {
        let file = std::fs::read(&self.log)
            .map_err(|error| StoreError(format!("{}: {error}", self.log.display())))?;
        let (tail, header_first) = {
            let reader = LogReader::open(&file[..])?;
            (reader.tail(), reader.header().first_tick)
        };
        let local = &file[..usize::try_from(tail.valid_bytes).unwrap_or(file.len()).min(file.len())];
        let cold = ColdLog::new(&*self.target.store, key);
        let agrees = cold.agrees_with(local).await?;
        let there = if agrees { cold.bytes().await? } else { 0 };
        let (before, bytes) = local.split_at(usize::try_from(there).unwrap_or(usize::MAX).min(local.len()));
        if bytes.is_empty() {
            return Ok(());
        }
        let first = match before {
            [] => header_first,
            before => LogReader::open(before)?.tail().last_tick.next(),
        };
        let ticks = (tail.last_tick.0 + 1).saturating_sub(first.0);
        cold.append(Piece { at: there, anew: !agrees, first, ticks, bytes }).await
    }
}

fn tell(target: &Target, packed: &Packed, outcome: &Outcome) {
    let (place, session, tick) = (&target.name, packed.key.id(), packed.info.tick.0);
    match outcome {
        Outcome::Written | Outcome::AlreadyThere => tracing::debug!(session, place, tick, "saved"),
        Outcome::NewerIsThere(newer) => {
            tracing::warn!(session, place, tick, newer = newer.0, "a newer save is there");
        }
        Outcome::DifferentAtSameTick { theirs } => {
            tracing::error!(session, place, tick, %theirs, "another state of the same tick was saved before");
        }
        Outcome::Unreadable(why) => {
            tracing::error!(session, place, %why, "what is there cannot be read, and is left alone");
        }
    }
}
