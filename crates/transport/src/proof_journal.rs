//! The hello verifier shared by all transports of a server, and its journal of used proofs, which survives a restart.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use sametick_wire::access::{AccessKey, ProofId, RECORD_LEN, Silence, Source};
use sametick_wire::hello::{HelloOutcome, HelloVerifier};

use crate::clock::unix_seconds;

/// The journal is rewritten at this many records, most of which are stale by then.
const REWRITE_AFTER: usize = 100_000;

/// A hello verifier with a journal. Clones share it.
#[derive(Clone, Debug)]
pub struct ProofJournal {
    inner: Arc<Mutex<Inner>>,
    /// Counts changes of the key, so that derived keys can be cached.
    generation: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Inner {
    door: HelloVerifier,
    journal: Option<Journal>,
}

impl ProofJournal {
    /// A verifier that forgets used proofs when the process ends: for clients' tests, not for servers.
    pub fn in_memory(key: AccessKey) -> ProofJournal {
        ProofJournal::new(Inner { door: HelloVerifier::new(key), journal: None })
    }

    fn new(inner: Inner) -> ProofJournal {
        ProofJournal { inner: Arc::new(Mutex::new(inner)), generation: Arc::default() }
    }

    /// A verifier whose used proofs are stored in a file. Expired ones are dropped, and a torn last record is cut off.
    pub fn open(key: AccessKey, path: &Path) -> io::Result<ProofJournal> {
        let mut door = HelloVerifier::new(key);
        let now = unix_seconds();
        Journal::read(path)?.into_iter().for_each(|proof| door.restore(now, proof));
        let journal = Some(Journal::rewrite(path, &door)?);
        Ok(ProofJournal::new(Inner { door, journal }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock was held cannot leave a state that admits a client wrongly.
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

    /// The current key.
    pub fn key(&self) -> AccessKey {
        self.lock().door.key().clone()
    }

    /// Whether the server has no passphrase.
    pub fn is_open(&self) -> bool {
        self.lock().door.is_open()
    }

    /// Checks a first message; a used proof is on disk before this returns.
    pub fn knock(&self, source: Source, bytes: &[u8]) -> HelloOutcome {
        let mut inner = self.lock();
        let knock = inner.door.knock(unix_seconds(), source, bytes);
        match knock {
            HelloOutcome::Silent(Silence::Full) => inner.report_full(source),
            _ => inner.keep(),
        }
        knock
    }

    /// Whether a first connection id proves the passphrase, used or not.
    pub fn is_proof(&self, id: &[u8]) -> bool {
        self.lock().door.key().check_connection_id(unix_seconds(), id).is_ok()
    }

    /// Checks a native QUIC client's first connection id; a used proof is on disk before this returns.
    pub fn check_connection_id(&self, source: Source, id: &[u8]) -> Result<(), Silence> {
        self.use_proof(source, |door| door.check_connection_id(unix_seconds(), source, id))
    }

    /// Marks a proof as used whose source address has been proven meanwhile; it is on disk before this returns.
    pub fn spend(&self, source: Source, proof: ProofId) -> Result<(), Silence> {
        self.use_proof(source, |door| door.spend(unix_seconds(), source, proof))
    }

    fn use_proof(
        &self,
        source: Source,
        using: impl FnOnce(&mut HelloVerifier) -> Result<(), Silence>,
    ) -> Result<(), Silence> {
        let mut inner = self.lock();
        let used = using(&mut inner.door);
        match used {
            Ok(()) => inner.keep(),
            Err(Silence::Full) => inner.report_full(source),
            Err(_) => {}
        }
        used
    }
}

impl Inner {
    fn report_full(&self, source: Source) {
        let Source { network, is_proven } = source;
        let remembered = self.door.used().len();
        tracing::warn!(%network, is_proven, remembered, "a client is refused: too many first messages in the last minutes");
    }

    /// Writes to the journal. A failure is reported once and the journal is given up: a full disk must not lock players
    /// out. Proofs stay used for as long as the process lives.
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

    /// Writes the records that are still needed to a new file, and replaces the old one with it.
    fn rewrite(path: &Path, door: &HelloVerifier) -> io::Result<Journal> {
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
        hello.to_bytes(&key(), Stamp { unix_s: unix_seconds(), nonce: random() }).unwrap()
    }

    fn key() -> AccessKey {
        AccessKey::from_root(&[7; 32])
    }

    const SOURCE: Source = Source::unproven(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            let name = format!("sametick-proofs-{:016x}", u64::from_le_bytes(random()));
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn used_proofs_survive_a_restart_and_a_torn_last_record() {
        let folder = Folder::new();
        let path = folder.0.join("used-proofs");
        let open = || ProofJournal::open(key(), &path).unwrap();
        let messages = [first_message(), first_message(), first_message()];
        let id = key().connection_id(unix_seconds(), random());
        let proofs = open();
        assert!(matches!(proofs.knock(SOURCE, &messages[0]), HelloOutcome::Proven(_)));
        assert_eq!(proofs.check_connection_id(SOURCE, &id), Ok(()));
        assert!(matches!(proofs.knock(SOURCE, &messages[1]), HelloOutcome::Proven(_)));
        drop(proofs);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), 3 * RECORD_LEN);
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let proofs = open();
        assert_eq!(proofs.knock(SOURCE, &messages[0]), HelloOutcome::Silent(Silence::Replayed));
        assert_eq!(proofs.check_connection_id(SOURCE, &id), Err(Silence::Replayed));
        assert!(matches!(proofs.knock(SOURCE, &messages[1]), HelloOutcome::Proven(_)), "its record was torn");
        assert!(matches!(proofs.knock(SOURCE, &messages[2]), HelloOutcome::Proven(_)));
        drop(proofs);
        assert_eq!(std::fs::read(&path).unwrap().len(), 4 * RECORD_LEN);
    }

    #[test]
    fn expired_records_are_dropped_when_the_journal_is_opened() {
        let folder = Folder::new();
        let path = folder.0.join("used-proofs");
        let records = |count: usize, age_s: u64| -> Vec<u8> {
            let stamped_s = unix_seconds() - age_s;
            (0..count).flat_map(|_| ProofId { id: random(), stamped_s }.to_record()).collect()
        };
        std::fs::write(&path, [records(70_000, 3_600), records(3, 10)].concat()).unwrap();
        let proofs = ProofJournal::open(key(), &path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), 3 * RECORD_LEN);
        assert!(matches!(proofs.knock(SOURCE, &first_message()), HelloOutcome::Proven(_)));
        // Also if all of them are young.
        std::fs::write(&path, records(70_000, 10)).unwrap();
        let proofs = ProofJournal::open(key(), &path).unwrap();
        assert!(matches!(proofs.knock(SOURCE, &first_message()), HelloOutcome::Proven(_)));
    }

    #[test]
    fn without_a_passphrase_first_packets_are_not_journalled() {
        let folder = Folder::new();
        let path = folder.0.join("used-proofs");
        let proofs = ProofJournal::open(AccessKey::open(), &path).unwrap();
        for _ in 0..100 {
            let id = AccessKey::open().connection_id(unix_seconds(), random());
            assert_eq!(proofs.check_connection_id(SOURCE, &id), Ok(()));
        }
        assert_eq!(std::fs::read(&path).unwrap().len(), 0);
        let proof = ProofId { id: random(), stamped_s: unix_seconds() };
        assert_eq!(proofs.spend(Source { is_proven: true, ..SOURCE }, proof), Ok(()));
        assert_eq!(std::fs::read(&path).unwrap().len(), RECORD_LEN);
    }
}
