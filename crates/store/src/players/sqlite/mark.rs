//! The mark file: records beside the database how far it has come, so that a database that is older, empty or gone is
//! known to have lost data, and how much.
//!
//! The mark is written after a batch is on disk, and never synced: after a kill or a power failure it may be behind the
//! database, but never ahead of it. It names its database: another file in its place is not taken for it.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{beside, now_unix_s};

/// The suffix of the file's name.
pub const ENDING: &str = "-mark";

/// The file is overwritten in place, so it always has this length: a checksum, JSON, then spaces.
const BYTES: usize = 512;

/// The id of a database.
pub type DatabaseId = [u8; 16];

/// The progress of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The id of the database.
    pub database: DatabaseId,
    /// The number of batches written to it.
    pub commits: u64,
    /// When this was written.
    pub unix_s: u64,
    /// The number of rows, in the order of the tables.
    pub rows: Vec<u64>,
}

impl Mark {
    /// Reads the mark of a database, if it is valid.
    pub fn read(path: &Path) -> Option<Mark> {
        let text = fs::read_to_string(beside(path, ENDING)).ok()?;
        let (crc, json) = text.split_once(' ')?;
        let json = json.trim_end();
        let is_whole = u32::from_str_radix(crc, 16) == Ok(crc32c::crc32c(json.as_bytes()));
        serde_json::from_str(json).ok().filter(|_| is_whole)
    }
}

/// The open mark file.
#[derive(Debug)]
pub struct MarkFile {
    file: File,
}

impl MarkFile {
    /// Opens or creates it. Only its owner may read it, as with the database.
    pub fn open(path: &Path) -> io::Result<MarkFile> {
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(MarkFile { file: options.open(beside(path, ENDING))? })
    }

    /// Records the database's progress. A failure is no error: an older mark claims less.
    pub fn write(&mut self, database: DatabaseId, commits: u64, rows: Vec<u64>) {
        let mark = Mark { database, commits, unix_s: now_unix_s(), rows };
        let json = serde_json::to_string(&mark).unwrap_or_default();
        let text = format!("{:08x} {json}", crc32c::crc32c(json.as_bytes()));
        let _ = self.file.rewind().and_then(|()| self.file.write_all(format!("{text:<BYTES$}").as_bytes()));
    }
}
