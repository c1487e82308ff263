//! Whatever a disk does, the durable part is whole, and recording continues when the disk works again.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sametick_sim::{Rng, Tick};
use sametick_store::disk::{Disk, FsDisk, MemDisk};
use sametick_store::log::{
    Appender, LogEncoder, LogEvent, LogReader, LogThread, LogThreadOptions, LogWriter, Record, Refused,
    WriteError, repair,
};

use crate::sessions::{Wild, drain, header, log_of};
use crate::trips::{SMALL, read_all};

fn writer(disk: MemDisk) -> LogWriter<MemDisk> {
    LogWriter::with_encoder(disk, LogEncoder::new(&header()).unwrap().with_options(SMALL), &[])
}

#[test]
fn a_disk_that_fills_up_and_fails_to_sync_loses_nothing() {
    for seed in 0..60 {
        let records = Wild::records(seed, 120);
        let mut rng = Rng::new(seed);
        let mut log = writer(MemDisk::new());
        let mut failures = 0;
        for record in &records {
            match rng.below(40) {
                0 => {
                    let used = log.disk().bytes().len();
                    log.disk_mut().set_capacity(Some(used + rng.below(30) as usize));
                }
                1 => log.disk_mut().fail_syncs(1 + rng.below(3) as u32),
                2 => log.disk_mut().set_capacity(None),
                _ => {}
            }
            match log.push(record) {
                Ok(()) => {}
                Err(WriteError::Disk(_)) => failures += 1,
                Err(error) => panic!("seed {seed}: {error}"),
            }
            let durable = LogReader::open(log.disk().synced()).map(|reader| reader.tail().torn_bytes);
            assert!(matches!(durable, Ok(0)) || log.disk().synced().is_empty(), "seed {seed}: {durable:?}");
        }
        log.disk_mut().set_capacity(None);
        log.disk_mut().fail_syncs(0);
        log.flush().unwrap();
        assert!(failures > 0, "seed {seed}: nothing failed");
        assert!(log.disk().bytes() == log_of(&records, SMALL), "seed {seed}");
    }
}

#[test]
fn after_a_crash_the_log_resumes_at_the_last_sync() {
    for seed in 0..60 {
        let records = Wild::records(seed, 120);
        let mut rng = Rng::new(seed);
        let crash_at = rng.below(records.len() as u64) as usize;
        let mut log = writer(MemDisk::new());
        records[..crash_at].iter().for_each(|record| log.push(record).unwrap());
        let durable = log.durable_tick();
        let mut disk = log.disk().clone();
        // Part of a frame was being written.
        let torn: Vec<u8> = (0..rng.below(30)).map(|_| rng.next_u64() as u8).collect();
        disk.append(&torn).unwrap();
        disk.crash(rng.below(31) as usize);

        let (tail, header, position) = {
            let mut reader = LogReader::open(disk.bytes()).unwrap();
            let position = reader.verify().unwrap().position;
            (reader.tail(), reader.header().clone(), position)
        };
        assert!(
            durable.is_none_or(|tick| tick == tail.last_tick),
            "seed {seed}: an acknowledged tick is gone"
        );
        let kept = disk.bytes()[..tail.valid_bytes as usize].to_vec();
        disk.recover(tail.valid_bytes, crc32c::crc32c(&kept)).unwrap();
        let before = read_all(disk.bytes());
        let mut log = LogWriter::resume(disk, &header, position, &kept);
        let rest = &records[before.len()..];
        rest.iter().for_each(|record| log.push(record).unwrap());
        log.flush().unwrap();
        assert_eq!(read_all(log.disk().bytes()), records, "seed {seed}");
        LogReader::open(log.disk().bytes()).unwrap().verify().unwrap();
    }
}

#[test]
fn a_segment_goes_on_where_another_file_ended() {
    let records = Wild::records(5, 100);
    let middle = records.iter().rposition(|record| record.tick() == Some(Tick(60))).unwrap() + 1;
    let first = log_of(&records[..middle], SMALL);
    let mut reader = LogReader::open(&first[..]).unwrap();
    let position = reader.verify().unwrap().position;
    let mut encoder = LogEncoder::continued(reader.header(), position).unwrap().with_options(SMALL);
    records[middle..].iter().for_each(|record| encoder.push(record).unwrap());
    encoder.flush();
    let second = drain(&mut encoder);
    assert_eq!([read_all(&first), read_all(&second)].concat(), records);
    assert_eq!(LogReader::open(&second[..]).unwrap().header().first_tick, reader.tail().last_tick.next());
}

#[test]
fn a_file_with_a_torn_tail_is_resumed_by_a_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let records = Wild::records(9, 200);
    let log_thread = LogThread::start(LogThreadOptions::default());
    let (mut file, mut encoder) = log_thread.create(&path, &header()).unwrap();
    for record in &records[..records.len() / 2] {
        encoder.push(record).unwrap();
        file.take_from(&mut encoder).unwrap();
    }
    encoder.flush();
    file.take_from(&mut encoder).unwrap();
    assert!(log_thread.close() && file.poll_event().is_none());

    let whole = std::fs::read(&path).unwrap();
    let log_thread = LogThread::start(LogThreadOptions::default());
    let (mut file, mut encoder) = log_thread.create(&path, &header()).unwrap();
    encoder.flush();
    file.take_from(&mut encoder).unwrap();
    assert!(!log_thread.close());
    assert!(matches!(file.poll_event(), Some(LogEvent::Failing(_))), "a log is never overwritten");
    assert!(std::fs::read(&path).unwrap() == whole);

    let log_thread = LogThread::start(LogThreadOptions::default());
    std::fs::write(&path, [&whole[..], b"torn"].concat()).unwrap();
    let (mut file, mut encoder, tail) = log_thread.resume(&path).unwrap();
    assert_eq!((tail.torn_bytes, tail.valid_bytes), (4, whole.len() as u64));
    for record in &records[records.len() / 2..] {
        encoder.push(record).unwrap();
    }
    encoder.flush();
    file.take_from(&mut encoder).unwrap();
    drop((file, log_thread));
    assert_eq!(read_all(&std::fs::read(&path).unwrap()), records);
    assert_eq!(repair(&path).unwrap().torn_bytes, 0);
}

