//! A log in a file, and everything that can be wrong with one, in a sentence that names it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sametick_sim::Tick;
use sametick_store::disk::FsSource;
use sametick_store::log::{Header, LogReader, OpenError, ReadError, Tail};

/// The name of the log in the folder of a session.
const IN_FOLDER: &str = "log";

/// A log in a file, open for reading.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    reader: LogReader<FsSource>,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no such file.
    #[error("{}: there is no such file", .0.display())]
    Missing(PathBuf),
    /// It is a folder.
    #[error("{}: there is no log in this folder", .0.display())]
    Folder(PathBuf),
    /// It has no bytes.
    #[error("{}: the file is empty; a log begins with its header", .0.display())]
    Empty(PathBuf),
    /// It cannot be opened, or is no log.
    #[error("{}: {error}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: OpenError,
    },
    /// It is neither a log nor a stream of events.
    #[error("{}: neither a log nor lines of JSON: line {line} is no object with a \"kind\"", path.display())]
    NoStream {
        /// Which.
        path: PathBuf,
        /// The first line that is none, from 1.
        line: usize,
    },
    /// It cannot be read to its end.
    #[error("{}: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: ReadError,
    },
}

impl LogFile {
    /// Opens a log. A folder means the log in it, for a relay keeps one folder for each session.
    pub fn open(path: &Path) -> Result<LogFile, LogError> {
        let inside = path.join(IN_FOLDER);
        let path = if inside.is_file() { &inside } else { path };
        look_at(path)?;
        let reader = LogReader::open_file(path);
        let reader = reader.map_err(|error| LogError::Open { path: path.to_owned(), error })?;
        Ok(LogFile { path: path.to_owned(), reader })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is said once about the session.
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    /// How it ends.
    pub fn tail(&self) -> Tail {
        self.reader.tail()
    }

    /// The last tick that is there.
    pub fn last_tick(&self) -> Tick {
        self.reader.tail().last_tick
    }

    /// To read it.
    pub fn reader(&mut self) -> &mut LogReader<FsSource> {
        &mut self.reader
    }

    /// For whatever goes wrong while it is read.
    pub fn damage(&self) -> impl Fn(ReadError) -> LogError + use<> {
        let path = self.path.clone();
        move |error| LogError::Read { path: path.clone(), error }
    }
}

/// Says what is wrong with a file before anybody tries to make sense of its bytes.
pub fn look_at(path: &Path) -> Result<(), LogError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(LogError::Folder(path.to_owned())),
        Ok(found) if found.is_file() && found.len() == 0 => Err(LogError::Empty(path.to_owned())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(LogError::Missing(path.to_owned())),
        Err(error) => Err(LogError::Open { path: path.to_owned(), error: error.into() }),
    }
}
