//! Configuration of a player's machine: name, passphrase, and the last relay that answered.
//!
//! It is a TOML file in the user's configuration folder, or at the path in `SAMETICK_CONFIG`. Only its owner may read
//! it. It is replaced atomically, and keys that this program does not know are kept.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use etcetera::BaseStrategy;
use sametick_transport::dial::Locator;
use sametick_wire::hello::MAX_NAME;
use serde::Serialize;

use crate::cli::CommandError;
use crate::report::print;

/// The environment variable that names the file.
pub const VARIABLE: &str = "SAMETICK_CONFIG";

/// The subcommands of `sametick config`.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "\
Examples:
  sametick config set name Ada
  sametick config set passphrase < secret.txt
  sametick config show")]
pub enum ConfigCommand {
    /// Print what is remembered; never the passphrase itself
    #[command(after_help = "Examples:
  sametick config show
  sametick config show --json")]
    Show {
        /// Print a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Remember something; an empty value forgets it
    #[command(after_help = "Examples:
  sametick config set name Ada
  sametick config set relay udp://203.0.113.7:7777
  sametick config set passphrase < secret.txt     on a command line, others could read it
  sametick config set relay \"\"                    forget it")]
    Set {
        /// What
        key: Key,

        /// Its value. Without one, the first line of standard input
        value: Option<String>,
    },
    /// Print where it is kept
    Path,
}

/// A key of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Key {
    /// The name that other players see.
    Name,
    /// The passphrase that relays ask for.
    Passphrase,
    /// The last relay that answered.
    Relay,
}

/// The configuration of a player's machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    path: PathBuf,
    table: toml::Table,
}

/// Why the configuration has no value, or there is no place for it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is no configuration folder.
    #[error("there is no home folder to keep the configuration in; name a file with ${VARIABLE}")]
    NoFolder,
    /// The file cannot be read.
    #[error("the configuration {} cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The file is malformed.
    #[error("the configuration {} is damaged: {why}; mend or delete it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be written.
    #[error("the configuration {} cannot be written: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// No relay was named, and none is remembered.
    #[error("which relay? Name one with --connect; the last that worked is used without it")]
    NoRelay,
    /// A value is invalid.
    #[error("this is no {key}: {why}")]
    Value {
        /// The key.
        key: Key,
        /// What is wrong with the value.
        why: String,
    },
}

impl Config {
    /// The path of the file, whether it exists or not.
    pub fn find() -> Result<PathBuf, ConfigError> {
        match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => Ok(path.into()),
            None => {
                let folders = etcetera::choose_base_strategy().map_err(|_| ConfigError::NoFolder)?;
                Ok(folders.config_dir().join("sametick").join("config.toml"))
            }
        }
    }

    /// Reads the configuration of this machine.
    pub fn load() -> Result<Config, ConfigError> {
        Config::load_from(&Config::find()?)
    }

    /// Reads a file. One that does not exist has no values.
    pub fn load_from(path: &Path) -> Result<Config, ConfigError> {
        let path = path.to_owned();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(ConfigError::Damaged { path, why: "it is not UTF-8".into() });
            }
            Err(error) => return Err(ConfigError::Read { path, error }),
        };
        let table = text.parse::<toml::Table>().map_err(|error| ConfigError::Damaged {
            path: path.clone(),
            why: where_and_why(&text, &error),
        })?;
        for key in Key::value_variants() {
            if table.get(key.as_str()).is_some_and(|value| !value.is_str()) {
                return Err(ConfigError::Damaged { path, why: format!("{key} is no text") });
            }
        }
        Ok(Config { path, table })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value of a key, if it has one.
    pub fn value(&self, key: Key) -> Option<&str> {
        self.table.get(key.as_str())?.as_str().filter(|value| !value.is_empty())
    }

    /// The last relay, if its URL is valid.
    pub fn relay(&self) -> Option<Locator> {
        self.value(Key::Relay)?.parse().ok()
    }

    /// Sets a value; an empty one removes the key. Nothing is written yet.
    pub fn set(&mut self, key: Key, value: &str) -> Result<(), ConfigError> {
        check(key, value)?;
        match value {
            "" => drop(self.table.remove(key.as_str())),
            value => drop(self.table.insert(key.as_str().into(), value.into())),
        }
        Ok(())
    }

    /// Writes the file atomically, readable by its owner only.
    pub fn save(&self) -> Result<(), ConfigError> {
        let write = |error| ConfigError::Write { path: self.path.clone(), error };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.map_or(Ok(()), fs::create_dir_all).map_err(write)?;
        let new = self.path.with_extension(format!("new-{}", std::process::id()));
        let text = toml::to_string(&self.table).expect("a table has a form in TOML");
        let written = create_private(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            // A partly written passphrase should not stay; if it cannot be removed, only its owner can read it.
            let _ = fs::remove_file(&new);
        }
        written.map_err(write)
    }
}

