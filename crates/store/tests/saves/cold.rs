//! Cold logs: uploaded in pieces by uploaders that crash, race and get no answer, and read back unchanged.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use sametick_sim::{Rng, Tick};
use sametick_store::log::{EncoderOptions, LogEncoder, LogReader, Record};
use sametick_store::saves::{
    BadManifest, ColdError, ColdFiles, ColdLog, Condition, Content, Faults, FolderStore, Listed, Manifest,
    MemoryStore, ObjectStore, Pending, Piece, PutError, Segment, StoreError, Tag, Version, at_once,
};

use crate::kit::{hex, key};
use crate::sessions::{Play, Wild, drain, header, log_of, play};
use crate::stand::{Stand, Wrongs};

const DOCS: &str = include_str!("../../../../docs/saves.md");
const SMALL: EncoderOptions = EncoderOptions { frame_ticks: 4, group_ticks: 10 };
const SEEDS: u64 = 200;
const STEPS: u32 = 120;

fn manifest() -> Manifest {
    let segment = |first, ticks, bytes, number, begins| Segment {
        first: Tick(first),
        ticks,
        bytes,
        crc: 0x0123_4567,
        number,
        begins,
    };
    let mut manifest = Manifest::default();
    manifest.push(segment(1, 7200, 5000, 0, true)).unwrap();
    manifest.push(segment(7201, 7200, 300, 1, false)).unwrap();
    manifest.push(segment(14_000, 60, 200, 0, true)).unwrap();
    manifest
}

#[test]
fn golden_bytes_of_a_manifest() {
    let golden = [
        ("magic of a manifest", "73616d657469636b2d636f6c64"),
        ("version of a manifest: 1", "0100"),
        ("three segments", "03"),
        ("from tick 1, 7,200 ticks, 5,000 bytes, crc, number 0, begins a log", "01a0388827e78a8d090001"),
        ("from tick 7,201, 7,200 ticks, 300 bytes, crc, number 1, goes on", "a138a038ac02e78a8d090100"),
        ("from tick 14,000, 60 ticks, 200 bytes, crc, number 0, begins a log", "b06d3cc801e78a8d090001"),
        ("crc of a manifest", "3beac559"),
    ];
    assert_eq!(hex(&manifest().to_bytes()), golden.map(|(_, bytes)| bytes).concat());
    for (field, bytes) in golden {
        let row = format!("| {field} | `{bytes}` |");
        assert!(DOCS.contains(&row), "docs/saves.md has the row {row}");
    }
}

#[test]
fn a_manifest_that_was_cut_or_flipped_is_refused() {
    let whole = manifest().to_bytes();
    assert_eq!(Manifest::from_bytes(&whole), Ok(manifest()));
    for len in 0..whole.len() {
        let error = Manifest::from_bytes(&whole[..len]).unwrap_err();
        assert!(matches!(error, BadManifest::Cut { .. } | BadManifest::Damaged), "{error}");
    }
    for bit in 0..8 * whole.len() {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Manifest::from_bytes(&bytes).is_err(), "bit {bit}");
    }
    let mut nonsense = whole[..15].to_vec();
    // A first segment that continues nothing.
    nonsense.extend([1, 1, 1, 1, 1, 0, 0]);
    nonsense.extend(crc32c::crc32c(&nonsense).to_le_bytes());
    assert_eq!(Manifest::from_bytes(&nonsense), Err(BadManifest::Nonsense));
    assert_eq!(Manifest::from_bytes(b"sametick-log"), Err(BadManifest::NotAManifest));
}

/// A store on which other tasks run before every request.
#[derive(Debug)]
struct Busy(MemoryStore);

/// Yields once.
async fn let_others() {
    let mut asked = false;
    let once = |_: &mut Context<'_>| {
        if std::mem::replace(&mut asked, true) { Poll::Ready(()) } else { Poll::Pending }
    };
    std::future::poll_fn(once).await;
}

