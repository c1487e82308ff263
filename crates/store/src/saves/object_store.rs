//! The object store interface of saves and logs: objects by key, with conditional writes.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

use sametick_sim::Tick;

/// The future of an answer.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The largest object that is read whole: a segment of a log is uploaded long before it has so many bytes.
pub const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// Identifies the content of an object. Two contents never have the same version; it is otherwise opaque.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub String);

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The whole content, or the part that was asked for.
    pub bytes: Vec<u8>,
    /// The version of the whole content.
    pub version: Version,
}

/// The metadata of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The version of its content.
    pub version: Version,
    /// The tick given when it was put, where the store keeps that.
    pub tick: Option<Tick>,
}

/// The condition of a put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Only if the key is free.
    New,
    /// Only if the object at the key still has this version.
    Replaces(Version),
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// Its length.
    pub bytes: u64,
    /// When it was written last, by the clock of the store, in milliseconds of Unix time.
    pub modified_unix_ms: u64,
}

/// The store fails, for now or for good. The text is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Why a put failed, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The condition does not hold.
    #[error("another writer was quicker")]
    Conflict,
    /// It was certainly not put.
    #[error("it was not written: {0}")]
    Failing(StoreError),
    /// The result is unknown: there was no answer, or an unclear one. Only reading tells.
    #[error("nobody knows whether it was written: {0}")]
    MaybeDone(StoreError),
}

/// Why an append failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Objects of this store cannot be appended to.
    #[error("objects cannot be appended to here")]
    Unable,
    /// The object does not end where expected, and the bytes there differ.
    #[error("the object has {bytes} bytes, and not those that were to be written")]
    Conflict {
        /// Its length.
        bytes: u64,
    },
    /// It was not appended, or not all of it is certainly durable: a retry of the same bytes is right.
    #[error("it was not appended: {0}")]
    Failing(StoreError),
}

/// An object store.
///
/// Any call may fail at any time. A caller that puts decides what to do next by reading, never by the error alone: see
/// [`SaveSync`](super::SaveSync).
pub trait ObjectStore: fmt::Debug + Send + Sync {
    /// Reads the metadata of an object; `None` if there is none.
    fn head<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Tag>, StoreError>>;

    /// Reads a whole object; `None` if there is none.
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Content>, StoreError>>;

    /// Reads a part of an object, as far as it exists; `None` if there is no object.
    fn get_range<'a>(
        &'a self,
        key: &'a str,
        range: Range<u64>,
    ) -> Pending<'a, Result<Option<Content>, StoreError>>;

    /// Puts an object, all of it or nothing; when this returns it is durable. The tick is stored beside it where the
    /// store can do that.
    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: &'a [u8],
        condition: Condition,
        tick: Option<Tick>,
    ) -> Pending<'a, Result<Version, PutError>>;

    /// Lists every object with this key prefix, in any order.
    fn list<'a>(&'a self, prefix: &'a str) -> Pending<'a, Result<Vec<Listed>, StoreError>>;

    /// Deletes an object. A missing one is no error.
    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, Result<(), StoreError>>;

    /// Whether [`append`](ObjectStore::append) works here.
    fn can_append(&self) -> bool {
        false
    }

    /// Appends bytes to an object that has `at` bytes, creating it if that is none; returns its new length. Bytes that
    /// are there already, from an earlier try, are not added again.
    fn append<'a>(
        &'a self,
        _key: &'a str,
        _at: u64,
        _bytes: &'a [u8],
    ) -> Pending<'a, Result<u64, AppendError>> {
        Box::pin(async { Err(AppendError::Unable) })
    }
}