#[test]
fn a_failing_file_is_opened_again_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut disk = FsDisk::create(&path).unwrap();
    disk.append(b"durable, and then unknown").unwrap();
    assert!(disk.recover(7, 1).is_err(), "what was written before is not what it was");
    disk.recover(7, crc32c::crc32c(b"durable")).unwrap();
    disk.append(b" again").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"durable again");
}

#[test]
fn a_full_disk_is_reported_once_and_the_owner_never_waits() {
    let mut full = MemDisk::new();
    full.set_capacity(Some(10));
    let options = LogThreadOptions { max_waiting_frames: 3, retry: Duration::from_millis(1) };
    let log_thread = LogThread::start(options);
    let mut log = log_thread.begin(move || Ok(Appender::new(full.clone(), &[])));
    let mut encoder = LogEncoder::new(&header()).unwrap().with_options(SMALL);
    let mut refused = false;
    for record in &Wild::records(1, 400) {
        encoder.push(record).unwrap();
        refused |= log.take_from(&mut encoder) == Err(Refused);
    }
    assert!(refused && log.durable_tick().is_none());
    assert!(!log_thread.close());
    let events: Vec<LogEvent> = std::iter::from_fn(|| log.poll_event()).collect();
    assert!(matches!(events[..], [LogEvent::Failing(_)]), "{events:?}");
}

/// A disk that the test controls.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<MemDisk>>);

impl Disk for Held {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.lock().unwrap().sync()
    }

    fn recover(&mut self, len: u64, crc: u32) -> io::Result<()> {
        self.0.lock().unwrap().recover(len, crc)
    }
}

#[test]
fn recording_goes_on_when_there_is_space_again() {
    let disk = Held::default();
    disk.0.lock().unwrap().set_capacity(Some(300));
    let options = LogThreadOptions { max_waiting_frames: 1000, retry: Duration::from_millis(1) };
    let log_thread = LogThread::start(options);
    let under = disk.clone();
    let mut log = log_thread.begin(move || Ok(Appender::new(under.clone(), &[])));
    let mut encoder = LogEncoder::new(&header()).unwrap().with_options(SMALL);
    let records = Wild::records(4, 200);
    for record in &records {
        encoder.push(record).unwrap();
        log.take_from(&mut encoder).unwrap();
    }
    encoder.flush();
    log.take_from(&mut encoder).unwrap();
    let trouble = loop {
        match log.poll_event() {
            Some(event) => break event,
            None => std::thread::yield_now(),
        }
    };
    assert!(matches!(trouble, LogEvent::Failing(error) if error.kind() == io::ErrorKind::StorageFull));
    disk.0.lock().unwrap().set_capacity(None);
    assert!(log_thread.close());
    let events: Vec<LogEvent> = std::iter::from_fn(|| log.poll_event()).collect();
    assert!(matches!(events[..], [LogEvent::Recovered]), "{events:?}");
    assert!(disk.0.lock().unwrap().synced() == log_of(&records, SMALL));
}

#[test]
fn a_record_out_of_order_is_refused_and_changes_nothing() {
    let records = Wild::records(2, 80);
    let mut encoder = LogEncoder::new(&header()).unwrap().with_options(SMALL);
    for record in &records {
        if let Some(tick) = record.tick() {
            assert!(
                encoder.push(&Record::Check { tick: tick + 500, hash: sametick_sim::StateHash(0) }).is_err()
            );
            assert!(encoder.push(&Record::Rewind { to: tick + 500 }).is_err());
        }
        let again = matches!(record, Record::Joined { .. } | Record::Left { .. } | Record::Inputs(_));
        encoder.push(record).unwrap();
        assert!(!again || encoder.push(record).is_err(), "{record:?} twice");
    }
    encoder.flush();
    assert!(drain(&mut encoder) == log_of(&records, SMALL));
}

#[test]
fn a_bad_disk_does_not_delay_the_other_logs_of_a_thread() {
    let log_thread =
        LogThread::start(LogThreadOptions { max_waiting_frames: 1000, retry: Duration::from_millis(1) });
    let disks: Vec<Held> = (0..20).map(|_| Held::default()).collect();
    disks[7].0.lock().unwrap().set_capacity(Some(0));
    let records = Wild::records(12, 60);
    for disk in &disks {
        let under = disk.clone();
        let mut log = log_thread.begin(move || Ok(Appender::new(under.clone(), &[])));
        let mut encoder = LogEncoder::new(&header()).unwrap().with_options(SMALL);
        for record in &records {
            encoder.push(record).unwrap();
            log.take_from(&mut encoder).unwrap();
        }
        encoder.flush();
        log.take_from(&mut encoder).unwrap();
    }
    assert!(!log_thread.close(), "one of them could not be written");
    let whole = log_of(&records, SMALL);
    let written = disks.iter().filter(|disk| disk.0.lock().unwrap().synced() == whole).count();
    assert_eq!(written, 19);
}
