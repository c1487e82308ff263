//! The gateway's catalog: a SQLite file of known hosts and their sessions, read again after a crash. It is a cache: a
//! damaged file is deleted, and the hosts report everything again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior, params};

/// The version of the file's schema. A file of another version is deleted.
const FORM: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE hosts (
        id INTEGER PRIMARY KEY,
        address TEXT NOT NULL,
        life INTEGER NOT NULL,
        bytes BLOB NOT NULL
    ) STRICT;
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        host INTEGER NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        game TEXT NOT NULL,
        mode TEXT NOT NULL,
        phase TEXT NOT NULL,
        players INTEGER NOT NULL,
        seats INTEGER NOT NULL,
        locked INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX sessions_of_a_host ON sessions (host);
";

/// How long SQLite waits for another program that reads the file.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);

/// One host in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// The host's id.
    pub host: u32,
    /// Where players reach it.
    pub address: String,
    /// The host's current incarnation: it grows with each restart.
    pub life: u32,
    /// The full record, in the gateway's own encoding.
    pub bytes: Vec<u8>,
    /// Its sessions, for people who look into the file.
    pub sessions: Vec<SessionRow>,
}

/// One session in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session's id.
    pub id: String,
    /// The session's name.
    pub name: String,
    /// The game's name.
    pub game: String,
    /// The session's mode: who decides its state.
    pub mode: String,
    /// The session's phase.
    pub phase: String,
    /// How many players are in it.
    pub players: u16,
    /// How many seats it has.
    pub seats: u16,
    /// Whether it has a password.
    pub locked: bool,
}

/// Why the catalog cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the catalog {}: {error}", path.display())]
pub struct CatalogError {
    path: PathBuf,
    error: rusqlite::Error,
}

/// A catalog that was opened, and its content.
#[derive(Debug)]
pub struct OpenCatalog {
    /// The open file.
    pub file: CatalogFile,
    /// The record of every known host.
    pub hosts: Vec<Vec<u8>>,
    /// What was damaged, if the old file had to be deleted.
    pub damage: Option<String>,
}

/// A catalog in a file.
#[derive(Debug)]
pub struct CatalogFile {
    path: PathBuf,
    connection: Connection,
}

impl CatalogFile {
    /// Opens or creates a file and reads every known host. A damaged file is deleted and created anew.
    pub fn open(path: &Path) -> Result<OpenCatalog, CatalogError> {
        let of = |error| CatalogError { path: path.to_owned(), error };
        let opened = connect(path).and_then(|connection| rows(&connection).map(|rows| (connection, rows)));
        let is_busy = |error: &rusqlite::Error| {
            let code = error.sqlite_error_code();
            matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
        };
        let ((connection, hosts), damage) = match opened {
            Ok(opened) => (opened, None),
            Err(error) if is_busy(&error) => return Err(of(error)),
            // Any other error loses nothing: the hosts report everything again.
            Err(error) => {
                for ending in ["", "-wal", "-shm"] {
                    let mut name = path.as_os_str().to_owned();
                    name.push(ending);
                    let _ = fs::remove_file(name);
                }
                ((connect(path).map_err(of)?, Vec::new()), Some(error.to_string()))
            }
        };
        let file = CatalogFile { path: path.to_owned(), connection };
        Ok(OpenCatalog { file, hosts, damage })
    }

    /// Replaces the rows of `hosts`, and deletes those of `forgotten`.
    pub fn write(&mut self, hosts: &[HostRow], forgotten: &[u32]) -> Result<(), CatalogError> {
        let written = write(&mut self.connection, hosts, forgotten);
        written.map_err(|error| CatalogError { path: self.path.clone(), error })
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // After a power failure the hosts report everything again.
    connection.pragma_update(None, "synchronous", "off")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    match connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? {
        FORM => Ok(connection),
        0 => {
            connection.execute_batch(SCHEMA)?;
            connection.pragma_update(None, "user_version", FORM)?;
            Ok(connection)
        }
        _ => Err(rusqlite::Error::InvalidQuery),
    }
}

fn rows(connection: &Connection) -> rusqlite::Result<Vec<Vec<u8>>> {
    let mut statement = connection.prepare("SELECT bytes FROM hosts ORDER BY id")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn write(connection: &mut Connection, hosts: &[HostRow], forgotten: &[u32]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for id in hosts.iter().map(|row| &row.host).chain(forgotten) {
        transaction.prepare_cached("DELETE FROM hosts WHERE id = ?")?.execute([id])?;
    }
    for HostRow { host, address, life, bytes, sessions } in hosts {
        let sql = "INSERT INTO hosts (id, address, life, bytes) VALUES (?, ?, ?, ?)";
        transaction.prepare_cached(sql)?.execute(params![host, address, life, bytes])?;
        let sql =
            "INSERT OR REPLACE INTO sessions (id, host, name, game, mode, phase, players, seats, locked)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let mut insert = transaction.prepare_cached(sql)?;
        for SessionRow { id, name, game, mode, phase, players, seats, locked } in sessions {
            insert.execute(params![id, host, name, game, mode, phase, players, seats, locked])?;
        }
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(host: u32, players: u16) -> HostRow {
        let session = SessionRow {
            id: format!("{host:032x}"),
            name: "Tuesday".into(),
            game: "pong".into(),
            mode: "lockstep".into(),
            phase: "lobby".into(),
            players,
            seats: 4,
            locked: true,
        };
        HostRow {
            host,
            address: ":8081".into(),
            life: 3,
            bytes: vec![host as u8; 9],
            sessions: vec![session],
        }
    }

    #[test]
    fn written_rows_are_read_again_and_a_damaged_file_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.sqlite");
        let OpenCatalog { mut file, hosts, damage } = CatalogFile::open(&path).unwrap();
        assert!(hosts.is_empty() && damage.is_none());
        file.write(&[row(1, 1), row(2, 2), row(u32::MAX, 3)], &[]).unwrap();
        file.write(&[row(1, 4)], &[2]).unwrap();
        let players: Vec<u16> =
            { file.connection.prepare("SELECT players FROM sessions ORDER BY host").unwrap() }
                .query_map([], |row| row.get(0))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
        assert_eq!(players, [4, 3], "one of each session");
        drop(file);
        let OpenCatalog { file, hosts, damage } = CatalogFile::open(&path).unwrap();
        assert_eq!(hosts, [vec![1; 9], vec![255; 9]]);
        assert_eq!(damage, None);
        drop(file);
        fs::write(&path, b"this is no database, and long enough to be taken for one").unwrap();
        let OpenCatalog { mut file, hosts, damage } = CatalogFile::open(&path).unwrap();
        assert!(hosts.is_empty());
        assert!(damage.unwrap().contains("not a database"));
        file.write(&[row(7, 1)], &[]).unwrap();
        drop(file);
        assert_eq!(CatalogFile::open(&path).unwrap().hosts.len(), 1);
    }
}
