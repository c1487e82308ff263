//! The database of players in a file, by SQLite. No type of its leaves this module.

mod asking;
mod pens;
mod rescue;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::storage::{Found, Opened, Opener, Purpose, Question, Storage, StorageError, Write};

pub use rescue::SetAside;

/// How long SQLite itself waits for another program. Short, because whoever writes here tries again anyway.
const BUSY_TIMEOUT: Duration = Duration::from_millis(250);

/// There are about twenty statements; all of them stay prepared.
const STATEMENTS: usize = 48;

/// The write-ahead log is cut to this after it was copied into the database, if a long batch has made it longer.
const LOG_LIMIT_BYTES: u32 = 16 << 20;

/// How sure a write is when it is called written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It survives a loss of power.
    #[default]
    Synced,
    /// It survives the end of the process, if nothing happens to the machine. It is here to show that the tests would
    /// notice; nothing that people play on uses it.
    Unsynced,
}

/// How a database is opened.
#[derive(Clone, Debug, Default)]
pub struct SqliteOptions {
    /// Another file system than that of the machine. On one of those no file is set aside: a damaged database is an error.
    pub files: Option<OtherFiles>,
    /// How sure a write is.
    pub durability: Durability,
    /// Nobody else opens it meanwhile, not even the reader: for a file system without shared memory.
    pub exclusive: bool,
}

/// A file system that SQLite knows.
#[derive(Clone)]
pub struct OtherFiles {
    /// The name it has been registered with in SQLite.
    pub name: String,
    /// Writes once more what is in a file, if it is there, and syncs it.
    pub rewrite: Rewrite,
}

/// See [`OtherFiles::rewrite`].
pub type Rewrite = Arc<dyn Fn(&Path) -> io::Result<()> + Send + Sync>;

impl fmt::Debug for OtherFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OtherFiles").field(&self.name).finish()
    }
}

/// A database of players in a file.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    /// Opens a file. For [writing](Purpose::Writing) it is made if it is not there, checked, and brought up to date; if it
    /// is damaged it is set aside, and what can be read of it is carried over into a new one.
    pub fn open(
        path: &Path,
        options: &SqliteOptions,
        purpose: Purpose,
    ) -> Result<(Sqlite, Option<SetAside>), StorageError> {
        if purpose == Purpose::Reading {
            let connection = connect(path, options, purpose)?;
            connection.pragma_update(None, "query_only", true).map_err(explain)?;
            return Ok((Sqlite { connection }, None));
        }
        if options.files.is_none() {
            prepare_file(path)?;
        }
        match open_checked(path, options) {
            Err(StorageError::Corrupt(why)) if options.files.is_none() => {
                rescue::replace(path, why, || open_checked(path, options))
                    .map(|(connection, aside)| (Sqlite { connection }, Some(aside)))
            }
            result => result.map(|connection| (Sqlite { connection }, None)),
        }
    }

    /// Opens a file for a [`Keeper`](super::Keeper), as often as it likes.
    pub fn opener(path: &Path, options: SqliteOptions) -> Opener {
        let path = path.to_owned();
        Box::new(move |purpose| {
            let (storage, aside) = Sqlite::open(&path, &options, purpose)?;
            Ok(Opened { storage: Box::new(storage), note: aside.map(|aside| aside.to_string()) })
        })
    }

    /// Lets the file grow to so many pages (of 4 KiB) and no further, until this is called again.
    pub fn limit_pages(&mut self, pages: u32) -> Result<(), StorageError> {
        self.connection.pragma_update(None, "max_page_count", pages).map_err(explain)
    }

    /// Reads everything and says whether it is sound.
    pub fn check(&self) -> Result<(), StorageError> {
        check(&self.connection)
    }
}

impl Storage for Sqlite {
    fn write(&mut self, batch: &[Write]) -> Result<(), StorageError> {
        // Immediate: a transaction that begins by reading could not wait for another program when it comes to write.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        pens::write_all(&transaction, batch).map_err(explain)?;
        transaction.commit().map_err(explain)
    }

