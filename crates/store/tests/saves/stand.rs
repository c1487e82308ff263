//! An S3-compatible server in memory: compares and swaps under one lock, records its whole history, and fails as a seed
//! decides.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a server says when an object was written"
)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, ETag, ETagCondition, GetObjectInput, GetObjectOutput,
    HeadObjectInput, HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output, Object, PutObjectInput,
    PutObjectOutput, StreamingBlob, Timestamp,
};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3, S3Request, S3Response, S3Result, s3_error};
use sametick_sim::{Rng, StateHash};
use sametick_store::saves::{Commit, S3Credentials, S3Options, S3Place, S3Store};
use tokio::net::{TcpListener, TcpStream};

const BUCKET: &str = "bucket";
const KEY_ID: &str = "stand";
const SECRET: &str = "of the stand";
/// The client's time-out, as long as nothing is late on purpose.
const PATIENT_LIMIT: Duration = Duration::from_secs(60);
/// The client's time-out otherwise.
const HASTY_LIMIT: Duration = Duration::from_millis(400);
/// Longer than that.
const SLOW: Duration = Duration::from_millis(600);
const MAX_BODY: usize = 64 << 20;
/// How many keys are in one answer: few, so that there are several.
const KEYS_AT_ONCE: usize = 3;

/// How often each fault happens, of 1,000 requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wrongs {
    /// 503, and nothing is done.
    pub unavailable: u64,
    /// It is done, later than any client waits.
    pub slow: u64,
    /// The connection breaks before anything is done.
    pub broken: u64,
    /// The connection breaks in the middle of the answer.
    pub broken_body: u64,
    /// It is done, and the connection breaks.
    pub lost_reply: u64,
    /// 409 or 412 to a put, and nothing is done.
    pub refused: u64,
}

