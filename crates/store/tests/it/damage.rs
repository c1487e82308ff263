//! A log that was cut or changed is recovered to the last valid frame, or refused; never taken for whole.

#![allow(clippy::disallowed_methods, reason = "the number of logs comes from the environment")]

use sametick_sim::Rng;
use sametick_store::log::{
    EncoderOptions, LogEncoder, LogReader, LogThread, LogThreadOptions, OpenError, ReadError, Record, Tail,
};

use crate::sessions::{Play, Sample, Wild, header, play};
use crate::trips::{SMALL, read_all};

/// The number of damaged logs, and the extent of the damage.
struct Extent {
    logs: u64,
    /// Each bit of so many bytes at the end, rounded up to whole frames, is flipped.
    tail_bytes: usize,
    /// How many of the logs are also damaged in files, which takes longer: each write is synced.
    files: usize,
}

/// In the test command; `SAMETICK_LOGS` sets another number of logs, with longer tails.
fn extent() -> Extent {
    match std::env::var("SAMETICK_LOGS") {
        Ok(number) => Extent { logs: number.parse().unwrap(), tail_bytes: 4096, files: usize::MAX },
        Err(_) => Extent { logs: 4, tail_bytes: 256, files: 1 },
    }
}

fn sample() -> Sample {
    let encoder = LogEncoder::new(&header()).unwrap().with_options(SMALL);
    Sample::of(encoder, None, &Wild::records(3, 90))
}

/// Logs of every kind: eventful ones in small frames, and one as a relay writes it.
fn samples() -> impl Iterator<Item = Sample> {
    let small = |seed| Sample::eventful(seed, SMALL);
    let played = || {
        let mut records = vec![];
        play(Play::Buttons, 4, 600, |record| records.push(record.clone()));
        Sample::of(LogEncoder::new(&header()).unwrap(), None, &records)
    };
    let large = Sample::eventful(1, EncoderOptions::at(60));
    [played(), large].into_iter().chain((0..extent().logs).map(small))
}

/// All readable records, and the number of torn bytes.
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

/// Checks that a log cut here keeps all whole frames before the cut.
fn check_cut(sample: &Sample, cut: usize) {
    match (read(&sample.bytes[..cut]), sample.valid_before(cut)) {
        (Ok((read, torn)), Some(valid)) => {
            assert_eq!(torn as usize, cut - valid, "cut at {cut}");
            assert!(sample.records.starts_with(&read), "cut at {cut}");
        }
        (Err(OpenError::NoHeader { bytes }), None) => assert_eq!(bytes, cut as u64),
        (result, _) => panic!("cut at {cut}: {:?}", result.map(|(_, torn)| torn)),
    }
}

#[test]
fn a_log_cut_at_any_byte_is_recovered_to_its_last_whole_frame() {
    let (mut logs, mut cuts) = (0, 0);
    for sample in samples() {
        (0..sample.bytes.len()).for_each(|cut| check_cut(&sample, cut));
        (logs, cuts) = (logs + 1, cuts + sample.bytes.len());
    }
    println!("{logs} logs cut at each of {cuts} bytes");
}

/// Checks that with this bit flipped, only the last frame is lost, or the damaged frame is named.
fn check_flip(sample: &mut Sample, bit: usize) {
    let byte = bit / 8;
    sample.bytes[byte] ^= 1 << (bit % 8);
    let result = read(&sample.bytes);
    sample.bytes[byte] ^= 1 << (bit % 8);
    let (last, frame) = (sample.ends[sample.ends.len() - 2], sample.valid_before(byte));
    match result {
        Ok((read, torn)) => {
            assert!(byte >= last, "bit {bit} is not in the last frame, and yet the log is taken");
            assert_eq!(torn as usize, sample.bytes.len() - last, "bit {bit}");
            assert!(sample.records.starts_with(&read), "bit {bit}");
        }
        Err(OpenError::Read(ReadError::Damaged { offset })) => {
            assert_eq!(offset as usize, frame.unwrap_or(14), "bit {bit}");
        }
        Err(OpenError::NotALog) => assert!(byte < 12),
        Err(OpenError::Version { .. }) => assert!((12..14).contains(&byte)),
        Err(error) => panic!("bit {bit}: {error}"),
    }
}