    fn look_up(&mut self, question: &Question) -> Result<Found, StorageError> {
        // One transaction, so that all of it was true at the same moment.
        let transaction = self.connection.transaction().map_err(explain)?;
        let found = asking::look_up(&transaction, question).map_err(explain)?;
        transaction.commit().map_err(explain)?;
        Ok(found)
    }
}

/// The folder above it, and an empty file that only its owner may read: there are names in it.
fn prepare_file(path: &Path) -> Result<(), StorageError> {
    let failed = |error: io::Error| StorageError::Io(format!("{}: {error}", path.display()));
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(failed)
}

fn open_checked(path: &Path, options: &SqliteOptions) -> Result<Connection, StorageError> {
    let mut connection = connect(path, options, Purpose::Writing)?;
    schema::refuse_newer(&connection)?;
    check(&connection)?;
    settle(&mut connection, path, options)?;
    schema::migrate(&mut connection)?;
    Ok(connection)
}

fn connect(path: &Path, options: &SqliteOptions, purpose: Purpose) -> Result<Connection, StorageError> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if purpose == Purpose::Writing {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let connection = match &options.files {
        Some(files) => Connection::open_with_flags_and_vfs(path, flags, files.name.as_str()),
        None => Connection::open_with_flags(path, flags),
    };
    let connection = connection.map_err(explain)?;
    set_up(&connection, options).map_err(explain)?;
    Ok(connection)
}

fn set_up(connection: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    copy_on_close(connection, false)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    if options.exclusive {
        set(connection, "locking_mode", "EXCLUSIVE")?;
    }
    set(connection, "journal_mode", "WAL")?;
    let synchronous = match options.durability {
        Durability::Synced => "FULL",
        Durability::Unsynced => "OFF",
    };
    set(connection, "synchronous", synchronous)?;
    set(connection, "foreign_keys", "ON")?;
    set(connection, "trusted_schema", "OFF")?;
    set(connection, "cell_size_check", "ON")?;
    set(connection, "journal_size_limit", &LOG_LIMIT_BYTES.to_string())
}

/// Sets a pragma, whether it answers or not.
fn set(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    connection.pragma_update(None, name, value)
}

fn check(connection: &Connection) -> Result<(), StorageError> {
    let first = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match first.map_err(explain)?.as_str() {
        "ok" => Ok(()),
        complaint => Err(StorageError::Corrupt(complaint.to_owned())),
    }
}

/// Makes sure of the write-ahead log, copies it into the database and empties it.
///
/// A sync that failed, here or in a process before this one, may have left pages of the log in memory that the system takes
/// for stored, so that no later sync would store them. What stands behind them would be lost with them, and what is copied from
/// them would be half of a batch if the power failed then. So all of the log is written again before anything is done with
/// it, and nothing is appended to it.
fn settle(connection: &mut Connection, path: &Path, options: &SqliteOptions) -> Result<(), StorageError> {
    // Nobody else appends to it or empties it meanwhile.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
    let log = beside(path, "-wal");
    let rewritten = match &options.files {
        Some(files) => (files.rewrite)(&log),
        None => rewrite(&log),
    };
    rewritten.map_err(|error| StorageError::Io(format!("{}: {error}", log.display())))?;
    transaction.rollback().map_err(explain)?;
    let is_busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    if is_busy.map_err(explain)? != 0 {
        return Err(StorageError::Busy("its log is being read".to_owned()));
    }
    copy_on_close(connection, true).map_err(explain)
}

/// Whether the log is copied into the database when it is closed.
fn copy_on_close(connection: &Connection, copies: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !copies).map(drop)
}

fn rewrite(path: &Path) -> io::Result<()> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        bytes => bytes?,
    };
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, &bytes)?;
    file.sync_all()
}

/// What an error of SQLite means for whoever has to go on. It names no value of a row.
#[allow(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
fn explain(error: rusqlite::Error) -> StorageError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StorageError::Busy(text),
        Some(ErrorCode::DiskFull) => StorageError::Full(text),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => StorageError::Io(text),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StorageError::Corrupt(text),
        _ => StorageError::Other(text),
    }
}

/// A file beside the database that SQLite keeps, such as its log.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
