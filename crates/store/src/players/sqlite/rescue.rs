//! Recovery of a database that is damaged, gone, or has lost its newest batches: a new file gets the rows that can be
//! read from its pages and from its newest sound backup.
//!
//! Table by table: where all of it can be read, the newer of database and backup counts as it is. Where a part is
//! missing, the backup comes first and every row that can be read from the database is put over it; the newer of two
//! stays.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::super::storage::StorageError;
use super::backup::{self, Sound};
use super::image::Image;
use super::mark::{DatabaseId, Mark};
use super::pages::{self, Pages, Row};
use super::schema::{self, COMMITS, TABLES, Table};
use super::{beside, explain, now_unix_s, prepare_file, sync_folder};

/// Suffix of the new file, until it is complete.
const UNDER_WAY: &str = ".new";

/// The result of a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// What was wrong.
    pub why: String,
    /// The new path of the old file; `None` if it stays in use because nothing better was found.
    pub aside: Option<PathBuf>,
    /// The backup that was needed.
    pub backup: Option<PathBuf>,
    /// The recovered tables.
    pub tables: Vec<TableRecovery>,
    /// Whether the previous numbers of rows are known.
    pub is_counted: bool,
}

/// The result for one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRecovery {
    /// The table's name.
    pub name: &'static str,
    /// The number of rows now.
    pub rows: u64,
    /// How many of them come from the backup.
    pub from_backup: u64,
    /// How many rows are missing compared with the last write, if that is known.
    pub missing: u64,
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recovery { why, aside, backup, tables, is_counted } = self;
        write!(f, "the database of players was damaged: {why}.")?;
        if let Some(aside) = aside {
            write!(f, " The old file is kept as {}.", aside.display())?;
        }
        let list = |f: &mut fmt::Formatter<'_>, count: fn(&TableRecovery) -> u64| {
            let there = tables.iter().filter(|table| count(table) > 0);
            let words: Vec<String> = there.map(|table| format!("{} {}", count(table), table.name)).collect();
            f.write_str(&if words.is_empty() { "nothing".to_owned() } else { words.join(", ") })
        };
        f.write_str(" There are now: ")?;
        list(f, |table| table.rows)?;
        if let Some(backup) = backup {
            f.write_str("; of these the backup ")?;
            write!(f, "{} gave ", backup.display())?;
            list(f, |table| table.from_backup)?;
        }
        match is_counted {
            true => {
                f.write_str(". Lost: ")?;
                list(f, |table| table.missing)?;
                f.write_str("; what was changed since may be older than it was")
            }
            false => f.write_str(". What is not among these is lost"),
        }
    }
}

/// The readable part of the database itself.
struct Survey {
    image: Image,
    roots: Vec<(String, u32)>,
    /// Pages of a tree that was visited, and free pages.
    met: BTreeSet<u32>,
    free: BTreeSet<u32>,
    commits: Option<(DatabaseId, u64)>,
    /// By table, whether all of it can be read.
    whole: Vec<bool>,
}

impl Survey {
    fn of(path: &Path) -> Survey {
        let mut image = Image::read(path, &beside(path, "-wal"));
        let mut met = BTreeSet::new();
        let roots = pages::roots(&mut image, &mut met);
        let free = pages::free_pages(&mut image);
        let mut survey = Survey { image, roots, met, free, commits: None, whole: Vec::new() };
        let mut commits = None;
        survey.walk(&COMMITS, &mut |row| {
            if let [_, Value::Blob(database), Value::Integer(number)] = &row[..] {
                commits = <DatabaseId>::try_from(&database[..]).ok().zip(u64::try_from(*number).ok());
            }
        });
        survey.commits = commits;
        survey.whole = TABLES.iter().map(|table| survey.walk(table, &mut |_| {})).collect();
        survey
    }

