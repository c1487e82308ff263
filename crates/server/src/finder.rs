//! Finds stored sessions on a thread of its own, in the data folder and in the object store. The copy that goes further
//! is used.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sametick_lockstep::relay;
use sametick_sim::{BuildId, Tick, Time};
use sametick_store::disk::FsDisk;
use sametick_store::log::repair;
use sametick_store::saves::{
    ColdLog, FolderStore, Mode, ObjectStore, Place, Save, SaveSync, SessionKey, StoreError, Todo, at_once,
    describe_save,
};
use sametick_transport::clock::unix_ms;
use sametick_transport::hub_waker::HubWaker;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;

use crate::recovered::RecoveredSession;

/// Time-out for the object store to list a session: players wait for it.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// Time-out for downloading a session that only the store has: without it a new session would begin.
const FETCH_PATIENCE: Duration = Duration::from_secs(15);

/// How long another process may hold a log before its session counts as in use. A session that is over, or whose server
/// was just killed, releases its log at once.
const WRITER_PATIENCE: Duration = Duration::from_secs(1);

/// How often a log that is in use is checked.
const WRITER_LOOK: Duration = Duration::from_millis(10);

/// How many sessions of a name are tried, newest first. There is more than one only if different names have the same
/// key.
const MAX_LOOKS: usize = 8;

/// The result of a search.
pub(crate) enum Sought {
    /// Nothing is stored: the session may begin under this number, which no session of its name had.
    New(u64),
    /// Like `New`, but data under that name exists or may exist; it is unusable and must not be overwritten.
    Spoilt(u64),
    /// The session can be resumed.
    Kept(Box<RecoveredSession>),
}

type Then = Box<dyn FnOnce(Sought) + Send>;

struct Wish {
    build: BuildId,
    mode: Mode,
    name: String,
    then: Then,
}

/// The finder thread.
pub(crate) struct Finder {
    wishes: Option<mpsc::UnboundedSender<Wish>>,
    thread: Option<JoinHandle<()>>,
}

impl Finder {
    /// Starts the thread. It looks in the data folder, and in the object store if there is one.
    pub fn start(data: &Path, store: Option<&Place>) -> Result<Finder, StoreError> {
        let local = FolderStore::open(data)?;
        let store = store.map(|place| Ok::<_, StoreError>((place.open()?, place.to_string()))).transpose()?;
        let (wishes, mut todo) = mpsc::unbounded_channel::<Wish>();
        let seeker = Seeker { data: data.to_owned(), local, store, last: Cell::new(0) };
        let thread = std::thread::Builder::new().name("finder".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let seeker = Rc::new(seeker);
            let look = async {
                let mut under_way = JoinSet::new();
                while let Some(Wish { build, mode, name, then }) = todo.recv().await {
                    // A store that does not answer for one session must not delay the others.
                    let seeker = Rc::clone(&seeker);
                    under_way.spawn_local(async move { then(seeker.seek(build, mode, &name).await) });
                    while under_way.try_join_next().is_some() {}
                }
            };
            match runtime {
                Ok(runtime) => LocalSet::new().block_on(&runtime, look),
                Err(error) => tracing::error!(%error, "no session is found again"),
            }
        });
        let thread = thread.map_err(|error| StoreError(format!("no thread to find sessions: {error}")))?;
        Ok(Finder { wishes: Some(wishes), thread: Some(thread) })
    }

    /// Finds the newest session of a name. `then` runs on another thread.
    fn find(&self, mode: Mode, key: &relay::SessionKey, then: impl FnOnce(Sought) + Send + 'static) {
        let wish = Wish { build: key.build, mode, name: key.name.clone(), then: Box::new(then) };
        if let Some(wishes) = &self.wishes {
            // A thread that has ended has logged why.
            let _ = wishes.send(wish);
        }
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        self.wishes = None;
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic already.
            let _ = thread.join();
        }
    }
}

/// Searches for sessions of one mode, and their results.
pub(crate) struct Search<T> {
    finder: Rc<Finder>,
    mode: Mode,
    waker: HubWaker,
    sender: Sender<(relay::SessionKey, T)>,
    found: Receiver<(relay::SessionKey, T)>,
}

