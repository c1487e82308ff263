//! A log that was cut or changed is recovered to the last valid frame, or refused; never taken for whole.

use sametick_sim::Rng;
use sametick_store::log::{LogEncoder, LogReader, OpenError, ReadError, Record};

use crate::sessions::{Wild, header, log_of};
use crate::trips::SMALL;

struct Sample {
    records: Vec<Record>,
    bytes: Vec<u8>,
    /// Where frames end.
    ends: Vec<usize>,
}

fn sample() -> Sample {
    let records = Wild::records(3, 90);
    let bytes = log_of(&records, SMALL);
    let mut encoder = LogEncoder::new(&header()).unwrap().with_options(SMALL);
    records.iter().for_each(|record| encoder.push(record).unwrap());
    encoder.flush();
    let (mut ends, mut frame) = (vec![], vec![]);
    while let Some(info) = encoder.poll_frame(&mut frame) {
        ends.push(info.offset as usize + frame.len());
    }
    assert_eq!(ends.last(), Some(&bytes.len()));
    Sample { records, bytes, ends }
}

/// Everything that can be read, and how many bytes were torn off.
fn read(bytes: &[u8]) -> Result<(Vec<Record>, u64), OpenError> {
    let mut reader = LogReader::open(bytes)?;
    let torn = reader.tail().torn_bytes;
    assert_eq!(reader.tail().valid_bytes + torn, bytes.len() as u64);
    let mut all = vec![];
    let mut records = reader.records();
    while let Some(record) = records.next()? {
        all.push(record.clone());
    }
    Ok((all, torn))
}

#[test]
fn a_log_cut_at_any_byte_is_recovered_to_its_last_whole_frame() {
    let Sample { records, bytes, ends } = sample();
    for cut in 0..bytes.len() {
        match read(&bytes[..cut]) {
            Ok((read, torn)) => {
                let valid = ends.iter().rev().find(|&&end| end <= cut).unwrap();
                assert_eq!(torn as usize, cut - valid, "cut at {cut}");
                assert!(records.starts_with(&read), "cut at {cut}");
            }
            Err(OpenError::NoHeader { bytes }) => assert!(cut < ends[0] && bytes == cut as u64),
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
}

#[test]
fn a_flipped_bit_is_never_taken_for_what_was_written() {
    let Sample { records, mut bytes, ends } = sample();
    let last = ends[ends.len() - 2];
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let result = read(&bytes);
        bytes[bit / 8] ^= 1 << (bit % 8);
        match result {
            Ok((read, torn)) => {
                assert!(bit / 8 >= last, "bit {bit} is not in the last frame, and yet the log is taken");
                assert_eq!(torn as usize, bytes.len() - last, "bit {bit}");
                assert!(records.starts_with(&read), "bit {bit}");
            }
            Err(OpenError::Read(ReadError::Damaged { offset })) => {
                let frame = ends.iter().rev().find(|&&end| end <= bit / 8).copied();
                assert_eq!(offset as usize, frame.unwrap_or(14), "bit {bit}");
            }
            Err(OpenError::NotALog) => assert!(bit / 8 < 12),
            Err(OpenError::Version { .. }) => assert!((12..14).contains(&(bit / 8))),
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
}

#[test]
fn garbage_after_the_end_is_cut_off() {
    let Sample { records, bytes, .. } = sample();
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let zeros = rng.chance(1, 3);
        let mut longer = bytes.clone();
        let garbage = 1 + rng.below(20_000);
        longer.extend((0..garbage).map(|_| if zeros { 0 } else { rng.next_u64() as u8 }));
        assert_eq!(read(&longer).unwrap(), (records.clone(), garbage), "seed {seed}");
    }
}

#[test]
fn more_than_a_frame_after_the_end_is_not_a_torn_tail() {
    let Sample { bytes, .. } = sample();
    let longer = [&bytes[..], &[0; 300_000]].concat();
    let result = LogReader::open(&longer[..]).map(|reader| reader.tail());
    let Err(OpenError::Read(ReadError::Damaged { offset })) = result else { panic!("{result:?}") };
    assert_eq!(offset, bytes.len() as u64);
}

#[test]
fn frames_that_are_missing_moved_or_repeated_are_noticed() {
    let Sample { bytes, ends, .. } = sample();
    for pair in ends.windows(2).rev().skip(1) {
        let (start, end) = (pair[0], pair[1]);
        let missing = [&bytes[..start], &bytes[end..]].concat();
        let repeated = [&bytes[..end], &bytes[start..]].concat();
        for changed in [missing, repeated] {
            // Nothing after the change is where it was written, so all of it is taken for a torn tail.
            match LogReader::open(&changed[..]) {
                Ok(reader) => assert!(reader.tail().torn_bytes > 0, "frame at {start}"),
                Err(error) => panic!("frame at {start}: {error}"),
            }
        }
    }
}

#[test]
fn any_bytes_are_refused_or_understood() {
    let Sample { bytes, .. } = sample();
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let mut changed = bytes.clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(changed.len() as u64) as usize;
            let until = (at + rng.below(40) as usize).min(changed.len());
            match rng.below(3) {
                0 => changed[at..until].fill(0),
                1 => drop(changed.drain(at..until)),
                _ => changed[at..until].iter_mut().for_each(|byte| *byte = rng.next_u64() as u8),
            }
        }
        if let Ok((_, torn)) = read(&changed) {
            assert!(torn > 0 || bytes.starts_with(&changed), "seed {seed}");
        }
    }
}
