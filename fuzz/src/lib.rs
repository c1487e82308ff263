//! Shared code of the fuzz targets: their entry point, and the bound on allocations.
//!
//! A target is a file with one [`target!`]. Built by `cargo xtask fuzz` it is driven by libFuzzer; built by anything
//! else it is a program that runs the files it is given, and a test that runs the committed seeds.

mod allocation;

use std::path::Path;

use sametick_sim::replica::Entity;
use sametick_sim::{Quat, Vec2};

#[cfg(fuzzing)]
pub use libfuzzer_sys;

pub use allocation::{ALLOWANCE, bounded};

/// Declares a fuzz target: `sametick_fuzz::target!(|bytes: &[u8]| { … });`
///
/// The body must not panic on any input, and is held to the bound of [`bounded`]. A target that needs more memory than
/// a decoder sets its own allowance: `target!(allowing 100_000, |bytes: &[u8]| { … });`
#[macro_export]
macro_rules! target {
    (|$bytes:ident: &[u8]| $body:block) => {
        $crate::target!(allowing $crate::ALLOWANCE, |$bytes: &[u8]| $body);
    };
    (allowing $allowance:expr, |$bytes:ident: &[u8]| $body:block) => {
        fn body($bytes: &[u8]) $body

        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            $crate::bounded(bytes, $allowance, || body(bytes));
        });

        #[cfg(not(fuzzing))]
        fn main() {
            std::env::args().skip(1).for_each(|path| $crate::replay(path.as_ref(), $allowance, body));
        }

        #[cfg(test)]
        #[test]
        fn seeds_pass() {
            $crate::replay_seeds(env!("CARGO_BIN_NAME"), $allowance, body);
        }
    };
}

/// Runs a target's body on one file.
pub fn replay(path: &Path, allowance: usize, body: fn(&[u8])) {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    println!("{}", path.display());
    bounded(&bytes, allowance, || body(&bytes));
}

/// Runs a target's body on every committed seed, and on each seed cut short anywhere.
pub fn replay_seeds(target: &str, allowance: usize, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let Ok(seeds) = std::fs::read_dir(&folder) else {
        panic!("the target needs at least one seed in fuzz/seeds/{target}");
    };
    for seed in seeds {
        let path = seed.expect("a readable folder").path();
        replay(&path, allowance, body);
        let bytes = std::fs::read(&path).expect("it was read a moment ago");
        (0..bytes.len()).for_each(|end| bounded(&bytes[..end], allowance, || body(&bytes[..end])));
    }
}

/// The next part of an input: its length in one byte, or two for longer ones, and that many bytes; and the rest.
pub fn part(rest: &[u8]) -> (&[u8], &[u8]) {
    let (len, rest) = match rest {
        [] => (0, rest),
        [high @ 0xf8..=0xff, low, rest @ ..] => (usize::from(high & 7) << 8 | usize::from(*low), rest),
        [len, rest @ ..] => (usize::from(*len), rest),
    };
    rest.split_at(len.min(rest.len()))
}

/// The entity of the target `delta` and its seeds: a field of every kind of motion.
#[derive(Clone, Debug, PartialEq, Entity)]
pub struct Craft {
    /// Its position.
    #[entity(place, step = 0.01)]
    pub at: Vec2,
    /// Its orientation.
    #[entity(step = 9.0)]
    pub rotation: Quat,
    /// Its direction of travel.
    #[entity(turn = 256)]
    pub heading: u8,
    /// Its fuel.
    pub fuel: Option<u16>,
}
