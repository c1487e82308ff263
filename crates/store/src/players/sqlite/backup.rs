//! Rolling backups: whole copies beside the database, made while it is in use, each renamed into place.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::super::storage::StorageError;
use super::mark::DatabaseId;
use super::{beside, check, commits, explain, prepare_file, schema, sync_folder};

/// Suffixes of the newest backup and the one before. Two, so that one exists while the other is replaced, and one
/// predates any recent fault.
pub const ENDINGS: [&str; 2] = [".backup-1", ".backup-2"];

/// Suffix of an unfinished copy.
const UNDER_WAY: &str = ".backup-new";

/// How many pages are copied between checks whether the server ends: a few milliseconds.
const PAGES_PER_STEP: i32 = 1_024;

/// Copies the database as of one moment. Writers do not wait for it. `None`: nothing is new since the last backup, or
/// `is_over` asked to stop.
///
/// The copy is checked before it replaces another: a damaged or emptied database spoils no backup.
pub fn make(path: &Path, is_over: &dyn Fn() -> bool) -> Result<Option<PathBuf>, StorageError> {
    let failed = |error| StorageError::Io(format!("the backup of {}: {error}", path.display()));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(path, flags).map_err(explain)?;
    source.busy_timeout(super::BUSY_TIMEOUT).map_err(explain)?;
    // Everything read from here on is of one moment, whatever is written meanwhile.
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
    // Removes an unfinished copy.
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

/// Copies all pages; returns false if `is_over` asked to stop.
fn copy_pages(source: &Connection, copy: &Path, is_over: &dyn Fn() -> bool) -> Result<bool, StorageError> {
    let mut copy = Connection::open(copy).map_err(explain)?;
    // The copy is synced once, before it is renamed into place.
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
    // Makes the copy a single file, without a log beside it.
    copy.pragma_update(None, "journal_mode", "DELETE").map_err(explain)?;
    check(&copy)?;
    copy.close().map_err(|(_, error)| explain(error))?;
    Ok(true)
}

/// The id and the batch count of the database that a backup is of.
fn look(path: &Path) -> Result<(DatabaseId, u64), StorageError> {
    commits(&open(path)?)
}

fn open(path: &Path) -> Result<Connection, StorageError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(explain)
}

/// A sound backup.
pub struct Sound {
    pub path: PathBuf,
    pub connection: Connection,
    pub database: DatabaseId,
    pub commits: u64,
}

/// Finds the newest sound backup.
pub fn newest_sound(path: &Path) -> Option<Sound> {
    ENDINGS.iter().map(|ending| beside(path, ending)).find_map(|path| {
        let connection = open(&path).ok()?;
        schema::refuse_newer(&connection).and_then(|()| check(&connection)).ok()?;
        let (database, commits) = commits(&connection).ok()?;
        Some(Sound { path, connection, database, commits })
    })
}

/// Whether a file exists that may be a backup.
pub fn is_any(path: &Path) -> bool {
    ENDINGS.iter().any(|ending| beside(path, ending).exists())
}
