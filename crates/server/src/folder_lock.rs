//! Lock file that lets only one process at a time write to a folder, and names that process to others.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The file that is locked. It stays after its process has ended; the lock does not, however the process ends.
const LOCK: &str = "lock";

/// Why a folder cannot be written to.
#[derive(Debug, thiserror::Error)]
pub enum FolderLockError {
    /// Another process holds the lock.
    #[error(
        "the folder {} is in use by {holder}: end that first, or choose another folder with --data",
        folder.display()
    )]
    Held {
        /// The folder.
        folder: PathBuf,
        /// The role and the number of the process that holds it.
        holder: String,
    },
    /// The lock cannot be made.
    #[error("cannot write to the data folder {}: {error}; choose another with --data", folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// A folder that is locked for this process until this is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks a folder, which is created if it does not exist, for a process of this role, such as `up`.
    pub fn take(folder: &Path, role: &str) -> Result<FolderLock, FolderLockError> {
        let failed = |error| FolderLockError::Io { folder: folder.to_owned(), error };
        fs::create_dir_all(folder).map_err(failed)?;
        let path = folder.join(LOCK);
        let mut file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = match holder(folder) {
                    Some((pid, role)) => format!("`sametick {role}` (process {pid})"),
                    None => "another process".to_owned(),
                };
                return Err(FolderLockError::Held { folder: folder.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let told = file.set_len(0).and_then(|()| writeln!(file, "{} {role}", std::process::id()));
        told.map_err(failed)?;
        Ok(FolderLock { _file: file })
    }
}

/// Whether another process holds the lock of a folder.
pub(crate) fn is_held(folder: &Path) -> bool {
    let file = File::open(folder.join(LOCK));
    matches!(file.map(|file| file.try_lock_shared()), Ok(Err(TryLockError::WouldBlock)))
}

/// The number of the process that locked a folder last, and its role.
pub(crate) fn holder(folder: &Path) -> Option<(u32, String)> {
    let mut text = String::new();
    File::open(folder.join(LOCK)).ok()?.read_to_string(&mut text).ok()?;
    let (pid, role) = text.trim().split_once(' ')?;
    Some((pid.parse().ok()?, role.to_owned()))
}
