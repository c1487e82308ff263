//! `sametick sessions`: lists, shows, copies and deletes the sessions kept in a folder or in S3.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use sametick_store::log::{Header, LogReader, Tail};
use sametick_store::saves::{
    BadPlace, ColdError, ColdLog, ObjectStore, Place, SaveInfo, SessionKey, StoreError, StoredSession,
    delete_session, describe_save, list_sessions,
};
use serde::Serialize;

use crate::cli::CommandError;
use crate::report::{Bytes, Date, print};

/// The default place of sessions: the data folder of a relay.
pub(crate) const DATA: &str = "sametick-data";

/// How many sessions with similar names are suggested.
const NEAREST: usize = 3;

/// The subcommands of `sametick sessions`.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "\
Examples:
  sametick sessions list
  sametick sessions list --store s3://games/sametick?endpoint=https://s3.example.org
  sametick sessions show friday-1800000000000
  sametick sessions fetch friday-1800000000000 --store s3://games/sametick --into friday && sametick replay friday
  sametick sessions delete friday-1800000000000

A session is named by its id, as `list` prints it; where two builds have the same, by BUILD/ID.")]
pub enum SessionsCommand {
    /// List all sessions, the one written to last first
    List(ListArgs),
    /// Show the details of one: its save and its log
    Show(OneSession),
    /// Copy one into a folder: its log, to look into and replay, and its save
    Fetch(FetchArgs),
    /// Delete one: its save, its log, and what lies beside them
    Delete(OneSession),
}

/// The place of the sessions, and the form of the output.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// A folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME; credentials come from the environment
    /// (AWS_ACCESS_KEY_ID and others)
    #[arg(long, value_name = "PLACE", default_value = DATA, value_parser = Place::parse)]
    store: Place,

    /// Print a line of JSON
    #[arg(long)]
    json: bool,
}

/// One session.
#[derive(Clone, Debug, Args)]
pub struct OneSession {
    /// Its id, or BUILD/ID
    #[arg(value_name = "ID")]
    session: String,

    #[command(flatten)]
    from: ListArgs,
}

/// One session, and the folder to copy it to.
#[derive(Clone, Debug, Args)]
pub struct FetchArgs {
    #[command(flatten)]
    one: OneSession,

    /// The folder; it is made if it is not there, and nothing in it is overwritten
    #[arg(long, value_name = "FOLDER")]
    into: PathBuf,
}

/// Why sessions cannot be listed, shown or deleted.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// The store does not work.
    #[error("{0}")]
    StoreError(#[from] StoreError),
    /// The text is no name of a session.
    #[error(transparent)]
    Place(#[from] BadPlace),
    /// There is no such session.
    #[error(
        "there is no session {typed:?} here{}; `sametick sessions list` prints those there are",
        nearest(near)
    )]
    Unknown {
        /// The name that was asked for.
        typed: String,
        /// Sessions with the nearest ids.
        near: Vec<String>,
    },
    /// There are several such sessions.
    #[error("{id:?} is a session of several builds; say which: {}", .builds.join(", "))]
    Ambiguous {
        /// The id.
        id: String,
        /// Their full names.
        builds: Vec<String>,
    },
    /// A copy cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The session cannot be read.
    #[error("{session}: {error}")]
    Damaged {
        /// The session.
        session: String,
        /// The error.
        error: String,
    },
}

/// A session in a list.
#[derive(Clone, Debug, Serialize)]
pub struct SessionRow {
    /// Its id.
    pub id: String,
    /// The build.
    pub build: String,
    /// The game; `None` if there is no readable save.
    pub game: Option<String>,
    /// The tick of its save.
    pub saved_tick: Option<u32>,
    /// Whether there is a log.
    pub has_log: bool,
    /// The bytes of all its files.
    pub bytes: u64,
    /// When one of its files was last written.
    pub modified_unix_ms: u64,
}

/// A list of sessions.
#[derive(Clone, Debug, Serialize)]
pub struct SessionsReport {
    /// The sessions.
    pub sessions: Vec<SessionRow>,
}

impl fmt::Display for SessionsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sessions.is_empty() {
            return f.write_str("no sessions");
        }
        let widest = self.sessions.iter().map(|row| row.id.len()).max().unwrap_or(0).max(7);
        write!(
            f,
            "{:widest$}  {:8}  {:8}  {:>9}  {:>3}  {:>9}  written",
            "session", "build", "game", "save", "log", "size"
        )?;
        for row in &self.sessions {
            let game = row.game.as_deref().unwrap_or("-");
            let save = row.saved_tick.map_or("-".into(), |tick| format!("tick {tick}"));
            let log = if row.has_log { "yes" } else { "-" };
            let (build, size) = (row.build.get(..8).unwrap_or(&row.build), Bytes(row.bytes).to_string());
            let written = Date(row.modified_unix_ms);
            write!(
                f,
                "\n{:widest$}  {build:8}  {game:8}  {save:>9}  {log:>3}  {size:>9}  {written}",
                row.id
            )?;
        }
        Ok(())
    }
}

