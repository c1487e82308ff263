//! The build id (L10): a hash over the sources and locked dependencies that decide a simulation, for build scripts.
//!
//! A game's `build.rs` is one line, and `sametick_sim::build_id!()` reads its result:
//!
//! ```text
//! fn main() {
//!     sametick_build_id::emit();
//! }
//! ```
//!
//! The id covers the game, every crate it depends on by path (their names, editions, features, build scripts and
//! `src` folders) and every locked package below them (name, version, checksum). It leaves out what cannot change
//! the simulation: where the folders lie, line endings, versions and descriptions, tests, examples, docs outside
//! `src`, dev- and build-dependencies, and the compiler and target, so that a browser bundle and a native binary of
//! the same sources agree.
//!
//! The git commit is no part of the id: a commit that only changes docs gives the same build. A program records its
//! commit separately, so that logs name the commit to check out: see [`emit_commit`].
//!
//! Two things it cannot see: files outside `src` pulled in by `include_str!` and friends (keep them in `src`), and
//! which optional features are switched on (let a `Setup` decide how a game plays, not a feature).

mod commit;
mod digest;
mod error;
mod lock;
mod manifest;
mod sources;
mod visit;

use std::fmt;
use std::path::{Path, PathBuf};

pub use commit::{commit, emit_commit};
pub use error::Error;

/// The hash itself: 16 bytes, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id([u8; 16]);

impl Id {
    /// The bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// What [`inspect`] found: the id, and every file and folder it was read from.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The build id.
    pub id: Id,
    /// What was read: the id can only change when one of these does.
    pub inputs: Vec<PathBuf>,
}

/// For a game's `build.rs`: sets `SAMETICK_BUILD_ID` for the crate, and has Cargo run the script again when an input
/// changes.
///
/// # Panics
/// With a message that says what to do, if the id cannot be computed: a build without an id must not exist.
#[expect(
    clippy::disallowed_methods,
    reason = "a build script is the edge: cargo tells it all by environment"
)]
pub fn emit() {
    let Some(folder) = std::env::var_os("CARGO_MANIFEST_DIR") else {
        panic!("CARGO_MANIFEST_DIR is not set: sametick_build_id::emit() is for build scripts, run by cargo");
    };
    match inspect(Path::new(&folder)) {
        Ok(found) => print_directives(&found),
        Err(error) => panic!("no build id for {}: {error}", Path::new(&folder).display()),
    }
}

/// The build id of the crate whose `Cargo.toml` lies in `manifest_dir`.
pub fn build_id(manifest_dir: &Path) -> Result<Id, Error> {
    Ok(inspect(manifest_dir)?.id)
}

/// The build id of the crate in `manifest_dir`, together with what it was read from.
pub fn inspect(manifest_dir: &Path) -> Result<Inspection, Error> {
    visit::Visit::start(manifest_dir)?.finish()
}

fn print_directives(found: &Inspection) {
    for input in &found.inputs {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    println!("cargo::rustc-env=SAMETICK_BUILD_ID={}", found.id);
}
