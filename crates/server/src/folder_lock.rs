//! One process at a time writes to a folder: it holds a lock there, which says who it is to others.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The file that is locked. It stays when its process has ended; the lock does not, however the process ends.
const LOCK: &str = "lock";

/// Why a folder cannot be written to.
#[derive(Debug, thiserror::Error)]
pub enum FolderLockError {
    /// Another process does.
    #[error(
        "the folder {} is in use by {holder}: end that first, or choose another folder with --data",
        folder.display()
    )]
    Held {
        /// Which.
        folder: PathBuf,
        /// Who has it, with the number of the process.
        holder: String,
    },
    /// The lock cannot be made.
    #[error("cannot write to the data folder {}: {error}; choose another with --data", folder.display())]
    Io {
        /// Which.
        folder: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// A folder that nobody else writes to, for as long as this lives.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes a folder, which is made if it is not there, for a process of this role, such as `up`.
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

/// Whether somebody holds a folder, as seen from outside.
pub(crate) fn is_held(folder: &Path) -> bool {
    let file = File::open(folder.join(LOCK));
    matches!(file.map(|file| file.try_lock_shared()), Ok(Err(TryLockError::WouldBlock)))
}

/// The number of the process that took a folder last, and its role.
pub(crate) fn holder(folder: &Path) -> Option<(u32, String)> {
    let mut text = String::new();
    File::open(folder.join(LOCK)).ok()?.read_to_string(&mut text).ok()?;
    let (pid, role) = text.trim().split_once(' ')?;
    Some((pid.parse().ok()?, role.to_owned()))
}
