//! A prepared statement for each kind of write.

use rusqlite::{CachedStatement, Connection, ToSql, params};

use super::super::storage::Write;
use super::super::words::{Kept, MAX_CHARACTER_BYTES, MAX_KEPT, PlaceId, PlayerId};

/// The statements, by purpose.
#[derive(Clone, Copy)]
enum WriteStatement {
    Checkpoint,
    Part,
    PartGone,
    Place,
    PlaceGone,
    PartsGone,
    CheckpointsGone,
    Player,
    Token,
    Retire,
    RetireAll,
    Profile,
    Active,
}

const PENS: usize = WriteStatement::Active as usize + 1;

/// Replaces a player's senseless rows, consistent with what look-ups return meanwhile.
const MENDING: [&str; 5] = [
    "DELETE FROM profiles WHERE player = :player AND game = :game AND
     (character GLOB '*[^a-z0-9-]*' OR length(CAST(character AS BLOB)) NOT BETWEEN 1 AND :longest)",
    "UPDATE profiles SET kept = x'' WHERE player = :player AND game = :game AND length(kept) > :most",
    "DELETE FROM active WHERE player = :player AND game = :game AND
     (character GLOB '*[^a-z0-9-]*' OR length(CAST(character AS BLOB)) NOT BETWEEN 1 AND :longest)",
    "INSERT INTO profiles (player, game, character, kept, unix_ms)
     SELECT player, game, character, x'', 0 FROM active WHERE player = :player AND game = :game
     ON CONFLICT DO NOTHING",
    "INSERT INTO players (player, name, subject, unix_ms) VALUES (:player, '', NULL, 0) ON CONFLICT DO NOTHING",
];

impl WriteStatement {
    fn sql(self) -> &'static str {
        match self {
            WriteStatement::Checkpoint => {
                "INSERT INTO checkpoints (place, player, seat, tick, kept, unix_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO UPDATE SET seat = excluded.seat, tick = excluded.tick, kept = excluded.kept,
                 unix_ms = excluded.unix_ms"
            }
            WriteStatement::Part => {
                "INSERT INTO parts (place, part, kept) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET kept = excluded.kept"
            }
            WriteStatement::PartGone => "DELETE FROM parts WHERE place = ?1 AND part = ?2",
            WriteStatement::Place => {
                "INSERT INTO places (place, game, code, setup, seats, seed, listed, unix_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT DO UPDATE SET game = excluded.game, code = excluded.code, setup = excluded.setup,
                 seats = excluded.seats, seed = excluded.seed, listed = excluded.listed, unix_ms = excluded.unix_ms"
            }
            WriteStatement::PlaceGone => "DELETE FROM places WHERE place = ?1",
            WriteStatement::PartsGone => "DELETE FROM parts WHERE place = ?1",
            WriteStatement::CheckpointsGone => "DELETE FROM checkpoints WHERE place = ?1",
            WriteStatement::Player => {
                "INSERT INTO players (player, name, subject, unix_ms) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET name = excluded.name, subject = excluded.subject,
                 unix_ms = excluded.unix_ms"
            }
            WriteStatement::Token => {
                "INSERT INTO tokens (hash, player, expires_unix_s) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET player = excluded.player, expires_unix_s = excluded.expires_unix_s,
                 retired = 0"
            }
            WriteStatement::Retire => "UPDATE tokens SET retired = 1 WHERE hash = ?1",
            WriteStatement::RetireAll => "UPDATE tokens SET retired = 1 WHERE player = ?1",
            WriteStatement::Profile => {
                "INSERT INTO profiles (player, game, character, kept, unix_ms) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET kept = excluded.kept, unix_ms = excluded.unix_ms"
            }
            WriteStatement::Active => {
                "INSERT INTO active (player, game, character) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET character = excluded.character"
            }
        }
    }
}

/// Writes the batch, in order.
pub fn write_all(connection: &Connection, batch: &[Write]) -> rusqlite::Result<()> {
    let mut writes = WriteStatements { connection, taken: [const { None }; PENS] };
    batch.iter().try_for_each(|write| writes.write(write))
}

