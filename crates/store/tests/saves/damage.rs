//! Cold logs that were cut or changed in the store: reported by name, and never accepted as whole.

#![allow(clippy::disallowed_methods, reason = "the number of logs comes from the environment")]

use sametick_sim::{Rng, Tick};
use sametick_store::log::{EncoderOptions, LogEncoder, LogReader, TickInputs};
use sametick_store::saves::{
    ColdError, ColdFiles, ColdLog, Condition, MemoryStore, ObjectStore, Piece, SessionKey, at_once,
};

use crate::kit::key;
use crate::sessions::{Sample, drain, header};

const SMALL: EncoderOptions = EncoderOptions { frame_ticks: 7, group_ticks: 30 };

/// How many logs are damaged in the test command; `SAMETICK_LOGS` sets another number.
const LOGS: u64 = 4;

fn logs() -> u64 {
    std::env::var("SAMETICK_LOGS").map_or(LOGS, |number| number.parse().unwrap())
}

/// A log in segments of a few frames each, and where they begin.
fn segments(store: &MemoryStore, key: &SessionKey, sample: &Sample, rng: &mut Rng) -> Vec<String> {
    let (cold, mut keys, mut at) = (ColdLog::new(store, key), vec![], 0);
    for (number, &end) in sample.ends.iter().enumerate() {
        if end == sample.bytes.len() || rng.chance(1, 4) {
            let (first, bytes) = (Tick(number as u32), &sample.bytes[at..end]);
            let piece = Piece { at: at as u64, anew: false, first, ticks: 1, bytes };
            at_once(cold.append(piece)).unwrap();
            keys.push(key.segment(first, 0));
            at = end;
        }
    }
    keys
}

/// Replaces an object with other bytes.
fn spoil(store: &MemoryStore, key: &str, bytes: &[u8]) {
    let version = at_once(store.get(key)).unwrap().unwrap().version;
    at_once(store.put(key, bytes, Condition::Replaces(version), None)).unwrap();
}

/// The error for a log of which one object has other bytes.
fn said(key: &SessionKey, store: &MemoryStore, object: &str, bytes: &[u8]) -> ColdError {
    spoil(store, object, bytes);
    at_once(ColdLog::new(store, key).read()).expect_err("damage")
}

#[test]
fn a_cut_or_flipped_segment_or_manifest_is_named() {
    let (key, mut objects, mut damages) = (key(), 0, 0);
    for seed in 0..logs() {
        let (store, sample) = (MemoryStore::new(), Sample::eventful(seed, SMALL));
        let keys = segments(&store, &key, &sample, &mut Rng::new(seed));
        let last = keys.last().unwrap();
        for object in [last, &key.log()] {
            let whole = at_once(store.get(object)).unwrap().unwrap().bytes;
            let is_named = |error: &ColdError| match error {
                ColdError::Segment { key, .. } => key == last,
                ColdError::Manifest(_) => *object == key.log(),
                _ => false,
            };
            for cut in 0..whole.len() {
                let error = said(&key, &store, object, &whole[..cut]);
                assert!(is_named(&error), "{object} cut at {cut}: {error}");
            }
            for bit in 0..8 * whole.len() {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let error = said(&key, &store, object, &flipped);
                assert!(is_named(&error), "bit {bit} of {object}: {error}");
            }
            spoil(&store, object, &whole);
            (objects, damages) = (objects + 1, damages + 9 * whole.len());
        }
        let files = at_once(ColdLog::new(&store, &key).read()).unwrap().unwrap();
        assert!(files.files == [sample.bytes], "seed {seed}: as it was");
    }
    println!("{objects} objects cut or changed in {damages} ways");
}

/// The log of a sample after a tick, by a relay that had lost the file.
fn continued(sample: &Sample, last: u32) -> Option<Vec<u8>> {
    let middle = sample.records.iter().rposition(|record| record.tick() == Some(Tick(last)))? + 1;
    let (before, after) = sample.records.split_at(middle);
    let before = Sample::of(LogEncoder::new(&header()).unwrap(), None, before);
    let position = LogReader::open(&before.bytes[..]).unwrap().verify().unwrap().position;
    if position.next_tick() != Tick(last + 1) {
        return None;
    }
    let mut encoder = LogEncoder::continued(&header(), position).unwrap();
    // A rewind to before its beginning cannot be in it.
    after.iter().try_for_each(|record| encoder.push(record)).ok()?;
    encoder.flush();
    Some(drain(&mut encoder))
}

#[test]
fn two_logs_are_joined_wherever_the_first_was_cut() {
    let (mut joined, mut alone, mut refused) = (0, 0, 0);
    for seed in 0..logs() {
        let sample = Sample::eventful(seed, SMALL);
        let Some(second) = (20..70).find_map(|last| continued(&sample, last)) else { continue };
        let first_tick = LogReader::open(&second[..]).unwrap().header().first_tick;
        let last_tick = LogReader::open(&second[..]).unwrap().tail().last_tick;
        for cut in 0..=sample.bytes.len() {
            let first = sample.bytes[..cut].to_vec();
            let log = match (ColdFiles { files: vec![first, second.clone()] }).joined() {
                Ok(log) => log.unwrap(),
                Err(ColdError::Open(_)) if sample.valid_before(cut).is_none() => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("seed {seed}, cut at {cut}: {error}"),
            };
            let mut reader = LogReader::open(&log[..]).unwrap();
            assert_eq!((reader.tail().last_tick, reader.tail().torn_bytes), (last_tick, 0));
            let begins = reader.header().first_tick;
            let mut ticks = reader.ticks();
            for tick in begins.0..=last_tick.0 {
                assert_eq!(ticks.next().unwrap().map(TickInputs::tick), Some(Tick(tick)), "cut at {cut}");
            }
            assert!(begins == Tick(1) || begins == first_tick && log == second, "seed {seed}, cut at {cut}");
            *(if begins == Tick(1) { &mut joined } else { &mut alone }) += 1;
        }
    }
    println!("{joined} became one, {alone} times something is missing in between, {refused} were no log");
    assert!(joined > 0 && alone > 0 && refused > 0);
}