/// The details of a session.
#[derive(Clone, Debug, Serialize)]
pub struct SessionReport {
    #[serde(flatten)]
    row: SessionRow,
    /// The session's name.
    session: Option<String>,
    /// The git commit of the build.
    commit: Option<String>,
    /// When it began.
    started_unix_ms: Option<u64>,
    /// When it was saved.
    saved_unix_ms: Option<u64>,
    /// The hash of the saved state.
    saved_hash: Option<String>,
    /// How many seats it has.
    seats: Option<u16>,
    /// The last tick of its log.
    last_tick: Option<u32>,
    /// Whether the log records the session's end.
    has_ended: Option<bool>,
    /// Bytes at the end of the log that belong to no complete record.
    torn_bytes: Option<u64>,
}

impl fmt::Display for SessionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = &self.row;
        write!(f, "{}", row.id)?;
        write!(f, "\n  build     {}", row.build)?;
        for (word, text) in [("commit", &self.commit), ("game", &row.game), ("session", &self.session)] {
            text.as_ref().map_or(Ok(()), |text| write!(f, "\n  {word:9} {text}"))?;
        }
        self.started_unix_ms.map_or(Ok(()), |at| write!(f, "\n  began     {}", Date(at)))?;
        match (row.saved_tick, &self.saved_hash, self.saved_unix_ms) {
            (Some(tick), Some(hash), Some(at)) => {
                write!(f, "\n  save      tick {tick}, state {hash}, {}", Date(at))?;
            }
            _ => write!(f, "\n  save      none")?,
        }
        match (self.last_tick, self.has_ended) {
            (Some(tick), Some(ended)) => {
                let end =
                    if ended { "the session ended there" } else { "without an end: it runs, or was cut off" };
                write!(f, "\n  log       up to tick {tick}, {end}")?;
            }
            _ => write!(f, "\n  log       none")?,
        }
        if let Some(torn) = self.torn_bytes.filter(|torn| *torn > 0) {
            write!(f, "\n            {torn} bytes at its end are no part of it")?;
        }
        write!(f, "\n  size      {}\n  written   {}", Bytes(row.bytes), Date(row.modified_unix_ms))
    }
}

/// A session, with the details of its save.
async fn row_of(
    store: &dyn ObjectStore,
    session: &StoredSession,
) -> Result<(SessionRow, Option<SaveInfo>), SessionsError> {
    // In a list, a save that cannot be read counts as none; `show` prints the error.
    let save = describe_save(store, &session.key).await?.and_then(Result::ok);
    let row = SessionRow {
        id: session.key.id().into(),
        build: session.key.build().to_string(),
        game: save.as_ref().map(|save| save.game.clone()),
        saved_tick: save.as_ref().map(|save| save.tick.0),
        has_log: session.has_log,
        bytes: session.bytes,
        modified_unix_ms: session.modified_unix_ms,
    };
    Ok((row, save))
}

async fn list(store: &dyn ObjectStore) -> Result<SessionsReport, SessionsError> {
    let mut sessions = Vec::new();
    for session in list_sessions(store).await?.iter().filter(|session| !session.is_left_over()) {
        sessions.push(row_of(store, session).await?.0);
    }
    Ok(SessionsReport { sessions })
}

/// Finds the session of a name.
pub(crate) async fn find(store: &dyn ObjectStore, typed: &str) -> Result<StoredSession, SessionsError> {
    let (build, id) = typed.split_once('/').map_or((None, typed), |(build, id)| (Some(build), id));
    let is_meant = |key: &SessionKey| {
        key.id() == id && build.is_none_or(|build| key.build().to_string().starts_with(build))
    };
    let (mut found, others): (Vec<StoredSession>, Vec<StoredSession>) =
        list_sessions(store).await?.into_iter().partition(|session| is_meant(&session.key));
    match found.len() {
        0 => Err(SessionsError::Unknown { typed: typed.into(), near: near(id, &others) }),
        1 => Ok(found.remove(0)),
        _ => {
            let typed = |session: &StoredSession| format!("{}/{id}", &session.key.build().to_string()[..8]);
            Err(SessionsError::Ambiguous { id: id.into(), builds: found.iter().map(typed).collect() })
        }
    }
}

/// The ids nearest to a text by edit distance; of equally near ones, the newest first.
fn near(typed: &str, sessions: &[StoredSession]) -> Vec<String> {
    let whole = sessions.iter().filter(|session| !session.is_left_over());
    let mut ids: Vec<&str> = whole.map(|session| session.key.id()).collect();
    // Most people type the name without the time at which the session began.
    let name = |id: &'_ str| id.rsplit_once('-').map_or(usize::MAX, |(name, _)| changes(typed, name));
    ids.sort_by_cached_key(|id| name(id).min(changes(typed, id)));
    ids.dedup();
    ids.into_iter().take(NEAREST).map(str::to_owned).collect()
}

/// The edit distance between two words.
fn changes(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

/// A sentence with the nearest names.
pub(crate) fn nearest(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!("; the nearest are {}", near.join(", ")),
    }
}

