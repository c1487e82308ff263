//! Verifies tokens on a thread of its own, so that no signature check and no slow issuer delays a tick.
//!
//! Each request has a channel for its answer. Key fetches and session status requests run concurrently on the worker's
//! own runtime.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use sametick_transport::clock::{Clock, unix_seconds};
use sametick_transport::fetch::{FetchError, Fetcher, Limits};
use sametick_transport::tls::Trust;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::jwks::{JwksError, KeySet, MAX_JWKS_LEN};
use super::keys::{Keys, Missing};
use super::refusal::Refusal;
use super::settings::{IdentityConfig, KeySource, StatusCheck, StatusKey};
use super::status::{MAX_STATUS_LEN, Standing, standing};
use super::verifier::{Claims, Verifier};

/// Time-out for an issuer's answer; a sign-in waits at most twice as long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Limits on tokens that are queued, wait for keys, or wait for their session's status. Beyond them a sign-in is
/// refused for now.
const MAX_QUEUED: usize = 256;
const MAX_WAITING: usize = 1_024;
const MAX_ASKED: usize = 64;

type Answer = Result<Claims, Refusal>;

/// A token to check.
struct Request {
    token: String,
    answer: oneshot::Sender<Answer>,
}

/// A handle to the worker. The thread ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Worker {
    requests: mpsc::Sender<Request>,
}

impl Worker {
    /// Starts the worker; keys of a file are available at once, others are fetched now.
    pub fn open(config: IdentityConfig, keys: Option<KeySet>) -> io::Result<Worker> {
        let (requests, incoming) = mpsc::channel(MAX_QUEUED);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let fetcher = Fetcher::new(Trust::Public).map_err(io::Error::other)?;
        let mut clerk = Running::new(config, keys, fetcher, incoming);
        std::thread::Builder::new().name("identity".into()).spawn(move || clerk.work(&runtime))?;
        Ok(Worker { requests })
    }

    /// The claims of a token, if it is valid. The token is queued when the future is first polled.
    pub fn check(&self, token: String) -> impl Future<Output = Answer> + Send + use<> {
        let requests = self.requests.clone();
        async move {
            let (answer, answered) = oneshot::channel();
            match requests.try_send(Request { token, answer }) {
                Ok(()) => answered.await.unwrap_or(Err(Refusal::IdentityUnavailable)),
                Err(_) => Err(Refusal::IdentityUnavailable),
            }
        }
    }
}

/// The state of the worker thread.
struct Running {
    clock: Clock,
    verifier: Verifier,
    source: KeySource,
    status: Option<StatusCheck>,
    keys: Keys,
    fetcher: Fetcher,
    incoming: mpsc::Receiver<Request>,
    /// Tokens whose keys are being fetched.
    waiting: VecDeque<Request>,
    fetching: Option<JoinHandle<Result<KeySet, NoKeys>>>,
    asking: JoinSet<Result<(), NoStatus>>,
    /// Whether the last status request was answered.
    has_status: bool,
}

