//! An object store in S3-compatible storage.
//!
//! The library's own retries are off: a retry that hides a lost answer would make our own write look like one of
//! another process. Every request has one time limit, and the caller decides what comes after it.

use std::ops::Range;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, ClientOptions, Error, GetOptions, GetRange, GetResult, ObjectStore as _,
    ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig, UpdateVersion,
};
use sametick_sim::Tick;

use super::object_store::{
    Condition, Content, Listed, MAX_OBJECT_BYTES, ObjectStore, Pending, PutError, StoreError, Tag, Version,
};
use super::place::S3Place;

/// The name of the tick in the metadata of an S3 object.
const TICK: &str = "sametick-tick";

/// How long to wait for a connection: a slower store counts as down.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The longest time of a request: the largest save over a slow line.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);

/// The instance metadata paths that are asked for credentials when the environment names none.
const MACHINE_ROLE: [&str; 2] = ["/latest/api/token", "/latest/meta-data/iam"];

/// Longer error texts are cut.
const MAX_TROUBLE_LETTERS: usize = 400;

/// How to connect to S3-compatible storage.
#[derive(Clone, Debug)]
pub struct S3Options {
    /// The location of the bucket.
    pub place: S3Place,
    /// The credentials; otherwise those of the environment (`AWS_ACCESS_KEY_ID` and so on).
    pub credentials: Option<S3Credentials>,
    /// The time limit of a request.
    pub request_limit: Duration,
}

/// Credentials. `Debug` does not show them.
#[derive(Clone)]
pub struct S3Credentials {
    /// The id of the key.
    pub key_id: String,
    /// The secret of the key.
    pub secret: String,
}

impl std::fmt::Debug for S3Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("S3Credentials")
    }
}

impl S3Options {
    /// This location, with credentials from the environment.
    pub fn new(place: S3Place) -> S3Options {
        S3Options { place, credentials: None, request_limit: REQUEST_LIMIT }
    }
}

/// S3-compatible storage. It needs a tokio runtime.
#[derive(Debug)]
pub struct S3Store {
    store: AmazonS3,
    /// Empty, or ends with a slash.
    prefix: String,
    request_limit: Duration,
}

