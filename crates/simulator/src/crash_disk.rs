//! A simulated disk for SQLite: unsynced data may survive a power failure completely, partly or not at all.
//!
//! It is a file system of SQLite's, so the database that runs on it is the real one. It has no shared memory between
//! connections; a database on it is opened by one connection, with `exclusive`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sametick_sim::Rng;
use sqlite_vfs::{DatabaseHandle, LockKind, OpenAccess, OpenKind, OpenOptions, Vfs, WalDisabled};

/// The unit that a disk writes atomically.
const SECTOR_BYTES: usize = 512;

/// A disk, registered with SQLite under a name.
///
/// SQLite keeps a registration for good: create one disk, and [`wipe`](CrashDisk::wipe) it.
#[derive(Clone)]
pub struct CrashDisk(Arc<Mutex<Files>>);

#[derive(Default)]
struct Files {
    files: BTreeMap<String, File>,
    /// Deleted files whose folder was not synced since: they may reappear after a power failure.
    ghosts: BTreeMap<String, Vec<u8>>,
    operations: u64,
    /// The number of the operation before which the power fails.
    fails_at: Option<u64>,
    failing_syncs: u32,
    stays_seen: bool,
    syncs: u64,
}

/// A file: its visible content, its content on the disk, and the changes in between.
#[derive(Clone, Default)]
struct File {
    seen: Vec<u8>,
    stored: Vec<u8>,
    /// Changes since the last good sync, in order.
    unsynced: Vec<Change>,
    /// Whether the folder was synced since the file was created: its name is on the disk.
    is_named: bool,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize(usize),
}

impl CrashDisk {
    /// An empty disk, registered with SQLite by this name.
    pub fn register(name: &str) -> CrashDisk {
        let crash_disk = CrashDisk(Arc::default());
        sqlite_vfs::register(name, crash_disk.clone(), false).expect("no other disk has this name");
        crash_disk
    }

    /// Removes all files and faults.
    pub fn wipe(&self) {
        *self.files() = Files::default();
    }

    /// Makes the power fail after so many more operations; none works from then on.
    pub fn fail_after(&self, operations: u64) {
        let mut files = self.files();
        files.fails_at = Some(files.operations + operations);
    }

    /// Makes the next syncs fail and never store their data. As on Linux it counts as stored; with `stays_seen` it
    /// remains visible while the power is on.
    pub fn fail_syncs(&self, count: u32, stays_seen: bool) {
        let mut files = self.files();
        (files.failing_syncs, files.stays_seen) = (count, stays_seen);
    }

    /// Writes the visible content of a file once more, and syncs it.
    pub fn rewrite(&self, name: &str) -> io::Result<()> {
        let mut files = self.operate()?;
        let Ok(file) = files.file(name) else { return Ok(()) };
        let bytes = file.seen.clone();
        file.change(Change::Write { offset: 0, bytes });
        drop(files);
        self.sync(name, OpenKind::MainDb)
    }

    /// The number of operations.
    pub fn operations(&self) -> u64 {
        self.files().operations
    }

    /// The number of syncs.
    pub fn syncs(&self) -> u64 {
        self.files().syncs
    }

    /// Fails the power, unless it failed already, and restores it: of every unsynced change some sectors survive.
    pub fn cut_power(&self, rng: &mut Rng) {
        let mut files = self.files();
        files.fails_at = None;
        files.failing_syncs = 0;
        let mut left = BTreeMap::new();
        for (name, file) in std::mem::take(&mut files.files) {
            if file.is_named || rng.chance(1, 2) {
                left.insert(name, File::of(file.left_over(rng)));
            }
        }
        for (name, stored) in std::mem::take(&mut files.ghosts) {
            if rng.chance(1, 2) {
                left.entry(name).or_insert_with(|| File::of(stored));
            }
        }
        files.files = left;
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        // A test that panicked with the lock is over.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sync(&self, name: &str, kind: OpenKind) -> io::Result<()> {
        let mut files = self.operate()?;
        if files.failing_syncs > 0 {
            files.failing_syncs -= 1;
            let stays_seen = files.stays_seen;
            files.file(name)?.fail_sync(stays_seen);
            return Err(io::Error::other("the disk did not take it"));
        }
        files.syncs += 1;
        let file = files.file(name)?;
        file.sync();
        // SQLite's own file system syncs the folder with the first sync of a journal or log that it has created.
        if !file.is_named && matches!(kind, OpenKind::MainJournal | OpenKind::Wal) {
            files.sync_folder();
        }
        Ok(())
    }

    /// Counts an operation, and locks the files if there is still power.
    fn operate(&self) -> io::Result<MutexGuard<'_, Files>> {
        let mut files = self.files();
        if files.fails_at.is_some_and(|at| files.operations >= at) {
            return Err(io::Error::other("the power is off"));
        }
        files.operations += 1;
        Ok(files)
    }
}

