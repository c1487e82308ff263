//! A log in a file or in memory, with one readable error for everything that can be wrong with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sametick_sim::Tick;
use sametick_store::disk::{FsSource, Source};
use sametick_store::log::{Header, LogReader, OpenError, ReadError, Tail};
use sametick_store::saves::Save;

use crate::sessions::nearest;

/// The file name of the log in a session's folder.
const IN_FOLDER: &str = "log";

/// The file name of the save in the same folder.
const SAVE_BESIDE: &str = "save";

/// A log in a file, or read from an object store, open for reading.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    reader: LogReader<LogBytes>,
    /// Its bytes, if it was read from an object store.
    kept: Option<KeptLog>,
}

/// A session's files, read from an object store.
#[derive(Clone, Debug)]
pub(super) struct KeptLog {
    pub(super) log: Arc<[u8]>,
    /// `None` if there is no save; otherwise its bytes, or why they could not be read.
    pub(super) save: Option<Result<Arc<[u8]>, String>>,
}

/// The bytes of a log.
#[derive(Debug)]
pub enum LogBytes {
    /// In a file.
    File(FsSource),
    /// In memory.
    Memory(Arc<[u8]>),
}

impl Source for LogBytes {
    fn byte_len(&mut self) -> io::Result<u64> {
        match self {
            LogBytes::File(file) => file.byte_len(),
            LogBytes::Memory(bytes) => (&**bytes).byte_len(),
        }
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        match self {
            LogBytes::File(file) => file.read_at(offset, out),
            LogBytes::Memory(bytes) => (&**bytes).read_at(offset, out),
        }
    }
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no such file.
    #[error("{}: there is no such file", .0.display())]
    Missing(PathBuf),
    /// There is neither a file nor a session of that name.
    #[error("{}: there is no such file, and no such session in {store}{}", name.display(), nearest(near))]
    Neither {
        /// The name that was asked for.
        name: PathBuf,
        /// The store that was searched.
        store: String,
        /// Sessions in it with similar names.
        near: Vec<String>,
    },
    /// The name is no session's name.
    #[error(
        "{0}: that is no session; say s3://BUCKET/PREFIX/sessions/BUILD/ID, or ID --store s3://BUCKET/PREFIX"
    )]
    NoSession(String),
    /// The store does not exist.
    #[error("{}: there is no such folder, and so no sessions in it", .0.display())]
    NoStore(PathBuf),
    /// The session has no log.
    #[error("{0}: the session has no log there")]
    NoLog(String),
    /// The path is a folder without a log.
    #[error("{}: there is no log in this folder", .0.display())]
    Folder(PathBuf),
    /// The file is empty.
    #[error("{}: the file is empty; a log begins with its header", .0.display())]
    Empty(PathBuf),
    /// The file cannot be opened, or is no log.
    #[error("{}: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error.
        error: OpenError,
    },
    /// The file is neither a log nor a stream of events.
    #[error("{}: neither a log nor lines of JSON: line {line} is no object with a \"kind\"", path.display())]
    NoStream {
        /// The file.
        path: PathBuf,
        /// The first line that is no event, from 1.
        line: usize,
    },
    /// The log cannot be read to its end.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        error: ReadError,
    },
}

impl LogFile {
    /// Opens a log. A folder stands for the log in it: a relay keeps one folder for each session.
    pub fn open(path: &Path) -> Result<LogFile, LogError> {
        let inside = path.join(IN_FOLDER);
        let path = if inside.is_file() { &inside } else { path };
        look_at(path)?;
        let reader = FsSource::open(path).map_err(OpenError::from);
        let reader = reader.and_then(|file| LogReader::open(LogBytes::File(file)));
        let reader = reader.map_err(|error| LogError::Open { path: path.to_owned(), error })?;
        Ok(LogFile { path: path.to_owned(), reader, kept: None })
    }

    /// A log that was read from this place of an object store.
    pub(super) fn of_kept(place: PathBuf, kept: KeptLog) -> Result<LogFile, LogError> {
        let reader = LogReader::open(LogBytes::Memory(kept.log.clone()));
        let reader = reader.map_err(|error| LogError::Open { path: place.clone(), error })?;
        Ok(LogFile { path: place, reader, kept: Some(kept) })
    }

    /// Opens the same log a second time, for an independent reader.
    pub fn again(&self) -> Result<LogFile, LogError> {
        match &self.kept {
            Some(kept) => LogFile::of_kept(self.path.clone(), kept.clone()),
            None => LogFile::open(&self.path),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a file of this machine.
    pub fn is_file(&self) -> bool {
        self.kept.is_none()
    }

    /// The save in the same folder, if there is one, or why it cannot be read.
    pub fn save(&self) -> Option<Result<Save, String>> {
        let bytes = match &self.kept {
            Some(kept) => kept.save.clone()?,
            // A log of another name may lie in the same folder as an unrelated save.
            None if self.path.file_name()? != IN_FOLDER => return None,
            None => match fs::read(self.path.with_file_name(SAVE_BESIDE)) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                Err(error) => Err(error.to_string()),
            },
        };
        Some(bytes.and_then(|bytes| Save::from_bytes(&bytes).map_err(|bad| bad.to_string())))
    }

    /// The log's header.
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    /// The end of the log.
    pub fn tail(&self) -> Tail {
        self.reader.tail()
    }

    /// The last tick in the log.
    pub fn last_tick(&self) -> Tick {
        self.reader.tail().last_tick
    }

    /// The log's reader.
    pub fn reader(&mut self) -> &mut LogReader<LogBytes> {
        &mut self.reader
    }

    /// Converts a read error to one that names this file.
    pub fn damage(&self) -> impl Fn(ReadError) -> LogError + use<> {
        let path = self.path.clone();
        move |error| LogError::Read { path: path.clone(), error }
    }
}

/// Checks that a file can hold a log, before its bytes are parsed.
pub fn look_at(path: &Path) -> Result<(), LogError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(LogError::Folder(path.to_owned())),
        Ok(found) if found.is_file() && found.len() == 0 => Err(LogError::Empty(path.to_owned())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(LogError::Missing(path.to_owned())),
        Err(error) => Err(LogError::Open { path: path.to_owned(), error: error.into() }),
    }
}
