//! The players database in a SQLite file. No SQLite type leaves this module.

pub(super) mod backup;
mod image;
mod mark;
mod pages;
mod queries;
mod rescue;
mod schema;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, fs, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::storage::{Found, Opened, Opener, Purpose, Question, Storage, StorageError, Write};

use mark::{DatabaseId, Mark, MarkFile};
pub use rescue::{Recovery, TableRecovery};
use schema::TABLES;

/// How long SQLite itself waits for another program. Short, because the callers retry anyway.
const BUSY_TIMEOUT: Duration = Duration::from_millis(250);

/// There are about twenty statements; all of them stay prepared.
const STATEMENTS: usize = 48;

/// The write-ahead log is cut to this size after a checkpoint, if a long batch has made it longer.
const LOG_LIMIT_BYTES: u32 = 16 << 20;

/// How durable a write is when it counts as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power failure.
    #[default]
    Synced,
    /// It survives the end of the process, if the machine keeps running. Only for tests that check that they notice the
    /// difference; no server uses it.
    Unsynced,
}

/// How a database is opened.
#[derive(Clone, Debug, Default)]
pub struct SqliteOptions {
    /// A file system other than the machine's own. With one, no file is set aside: a damaged database is an error.
    pub files: Option<OtherFiles>,
    /// How durable a write is.
    pub durability: Durability,
    /// Opens the database exclusively, even without the reader: for a file system without shared memory.
    pub exclusive: bool,
}

/// A file system registered with SQLite.
#[derive(Clone)]
pub struct OtherFiles {
    /// Its registered name.
    pub name: String,
    /// Writes the content of a file once more, if the file exists, and syncs it.
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
    /// The mark file beside the database that records its progress; only for a file of the machine that is written.
    mark: Option<MarkFile>,
}

impl Sqlite {
    /// Opens a file. For [writing](Purpose::Writing) it is created if missing, checked, and migrated. If it is damaged,
    /// gone, or older than its mark, it is set aside, and what can be rescued from it and its backup is put into a new
    /// one.
    pub fn open(
        path: &Path,
        options: &SqliteOptions,
        purpose: Purpose,
    ) -> Result<(Sqlite, Option<Recovery>), StorageError> {
        if purpose == Purpose::Reading {
            let connection = connect(path, options, purpose)?;
            connection.pragma_update(None, "query_only", true).map_err(explain)?;
            return Ok((Sqlite { connection, mark: None }, None));
        }
        if options.files.is_some() {
            return open_checked(path, options, None)
                .map(|connection| (Sqlite { connection, mark: None }, None));
        }
        let mark = Mark::read(path);
        let opened = match missing(path, mark.as_ref()) {
            Some(why) => Err(StorageError::Corrupt(why)),
            None => prepare_file(path).and_then(|()| open_checked(path, options, mark.as_ref())),
        };
        let (connection, recovery) = match opened {
            Err(StorageError::Corrupt(why)) => {
                let recovery = rescue::recover(path, why, mark.as_ref())?;
                (open_checked(path, options, None)?, Some(recovery))
            }
            opened => (opened?, None),
        };
        let mut sqlite = Sqlite { connection, mark: None };
        sqlite.begin_marking(path, options)?;
        Ok((sqlite, recovery))
    }

    /// Starts to record the database's progress in its mark file.
    fn begin_marking(&mut self, path: &Path, options: &SqliteOptions) -> Result<(), StorageError> {
        if options.durability != Durability::Synced {
            return Ok(());
        }
        count_rows(&self.connection).map_err(explain)?;
        let failed = |error| StorageError::Io(format!("{}{}: {error}", path.display(), mark::ENDING));
        self.mark = Some(MarkFile::open(path).map_err(failed)?);
        let (database, number) = commits(&self.connection)?;
        self.note(database, number)
    }

    fn note(&mut self, database: DatabaseId, number: u64) -> Result<(), StorageError> {
        if let Some(mark) = &mut self.mark {
            mark.write(database, number, counted_rows(&self.connection).map_err(explain)?);
        }
        Ok(())
    }

    /// An opener of the file for a [`PlayerWriter`](super::PlayerWriter), which may call it repeatedly.
    pub fn opener(path: &Path, options: SqliteOptions) -> Opener {
        let path = path.to_owned();
        Box::new(move |purpose| {
            let (storage, recovery) = Sqlite::open(&path, &options, purpose)?;
            Ok(Opened { storage: Box::new(storage), note: recovery.map(|recovery| recovery.to_string()) })
        })
    }

    /// Limits the file to so many pages (of 4 KiB), until this is called again.
    pub fn limit_pages(&mut self, pages: u32) -> Result<(), StorageError> {
        self.connection.pragma_update(None, "max_page_count", pages).map_err(explain)
    }

    /// Reads everything and checks that it is sound.
    pub fn check(&self) -> Result<(), StorageError> {
        check(&self.connection)
    }
}

impl Storage for Sqlite {
    fn write(&mut self, batch: &[Write]) -> Result<(), StorageError> {
        // Immediate: a transaction that begins by reading could not wait for another program when it comes to write.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        writes::write_all(&transaction, batch).map_err(explain)?;
        let (database, number) = count_commit(&transaction).map_err(explain)?;
        transaction.commit().map_err(explain)?;
        // Only after the commit: the mark must not claim more than the file has.
        self.note(database, number)
    }

