//! What identity can be told: options of `sametick up`, and the section `[identity]` of its file under the same names.

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

/// The environment variable with the key for asking how sessions are.
pub const STATUS_KEY_VARIABLE: &str = "SAMETICK_STATUS_KEY";

/// The section's name in a file of settings.
pub const SECTION: &str = "identity";

/// Who may sign in, and how that is checked.
#[derive(Clone, Debug, Default, Args)]
pub struct IdentityArgs {
    /// Where the issuer of signed tokens publishes its keys (JWKS). Rooms are for those who have signed in then
    #[arg(long, value_name = "URL", value_parser = url)]
    pub jwks_url: Option<String>,

    /// The same in a file; read again every ten minutes
    #[arg(long, value_name = "FILE")]
    pub jwks_file: Option<PathBuf>,

    /// Who makes the tokens, exactly as they say it (iss)
    #[arg(long, value_name = "ISSUER", value_parser = name)]
    pub issuer: Option<String>,

    /// For whom tokens have to be made (aud). Without it that is not asked
    #[arg(long, value_name = "AUDIENCE", value_parser = name)]
    pub audience: Option<String>,

    /// For which page tokens have to be made (azp); more than one may be given. Without it that is not asked
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

/// Keys that anybody on the way could have changed are no keys.
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

/// Why identity cannot be checked as it is said. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Something is said of tokens, but there is no key to check them with.
    #[error("--{0} is for signed tokens, which need a key: add --jwks-url or --jwks-file")]
    NoKeys(&'static str),
    /// There are two sources of keys.
    #[error("--jwks-url and --jwks-file are two places for one thing: leave one of them out")]
    TwoSources,
    /// Anybody's tokens would do.
    #[error("whose tokens are good? Name their issuer with --issuer, exactly as they have it (iss)")]
    NoIssuer,
    /// A file cannot be read.
    #[error("the file {} cannot be read: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There are no keys in the file.
    #[error("{}: {error}", path.display())]
    Jwks {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        error: JwksError,
    },
    /// There is a key for a question that is not asked.
    #[error("--status-key-file is for --status-url, which is not given")]
    NoStatusUrl,
    /// The file with the key for questions has nothing on its first line.
    #[error("the file {} is empty: put the key on its first line", .0.display())]
    EmptyKey(PathBuf),
    /// There is no thread to be had.
    #[error("identity cannot be checked: {0}")]
    Worker(#[from] io::Error),
}

/// How identity is checked.
#[derive(Clone, Debug)]
pub struct IdentityConfig {
    /// What is asked of tokens.
    pub rules: Rules,
    /// Where the keys come from.
    pub keys: KeySource,
    /// Where to ask whether sessions go on, if anywhere.
    pub status: Option<StatusCheck>,
}

/// Where keys come from.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// The issuer publishes them.
    Url(Url),
    /// They lie here.
    File(PathBuf),
}

/// How to ask whether a session goes on.
#[derive(Clone, Debug)]
pub struct StatusCheck {
    /// Where.
    pub url: StatusUrl,
    /// With which key.
    pub key: Option<StatusKey>,
}

/// What the issuer asks of whoever asks.
#[derive(Clone)]
pub struct StatusKey(String);

impl StatusKey {
    /// The key itself.
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
    /// These, and the others where these say nothing.
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

    /// What an option says, as texts; `None` if there is no such option here.
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

    /// What an option could look like.
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

    /// How identity is checked; `None` if nothing is said of it.
    pub fn config(&self) -> Result<Option<IdentityConfig>, IdentityError> {
        let keys = match (&self.jwks_url, &self.jwks_file) {
            (Some(_), Some(_)) => return Err(IdentityError::TwoSources),
            (Some(url), None) => KeySource::Url(url.parse().expect("it was read as one")),
            (None, Some(path)) => KeySource::File(path.clone()),
            // Half of it must not pass for nothing: then everybody would come in.
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

    /// An option that is said although it means nothing without keys.
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
    /// The keys of a file, if that is where they are.
    pub(super) fn read_keys(&self) -> Result<Option<KeySet>, IdentityError> {
        let KeySource::File(path) = &self.keys else { return Ok(None) };
        let text = fs::read(path).map_err(|error| IdentityError::Read { path: path.clone(), error })?;
        let keys = KeySet::parse(&text, self.rules.algorithm);
        keys.map(Some).map_err(|error| IdentityError::Jwks { path: path.clone(), error })
    }
}
