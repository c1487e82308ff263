//! The upload of a save to a store that other machines upload to as well: a newer save is never overwritten, whichever
//! request is slow, late, repeated or unanswered.
//!
//! ```text
//! look ── nothing there ──────────────────────────► put, if still nothing is there ─┐
//!   │  ── an older save ──────────────────────────► put, if it still is that one ───┤
//!   │  ── a newer save ───► newer is there                                          │
//!   │  ── the same tick ──► read its head: the same state is there, or another      │
//!   └◄──── lost a race, or unknown: look again ◄───────────────────────────────────┴──► written
//! ```
//!
//! No error decides anything: after each, the state machine looks again. So a request that was done though its answer
//! was lost is found by what it has written, and one that is done long after its time-out finds its condition broken.

use sametick_sim::{StateHash, Tick, Time};
use sametick_wire::backoff::Backoff;

use super::object_store::{Condition, Content, ObjectStore, PutError, StoreError, Tag, Version};
use crate::save::{BadSave, MAX_PREFIX_BYTES, SaveInfo};

/// The next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Read the metadata of the save: [`ObjectStore::head`], then [`SaveSync::on_head`].
    Head,
    /// Read its first [`MAX_PREFIX_BYTES`]: [`ObjectStore::get_range`], then [`SaveSync::on_peek`].
    Peek,
    /// Put the save: [`ObjectStore::put`], then [`SaveSync::on_put`].
    Put(Condition),
    /// Do nothing before this time.
    WaitUntil(Time),
    /// The upload has ended.
    Done(Outcome),
}

/// How the upload ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This upload wrote the save.
    Written,
    /// The same state of the same tick is there already.
    AlreadyThere,
    /// A save of this later tick is there.
    NewerIsThere(Tick),
    /// A save of the same tick with another state is there: a desync. It was left alone.
    DifferentAtSameTick {
        /// The hash of the other state.
        theirs: StateHash,
    },
    /// The object there is no readable save. It was left alone: it may be newer.
    Unreadable(BadSave),
}

/// The upload of one save. It does no I/O: it returns the next action and is told the result.
#[derive(Debug)]
pub struct SaveSync {
    ours: SaveInfo,
    todo: Todo,
    /// A put had no answer: the save there may be ours.
    in_doubt: bool,
    lost_races: u32,
    backoff: Backoff,
    trouble: Option<String>,
}

impl SaveSync {
    /// The upload of a save with this head. Two uploaders to one key need different seeds.
    pub fn new(ours: SaveInfo, seed: u64) -> SaveSync {
        SaveSync {
            ours,
            todo: Todo::Head,
            in_doubt: false,
            lost_races: 0,
            backoff: Backoff::new(seed),
            trouble: None,
        }
    }

    /// The next action.
    pub fn todo(&mut self, now: Time) -> Todo {
        if matches!(self.todo, Todo::WaitUntil(until) if until <= now) {
            self.todo = Todo::Head;
        }
        self.todo.clone()
    }

    /// The head of the save.
    pub fn ours(&self) -> &SaveInfo {
        &self.ours
    }

    /// The last error, for people.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Takes the answer of [`ObjectStore::head`].
    pub fn on_head(&mut self, now: Time, found: Result<Option<Tag>, StoreError>) {
        self.todo = match found {
            Err(trouble) => self.pause(now, trouble.to_string()),
            Ok(None) => Todo::Put(Condition::New),
            Ok(Some(Tag { version, tick: Some(tick) })) if tick < self.ours.tick => {
                Todo::Put(Condition::Replaces(version))
            }
            Ok(Some(Tag { tick: Some(tick), .. })) if tick > self.ours.tick => {
                Todo::Done(Outcome::NewerIsThere(tick))
            }
            Ok(Some(_)) => Todo::Peek,
        };
    }

    /// Takes the answer of [`ObjectStore::get_range`] with the beginning of the save there.
    pub fn on_peek(&mut self, now: Time, found: Result<Option<Content>, StoreError>) {
        self.todo = match found {
            Err(trouble) => self.pause(now, trouble.to_string()),
            Ok(None) => Todo::Put(Condition::New),
            Ok(Some(Content { bytes, version })) => match SaveInfo::from_prefix(&bytes) {
                Ok(theirs) => self.compare(&theirs, version),
                Err(bad) => Todo::Done(Outcome::Unreadable(bad)),
            },
        };
    }

    fn compare(&self, theirs: &SaveInfo, version: Version) -> Todo {
        if theirs.tick < self.ours.tick {
            Todo::Put(Condition::Replaces(version))
        } else if theirs.tick > self.ours.tick {
            Todo::Done(Outcome::NewerIsThere(theirs.tick))
        } else if theirs.hash != self.ours.hash {
            Todo::Done(Outcome::DifferentAtSameTick { theirs: theirs.hash })
        } else if self.in_doubt && *theirs == self.ours {
            Todo::Done(Outcome::Written)
        } else {
            Todo::Done(Outcome::AlreadyThere)
        }
    }

    /// Takes the answer of [`ObjectStore::put`].
    pub fn on_put(&mut self, now: Time, put: Result<Version, PutError>) {
        self.todo = match put {
            Ok(_) => Todo::Done(Outcome::Written),
            // The winner of the race has advanced the session: no need to wait. But a store may also report conflicts
            // again and again while nothing changes.
            Err(PutError::Conflict) if self.lost_races == 0 => {
                self.lost_races += 1;
                Todo::Head
            }
            Err(error) => {
                self.in_doubt |= matches!(error, PutError::MaybeDone(_));
                self.pause(now, error.to_string())
            }
        };
    }

    fn pause(&mut self, now: Time, trouble: String) -> Todo {
        self.trouble = Some(trouble);
        self.lost_races = 0;
        Todo::WaitUntil(self.backoff.next(now))
    }

    /// Does the next action on a store, if there is one. Returns whether there was: otherwise [`todo`](SaveSync::todo)
    /// returns how long to wait, or how it ended.
    pub async fn advance(
        &mut self,
        store: &dyn ObjectStore,
        key: &str,
        bytes: &[u8],
        clock: &(dyn Fn() -> Time + Send + Sync),
    ) -> bool {
        match self.todo(clock()) {
            Todo::Head => {
                let found = store.head(key).await;
                self.on_head(clock(), found);
            }
            Todo::Peek => {
                let found = store.get_range(key, 0..MAX_PREFIX_BYTES as u64).await;
                self.on_peek(clock(), found);
            }
            Todo::Put(condition) => {
                let put = store.put(key, bytes, condition, Some(self.ours.tick)).await;
                self.on_put(clock(), put);
            }
            Todo::WaitUntil(_) | Todo::Done(_) => return false,
        }
        true
    }
}
