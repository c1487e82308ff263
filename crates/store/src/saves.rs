//! Saves and cold logs of sessions, and their object stores: a folder, or S3-compatible storage.
//!
//! A [`Save`] is one state of a session with all that is needed to go on from it. A [`SaveSync`] uploads it to an
//! [`ObjectStore`] without ever overwriting a newer one. Formats, keys and protocol are described in `docs/saves.md`.
//!
//! ```
//! use sametick_sim::{StateHash, Tick, Time};
//! use sametick_store::log::Header;
//! use sametick_store::saves::{MemoryStore, Outcome, Save, SaveInfo, SaveSync, SessionKey, ObjectStore, Todo, at_once};
//!
//! let header = Header::new("pong", "den");
//! let key = SessionKey::of(header.build, &header.session, header.started_unix_ms);
//! let state = vec![1, 2, 3];
//! let (tick, hash) = (Tick(900), StateHash::of_bytes(&state));
//! let info = SaveInfo { tick, hash, ..SaveInfo::of_log(&header, key.id()) };
//! let bytes = Save { info: info.clone(), state, table: vec![] }.to_bytes()?;
//!
//! let store = MemoryStore::new();
//! let mut sync = SaveSync::new(info, 7);
//! while at_once(sync.advance(&store, &key.save(), &bytes, &|| Time::ZERO)) {}
//! assert_eq!(sync.todo(Time::ZERO), Todo::Done(Outcome::Written));
//!
//! let found = at_once(store.get(&key.save()))?.expect("it was put");
//! let save = Save::from_bytes(&found.bytes)?;
//! assert!(save.is_true() && save.info.tick == tick);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cold;
mod folder;
mod manifest;
mod memory;
mod object_store;
mod place;
#[cfg(feature = "s3")]
mod s3;
mod sessions;
mod sync;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

pub use crate::save::{
    BadSave, MAX_PREFIX_BYTES, MAX_SAVE_BYTES, MAX_STATE_BYTES, MAX_TABLE_BYTES, Mode, SAVE_VERSION,
    SESSIONS, Save, SaveInfo, SessionKey, TooLarge,
};
pub use cold::{ColdError, ColdFiles, ColdLog, Piece};
pub use folder::FolderStore;
pub use manifest::{
    BadManifest, MANIFEST_VERSION, MAX_SEGMENT_BYTES, MAX_SEGMENTS, Manifest, Segment, Unfit,
};
pub use memory::{Commit, Faults, MemoryStore};
pub use object_store::{
    AppendError, Condition, Content, Listed, MAX_OBJECT_BYTES, ObjectStore, Pending, PutError, StoreError,
    Tag, Version,
};
pub use place::{BadPlace, Place, S3Place};
#[cfg(feature = "s3")]
pub use s3::{S3Credentials, S3Options, S3Store};
pub use sessions::{Retention, StoredSession, delete_session, describe_save, list_sessions, retain};
pub use sync::{Outcome, SaveSync, Todo};

/// Polls a future that never waits for anything but a disk: that of a folder or a store in memory.
///
/// # Panics
/// If the future is not ready at once.
pub fn at_once<T>(pending: impl Future<Output = T>) -> T {
    match pin!(pending).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("this store does not answer at once: it needs a runtime"),
    }
}