fn check(key: Key, value: &str) -> Result<(), ConfigError> {
    let why = match key {
        _ if value.is_empty() => None,
        _ if value.contains(['\n', '\r']) => Some("it has more than one line".to_owned()),
        Key::Name if value.len() > MAX_NAME => Some(format!("it has more than {MAX_NAME} bytes")),
        Key::Relay => value.parse::<Locator>().err().map(|error| error.to_string()),
        Key::Name | Key::Passphrase => None,
    };
    why.map_or(Ok(()), |why| Err(ConfigError::Value { key, why }))
}

/// The line and the reason of an error in the file, on one line.
fn where_and_why(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message().lines().collect::<Vec<_>>().join(", "))
}

/// Creates or replaces a file that only its owner can read.
#[cfg(unix)]
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Creates or replaces a file.
#[cfg(not(unix))]
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    // On other systems the folders of a user are closed to others.
    OpenOptions::new().write(true).create(true).truncate(true).open(path)
}

/// The relay that was named, or else the last that worked.
pub fn relay_or_last(named: Option<&Locator>) -> Result<Locator, ConfigError> {
    match named {
        Some(relay) => Ok(relay.clone()),
        None => Config::load()?.relay().ok_or(ConfigError::NoRelay),
    }
}

/// Remembers a relay that worked. A failure is not reported: the player has already played.
pub fn remember_relay(relay: &Locator) {
    let remember = || {
        let mut config = Config::load()?;
        if config.relay().as_ref() == Some(relay) {
            return Ok(());
        }
        config.set(Key::Relay, &relay.to_string())?;
        config.save()
    };
    if let Err(error) = remember() {
        tracing::warn!(%error, "the relay is not remembered");
    }
}

/// Runs `sametick config`.
pub fn config(command: &ConfigCommand) -> Result<ExitCode, CommandError> {
    match command {
        ConfigCommand::Show { json } => print(&Shown::of(&Config::load()?), *json)?,
        ConfigCommand::Path => writeln!(io::stdout(), "{}", Config::find()?.display())?,
        ConfigCommand::Set { key, value } => {
            let mut config = Config::load()?;
            let value = value.clone().map_or_else(first_line, Ok)?;
            config.set(*key, &value)?;
            config.save()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn first_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// The values as they are printed, without the passphrase.
#[derive(Serialize)]
struct Shown {
    path: String,
    name: Option<String>,
    has_passphrase: bool,
    relay: Option<String>,
}

impl Shown {
    fn of(config: &Config) -> Shown {
        Shown {
            path: config.path().display().to_string(),
            name: config.value(Key::Name).map(Into::into),
            has_passphrase: config.value(Key::Passphrase).is_some(),
            relay: config.value(Key::Relay).map(Into::into),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
        writeln!(f, "{}", self.path)?;
        writeln!(f, "  name        {}", or_none(&self.name))?;
        writeln!(f, "  passphrase  {}", if self.has_passphrase { "remembered" } else { "none" })?;
        write!(f, "  relay       {}", or_none(&self.relay))
    }
}

impl Key {
    /// Its name in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Key::Name => "name",
            Key::Passphrase => "passphrase",
            Key::Relay => "relay",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