#[test]
fn a_flipped_bit_is_never_read_as_valid() {
    let mut whole = sample();
    (0..8 * whole.bytes.len()).for_each(|bit| check_flip(&mut whole, bit));
    let (mut logs, mut bits) = (1, 8 * whole.bytes.len());
    for mut sample in samples() {
        let tail = 8 * sample.tail(extent().tail_bytes)..8 * sample.bytes.len();
        (logs, bits) = (logs + 1, bits + tail.len());
        tail.for_each(|bit| check_flip(&mut sample, bit));
    }
    println!("{logs} logs, each of {bits} bits flipped");
}

/// Resumes a file of these bytes, writes the missing records, and returns how the log had ended; if it is refused, it
/// is unchanged.
fn go_on(
    log_thread: &LogThread,
    path: &std::path::Path,
    bytes: &[u8],
    sample: &Sample,
) -> Result<Tail, OpenError> {
    std::fs::write(path, bytes).unwrap();
    let resumed = log_thread.resume(path);
    let now = std::fs::read(path).unwrap();
    let (mut log, mut encoder, tail) = match resumed {
        Ok(resumed) => resumed,
        Err(error) => {
            assert!(now == bytes, "what is refused is left alone");
            return Err(error);
        }
    };
    assert!(now == bytes[..tail.valid_bytes as usize], "what is torn is cut, and no more");
    let rest = &sample.records[read_all(&now).len()..];
    rest.iter().for_each(|record| encoder.push(record).unwrap());
    encoder.flush();
    log.take_from(&mut encoder).unwrap();
    let (written, wait) = std::sync::mpsc::channel();
    log.after(move || written.send(()).unwrap());
    wait.recv().unwrap();
    assert!(read_all(&std::fs::read(path).unwrap()) == sample.records, "it goes on as if nothing had been");
    Ok(tail)
}

#[test]
fn a_cut_or_changed_file_is_resumed_or_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let log_thread = LogThread::start(LogThreadOptions::default());
    let (mut gone_on, mut refused) = (0, 0);
    for (number, sample) in samples().enumerate().skip(2).take(extent().files) {
        let [tail, last, _] = *sample.ends.last_chunk().unwrap();
        let mut file = 0..;
        // A file of its own each time: one that is open for writing cannot be replaced.
        let mut path = || folder.path().join(format!("{number}-{}", file.next().unwrap_or(0)));
        for cut in tail..sample.bytes.len() {
            let path = path();
            let found = go_on(&log_thread, &path, &sample.bytes[..cut], &sample).unwrap();
            assert_eq!(Some(found.valid_bytes as usize), sample.valid_before(cut), "cut at {cut}");
            std::fs::remove_file(path).unwrap();
            gone_on += 1;
        }
        // Every bit is flipped in memory; here one of each byte, varying from byte to byte.
        for byte in tail..sample.bytes.len() {
            let (path, mut bytes) = (path(), sample.bytes.clone());
            bytes[byte] ^= 1 << (byte % 8);
            match go_on(&log_thread, &path, &bytes, &sample) {
                Ok(found) => {
                    assert_eq!(found.valid_bytes as usize, last, "byte {byte}");
                    gone_on += 1;
                }
                Err(OpenError::Read(ReadError::Damaged { offset })) => {
                    assert_eq!(Some(offset as usize), sample.valid_before(byte), "byte {byte}");
                    refused += 1;
                }
                Err(error) => panic!("byte {byte}: {error}"),
            }
            std::fs::remove_file(path).unwrap();
        }
    }
    println!("{gone_on} files gone on with, {refused} refused");
    assert!(gone_on > 0 && refused > 0);
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
            // Nothing after the change is at its original offset, so all of it counts as a torn tail.
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
