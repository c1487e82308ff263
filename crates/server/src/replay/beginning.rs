//! Chooses the state that a replay begins with: the save beside a log is used only if the log agrees with it.

use sametick_sim::canon::DecodeError;
use sametick_sim::record::Record;
use sametick_sim::{StateHash, Tick};
use sametick_store::saves::Save;

use super::ReplayError;
use crate::games::{AnyGame, Run};
use crate::logs::{LogError, LogFile};

/// Why a replay does not begin with the save beside a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotUsed {
    /// There is no save.
    #[error("there is no save beside it")]
    None,
    /// The save cannot be read, or is damaged.
    #[error("the save cannot be read: {0}")]
    Unreadable(String),
    /// The save is of another session or build.
    #[error("the save is of another session or build")]
    Other,
    /// The save is of a tick that the log does not have.
    #[error("the save is of tick {tick}, and the log has ticks {first} to {last}")]
    Outside {
        /// The save's tick.
        tick: Tick,
        /// The first tick of the log.
        first: Tick,
        /// The last tick of the log.
        last: Tick,
    },
    /// The log has no hash for the save's tick.
    #[error("the log has neither a check nor a snapshot of tick {0}, of which the save is")]
    Unknown(Tick),
    /// The log has another hash for the save's tick.
    #[error("after tick {tick} the log has {logged}, and the save {saved}")]
    Different {
        /// The tick.
        tick: Tick,
        /// The hash in the log.
        logged: StateHash,
        /// The hash of the save.
        saved: StateHash,
    },
}

/// The save beside a log, if it is of the same session and of a tick from which the log goes on.
fn save_of(log: &LogFile, game: &dyn AnyGame) -> Result<Save, NotUsed> {
    let save = log.save().ok_or(NotUsed::None)?.map_err(NotUsed::Unreadable)?;
    let (header, info, last) = (log.header(), &save.info, log.last_tick());
    let is_same = info.build == header.build
        && info.schema == header.schema
        && info.setup == header.setup
        && info.session == header.session
        && info.started_unix_ms == header.started_unix_ms;
    if !is_same {
        return Err(NotUsed::Other);
    }
    let first = header.first_tick;
    if info.tick.next() < first || info.tick > last {
        return Err(NotUsed::Outside { tick: info.tick, first, last });
    }
    if !save.is_true() {
        return Err(NotUsed::Unreadable("its state is not the one that it names".into()));
    }
    game.resume(info.tick, &save.state).map_err(|error| NotUsed::Unreadable(error.to_string()))?;
    Ok(save)
}

/// The hash that a log has for the state after a tick, if any.
fn logged_hash(log: &mut LogFile, wanted: Tick) -> Result<Option<StateHash>, LogError> {
    let damage = log.damage();
    let mut logged = None;
    let mut holding = log.reader().holding();
    while let Some(record) = holding.next().map_err(&damage)? {
        match *record {
            // A check, which the players agreed on, counts more than a snapshot that one of them has sent.
            Record::Check { tick, hash } if tick == wanted => return Ok(Some(hash)),
            Record::Snapshot { tick, hash, .. } if tick == wanted => logged = Some(hash),
            _ => {}
        }
    }
    Ok(logged)
}

/// What it means if a log has no hash for the tick of a save.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// The save is not used.
    Refuses,
    /// The save is used because there is no other; later checks will reveal a wrong one.
    Agrees,
}

/// The save beside a log, if the log has the same hash for its tick.
pub fn agreed_save(log: &mut LogFile, game: &dyn AnyGame) -> Result<Result<Save, NotUsed>, ReplayError> {
    compared(log, game, Silence::Refuses)
}

fn compared(
    log: &mut LogFile,
    game: &dyn AnyGame,
    silence: Silence,
) -> Result<Result<Save, NotUsed>, ReplayError> {
    let save = match save_of(log, game) {
        Ok(save) => save,
        Err(why) => return Ok(Err(why)),
    };
    let (tick, saved) = (save.info.tick, save.info.hash);
    Ok(match logged_hash(log, tick)? {
        Some(logged) if logged != saved => Err(NotUsed::Different { tick, logged, saved }),
        None if silence == Silence::Refuses => Err(NotUsed::Unknown(tick)),
        _ => Ok(save),
    })
}

/// The first state of a log that lacks its beginning: its own snapshot, or else that of the save beside it.
pub fn of_part(log: &mut LogFile, game: &dyn AnyGame) -> Result<Box<dyn Run>, ReplayError> {
    let (path, first) = (log.path().to_owned(), log.header().first_tick);
    let state = log.reader().state().map_err(|error| LogError::Open { path: path.clone(), error })?;
    let Some(state) = state else { return from_save(log, game) };
    let unreadable = |error: DecodeError| NotUsed::Unreadable(error.to_string());
    let run = game.resume(Tick(first.0 - 1), &state).map_err(unreadable);
    run.map_err(|why| ReplayError::Part { path, first, why })
}

/// The state of the save beside a log that lacks its beginning.
fn from_save(log: &mut LogFile, game: &dyn AnyGame) -> Result<Box<dyn Run>, ReplayError> {
    let unreadable = |error: DecodeError| NotUsed::Unreadable(error.to_string());
    let run = compared(log, game, Silence::Agrees)?
        .and_then(|save| game.resume(save.info.tick, &save.state).map_err(unreadable));
    let (path, first) = (log.path().to_owned(), log.header().first_tick);
    run.map_err(|why| ReplayError::Part { path, first, why })
}
