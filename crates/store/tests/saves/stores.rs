//! The contract of every object store.

use sametick_sim::Tick;
use sametick_store::saves::{Condition, MemoryStore, ObjectStore, PutError, Version, at_once};

use crate::kit::{key, save};

/// Checks every promise of a store once.
pub async fn behaves(store: &dyn ObjectStore) {
    let (save_key, log_key) = (key().save(), key().log());
    assert_eq!(store.head(&save_key).await, Ok(None));
    assert_eq!(store.get(&save_key).await, Ok(None));
    assert_eq!(store.get_range(&save_key, 0..10).await, Ok(None));
    let stranger = Version("\"no such version\"".into());
    let missing = store.put(&save_key, b"x", Condition::Replaces(stranger.clone()), None).await;
    assert_eq!(missing, Err(PutError::Conflict), "there is nothing to replace");

    let bytes = save(5, 0).to_bytes().unwrap();
    let first = store.put(&save_key, &bytes, Condition::New, Some(Tick(5))).await.unwrap();
    let again = store.put(&save_key, b"x", Condition::New, None).await;
    assert_eq!(again, Err(PutError::Conflict), "it is not new any more");
    let tag = store.head(&save_key).await.unwrap().unwrap();
    assert_eq!((&tag.version, tag.tick), (&first, Some(Tick(5))));
    let content = store.get(&save_key).await.unwrap().unwrap();
    assert_eq!((&content.version, &content.bytes), (&first, &bytes));
    for range in [0..7, 3..bytes.len(), 3..bytes.len() + 1000] {
        let part = store.get_range(&save_key, range.start as u64..range.end as u64).await.unwrap().unwrap();
        assert_eq!(part.bytes, bytes[range.start..range.end.min(bytes.len())]);
        assert_eq!(part.version, first);
    }

    let newer = save(6, 0).to_bytes().unwrap();
    let second = Condition::Replaces(first.clone());
    let second = store.put(&save_key, &newer, second, Some(Tick(6))).await.unwrap();
    assert_ne!(first, second);
    let stale = store.put(&save_key, &bytes, Condition::Replaces(first), Some(Tick(5))).await;
    assert_eq!(stale, Err(PutError::Conflict), "another writer has replaced it");
    assert_eq!(store.head(&save_key).await.unwrap().unwrap().tick, Some(Tick(6)));

    store.put(&log_key, b"log", Condition::New, None).await.unwrap();
    assert_eq!(store.head(&log_key).await.unwrap().unwrap().tick, None);
    let mut all = store.list("sessions/").await.unwrap();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    let found: Vec<_> = all.iter().map(|listed| (listed.key.clone(), listed.bytes)).collect();
    assert_eq!(found, [(log_key.clone(), 3), (save_key.clone(), newer.len() as u64)]);
    assert_eq!(store.list(&key().prefix()).await.unwrap().len(), 2);
    assert_eq!(store.list("sessions/0000/").await.unwrap(), []);

    store.delete(&save_key).await.unwrap();
    store.delete(&save_key).await.unwrap();
    assert_eq!(store.head(&save_key).await, Ok(None));
    assert_eq!(store.list("sessions/").await.unwrap().len(), 1);
    store.delete(&log_key).await.unwrap();
    assert_eq!(store.list("sessions/").await.unwrap(), []);
}

#[test]
fn a_store_in_memory_keeps_the_contract_of_stores() {
    at_once(behaves(&MemoryStore::new()));
}