impl Files {
    fn sync_folder(&mut self) {
        self.ghosts.clear();
        self.files.values_mut().for_each(|file| file.is_named = true);
    }

    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        self.files.get_mut(name).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl File {
    /// A file that is completely stored.
    fn of(stored: Vec<u8>) -> File {
        File { seen: stored.clone(), stored, unsynced: Vec::new(), is_named: true }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.unsynced.push(change);
    }

    fn sync(&mut self) {
        self.unsynced.drain(..).for_each(|change| change.apply(&mut self.stored));
    }

    /// The data to be stored counts as stored from now on.
    fn fail_sync(&mut self, stays_seen: bool) {
        self.unsynced.clear();
        if !stays_seen {
            self.seen.clone_from(&self.stored);
        }
    }

    /// The content of the disk after a power failure now.
    fn left_over(self, rng: &mut Rng) -> Vec<u8> {
        let mut left = self.stored;
        // Many power failures keep everything, or nothing: most bugs need one of these.
        let kept_of_16 = [0, 16, rng.below(17)][rng.below(3) as usize];
        for change in self.unsynced {
            match change {
                Change::Write { offset, bytes } => {
                    for (at, piece) in sectors(offset, &bytes) {
                        if rng.below(16) < kept_of_16 {
                            Change::Write { offset: at, bytes: piece.to_vec() }.apply(&mut left);
                        }
                    }
                }
                resize if rng.below(16) < kept_of_16 => resize.apply(&mut left),
                Change::Resize(_) => {}
            }
        }
        left
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Resize(len) => bytes.resize(*len, 0),
            Change::Write { offset, bytes: written } => {
                let end = offset + written.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(written);
            }
        }
    }
}

/// The parts of a write that are stored or lost independently.
fn sectors(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let first = (SECTOR_BYTES - offset % SECTOR_BYTES).min(bytes.len());
    let (head, rest) = bytes.split_at(first);
    let starts = std::iter::once(offset).chain((offset + first..).step_by(SECTOR_BYTES));
    starts.zip(std::iter::once(head).chain(rest.chunks(SECTOR_BYTES)))
}

/// An open file.
pub struct Handle {
    crash_disk: CrashDisk,
    name: String,
    kind: OpenKind,
    lock: LockKind,
}

impl Vfs for CrashDisk {
    type Handle = Handle;

    fn open(&self, name: &str, options: OpenOptions) -> io::Result<Handle> {
        let mut files = self.operate()?;
        let exists = files.files.contains_key(name);
        match options.access {
            OpenAccess::Read | OpenAccess::Write if !exists => return Err(io::ErrorKind::NotFound.into()),
            OpenAccess::CreateNew if exists => return Err(io::ErrorKind::AlreadyExists.into()),
            _ => drop(files.files.entry(name.to_owned()).or_default()),
        }
        Ok(Handle {
            crash_disk: self.clone(),
            name: name.to_owned(),
            kind: options.kind,
            lock: LockKind::None,
        })
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let mut files = self.operate()?;
        let file = files.files.remove(name).ok_or(io::ErrorKind::NotFound)?;
        if file.is_named {
            files.ghosts.insert(name.to_owned(), file.stored);
        }
        Ok(())
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.operate()?.files.contains_key(name))
    }

    fn temporary_name(&self) -> String {
        format!("temporary-{}", self.operations())
    }

    fn random(&self, buffer: &mut [i8]) {
        // The same in every run: it is used only for the salts of logs.
        let mut rng = Rng::new(self.operations());
        buffer.fill_with(|| rng.below(256) as u8 as i8);
    }

    fn sleep(&self, duration: Duration) -> Duration {
        duration
    }

    fn full_pathname<'a>(&self, name: &'a str) -> io::Result<Cow<'a, str>> {
        Ok(name.into())
    }
}

impl DatabaseHandle for Handle {
    type WalIndex = WalDisabled;

    fn size(&self) -> io::Result<u64> {
        Ok(self.crash_disk.operate()?.file(&self.name)?.seen.len() as u64)
    }

    fn read_exact_at(&mut self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let mut files = self.crash_disk.operate()?;
        let seen = &files.file(&self.name)?.seen;
        let rest = usize::try_from(offset).ok().and_then(|at| seen.get(at..)).unwrap_or(&[]);
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        // SQLite expects zeros beyond the end.
        out[count..].fill(0);
        if count < out.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut files = self.crash_disk.operate()?;
        files.file(&self.name)?.change(Change::Write { offset, bytes: bytes.to_vec() });
        Ok(())
    }

    fn sync(&mut self, _data_only: bool) -> io::Result<()> {
        self.crash_disk.sync(&self.name, self.kind)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.crash_disk.operate()?.file(&self.name)?.change(Change::Resize(len));
        Ok(())
    }

    fn lock(&mut self, lock: LockKind) -> io::Result<bool> {
        self.lock = lock;
        Ok(true)
    }

    fn reserved(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    fn current_lock(&self) -> io::Result<LockKind> {
        Ok(self.lock)
    }

    fn wal_index(&self, _readonly: bool) -> io::Result<WalDisabled> {
        Ok(WalDisabled)
    }
}
