//! `sametick log verify`: checks that a log is intact, and that its replay reaches the states its players had.

use std::fmt;

use serde::Serialize;

use super::LogFile;
use crate::cli::CommandError;
use crate::games::Games;
use crate::replay::{Keep, Playback, ReplayError};
use crate::report::Count;

/// The result of verifying a log.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The log's path.
    pub log: String,
    /// Whether everything before a torn tail is intact.
    pub structure: bool,
    /// The number of records.
    pub records: u64,
    /// The number of ticks.
    pub ticks: u64,
    /// How many bytes at the end belong to no complete record.
    pub torn_bytes: u64,
    /// Whether the session was ended.
    pub ended: bool,
    /// Whether it was replayed, because its build is known.
    pub replayed: bool,
    /// The tick of the save from which the replay began, if the log lacks its beginning; otherwise zero.
    pub replayed_from: u32,
    /// How many checks were compared.
    pub checks_compared: usize,
    /// The first check that does not match.
    pub first_bad: Option<String>,
    /// Why it was not replayed, and what to do.
    pub not_replayed_because: Option<String>,
}

/// Reads all of a log, and replays it if its game is among these.
pub fn verify(mut log: LogFile, games: &Games) -> Result<Verdict, CommandError> {
    let damage = log.damage();
    let summary = log.reader().verify().map_err(damage)?;
    let mut verdict = Verdict {
        log: log.path().display().to_string(),
        structure: true,
        records: summary.records,
        ticks: summary.ticks,
        torn_bytes: log.tail().torn_bytes,
        ended: log.tail().ended,
        replayed: false,
        replayed_from: 0,
        checks_compared: 0,
        first_bad: None,
        not_replayed_because: None,
    };
    let last = log.last_tick();
    match Playback::of(log, games, Keep::InMemory) {
        Ok(mut playback) => {
            verdict.replayed_from = playback.begins().0;
            playback.go_to(last)?;
            verdict.replayed = true;
            verdict.checks_compared = playback.checks_compared().unwrap_or(0);
            verdict.first_bad = playback.covered().first_bad.map(|bad| bad.to_string());
        }
        Err(ReplayError::Unknown { unknown, commit, .. }) => {
            let advice = crate::replay::advice(&commit, unknown.commit);
            verdict.not_replayed_because = Some(format!("{unknown}; {advice}"));
        }
        Err(error @ ReplayError::Part { .. }) => verdict.not_replayed_because = Some(error.to_string()),
        Err(error) => return Err(error.into()),
    }
    Ok(verdict)
}

impl Verdict {
    /// Whether no error was found.
    pub fn is_good(&self) -> bool {
        self.structure && self.torn_bytes == 0 && self.first_bad.is_none()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { log, records, ticks, torn_bytes, checks_compared, .. } = self;
        let end = if self.ended { "" } else { ", without an end" };
        writeln!(f, "{log}: {records} records of {ticks} ticks are as they were written{end}")?;
        if *torn_bytes > 0 {
            writeln!(f, "  TORN: {torn_bytes} bytes after them are not whole, and were not read")?;
        }
        match (&self.first_bad, &self.not_replayed_because) {
            (Some(bad), _) => write!(f, "  A CHECK DOES NOT MATCH: {bad}"),
            (None, None) => {
                let from = match self.replayed_from {
                    0 => String::new(),
                    tick => format!(" from the save of tick {tick} (the log lacks what was before)"),
                };
                let checks = Count(*checks_compared as u64, "check");
                write!(f, "  played again{from}: {checks} compared, all match")
            }
            (None, Some(why)) => write!(f, "  only the structure was verified: {why}"),
        }
    }
}