impl Wrongs {
    pub fn all(often: u64) -> Wrongs {
        let slow = often / 10;
        Wrongs {
            unavailable: often,
            slow,
            broken: often,
            broken_body: often,
            lost_reply: often,
            refused: often,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wrong {
    Unavailable,
    Slow,
    Broken,
    BrokenBody,
    LostReply,
    Conflict,
    Precondition,
}

/// A server on a port of its own, for as long as the runtime lives.
#[derive(Clone)]
pub struct Stand {
    objects: Objects,
    port: u16,
    chance: Arc<Mutex<Chance>>,
}

struct Chance {
    rng: Rng,
    wrongs: Wrongs,
    happened: BTreeMap<Wrong, u64>,
}

#[derive(Clone, Default)]
struct Objects(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    objects: BTreeMap<String, Stored>,
    history: Vec<Commit>,
    conditional_puts: u64,
}

#[derive(Clone)]
struct Stored {
    bytes: Bytes,
    metadata: Option<s3s::dto::Metadata>,
    modified: SystemTime,
}

impl Stand {
    pub async fn start(seed: u64, wrongs: Wrongs) -> Stand {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let chance = Chance { rng: Rng::new(seed), wrongs, happened: BTreeMap::new() };
        let stand = Stand { objects: Objects::default(), port, chance: Arc::new(Mutex::new(chance)) };
        let mut service = S3ServiceBuilder::new(stand.objects.clone());
        service.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let (service, serving) = (service.build(), stand.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream, service.clone()));
            }
        });
        stand
    }

    /// A client of the server.
    pub fn store(&self) -> S3Store {
        self.store_of("http", SECRET)
    }

    pub fn store_of(&self, scheme: &str, secret: &str) -> S3Store {
        let place = S3Place {
            bucket: BUCKET.into(),
            prefix: "some/where".into(),
            endpoint: Some(format!("{scheme}://127.0.0.1:{}", self.port)),
            region: Some("us-east-1".into()),
            path_style: true,
        };
        let credentials = Some(S3Credentials { key_id: KEY_ID.into(), secret: secret.into() });
        let is_hasty = self.chance.lock().unwrap().wrongs.slow > 0;
        let request_limit = if is_hasty { HASTY_LIMIT } else { PATIENT_LIMIT };
        S3Store::open(S3Options { credentials, request_limit, ..S3Options::new(place) }).unwrap()
    }

    /// Its location, for a program.
    pub fn place(&self) -> String {
        format!("s3://{BUCKET}/some/where?endpoint=http://127.0.0.1:{}", self.port)
    }

    /// The environment variables that a program needs.
    pub fn environment() -> [(&'static str, &'static str); 2] {
        [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", SECRET)]
    }

    pub fn set_wrongs(&self, wrongs: Wrongs) {
        self.chance.lock().unwrap().wrongs = wrongs;
    }

    pub fn history(&self) -> Vec<Commit> {
        self.objects.lock().history.clone()
    }

    /// How many conditional puts were decided.
    pub fn conditional_puts(&self) -> u64 {
        self.objects.lock().conditional_puts
    }

    /// The number of each fault, as text.
    pub fn happened(&self) -> String {
        format!("{:?}", self.chance.lock().unwrap().happened)
    }

    async fn serve(self, stream: TcpStream, service: S3Service) {
        stream.set_nodelay(true).unwrap();
        let answer = hyper::service::service_fn(|request| self.answer(&service, request));
        // A connection that we break is no failure of the test.
        let _ =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
    }

    fn draw(&self, is_put: bool) -> Option<Wrong> {
        let mut chance = self.chance.lock().unwrap();
        let Chance { rng, wrongs, happened } = &mut *chance;
        let refused = if rng.chance(1, 2) { Wrong::Conflict } else { Wrong::Precondition };
        let all = [
            (Wrong::Unavailable, wrongs.unavailable),
            (Wrong::Slow, wrongs.slow),
            (Wrong::Broken, wrongs.broken),
            (Wrong::BrokenBody, wrongs.broken_body),
            (Wrong::LostReply, wrongs.lost_reply),
            (refused, if is_put { wrongs.refused } else { 0 }),
        ];
        let wrong = all.into_iter().find(|(_, often)| rng.chance(*often, 1000)).map(|(wrong, _)| wrong);
        wrong.iter().for_each(|wrong| *happened.entry(*wrong).or_default() += 1);
        wrong
    }

    async fn answer(&self, service: &S3Service, request: Request<Incoming>) -> io::Result<Response<Answer>> {
        let wrong = self.draw(request.method() == Method::PUT);
        let simply = |status| Ok(Response::builder().status(status).body(whole(Bytes::new())).unwrap());
        match wrong {
            Some(Wrong::Unavailable) => return simply(StatusCode::SERVICE_UNAVAILABLE),
            Some(Wrong::Conflict) => return simply(StatusCode::CONFLICT),
            Some(Wrong::Precondition) => return simply(StatusCode::PRECONDITION_FAILED),
            Some(Wrong::Broken) => return Err(io::ErrorKind::ConnectionReset.into()),
            Some(Wrong::Slow) => return self.answer_late(service, request).await,
            _ => {}
        }
        let response = service.call(request.map(Body::from)).await.map_err(|_| io::ErrorKind::Other)?;
        if wrong == Some(Wrong::LostReply) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let body =
            if wrong == Some(Wrong::BrokenBody) && !bytes.is_empty() { half(&bytes) } else { whole(bytes) };
        Ok(Response::from_parts(parts, body))
    }

    /// Requests with a timed-out client are still done, as by a busy machine.
    async fn answer_late(
        &self,
        service: &S3Service,
        request: Request<Incoming>,
    ) -> io::Result<Response<Answer>> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let service = service.clone();
        tokio::spawn(async move {
            tokio::time::sleep(SLOW).await;
            let _ = service.call(Request::from_parts(parts, Body::from(bytes))).await;
        });
        std::future::pending().await
    }
}

type Answer = BoxBody<Bytes, io::Error>;

fn whole(bytes: Bytes) -> Answer {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed()
}

/// Half of the answer, and then the connection breaks.
fn half(bytes: &Bytes) -> Answer {
    let first = bytes.slice(..bytes.len() / 2);
    let frames = [Ok(Frame::data(first)), Err(io::ErrorKind::ConnectionReset.into())];
    BodyExt::boxed(StreamBody::new(futures_util::stream::iter(frames)))
}

impl Objects {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap()
    }

    fn find(&self, key: &str) -> S3Result<Stored> {
        self.lock().objects.get(key).cloned().ok_or_else(|| s3_error!(NoSuchKey))
    }
}