    fn walk(&mut self, table: &Table, each: pages::EachRow<'_>) -> bool {
        let root = self.roots.iter().find(|(name, _)| name == table.name).map(|(_, root)| *root);
        let Some(root) = root else { return false };
        let mut met = BTreeSet::new();
        let is_whole = pages::walk(&mut self.image, root, table, &mut met, each);
        self.met.append(&mut met);
        is_whole
    }

    /// Rows on pages that no tree leads to any more.
    fn loose(&mut self, each: &mut dyn FnMut(&'static Table, Row)) {
        for number in 1..=self.image.count() {
            if !self.met.contains(&number)
                && !self.free.contains(&number)
                && let Some(bytes) = self.image.page(number)
            {
                pages::rows_on(&mut self.image, number, bytes, TABLES, each);
            }
        }
    }

    /// Rows of batches after the first damage in the log.
    fn strays(&mut self, each: &mut dyn FnMut(&'static Table, Row)) {
        for stray in std::mem::take(&mut self.image.strays) {
            pages::rows_on(&mut self.image, stray.number, stray.bytes, TABLES, each);
        }
    }
}

/// Replaces a damaged file with a new one that has all rescued rows. If the file is sound and only older than it should
/// be, and there is nothing better, it stays as it is.
pub fn recover(path: &Path, why: String, mark: Option<&Mark>) -> Result<Recovery, StorageError> {
    let mut survey = Survey::of(path);
    let own = survey.commits;
    let expected = own.map(|(database, _)| database).or(mark.map(|mark| mark.database));
    let is_same = |sound: &Sound| expected.is_none_or(|database| database == sound.database);
    let sound = backup::newest_sound(path).filter(is_same);
    let number = own.map(|(_, number)| number);
    let is_backup_newer = sound.as_ref().is_some_and(|sound| Some(sound.commits) > number);
    if survey.whole.iter().all(|whole| *whole)
        && !is_backup_newer
        && survey.image.strays.is_empty()
        && is_readable(path)
    {
        let connection = Connection::open(path).map_err(explain)?;
        return report(&connection, why, None, None, mark);
    }
    let new = beside(path, UNDER_WAY);
    let _ = fs::remove_file(&new);
    prepare_file(&new)?;
    let mut connection = Connection::open(&new).map_err(explain)?;
    schema::migrate(&mut connection)?;
    let transaction = connection.transaction().map_err(explain)?;
    fill(&transaction, &mut survey, sound.as_ref()).map_err(explain)?;
    let known = [number, sound.as_ref().map(|sound| sound.commits), mark.map(|mark| mark.commits)];
    // Greater than any earlier batch number, so that no older backup is ever taken for a newer one.
    let next = known.into_iter().flatten().max().map_or(0, |newest| newest + 1);
    let database = expected.or(sound.as_ref().map(|sound| sound.database));
    let sql = "UPDATE commits SET database = coalesce(?1, database), number = ?2";
    transaction.execute(sql, params![database, next.cast_signed()]).map_err(explain)?;
    transaction.commit().map_err(explain)?;
    drop(survey);
    let mut recovery = report(&connection, why, None, sound.as_ref(), mark)?;
    connection.close().map_err(|(_, error)| explain(error))?;
    recovery.aside = Some(swap(path, &new).map_err(|error| {
        StorageError::Io(format!("{} is damaged and cannot be renamed: {error}", path.display()))
    })?);
    Ok(recovery)
}

/// Whether SQLite itself finds no error.
fn is_readable(path: &Path) -> bool {
    Connection::open(path).is_ok_and(|connection| super::check(&connection).is_ok())
}

fn fill(new: &Connection, survey: &mut Survey, sound: Option<&Sound>) -> rusqlite::Result<()> {
    let number = survey.commits.map(|(_, number)| number);
    let is_older = sound.is_some_and(|sound| Some(sound.commits) > number);
    let has_strays = !survey.image.strays.is_empty();
    for (table, is_whole) in TABLES.iter().zip(survey.whole.clone()) {
        if let Some(sound) = sound.filter(|_| !is_whole || is_older) {
            copy_rows(&sound.connection, new, table)?;
        }
        if !is_whole || !is_older {
            let mut insert = new.prepare(&table.insert(!is_older))?;
            // A row that damage has made unfit for this table counts as lost.
            survey.walk(table, &mut |row| drop(insert.execute(params_from_iter(row))));
        }
    }
    let damaged: Vec<&str> =
        TABLES.iter().zip(&survey.whole).filter(|(_, whole)| !**whole).map(|(table, _)| table.name).collect();
    let mut loose = Vec::new();
    for table in TABLES {
        loose.push((new.prepare(&table.insert(false))?, new.prepare(&table.insert(!is_older))?));
    }
    let at = |table: &Table| TABLES.iter().position(|known| known.name == table.name).unwrap_or(0);
    if !damaged.is_empty() {
        survey.loose(&mut |table, row| {
            if damaged.contains(&table.name) {
                drop(loose[at(table)].0.execute(params_from_iter(row)));
            }
        });
    }
    if has_strays {
        survey.strays(&mut |table, row| drop(loose[at(table)].1.execute(params_from_iter(row))));
    }
    Ok(())
}

fn copy_rows(from: &Connection, new: &Connection, table: &Table) -> rusqlite::Result<()> {
    let mut insert = new.prepare(&table.insert(false))?;
    let select = format!("SELECT {} FROM {}", table.column_names(), table.name);
    // A backup of an older version may not have this table yet.
    let Ok(mut select) = from.prepare(&select) else { return Ok(()) };
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let values = (0..table.columns.len()).map(|column| row.get::<_, Value>(column));
        insert.execute(params_from_iter(values.collect::<rusqlite::Result<Row>>()?))?;
    }
    Ok(())
}

fn report(
    connection: &Connection,
    why: String,
    aside: Option<PathBuf>,
    sound: Option<&Sound>,
    mark: Option<&Mark>,
) -> Result<Recovery, StorageError> {
    if let Some(sound) = sound {
        let path = sound.path.display().to_string();
        connection.execute("ATTACH ?1 AS backup", [path]).map_err(explain)?;
    }
    let mut tables = Vec::new();
    for (at, table) in TABLES.iter().enumerate() {
        let count = |sql: &str| {
            let count = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            count.map(|count| u64::try_from(count).unwrap_or(0)).map_err(explain)
        };
        let (name, columns) = (table.name, table.column_names());
        let rows = count(&format!("SELECT count(*) FROM main.{name}"))?;
        let from_backup = match sound {
            Some(_) => count(&format!(
                "SELECT count(*) FROM (SELECT {columns} FROM main.{name} INTERSECT SELECT {columns} FROM backup.{name})"
            ))?,
            None => 0,
        };
        let before = mark.and_then(|mark| mark.rows.get(at)).copied().unwrap_or(0);
        tables.push(TableRecovery { name, rows, from_backup, missing: before.saturating_sub(rows) });
    }
    let backup = sound.map(|sound| sound.path.clone());
    Ok(Recovery { why, aside, backup, tables, is_counted: mark.is_some() })
}

/// Moves the old file and its log to another name and the new one into place.
fn swap(path: &Path, new: &Path) -> io::Result<PathBuf> {
    let free =
        |at: &u64| ["", "-wal"].iter().all(|suffix| !beside(path, &format!(".broken-{at}{suffix}")).exists());
    let now_s = now_unix_s();
    let at = (now_s..).find(free).unwrap_or(now_s);
    let aside = beside(path, &format!(".broken-{at}"));
    let unless_missing = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    // The old database keeps its name until the new one takes it, where the file system can do that.
    unless_missing(fs::hard_link(path, &aside).or_else(|_| fs::rename(path, &aside)))?;
    // The old log is removed first: the new database would take it for its own.
    for suffix in ["-wal", "-shm"] {
        unless_missing(fs::rename(beside(path, suffix), beside(&aside, suffix)))?;
    }
    sync_folder(path)?;
    fs::rename(new, path)?;
    sync_folder(path)?;
    Ok(aside)
}
