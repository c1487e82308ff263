//! A small file beside the database that says how far it has come: so that a database which is older than that, empty or gone is
//! known to have lost something, and how much.
//!
//! The mark is written after a batch is on disk, and never synced: it may be behind the database, after a kill or a power cut, but
//! never before it. It names the database it belongs to: another file in its place is not taken for a part of it.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{beside, now_unix_s};

/// What it is called, behind the name of the database.
pub const ENDING: &str = "-mark";

/// It is overwritten in place, so it always has this length: JSON behind a checksum, then spaces.
const BYTES: usize = 512;

/// Which database this is.
pub type DatabaseId = [u8; 16];

/// How far a database has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Which one.
    pub database: DatabaseId,
    /// How many batches were written to it.
    pub commits: u64,
    /// When this was written.
    pub unix_s: u64,
    /// How many rows there were, in the order of the tables.
    pub rows: Vec<u64>,
}

impl Mark {
    /// The mark of a database, if there is one that can be read.
    pub fn read(path: &Path) -> Option<Mark> {
        let text = fs::read_to_string(beside(path, ENDING)).ok()?;
        let (crc, json) = text.split_once(' ')?;
        let json = json.trim_end();
        let is_whole = u32::from_str_radix(crc, 16) == Ok(crc32c::crc32c(json.as_bytes()));
        serde_json::from_str(json).ok().filter(|_| is_whole)
    }
}

/// The file, open.
#[derive(Debug)]
pub struct MarkFile {
    file: File,
}

impl MarkFile {
    /// Opens it, or makes it. Only its owner may read it, as with the database.
    pub fn open(path: &Path) -> io::Result<MarkFile> {
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(MarkFile { file: options.open(beside(path, ENDING))? })
    }

    /// Says how far the database has come. It is no error if that fails: an older mark claims less.
    pub fn write(&mut self, database: DatabaseId, commits: u64, rows: Vec<u64>) {
        let mark = Mark { database, commits, unix_s: now_unix_s(), rows };
        let json = serde_json::to_string(&mark).unwrap_or_default();
        let text = format!("{:08x} {json}", crc32c::crc32c(json.as_bytes()));
        let _ = self.file.rewind().and_then(|()| self.file.write_all(format!("{text:<BYTES$}").as_bytes()));
    }
}
