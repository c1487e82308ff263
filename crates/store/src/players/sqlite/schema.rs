//! The tables and their migrations: forward only, each step in one transaction.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, TransactionBehavior};

use super::super::storage::StorageError;
use super::explain;

/// An expired token is remembered for a month, so that its client is told why it is refused.
const EXPIRED_TOKENS_KEPT_S: u64 = 30 * 24 * 60 * 60;

/// The migration from each schema version to the next. A published step is never changed, only followed by another.
///
/// No constraints between tables: every write must succeed by itself, or a batch could fail for ever.
const STEPS: &[&str] = &[
    // 1: players, tokens and their data.
    "CREATE TABLE IF NOT EXISTS players (
        player BLOB PRIMARY KEY, name TEXT NOT NULL, subject TEXT, unix_ms INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE IF NOT EXISTS tokens (
        hash BLOB PRIMARY KEY, player BLOB NOT NULL, expires_unix_s INTEGER NOT NULL,
        retired INTEGER NOT NULL DEFAULT 0
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX IF NOT EXISTS tokens_of_player ON tokens (player);
     CREATE TABLE IF NOT EXISTS profiles (
        player BLOB NOT NULL, game TEXT NOT NULL, character TEXT NOT NULL, kept BLOB NOT NULL,
        unix_ms INTEGER NOT NULL, PRIMARY KEY (player, game, character)
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE IF NOT EXISTS active (
        player BLOB NOT NULL, game TEXT NOT NULL, character TEXT NOT NULL, PRIMARY KEY (player, game)
     ) STRICT, WITHOUT ROWID;",
    // 2: rooms and their parts.
    "CREATE TABLE IF NOT EXISTS places (
        place INTEGER PRIMARY KEY, game TEXT NOT NULL, code TEXT NOT NULL, setup BLOB NOT NULL,
        seats INTEGER NOT NULL, seed INTEGER NOT NULL, listed INTEGER NOT NULL, unix_ms INTEGER NOT NULL
     ) STRICT;
     CREATE TABLE IF NOT EXISTS parts (
        place INTEGER NOT NULL, part INTEGER NOT NULL, kept BLOB NOT NULL, PRIMARY KEY (place, part)
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE IF NOT EXISTS checkpoints (
        place INTEGER NOT NULL, player BLOB NOT NULL, seat INTEGER NOT NULL, tick INTEGER NOT NULL,
        kept BLOB NOT NULL, unix_ms INTEGER NOT NULL, PRIMARY KEY (place, player)
     ) STRICT, WITHOUT ROWID;",
    // 3: the id of this database and the number of batches written: compared with the mark beside the file (`mark.rs`).
    "CREATE TABLE IF NOT EXISTS commits (
        only INTEGER PRIMARY KEY CHECK (only = 1), database BLOB NOT NULL, number INTEGER NOT NULL
     ) STRICT;
     INSERT INTO commits (only, database, number) VALUES (1, randomblob(16), 0) ON CONFLICT DO NOTHING;",
];

/// The newest schema version.
pub const KNOWN: u32 = STEPS.len() as u32;

/// The type of a column. Together with the number of columns, it tells rows of one table from those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The row id, which is not part of the stored record.
    RowId,
    Integer,
    Text,
    TextOrNull,
    Blob,
}

/// Which of two rows with the same key is the newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newest {
    /// The one with the later `unix_ms`.
    Stamped,
    /// A token that is retired in one of them is retired.
    Retired,
    /// The rows do not tell.
    Unknown,
}

/// A table whose rows are rescued.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    /// In stored order: the key first.
    pub columns: &'static [(&'static str, Kind)],
    pub newest: Newest,
}

use Kind::{Blob, Integer, RowId, Text, TextOrNull};