/// Why a key fetch failed.
#[derive(Debug, thiserror::Error)]
enum NoKeys {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the issuer answers with status {0}")]
    Status(u16),
    #[error(transparent)]
    Jwks(#[from] JwksError),
    #[error("the file cannot be read: {0}")]
    File(#[from] io::Error),
}

/// Why a status request failed.
#[derive(Debug, thiserror::Error)]
enum NoStatus {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the answer, with status {0}, does not say how the session is")]
    Answer(u16),
}

impl Running {
    fn new(
        config: IdentityConfig,
        keys: Option<KeySet>,
        fetcher: Fetcher,
        incoming: mpsc::Receiver<Request>,
    ) -> Running {
        let IdentityConfig { rules, keys: source, status } = config;
        let clock = Clock::start();
        let keys = match keys {
            Some(set) => Keys::fetched_at(clock.now(), set),
            None => Keys::missing_at(clock.now()),
        };
        Running {
            clock,
            verifier: Verifier::new(rules),
            source,
            status,
            keys,
            fetcher,
            incoming,
            waiting: VecDeque::new(),
            fetching: None,
            asking: JoinSet::new(),
            has_status: true,
        }
    }

    /// Handles requests until all handles are dropped. A panic loses the token at hand, not the thread.
    fn work(&mut self, runtime: &Runtime) {
        while catch_unwind(AssertUnwindSafe(|| runtime.block_on(self.run()))).is_err() {
            tracing::error!("a token could not be looked at because of a mistake in this program");
        }
    }

    async fn run(&mut self) {
        loop {
            if self.keys.begin(self.clock.now()) {
                self.fetching =
                    Some(tokio::spawn(fetch(self.fetcher.clone(), self.source.clone(), self.algorithm())));
            }
            let due = self.keys.wake_at().map(|at| tokio::time::Instant::from_std(self.clock.instant(at)));
            tokio::select! {
                request = self.incoming.recv() => match request {
                    Some(request) => self.look_at(request),
                    None => return,
                },
                fetched = fetched(&mut self.fetching) => self.on_fetched(fetched),
                Some(asked) = self.asking.join_next() => self.on_asked(&asked.unwrap_or(Ok(()))),
                () = sleep_until(due) => {}
            }
        }
    }

    fn algorithm(&self) -> super::Algorithm {
        self.verifier.rules().algorithm
    }

    /// Answers a request, queues it until keys are fetched, or starts its status request.
    fn look_at(&mut self, request: Request) {
        if request.answer.is_closed() {
            return;
        }
        match self.verifier.check(&request.token, self.keys.set(), unix_seconds()) {
            Err(Refusal::UnknownKey) => match self.keys.miss(self.clock.now()) {
                Missing::Wait if self.waiting.len() < MAX_WAITING => self.waiting.push_back(request),
                Missing::Wait => reply(request.answer, Err(Refusal::IdentityUnavailable)),
                Missing::Refused(refusal) => reply(request.answer, Err(refusal)),
            },
            Ok(claims) => self.ask(claims, request.answer),
            refused => reply(request.answer, refused),
        }
    }

    /// Requests the session status for a valid token, if configured.
    fn ask(&mut self, claims: Claims, answer: oneshot::Sender<Answer>) {
        let Some(status) = &self.status else { return reply(answer, Ok(claims)) };
        let Some(url) = claims.session.as_ref().and_then(|session| status.url.of(session).ok()) else {
            let what = "the token does not name its session (sid), which this server asks for";
            return reply(answer, Err(Refusal::MalformedToken(what)));
        };
        if self.asking.len() >= MAX_ASKED {
            return reply(answer, Err(Refusal::IdentityUnavailable));
        }
        let (fetcher, key) = (self.fetcher.clone(), status.key.clone());
        self.asking.spawn(async move {
            let limits = Limits { time: PATIENCE, body: MAX_STATUS_LEN };
            let asked = fetcher.get(&url, key.as_ref().map(StatusKey::as_str), limits).await;
            let said = asked.map_err(NoStatus::from);
            let said = said.and_then(|said| standing(&said).ok_or(NoStatus::Answer(said.status)));
            let (said, trouble) = match said {
                Ok(Standing::Active) => (Ok(claims), Ok(())),
                Ok(Standing::Revoked) => (Err(Refusal::Revoked), Ok(())),
                Err(trouble) => (Err(Refusal::IdentityUnavailable), Err(trouble)),
            };
            reply(answer, said);
            trouble
        });
    }

    fn on_asked(&mut self, asked: &Result<(), NoStatus>) {
        match asked {
            Err(error) if self.has_status => {
                tracing::warn!(%error, "it cannot be asked whether sessions go on: nobody is signed in meanwhile");
            }
            Ok(()) if !self.has_status => tracing::info!("it can be asked again whether sessions go on"),
            _ => {}
        }
        self.has_status = asked.is_ok();
    }

    fn on_fetched(&mut self, fetched: Result<KeySet, NoKeys>) {
        self.fetching = None;
        match fetched {
            Ok(set) => {
                tracing::info!(keys = set.len(), "the issuer's keys are here");
                self.keys.fetched(self.clock.now(), set);
            }
            Err(error) if self.keys.failed(self.clock.now()) => {
                let kept = self.keys.set().len();
                tracing::warn!(%error, kept, "the issuer's keys cannot be had; those of before stay in use");
            }
            Err(_) => {}
        }
        for request in std::mem::take(&mut self.waiting) {
            self.look_at(request);
        }
    }
}

/// Answers; a requester that is gone is ignored.
fn reply(to: oneshot::Sender<Answer>, answer: Answer) {
    if let Err(refusal) = &answer {
        tracing::debug!(code = refusal.code(), "a sign-in is refused");
    }
    let _ = to.send(answer);
}

async fn fetch(fetcher: Fetcher, source: KeySource, algorithm: super::Algorithm) -> Result<KeySet, NoKeys> {
    let text = match source {
        KeySource::File(path) => std::fs::read(path)?.into(),
        KeySource::Url(url) => {
            let limits = Limits { time: PATIENCE, body: MAX_JWKS_LEN };
            let fetched = fetcher.get(&url, None, limits).await?;
            if fetched.status != 200 {
                return Err(NoKeys::Status(fetched.status));
            }
            fetched.body
        }
    };
    Ok(KeySet::parse(&text, algorithm)?)
}

/// The result of the running fetch; pending for ever if there is none.
async fn fetched(fetching: &mut Option<JoinHandle<Result<KeySet, NoKeys>>>) -> Result<KeySet, NoKeys> {
    match fetching {
        Some(fetching) => fetching.await.unwrap_or_else(|error| Err(io::Error::other(error).into())),
        None => pending().await,
    }
}

async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => pending().await,
    }
}
