//! Cache of a replay's states in a file beside the log, so that seeking in a long session is fast.
//!
//! The file is `LOG.states`, or, if the log's folder cannot be written to, one in the user's cache folder. It may be
//! deleted at any time. It names the build and has the hash of the first bytes of the log it was made for: a log that
//! has grown since can use it, another log cannot. Every state is checked by its hash when it is read. A state that
//! does not match is not used.
//!
//! ```text
//! file    "sametick-states"  version: u16  length: u32  index  hash of the index: u64  states
//! index   canonical bytes of Index; the states follow one another in its order
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use sametick_sim::{BuildId, StateHash, Tick, from_canonical, to_canonical};
use serde::{Deserialize, Serialize};

use super::BadCheck;
use crate::logs::LogFile;

const MAGIC: &[u8; 15] = b"sametick-states";
const VERSION: u16 = 1;

/// The largest size of the states of one log: above it every other state is dropped, repeatedly.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The largest size of an index, which has a few bytes for every state.
const MAX_INDEX_BYTES: usize = 16 * 1024 * 1024;

/// States of a replay, in memory or in their file.
#[derive(Debug)]
pub struct States {
    places: Vec<PathBuf>,
    file: Option<File>,
    /// How many ticks lie between two states.
    interval: u32,
    kept: Vec<Kept>,
    /// Whether there are states that are not in the file.
    changed: bool,
}

#[derive(Debug)]
struct Kept {
    tick: Tick,
    hash: StateHash,
    len: u32,
    at: At,
}

#[derive(Debug)]
enum At {
    File(u64),
    Memory(Vec<u8>),
}

/// How far a replay has compared the ticks whose states are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// The tick up to which the checks of the log were compared.
    pub to: Tick,
    /// The first check that did not match.
    pub first_bad: Option<BadCheck>,
}

#[derive(Serialize, Deserialize)]
struct Index {
    build: BuildId,
    log_bytes: u64,
    log_hash: StateHash,
    covered_to: Tick,
    first_bad: Option<BadCheck>,
    interval: u32,
    states: Vec<(Tick, StateHash, u32)>,
}

/// Why kept states cannot be used. Not an error: they can be computed again.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// There is no file.
    #[error("there are none")]
    None,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file is damaged, or has another format.
    #[error("damaged")]
    Damaged,
    /// The file belongs to another log, build or version.
    #[error("made for another log or build")]
    Other,
}

impl States {
    /// An empty cache that keeps a state every `interval` ticks.
    pub fn new(log: &Path, interval: u32) -> States {
        let places = places(log);
        States { places, file: None, interval: interval.max(1), kept: Vec::new(), changed: false }
    }

    /// An empty cache without a file.
    pub fn in_memory(interval: u32) -> States {
        States { places: Vec::new(), ..States::new(Path::new(""), interval) }
    }

    /// Loads the states that were kept for a log, as far as they are still valid.
    pub fn load(log: &mut LogFile, build: BuildId) -> Result<(States, Covered), (PathBuf, Unusable)> {
        let mut last = (PathBuf::new(), Unusable::None);
        for place in places(log.path()) {
            match load_file(&place, log, build) {
                Ok(found) => return Ok(found),
                // A missing file is not worth a log line; an unusable one is.
                Err(Unusable::None) => {}
                Err(why) => last = (place, why),
            }
        }
        Err(last)
    }

