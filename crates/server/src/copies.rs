//! Copies of sessions on a player's own disk: `play` and `bot` write their copy of a session there, and read it to
//! bring the session back. The files are saves in the format of the store (docs/saves.md).

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use etcetera::BaseStrategy;
use sametick_client::{Brought, SessionCopy, Unfit};
use sametick_lockstep::rows::Table;
use sametick_lockstep::session;
use sametick_sim::{Game, Time};
use sametick_store::saves::{
    BadSave, FolderStore, MAX_PREFIX_BYTES, MAX_SAVE_BYTES, Outcome, Save, SaveInfo, SaveSync, SessionKey,
    StoreError, TooLarge, at_once,
};
use sametick_transport::clock::unix_ms;

use crate::config::{self, Config};
use crate::recorder::header_of;
use crate::recovered::facts_of;

/// The file name extension of copies.
const ENDING: &str = "save";

/// How many sessions are kept in the default folder: as many as a server keeps.
const KEPT_BY_DEFAULT: usize = 10;

/// The arguments about copies.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CopyArgs {
    /// Keep a copy of the session at the end: in this folder, or in this file if its name ends in .save. It never
    /// replaces a newer one
    #[arg(long, value_name = "FOLDER|FILE")]
    pub save: Option<PathBuf>,

    /// Begin the session with this copy if the server has nothing of it: a file, or a folder with copies of the session
    #[arg(long, value_name = "FILE|FOLDER")]
    pub bring: Option<PathBuf>,
}

/// Why a copy cannot be kept or brought.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The file is longer than any save.
    #[error("{}: {bytes} bytes, and no save has more than {MAX_SAVE_BYTES}", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// The file is no valid save.
    #[error("{}: {why}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: BadSave,
    },
    /// The save is of a room.
    #[error("{}: a save of a room; only sessions in lockstep can be brought", .0.display())]
    Room(PathBuf),
    /// The save does not fit the session.
    #[error("{}: {why}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What differs.
        why: Unfit,
    },
    /// A folder has no save of that session.
    #[error("{}: there is no save of session {session:?} of this build of {game}", folder.display())]
    None {
        /// The folder.
        folder: PathBuf,
        /// The session.
        session: String,
        /// The game.
        game: &'static str,
    },
    /// There are more players than seats in the save, or another number of seats was asked for.
    #[error("{}: the save has {found} seats, and {wanted} are asked for", path.display())]
    Seats {
        /// The file.
        path: PathBuf,
        /// The seats of the save.
        found: u16,
        /// The seats that were asked for.
        wanted: u16,
    },
    /// Copies cannot be brought to rooms.
    #[error(
        "--save and --bring are for sessions in lockstep: what happens in a room is decided by the server, and a player never \
         has all of its state"
    )]
    InRoom,
    /// For a session of the lobby its host decides where it begins.
    #[error("--bring: where a session of the lobby begins is decided by its host; nobody brings it")]
    InLobby,
    /// The copy cannot be written.
    #[error("the copy cannot be kept: {0}")]
    Write(String),
}

/// Where copies are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// A folder with a file for each session, and the largest number of files.
    Folder(PathBuf, Option<usize>),
    /// In this file.
    File(PathBuf),
}

/// The result of keeping a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    path: PathBuf,
    session: String,
    tick: u32,
    outcome: Outcome,
    /// The file that was named, if it has a save of another session.
    other: Option<PathBuf>,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept { path, session, tick, outcome, other } = self;
        let path = path.display();
        if let Some(other) = other {
            write!(f, "{} has a copy of another session and is left alone; ", other.display())?;
        }
        match outcome {
            Outcome::Written | Outcome::AlreadyThere => {
                write!(f, "a copy of session {session} at tick {tick} is in {path}")
            }
            Outcome::NewerIsThere(newer) => {
                write!(
                    f,
                    "a newer copy of session {session}, of tick {newer}, is in {path} and is left alone"
                )
            }
            Outcome::DifferentAtSameTick { .. } => {
                write!(f, "{path} has another state of tick {tick} of session {session} and is left alone")
            }
            Outcome::Unreadable(why) => write!(f, "{path} is left alone: {why}"),
        }
    }
}

