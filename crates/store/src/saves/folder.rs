//! An object store in a folder: several processes may use it at once, and any of them may be killed at any time.
//!
//! An object is written to a temporary file in its own folder, synced, and renamed under a lock that is held only while
//! the old object is compared and replaced. The system releases a lock when its holder dies. The temporary file is
//! locked as well while it is written: an unlocked one is left over from a crash, and the next writer in its folder
//! removes it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use sametick_sim::{StateHash, Tick};

use crate::disk::sync_folder;

use super::object_store::{
    AppendError, Condition, Content, Listed, MAX_OBJECT_BYTES, ObjectStore, Pending, PutError, StoreError,
    Tag, Version,
};
use crate::save::{MAX_PREFIX_BYTES, SaveInfo};

/// Held while something below the root is replaced or deleted.
const LOCK: &str = ".lock";

/// The suffix of temporary files. They begin with a dot: no object does.
const UNFINISHED: &str = ".unfinished";

/// How much of a file is read at once.
const STRETCH: usize = 64 * 1024;

/// An empty range of a file.
const NOTHING: Range<u64> = 0..0;

/// An object store in a folder of the operating system. It blocks on the disk and is then ready at once: see
/// [`at_once`](super::at_once).
#[derive(Debug)]
pub struct FolderStore {
    root: PathBuf,
    /// So that two threads of a process use different temporary files.
    written: AtomicU64,
}

/// Describes a failed file operation.
fn trouble(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let what = format!("cannot {doing} {}", path.display());
    move |error| StoreError(format!("{what}: {error}"))
}

impl FolderStore {
    /// Opens the store in this folder, which is created if missing.
    pub fn open(root: impl Into<PathBuf>) -> Result<FolderStore, StoreError> {
        let root = root.into();
        fs::create_dir_all(&root).map_err(trouble("make the folder", &root))?;
        Ok(FolderStore { root, written: AtomicU64::new(0) })
    }

    /// The file of an object.
    pub fn path(&self, key: &str) -> Result<PathBuf, StoreError> {
        let plain =
            |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', ':', '\0']);
        if key.split('/').all(plain) {
            Ok(self.root.join(key))
        } else {
            Err(StoreError(format!("{key:?} is no key of an object")))
        }
    }

    fn lock(&self) -> Result<File, StoreError> {
        let path = self.root.join(LOCK);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(trouble("open", &path))?;
        file.lock().map_err(trouble("lock", &path))?;
        Ok(file)
    }

    fn put_now(&self, key: &str, bytes: &[u8], condition: &Condition) -> Result<Version, PutError> {
        let path = self.path(key).map_err(PutError::Failing)?;
        let unfinished = self.write_unfinished(&path, bytes).map_err(PutError::Failing)?;
        let put = self.replace(&path, &unfinished, condition);
        if put.is_err() {
            // After a rename there is nothing to remove.
            let _ = fs::remove_file(&unfinished.path);
        }
        put.map(|()| version_of(bytes))
    }

    fn write_unfinished(&self, path: &Path, bytes: &[u8]) -> Result<Unfinished, StoreError> {
        let mut unfinished = self.begin_unfinished(path)?;
        let written = unfinished.file.write_all(bytes).and_then(|()| unfinished.file.sync_all());
        written.map_err(|error| {
            let _ = fs::remove_file(&unfinished.path);
            trouble("write", path)(error)
        })?;
        Ok(unfinished)
    }