    fn look_up(&mut self, question: &Question) -> Result<Found, StorageError> {
        // One transaction, so that all rows are of the same moment.
        let transaction = self.connection.transaction().map_err(explain)?;
        let found = queries::look_up(&transaction, question).map_err(explain)?;
        transaction.commit().map_err(explain)?;
        Ok(found)
    }
}

/// Creates the folder, and an empty file that only its owner may read: it contains names.
fn prepare_file(path: &Path) -> Result<(), StorageError> {
    let failed = |error: io::Error| StorageError::Io(format!("{}: {error}", path.display()));
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(failed)
}

fn open_checked(
    path: &Path,
    options: &SqliteOptions,
    expected: Option<&Mark>,
) -> Result<Connection, StorageError> {
    let mut connection = connect(path, options, Purpose::Writing)?;
    schema::refuse_newer(&connection)?;
    check(&connection)?;
    // Before the log is touched: unreadable parts of it would be gone.
    expected.map_or(Ok(()), |mark| compare(&connection, mark))?;
    settle(&mut connection, path, options)?;
    schema::migrate(&mut connection)?;
    Ok(connection)
}

/// Checks that a database is at least as new as its mark. Another database in its place is accepted as it is.
fn compare(connection: &Connection, mark: &Mark) -> Result<(), StorageError> {
    match commits(connection) {
        // A database of an older version, or a new one.
        Err(StorageError::Other(_)) if mark.commits == 0 => Ok(()),
        Err(StorageError::Other(_)) => Err(StorageError::Corrupt(lost(mark, 0))),
        Ok((database, number)) if database == mark.database && number < mark.commits => {
            Err(StorageError::Corrupt(lost(mark, number)))
        }
        compared => compared.map(drop),
    }
}

fn lost(mark: &Mark, number: u64) -> String {
    let lost = mark.commits - number;
    format!("the last {lost} of {} batches that were written are not in it or its log", mark.commits)
}

/// What is wrong with a file that is missing or empty; `None` if there is no sign that it ever held data.
fn missing(path: &Path, mark: Option<&Mark>) -> Option<String> {
    let length = |path: &Path| fs::metadata(path).map(|data| data.len());
    let what = match length(path) {
        Ok(0) => "the file is empty",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "the file is gone",
        _ => return None,
    };
    // SQLite makes the file before its log, and would delete a log without one.
    let has_log = length(&beside(path, "-wal")).is_ok_and(|bytes| bytes > 0);
    let was_written = mark.is_some_and(|mark| mark.commits > 0);
    (has_log || was_written || backup::is_any(path)).then(|| what.to_owned())
}

/// The id of this database, and the number of batches written to it.
fn commits(connection: &Connection) -> Result<(DatabaseId, u64), StorageError> {
    let row = connection.query_row("SELECT database, number FROM commits", [], commit_row);
    row.map_err(explain)
}

/// Counts one more batch.
fn count_commit(connection: &Connection) -> rusqlite::Result<(DatabaseId, u64)> {
    let sql = "UPDATE commits SET number = number + 1 RETURNING database, number";
    connection.prepare_cached(sql)?.query_row([], commit_row)
}

fn commit_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(DatabaseId, u64)> {
    Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
}

/// Has this connection count the rows of every table in memory: counting all of them after each batch would take too
/// long.
fn count_rows(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection
        .execute_batch("CREATE TEMP TABLE row_counts (at INTEGER PRIMARY KEY, rows INTEGER NOT NULL)")?;
    for (at, table) in TABLES.iter().enumerate() {
        let name = table.name;
        connection.execute_batch(&format!(
            "INSERT INTO row_counts SELECT {at}, count(*) FROM main.{name};
             CREATE TEMP TRIGGER more_{name} AFTER INSERT ON main.{name}
             BEGIN UPDATE row_counts SET rows = rows + 1 WHERE at = {at}; END;
             CREATE TEMP TRIGGER fewer_{name} AFTER DELETE ON main.{name}
             BEGIN UPDATE row_counts SET rows = rows - 1 WHERE at = {at}; END;"
        ))?;
    }
    Ok(())
}

fn counted_rows(connection: &Connection) -> rusqlite::Result<Vec<u64>> {
    let mut counts = connection.prepare_cached("SELECT rows FROM row_counts ORDER BY at")?;
    counts.query_map([], |row| Ok(row.get::<_, i64>(0)?.cast_unsigned()))?.collect()
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Makes the names in the folder of a file durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
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

/// Sets a pragma, whether it returns a row or not.
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

/// Rewrites the write-ahead log, copies it into the database and empties it.
///
/// A failed sync, here or in an earlier process, may have left pages of the log in memory that the system takes for
/// stored, so that no later sync would store them. Everything behind them would be lost with them, and pages copied
/// from them would be half of a batch if the power failed then. So the whole log is written again before anything else
/// is done with it, and nothing is appended to it.
fn settle(connection: &mut Connection, path: &Path, options: &SqliteOptions) -> Result<(), StorageError> {
    // No other connection may append to it or empty it meanwhile.
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

/// Sets whether the log is copied into the database on close.
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

/// Classifies an error of SQLite for the caller. The text contains no value of a row.
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