impl Keep {
    /// A folder, unless the path is a file or ends in `.save`.
    pub fn at(place: &Path) -> Keep {
        let is_file = place.is_file() || !place.is_dir() && place.extension().is_some_and(|it| it == ENDING);
        if is_file { Keep::File(place.to_owned()) } else { Keep::Folder(place.to_owned(), None) }
    }

    /// The default place: beside the configuration if that was named, or in the user's data folder.
    pub fn by_default() -> Option<Keep> {
        let named = std::env::var_os(config::VARIABLE).filter(|path| !path.is_empty());
        let folder = match named {
            Some(_) => Config::find().ok()?.parent()?.join("saves"),
            None => etcetera::choose_base_strategy().ok()?.data_dir().join("sametick").join("saves"),
        };
        Some(Keep::Folder(folder, Some(KEPT_BY_DEFAULT)))
    }

    /// Writes a copy atomically, and never over a newer one of the same session.
    pub fn write(&self, copy: &SessionCopy) -> Result<Kept, CopyError> {
        let save = save_of(copy, unix_ms());
        let bytes = save.to_bytes().map_err(|error: TooLarge| CopyError::Write(error.to_string()))?;
        let own = format!("{}.{ENDING}", save.info.session_id);
        let (path, other) = match self {
            Keep::Folder(folder, _) => (folder.join(&own), None),
            Keep::File(file) if is_of_another(file, &save.info) => {
                (file.with_file_name(&own), Some(file.clone()))
            }
            Keep::File(file) => (file.clone(), None),
        };
        let outcome = put(&path, &save.info, &bytes).map_err(|trouble| CopyError::Write(trouble.0))?;
        if let Keep::Folder(folder, Some(most)) = self {
            tidy(folder, *most);
        }
        let (session, tick) = (save.info.session, save.info.tick.0);
        Ok(Kept { path, session, tick, outcome, other })
    }
}

/// Whether a file has a save of another session.
fn is_of_another(file: &Path, ours: &SaveInfo) -> bool {
    let theirs = head_of(file);
    theirs.is_some_and(|theirs| (&theirs.session_id, theirs.build) != (&ours.session_id, ours.build))
}

/// The header of a file, if it is a save.
fn head_of(file: &Path) -> Option<SaveInfo> {
    let mut bytes = Vec::new();
    let file = fs::File::open(file).ok()?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_PREFIX_BYTES as u64), &mut bytes).ok()?;
    SaveInfo::from_prefix(&bytes).ok()
}

fn put(path: &Path, info: &SaveInfo, bytes: &[u8]) -> Result<Outcome, StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let store = FolderStore::open(folder.unwrap_or(Path::new(".")))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut sync = SaveSync::new(info.clone(), u64::from(std::process::id()));
    while at_once(sync.advance(&store, &name, bytes, &|| Time::ZERO)) {}
    match sync.todo(Time::ZERO) {
        sametick_store::saves::Todo::Done(outcome) => Ok(outcome),
        _ => Err(StoreError(sync.trouble().unwrap_or("the file cannot be written").to_owned())),
    }
}

/// The copies in a folder, the newest last.
fn listed(folder: &Path) -> Vec<(SaveInfo, PathBuf)> {
    let files = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let saves = files.filter(|path| path.extension().is_some_and(|it| it == ENDING));
    let mut saves: Vec<(SaveInfo, PathBuf)> =
        saves.filter_map(|path| Some((head_of(&path)?, path))).collect();
    saves.sort_by_key(|(info, _)| info.saved_unix_ms);
    saves
}

/// Deletes the oldest copies until at most so many are left.
fn tidy(folder: &Path, most: usize) {
    let saves = listed(folder);
    for (_, path) in saves.iter().take(saves.len().saturating_sub(most)) {
        if let Err(error) = fs::remove_file(path) {
            tracing::warn!(path = %path.display(), %error, "an old copy is not deleted");
        }
    }
}

