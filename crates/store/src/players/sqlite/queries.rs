//! Look-ups: everything about a joining player, with senseless values left out or replaced.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::storage::{CheckpointRow, Found, Known, PlaceRow, Question, TokenState};
use super::super::words::{Kept, PlaceId, PlayerId, TokenHash, is_character};
use super::writes::id;

pub fn look_up(connection: &Connection, question: &Question) -> rusqlite::Result<Found> {
    let place = PlaceId::of(&question.game, &question.code);
    let mut queries = Queries { connection, found: Found::default() };
    let player = match question.token {
        None => question.player,
        Some(hash) => queries.token(hash, question.now_unix_s)?,
    };
    if let Some(player) = player {
        queries.found.checkpoint = queries.checkpoint(place, player)?;
        queries.characters(player, &question.game)?;
        queries.known(player)?;
    }
    if question.with_place {
        queries.found.place = queries.place(place)?;
    }
    Ok(queries.found)
}

struct Queries<'a> {
    connection: &'a Connection,
    found: Found,
}

impl Queries<'_> {
    /// The player of a token, if it is valid.
    fn token(&mut self, hash: TokenHash, now_unix_s: u64) -> rusqlite::Result<Option<PlayerId>> {
        let sql = "SELECT player, expires_unix_s, retired FROM tokens WHERE hash = ?1";
        let row = self.connection.prepare_cached(sql)?.query_row([hash.0], |row| {
            Ok((player_at(row, 0)?, row.get::<_, i64>(1)?.cast_unsigned(), row.get::<_, bool>(2)?))
        });
        let (state, player) = match row.optional()? {
            None => (TokenState::Unknown, None),
            Some((_, _, true)) => (TokenState::Retired, None),
            Some((_, expires, _)) if expires <= now_unix_s => (TokenState::Expired, None),
            Some((None, ..)) => (TokenState::Unknown, self.odd()),
            Some((player, ..)) => (TokenState::Good, player),
        };
        self.found.token = state;
        Ok(player)
    }

    fn checkpoint(&mut self, place: PlaceId, player: PlayerId) -> rusqlite::Result<Option<CheckpointRow>> {
        let sql = "SELECT seat, tick, kept, unix_ms FROM checkpoints WHERE place = ?1 AND player = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row = statement.query_row(params![id(place), player.to_bytes()], |row| {
            let (seat, tick) = (row.get::<_, i64>(0)?, row.get::<_, i64>(1)?);
            let unix_ms = row.get::<_, i64>(3)?.cast_unsigned();
            Ok(match (u16::try_from(seat), u32::try_from(tick), kept_at(row, 2)?) {
                (Ok(seat), Ok(tick), Some(kept)) => Some(CheckpointRow { seat, tick, kept, unix_ms }),
                _ => None,
            })
        });
        Ok(row.optional()?.and_then(|row| row.or_else(|| self.odd())))
    }

    /// The player's characters and the active one.
    fn characters(&mut self, player: PlayerId, game: &str) -> rusqlite::Result<()> {
        let sql = "SELECT character, kept FROM profiles WHERE player = ?1 AND game = ?2 ORDER BY character";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![player.to_bytes(), game])?;
        while let Some(row) = rows.next()? {
            let (character, kept): (String, _) = (row.get(0)?, kept_at(row, 1)?);
            if is_character(&character) {
                let kept = kept.unwrap_or_else(|| self.odd().unwrap_or_default());
                self.found.profiles.push((character, kept));
            } else {
                self.found.senseless += 1;
            }
        }
        let sql = "SELECT character FROM active WHERE player = ?1 AND game = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let active = statement.query_row(params![player.to_bytes(), game], |row| row.get::<_, String>(0));
        match active.optional()? {
            Some(active) if is_character(&active) => {
                if let Err(at) = self.found.profiles.binary_search_by(|(id, _)| id.cmp(&active)) {
                    self.found.senseless += 1;
                    self.found.profiles.insert(at, (active.clone(), Kept::default()));
                }
                self.found.active = Some(active);
            }
            Some(_) => self.found.senseless += 1,
            None => {}
        }
        Ok(())
    }

    /// The player: from the row of players, or from any other row of a player without one.
    fn known(&mut self, player: PlayerId) -> rusqlite::Result<()> {
        let sql = "SELECT name, subject FROM players WHERE player = ?1";
        let row = self.connection.prepare_cached(sql)?.query_row([player.to_bytes()], |row| {
            Ok(Known { id: player, name: row.get(0)?, subject: row.get(1)? })
        });
        let is_known = self.found.token == TokenState::Good
            || self.found.checkpoint.is_some()
            || !self.found.profiles.is_empty()
            || self.found.senseless > 0;
        self.found.player = match row.optional()? {
            None if is_known => {
                self.found.senseless += 1;
                Some(Known { id: player, name: String::new(), subject: None })
            }
            row => row,
        };
        Ok(())
    }

    fn place(&mut self, place: PlaceId) -> rusqlite::Result<Option<PlaceRow>> {
        let sql = "SELECT setup, seats, seed, listed FROM places WHERE place = ?1";
        let row = self.connection.prepare_cached(sql)?.query_row([id(place)], |row| {
            Ok(PlaceRow {
                id: place,
                setup: row.get(0)?,
                seats: row.get::<_, i64>(1)?.clamp(0, u16::MAX.into()) as u16,
                seed: row.get::<_, i64>(2)?.cast_unsigned(),
                listed: row.get(3)?,
                parts: Vec::new(),
                checkpoints: Vec::new(),
            })
        });
        let Some(mut row) = row.optional()? else { return Ok(None) };
        row.parts = self.parts(place)?;
        row.checkpoints = self.seats(place)?;
        Ok(Some(row))
    }

    fn parts(&mut self, place: PlaceId) -> rusqlite::Result<Vec<(u32, Kept)>> {
        let sql = "SELECT part, kept FROM parts WHERE place = ?1 ORDER BY part";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([id(place)])?;
        let mut parts = Vec::new();
        while let Some(row) = rows.next()? {
            match (u32::try_from(row.get::<_, i64>(0)?), kept_at(row, 1)?) {
                (Ok(key), Some(kept)) => parts.push((key, kept)),
                _ => self.found.senseless += 1,
            }
        }
        Ok(parts)
    }

    fn seats(&mut self, place: PlaceId) -> rusqlite::Result<Vec<(PlayerId, u16, u64)>> {
        let sql = "SELECT player, seat, unix_ms FROM checkpoints WHERE place = ?1 ORDER BY player";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([id(place)])?;
        let mut seats = Vec::new();
        while let Some(row) = rows.next()? {
            match (player_at(row, 0)?, u16::try_from(row.get::<_, i64>(1)?)) {
                (Some(player), Ok(seat)) => {
                    seats.push((player, seat, row.get::<_, i64>(2)?.cast_unsigned()));
                }
                _ => self.found.senseless += 1,
            }
        }
        Ok(seats)
    }

    /// Counts one more senseless row.
    fn odd<T>(&mut self) -> Option<T> {
        self.found.senseless += 1;
        None
    }
}

fn kept_at(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Kept>> {
    Ok(Kept::new(row.get_ref(index)?.as_blob()?).ok())
}

fn player_at(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<PlayerId>> {
    Ok(row.get_ref(index)?.as_blob()?.try_into().ok().map(PlayerId::from_bytes))
}
