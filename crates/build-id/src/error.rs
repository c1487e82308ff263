//! Errors of computing a build id.

use std::fmt;
use std::path::PathBuf;

/// Why a build id could not be computed. The message says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    Read(PathBuf, std::io::Error),
    /// A `Cargo.toml` or `Cargo.lock` is not valid TOML.
    Toml(PathBuf, Box<toml::de::Error>),
    /// A manifest or lock file lacks something, or says something this crate does not understand.
    Invalid(PathBuf, String),
    /// No `Cargo.lock` in the crate's folder or above it.
    NoLock(PathBuf),
    /// A dependency that `Cargo.lock` does not name.
    NotLocked {
        /// The crate that asks for it.
        by: String,
        /// The package asked for.
        package: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Error::Toml(path, error) => write!(f, "{} is not valid TOML: {error}", path.display()),
            Error::Invalid(path, what) => write!(f, "{}: {what}", path.display()),
            Error::NoLock(path) => write!(
                f,
                "no Cargo.lock in {} or above it; run `cargo generate-lockfile` there and commit the file, \
                 because the locked dependencies are part of what decides a simulation",
                path.display()
            ),
            Error::NotLocked { by, package } => write!(
                f,
                "Cargo.lock has no fitting entry for `{package}`, which `{by}` depends on; \
                 run `cargo update --workspace` to bring it up to date"
            ),
        }
    }
}

impl std::error::Error for Error {}