impl<T: Send + 'static> Search<T> {
    /// Uses this finder; rings the waker for each result.
    pub fn new(finder: Rc<Finder>, mode: Mode, waker: HubWaker) -> Search<T> {
        let (sender, found) = channel();
        Search { finder, mode, waker, sender, found }
    }

    /// Searches for a session. `make` converts the result on another thread.
    pub fn look_for(
        &self,
        key: relay::SessionKey,
        make: impl FnOnce(&relay::SessionKey, Sought) -> T + Send + 'static,
    ) {
        let (sender, waker) = (self.sender.clone(), self.waker.clone());
        self.finder.find(self.mode, &key.clone(), move |sought| {
            let made = make(&key, sought);
            // The server may have stopped in the meantime.
            let _ = sender.send((key, made));
            waker.ring();
        });
    }

    /// The next result, if there is one. Does not block.
    pub fn poll(&self) -> Option<(relay::SessionKey, T)> {
        self.found.try_recv().ok()
    }
}

/// The state of the finder thread.
struct Seeker {
    data: PathBuf,
    local: FolderStore,
    store: Option<(Arc<dyn ObjectStore>, String)>,
    /// The last number given to a session.
    last: Cell<u64>,
}

/// Which places have data of a session.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    here: bool,
    there: bool,
}

/// Another process has the session.
struct InUse;

impl Seeker {
    async fn seek(&self, build: BuildId, mode: Mode, name: &str) -> Sought {
        let mut seen = BTreeMap::<u64, (SessionKey, Seen)>::new();
        for (started, key) in keys_of(&self.local, build, mode, name).await.unwrap_or_default() {
            seen.entry(started).or_insert((key, Seen::default())).1.here = true;
        }
        let there = self.keys_there(build, mode, name).await;
        let mut is_spoilt = there.is_none();
        for (started, key) in there.unwrap_or_default() {
            seen.entry(started).or_insert((key, Seen::default())).1.there = true;
        }
        let newest = seen.last_key_value().map_or(0, |(started, _)| *started);
        is_spoilt |= !seen.is_empty();
        for (key, seen) in seen.into_values().rev().take(MAX_LOOKS) {
            match self.take_up(&key, name, seen).await {
                Ok(Some(recovered)) => {
                    let (session, tick) = (key.id(), recovered.last().0);
                    tracing::info!(session, tick, "a session is found again");
                    return Sought::Kept(Box::new(recovered));
                }
                Ok(None) => {}
                Err(InUse) => {
                    tracing::warn!(
                        session = key.id(),
                        "another server has this session; one of the same name begins"
                    );
                    break;
                }
            }
        }
        self.last.set(unix_ms().max(self.last.get() + 1).max(newest.saturating_add(1)));
        if is_spoilt { Sought::Spoilt(self.last.get()) } else { Sought::New(self.last.get()) }
    }

    /// The sessions of a name in the object store; `None` if the store does not answer.
    async fn keys_there(&self, build: BuildId, mode: Mode, name: &str) -> Option<Vec<(u64, SessionKey)>> {
        let Some((store, place)) = &self.store else { return Some(Vec::new()) };
        match within(STORE_PATIENCE, keys_of(&**store, build, mode, name)).await {
            Ok(keys) => Some(keys),
            Err(why) => {
                tracing::warn!(session = name, place, %why, "what the store has of a session is not known");
                None
            }
        }
    }

    /// Reads a session from the place whose copy goes further.
    async fn take_up(
        &self,
        key: &SessionKey,
        name: &str,
        seen: Seen,
    ) -> Result<Option<RecoveredSession>, InUse> {
        let here = if seen.here { self.take_here(key, name).await? } else { None };
        let there = match &self.store {
            Some((store, place)) if seen.there => {
                let last = here.as_ref().map(RecoveredSession::last);
                let patience = if here.is_some() { STORE_PATIENCE } else { FETCH_PATIENCE };
                let there = within(patience, take_there(&**store, key, name, last)).await;
                there.unwrap_or_else(|why| {
                    let session = key.id();
                    tracing::warn!(session, place, %why, "what the store has of a session is not used");
                    None
                })
            }
            _ => None,
        };
        let Some(there) = there else { return Ok(here) };
        match self.bring_here(key, &there) {
            Ok(()) => Ok(Some(there)),
            Err(error) => {
                tracing::error!(session = key.id(), %error, "a session cannot be brought here from the store");
                Ok(here)
            }
        }
    }

