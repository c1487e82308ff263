//! Exports a log as lines of JSON: one object per record, with stable field names.
//!
//! The first line is the header (`"kind":"header"`); every other has a `kind`, and where it applies `tick` and `seat`.
//! Bytes and hashes are hexadecimal.

use std::io::{self, Write};

use sametick_sim::{Restored, Row};
use serde_json::{Map, Value, json};

use crate::disk::Source;

use super::header::Header;
use super::reader::{LogReader, ReadError};
use sametick_sim::record::{Record, TickInputs};

/// Why an export stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The lines cannot be written.
    #[error("the export cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// Writes the header and every record, void ones and rewinds included, one line of JSON each.
pub fn jsonl<S: Source>(reader: &mut LogReader<S>, out: &mut impl Write) -> Result<(), ExportError> {
    let header = header_to_json(reader.header());
    writeln!(out, "{header}")?;
    let mut records = reader.records();
    while let Some(record) = records.next()? {
        writeln!(out, "{}", record_to_json(record))?;
    }
    Ok(())
}

/// Converts the header to an object.
pub fn header_to_json(header: &Header) -> Value {
    json!({
        "kind": "header",
        "game": header.game,
        "build": header.build.to_string(),
        "commit": header.commit,
        "schema": header.schema.to_string(),
        "setup": hex(&header.setup),
        "seed": header.seed,
        "rate_hz": header.rate.per_second(),
        "seats": header.seats,
        "session": header.session,
        "listed": header.listed,
        "started_unix_ms": header.started_unix_ms,
        "first_tick": header.first_tick.0,
    })
}

/// Converts a record to an object.
pub fn record_to_json(record: &Record) -> Value {
    let mut object = Map::new();
    object.insert("kind".into(), record.kind().into());
    if let Some(tick) = record.tick() {
        object.insert("tick".into(), tick.0.into());
    }
    if let Some(seat) = record.seat() {
        object.insert("seat".into(), seat.0.into());
    }
    let mut put = |name: &str, value: Value| drop(object.insert(name.into(), value));
    match record {
        Record::Joined { name, commit, .. } => {
            put("name", name.as_str().into());
            put("commit", commit.as_str().into());
        }
        Record::Inputs(inputs) => {
            put("rows", rows_to_json(inputs));
            if inputs.brought().next().is_some() {
                put("brought", inputs.brought().map(|brought| brought_to_json(&brought)).collect());
            }
        }
        Record::Check { hash, .. } | Record::Dissent { hash, .. } => put("hash", hash.to_string().into()),
        Record::Snapshot { hash, place, .. } => {
            put("hash", hash.to_string().into());
            put("place", place.as_str().into());
        }
        Record::Resumed { unix_ms } => put("unix_ms", (*unix_ms).into()),
        _ => {}
    }
    Value::Object(object)
}

fn rows_to_json(inputs: &TickInputs) -> Value {
    inputs.iter().map(|row| row_to_json(&row)).collect()
}

/// `{"seat":0,"input":"07"}`; without an `input` it was omitted. `joined` and `left` only where true.
fn row_to_json(row: &Row<&[u8]>) -> Value {
    let mut object = Map::new();
    object.insert("seat".into(), row.seat.0.into());
    for (name, value) in [("joined", row.joined), ("left", row.left)] {
        if value {
            object.insert(name.into(), true.into());
        }
    }
    if let Some(input) = row.input {
        object.insert("input".into(), hex(input).into());
    }
    Value::Object(object)
}

/// `{"whose":"player","seat":0,"bytes":"07"}`; an item of the room has no seat.
fn brought_to_json(brought: &Restored<&[u8]>) -> Value {
    let mut object = Map::new();
    object.insert("whose".into(), brought.owner.name().into());
    if let Some(seat) = brought.owner.seat() {
        object.insert("seat".into(), seat.0.into());
    }
    object.insert("bytes".into(), hex(brought.bytes).into());
    Value::Object(object)
}

/// Encodes bytes in hexadecimal, as exports do.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
