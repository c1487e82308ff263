//! The folder of a host on disk: its id and life, its secret, and its stored sessions.
//!
//! ```text
//! lock            held while the host runs; its process's number and role
//! host            its id and its life, as JSON
//! host.key        its secret: it allows taking any seat
//! running         there while it runs, and after it has crashed
//! sessions/ID     a session, whole or as it was before; ID.damaged if it could not be read
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sametick_session::id::{HostId, Incarnation, SessionId};
use sametick_transport::clock::random;
use serde::{Deserialize, Serialize};

use crate::folder_lock::{self, FolderLock};
use crate::secret::kept_key;

const HOST: &str = "host";
const KEY: &str = "host.key";
const RUNNING: &str = "running";
const SESSIONS: &str = "sessions";

#[derive(Serialize, Deserialize)]
struct Who {
    id: u32,
    life: u32,
}

/// The folder of a running host.
pub(crate) struct Folder {
    root: PathBuf,
    _lock: FolderLock,
    pub id: HostId,
    pub life: Incarnation,
    pub secret: [u8; 32],
    /// Whether the host's last life ended without a clean stop.
    pub has_crashed: bool,
}

impl Folder {
    /// Begins the next life of the host in this folder, or its first.
    pub fn open(root: &Path) -> io::Result<Folder> {
        let said = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", root.display()));
        fs::create_dir_all(root.join(SESSIONS)).map_err(said)?;
        let lock = FolderLock::take(root, "host").map_err(io::Error::other)?;
        let secret = kept_key(&root.join(KEY))?;
        let last =
            fs::read(root.join(HOST)).ok().and_then(|bytes| serde_json::from_slice::<Who>(&bytes).ok());
        let Who { id, life } = last.unwrap_or_else(|| Who { id: u32::from_le_bytes(random()), life: 0 });
        let life =
            life.checked_add(1).ok_or_else(|| said(io::Error::other("this host has lived too often")))?;
        let bytes = serde_json::to_vec(&Who { id, life }).expect("numbers have a form in JSON");
        replace(&root.join(HOST), &bytes).map_err(said)?;
        let has_crashed = root.join(RUNNING).exists();
        File::create(root.join(RUNNING)).map_err(said)?;
        let (id, life) = (HostId(id), Incarnation(life));
        Ok(Folder { root: root.to_owned(), _lock: lock, id, life, secret, has_crashed })
    }

    /// The stored sessions.
    pub fn stored(&self) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
        let paths = session_files(&self.root)?;
        paths.into_iter().map(|path| fs::read(&path).map(|bytes| (path, bytes))).collect()
    }

    /// Renames a session file that cannot be read, so that it is kept for inspection and not loaded again.
    pub fn set_aside(&self, path: &Path) {
        if let Err(error) = fs::rename(path, path.with_extension("damaged")) {
            tracing::error!(file = %path.display(), %error, "a damaged file cannot be renamed");
        }
    }

    /// The file of a session.
    pub fn path_of(&self, session: SessionId) -> PathBuf {
        self.root.join(SESSIONS).join(session.to_string())
    }

    /// Marks the end of this life as clean.
    pub fn end(&self) {
        let _ = fs::remove_file(self.root.join(RUNNING));
    }
}

/// The state of a host's folder, seen from another process.
pub(crate) struct Glance {
    pub is_running: bool,
    pub has_sessions: bool,
    /// The process id of the host, if it runs.
    pub pid: Option<u32>,
}

/// Reads the state of a host's folder without opening it.
pub(crate) fn glance(root: &Path) -> Glance {
    let is_running = folder_lock::is_held(root);
    let has_sessions = session_files(root).is_ok_and(|files| !files.is_empty());
    let pid = folder_lock::holder(root).map(|(pid, _)| pid).filter(|_| is_running);
    Glance { is_running, has_sessions, pid }
}

fn session_files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(SESSIONS))? {
        let path = entry?.path();
        let is_session = |name: &str| SessionId::from_hex(name).is_some();
        if path.file_name().and_then(|name| name.to_str()).is_some_and(is_session) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Replaces a file atomically.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    // The new name is on disk only after a sync of the folder.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("sametick-folder-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn a_host_keeps_id_and_secret_and_notices_a_crash() {
        let path = folder("lives");
        let first = Folder::open(&path).unwrap();
        assert!(!first.has_crashed);
        assert!(Folder::open(&path).err().unwrap().to_string().contains("is in use by `sametick host`"));
        assert!(glance(&path).is_running);
        assert_eq!(glance(&path).pid, Some(std::process::id()));
        let (id, life, secret) = (first.id, first.life, first.secret);
        drop(first);
        assert!(!glance(&path).is_running);
        let second = Folder::open(&path).unwrap();
        assert_eq!((second.id, second.life, second.secret), (id, Incarnation(life.0 + 1), secret));
        assert!(second.has_crashed, "nobody said that it ended");
        let session = SessionId { host: id, born: life, mark: 7 };
        replace(&second.path_of(session), b"session").unwrap();
        fs::write(second.root.join(SESSIONS).join("stray.new"), b"half").unwrap();
        second.end();
        drop(second);
        assert!(glance(&path).has_sessions);
        let third = Folder::open(&path).unwrap();
        assert!(!third.has_crashed);
        assert_eq!(third.stored().unwrap(), [(third.path_of(session), b"session".to_vec())]);
        third.set_aside(&third.path_of(session));
        assert!(
            !glance(&path).has_sessions && third.stored().unwrap().is_empty(),
            "it is no session any more"
        );
        assert_eq!(fs::read(third.path_of(session).with_extension("damaged")).unwrap(), b"session");
        fs::remove_dir_all(&path).unwrap();
    }
}
