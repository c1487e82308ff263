//! `sametick log diff`: compares two logs, two streams of events, or one of each.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use sametick_sim::Tick;
use sametick_store::log::OpenError;
use sametick_store::log::diff::{self, Difference, Differences, StreamError};
use sametick_store::log::export::{self, ExportError};
use serde::Serialize;

use super::file::{LogError, LogFile, look_at};
use crate::cli::CommandError;
use crate::report::Count;

/// The magic bytes of every log.
const MAGIC: &[u8] = b"sametick-log";

/// The differences between two logs.
#[derive(Clone, Debug, Serialize)]
pub struct DiffReport {
    left: String,
    right: String,
    /// How many differences there are.
    pub count: u64,
    /// The first tick with a difference.
    first_tick: Option<u32>,
    /// Whether the headers name different schemas or builds: then nothing else can be expected to be equal.
    drift: bool,
    differences: Vec<OneDifference>,
}

#[derive(Clone, Debug, Serialize)]
struct OneDifference {
    /// `header`, `missing`, `different` or `reordered`.
    kind: &'static str,
    tick: Option<u32>,
    seat: Option<u16>,
    text: String,
}

/// Compares two files, each a log or a stream; with `to`, only up to that tick.
pub fn compare(
    left: &Path,
    right: &Path,
    to: Option<Tick>,
    limit: usize,
) -> Result<DiffReport, CommandError> {
    let found = match (is_log(left)?, is_log(right)?) {
        (true, true) => {
            let (mut ours, mut theirs) = (LogFile::open(left)?, LogFile::open(right)?);
            let damage = ours.damage();
            diff::logs(ours.reader(), theirs.reader(), to).map_err(damage)?
        }
        _ => {
            let name = |error| named(error, left, right);
            diff::streams(stream(left)?, stream(right)?, to).map_err(name)?
        }
    };
    Ok(report(left, right, &found, limit))
}

fn is_log(path: &Path) -> Result<bool, LogError> {
    if path.is_dir() {
        return LogFile::open(path).map(|_| true);
    }
    look_at(path)?;
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    read.map_err(|error| LogError::Open { path: path.to_owned(), error: error.into() })?;
    Ok(start == MAGIC)
}

/// The events of a file as lines of JSON.
fn stream(path: &Path) -> Result<Box<dyn BufRead>, CommandError> {
    if !is_log(path)? {
        return Ok(Box::new(BufReader::new(File::open(path)?)));
    }
    let mut log = LogFile::open(path)?;
    let (damage, mut lines) = (log.damage(), Vec::new());
    match export::jsonl(log.reader(), &mut lines) {
        Ok(()) => Ok(Box::new(Cursor::new(lines))),
        Err(ExportError::Read(error)) => Err(damage(error).into()),
        Err(ExportError::Write(error)) => Err(error.into()),
    }
}

/// The error about a file that is neither a log nor a stream, with the file's name.
fn named(error: StreamError, left: &Path, right: &Path) -> CommandError {
    let path = |side| if side == diff::Side::Left { left } else { right };
    match error {
        // Bytes that are not text are no lines of JSON either.
        StreamError::Io { side, error } if error.kind() == io::ErrorKind::InvalidData => {
            LogError::Open { path: path(side).to_owned(), error: OpenError::NotALog }.into()
        }
        StreamError::Io { side, error } => {
            LogError::Open { path: path(side).to_owned(), error: error.into() }.into()
        }
        StreamError::NotAnEvent { side, line } => {
            LogError::NoStream { path: path(side).to_owned(), line }.into()
        }
    }
}

fn report(left: &Path, right: &Path, found: &Differences, limit: usize) -> DiffReport {
    let drift = |difference: &Difference| matches!(difference, Difference::Header { field, .. } if field == "schema" || field == "build");
    DiffReport {
        left: left.display().to_string(),
        right: right.display().to_string(),
        count: found.count,
        first_tick: found.first_tick().map(|tick| tick.0),
        drift: found.first.iter().any(drift),
        differences: found.first.iter().take(limit).map(one).collect(),
    }
}

fn one(difference: &Difference) -> OneDifference {
    let (kind, event) = match difference {
        Difference::Header { .. } => ("header", None),
        Difference::Missing { event, .. } => ("missing", Some(event)),
        Difference::Different { left, .. } => ("different", Some(left)),
        Difference::Reordered { event, .. } => ("reordered", Some(event)),
    };
    let tick = event.and_then(|event| event.tick).map(|tick| tick.0);
    let seat = event.and_then(|event| event.seat).map(|seat| seat.0);
    OneDifference { kind, tick, seat, text: difference.to_string() }
}

impl fmt::Display for DiffReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DiffReport { left, right, count, .. } = self;
        if *count == 0 {
            return write!(f, "{left} and {right} hold the same events");
        }
        write!(f, "{left} and {right}: {}", Count(*count, "difference"))?;
        if let Some(tick) = self.first_tick {
            write!(f, ", first in tick {tick}")?;
        }
        if self.drift {
            write!(f, "\n  the builds or schemas are not the same: little else can be")?;
        }
        self.differences.iter().try_for_each(|one| write!(f, "\n  {}: {}", one.kind, one.text))?;
        let rest = count.saturating_sub(self.differences.len() as u64);
        if rest > 0 { write!(f, "\n  and {rest} more") } else { Ok(()) }
    }
}