/// Converts a copy to a save.
fn save_of(copy: &SessionCopy, saved_unix_ms: u64) -> Save {
    let SessionCopy { facts, started_unix_ms, save } = copy;
    let key = SessionKey::of(facts.build, &facts.name, *started_unix_ms);
    let (tick, hash) = (save.tick, save.hash);
    let header = header_of(facts, &facts.commit, *started_unix_ms);
    let info = SaveInfo { tick, hash, saved_unix_ms, ..SaveInfo::of_log(&header, key.id()) };
    Save { info, state: save.state.clone(), table: save.table.to_bytes() }
}

/// Converts a save to a copy, if it has the seats of a session.
fn copy_of(save: Save, path: &Path) -> Result<SessionCopy, CopyError> {
    let Save { info, state, table } = save;
    let key = SessionKey::of(info.build, &info.session, info.started_unix_ms);
    if key.id() != info.session_id {
        return Err(CopyError::Room(path.to_owned()));
    }
    let seats = info.seats;
    let unfit = |why| CopyError::Unfit { path: path.to_owned(), why };
    let table = Table::from_bytes(&table).map_err(|_| unfit(Unfit::Table { seats }))?;
    let facts = facts_of(info.header());
    let save = session::Save { tick: info.tick, hash: info.hash, state, table };
    Ok(SessionCopy { facts, started_unix_ms: info.started_unix_ms, save })
}

/// Reads the copy to bring to a session. Without a session name, the copy's own session counts; from a folder, the
/// newest copy of the session is read.
pub(crate) fn read_copy<G: Game>(place: &Path, session: Option<&str>) -> Result<SessionCopy, CopyError> {
    let path = if place.is_dir() { newest_in::<G>(place, session)? } else { place.to_owned() };
    let read = |error| CopyError::Read { path: path.clone(), error };
    let bytes = fs::metadata(&path).map_err(read)?.len();
    if bytes > MAX_SAVE_BYTES as u64 {
        return Err(CopyError::TooLong { path, bytes });
    }
    let bytes = fs::read(&path).map_err(|error| CopyError::Read { path: path.clone(), error })?;
    let save = Save::from_bytes(&bytes).map_err(|why| CopyError::Bad { path: path.clone(), why })?;
    let copy = copy_of(save, &path)?;
    let session = session.unwrap_or(&copy.facts.name).to_owned();
    copy.check::<G>(&session).map_err(|why| CopyError::Unfit { path, why })?;
    Ok(copy)
}

fn newest_in<G: Game>(folder: &Path, session: Option<&str>) -> Result<PathBuf, CopyError> {
    let is_it = |info: &SaveInfo| {
        info.game == G::NAME && info.build == G::BUILD && session.is_none_or(|name| info.session == name)
    };
    let found = listed(folder).into_iter().rev().find(|(info, _)| is_it(info)).map(|(_, path)| path);
    found.ok_or_else(|| CopyError::None {
        folder: folder.to_owned(),
        session: session.unwrap_or_default().to_owned(),
        game: G::NAME,
    })
}

/// Whether a copy has seats for so many players, and as many as are asked for, if a number was given.
pub(crate) fn check_seats(
    copy: &SessionCopy,
    place: &Path,
    (least, exactly): (u16, Option<u16>),
) -> Result<(), CopyError> {
    let found = copy.facts.seats;
    let wanted = exactly.filter(|seats| *seats != found).or(Some(least).filter(|least| *least > found));
    wanted.map_or(Ok(()), |wanted| Err(CopyError::Seats { path: place.to_owned(), found, wanted }))
}

/// A sentence about what happened to a copy that was brought.
pub(crate) fn tell(brought: Brought) -> String {
    match brought {
        Brought::Taken { tick } => {
            format!("the server had nothing of the session: it goes on from your copy, after tick {tick}")
        }
        Brought::NotNeeded { ours, is_same: false, .. } => format!(
            "your copy of tick {ours} was not needed: another session of that name is there; the copy is left as it is"
        ),
        Brought::NotNeeded { ours, theirs, .. } if ours > theirs => format!(
            "your copy of tick {ours} was not needed, though it is newer: the server has the session up to tick {theirs}, which counts"
        ),
        Brought::NotNeeded { ours, theirs, .. } => {
            format!("your copy of tick {ours} was not needed: the server has the session up to tick {theirs}")
        }
    }
}

#[cfg(test)]
mod tests;
