//! Reads the passphrase from a file or the environment, never from the command line, where others could read it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sametick_transport::clock::random;
use sametick_wire::access::AccessKey;

use crate::config::create_private;

/// The environment variable that holds the passphrase.
pub const VARIABLE: &str = "SAMETICK_SECRET";

/// Where the passphrase comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// No passphrase is required.
    Open,
    /// From the environment.
    Variable(String),
    /// From the first line of a file, which can be read again.
    File(PathBuf),
    /// From the configuration of a player's machine.
    Remembered(String),
}

/// Why there is no passphrase.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("the passphrase file {} cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The first line of the file is empty.
    #[error("the passphrase file {} is empty: put the passphrase on its first line", .0.display())]
    Empty(PathBuf),
}

impl Secret {
    /// The file if one is named, else the environment, else none.
    pub fn find(file: Option<&Path>) -> Secret {
        match (file, std::env::var(VARIABLE)) {
            (Some(path), _) => Secret::File(path.to_owned()),
            (None, Ok(secret)) if !secret.is_empty() => Secret::Variable(secret),
            _ => Secret::Open,
        }
    }

    /// The passphrase in the configuration of a player's machine, or none.
    pub fn remembered(secret: Option<&str>) -> Secret {
        secret.map_or(Secret::Open, |secret| Secret::Remembered(secret.to_owned()))
    }

    /// Whether no passphrase is required.
    pub fn is_open(&self) -> bool {
        *self == Secret::Open
    }

    /// Whether a passphrase is required, in words.
    pub fn asked(&self) -> &'static str {
        if self.is_open() { "none: anybody who reaches a port may come in" } else { "asked for" }
    }

    /// The key; a file is read again each time.
    pub fn key(&self) -> Result<AccessKey, SecretError> {
        match self {
            Secret::Open => Ok(AccessKey::open()),
            Secret::Variable(secret) | Secret::Remembered(secret) => Ok(AccessKey::from_passphrase(secret)),
            Secret::File(path) => {
                let read = |error| SecretError::Read { path: path.clone(), error };
                let secret = first_line(path).map_err(read)?;
                Ok(AccessKey::from_passphrase(&secret.ok_or_else(|| SecretError::Empty(path.clone()))?))
            }
        }
    }
}

/// The file of the key that signs claims to seats.
const CLAIMS_KEY: &str = "claims.key";

/// The key that signs claims to come back to a seat: made once and kept in the data folder, so that claims survive a
/// restart. A reader of the file can take any seat.
pub(crate) fn claims_key(data: &Path) -> io::Result<[u8; 32]> {
    kept_key(&data.join(CLAIMS_KEY))
}

/// A key that is made once, from random bits, and kept in a file that only its owner can read.
pub(crate) fn kept_key(path: &Path) -> io::Result<[u8; 32]> {
    let said = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    match fs::read(path) {
        Ok(bytes) => bytes.try_into().map_err(|_| {
            said(io::Error::new(
                io::ErrorKind::InvalidData,
                "not a key of 32 bytes; delete it to have a new one made",
            ))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // If several processes make the key at once, the first one's is kept and the others read it.
            let (key, new) = (random(), path.with_extension(format!("{}.new", std::process::id())));
            path.parent().map_or(Ok(()), fs::create_dir_all).map_err(said)?;
            let mut file = create_private(&new).map_err(said)?;
            file.write_all(&key).and_then(|()| file.sync_all()).map_err(said)?;
            let linked = fs::hard_link(&new, path);
            fs::remove_file(&new).map_err(said)?;
            match linked {
                Ok(()) => Ok(key),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => kept_key(path),
                Err(error) => Err(said(error)),
            }
        }
        Err(error) => Err(said(error)),
    }
}

/// The first line of a file, if it is not empty.
pub(crate) fn first_line(path: &Path) -> io::Result<Option<String>> {
    let text = fs::read_to_string(path)?;
    let line = text.lines().next().map(str::trim).filter(|line| !line.is_empty());
    Ok(line.map(str::to_owned))
}
