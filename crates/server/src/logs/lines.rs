//! Formats records of a log as lines of text.

use sametick_sim::Row;
use sametick_sim::record::{Record, TickInputs};
use sametick_store::log::Header;
use sametick_store::log::export::hex;

use crate::games::AnyGame;

/// A record on one line: tick, kind, and its content beyond what the header has.
pub fn line(record: &Record, header: &Header, game: Option<&dyn AnyGame>) -> String {
    let tick = record.tick().map_or(String::new(), |tick| tick.to_string());
    let seat = record.seat().map_or(String::new(), |seat| format!("seat {seat} "));
    let detail = match record {
        Record::Joined { name, commit, .. } if *commit == header.commit => format!("{name:?}"),
        Record::Joined { name, commit, .. } => format!("{name:?} of commit {commit}"),
        Record::Inputs(inputs) => rows(inputs, game),
        Record::Check { hash, .. } | Record::Dissent { hash, .. } => hash.to_string(),
        Record::Snapshot { hash, place, .. } => format!("{hash} in {place}"),
        Record::Rewind { .. } => "everything after this tick is void".into(),
        Record::Resumed { unix_ms } => utc(*unix_ms),
        Record::Left { .. } | Record::Desync { .. } | Record::Dispute { .. } | Record::End => String::new(),
    };
    format!("{tick:>8}  {:<9} {seat}{detail}", record.kind()).trim_end().to_owned()
}

/// The inputs of every seat: `0: 4, 1: late`.
pub fn rows(inputs: &TickInputs, game: Option<&dyn AnyGame>) -> String {
    let rows: Vec<String> =
        inputs.iter().map(|row| format!("{}: {}", row.seat, of_row(&row, game))).collect();
    if rows.is_empty() { "nobody is there".into() } else { rows.join(", ") }
}

/// The input of one seat.
pub fn of_row(row: &Row<&[u8]>, game: Option<&dyn AnyGame>) -> String {
    let input = match row.input {
        Some(bytes) => input(bytes, game),
        None if row.is_omitted() => "late".into(),
        None => "nothing".into(),
    };
    let joined = if row.joined { "joined, " } else { "" };
    let left = if row.left { ", left" } else { "" };
    format!("{joined}{input}{left}")
}

/// An input as its game shows it, or as bytes.
fn input(bytes: &[u8], game: Option<&dyn AnyGame>) -> String {
    let shown = game.and_then(|game| game.input_to_json(bytes).ok());
    shown.unwrap_or_else(|| format!("0x{}", hex(bytes)))
}

/// Unix time in readable form.
pub fn utc(unix_ms: u64) -> String {
    let seconds = i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX);
    match time::OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(at) => {
            let (hour, minute, second) = at.to_hms();
            format!("{} {hour:02}:{minute:02}:{second:02} UTC", at.date())
        }
        Err(_) => format!("{seconds} s of Unix time"),
    }
}