    /// Reads a session from the data folder.
    async fn take_here(&self, key: &SessionKey, name: &str) -> Result<Option<RecoveredSession>, InUse> {
        let path = self.data.join(key.log());
        let mut waited = Duration::ZERO;
        while FsDisk::is_written(&path).unwrap_or(false) {
            if waited >= WRITER_PATIENCE {
                return Err(InUse);
            }
            tokio::time::sleep(WRITER_LOOK).await;
            waited += WRITER_LOOK;
        }
        // A failed repair is reported below.
        let _ = repair(&path);
        let save = at_once(self.local.get(&key.save())).ok().flatten();
        let save = save.and_then(|content| Save::from_bytes(&content.bytes).ok());
        let recovered = match RecoveredSession::new(name, fs::read(&path).ok(), save) {
            Ok(recovered) => recovered,
            Err(why) => {
                tracing::warn!(session = key.id(), why, "what is here of a session is of no use");
                return Ok(None);
            }
        };
        if let Some(why) = &recovered.flaw {
            tracing::error!(session = key.id(), why, "not everything of a session can be used");
        }
        if recovered.log.is_none() {
            set_aside(&path).unwrap_or_else(|error| tracing::error!(%error, "a log cannot be set aside"));
        }
        Ok(Some(recovered))
    }

    /// Copies a session from the object store to the data folder, so that its log goes on there.
    fn bring_here(&self, key: &SessionKey, recovered: &RecoveredSession) -> io::Result<()> {
        let path = self.data.join(key.log());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        set_aside(&path)?;
        if let Some(tape) = &recovered.log {
            let mut file = fs::File::create_new(&path)?;
            file.write_all(&tape.bytes).and_then(|()| file.sync_all())?;
        }
        let Some((save, bytes)) =
            recovered.save.as_ref().and_then(|save| Some((save, save.to_bytes().ok()?)))
        else {
            return Ok(());
        };
        let mut sync = SaveSync::new(save.info.clone(), 0);
        while at_once(sync.advance(&self.local, &key.save(), &bytes, &|| Time::ZERO)) {}
        match sync.todo(Time::ZERO) {
            Todo::Done(_) => Ok(()),
            _ => Err(io::Error::other(sync.trouble().unwrap_or("the save is not written").to_owned())),
        }
    }
}

/// The sessions of a name, by their start time.
async fn keys_of(
    store: &dyn ObjectStore,
    build: BuildId,
    mode: Mode,
    name: &str,
) -> Result<Vec<(u64, SessionKey)>, StoreError> {
    let listed = store.list(&SessionKey::prefix_of(build, mode, name)).await?;
    let mut keys: Vec<(u64, SessionKey)> = listed
        .iter()
        .filter_map(|listed| SessionKey::of_object(&listed.key))
        .filter_map(|(key, _)| Some((key.started_unix_ms(mode, name)?, key)))
        .collect();
    keys.dedup();
    Ok(keys)
}

/// Reads a session from a store if it goes further than `last`.
async fn take_there(
    store: &dyn ObjectStore,
    key: &SessionKey,
    name: &str,
    last: Option<Tick>,
) -> Result<Option<RecoveredSession>, StoreError> {
    let cold = ColdLog::new(store, key);
    let unreadable = |error| StoreError(format!("the log: {error}"));
    let saved = describe_save(store, key).await?.and_then(Result::ok).map(|info| info.tick);
    // A log that cannot be read does not hide a save.
    let logged = cold.last_tick().await;
    if last.is_some_and(|last| saved.max(logged.as_ref().ok().copied().flatten()) <= Some(last)) {
        return Ok(None);
    }
    let log = match logged {
        Ok(_) => cold.read().await.map_err(unreadable)?.and_then(|mut logs| logs.files.pop()),
        Err(error) => {
            tracing::warn!(session = key.id(), %error, "the log in the store cannot be read");
            None
        }
    };
    let save = store.get(&key.save()).await?.and_then(|content| Save::from_bytes(&content.bytes).ok());
    let recovered = RecoveredSession::new(name, log, save).map_err(StoreError)?;
    Ok(Some(recovered).filter(|recovered| last.is_none_or(|last| recovered.last() > last)))
}

/// The answer of a store, unless it times out.
async fn within<T>(
    patience: Duration,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(patience, answer).await.unwrap_or_else(|_| Err(StoreError("it does not answer".into())))
}

/// Renames a file if it exists, without overwriting another.
fn set_aside(path: &Path) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("-until-{}", unix_ms()));
    match fs::rename(path, path.with_file_name(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
