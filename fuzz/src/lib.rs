//! What every fuzz target shares: how it is started, and the bound on what it may allocate.
//!
//! A target is a file with one [`target!`]. Built by `cargo xtask fuzz` it is driven by libFuzzer; built by anything
//! else it is a program that runs the files it is given, and a test that runs the committed seeds.

mod allocation;

use std::path::Path;

#[cfg(fuzzing)]
pub use libfuzzer_sys;

pub use allocation::bounded;

/// Declares a fuzz target: `sametick_fuzz::target!(|bytes: &[u8]| { … });`
///
/// The body must not panic on any input, and is held to the bound of [`bounded`].
#[macro_export]
macro_rules! target {
    (|$bytes:ident: &[u8]| $body:block) => {
        fn body($bytes: &[u8]) $body

        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::bounded(bytes, || body(bytes)));

        #[cfg(not(fuzzing))]
        fn main() {
            std::env::args().skip(1).for_each(|path| $crate::replay(path.as_ref(), body));
        }

        #[cfg(test)]
        #[test]
        fn seeds_pass() {
            $crate::replay_seeds(env!("CARGO_BIN_NAME"), body);
        }
    };
}

/// Runs a target's body on one file.
pub fn replay(path: &Path, body: fn(&[u8])) {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    println!("{}", path.display());
    bounded(&bytes, || body(&bytes));
}

/// Runs a target's body on every committed seed, and on each seed cut short anywhere.
pub fn replay_seeds(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let Ok(seeds) = std::fs::read_dir(&folder) else {
        panic!("the target needs at least one seed in fuzz/seeds/{target}");
    };
    for seed in seeds {
        let path = seed.expect("a readable folder").path();
        replay(&path, body);
        let bytes = std::fs::read(&path).expect("it was read a moment ago");
        (0..bytes.len()).for_each(|end| bounded(&bytes[..end], || body(&bytes[..end])));
    }
}
