//! The tables, and how an older file becomes a newer one: forward only, each step once and whole.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, TransactionBehavior};

use super::super::storage::StorageError;
use super::explain;

/// A token that expired is remembered as such for a month, so that its client is told why it is refused.
const EXPIRED_TOKENS_KEPT_S: u64 = 30 * 24 * 60 * 60;

/// What leads from each schema to the next. A step that has been published is never changed, only followed by another.
///
/// No constraint between tables: whatever is saved must be writable by itself, or a batch could fail for ever.
const STEPS: &[&str] = &[
    // 1: who somebody is.
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
    // 2: what is kept of rooms.
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
];

/// The newest schema.
pub const KNOWN: u32 = STEPS.len() as u32;

/// Every table with its columns, the key first, for carrying rows over.
pub const TABLES: &[(&str, &str, &str)] = &[
    ("players", "player", "player, name, subject, unix_ms"),
    ("tokens", "hash", "hash, player, expires_unix_s, retired"),
    ("profiles", "player, game, character", "player, game, character, kept, unix_ms"),
    ("active", "player, game", "player, game, character"),
    ("places", "place", "place, game, code, setup, seats, seed, listed, unix_ms"),
    ("parts", "place, part", "place, part, kept"),
    ("checkpoints", "place, player", "place, player, seat, tick, kept, unix_ms"),
];

/// A file that a newer version wrote is left as it is.
pub fn refuse_newer(connection: &Connection) -> Result<(), StorageError> {
    match version(connection)? {
        found if found > KNOWN => Err(StorageError::Newer { found, known: KNOWN }),
        _ => Ok(()),
    }
}

/// Brings a file up to date.
pub fn migrate(connection: &mut Connection) -> Result<(), StorageError> {
    while version(connection)? < KNOWN {
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        // Asked again where nobody else can change it.
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
