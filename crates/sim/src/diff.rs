//! Compares two states field by field, and lists the differences with both values.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::canon::{Path, Sink, Step, Value};
use crate::hash::{StateHash, encode};

/// A place at which two states differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The path, such as `players[2].pos.x`. Empty for a state that is a single value.
    pub path: String,
    /// Our value, or none if the place does not exist in our state.
    pub ours: Option<String>,
    /// Their value, or none if the place does not exist in their state.
    pub theirs: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "state" } else { &self.path };
        let [ours, theirs] = [&self.ours, &self.theirs].map(|side| side.as_deref().unwrap_or("nothing"));
        write!(f, "{path}: {ours} != {theirs}")
    }
}

/// Differences as text, each on an indented line of its own after the text before.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a>(pub &'a [Difference]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|difference| write!(f, "\n  {difference}"))
    }
}

/// How many values are compared from the first difference on: enough to see a pattern, and bounded however large the
/// states are.
const WINDOW: usize = 4096;

/// The first places, at most `limit`, at which two states differ; none if their canonical bytes are equal.
///
/// Sequences and maps of different lengths are reported as such, followed by the items that only one of them has. The
/// first place reported is the first that differs; later ones are searched among the next few thousand values.
///
/// # Panics
/// If the type cannot be serialised, as [`StateHash::of`].
pub fn differences<T: Serialize + ?Sized>(ours: &T, theirs: &T, limit: usize) -> Vec<Difference> {
    let Some(first) = first_differing_value(ours, theirs) else {
        return Vec::new();
    };
    let [our_values, their_values] = [ours, theirs].map(|state| Recording::of(state, first));
    let mut found = compare(&our_values, &their_values);
    if found.is_empty() {
        // Two values that print alike, such as keys of a hand-written type: a vague report is better than none.
        let path = our_values.values.first().map(|(path, _)| path.clone()).unwrap_or_default();
        let [ours, theirs] = [ours, theirs].map(|state| Some(StateHash::of(state).to_string()));
        found.push(Difference { path, ours, theirs });
    }
    found.truncate(limit);
    found
}

/// The index of the value that holds the first byte in which the states differ. Up to there both have the same
/// structure.
fn first_differing_value<T: Serialize + ?Sized>(ours: &T, theirs: &T) -> Option<usize> {
    let [our_bytes, their_bytes] = [ours, theirs].map(|state| {
        let mut bytes = Vec::new();
        encode(state, &mut bytes);
        bytes
    });
    if our_bytes == their_bytes {
        return None;
    }
    let same = our_bytes.iter().zip(&their_bytes).take_while(|(ours, theirs)| ours == theirs).count();
    let mut counting = Counting { target: same, written: 0, values: 0 };
    encode(ours, &mut counting);
    Some(counting.values.saturating_sub(1))
}

fn compare(ours: &Recording, theirs: &Recording) -> Vec<Difference> {
    let complete = ours.is_complete() && theirs.is_complete();
    let [our_map, their_map] = [ours, theirs].map(Recording::by_path);
    let in_ours = ours.values.iter().filter_map(|(path, ours)| {
        let theirs = their_map.get(path.as_str());
        let differs = theirs.map_or(complete, |theirs| theirs != ours);
        differs.then(|| Difference {
            path: path.clone(),
            ours: Some(ours.clone()),
            theirs: theirs.map(ToString::to_string),
        })
    });
    let only_theirs =
        theirs.values.iter().filter(|(path, _)| complete && !our_map.contains_key(path.as_str()));
    let only_theirs = only_theirs.map(|(path, theirs)| Difference {
        path: path.clone(),
        ours: None,
        theirs: Some(theirs.clone()),
    });
    in_ours.chain(only_theirs).collect()
}

/// Counts the values that begin at or before a byte.
struct Counting {
    target: usize,
    written: usize,
    values: usize,
}

impl Sink for Counting {
    fn write(&mut self, bytes: &[u8]) {
        self.written += bytes.len();
    }

    fn value(&mut self, _value: Value<'_>) {
        self.values += usize::from(self.written <= self.target);
    }

    // Only so that keys are hidden here as they are from the recording.
    fn wants_keys(&self) -> bool {
        true
    }
}

/// A window of values with their paths.
struct Recording {
    /// How many values to skip.
    first: usize,
    seen: usize,
    path: Path,
    values: Vec<(String, String)>,
}

impl Recording {
    fn of<T: Serialize + ?Sized>(state: &T, first: usize) -> Recording {
        let mut recording = Recording { first, seen: 0, path: Path::default(), values: Vec::new() };
        encode(state, &mut recording);
        recording
    }

    /// Whether the window reaches the end, so that a place missing in it does not exist.
    fn is_complete(&self) -> bool {
        self.seen <= self.first + WINDOW
    }

    fn by_path(&self) -> BTreeMap<&str, &str> {
        self.values.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect()
    }
}

impl Sink for Recording {
    fn write(&mut self, _bytes: &[u8]) {}

    fn enter(&mut self, step: Step<'_>) {
        self.path.enter(step);
    }

    fn leave(&mut self) {
        self.path.leave();
    }

    fn value(&mut self, value: Value<'_>) {
        if (self.first..self.first + WINDOW).contains(&self.seen) {
            self.values.push((self.path.as_str().into(), value.to_string()));
        }
        self.seen += 1;
    }

    fn wants_keys(&self) -> bool {
        true
    }
}