    /// Creates an empty temporary file beside `path`, locked before another process can take it for a left-over.
    fn begin_unfinished(&self, path: &Path) -> Result<Unfinished, StoreError> {
        let lock = self.lock()?;
        let folder = path.parent().unwrap_or(&self.root);
        make_folders(&self.root, folder).map_err(trouble("make the folder", folder))?;
        clear_left_overs(folder).map_err(trouble("clear", folder))?;
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let path = folder.join(format!(".{name}.{}-{number}{UNFINISHED}", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(trouble("make", &path))?;
        file.try_lock().map_err(|error| trouble("lock", &path)(error.into()))?;
        drop(lock);
        Ok(Unfinished { path, file })
    }

    fn replace(&self, path: &Path, unfinished: &Unfinished, condition: &Condition) -> Result<(), PutError> {
        let lock = self.lock().map_err(PutError::Failing)?;
        let there = read_part(path, &NOTHING).map_err(PutError::Failing)?;
        let holds = match condition {
            Condition::New => there.is_none(),
            Condition::Replaces(version) => there.is_some_and(|there| there.version == *version),
        };
        if !holds {
            return Err(PutError::Conflict);
        }
        let renamed = fs::rename(&unfinished.path, path).map_err(trouble("replace", path));
        renamed.map_err(PutError::Failing)?;
        let folder = path.parent().unwrap_or(&self.root);
        // The new name exists, and may be gone after a power failure.
        sync_folder(folder).map_err(trouble("sync", folder)).map_err(PutError::MaybeDone)?;
        drop(lock);
        Ok(())
    }

    fn append_now(&self, key: &str, at: u64, bytes: &[u8]) -> Result<u64, AppendError> {
        let path = self.path(key).map_err(AppendError::Failing)?;
        let failed = |doing| {
            let trouble = trouble(doing, &path);
            |error| AppendError::Failing(trouble(error))
        };
        let _lock = self.lock().map_err(AppendError::Failing)?;
        let folder = path.parent().unwrap_or(&self.root);
        make_folders(&self.root, folder).map_err(failed("make the folder of"))?;
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(at == 0).open(&path);
        let mut file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(AppendError::Conflict { bytes: 0 });
            }
            file => file.map_err(failed("open"))?,
        };
        let len = file.metadata().map_err(failed("look at"))?.len();
        let Some(missing) = missing_of(&mut file, len, at, bytes).map_err(failed("read"))? else {
            return Err(AppendError::Conflict { bytes: len });
        };
        let appended = file.write_all(missing).and_then(|()| file.sync_all());
        let appended = appended.and_then(|()| if at == 0 { sync_folder(folder) } else { Ok(()) });
        if appended.is_err() {
            // The next try compares the part that was written. A full disk is better off without it.
            let _ = file.set_len(len);
        }
        appended.map_err(failed("append to"))?;
        Ok(at + bytes.len() as u64)
    }

    fn list_now(&self, prefix: &str) -> Result<Vec<Listed>, StoreError> {
        // Everything below the last folder in the prefix.
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let folder = if folder.is_empty() { self.root.clone() } else { self.path(folder)? };
        let mut all = Vec::new();
        list_folder(&self.root, &folder, &mut all).map_err(trouble("list", &folder))?;
        all.retain(|listed| listed.key.starts_with(prefix));
        Ok(all)
    }

    fn delete_now(&self, key: &str) -> Result<(), StoreError> {
        let path = self.path(key)?;
        let _lock = self.lock()?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed.map_err(trouble("delete", &path))?,
        }
        let mut folder = path.parent().unwrap_or(&self.root);
        sync_folder(folder).map_err(trouble("sync", folder))?;
        let _ = clear_left_overs(folder);
        // Folders that are not empty stay.
        while folder != self.root && fs::remove_dir(folder).is_ok() {
            folder = folder.parent().unwrap_or(&self.root);
        }
        Ok(())
    }
}

/// A temporary file, and the lock that shows that it is being written.
struct Unfinished {
    path: PathBuf,
    file: File,
}

/// The version of an object that is read in stretches: a hash of their hashes.
struct Versioning {
    len: u64,
    hash: StateHash,
}

impl Versioning {
    const fn new() -> Versioning {
        Versioning { len: 0, hash: StateHash(0) }
    }

    /// Takes the next stretch: [`STRETCH`] bytes, or the last.
    fn take(&mut self, stretch: &[u8]) {
        self.len += stretch.len() as u64;
        let both = [self.hash.0, StateHash::of_bytes(stretch).0].map(u64::to_le_bytes);
        self.hash = StateHash::of_bytes(both.as_flattened());
    }

    fn version(&self) -> Version {
        Version(format!("{:x}-{}", self.len, self.hash))
    }
}

fn version_of(bytes: &[u8]) -> Version {
    let mut versioning = Versioning::new();
    bytes.chunks(STRETCH).for_each(|stretch| versioning.take(stretch));
    versioning.version()
}

/// Reads a part of a file, and the version of the whole; `None` if there is no file.
fn read_part(path: &Path, range: &Range<u64>) -> Result<Option<Content>, StoreError> {
    match File::open(path).and_then(|file| read_stretches(file, range)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(trouble("read", path)),
    }
}

