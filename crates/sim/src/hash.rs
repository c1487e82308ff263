//! State hashes, of a whole state and of its named parts, so that two machines can locate a difference.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use postcard_schema::Schema;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::canon::{self, Path, Sink, Step};

/// XXH3-64 over the canonical bytes of a state: equal states have equal hashes on every platform.
///
/// It detects accidents, not attacks: 64 bits without a key do not withstand an attacker who constructs collisions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Schema)]
pub struct StateHash(pub u64);

impl StateHash {
    /// The hash of a state. Allocates nothing.
    ///
    /// # Panics
    /// If the type cannot be serialised at all, which the first sync-test of a game shows.
    pub fn of<T: Serialize + ?Sized>(state: &T) -> StateHash {
        let mut sink = Hashing::new();
        encode(state, &mut sink);
        sink.finish()
    }

    /// The hash of a state from its canonical bytes.
    pub fn of_bytes(canonical: &[u8]) -> StateHash {
        StateHash(xxh3_64(canonical))
    }
}

impl fmt::Display for StateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for StateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateHash({self})")
    }
}

/// The hash of one part of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Part {
    /// The path of the part, such as `players[2].pos`. Empty for a state that is a single value.
    pub path: String,
    /// The hash of its canonical bytes.
    pub hash: StateHash,
}

/// The hashes of all parts of a state `depth` steps below its root, and of leaves that lie higher.
///
/// The parts together cover every byte of the state. With a depth of 0 the only part is the whole.
///
/// # Panics
/// If the type cannot be serialised, as [`StateHash::of`].
pub fn parts<T: Serialize + ?Sized>(state: &T, depth: usize) -> Vec<Part> {
    parts_under(state, "", depth)
}

/// The hashes of the parts `depth` steps below the place that `path` names; none if there is no such place.
///
/// Two machines that only exchange hashes find the field that differs by requesting the parts one step below the [first
/// part that differs](first_difference), repeatedly, until the answer is the requested place itself.
///
/// # Panics
/// If the type cannot be serialised, as [`StateHash::of`].
pub fn parts_under<T: Serialize + ?Sized>(state: &T, path: &str, depth: usize) -> Vec<Part> {
    let base = path.is_empty().then_some(0);
    let mut sink =
        Splitting { wanted: path, depth, base, path: Path::default(), open: None, parts: Vec::new() };
    encode(state, &mut sink);
    sink.close();
    sink.parts
}

/// The path of the first part in which two lists of parts differ: another hash, or missing on one side.
///
/// A part missing in the middle of a list is a difference in structure; then the longer list's next path is named.
pub fn first_difference<'a>(ours: &'a [Part], theirs: &'a [Part]) -> Option<&'a str> {
    let common = ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs);
    if let Some((ours, _)) = common {
        return Some(&ours.path);
    }
    let longer = if ours.len() > theirs.len() { ours } else { theirs };
    longer.get(ours.len().min(theirs.len())).map(|part| part.path.as_str())
}

pub(crate) fn encode<T: Serialize + ?Sized>(state: &T, sink: &mut impl Sink) {
    if let Err(error) = canon::encode(state, sink) {
        panic!("{} has no canonical bytes: {error}", core::any::type_name::<T>());
    }
}

/// A sink that hashes. Small writes are collected first, because the hash is fast only on long inputs.
struct Hashing {
    hash: Xxh3Default,
    buffer: [u8; Hashing::BUFFER],
    filled: usize,
}

impl Hashing {
    const BUFFER: usize = 1024;

    fn new() -> Hashing {
        Hashing { hash: Xxh3Default::new(), buffer: [0; Hashing::BUFFER], filled: 0 }
    }

    fn finish(mut self) -> StateHash {
        self.flush();
        StateHash(self.hash.digest())
    }

    /// Handles bytes for which the buffer has no room left.
    #[cold]
    fn overflow(&mut self, bytes: &[u8]) {
        self.flush();
        match self.buffer.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.filled = bytes.len();
            }
            None => self.hash.update(bytes),
        }
    }

    fn flush(&mut self) {
        self.hash.update(&self.buffer[..self.filled]);
        self.filled = 0;
    }
}

impl Sink for Hashing {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let end = self.filled + bytes.len();
        match self.buffer.get_mut(self.filled..end) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.filled = end;
            }
            None => self.overflow(bytes),
        }
    }
}

/// A sink that hashes every part separately.
struct Splitting<'a> {
    /// The path of the place whose parts are hashed.
    wanted: &'a str,
    depth: usize,
    /// The depth of the wanted place, while the walk is inside it.
    base: Option<usize>,
    path: Path,
    open: Option<(String, Hashing)>,
    parts: Vec<Part>,
}

impl Splitting<'_> {
    fn close(&mut self) {
        if let Some((path, hashing)) = self.open.take() {
            self.parts.push(Part { path, hash: hashing.finish() });
        }
    }

    /// Whether a part may begin or end here: not deeper than wanted.
    fn at_border(&self) -> bool {
        self.base.is_some_and(|base| self.path.depth() <= base + self.depth)
    }
}

impl Sink for Splitting<'_> {
    fn write(&mut self, bytes: &[u8]) {
        let Some(base) = self.base else {
            return;
        };
        let start = || (self.path.up_to(base + self.depth).into(), Hashing::new());
        let open = self.open.get_or_insert_with(start);
        open.1.write(bytes);
    }

    fn enter(&mut self, step: Step<'_>) {
        self.path.enter(step);
        if self.base.is_none() && self.path.as_str() == self.wanted {
            self.base = Some(self.path.depth());
        }
        if self.at_border() {
            self.close();
        }
    }

    fn leave(&mut self) {
        if self.at_border() {
            self.close();
        }
        if self.base == Some(self.path.depth()) {
            self.base = None;
        }
        self.path.leave();
    }

    fn wants_keys(&self) -> bool {
        true
    }
}
