//! The cold log: a session's log in an object store. It is appended to where the store can append, and otherwise split
//! into segments.
//!
//! ```text
//! segment ── put, if its key is free ──► manifest ── put, if it still is the one that was read ──► there
//! ```
//!
//! A crash between the two leaves a segment that no manifest names. An uploader that appends the same bytes again finds
//! it and reuses it; one that appends others leaves it alone and takes the next number.

use sametick_sim::Tick;
use sametick_sim::record::{Record, TickInputs};

use crate::log::{LogEncoder, LogReader, MAGIC as LOG_MAGIC, OpenError, PushError, ReadError};

use super::manifest::{BadManifest, MAX_SEGMENT_BYTES, Manifest, Segment, Unfit};
use super::object_store::{AppendError, Condition, Content, ObjectStore, PutError, StoreError, Version};
use crate::save::SessionKey;

/// How many objects may be named after one tick: each is left by a crash.
const MAX_NUMBERS: u16 = 1_000;

/// How much of a log is read at once.
const STRETCH: u64 = 8 << 20;

/// A piece of a log to append: whole frames of the local file.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Where it begins in the local file.
    pub at: u64,
    /// Whether a log of its own begins here though another exists: a session that goes on without its earlier file.
    /// Only for callers that have checked that the two do [not agree](ColdLog::agrees_with), and not where objects are
    /// appended to.
    pub anew: bool,
    /// The first tick closed in it.
    pub first: Tick,
    /// How many ticks were closed in it.
    pub ticks: u32,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Why a log was not appended to, or not read.
#[derive(Debug, thiserror::Error)]
pub enum ColdError {
    /// The store fails, or the answer was lost: retrying the same piece is right.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log in the store ends elsewhere: the next piece begins after these bytes, if they are the same.
    #[error("the log on the store has {bytes} bytes, and the piece does not begin there")]
    Elsewhere {
        /// How many bytes of the last log are in the store.
        bytes: u64,
    },
    /// The object at the key of the log is neither a log nor a manifest.
    #[error("the log on the store cannot be read: {0}")]
    Manifest(#[from] BadManifest),
    /// The piece is empty or too large, or there are too many.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// A segment that the manifest names is missing or changed.
    #[error("{key} is {what}")]
    Segment {
        /// Its key.
        key: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A file is not a log.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A log cannot be read to its end.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Ticks are missing.
    #[error("ticks {} to {} are in no log", after.0 + 1, next.0 - 1)]
    Gap {
        /// The last tick before.
        after: Tick,
        /// The first tick after.
        next: Tick,
    },
}

/// The log of a session in an object store.
#[derive(Clone, Copy, Debug)]
pub struct ColdLog<'a> {
    store: &'a dyn ObjectStore,
    key: &'a SessionKey,
}

impl<'a> ColdLog<'a> {
    /// The log of this session in this store. Sends no request yet.
    pub fn new(store: &'a dyn ObjectStore, key: &'a SessionKey) -> ColdLog<'a> {
        ColdLog { store, key }
    }

    /// How many bytes of its last log the store has: the next piece begins there. The caller has to know whether its
    /// own file begins with the same bytes: see [`agrees_with`](ColdLog::agrees_with).
    pub async fn bytes(&self) -> Result<u64, ColdError> {
        if self.store.can_append() {
            return self.bytes_of_file().await;
        }
        Ok(self.manifest().await?.0.bytes_of_last())
    }

    /// Whether the log in the store is the beginning of this file, so that it can be continued.
    pub async fn agrees_with(&self, local: &[u8]) -> Result<bool, ColdError> {
        if self.store.can_append() {
            let there = self.read_file().await?.unwrap_or_default();
            return Ok(local.starts_with(&there));
        }
        Ok(is_beginning(&self.manifest().await?.0, local))
    }

    /// Appends a piece. If that fails with [`ColdError::Store`], it may have been done: a retry is right, and is
    /// idempotent.
    pub async fn append(&self, piece: Piece<'_>) -> Result<(), ColdError> {
        if piece.bytes.is_empty() || piece.bytes.len() > MAX_SEGMENT_BYTES {
            return Err(Unfit.into());
        }
        if self.store.can_append() {
            return match self.store.append(&self.key.log(), piece.at, piece.bytes).await {
                Ok(_) => Ok(()),
                Err(AppendError::Conflict { bytes }) => Err(ColdError::Elsewhere { bytes }),
                Err(AppendError::Failing(trouble)) => Err(trouble.into()),
                Err(AppendError::Unable) => Err(StoreError(AppendError::Unable.to_string()).into()),
            };
        }
        let (mut manifest, version) = self.manifest().await?;
        if names(&manifest, &piece) {
            return Ok(());
        }
        let bytes = manifest.bytes_of_last();
        // A longer beginning of the same log is no new log.
        let is_anew = piece.anew && piece.at == 0 && bytes > 0 && !is_beginning(&manifest, piece.bytes);
        if piece.at != bytes && !is_anew {
            return Err(ColdError::Elsewhere { bytes });
        }
        let number = self.put_segment(&piece).await?;
        let before = manifest.clone();
        manifest.push(segment_of(&piece, number))?;
        let condition = version.map_or(Condition::New, Condition::Replaces);
        match self.store.put(&self.key.log(), &manifest.to_bytes(), condition, None).await {
            Ok(_) => Ok(()),
            Err(error) => self.look_again(&piece, &before, error).await,
        }
    }

