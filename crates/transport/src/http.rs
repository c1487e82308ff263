//! The TCP listener: TLS, HTTP/1.1, and the upgrade to a WebSocket link.
//!
//! A request for an upgrade becomes a link, or a raw WebSocket if the pages ask for it; every other request is answered
//! by the listener's [`Pages`](crate::site::Pages). A connection that never becomes a link has a short maximum
//! lifetime.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use sametick_wire::Carrier;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant as Moment;
use tokio_tungstenite::tungstenite::handshake::server::create_response;

use crate::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::extras::{Extra, Extras, LinkName, Wanted};
use crate::rate_limit::RateLimiter;
use crate::raw_websocket::serve_talk;
use crate::site::{BadHost, Later, Site, Upgrade, Visitor, text};
use crate::tasks::{LAST_WORDS, Reporter, Running, TaskEndpoint, reports};
use crate::tls::{Certificate, CertificateError};
use crate::websocket::{Io, serve_extra, serve_link};

/// The time-out of TLS and the request headers; for a later request on the same connection, from when it may begin.
const HEADERS_DEADLINE: Duration = Duration::from_secs(5);

/// The longest request headers.
const MAX_HEADERS_LEN: usize = 16 << 10;

/// After this time a connection without a link finishes its request and accepts no more.
const LAST_REQUEST_AFTER: Duration = Duration::from_secs(30);

/// A connection without a link is cut after this time: enough for the whole page over a bad mobile connection.
const MAX_LIFE: Duration = Duration::from_secs(60);

/// The rate limit of requests on one connection, and its burst: enough for a page with everything it needs. Further
/// requests are answered later.
const REQUESTS_PER_SECOND: u32 = 20;
const REQUEST_BURST: u32 = 60;

/// Serves the connections of a listener; with a certificate, for `wss://` and `https://`.
pub(crate) fn serve(
    listener: TcpListener,
    certificate: Option<&Certificate>,
    site: Site,
) -> io::Result<TaskEndpoint<Running>> {
    let local_addr = listener.local_addr()?;
    let tls = certificate.map(tls_acceptor).transpose().map_err(io::Error::other)?;
    let (reporter, events) = reports();
    let acceptor =
        Acceptor { tls, places: site.places.clone(), site: Arc::new(site), reporter: reporter.clone() };
    let task = Running::spawn(acceptor.run(listener));
    Ok(TaskEndpoint::new(Carrier::Stream, local_addr, (reporter, events), None, task))
}

fn tls_acceptor(certificate: &Certificate) -> Result<tokio_rustls::TlsAcceptor, CertificateError> {
    Ok(tokio_rustls::TlsAcceptor::from(Arc::new(certificate.server_config(&[b"http/1.1"])?)))
}

#[derive(Clone)]
struct Acceptor {
    tls: Option<tokio_rustls::TlsAcceptor>,
    places: ConnectionSlots,
    site: Arc<Site>,
    reporter: Reporter,
}

impl Acceptor {
    async fn run(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    // Behind a proxy all connections have one address; the request names the client's.
                    let place = if self.site.behind_proxy {
                        self.places.take_any()
                    } else {
                        self.places.take(from.ip())
                    };
                    match place {
                        Some(place) => drop(tokio::spawn(self.clone().serve(stream, from, place))),
                        None => self.reporter.ignore(),
                    }
                }
                // Most likely out of file descriptors: wait until some are free.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn serve(self, stream: TcpStream, from: SocketAddr, place: ConnectionSlot) {
        // Inputs are small and must not be delayed by Nagle's algorithm.
        let _ = stream.set_nodelay(true);
        let deadline = Moment::now() + HEADERS_DEADLINE;
        let served = match self.tls.clone() {
            None => self.open_and_run(stream, deadline, from, place).await,
            Some(tls) => match tokio::time::timeout_at(deadline, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.open_and_run(stream, deadline, from, place).await,
                _ => None,
            },
        };
        if served.is_none() {
            self.reporter.ignore();
        }
    }

    /// Answers requests until one becomes a link, then runs that. `None` if no request was served.
    async fn open_and_run<S: Io>(
        &self,
        stream: S,
        deadline: Moment,
        from: SocketAddr,
        place: ConnectionSlot,
    ) -> Option<()> {
        let visit = Arc::new(Mutex::new(Visit::new(
            self.site.clone(),
            self.reporter.extras.clone(),
            from.ip(),
            place,
        )));
        let (mut stream, early) = visit_over_http(stream, deadline, visit.clone()).await?;
        let visit = Arc::into_inner(visit)?.into_inner().unwrap_or_else(PoisonError::into_inner);
        match visit.upgraded {
            Some(Upgraded { forwarded, wanted }) => {
                let from = forwarded.map_or(from, |ip| SocketAddr::new(ip, 0));
                match wanted {
                    Becoming::Link(name) => {
                        serve_link(stream, early, from, (visit.place, name), &self.reporter).await
                    }
                    Becoming::Extra(extra) => {
                        serve_extra(stream, early, (visit.place, extra), &self.reporter).await
                    }
                    Becoming::RawEvent(target) => {
                        serve_talk(stream, early, from, target, visit.place, &self.reporter).await
                    }
                }
            }
            None => {
                // Closes TLS properly, but does not wait for a peer that does not respond.
                let _ = tokio::time::timeout(LAST_WORDS, stream.shutdown()).await;
                (visit.answered > 0).then_some(())
            }
        }
    }
}

