//! The door shared by every transport of a server, and the journal that keeps used proofs used after a restart.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use sametick_wire::access::{AccessKey, ProofId, RECORD_LEN, Silence};
use sametick_wire::hello::{Door, Knock};

use crate::clock::unix_seconds;

/// The journal is written anew when it has this many records, most of which are stale by then.
const REWRITE_AFTER: usize = 100_000;

/// A door with a memory. Cheap to clone; all clones are one door.
#[derive(Clone, Debug)]
pub struct Keeper {
    inner: Arc<Mutex<Inner>>,
    /// Counts changes of the key, so that what is derived from it can be kept.
    generation: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Inner {
    door: Door,
    journal: Option<Journal>,
}

impl Keeper {
    /// A door that forgets used proofs when the process ends: for clients' tests, not for servers.
    pub fn in_memory(key: AccessKey) -> Keeper {
        Keeper::new(Inner { door: Door::new(key), journal: None })
    }

    fn new(inner: Inner) -> Keeper {
        Keeper { inner: Arc::new(Mutex::new(inner)), generation: Arc::default() }
    }

    /// A door whose used proofs are kept in a file. A torn last record is cut off.
    pub fn open(key: AccessKey, path: &Path) -> io::Result<Keeper> {
        let mut door = Door::new(key);
        let now = unix_seconds();
        Journal::read(path)?.into_iter().for_each(|proof| door.restore(now, proof));
        let journal = Some(Journal::rewrite(path, &door)?);
        Ok(Keeper::new(Inner { door, journal }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while it was held cannot leave it half-changed in a way that lets anyone in.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Changes the passphrase. Open links stay open.
    pub fn set_key(&self, key: AccessKey) {
        self.lock().door.set_key(key);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// How often the key has been changed.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The key that is asked for now.
    pub fn key(&self) -> AccessKey {
        self.lock().door.key().clone()
    }

    /// Checks a first message; a used proof is on disk before this returns.
    pub fn knock(&self, bytes: &[u8]) -> Knock {
        let mut inner = self.lock();
        let knock = inner.door.knock(unix_seconds(), bytes);
        inner.keep();
        knock
    }

    /// Checks a native QUIC client's first connection id; likewise.
    pub fn check_connection_id(&self, id: &[u8]) -> Result<(), Silence> {
        let mut inner = self.lock();
        inner.door.check_connection_id(unix_seconds(), id)?;
        inner.keep();
        Ok(())
    }
}

impl Inner {
    /// A journal that cannot be written is reported once and given up: a full disk must not lock players out. Proofs
    /// stay used for as long as the process lives.
    fn keep(&mut self) {
        let fresh = self.door.take_fresh();
        let Some(journal) = self.journal.as_mut().filter(|_| !fresh.is_empty()) else { return };
        let written = if journal.records + fresh.len() > REWRITE_AFTER {
            Journal::rewrite(&journal.path, &self.door).map(|new| *journal = new)
        } else {
            journal.append(&fresh)
        };
        if let Err(error) = written {
            tracing::error!(%error, path = %journal.path.display(), "used proofs can no longer be kept on disk");
            self.journal = None;
        }
    }
}

#[derive(Debug)]
struct Journal {
    path: PathBuf,
    file: File,
    records: usize,
}

impl Journal {
    fn read(path: &Path) -> io::Result<Vec<ProofId>> {
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(bytes.as_chunks::<RECORD_LEN>().0.iter().map(ProofId::from_record).collect())
    }

    /// Writes what is still worth knowing to a new file and puts it in the old one's place.
    fn rewrite(path: &Path, door: &Door) -> io::Result<Journal> {
        let new = path.with_extension("new");
        let records = door.used().records();
        let mut file = File::create(&new)?;
        file.write_all(records.as_flattened())?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Journal { path: path.to_owned(), file, records: records.len() })
    }

    fn append(&mut self, proofs: &[ProofId]) -> io::Result<()> {
        let records: Vec<u8> = proofs.iter().flat_map(|proof| proof.to_record()).collect();
        self.records += proofs.len();
        self.file.write_all(&records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::random;
    use sametick_sim::{BuildId, SchemaHash};
    use sametick_wire::hello::{Hello, Identity, Intent, Stamp};

    fn first_message() -> Vec<u8> {
        let identity =
            Identity { build: BuildId::from_bytes([0; 16]), schema: SchemaHash::from_bytes([0; 32]) };
        let hello = Hello { identity, intent: Intent::Ping, name: String::new(), pass: None };
        hello.to_bytes(&AccessKey::open(), Stamp { unix_s: unix_seconds(), nonce: random() }).unwrap()
    }

    #[test]
    fn a_used_proof_stays_used_after_a_restart_also_when_the_last_record_is_torn() {
        let dir = std::env::temp_dir().join(format!("sametick-keeper-{:016x}", u64::from_le_bytes(random())));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("used-proofs");
        let open = || Keeper::open(AccessKey::open(), &path).unwrap();
        let messages = [first_message(), first_message(), first_message()];
        let id = AccessKey::open().connection_id(unix_seconds(), random());
        let keeper = open();
        assert!(matches!(keeper.knock(&messages[0]), Knock::Proven(_)));
        assert_eq!(keeper.check_connection_id(&id), Ok(()));
        assert!(matches!(keeper.knock(&messages[1]), Knock::Proven(_)));
        drop(keeper);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), 3 * RECORD_LEN);
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let keeper = open();
        assert_eq!(keeper.knock(&messages[0]), Knock::Silent(Silence::Replayed));
        assert_eq!(keeper.check_connection_id(&id), Err(Silence::Replayed));
        assert!(matches!(keeper.knock(&messages[1]), Knock::Proven(_)), "its record was torn");
        assert!(matches!(keeper.knock(&messages[2]), Knock::Proven(_)));
        drop(keeper);
        assert_eq!(std::fs::read(&path).unwrap().len(), 4 * RECORD_LEN);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