impl Stored {
    fn tag(&self) -> ETag {
        // As a rule the ETag of an object is a hash of its content.
        ETag::Strong(StateHash::of_bytes(&self.bytes).to_string())
    }
}

impl Inside {
    /// Whether a put may be done. All of this is under one lock.
    fn allows(&mut self, input: &PutObjectInput) -> S3Result<()> {
        let there = self.objects.get(&input.key).map(Stored::tag);
        self.conditional_puts += u64::from(input.if_match.is_some() || input.if_none_match.is_some());
        let fails = match (&input.if_match, &input.if_none_match) {
            (Some(ETagCondition::ETag(expected)), None) => match there {
                None => return Err(s3_error!(NoSuchKey)),
                Some(tag) => tag != *expected,
            },
            (None, Some(ETagCondition::Any)) => there.is_some(),
            (None, None) => false,
            _ => return Err(s3_error!(NotImplemented)),
        };
        if fails { Err(s3_error!(PreconditionFailed)) } else { Ok(()) }
    }
}

#[async_trait::async_trait]
impl S3 for Objects {
    async fn put_object(&self, req: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let mut input = req.input;
        let mut body = Body::from(input.body.take().ok_or_else(|| s3_error!(IncompleteBody))?);
        let bytes = body.store_all_limited(MAX_BODY).await.map_err(|_| s3_error!(IncompleteBody))?;
        if input.content_length.is_some_and(|expected| expected != bytes.len() as i64) {
            return Err(s3_error!(IncompleteBody));
        }
        let stored = Stored { bytes, metadata: input.metadata.take(), modified: SystemTime::now() };
        let mut inside = self.lock();
        inside.allows(&input)?;
        let e_tag = Some(stored.tag());
        inside.history.push(Commit { key: input.key.clone(), bytes: Some(stored.bytes.to_vec()) });
        inside.objects.insert(input.key, stored);
        Ok(S3Response::new(PutObjectOutput { e_tag, ..Default::default() }))
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let found = self.find(&req.input.key)?;
        let len = found.bytes.len() as u64;
        let range = req.input.range.map(|range| range.check(len)).transpose()?;
        let content_range =
            range.as_ref().map(|range| format!("bytes {}-{}/{len}", range.start, range.end - 1));
        let bytes = match range {
            Some(range) => found.bytes.slice(range.start as usize..range.end as usize),
            None => found.bytes.clone(),
        };
        let output = GetObjectOutput {
            content_length: Some(bytes.len() as i64),
            content_range,
            e_tag: Some(found.tag()),
            last_modified: Some(Timestamp::from(found.modified)),
            body: Some(StreamingBlob::from(Body::from(bytes))),
            metadata: found.metadata,
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    async fn head_object(&self, req: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let found = self.find(&req.input.key)?;
        let output = HeadObjectOutput {
            content_length: Some(found.bytes.len() as i64),
            e_tag: Some(found.tag()),
            last_modified: Some(Timestamp::from(found.modified)),
            metadata: found.metadata,
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let mut inside = self.lock();
        if inside.objects.remove(&req.input.key).is_some() {
            inside.history.push(Commit { key: req.input.key, bytes: None });
        }
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let prefix = req.input.prefix.unwrap_or_default();
        let after = req.input.continuation_token.unwrap_or_default();
        let inside = self.lock();
        let fits = |(key, _): &(&String, &Stored)| key.starts_with(&prefix) && **key > after;
        let mut found: Vec<_> = inside.objects.iter().filter(fits).take(KEYS_AT_ONCE + 1).collect();
        let is_truncated = found.len() > KEYS_AT_ONCE;
        found.truncate(KEYS_AT_ONCE);
        let next = found.last().filter(|_| is_truncated).map(|(key, _)| (*key).clone());
        let contents = found.into_iter().map(|(key, stored)| Object {
            key: Some(key.clone()),
            size: Some(stored.bytes.len() as i64),
            e_tag: Some(stored.tag()),
            last_modified: Some(Timestamp::from(stored.modified)),
            ..Default::default()
        });
        let output = ListObjectsV2Output {
            contents: Some(contents.collect()),
            is_truncated: Some(is_truncated),
            next_continuation_token: next,
            name: Some(req.input.bucket),
            prefix: Some(prefix.clone()),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }
}