/// Speaks HTTP until the connection ends or is upgraded; then returns the stream, with the bytes read from it.
async fn visit_over_http<S: Io>(stream: S, deadline: Moment, visit: Arc<Mutex<Visit>>) -> Option<(S, Bytes)> {
    let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
        let (head, _body) = request.into_parts();
        let request = Request::from_parts(head, ());
        let (answer, wait) = visit.lock().unwrap_or_else(PoisonError::into_inner).answer(&request);
        let answering: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(async move {
            if let Some(wait) = wait {
                tokio::time::sleep(wait).await;
            }
            let response = match answer {
                Answer::Now(response) => response,
                Answer::Later(later) => later.await,
            };
            Ok::<_, std::convert::Infallible>(response.map(Full::new))
        });
        answering
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(deadline.saturating_duration_since(Moment::now()))
        .max_buf_size(MAX_HEADERS_LEN)
        .serve_connection(TokioIo::new(stream), answer);
    let ended = {
        let mut run = poll_fn(|cx| connection.poll_without_shutdown(cx));
        tokio::time::timeout(LAST_REQUEST_AFTER, &mut run).await
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(_) => {
            Pin::new(&mut connection).graceful_shutdown();
            let run = poll_fn(|cx| connection.poll_without_shutdown(cx));
            tokio::time::timeout(MAX_LIFE - LAST_REQUEST_AFTER, run).await.ok()?
        }
    };
    ended.ok()?;
    let parts = connection.into_parts();
    Some((parts.io.into_inner(), parts.read_buf))
}

/// One connection, while it speaks HTTP.
struct Visit {
    site: Arc<Site>,
    extras: Extras,
    from: IpAddr,
    place: ConnectionSlot,
    limiter: RateLimiter,
    answered: u64,
    upgraded: Option<Upgraded>,
}

/// The answer to a request.
enum Answer {
    Now(Response<Bytes>),
    Later(Later),
}

impl From<Response<Bytes>> for Answer {
    fn from(response: Response<Bytes>) -> Answer {
        Answer::Now(response)
    }
}

/// An upgraded connection.
struct Upgraded {
    /// The client address from the proxy, if any.
    forwarded: Option<IpAddr>,
    wanted: Becoming,
}

enum Becoming {
    /// A link, perhaps with a name for its extra sockets.
    Link(Option<LinkName>),
    Extra(Extra),
    /// A raw WebSocket, and the requested path.
    RawEvent(String),
}

impl Visit {
    fn new(site: Arc<Site>, extras: Extras, from: IpAddr, place: ConnectionSlot) -> Visit {
        let limiter = RateLimiter::new(REQUESTS_PER_SECOND, REQUEST_BURST);
        Visit { site, extras, from, place, limiter, answered: 0, upgraded: None }
    }

