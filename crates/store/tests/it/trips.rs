//! Round trips of logs: read from the front, from any tick, and after a rewind.

use std::collections::BTreeMap;

use sametick_sim::Tick;
use sametick_store::log::{EncoderOptions, LogReader, Record, TickInputs};

use crate::sessions::{Wild, log_of};

pub const SMALL: EncoderOptions = EncoderOptions { frame_ticks: 7, group_ticks: 30 };

pub fn read_all(bytes: &[u8]) -> Vec<Record> {
    let mut reader = LogReader::open(bytes).unwrap();
    let mut records = reader.records();
    let mut all = vec![];
    while let Some(record) = records.next().unwrap() {
        all.push(record.clone());
    }
    all
}

/// The valid records, by the definition of a rewind.
fn holding(records: &[Record]) -> (BTreeMap<Tick, TickInputs>, Vec<Record>) {
    let (mut ticks, mut checks) = (BTreeMap::new(), vec![]);
    for record in records {
        match record {
            Record::Inputs(inputs) => drop(ticks.insert(inputs.tick(), inputs.clone())),
            Record::Check { .. } => checks.push(record.clone()),
            Record::Rewind { to } => {
                ticks.retain(|tick, _| tick <= to);
                checks.retain(|check| check.tick() <= Some(*to));
            }
            _ => {}
        }
    }
    (ticks, checks)
}

#[test]
fn written_records_are_read_back() {
    for seed in 0..300 {
        let records = Wild::records(seed, 150);
        let bytes = log_of(&records, SMALL);
        assert_eq!(read_all(&bytes), records, "seed {seed}");
        let mut reader = LogReader::open(&bytes[..]).unwrap();
        let summary = reader.verify().unwrap();
        let (ticks, checks) = holding(&records);
        assert_eq!(summary.records, records.len() as u64, "seed {seed}");
        assert_eq!(summary.ticks - summary.void_ticks, ticks.len() as u64, "seed {seed}");
        assert_eq!(reader.tail().ended, records.last() == Some(&Record::End), "seed {seed}");
        assert_eq!(reader.tail().last_tick.0, ticks.len() as u32, "seed {seed}");
        let read: Vec<Record> = reader
            .checks()
            .map(|check| check.unwrap())
            .map(|(tick, hash)| Record::Check { tick, hash })
            .collect();
        assert_eq!(read, checks, "seed {seed}");
    }
}

#[test]
fn reading_from_any_tick_finds_the_valid_ticks() {
    for seed in 0..20 {
        let records = Wild::records(seed, 120);
        let bytes = log_of(&records, SMALL);
        let (holds, _) = holding(&records);
        let mut reader = LogReader::open(&bytes[..]).unwrap();
        for from in 0..holds.len() as u32 + 3 {
            let mut ticks = reader.ticks_from(Tick(from));
            for expected in holds.range(Tick(from)..).map(|(_, inputs)| inputs) {
                assert_eq!(ticks.next().unwrap(), Some(expected), "seed {seed}, from {from}");
            }
            assert_eq!(ticks.next().unwrap(), None, "seed {seed}, from {from}");
            assert_eq!(reader.find(Tick(from)).is_some(), holds.contains_key(&Tick(from)));
        }
    }
}

#[test]
fn the_snapshot_to_start_from_is_a_valid_record() {
    for seed in 0..40 {
        let records = Wild::records(seed, 150);
        let bytes = log_of(&records, SMALL);
        let mut expected: Vec<Record> = vec![];
        for record in &records {
            match record {
                Record::Snapshot { .. } => expected.push(record.clone()),
                Record::Rewind { to } => expected.retain(|snapshot| snapshot.tick() <= Some(*to)),
                _ => {}
            }
        }
        let mut reader = LogReader::open(&bytes[..]).unwrap();
        let mut holding = reader.holding();
        let mut read = vec![];
        while let Some(record) = holding.next().unwrap() {
            assert!(!matches!(record, Record::Rewind { .. }));
            read.extend(matches!(record, Record::Snapshot { .. }).then(|| record.clone()));
        }
        assert_eq!(read, expected, "seed {seed}");
    }
}
