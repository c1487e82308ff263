//! Test harness: generated sessions, and the logs that a relay would have written of them.

use std::path::{Path, PathBuf};

use sametick::games::{AnyGame, Rehearsal};
use sametick_sim::record::{Record, TickInputs};
use sametick_sim::{Row, Seat, Tick};
use sametick_store::disk::{FsDisk, MemDisk};
use sametick_store::log::{Header, LogEncoder, LogReader, LogWriter};

/// The header of a session of a game.
pub fn header(game: &dyn AnyGame, rehearsal: &Rehearsal) -> Header {
    Header {
        commit: "0123456789abcdef0123456789abcdef01234567".into(),
        started_unix_ms: 1_763_188_200_000,
        ..rehearsal.header(game, "den")
    }
}

/// The bytes of a log of these records.
pub fn bytes(header: &Header, records: &[Record]) -> Vec<u8> {
    let mut log = LogWriter::new(MemDisk::new(), header).unwrap();
    records.iter().for_each(|record| log.push(record).unwrap());
    log.flush().unwrap();
    log.disk().bytes().to_vec()
}

/// Writes a log of these records.
pub fn write(path: &Path, header: &Header, records: &[Record]) {
    std::fs::write(path, bytes(header, records)).unwrap();
}

/// Appends records to a log.
pub fn append(path: &Path, header: &Header, records: &[Record]) {
    let existing = std::fs::read(path).unwrap();
    let position = LogReader::open(&existing[..]).unwrap().verify().unwrap().position;
    let encoder = LogEncoder::resume(header, position);
    let mut log = LogWriter::with_encoder(FsDisk::open(path).unwrap(), encoder, &existing);
    records.iter().for_each(|record| log.push(record).unwrap());
    log.flush().unwrap();
}

/// A whole session of a game in a file.
pub fn session(folder: &Path, name: &str, game: &dyn AnyGame, seed: u64, ticks: u32) -> PathBuf {
    let rehearsal = game.rehearse(seed, ticks).unwrap();
    let path = folder.join(name);
    write(&path, &header(game, &rehearsal), &rehearsal.records(game));
    path
}

/// The same inputs with a seat's input replaced or added.
pub fn with_input(inputs: &TickInputs, seat: Seat, input: &[u8]) -> TickInputs {
    let mut changed = TickInputs::new();
    changed.set(
        inputs.tick(),
        inputs.iter().map(|row| if row.seat == seat { Row { input: Some(input), ..row } } else { row }),
    );
    changed
}

/// The inputs of a tick, to change them.
pub fn inputs_of(records: &mut [Record], tick: Tick) -> &mut TickInputs {
    let found = records.iter_mut().find_map(|record| match record {
        Record::Inputs(inputs) if inputs.tick() == tick => Some(inputs),
        _ => None,
    });
    found.expect("the tick is in the log")
}