impl S3Store {
    /// Opens the store at this location. Sends no request yet.
    pub fn open(options: S3Options) -> Result<S3Store, StoreError> {
        let S3Options { place, credentials, request_limit } = options;
        // One TLS provider for the whole program; an earlier choice is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&place.bucket)
            .with_virtual_hosted_style_request(!place.path_style)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            // Every storage supports single deletes, and they need no extra permission.
            .with_disable_bulk_delete(true)
            .with_retry(retry);
        if let Some(endpoint) = &place.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        // The environment may also set it.
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        let client = ClientOptions::new()
            .with_allow_http(endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")))
            .with_connect_timeout(CONNECT_LIMIT)
            .with_timeout_disabled();
        builder = builder.with_client_options(client);
        if let Some(region) = &place.region {
            builder = builder.with_region(region);
        }
        if let Some(S3Credentials { key_id, secret }) = credentials {
            builder = builder.with_access_key_id(key_id).with_secret_access_key(secret);
        }
        let store = builder.build().map_err(|error| trouble(&error))?;
        let prefix = if place.prefix.is_empty() { String::new() } else { place.prefix + "/" };
        Ok(S3Store { store, prefix, request_limit })
    }

    fn path(&self, key: &str) -> Result<Path, StoreError> {
        Path::parse(format!("{}{key}", self.prefix)).map_err(|error| StoreError(error.to_string()))
    }

    /// Applies the request time limit.
    async fn within<T>(&self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        match tokio::time::timeout(self.request_limit, asked).await {
            Ok(answer) => answer.map_err(Failure::Answer),
            Err(_) => Err(Failure::Silence(self.request_limit)),
        }
    }

    async fn ask(&self, key: &str, options: GetOptions) -> Result<Option<(GetResult, Version)>, Failure> {
        let path = self.path(key).map_err(Failure::Unasked)?;
        match self.within(self.store.get_opts(&path, options)).await {
            Err(Failure::Answer(Error::NotFound { .. })) => Ok(None),
            Ok(found) => {
                let tag = found.meta.e_tag.clone();
                let version = tag
                    .map(Version)
                    .ok_or_else(|| Failure::Unasked(StoreError("there is no ETag".into())))?;
                Ok(Some((found, version)))
            }
            Err(failure) => Err(failure),
        }
    }

    async fn read(&self, key: &str, range: Option<GetRange>) -> Result<Option<Content>, StoreError> {
        let options = GetOptions { range, ..GetOptions::default() };
        let Some((found, version)) = self.ask(key, options).await? else { return Ok(None) };
        if found.range.end.saturating_sub(found.range.start) > MAX_OBJECT_BYTES {
            return Err(StoreError(format!("{key} is too large to be read whole")));
        }
        let bytes = self.within(found.bytes()).await?;
        Ok(Some(Content { bytes: bytes.into(), version }))
    }

    async fn put_object(
        &self,
        key: &str,
        bytes: &[u8],
        condition: Condition,
        tick: Option<Tick>,
    ) -> Result<Version, PutError> {
        let path = self.path(key).map_err(PutError::Failing)?;
        let mode = match condition {
            Condition::New => PutMode::Create,
            Condition::Replaces(Version(tag)) => {
                PutMode::Update(UpdateVersion { e_tag: Some(tag), version: None })
            }
        };
        let tick = tick.map(|tick| (Attribute::Metadata(TICK.into()), tick.0.to_string()));
        let options = PutOptions { mode, attributes: Attributes::from_iter(tick), ..PutOptions::default() };
        let payload = PutPayload::from(bytes.to_vec());
        let put = self.within(self.store.put_opts(&path, payload, options)).await?;
        let unsaid = || PutError::MaybeDone(StoreError("the answer has no ETag".into()));
        put.e_tag.map(Version).ok_or_else(unsaid)
    }
}

/// Why there is no good answer.
enum Failure {
    /// The request was not sent.
    Unasked(StoreError),
    /// The storage or the network reported an error.
    Answer(Error),
    /// The request timed out.
    Silence(Duration),
}

fn trouble(error: &Error) -> StoreError {
    let mut text = error.to_string();
    if MACHINE_ROLE.iter().any(|asked| text.contains(asked)) {
        text = format!(
            "no credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and this machine has no role of its own: {text}"
        );
    }
    StoreError(text.chars().take(MAX_TROUBLE_LETTERS).collect())
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> StoreError {
        match failure {
            Failure::Unasked(trouble) => trouble,
            Failure::Answer(error) => trouble(&error),
            Failure::Silence(limit) => StoreError(format!("no answer within {} s", limit.as_secs_f32())),
        }
    }
}

impl From<Failure> for PutError {
    fn from(failure: Failure) -> PutError {
        match failure {
            Failure::Answer(
                Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. },
            ) => PutError::Conflict,
            Failure::Answer(
                Error::PermissionDenied { .. }
                | Error::Unauthenticated { .. }
                | Error::NotFound { .. }
                | Error::InvalidPath { .. }
                | Error::NotImplemented { .. }
                | Error::NotSupported { .. },
            )
            | Failure::Unasked(_) => PutError::Failing(failure.into()),
            // The storage failed, the connection broke, or the request timed out: before or after it was done.
            Failure::Answer(_) | Failure::Silence(_) => PutError::MaybeDone(failure.into()),
        }
    }
}

impl ObjectStore for S3Store {
    fn head<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Tag>, StoreError>> {
        Box::pin(async move {
            let options = GetOptions { head: true, ..GetOptions::default() };
            let Some((found, version)) = self.ask(key, options).await? else { return Ok(None) };
            let tick = found.attributes.get(&Attribute::Metadata(TICK.into()));
            let tick = tick.and_then(|tick| tick.parse().ok()).map(Tick);
            Ok(Some(Tag { version, tick }))
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Result<Option<Content>, StoreError>> {
        Box::pin(self.read(key, None))
    }

    fn get_range<'a>(
        &'a self,
        key: &'a str,
        range: Range<u64>,
    ) -> Pending<'a, Result<Option<Content>, StoreError>> {
        Box::pin(self.read(key, Some(GetRange::Bounded(range))))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: &'a [u8],
        condition: Condition,
        tick: Option<Tick>,
    ) -> Pending<'a, Result<Version, PutError>> {
        Box::pin(self.put_object(key, bytes, condition, tick))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Pending<'a, Result<Vec<Listed>, StoreError>> {
        Box::pin(async move {
            // The library compares prefixes by whole path parts: so everything below the last folder in the prefix is
            // listed.
            let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
            let folder = self.path(folder)?;
            let all = self.store.list(Some(&folder)).map_ok(|object| Listed {
                key: object.location.as_ref().strip_prefix(&self.prefix).unwrap_or_default().to_owned(),
                bytes: object.size,
                modified_unix_ms: u64::try_from(object.last_modified.timestamp_millis()).unwrap_or(0),
            });
            let mut all: Vec<Listed> = self.within(all.try_collect()).await?;
            all.retain(|listed| listed.key.starts_with(prefix));
            Ok(all)
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let path = self.path(key)?;
            match self.within(self.store.delete(&path)).await {
                Err(Failure::Answer(Error::NotFound { .. })) => Ok(()),
                deleted => Ok(deleted?),
            }
        })
    }
}
