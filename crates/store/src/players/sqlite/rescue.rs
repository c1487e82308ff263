//! A damaged file is set aside, and what can be read of it is carried over.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::super::storage::StorageError;
use super::schema::TABLES;
use super::{beside, explain};

/// What became of a damaged database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Where it is now.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
    /// How many rows of each table could be read and are in the new database. The rest is lost.
    pub saved: Vec<(&'static str, u64)>,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SetAside { path, why, saved } = self;
        write!(f, "the database of players was damaged ({why}); it is kept as {}. ", path.display())?;
        let rows: u64 = saved.iter().map(|(_, rows)| rows).sum();
        if rows == 0 {
            return f.write_str("Nothing in it could be read: all that was kept of players is lost");
        }
        f.write_str("Carried over into a new one:")?;
        for (at, (table, rows)) in saved.iter().enumerate() {
            write!(f, "{} {rows} {table}", if at == 0 { "" } else { "," })?;
        }
        f.write_str("; what is not among these is lost")
    }
}

/// Sets the file aside, makes a new one and fills it.
pub fn replace(
    path: &Path,
    why: String,
    open_new: impl Fn() -> Result<Connection, StorageError>,
) -> Result<(Connection, SetAside), StorageError> {
    let aside = set_aside(path).map_err(|error| {
        StorageError::Io(format!("{} is damaged ({why}) and cannot be renamed: {error}", path.display()))
    })?;
    let new = open_new()?;
    let saved = carry_over(&aside, &new)?;
    Ok((new, SetAside { path: aside, why, saved }))
}

/// Renames the file and what SQLite keeps beside it.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let free = |at: &u64| !beside(path, &format!(".broken-{at}")).exists();
    let at = (now_s..).find(free).unwrap_or(now_s);
    let aside = beside(path, &format!(".broken-{at}"));
    // The log goes first: with the database gone, a log that is left would be taken for that of the new one.
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(beside(path, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(aside)
}

/// Everything that can be read, table by table, from both ends: what is damaged in the middle hides neither.
fn carry_over(aside: &Path, new: &Connection) -> Result<Vec<(&'static str, u64)>, StorageError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(old) = Connection::open_with_flags(aside, flags) else { return Ok(Vec::new()) };
    let transaction = new.unchecked_transaction().map_err(explain)?;
    let mut saved = Vec::new();
    for (table, key, columns) in TABLES.iter().copied() {
        let backwards: Vec<String> = key.split(", ").map(|column| format!("{column} DESC")).collect();
        let mut rows = 0;
        for order in [key.to_owned(), backwards.join(", ")] {
            let select = format!("SELECT {columns} FROM {table} NOT INDEXED ORDER BY {order}");
            rows += copy_rows(&old, &select, new, table, columns).map_err(explain)?;
        }
        saved.push((table, rows));
    }
    transaction.commit().map_err(explain)?;
    Ok(saved)
}

/// Copies until something cannot be read; returns how many rows are new.
fn copy_rows(
    old: &Connection,
    select: &str,
    new: &Connection,
    table: &str,
    columns: &str,
) -> rusqlite::Result<u64> {
    let width = columns.split(", ").count();
    let places: Vec<String> = (1..=width).map(|at| format!("?{at}")).collect();
    let insert = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({})", places.join(", "));
    let mut insert = new.prepare(&insert)?;
    // A table that cannot be found or read at all has no rows to save.
    let Ok(mut select) = old.prepare(select) else { return Ok(0) };
    let Ok(mut rows) = select.query([]) else { return Ok(0) };
    let mut copied = 0;
    while let Ok(Some(row)) = rows.next() {
        let values: rusqlite::Result<Vec<Value>> = (0..width).map(|column| row.get(column)).collect();
        // A row that is no row of this table, because of what happened to it, is one of those that are lost.
        let is_new = values.and_then(|values| insert.execute(params_from_iter(values)));
        copied += is_new.unwrap_or(0) as u64;
    }
    Ok(copied)
}