/// All such tables.
pub const TABLES: &[Table] = &[
    Table {
        name: "players",
        columns: &[("player", Blob), ("name", Text), ("subject", TextOrNull), ("unix_ms", Integer)],
        newest: Newest::Stamped,
    },
    Table {
        name: "tokens",
        columns: &[("hash", Blob), ("player", Blob), ("expires_unix_s", Integer), ("retired", Integer)],
        newest: Newest::Retired,
    },
    Table {
        name: "profiles",
        columns: &[
            ("player", Blob),
            ("game", Text),
            ("character", Text),
            ("kept", Blob),
            ("unix_ms", Integer),
        ],
        newest: Newest::Stamped,
    },
    Table {
        name: "active",
        columns: &[("player", Blob), ("game", Text), ("character", Text)],
        newest: Newest::Unknown,
    },
    Table {
        name: "places",
        columns: &[
            ("place", RowId),
            ("game", Text),
            ("code", Text),
            ("setup", Blob),
            ("seats", Integer),
            ("seed", Integer),
            ("listed", Integer),
            ("unix_ms", Integer),
        ],
        newest: Newest::Stamped,
    },
    Table {
        name: "parts",
        columns: &[("place", Integer), ("part", Integer), ("kept", Blob)],
        newest: Newest::Unknown,
    },
    Table {
        name: "checkpoints",
        columns: &[
            ("place", Integer),
            ("player", Blob),
            ("seat", Integer),
            ("tick", Integer),
            ("kept", Blob),
            ("unix_ms", Integer),
        ],
        newest: Newest::Stamped,
    },
];

/// The table with a single row: the id of the database, and the number of batches written.
pub const COMMITS: Table = Table {
    name: "commits",
    columns: &[("only", RowId), ("database", Blob), ("number", Integer)],
    newest: Newest::Unknown,
};

impl Table {
    /// The names of its columns, for a statement.
    pub fn column_names(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// A statement that adds a row. Of two with the same key the newer one stays; where the rows do not tell, the first
    /// one added, or the last if `replaces`.
    pub fn insert(&self, replaces: bool) -> String {
        let Table { name, columns, newest } = self;
        let places: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
        let all = columns.iter().map(|(column, _)| format!("{column} = excluded.{column}"));
        let all = all.collect::<Vec<_>>().join(", ");
        let otherwise = match newest {
            Newest::Stamped => format!("DO UPDATE SET {all} WHERE excluded.unix_ms > {name}.unix_ms"),
            Newest::Retired => "DO UPDATE SET retired = max(retired, excluded.retired), \
                                expires_unix_s = max(expires_unix_s, excluded.expires_unix_s)"
                .to_owned(),
            Newest::Unknown if replaces => format!("DO UPDATE SET {all}"),
            Newest::Unknown => "DO NOTHING".to_owned(),
        };
        let (columns, places) = (self.column_names(), places.join(", "));
        format!("INSERT INTO {name} ({columns}) VALUES ({places}) ON CONFLICT {otherwise}")
    }
}

/// Refuses a file that a newer version wrote.
pub fn refuse_newer(connection: &Connection) -> Result<(), StorageError> {
    match version(connection)? {
        found if found > KNOWN => Err(StorageError::Newer { found, known: KNOWN }),
        _ => Ok(()),
    }
}

/// Migrates a file to the newest schema.
pub fn migrate(connection: &mut Connection) -> Result<(), StorageError> {
    while version(connection)? < KNOWN {
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        // Read again inside the transaction, where no other program can change it.
        let next = version(&transaction)?;
        if let Some(step) = STEPS.get(next as usize) {
            transaction.execute_batch(step).map_err(explain)?;
            transaction.pragma_update(None, "user_version", next + 1).map_err(explain)?;
        }
        transaction.commit().map_err(explain)?;
    }
    drop_old_tokens(connection)
}

fn version(connection: &Connection) -> Result<u32, StorageError> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(explain)
}

fn drop_old_tokens(connection: &Connection) -> Result<(), StorageError> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let before = now_s.saturating_sub(EXPIRED_TOKENS_KEPT_S) as i64;
    let old = "SELECT EXISTS (SELECT 1 FROM tokens WHERE expires_unix_s < ?1)";
    // Most of the time there are none, and then nothing is written.
    if connection.query_row(old, [before], |row| row.get(0)).map_err(explain)? {
        let delete = "DELETE FROM tokens WHERE expires_unix_s < ?1";
        connection.execute(delete, [before]).map_err(explain)?;
    }
    Ok(())
}