async fn show(store: &dyn ObjectStore, typed: &str) -> Result<SessionReport, SessionsError> {
    let session = find(store, typed).await?;
    let damaged = |error: String| SessionsError::Damaged { session: session.key.id().into(), error };
    if let Some(Err(bad)) = describe_save(store, &session.key).await? {
        return Err(damaged(format!("its save: {bad}")));
    }
    let (row, save) = row_of(store, &session).await?;
    let log = log_of(store, &session.key).await.map_err(|error| damaged(format!("its log: {error}")))?;
    let header = log.as_ref().map(|(header, _)| header);
    let tail = log.as_ref().map(|(_, tail)| *tail);
    Ok(SessionReport {
        session: save.as_ref().map(|save| save.session.clone()).or(header.map(|it| it.session.clone())),
        commit: save.as_ref().map(|save| save.commit.clone()).or(header.map(|it| it.commit.clone())),
        started_unix_ms: save
            .as_ref()
            .map(|save| save.started_unix_ms)
            .or(header.map(|it| it.started_unix_ms)),
        saved_unix_ms: save.as_ref().map(|save| save.saved_unix_ms),
        saved_hash: save.as_ref().map(|save| save.hash.to_string()),
        seats: save.as_ref().map(|save| save.seats),
        last_tick: tail.map(|tail| tail.last_tick.0),
        has_ended: tail.map(|tail| tail.ended),
        torn_bytes: tail.map(|tail| tail.torn_bytes),
        row: SessionRow { game: row.game.or(header.map(|header| header.game.clone())), ..row },
    })
}

/// The header and the end of a session's log.
async fn log_of(store: &dyn ObjectStore, key: &SessionKey) -> Result<Option<(Header, Tail)>, ColdError> {
    let Some(cold) = ColdLog::new(store, key).read().await? else { return Ok(None) };
    let Some(last) = cold.files.last() else { return Ok(None) };
    let reader = LogReader::open(&last[..])?;
    Ok(Some((reader.header().clone(), reader.tail())))
}

/// The result of copying a session.
#[derive(Clone, Debug, Serialize)]
pub struct Fetched {
    /// The session.
    fetched: String,
    /// The files, and how many bytes each has.
    files: Vec<(PathBuf, u64)>,
}

impl fmt::Display for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fetched {}", self.fetched)?;
        self.files
            .iter()
            .try_for_each(|(path, bytes)| write!(f, "\n  {} ({})", path.display(), Bytes(*bytes)))
    }
}

/// Copies all files of a session into a folder.
async fn fetch(store: &dyn ObjectStore, typed: &str, into: &Path) -> Result<Fetched, SessionsError> {
    let key = find(store, typed).await?.key;
    let damaged = |error: String| SessionsError::Damaged { session: key.id().into(), error };
    let logs =
        ColdLog::new(store, &key).read().await.map_err(|error| damaged(format!("its log: {error}")))?;
    let mut files = Vec::new();
    for (number, log) in logs.map_or(Vec::new(), |logs| logs.files).into_iter().enumerate() {
        // Most sessions have one log. One that went on without its earlier file has more.
        let name = if number == 0 { "log".into() } else { format!("log-{}", number + 1) };
        files.push((into.join(name), log));
    }
    let save = store.get(&key.save()).await?;
    files.extend(save.map(|save| (into.join("save"), save.bytes)));
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |error| SessionsError::Copy { path, error }
    };
    fs::create_dir_all(into).map_err(wrong(into))?;
    let mut fetched = Vec::new();
    for (path, bytes) in files {
        let mut file = fs::File::create_new(&path).map_err(wrong(&path))?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(wrong(&path))?;
        fetched.push((path, bytes.len() as u64));
    }
    Ok(Fetched { fetched: key.id().into(), files: fetched })
}

/// The result of deleting a session.
#[derive(Clone, Debug, Serialize)]
pub struct Deleted {
    /// The session.
    deleted: String,
    /// How many bytes it had.
    bytes: u64,
}

impl fmt::Display for Deleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deleted {} ({})", self.deleted, Bytes(self.bytes))
    }
}

/// Runs `sametick sessions`.
pub(crate) async fn sessions(command: &SessionsCommand) -> Result<ExitCode, CommandError> {
    let (SessionsCommand::List(args)
    | SessionsCommand::Show(OneSession { from: args, .. })
    | SessionsCommand::Fetch(FetchArgs { one: OneSession { from: args, .. }, .. })
    | SessionsCommand::Delete(OneSession { from: args, .. })) = command;
    let store: Arc<dyn ObjectStore> = args.store.open().map_err(SessionsError::from)?;
    match command {
        SessionsCommand::List(_) => print(&list(&*store).await?, args.json)?,
        SessionsCommand::Show(one) => print(&show(&*store, &one.session).await?, args.json)?,
        SessionsCommand::Fetch(FetchArgs { one, into }) => {
            print(&fetch(&*store, &one.session, into).await?, args.json)?;
        }
        SessionsCommand::Delete(one) => {
            let session = find(&*store, &one.session).await?;
            delete_session(&*store, &session.key).await.map_err(SessionsError::from)?;
            let (deleted, bytes) = (session.key.id().to_owned(), session.bytes);
            print(&Deleted { deleted, bytes }, args.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