    /// Reads the manifest again after a put that seems to have failed.
    async fn look_again(
        &self,
        piece: &Piece<'_>,
        before: &Manifest,
        error: PutError,
    ) -> Result<(), ColdError> {
        let (manifest, _) = self.manifest().await?;
        match error {
            _ if names(&manifest, piece) => Ok(()),
            PutError::Conflict if manifest != *before => {
                Err(ColdError::Elsewhere { bytes: manifest.bytes_of_last() })
            }
            error => Err(StoreError(error.to_string()).into()),
        }
    }

    /// Makes sure that an object has these bytes. Returns its number among those named after its first tick.
    async fn put_segment(&self, piece: &Piece<'_>) -> Result<u16, ColdError> {
        for number in 0..MAX_NUMBERS {
            let key = self.key.segment(piece.first, number);
            match self.store.put(&key, piece.bytes, Condition::New, Some(piece.first)).await {
                Ok(_) => return Ok(number),
                Err(PutError::Failing(trouble) | PutError::MaybeDone(trouble)) => return Err(trouble.into()),
                Err(PutError::Conflict) => match self.store.get(&key).await? {
                    Some(Content { bytes, .. }) if bytes == piece.bytes => return Ok(number),
                    Some(_) => {}
                    None => return Err(StoreError(PutError::Conflict.to_string()).into()),
                },
            }
        }
        Err(StoreError(format!("too many objects are named after tick {}", piece.first.0)).into())
    }

    async fn manifest(&self) -> Result<(Manifest, Option<Version>), ColdError> {
        match self.store.get(&self.key.log()).await? {
            Some(Content { bytes, version }) => Ok((Manifest::from_bytes(&bytes)?, Some(version))),
            None => Ok((Manifest::default(), None)),
        }
    }

    /// The last tick in the store; `None` if there is no log.
    pub async fn last_tick(&self) -> Result<Option<Tick>, ColdError> {
        if self.store.can_append() {
            let Some(file) = self.read_file().await? else { return Ok(None) };
            return Ok(Some(LogReader::open(&file[..])?.tail().last_tick));
        }
        let (manifest, _) = self.manifest().await?;
        let last = manifest.logs().last().and_then(<[Segment]>::last);
        Ok(last.map(|last| Tick((last.first.0 + last.ticks).saturating_sub(1))))
    }

    /// Reads everything; `None` if the session has no log in the store.
    pub async fn read(&self) -> Result<Option<ColdFiles>, ColdError> {
        let Some(first) = self.store.get_range(&self.key.log(), 0..LOG_MAGIC.len() as u64).await? else {
            return Ok(None);
        };
        if first.bytes == LOG_MAGIC {
            return Ok(self.read_file().await?.map(|file| ColdFiles { files: vec![file] }));
        }
        let (manifest, _) = self.manifest().await?;
        let mut files = Vec::new();
        for log in manifest.logs() {
            let mut file = Vec::new();
            for segment in log {
                file.extend(self.read_segment(segment).await?);
            }
            files.push(file);
        }
        Ok(Some(ColdFiles { files }))
    }

    async fn read_segment(&self, segment: &Segment) -> Result<Vec<u8>, ColdError> {
        let key = self.key.segment(segment.first, segment.number);
        let Some(Content { bytes, .. }) = self.store.get(&key).await? else {
            return Err(ColdError::Segment { key, what: "not there" });
        };
        if bytes.len() != segment.bytes as usize || crc32c::crc32c(&bytes) != segment.crc {
            return Err(ColdError::Segment { key, what: "not what the manifest says" });
        }
        Ok(bytes)
    }

    async fn bytes_of_file(&self) -> Result<u64, ColdError> {
        let key = self.key.log();
        let listed = self.store.list(&key).await?;
        Ok(listed.iter().find(|listed| listed.key == key).map_or(0, |listed| listed.bytes))
    }

