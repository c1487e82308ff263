//! The location of a store as a setting: the path of a folder, or `s3://bucket/prefix?endpoint=…&region=…`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::folder::FolderStore;
use super::object_store::{ObjectStore, StoreError};

/// The scheme of S3-compatible storage.
const S3_SCHEME: &str = "s3://";

/// The location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A folder.
    Folder(PathBuf),
    /// A bucket.
    S3(S3Place),
}

/// A bucket in S3-compatible storage. Credentials are not part of it: they come from the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Place {
    /// The name of the bucket.
    pub bucket: String,
    /// The prefix of all keys, without a slash at either end; may be empty.
    pub prefix: String,
    /// The address of the storage; Amazon's own if there is none.
    pub endpoint: Option<String>,
    /// The region; `us-east-1` if neither this nor the environment names one.
    pub region: Option<String>,
    /// Whether the bucket is part of the path; otherwise it is part of the host name.
    pub path_style: bool,
}

/// Why a text is not a location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPlace {
    /// It is empty.
    #[error("a place for saves is a folder, or s3://bucket/prefix?endpoint=…&region=…; this is empty")]
    Empty,
    /// It has an unknown scheme.
    #[error("{0:?} is no place for saves: they are kept in a folder or at s3://bucket/prefix")]
    Scheme(String),
    /// The bucket's name is missing or invalid.
    #[error("{0:?} is no name of a bucket: those have 3 to 63 of a-z, 0-9, '-', '.' and '_'")]
    Bucket(String),
    /// The prefix would not be listed as it was written.
    #[error(
        "{0:?} is no prefix for keys: its parts have A-Z, a-z, 0-9, '-', '_' and '.', and are not '.' or '..'"
    )]
    Prefix(String),
    /// The endpoint is invalid.
    #[error("{0:?} is no endpoint: it begins with https:// or http:// and names a host")]
    Endpoint(String),
    /// A parameter is unknown.
    #[error("{0:?} says nothing about a place: known are endpoint=…, region=…, style=path and style=host")]
    Setting(String),
    /// A percent sign is not followed by two hexadecimal digits.
    #[error("{0:?} has a % that is not followed by two hexadecimal digits")]
    Percent(String),
}

impl Place {
    /// Parses a location.
    ///
    /// ```
    /// use sametick_store::saves::Place;
    ///
    /// let Place::S3(place) = Place::parse("s3://games/sametick?endpoint=http://localhost:9000")? else { panic!() };
    /// assert_eq!((&*place.bucket, &*place.prefix), ("games", "sametick"));
    /// assert!(place.path_style && place.endpoint.as_deref() == Some("http://localhost:9000"));
    /// assert_eq!(Place::parse("data/objects")?, Place::Folder("data/objects".into()));
    /// # Ok::<(), sametick_store::saves::BadPlace>(())
    /// ```
    pub fn parse(text: &str) -> Result<Place, BadPlace> {
        if text.is_empty() {
            return Err(BadPlace::Empty);
        }
        match text.strip_prefix(S3_SCHEME) {
            Some(rest) => parse_s3(rest).map(Place::S3),
            None if text.contains("://") => Err(BadPlace::Scheme(text.to_owned())),
            None => Ok(Place::Folder(text.into())),
        }
    }

    /// Opens the store.
    pub fn open(&self) -> Result<Arc<dyn ObjectStore>, StoreError> {
        match self {
            Place::Folder(path) => {
                FolderStore::open(path).map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
            }
            #[cfg(feature = "s3")]
            Place::S3(place) => {
                let options = super::S3Options::new(place.clone());
                super::S3Store::open(options).map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
            }
            #[cfg(not(feature = "s3"))]
            Place::S3(_) => Err(StoreError("this program was built without S3".into())),
        }
    }
}

/// The text that [`parse`](Place::parse) reads.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self {
            Place::Folder(path) => return write!(f, "{}", path.display()),
            Place::S3(place) => place,
        };
        write!(f, "{S3_SCHEME}{}", place.bucket)?;
        if !place.prefix.is_empty() {
            write!(f, "/{}", place.prefix)?;
        }
        let endpoint = place.endpoint.as_ref().map(|endpoint| format!("endpoint={}", escaped(endpoint)));
        let region = place.region.as_ref().map(|region| format!("region={}", escaped(region)));
        let style = (!place.path_style).then(|| "style=host".to_owned());
        let settings: Vec<String> = endpoint.into_iter().chain(region).chain(style).collect();
        if settings.is_empty() { Ok(()) } else { write!(f, "?{}", settings.join("&")) }
    }
}

/// Percent-encodes characters with a special meaning.
fn escaped(text: &str) -> String {
    let letter = |letter: char| match letter {
        '%' | '&' | '#' => format!("%{:02X}", u32::from(letter)),
        letter => letter.to_string(),
    };
    text.chars().map(letter).collect()
}

fn parse_s3(rest: &str) -> Result<S3Place, BadPlace> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
    let prefix = prefix.trim_matches('/');
    let named =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-._".contains(letter);
    if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(named) {
        return Err(BadPlace::Bucket(bucket.to_owned()));
    }
    if !prefix.is_empty() && !prefix.split('/').all(is_plain) {
        return Err(BadPlace::Prefix(prefix.to_owned()));
    }
    let mut place = S3Place {
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
        endpoint: None,
        region: None,
        path_style: true,
    };
    for setting in query.split('&').filter(|setting| !setting.is_empty()) {
        let unknown = || BadPlace::Setting(setting.to_owned());
        let (name, value) = setting.split_once('=').ok_or_else(unknown)?;
        let value = without_percents(value).ok_or_else(|| BadPlace::Percent(setting.to_owned()))?;
        match (name, &*value) {
            ("endpoint", _) if is_endpoint(&value) => place.endpoint = Some(value),
            ("endpoint", _) => return Err(BadPlace::Endpoint(value)),
            ("region", _) if !value.is_empty() => place.region = Some(value),
            ("style", "path") => place.path_style = true,
            ("style", "host") => place.path_style = false,
            _ => return Err(unknown()),
        }
    }
    Ok(place)
}

fn is_plain(part: &str) -> bool {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !matches!(part, "" | "." | "..") && part.chars().all(letter)
}

fn is_endpoint(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    // A password must not be part of the endpoint.
    host.is_some_and(|host| {
        !host.is_empty() && !host.starts_with('/') && !host.contains(['@', ' ', '?', '#'])
    })
}

fn without_percents(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push(match byte {
            b'%' => (digit(rest.next()?)? << 4 | digit(rest.next()?)?) as u8,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
