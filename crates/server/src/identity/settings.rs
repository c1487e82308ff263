//! Identity settings: options of `sametick up`, and the section `[identity]` of its file under the same names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use sametick_transport::fetch::Url;

use super::jwks::{JwksError, KeySet};
use super::signatures::Algorithm;
use super::status::{NoStatusUrl, StatusUrl};
use super::verifier::Rules;
use crate::secret::first_line;

/// The environment variable with the key for session status requests.
pub const STATUS_KEY_VARIABLE: &str = "SAMETICK_STATUS_KEY";

/// The section's name in a file of settings.
pub const SECTION: &str = "identity";

/// The identity options: who may sign in, and how that is checked.
#[derive(Clone, Debug, Default, Args)]
pub struct IdentityArgs {
    /// Where the issuer of signed tokens publishes its keys (JWKS). Rooms then require sign-in
    #[arg(long, value_name = "URL", value_parser = url)]
    pub jwks_url: Option<String>,

    /// The same in a file; read again every ten minutes
    #[arg(long, value_name = "FILE")]
    pub jwks_file: Option<PathBuf>,

    /// The issuer of the tokens, exactly as their claim iss has it
    #[arg(long, value_name = "ISSUER", value_parser = name)]
    pub issuer: Option<String>,

    /// The audience that tokens must have (aud). Without it the audience is not checked
    #[arg(long, value_name = "AUDIENCE", value_parser = name)]
    pub audience: Option<String>,

    /// The page that tokens must be made for (azp); more than one may be given. Without it azp is not checked
    #[arg(long, value_name = "ORIGIN", value_parser = name)]
    pub authorized_party: Vec<String>,

    /// How tokens are signed: RS256, ES256 or EdDSA [default: RS256]
    #[arg(long, value_name = "ALGORITHM")]
    pub jwt_algorithm: Option<Algorithm>,

    /// Where to ask whether a session goes on, with {sid} in the place of its name
    #[arg(long, value_name = "URL", value_parser = status_url)]
    pub status_url: Option<String>,

    /// A file with the key for that on its first line. Without it, $SAMETICK_STATUS_KEY counts
    #[arg(long, value_name = "FILE")]
    pub status_key_file: Option<PathBuf>,
}

fn url(text: &str) -> Result<String, String> {
    let url: Url = text.parse().map_err(|error: sametick_transport::fetch::NoUrl| error.to_string())?;
    private(text, &url)
}

fn status_url(text: &str) -> Result<String, String> {
    let parsed = StatusUrl::parse(text).and_then(|url| Ok(url.of("x")?));
    private(text, &parsed.map_err(|error: NoStatusUrl| error.to_string())?)
}

/// Refuses plain HTTP: keys could be changed in transit.
fn private(text: &str, url: &Url) -> Result<String, String> {
    match url.is_private() {
        true => Ok(text.to_owned()),
        false => Err("https:// is needed: only on this machine itself is http:// safe".into()),
    }
}

fn name(text: &str) -> Result<String, &'static str> {
    let is_name = !text.is_empty() && !text.chars().any(char::is_control);
    is_name.then(|| text.to_owned()).ok_or("a text that is not empty")
}

/// Why identity settings are invalid. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Token rules are set, but no key to check tokens with.
    #[error("--{0} is for signed tokens, which need a key: add --jwks-url or --jwks-file")]
    NoKeys(&'static str),
    /// Two sources of keys are set.
    #[error("--jwks-url and --jwks-file are two places for one thing: leave one of them out")]
    TwoSources,
    /// No issuer is set, so tokens of any issuer would pass.
    #[error("whose tokens are good? Name their issuer with --issuer, exactly as they have it (iss)")]
    NoIssuer,
    /// A file cannot be read.
    #[error("the file {} cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The key file has no usable keys.
    #[error("{}: {error}", path.display())]
    Jwks {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: JwksError,
    },
    /// A status key is set, but no status URL.
    #[error("--status-key-file is for --status-url, which is not given")]
    NoStatusUrl,
    /// The first line of the status key file is empty.
    #[error("the file {} is empty: put the key on its first line", .0.display())]
    EmptyKey(PathBuf),
    /// The worker thread cannot be started.
    #[error("identity cannot be checked: {0}")]
    Worker(#[from] io::Error),
}

/// A valid identity configuration.
#[derive(Clone, Debug)]
pub struct IdentityConfig {
    /// The rules for tokens.
    pub rules: Rules,
    /// The source of keys.
    pub keys: KeySource,
    /// The session status check, if configured.
    pub status: Option<StatusCheck>,
}

/// A source of keys.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// The issuer publishes them.
    Url(Url),
    /// A file has them.
    File(PathBuf),
}

/// How to ask the issuer whether a session is active.
#[derive(Clone, Debug)]
pub struct StatusCheck {
    /// The URL of a session's status.
    pub url: StatusUrl,
    /// The key for the request.
    pub key: Option<StatusKey>,
}