    /// The answer, and how long to delay it.
    fn answer(&mut self, request: &Request<()>) -> (Answer, Option<Duration>) {
        let site = self.site.clone();
        let caller = match site.caller(request) {
            Ok(caller) => caller,
            Err(bad) => return (misdirected(&bad).into(), self.limiter.take(Instant::now(), 1)),
        };
        if caller.ip.is_some_and(|ip| !self.place.belongs_to(ip)) {
            let refusal = refusal(StatusCode::TOO_MANY_REQUESTS, "too many connections of this address\n");
            return (refusal.into(), None);
        }
        let origin = text(request.headers(), header::ORIGIN.as_str());
        let is_welcome = site.origins.admit(origin, Some(caller.host));
        let protocol = text(request.headers(), header::UPGRADE.as_str());
        if protocol.is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket")) {
            let (response, wait) = self.upgrade(request, caller.ip, is_welcome);
            return (response.into(), wait);
        }
        let answer = match &site.pages {
            Some(pages) => {
                self.answered += 1;
                let visitor = Visitor { ip: caller.ip.unwrap_or(self.from), is_welcome };
                let later = pages.answer_later(request, &visitor);
                later.map_or_else(|| pages.answer(request).into(), Answer::Later)
            }
            None => {
                upgrade_required("this port is for WebSocket links: there is nothing to look at\n").into()
            }
        };
        (answer, self.limiter.take(Instant::now(), 1))
    }

    /// The answer to a request for a WebSocket; `forwarded` is the client address from the proxy.
    fn upgrade(
        &mut self,
        request: &Request<()>,
        forwarded: Option<IpAddr>,
        is_welcome: bool,
    ) -> (Response<Bytes>, Option<Duration>) {
        let response = upgrade(request, is_welcome);
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return (response, None);
        }
        let upgrade = self.site.pages.as_ref().map_or(Upgrade::Link, |pages| pages.upgrade(request));
        let wanted = match upgrade {
            Upgrade::Link => match Wanted::parse(request.uri().query()) {
                Wanted::Link(name) => Becoming::Link(name),
                Wanted::Extra(name) => match self.add_extra(name) {
                    Ok(extra) => extra,
                    Err((status, why)) => {
                        return (refusal(status, why), self.limiter.take(Instant::now(), 1));
                    }
                },
            },
            Upgrade::Raw => Becoming::RawEvent(request.uri().to_string()),
            Upgrade::Refused(refusal) => return (refusal, self.limiter.take(Instant::now(), 1)),
        };
        self.upgraded = Some(Upgraded { forwarded, wanted });
        (response, None)
    }

    /// Adds an extra socket to a link, if there is room: extra sockets must not displace other connections.
    fn add_extra(&self, name: LinkName) -> Result<Becoming, (StatusCode, &'static str)> {
        if !self.place.leaves_room() {
            return Err((StatusCode::SERVICE_UNAVAILABLE, "there is no room for extra sockets now\n"));
        }
        let extra = self.extras.add(name).map(Becoming::Extra);
        extra.ok_or((StatusCode::NOT_FOUND, "there is no such link, or it has enough sockets\n"))
    }
}

/// The answer to a request for a WebSocket.
fn upgrade(request: &Request<()>, is_admitted: bool) -> Response<Bytes> {
    if !is_admitted {
        return refusal(StatusCode::FORBIDDEN, "pages of this origin may not connect here\n");
    }
    if text(request.headers(), "sec-websocket-version") != Some("13") {
        return upgrade_required("only version 13 of WebSocket is spoken here\n");
    }
    match create_response(request) {
        Ok(response) => response.map(|()| Bytes::new()),
        Err(_) => refusal(StatusCode::BAD_REQUEST, "this is no request for a WebSocket\n"),
    }
}

/// The answer to a request for a host that this server is not.
fn misdirected(bad: &BadHost<'_>) -> Response<Bytes> {
    match bad {
        BadHost::Missing => refusal(StatusCode::BAD_REQUEST, "a request names its host (Host)\n"),
        BadHost::Several => {
            refusal(StatusCode::BAD_REQUEST, "a request names one host (Host), not several\n")
        }
        BadHost::Unknown(host) => {
            report_unknown(host);
            let why = format!(
                "this server does not go by the name {host}. Open it by its address, or start it with --origin and the name's \
                 origin, such as --origin https://example.org\n"
            );
            refusal(StatusCode::MISDIRECTED_REQUEST, why)
        }
    }
}

/// Logs a request for an unknown host name.
pub(crate) fn report_unknown(host: &str) {
    tracing::warn!(
        host,
        "a request for a host name that is not this server's was refused; --origin https://NAME lets a name in"
    );
}

/// An answer after which the connection ends.
fn refusal(status: StatusCode, why: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(why.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

fn upgrade_required(why: &'static str) -> Response<Bytes> {
    let mut response = refusal(StatusCode::UPGRADE_REQUIRED, why);
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, header::HeaderValue::from_static("websocket"));
    headers.insert("sec-websocket-version", header::HeaderValue::from_static("13"));
    response
}
