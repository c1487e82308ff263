//! The list of stored sessions, and the retention policy.

use std::collections::{BTreeMap, BTreeSet};

use crate::save::{BadSave, MAX_PREFIX_BYTES, SESSIONS, SaveInfo, SessionKey};

use super::object_store::{Listed, ObjectStore, StoreError};

/// A session written to within this time may still be running: sessions are saved every few minutes.
const FRESH_MS: u64 = 60 * 60 * 1000;

/// A stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Its key.
    pub key: SessionKey,
    /// Whether it has a save.
    pub has_save: bool,
    /// Whether it has a log.
    pub has_log: bool,
    /// The size of all its objects in bytes.
    pub bytes: u64,
    /// When one of its objects was written last, by the clock of the store, in milliseconds of Unix time.
    pub modified_unix_ms: u64,
    objects: Vec<String>,
}

impl StoredSession {
    /// Whether it has neither a save nor a log: it was deleted halfway, or never complete.
    pub fn is_left_over(&self) -> bool {
        !self.has_save && !self.has_log
    }
}

/// How many sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The newest ones, of all builds together.
    pub sessions: usize,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { sessions: 10 }
    }
}

/// Every stored session, the most recently written first.
pub async fn list_sessions(store: &dyn ObjectStore) -> Result<Vec<StoredSession>, StoreError> {
    let mut sessions = BTreeMap::<SessionKey, StoredSession>::new();
    for Listed { key: object, bytes, modified_unix_ms } in store.list(SESSIONS).await? {
        let Some((key, name)) = SessionKey::of_object(&object) else { continue };
        let session = sessions.entry(key.clone()).or_insert_with(|| StoredSession {
            key,
            has_save: false,
            has_log: false,
            bytes: 0,
            modified_unix_ms: 0,
            objects: Vec::new(),
        });
        session.has_save |= name == "save";
        session.has_log |= name == "log";
        session.bytes += bytes;
        session.modified_unix_ms = session.modified_unix_ms.max(modified_unix_ms);
        session.objects.push(object);
    }
    let mut sessions: Vec<StoredSession> = sessions.into_values().collect();
    sessions.sort_by(|a, b| b.modified_unix_ms.cmp(&a.modified_unix_ms).then_with(|| a.key.cmp(&b.key)));
    Ok(sessions)
}

/// Reads the head of a session's save; `None` if there is none.
pub async fn describe_save(
    store: &dyn ObjectStore,
    key: &SessionKey,
) -> Result<Option<Result<SaveInfo, BadSave>>, StoreError> {
    let found = store.get_range(&key.save(), 0..MAX_PREFIX_BYTES as u64).await?;
    Ok(found.map(|content| SaveInfo::from_prefix(&content.bytes)))
}

/// Deletes a session: its save, then its log or manifest, then the segments and everything else.
///
/// A crash in between leaves nothing that looks whole and is not: a log without a save is a log, and segments without a
/// manifest are never read. The rest is [found](StoredSession::is_left_over) and deleted by the next [`retain`].
pub async fn delete_session(store: &dyn ObjectStore, key: &SessionKey) -> Result<(), StoreError> {
    let objects = store.list(&key.prefix()).await?.into_iter().map(|listed| listed.key).collect();
    delete_objects(store, key, objects).await
}

async fn delete_objects(
    store: &dyn ObjectStore,
    key: &SessionKey,
    mut objects: Vec<String>,
) -> Result<(), StoreError> {
    let (save, log) = (key.save(), key.log());
    objects.sort_by_key(|object| (*object != save, *object != log));
    for object in objects {
        store.delete(&object).await?;
    }
    Ok(())
}

/// Deletes all but the newest sessions, and returns which. Never one of `running`, and none that was written to within
/// the last hour: it may run on another machine.
pub async fn retain(
    store: &dyn ObjectStore,
    retention: Retention,
    running: &BTreeSet<SessionKey>,
    now_unix_ms: u64,
) -> Result<Vec<SessionKey>, StoreError> {
    let mut deleted = Vec::new();
    let (left_over, whole): (Vec<_>, Vec<_>) =
        list_sessions(store).await?.into_iter().partition(StoredSession::is_left_over);
    for session in whole.into_iter().skip(retention.sessions).chain(left_over) {
        let is_fresh = now_unix_ms.saturating_sub(session.modified_unix_ms) < FRESH_MS;
        if is_fresh || running.contains(&session.key) {
            continue;
        }
        delete_objects(store, &session.key, session.objects).await?;
        deleted.push(session.key);
    }
    Ok(deleted)
}