impl ObjectStore for Busy {
    fn head<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Tag>, StoreError>> {
        Box::pin(async move {
            let_others().await;
            self.0.head(key).await
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Content>, StoreError>> {
        self.get_range(key, 0..u64::MAX)
    }

    fn get_range<'a>(
        &'a self,
        key: &'a str,
        range: Range<u64>,
    ) -> Pending<'a, Result<Option<Content>, StoreError>> {
        Box::pin(async move {
            let_others().await;
            self.0.get_range(key, range).await
        })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: &'a [u8],
        condition: Condition,
        tick: Option<Tick>,
    ) -> Pending<'a, Result<Version, PutError>> {
        Box::pin(async move {
            let_others().await;
            self.0.put(key, bytes, condition, tick).await
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Pending<'a, Result<Vec<Listed>, StoreError>> {
        self.0.list(prefix)
    }

    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, Result<(), StoreError>> {
        self.0.delete(key)
    }
}

/// Uploads a log in pieces, from wherever the store has it, until it is complete.
async fn carry(store: &dyn ObjectStore, local: &[u8], rng: &RefCell<Rng>) -> Result<(), ColdError> {
    let key = key();
    let cold = ColdLog::new(store, &key);
    let mut at = None;
    loop {
        let from = match at {
            Some(from) => from,
            None => {
                let Ok(bytes) = cold.bytes().await else { continue };
                let Ok(agrees) = cold.agrees_with(local).await else { continue };
                assert!(agrees, "what is there is ours");
                *at.insert(bytes)
            }
        };
        let left = local.len() - from as usize;
        if left == 0 {
            return Ok(());
        }
        let len = 1 + rng.borrow_mut().below(left.min(400) as u64) as usize;
        let bytes = &local[from as usize..][..len];
        // The offset is enough to identify a piece in a test.
        let piece = Piece { at: from, anew: false, first: Tick(from as u32), ticks: 1, bytes };
        at = match cold.append(piece).await {
            Ok(()) => Some(from + len as u64),
            Err(ColdError::Store(_)) if rng.borrow_mut().chance(1, 2) => {
                // Retries the same piece until the result is known.
                while matches!(cold.append(piece).await, Err(ColdError::Store(_))) {}
                None
            }
            Err(ColdError::Store(_) | ColdError::Elsewhere { .. }) => None,
            Err(error) => return Err(error),
        };
    }
}

#[test]
fn a_log_from_crashing_and_racing_uploaders_is_whole() {
    let (mut crashes, mut numbered, mut orphans) = (0, 0, 0);
    for seed in 0..SEEDS {
        let local = log_of(&Wild::records(seed, STEPS), SMALL);
        let rng = RefCell::new(Rng::new(seed));
        let often = rng.borrow_mut().below(200);
        let store = Busy(MemoryStore::with_faults(seed, Faults::all(often)));
        let begin = || -> Pin<Box<dyn Future<Output = _>>> { Box::pin(carry(&store, &local, &rng)) };
        let mut uploaders = vec![begin(), begin()];
        while !uploaders.is_empty() {
            let at = rng.borrow_mut().below(uploaders.len() as u64) as usize;
            if rng.borrow_mut().chance(1, 60) {
                crashes += 1;
                uploaders[at] = begin();
            }
            if let Poll::Ready(done) = uploaders[at].as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                drop(uploaders.swap_remove(at));
            }
        }
        store.0.set_faults(Faults::default());
        let files = at_once(ColdLog::new(&store.0, &key()).read()).unwrap().unwrap();
        assert!(files.files == std::slice::from_ref(&local), "seed {seed}");
        let history = store.0.history();
        let segments: Vec<_> = history.iter().filter(|commit| commit.key != key().log()).collect();
        let keys: BTreeSet<_> = segments.iter().map(|commit| &commit.key).collect();
        assert_eq!(keys.len(), segments.len(), "seed {seed}: a segment was overwritten");
        let manifest = at_once(store.0.get(&key().log())).unwrap().unwrap();
        let manifest = Manifest::from_bytes(&manifest.bytes).unwrap();
        numbered += manifest.segments().iter().filter(|segment| segment.number > 0).count();
        orphans += keys.len() - manifest.segments().len();
    }
    println!("{SEEDS} logs: {crashes} crashes, {orphans} segments left by them, {numbered} keys were taken");
    assert!(crashes > 0 && orphans > 0 && numbered > 0);
}

#[test]
fn a_log_grows_in_a_folder_and_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = FolderStore::open(folder.path()).unwrap();
    let local = log_of(&Wild::records(3, STEPS), SMALL);
    at_once(carry(&store, &local, &RefCell::new(Rng::new(3)))).unwrap();
    assert!(std::fs::read(store.path(&key().log()).unwrap()).unwrap() == local);
    assert!(at_once(ColdLog::new(&store, &key()).read()).unwrap().unwrap().files == [local]);
}

