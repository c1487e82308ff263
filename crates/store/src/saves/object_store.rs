//! What saves and logs need of the place they lie in: objects by key, and writes that happen only if nobody was quicker.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

use sametick_sim::Tick;

/// An answer that may take a while.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The largest object that is read whole: a segment of a log is carried long before it has so many bytes.
pub const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// Which content an object has. Two contents never have the same; nothing else is known about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub String);

/// What was read of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// All of it, or the part that was asked for.
    pub bytes: Vec<u8>,
    /// Which content all of it is.
    pub version: Version,
}

/// What is known of an object without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its content.
    pub version: Version,
    /// The tick that was said when it was put, where the store keeps that.
    pub tick: Option<Tick>,
}

/// When something is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Only if nothing has the key.
    New,
    /// Only if what has the key still is of this version.
    Replaces(Version),
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// How long it is.
    pub bytes: u64,
    /// When it was written last, by the clock of the store, in milliseconds of Unix time.
    pub modified_unix_ms: u64,
}

/// The store does not work, or not now. It says what is wrong, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Why something was not put, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The condition does not hold.
    #[error("somebody else was quicker")]
    Conflict,
    /// It was certainly not put.
    #[error("it was not written: {0}")]
    Failing(StoreError),
    /// It was put or not: there was no answer, or none that says so. Only reading tells.
    #[error("nobody knows whether it was written: {0}")]
    MaybeDone(StoreError),
}

/// Why something was not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Objects of this store cannot be appended to.
    #[error("objects cannot be appended to here")]
    Unable,
    /// The object does not end where it was thought to, and what follows there is something else.
    #[error("the object has {bytes} bytes, and not those that were to be written")]
    Conflict {
        /// How long it is.
        bytes: u64,
    },
    /// It was not appended, or not all of it is sure to be there: appending the same again is right.
    #[error("it was not appended: {0}")]
    Failing(StoreError),
}

/// A place for objects.
///
/// Everything may fail at any time. Whoever puts decides what to do next by reading, never by the error alone: see
/// [`SaveSync`](super::SaveSync).
pub trait ObjectStore: fmt::Debug + Send + Sync {
    /// Looks at an object without reading it; nothing if there is none.
    fn head<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Tag>, StoreError>>;

    /// Reads an object, whole; nothing if there is none.
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Content>, StoreError>>;

    /// Reads a part of an object, or what there is of it; nothing if there is no object.
    fn get_range<'a>(
        &'a self,
        key: &'a str,
        range: Range<u64>,
    ) -> Pending<'a, Result<Option<Content>, StoreError>>;

    /// Puts an object, all of it or nothing; when this returns it would survive a loss of power. The tick is kept beside it
    /// where the store can do that.
    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: &'a [u8],
        condition: Condition,
        tick: Option<Tick>,
    ) -> Pending<'a, Result<Version, PutError>>;

    /// Every object whose key begins like this, in any order.
    fn list<'a>(&'a self, prefix: &'a str) -> Pending<'a, Result<Vec<Listed>, StoreError>>;

    /// Takes an object away. That there is none is fine.
    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, Result<(), StoreError>>;

    /// Whether [`append`](ObjectStore::append) works here.
    fn can_append(&self) -> bool {
        false
    }

    /// Adds bytes at the end of an object that has `at` bytes, making it if that is none; returns how many it has then.
    /// Bytes that are there already, from an earlier try, are not added again.
    fn append<'a>(
        &'a self,
        _key: &'a str,
        _at: u64,
        _bytes: &'a [u8],
    ) -> Pending<'a, Result<u64, AppendError>> {
        Box::pin(async { Err(AppendError::Unable) })
    }
}