/// Statements that are looked up once per batch.
struct WriteStatements<'a> {
    connection: &'a Connection,
    taken: [Option<CachedStatement<'a>>; PENS],
}

impl<'a> WriteStatements<'a> {
    fn write_statement(
        &mut self,
        write_statement: WriteStatement,
    ) -> rusqlite::Result<&mut CachedStatement<'a>> {
        let taken = &mut self.taken[write_statement as usize];
        match taken {
            Some(statement) => Ok(statement),
            None => Ok(taken.insert(self.connection.prepare_cached(write_statement.sql())?)),
        }
    }

    fn write(&mut self, write: &Write) -> rusqlite::Result<()> {
        match write {
            Write::Checkpoint { place, player, seat, tick, kept, unix_ms } => {
                let row =
                    params![id(*place), player.to_bytes(), seat, tick, kept.as_bytes(), signed(*unix_ms)];
                self.write_statement(WriteStatement::Checkpoint)?.execute(row)?;
            }
            Write::Part { place, key, kept } => self.part(*place, *key, kept.as_ref())?,
            Write::Place { place, game, code, setup, seats, seed, listed, unix_ms } => {
                let (seed, unix_ms) = (signed(*seed), signed(*unix_ms));
                let row = params![id(*place), game, code, setup, seats, seed, listed, unix_ms];
                self.write_statement(WriteStatement::Place)?.execute(row)?;
            }
            Write::Forget { place } => {
                for write_statement in
                    [WriteStatement::PlaceGone, WriteStatement::PartsGone, WriteStatement::CheckpointsGone]
                {
                    self.write_statement(write_statement)?.execute([id(*place)])?;
                }
            }
            Write::Player { player, name, subject, unix_ms } => {
                let row = params![player.to_bytes(), name, subject, signed(*unix_ms)];
                self.write_statement(WriteStatement::Player)?.execute(row)?;
            }
            Write::Token { hash, player, expires_unix_s } => {
                let row = params![hash.0, player.to_bytes(), signed(*expires_unix_s)];
                self.write_statement(WriteStatement::Token)?.execute(row)?;
            }
            Write::Retire { hash } => {
                self.write_statement(WriteStatement::Retire)?.execute([hash.0])?;
            }
            Write::RetireAll { player } => {
                self.write_statement(WriteStatement::RetireAll)?.execute([player.to_bytes()])?;
            }
            Write::Profile { player, game, character, kept, unix_ms } => {
                let row = params![player.to_bytes(), game, character, kept.as_bytes(), signed(*unix_ms)];
                self.write_statement(WriteStatement::Profile)?.execute(row)?;
            }
            Write::Active { player, game, character } => {
                self.write_statement(WriteStatement::Active)?.execute(params![
                    player.to_bytes(),
                    game,
                    character
                ])?;
            }
            Write::Mend { player, game } => self.mend(*player, game)?,
        }
        Ok(())
    }

    fn part(&mut self, place: PlaceId, key: u32, kept: Option<&Kept>) -> rusqlite::Result<()> {
        match kept {
            Some(kept) => self.write_statement(WriteStatement::Part)?.execute(params![
                id(place),
                key,
                kept.as_bytes()
            ])?,
            None => self.write_statement(WriteStatement::PartGone)?.execute(params![id(place), key])?,
        };
        Ok(())
    }

    fn mend(&mut self, player: PlayerId, game: &str) -> rusqlite::Result<()> {
        // Each statement takes the values it needs.
        let values: [(&str, &dyn ToSql); 4] = [
            (":player", &player.to_bytes()),
            (":game", &game),
            (":longest", &(MAX_CHARACTER_BYTES as i64)),
            (":most", &(MAX_KEPT as i64)),
        ];
        for sql in MENDING {
            let named = values.iter().copied().filter(|(name, _)| sql.contains(name));
            self.connection.prepare_cached(sql)?.execute(&*named.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// SQLite's integers are signed; the bits are the same.
pub fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub fn id(place: PlaceId) -> i64 {
    signed(place.0)
}