    /// Reads a log that is one object.
    async fn read_file(&self) -> Result<Option<Vec<u8>>, ColdError> {
        let mut file = Vec::new();
        loop {
            let at = file.len() as u64;
            let Some(part) = self.store.get_range(&self.key.log(), at..at + STRETCH).await? else {
                return Ok(None);
            };
            file.extend_from_slice(&part.bytes);
            if (part.bytes.len() as u64) < STRETCH {
                return Ok(Some(file));
            }
        }
    }
}

fn segment_of(piece: &Piece<'_>, number: u16) -> Segment {
    Segment {
        first: piece.first,
        ticks: piece.ticks,
        bytes: piece.bytes.len() as u32,
        crc: crc32c::crc32c(piece.bytes),
        number,
        begins: piece.at == 0,
    }
}

/// Whether a piece is in the last log already.
fn names(manifest: &Manifest, piece: &Piece<'_>) -> bool {
    let mut at = 0;
    manifest.logs().last().unwrap_or_default().iter().any(|segment| {
        let here = at == piece.at && *segment == segment_of(piece, segment.number);
        at += u64::from(segment.bytes);
        here
    })
}

/// Whether this file begins with the last log.
fn is_beginning(manifest: &Manifest, local: &[u8]) -> bool {
    let mut rest = local;
    manifest.logs().last().unwrap_or_default().iter().all(|segment| {
        let Some((bytes, after)) = rest.split_at_checked(segment.bytes as usize) else { return false };
        rest = after;
        crc32c::crc32c(bytes) == segment.crc
    })
}

/// The logs of a session, in order. As a rule there is one. There are more if the session went on without its earlier
/// file: the ticks of a log from the first tick of a later one on are void.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdFiles {
    /// Each is a former local log: [`LogReader::open`] reads it.
    pub files: Vec<Vec<u8>>,
}

impl ColdFiles {
    /// Calls `each` with every valid tick from this one on. Missing ticks between two logs are an error.
    pub fn for_each_tick(&self, from: Tick, mut each: impl FnMut(&TickInputs)) -> Result<(), ColdError> {
        let mut readers = Vec::new();
        for file in &self.files {
            readers.push(LogReader::open(&file[..])?);
        }
        let mut next = from;
        for at in 0..readers.len() {
            let later = readers[at + 1..].iter().map(|reader| reader.header().first_tick);
            let end = later.min().unwrap_or(Tick(u32::MAX));
            let first = readers[at].header().first_tick;
            if at > 0 && first > next {
                return Err(ColdError::Gap { after: Tick(next.0.saturating_sub(1)), next: first });
            }
            let mut ticks = readers[at].ticks_from(next);
            while let Some(inputs) = ticks.next()?.filter(|inputs| inputs.tick() < end) {
                each(inputs);
                next = inputs.tick().next();
            }
        }
        Ok(())
    }

    /// Joins all of them into one log. It begins with the first log after which nothing is missing: logs before a gap,
    /// or with other seats taken at the end than the next log begins with, are left out, and the header says so by its
    /// first tick. `None` if there is no log.
    pub fn joined(self) -> Result<Option<Vec<u8>>, ColdError> {
        let mut files = self.files.into_iter();
        let Some(mut log) = files.next() else { return Ok(None) };
        for next in files {
            log = append_log(&log, &next)?.unwrap_or(next);
        }
        Ok(Some(log))
    }
}

/// Appends one log to another, by a rewind if it begins before the end; `None` if the two do not fit.
fn append_log(log: &[u8], next: &[u8]) -> Result<Option<Vec<u8>>, ColdError> {
    let (mut before, mut after) = (LogReader::open(log)?, LogReader::open(next)?);
    let (tail, first) = (before.tail(), after.header().first_tick);
    let is_alone = first <= before.header().first_tick;
    if is_alone || first > tail.last_tick.next() {
        return Ok(None);
    }
    let position = before.verify()?.position;
    let mut encoder = LogEncoder::resume(before.header(), position);
    let ended = tail.ended.then_some(Record::Resumed { unix_ms: after.header().started_unix_ms });
    let rewind = (first <= tail.last_tick).then(|| Record::Rewind { to: Tick(first.0 - 1) });
    let mut fits = ended.iter().chain(&rewind).try_for_each(|record| encoder.push(record));
    let mut records = after.records();
    while let Some(record) = records.next()?.filter(|_| fits.is_ok()) {
        fits = encoder.push(record);
    }
    if let Err(PushError::Misplaced(_) | PushError::TextTooLong { .. }) = fits {
        return Ok(None);
    }
    encoder.flush();
    let mut joined = log.get(..tail.valid_bytes as usize).unwrap_or(log).to_vec();
    let mut frame = Vec::new();
    while encoder.poll_frame(&mut frame).is_some() {
        joined.extend_from_slice(&frame);
    }
    Ok(Some(joined))
}