/// The secret for status requests to the issuer.
#[derive(Clone)]
pub struct StatusKey(String);

impl StatusKey {
    /// The secret itself.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for StatusKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl IdentityArgs {
    /// These settings, with `below` as defaults.
    pub fn over(self, below: IdentityArgs) -> IdentityArgs {
        let is_said = !self.authorized_party.is_empty();
        IdentityArgs {
            jwks_url: self.jwks_url.or(below.jwks_url),
            jwks_file: self.jwks_file.or(below.jwks_file),
            issuer: self.issuer.or(below.issuer),
            audience: self.audience.or(below.audience),
            authorized_party: if is_said { self.authorized_party } else { below.authorized_party },
            jwt_algorithm: self.jwt_algorithm.or(below.jwt_algorithm),
            status_url: self.status_url.or(below.status_url),
            status_key_file: self.status_key_file.or(below.status_key_file),
        }
    }

    /// The values of an option as texts; `None` if there is no such option here.
    pub fn value(&self, option: &str) -> Option<Vec<String>> {
        let one = |value: &Option<String>| value.iter().cloned().collect();
        let path = |path: &Option<PathBuf>| path.iter().map(|path| path.display().to_string()).collect();
        Some(match option {
            "jwks-url" => one(&self.jwks_url),
            "jwks-file" => path(&self.jwks_file),
            "issuer" => one(&self.issuer),
            "audience" => one(&self.audience),
            "authorized-party" => self.authorized_party.clone(),
            "jwt-algorithm" => self.jwt_algorithm.iter().map(|algorithm| algorithm.name().into()).collect(),
            "status-url" => one(&self.status_url),
            "status-key-file" => path(&self.status_key_file),
            _ => return None,
        })
    }

    /// An example value for an option.
    pub fn example(option: &str) -> &'static str {
        match option {
            "jwks-url" => "https://your-app.clerk.accounts.dev/.well-known/jwks.json",
            "issuer" => "https://your-app.clerk.accounts.dev",
            "audience" => "sametick",
            "authorized-party" => "https://example.org",
            "jwt-algorithm" => Algorithm::Rs256.name(),
            "status-url" => "https://api.clerk.com/v1/sessions/{sid}",
            _ => "FILE",
        }
    }

    /// The configuration; `None` if no option is set.
    pub fn config(&self) -> Result<Option<IdentityConfig>, IdentityError> {
        let keys = match (&self.jwks_url, &self.jwks_file) {
            (Some(_), Some(_)) => return Err(IdentityError::TwoSources),
            (Some(url), None) => KeySource::Url(url.parse().expect("it was read as one")),
            (None, Some(path)) => KeySource::File(path.clone()),
            // Incomplete settings are an error: treated as none, they would admit everyone.
            (None, None) => {
                return self.pointless().map_or(Ok(None), |said| Err(IdentityError::NoKeys(said)));
            }
        };
        let rules = Rules {
            algorithm: self.jwt_algorithm.unwrap_or_default(),
            issuer: self.issuer.clone().ok_or(IdentityError::NoIssuer)?,
            audience: self.audience.clone(),
            authorized_parties: self.authorized_party.clone(),
        };
        Ok(Some(IdentityConfig { rules, keys, status: self.status()? }))
    }

    /// An option that is set but has no effect without keys.
    fn pointless(&self) -> Option<&'static str> {
        let options =
            ["issuer", "audience", "authorized-party", "jwt-algorithm", "status-url", "status-key-file"];
        options.into_iter().find(|option| self.value(option).is_some_and(|said| !said.is_empty()))
    }

    fn status(&self) -> Result<Option<StatusCheck>, IdentityError> {
        let Some(url) = &self.status_url else {
            return if self.status_key_file.is_some() { Err(IdentityError::NoStatusUrl) } else { Ok(None) };
        };
        let url = StatusUrl::parse(url).expect("it was read as one");
        let key = match &self.status_key_file {
            Some(path) => Some(read_key(path)?),
            None => std::env::var(STATUS_KEY_VARIABLE).ok().filter(|key| !key.is_empty()),
        };
        Ok(Some(StatusCheck { url, key: key.map(StatusKey) }))
    }
}

fn read_key(path: &Path) -> Result<String, IdentityError> {
    let read = |error| IdentityError::Read { path: path.to_owned(), error };
    first_line(path).map_err(read)?.ok_or_else(|| IdentityError::EmptyKey(path.to_owned()))
}

impl IdentityConfig {
    /// The keys of the file, if the source is a file.
    pub(super) fn read_keys(&self) -> Result<Option<KeySet>, IdentityError> {
        let KeySource::File(path) = &self.keys else { return Ok(None) };
        let text = fs::read(path).map_err(|error| IdentityError::Read { path: path.clone(), error })?;
        let keys = KeySet::parse(&text, self.rules.algorithm);
        keys.map(Some).map_err(|error| IdentityError::Jwks { path: path.clone(), error })
    }
}