#[test]
fn a_log_is_uploaded_over_http_despite_all_faults() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let local = log_of(&Wild::records(4, STEPS), SMALL);
        let stand = Stand::start(4, Wrongs::all(60)).await;
        carry(&stand.store(), &local, &RefCell::new(Rng::new(4))).await.unwrap();
        stand.set_wrongs(Wrongs::default());
        let store = stand.store();
        assert!(ColdLog::new(&store, &key()).read().await.unwrap().unwrap().files == [local]);
    });
}

/// The records of this session until this tick was closed.
fn until(records: &[Record], tick: u32) -> &[Record] {
    let closes = |record: &Record| matches!(record, Record::Inputs(inputs) if inputs.tick() == Tick(tick));
    &records[..=records.iter().position(closes).unwrap()]
}

/// A log of its own that goes on after `tick`, as of a relay that has lost its file.
fn continued(records: &[Record], tick: u32) -> Vec<u8> {
    let before = log_of(until(records, tick), SMALL);
    let position = LogReader::open(&before[..]).unwrap().verify().unwrap().position;
    let mut encoder = LogEncoder::continued(&header(), position).unwrap().with_options(SMALL);
    records[until(records, tick).len()..].iter().for_each(|record| encoder.push(record).unwrap());
    encoder.flush();
    drain(&mut encoder)
}

fn ticks_of(files: &ColdFiles, from: u32) -> Result<Vec<u32>, ColdError> {
    let mut ticks = Vec::new();
    files.for_each_tick(Tick(from), |inputs| ticks.push(inputs.tick().0))?;
    Ok(ticks)
}

#[test]
fn a_session_resumed_without_its_file_is_read_as_one_log() {
    let mut records = Vec::new();
    play(Play::Buttons, 2, 60, |record| records.push(record.clone()));
    let first = log_of(until(&records, 20), SMALL);
    let second = continued(&records, 12);
    let store = MemoryStore::new();
    let key = key();
    let cold = ColdLog::new(&store, &key);
    let append = |bytes: &[u8], anew, first| {
        at_once(cold.append(Piece { at: 0, anew, first: Tick(first), ticks: 1, bytes }))
    };
    append(&first, false, 1).unwrap();
    append(&first, false, 1).unwrap();
    let longer = [&first[..], b"more"].concat();
    for (other, anew) in [(&longer, false), (&longer, true), (&second, false)] {
        let appended = append(other, anew, 1);
        assert!(matches!(appended, Err(ColdError::Elsewhere { bytes }) if bytes == first.len() as u64));
    }
    append(&second, true, 13).unwrap();
    append(&second, true, 13).unwrap();
    assert_eq!(at_once(cold.bytes()).unwrap(), second.len() as u64);
    assert!(at_once(cold.agrees_with(&second)).unwrap() && !at_once(cold.agrees_with(&first)).unwrap());
    let files = at_once(cold.read()).unwrap().unwrap();
    assert!(files.files == [first.clone(), second.clone()]);
    let last = LogReader::open(&second[..]).unwrap().tail().last_tick.0;
    assert_eq!(ticks_of(&files, 1).unwrap(), (1..=last).collect::<Vec<_>>());
    assert_eq!(ticks_of(&files, 15).unwrap(), (15..=last).collect::<Vec<_>>());

    let gap = ColdFiles { files: vec![first, continued(&records, 25)] };
    assert_eq!(ticks_of(&gap, 1).unwrap_err().to_string(), "ticks 21 to 25 are in no log");
    assert_eq!(ticks_of(&gap, 26).unwrap(), (26..=last).collect::<Vec<_>>());
}

#[test]
fn segments_that_are_gone_or_damaged_are_named() {
    let store = MemoryStore::new();
    let key = key();
    let cold = ColdLog::new(&store, &key);
    assert!(at_once(cold.read()).unwrap().is_none());
    let local = log_of(&Wild::records(6, STEPS), SMALL);
    at_once(pin!(carry(&store, &local, &RefCell::new(Rng::new(6))))).unwrap();
    let segment = key.segment(Tick(0), 0);
    let found = at_once(store.get(&segment)).unwrap().unwrap();
    let mut spoiled = found.bytes.clone();
    spoiled[0] ^= 1;
    at_once(store.put(&segment, &spoiled, Condition::Replaces(found.version), None)).unwrap();
    let said = at_once(cold.read()).unwrap_err().to_string();
    assert!(said.contains("/log.0 is not what the manifest says"), "{said}");
    at_once(store.delete(&segment)).unwrap();
    let said = at_once(cold.read()).unwrap_err().to_string();
    assert!(said.contains("/log.0 is not there"), "{said}");
}
