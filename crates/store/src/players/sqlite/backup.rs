//! Rolling backups of the database: whole copies beside it, made while it is written, each put in place in one go.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::super::storage::StorageError;
use super::mark::DatabaseId;
use super::{beside, check, commits, explain, prepare_file, schema, sync_folder};

/// Behind the name of the database: the newest, and the one before. Two, so that there is one while the other is replaced, and one
/// from before whatever went wrong lately.
pub const ENDINGS: [&str; 2] = [".backup-1", ".backup-2"];

/// A copy that is not whole yet.
const UNDER_WAY: &str = ".backup-new";

/// After so many pages it is looked whether the server ends: a few milliseconds.
const PAGES_PER_STEP: i32 = 1_024;

/// Copies the database as it is at one moment. Nobody who writes waits for it. `None`: there is nothing new since the last backup, or
/// `is_over` said that there is no time.
///
/// The copy is checked before it takes the place of another: a damaged database, or one that was emptied, spoils no backup.
pub fn make(path: &Path, is_over: &dyn Fn() -> bool) -> Result<Option<PathBuf>, StorageError> {
    let failed = |error| StorageError::Io(format!("the backup of {}: {error}", path.display()));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(path, flags).map_err(explain)?;
    source.busy_timeout(super::BUSY_TIMEOUT).map_err(explain)?;
    // What is read from here on is of one moment, whatever is written meanwhile.
    let snapshot = source.unchecked_transaction().map_err(explain)?;
    let (database, number) = commits(&snapshot)?;
    let newest = ENDINGS.map(|ending| beside(path, ending));
    if let Some((of, last)) = newest.iter().find_map(|path| look(path).ok()) {
        if of == database && last == number {
            return Ok(None);
        }
        if of == database && last > number {
            let why = format!("it has come to batch {number}, and its backup to {last}");
            return Err(StorageError::Corrupt(why));
        }
    }
    let copy = beside(path, UNDER_WAY);
    // A copy that was not finished.
    let _ = fs::remove_file(&copy);
    prepare_file(&copy)?;
    if !copy_pages(&snapshot, &copy, is_over)? {
        let _ = fs::remove_file(&copy);
        return Ok(None);
    }
    fs::File::open(&copy).and_then(|file| file.sync_all()).map_err(failed)?;
    match fs::rename(&newest[0], &newest[1]) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    fs::rename(&copy, &newest[0]).and_then(|()| sync_folder(path)).map_err(failed)?;
    let [newest, _] = newest;
    Ok(Some(newest))
}

/// Returns whether all of it was copied.
fn copy_pages(source: &Connection, copy: &Path, is_over: &dyn Fn() -> bool) -> Result<bool, StorageError> {
    let mut copy = Connection::open(copy).map_err(explain)?;
    // It is synced once, before it is put in place.
    copy.pragma_update(None, "synchronous", "OFF").map_err(explain)?;
    let backup = Backup::new(source, &mut copy).map_err(explain)?;
    loop {
        match backup.step(PAGES_PER_STEP).map_err(explain)? {
            StepResult::Done => break,
            StepResult::More if is_over() => return Ok(false),
            StepResult::More => {}
            _ => return Err(StorageError::Busy("its backup waits for another program".to_owned())),
        }
    }
    drop(backup);
    // A file by itself, without a log beside it.
    copy.pragma_update(None, "journal_mode", "DELETE").map_err(explain)?;
    check(&copy)?;
    copy.close().map_err(|(_, error)| explain(error))?;
    Ok(true)
}

/// Which database a backup is of, and how far that had come.
fn look(path: &Path) -> Result<(DatabaseId, u64), StorageError> {
    commits(&open(path)?)
}

fn open(path: &Path) -> Result<Connection, StorageError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(explain)
}

/// The newest backup that is sound.
pub struct Sound {
    pub path: PathBuf,
    pub connection: Connection,
    pub database: DatabaseId,
    pub commits: u64,
}

/// Looks for it.
pub fn newest_sound(path: &Path) -> Option<Sound> {
    ENDINGS.iter().map(|ending| beside(path, ending)).find_map(|path| {
        let connection = open(&path).ok()?;
        schema::refuse_newer(&connection).and_then(|()| check(&connection)).ok()?;
        let (database, commits) = commits(&connection).ok()?;
        Some(Sound { path, connection, database, commits })
    })
}

/// Whether there is a file that may be a backup.
pub fn is_any(path: &Path) -> bool {
    ENDINGS.iter().any(|ending| beside(path, ending).exists())
}
