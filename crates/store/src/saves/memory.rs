//! An object store in memory with seeded faults and a full history, for tests.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sametick_sim::{Rng, Tick};

use super::object_store::{
    Condition, Content, Listed, ObjectStore, Pending, PutError, StoreError, Tag, Version,
};

/// How often each fault happens, of 1,000 operations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Nothing is done, and an error is returned.
    pub trouble: u64,
    /// A put is refused though its condition holds, as S3 does when two puts collide.
    pub conflict: u64,
    /// A put is done, and the answer is lost.
    pub lost_reply: u64,
    /// A put has no answer, and is done later, if its condition holds by then.
    pub late: u64,
}

impl Faults {
    /// Every fault, each this often of 1,000 operations.
    pub fn all(often: u64) -> Faults {
        Faults { trouble: often, conflict: often, lost_reply: often, late: often }
    }
}

/// A change of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its key.
    pub key: String,
    /// Its content since then; `None` if it was deleted.
    pub bytes: Option<Vec<u8>>,
}

/// An object store in memory, for tests and the simulator. It is ready at once: see [`at_once`](super::at_once).
#[derive(Debug)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    objects: BTreeMap<String, Object>,
    next_version: u64,
    history: Vec<Commit>,
    late: Vec<(String, Object, Condition)>,
    faults: Faults,
    rng: Rng,
    unix_ms: u64,
}

#[derive(Clone, Debug)]
struct Object {
    bytes: Vec<u8>,
    version: u64,
    tick: Option<Tick>,
    modified_unix_ms: u64,
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl MemoryStore {
    /// An empty store without faults.
    pub fn new() -> MemoryStore {
        MemoryStore::with_faults(0, Faults::default())
    }

    /// An empty store with these faults.
    pub fn with_faults(seed: u64, faults: Faults) -> MemoryStore {
        let inner = Inner {
            objects: BTreeMap::new(),
            next_version: 1,
            history: Vec::new(),
            late: Vec::new(),
            faults,
            rng: Rng::new(seed),
            unix_ms: 0,
        };
        MemoryStore { inner: Mutex::new(inner) }
    }

    /// Changes the faults. Delayed puts are done now.
    pub fn set_faults(&self, faults: Faults) {
        let mut inner = self.lock();
        inner.faults = faults;
        while inner.do_one_late() {}
    }

    /// Sets the store's clock.
    pub fn set_unix_ms(&self, unix_ms: u64) {
        self.lock().unix_ms = unix_ms;
    }

    /// All changes, in order.
    pub fn history(&self) -> Vec<Commit> {
        self.lock().history.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer<'a, T: Send + 'a>(&self, ask: impl FnOnce(&mut Inner) -> T) -> Pending<'a, T> {
        let mut inner = self.lock();
        if inner.rng.chance(1, 3) {
            inner.do_one_late();
        }
        let answer = ask(&mut inner);
        Box::pin(async { answer })
    }
}

impl Inner {
    fn happens(&mut self, often: u64) -> bool {
        self.rng.chance(often, 1000)
    }

    fn read<T>(&mut self, key: &str, what: impl FnOnce(&Object) -> T) -> Result<Option<T>, StoreError> {
        if self.happens(self.faults.trouble) {
            return Err(StoreError("the store is out of order".into()));
        }
        Ok(self.objects.get(key).map(what))
    }

    fn do_one_late(&mut self) -> bool {
        if self.late.is_empty() {
            return false;
        }
        let at = self.rng.below(self.late.len() as u64) as usize;
        let (key, object, condition) = self.late.swap_remove(at);
        self.commit(&key, object, &condition);
        true
    }

    fn commit(&mut self, key: &str, mut object: Object, condition: &Condition) -> Option<Version> {
        let there = self.objects.get(key).map(Object::version);
        let holds = match condition {
            Condition::New => there.is_none(),
            Condition::Replaces(version) => there.as_ref() == Some(version),
        };
        holds.then(|| {
            object.version = self.next_version;
            self.next_version += 1;
            self.history.push(Commit { key: key.to_owned(), bytes: Some(object.bytes.clone()) });
            let version = object.version();
            self.objects.insert(key.to_owned(), object);
            version
        })
    }

    fn put(&mut self, key: &str, object: Object, condition: Condition) -> Result<Version, PutError> {
        if self.happens(self.faults.trouble) {
            return Err(PutError::Failing(StoreError("the store is out of order".into())));
        }
        if self.happens(self.faults.conflict) {
            return Err(PutError::Conflict);
        }
        let silence = || PutError::MaybeDone(StoreError("there was no answer".into()));
        if self.happens(self.faults.late) {
            self.late.push((key.to_owned(), object, condition));
            return Err(silence());
        }
        let committed = self.commit(key, object, &condition);
        if self.happens(self.faults.lost_reply) {
            return Err(silence());
        }
        committed.ok_or(PutError::Conflict)
    }
}

impl Object {
    fn version(&self) -> Version {
        Version(self.version.to_string())
    }

    fn part(&self, range: Range<u64>) -> Content {
        let len = self.bytes.len();
        let [start, end] =
            [range.start, range.end].map(|at| usize::try_from(at).map_or(len, |at| at.min(len)));
        Content { bytes: self.bytes[start..end.max(start)].to_vec(), version: self.version() }
    }
}

impl ObjectStore for MemoryStore {
    fn head<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Tag>, StoreError>> {
        let tag = |object: &Object| Tag { version: object.version(), tick: object.tick };
        self.answer(|inner| inner.read(key, tag))
    }

    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Content>, StoreError>> {
        self.answer(|inner| inner.read(key, |object| object.part(0..u64::MAX)))
    }

    fn get_range<'a>(
        &'a self,
        key: &'a str,
        range: Range<u64>,
    ) -> Pending<'a, Result<Option<Content>, StoreError>> {
        self.answer(|inner| inner.read(key, |object| object.part(range)))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: &'a [u8],
        condition: Condition,
        tick: Option<Tick>,
    ) -> Pending<'a, Result<Version, PutError>> {
        self.answer(|inner| {
            let object = Object { bytes: bytes.to_vec(), version: 0, tick, modified_unix_ms: inner.unix_ms };
            inner.put(key, object, condition)
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Pending<'a, Result<Vec<Listed>, StoreError>> {
        self.answer(|inner| {
            if inner.happens(inner.faults.trouble) {
                return Err(StoreError("the store is out of order".into()));
            }
            let all = inner.objects.iter().filter(|(key, _)| key.starts_with(prefix));
            let listed = all.map(|(key, object)| Listed {
                key: key.clone(),
                bytes: object.bytes.len() as u64,
                modified_unix_ms: object.modified_unix_ms,
            });
            Ok(listed.collect())
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, Result<(), StoreError>> {
        self.answer(|inner| {
            if inner.happens(inner.faults.trouble) {
                return Err(StoreError("the store is out of order".into()));
            }
            if inner.objects.remove(key).is_some() {
                inner.history.push(Commit { key: key.to_owned(), bytes: None });
            }
            Ok(())
        })
    }
}
