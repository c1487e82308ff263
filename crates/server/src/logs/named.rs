//! Finds the log that an argument names: a file, or a session by its id or its place, read from the store.

use std::path::{Path, PathBuf};

use clap::Args;
use sametick_sim::BuildId;
use sametick_store::log::OpenError;
use sametick_store::saves::{ColdFiles, ColdLog, ObjectStore, Place, SESSIONS, SessionKey};

use super::file::{KeptLog, LogError, LogFile};
use crate::cli::CommandError;
use crate::sessions::{DATA, SessionsError, find};

/// The prefix of a place in S3.
const S3_SCHEME: &str = "s3://";

/// The arguments that name a log.
#[derive(Clone, Debug, Args)]
pub struct NamedLog {
    /// A log, the folder of a session, the id of a session that is kept, or s3://BUCKET/PREFIX/sessions/BUILD/ID
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,

    /// Where the session of that id is kept: a folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME. Without it,
    /// sametick-data
    #[arg(long, value_name = "PLACE", value_parser = Place::parse)]
    pub(crate) store: Option<Place>,
}

impl NamedLog {
    /// Opens the log.
    pub fn open(&self) -> Result<LogFile, CommandError> {
        open(&self.log, self.store.as_ref())
    }
}

/// Opens the log of this name; if a store is given, the name is that of a session there.
pub(crate) fn open(name: &Path, store: Option<&Place>) -> Result<LogFile, CommandError> {
    let text = name.to_str().unwrap_or_default();
    if text.starts_with(S3_SCHEME) {
        let (place, session) = split(text)?;
        return open_kept(&place, &session);
    }
    match store {
        Some(store) => open_kept(store, text),
        None if name.exists() || !is_session(text) || !Path::new(DATA).is_dir() => Ok(LogFile::open(name)?),
        None => open_kept(&Place::Folder(DATA.into()), text).map_err(|error| match error {
            CommandError::Sessions(SessionsError::Unknown { near, .. }) => {
                LogError::Neither { name: name.to_owned(), store: DATA.into(), near }.into()
            }
            error => error,
        }),
    }
}

/// Whether a text can name a session: ID, or BUILD/ID.
fn is_session(text: &str) -> bool {
    let id = text.split_once('/').map_or(text, |(_, id)| id);
    SessionKey::from_id(BuildId::from_bytes([0; 16]), id).is_some()
}

/// Splits `s3://bucket/prefix/sessions/build/id?endpoint=…` into the store and the session as BUILD/ID.
fn split(text: &str) -> Result<(Place, String), CommandError> {
    let no_session = || LogError::NoSession(text.into());
    let (path, settings) = text.split_at(text.find('?').unwrap_or(text.len()));
    let folder = path.trim_end_matches('/');
    let folder = folder.strip_suffix("/log").unwrap_or(folder);
    let at = folder.rfind(&format!("/{SESSIONS}")).ok_or_else(no_session)?;
    let session = &folder[at + 1 + SESSIONS.len()..];
    if session.split('/').count() != 2 || !is_session(session) {
        return Err(no_session().into());
    }
    let place = Place::parse(&format!("{}{settings}", &folder[..at])).map_err(SessionsError::from)?;
    Ok((place, session.into()))
}

/// Opens the log of a session in a store.
fn open_kept(place: &Place, typed: &str) -> Result<LogFile, CommandError> {
    if let Place::Folder(folder) = place
        && !folder.is_dir()
    {
        return Err(LogError::NoStore(folder.clone()).into());
    }
    let store = place.open().map_err(SessionsError::from)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let key = runtime.block_on(key_of(&*store, typed))?;
    if let Place::Folder(folder) = place {
        let path = folder.join(key.log());
        match LogFile::open(&path) {
            // A session copied from S3 has its log in segments, or has none.
            Err(LogError::Open { error: OpenError::NotALog, .. } | LogError::Missing(_)) => {}
            opened => return Ok(opened?),
        }
    }
    let name = named(place, &key);
    let kept = runtime.block_on(fetch(&*store, &key, &name))?;
    Ok(LogFile::of_kept(name.into(), kept)?)
}

/// The key of a session. A full name needs no permission to list the other sessions.
async fn key_of(store: &dyn ObjectStore, typed: &str) -> Result<SessionKey, SessionsError> {
    let exact =
        typed.split_once('/').and_then(|(build, id)| SessionKey::from_id(BuildId::from_hex(build)?, id));
    match exact {
        Some(key) if store.head(&key.log()).await?.is_some() => Ok(key),
        _ => Ok(find(store, typed).await?.key),
    }
}

/// The full name of a session's place.
fn named(place: &Place, key: &SessionKey) -> String {
    let place = place.to_string();
    let (path, settings) = place.split_at(place.find('?').unwrap_or(place.len()));
    format!("{path}/{key}{settings}")
}

/// Reads the log and the save of a session.
async fn fetch(store: &dyn ObjectStore, key: &SessionKey, name: &str) -> Result<KeptLog, CommandError> {
    let damaged = |error: String| SessionsError::Damaged {
        session: key.id().into(),
        error: format!("its log: {error}"),
    };
    let files = ColdLog::new(store, key).read().await.map_err(|error| damaged(error.to_string()))?;
    let log = files.map(ColdFiles::joined).transpose().map_err(|error| damaged(error.to_string()))?;
    let log = log.flatten().ok_or_else(|| LogError::NoLog(name.into()))?;
    let save = match store.get(&key.save()).await {
        Ok(found) => found.map(|content| Ok(content.bytes.into())),
        Err(trouble) => Some(Err(trouble.to_string())),
    };
    Ok(KeptLog { log: log.into(), save })
}