fn read_stretches(mut file: File, range: &Range<u64>) -> io::Result<Content> {
    let mut versioning = Versioning::new();
    let (mut bytes, mut stretch) = (Vec::new(), Vec::with_capacity(STRETCH));
    loop {
        let at = versioning.len;
        stretch.clear();
        Read::by_ref(&mut file).take(STRETCH as u64).read_to_end(&mut stretch)?;
        if stretch.is_empty() {
            return Ok(Content { bytes, version: versioning.version() });
        }
        versioning.take(&stretch);
        let within = |edge: u64| edge.saturating_sub(at).min(stretch.len() as u64) as usize;
        let (start, end) = (within(range.start), within(range.end));
        bytes.extend_from_slice(&stretch[start..end.max(start)]);
        if bytes.len() as u64 > MAX_OBJECT_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large to be read whole"));
        }
    }
}

/// Creates a folder and its parents, each durable before its content.
fn make_folders(root: &Path, folder: &Path) -> io::Result<()> {
    if folder == root || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(root);
    make_folders(root, above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    sync_folder(above)
}

/// Removes the temporary files of processes that were killed while writing. The caller holds the lock of the store.
fn clear_left_overs(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !(name.starts_with('.') && name.ends_with(UNFINISHED)) {
            continue;
        }
        // A live writer holds the lock of the file, or has just renamed it.
        match File::open(entry.path()).map(|file| file.try_lock()) {
            Ok(Ok(())) => fs::remove_file(entry.path())?,
            Ok(Err(TryLockError::WouldBlock)) => {}
            Ok(Err(TryLockError::Error(error))) => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The part of `bytes` still to be appended to a file of `len` bytes, if they begin at `at`; `None` if the file differs
/// there.
fn missing_of<'a>(file: &mut File, len: u64, at: u64, bytes: &'a [u8]) -> io::Result<Option<&'a [u8]>> {
    let Some(there) = len.checked_sub(at).and_then(|there| usize::try_from(there).ok()) else {
        return Ok(None);
    };
    let Some((done, missing)) = bytes.split_at_checked(there) else { return Ok(None) };
    let mut found = vec![0; there];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut found)?;
    Ok((found == done).then_some(missing))
}

fn list_folder(root: &Path, folder: &Path, all: &mut Vec<Listed>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let about = match entry.metadata() {
            // Another process was quicker.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            about => about?,
        };
        if hidden {
            continue;
        }
        if about.is_dir() {
            list_folder(root, &path, all)?;
        } else if let Some(key) = key_of(root, &path) {
            let since = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            all.push(Listed { key, bytes: about.len(), modified_unix_ms: since.as_millis() as u64 });
        }
    }
    Ok(())
}

fn key_of(root: &Path, path: &Path) -> Option<String> {
    let parts = path.strip_prefix(root).ok()?.iter().map(|part| part.to_str());
    parts.collect::<Option<Vec<&str>>>().map(|parts| parts.join("/"))
}

fn done<'a, T: Send + 'a>(answer: T) -> Pending<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl ObjectStore for FolderStore {
    fn head<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Tag>, StoreError>> {
        let prefix = 0..MAX_PREFIX_BYTES as u64;
        let found = self.path(key).and_then(|path| read_part(&path, &prefix));
        let tag = |Content { bytes, version }| {
            let tick = SaveInfo::from_prefix(&bytes).ok().map(|info| info.tick);
            Tag { version, tick }
        };
        done(found.map(|found| found.map(tag)))
    }

    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Content>, StoreError>> {
        self.get_range(key, 0..u64::MAX)
    }

    fn get_range<'a>(
        &'a self,
        key: &'a str,
        range: Range<u64>,
    ) -> Pending<'a, Result<Option<Content>, StoreError>> {
        done(self.path(key).and_then(|path| read_part(&path, &range)))
    }

    /// The tick is in the object itself: see [`SaveInfo`].
    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: &'a [u8],
        condition: Condition,
        _tick: Option<Tick>,
    ) -> Pending<'a, Result<Version, PutError>> {
        done(self.put_now(key, bytes, &condition))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Pending<'a, Result<Vec<Listed>, StoreError>> {
        done(self.list_now(prefix))
    }

    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, Result<(), StoreError>> {
        done(self.delete_now(key))
    }

    fn can_append(&self) -> bool {
        true
    }

    fn append<'a>(&'a self, key: &'a str, at: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, AppendError>> {
        done(self.append_now(key, at, bytes))
    }
}