    /// How many ticks lie between two states.
    pub fn interval(&self) -> u32 {
        self.interval
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there are no states.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The last state at or before a tick. One that turns out damaged is removed.
    pub fn before(&mut self, tick: Tick) -> Option<(Tick, Vec<u8>)> {
        loop {
            let at = self.kept.partition_point(|kept| kept.tick <= tick).checked_sub(1)?;
            match self.read(at) {
                Ok(state) => return Some((self.kept[at].tick, state)),
                Err(_) => {
                    self.kept.remove(at);
                    self.changed = true;
                }
            }
        }
    }

    /// Whether the state of a tick should be kept and is not.
    pub fn wants(&self, tick: Tick) -> bool {
        tick.0.is_multiple_of(self.interval) && self.kept.last().is_none_or(|last| last.tick < tick)
    }

    /// Keeps a state.
    pub fn keep(&mut self, tick: Tick, state: &[u8]) {
        let Ok(len) = u32::try_from(state.len()) else { return };
        self.kept.push(Kept { tick, hash: StateHash::of_bytes(state), len, at: At::Memory(state.to_vec()) });
        self.changed = true;
        while self.bytes() > MAX_BYTES && self.kept.len() > 1 {
            self.interval = self.interval.saturating_mul(2);
            let interval = self.interval;
            self.kept.retain(|kept| kept.tick.0.is_multiple_of(interval));
        }
    }

    /// Writes the states to their file, if there are new ones. Returns the file's path, if one was written.
    pub fn save(
        &mut self,
        log: &mut LogFile,
        build: BuildId,
        covered: Covered,
    ) -> io::Result<Option<PathBuf>> {
        if !self.changed || self.places.is_empty() {
            return Ok(None);
        }
        let head = self.head(log, build, covered)?;
        let mut result = Ok(None);
        for place in self.places.clone() {
            result = self.write_to(&place, &head).map(|()| Some(place));
            if result.is_ok() {
                self.changed = false;
                break;
            }
        }
        result
    }

    fn bytes(&self) -> u64 {
        self.kept.iter().map(|kept| u64::from(kept.len)).sum()
    }

    fn read(&mut self, at: usize) -> Result<Vec<u8>, Unusable> {
        let Kept { hash, len, ref at, .. } = self.kept[at];
        let state = match (at, &mut self.file) {
            (At::Memory(state), _) => return Ok(state.clone()),
            (At::File(_), None) => return Err(Unusable::None),
            (At::File(offset), Some(file)) => {
                let mut state = vec![0; len as usize];
                file.seek(SeekFrom::Start(*offset))?;
                file.read_exact(&mut state)?;
                state
            }
        };
        if StateHash::of_bytes(&state) == hash { Ok(state) } else { Err(Unusable::Damaged) }
    }

    fn head(&self, log: &mut LogFile, build: BuildId, covered: Covered) -> io::Result<Vec<u8>> {
        let log_bytes = log.tail().valid_bytes;
        let index = Index {
            build,
            log_bytes,
            log_hash: hash_of_prefix(log.path(), log_bytes)?,
            covered_to: covered.to,
            first_bad: covered.first_bad,
            interval: self.interval,
            states: self.kept.iter().map(|kept| (kept.tick, kept.hash, kept.len)).collect(),
        };
        let index = to_canonical(&index).map_err(io::Error::other)?;
        let len = u32::try_from(index.len()).map_err(io::Error::other)?;
        let parts: [&[u8]; 5] = [
            MAGIC,
            &VERSION.to_le_bytes(),
            &len.to_le_bytes(),
            &index,
            &StateHash::of_bytes(&index).0.to_le_bytes(),
        ];
        Ok(parts.concat())
    }

    /// Replaces the file atomically.
    fn write_to(&mut self, place: &Path, head: &[u8]) -> io::Result<()> {
        if let Some(folder) = place.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let new = place.with_extension(format!("new-{}", std::process::id()));
        let written = self.write_new(&new, head).and_then(|()| fs::rename(&new, place));
        if written.is_err() {
            // A partly written file is useless; if it cannot be removed, it stays under a temporary name.
            let _ = fs::remove_file(&new);
        }
        written
    }

    fn write_new(&mut self, path: &Path, head: &[u8]) -> io::Result<()> {
        let mut out = io::BufWriter::new(File::create(path)?);
        out.write_all(head)?;
        for at in 0..self.kept.len() {
            out.write_all(&self.read(at).map_err(io::Error::other)?)?;
        }
        out.flush()
    }
}

/// Where the states of a log may be: beside it, or in the user's cache folder under a name made of the log's path.
fn places(log: &Path) -> Vec<PathBuf> {
    // Beside the file itself, not beside a link to it.
    let Ok(log) = fs::canonicalize(log) else { return Vec::new() };
    let beside = log.file_name().map(|name| {
        let mut name = name.to_owned();
        name.push(".states");
        log.with_file_name(name)
    });
    let cached = etcetera::choose_base_strategy().ok().map(|folders| {
        let path = StateHash::of_bytes(log.as_os_str().as_encoded_bytes());
        folders.cache_dir().join("sametick").join(format!("{path}.states"))
    });
    beside.into_iter().chain(cached).collect()
}

fn load_file(place: &Path, log: &mut LogFile, build: BuildId) -> Result<(States, Covered), Unusable> {
    let mut file = match File::open(place) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Unusable::None),
        Err(error) => return Err(error.into()),
    };
    let index = read_index(&mut file)?;
    let same_log = || hash_of_prefix(log.path(), index.log_bytes).is_ok_and(|hash| hash == index.log_hash);
    if index.build != build || index.log_bytes > log.tail().valid_bytes || !same_log() {
        return Err(Unusable::Other);
    }
    let mut offset = file.stream_position()?;
    let mut kept = Vec::new();
    for (tick, hash, len) in index.states {
        kept.push(Kept { tick, hash, len, at: At::File(offset) });
        offset += u64::from(len);
    }
    // A state is valid if no rewind has undone its tick: if the group of its tick was already in the log.
    kept.retain(|kept| log.reader().find(kept.tick).is_some_and(|group| group < index.log_bytes));
    let in_order = kept.is_sorted_by(|a, b| a.tick < b.tick);
    if !in_order || index.interval == 0 {
        return Err(Unusable::Damaged);
    }
    let grown = index.log_bytes < log.tail().valid_bytes;
    let last = kept.last().map_or(Tick::ZERO, |kept| kept.tick);
    // Checks of the last ticks may have been added since.
    let to = if grown { last.min(index.covered_to) } else { index.covered_to };
    let first_bad = index.first_bad.filter(|bad| bad.tick <= to);
    let places = places(log.path());
    let states = States { places, file: Some(file), interval: index.interval, kept, changed: false };
    Ok((states, Covered { to, first_bad }))
}

fn read_index(file: &mut File) -> Result<Index, Unusable> {
    if &take::<15>(file)? != MAGIC {
        return Err(Unusable::Damaged);
    }
    if u16::from_le_bytes(take(file)?) != VERSION {
        return Err(Unusable::Other);
    }
    let len = u32::from_le_bytes(take(file)?) as usize;
    if len > MAX_INDEX_BYTES {
        return Err(Unusable::Damaged);
    }
    let mut index = vec![0; len];
    file.read_exact(&mut index).map_err(|_| Unusable::Damaged)?;
    if StateHash::of_bytes(&index) != StateHash(u64::from_le_bytes(take(file)?)) {
        return Err(Unusable::Damaged);
    }
    from_canonical(&index).map_err(|_| Unusable::Damaged)
}

fn take<const N: usize>(file: &mut File) -> Result<[u8; N], Unusable> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes).map_err(|_| Unusable::Damaged)?;
    Ok(bytes)
}

/// The hash of the first bytes of a file.
fn hash_of_prefix(path: &Path, len: u64) -> io::Result<StateHash> {
    let mut bytes = Vec::new();
    File::open(path)?.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len {
        Ok(StateHash::of_bytes(&bytes))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
