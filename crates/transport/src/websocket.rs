//! WebSocket: one ordered stream, for browsers and for networks that let nothing else through.
//!
//! The first binary message of each side is the hello and its answer; every later one carries bytes of lane 0.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt, stream::SplitSink, stream::SplitStream};
use rustls::pki_types::ServerName;
use sametick_wire::hello::{MAX_ANSWER, MAX_HELLO};
use sametick_wire::{Carrier, LaneId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config, client_async_with_config};

use crate::endpoint::{CALL, Gone, LinkId};
use crate::places::{Place, Places};
use crate::sessions::{ANSWER_DEADLINE, HELLO_DEADLINE};
use crate::tasks::{
    Command, Event, Inbox, LAST_WORDS, MAX_UNWRITTEN, Reporter, Running, TaskEndpoint, connection, cost,
    reports,
};
use crate::tls::{Certificate, CertificateError, Trust, client_config};

/// TLS and the request's headers must be here by then.
const HEADERS_DEADLINE: Duration = Duration::from_secs(5);

/// Without a message for this long a connection is dead. The link's own time-out of 10 s comes first.
const IDLE: Duration = Duration::from_secs(30);

/// The longest message taken. A link's are at most half of that.
pub const MAX_MESSAGE: usize = 16 << 10;

/// Messages that a server takes a second, control frames included, and how many may come at once after a pause: a stall that ends is forgiven. More are not
/// lost: they wait in the sender's own connection.
const MESSAGES_PER_SECOND: f64 = 120.0;
const MESSAGE_BURST: f64 = 600.0;

/// Reading in large pieces costs more than it saves for small messages.
const READ_BUFFER: usize = 4 << 10;

/// Which pages may open a connection. Programs other than browsers send no origin and are not asked.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Besides pages that came from the host they connect to: `https://example.org`.
    pub allowed: Vec<String>,
}

impl Origins {
    /// Whether a page of this origin may connect to this host.
    pub fn admit(&self, origin: Option<&str>, host: Option<&str>) -> bool {
        let Some(origin) = origin else { return true };
        let same_host = origin.split_once("://").map(|(_, rest)| rest) == host;
        host.is_some() && same_host || self.allowed.iter().any(|allowed| allowed == origin)
    }
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_UNWRITTEN)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
}

/// Listens on a port of its own; with a certificate, for `wss://`.
pub async fn listen(
    addr: SocketAddr,
    certificate: Option<&Certificate>,
    origins: Origins,
) -> io::Result<TaskEndpoint<Running>> {
    let listener = TcpListener::bind(addr).await?;
    let local_addr = listener.local_addr()?;
    let tls = certificate.map(tls_acceptor).transpose().map_err(io::Error::other)?;
    let (reporter, events) = reports();
    let acceptor = Acceptor { tls, origins: Arc::new(origins), reporter: reporter.clone() };
    let task = Running::spawn(acceptor.run(listener));
    Ok(TaskEndpoint::new(Carrier::Stream, local_addr, (reporter, events), None, task))
}

fn tls_acceptor(certificate: &Certificate) -> Result<tokio_rustls::TlsAcceptor, CertificateError> {
    Ok(tokio_rustls::TlsAcceptor::from(Arc::new(certificate.server_config(&[b"http/1.1"])?)))
}

#[derive(Clone)]
struct Acceptor {
    tls: Option<tokio_rustls::TlsAcceptor>,
    origins: Arc<Origins>,
    reporter: Reporter,
}

impl Acceptor {
    async fn run(self, listener: TcpListener) {
        let places = Places::new();
        loop {
            match listener.accept().await {
                Ok((stream, from)) => match places.take(from.ip()) {
                    Some(place) => drop(tokio::spawn(self.clone().serve(stream, from, place))),
                    None => self.reporter.ignore(),
                },
                // Out of file descriptors, most likely: wait until some are back.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn serve(self, stream: TcpStream, from: SocketAddr, place: Place) {
        // Inputs are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let deadline = tokio::time::Instant::now() + HEADERS_DEADLINE;
        let opened = match self.tls.clone() {
            None => self.open_and_run(stream, deadline, from, place).await,
            Some(tls) => match tokio::time::timeout_at(deadline, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.open_and_run(stream, deadline, from, place).await,
                _ => None,
            },
        };
        if opened.is_none() {
            self.reporter.ignore();
        }
    }

    async fn open_and_run<S: Io>(
        &self,
        stream: S,
        deadline: tokio::time::Instant,
        from: SocketAddr,
        mut place: Place,
    ) -> Option<()> {
        let origins = self.origins.clone();
        #[expect(clippy::result_large_err, reason = "the library's own callback type")]
        let check = move |request: &Request, response: Response| check_origin(&origins, request, response);
        let opening = accept_hdr_async_with_config(stream, check, Some(config()));
        let socket = tokio::time::timeout_at(deadline, opening).await.ok()?.ok()?;
        let (writer, mut reader) = socket.split();
        let hello = tokio::time::timeout(HELLO_DEADLINE, next_binary(&mut reader)).await.ok()?.ok()?;
        if hello.len() > MAX_HELLO {
            return None;
        }
        place.opened();
        accept(writer, reader, from, hello, &self.reporter).await
    }
}

#[expect(clippy::result_large_err, reason = "the library's own callback type")]
fn check_origin(origins: &Origins, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    if origins.admit(header("origin"), header("host")) {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(None);
    *refusal.status_mut() = StatusCode::FORBIDDEN;
    Err(refusal)
}

/// Runs a connection that has said hello: answer, link.
async fn accept<S: Io>(
    mut writer: Writer<S>,
    reader: Reader<S>,
    from: SocketAddr,
    hello: Vec<u8>,
    reporter: &Reporter,
) -> Option<()> {
    let (outbox, mut inbox) = connection();
    let link = reporter.new_link();
    reporter.report(Event::Hello { link, from, bytes: hello, outbox }).await.then_some(())?;
    let why = match inbox.next().await {
        Some(Command::Answer { bytes, open }) => {
            inbox.written(bytes.len());
            match tokio::time::timeout(LAST_WORDS, writer.send(Message::binary(bytes))).await {
                Ok(Ok(())) if open => run(link, writer, reader, inbox, reporter, Some(Pace::new())).await,
                Ok(Ok(())) => finish(writer).await,
                Ok(Err(error)) => failed(&error),
                Err(_) => Gone::Limit("the answer was not taken"),
            }
        }
        _ => finish(writer).await,
    };
    reporter.report(Event::Gone { link, why }).await;
    Some(())
}

/// Calls a server. The link has the id 0, and its first arrival is the answer or `Gone`.
pub fn connect(
    to: SocketAddr,
    host: &str,
    authority: &str,
    trust: Option<Trust>,
    hello: Vec<u8>,
) -> io::Result<TaskEndpoint<()>> {
    let tls = match trust {
        Some(trust) => {
            let config = client_config(trust, &[b"http/1.1"]).map_err(io::Error::other)?;
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            Some((tokio_rustls::TlsConnector::from(Arc::new(config)), name))
        }
        None => None,
    };
    let url = format!("{}://{authority}/", if tls.is_some() { "wss" } else { "ws" });
    let (outbox, inbox) = connection();
    let (reporter, events) = reports();
    let report = reporter.clone();
    tokio::spawn(async move {
        let why = match tokio::time::timeout(ANSWER_DEADLINE, reach(to, tls)).await {
            Ok(Ok(Reached::Plain(stream))) => call(stream, &url, hello, inbox, &report).await,
            Ok(Ok(Reached::Tls(stream))) => call(*stream, &url, hello, inbox, &report).await,
            Ok(Err(error)) => Gone::Failed(error.to_string()),
            Err(_) => Gone::NoAnswer,
        };
        report.report(Event::Gone { link: CALL, why }).await;
    });
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    Ok(TaskEndpoint::new(Carrier::Stream, any, (reporter, events), Some((CALL, outbox)), ()))
}

enum Reached {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

async fn reach(
    to: SocketAddr,
    tls: Option<(tokio_rustls::TlsConnector, ServerName<'static>)>,
) -> io::Result<Reached> {
    let stream = TcpStream::connect(to).await?;
    let _ = stream.set_nodelay(true);
    match tls {
        None => Ok(Reached::Plain(stream)),
        Some((tls, name)) => Ok(Reached::Tls(Box::new(tls.connect(name, stream).await?))),
    }
}

async fn call<S: Io>(stream: S, url: &str, hello: Vec<u8>, inbox: Inbox, reporter: &Reporter) -> Gone {
    let called = tokio::time::timeout(ANSWER_DEADLINE, async {
        let (socket, _) = client_async_with_config(url, stream, Some(config())).await?;
        let (mut writer, mut reader) = socket.split();
        writer.send(Message::binary(hello)).await?;
        let answer = next_binary(&mut reader).await?;
        Ok((writer, reader, answer))
    });
    match called.await {
        Ok(Ok((writer, reader, answer))) if answer.len() <= MAX_ANSWER => {
            match reporter.report(Event::Answer { link: CALL, bytes: answer }).await {
                true => run(CALL, writer, reader, inbox, reporter, None).await,
                false => Gone::Closed,
            }
        }
        Ok(Ok(_)) => Gone::Limit("the answer is too long"),
        // A server that closes before it has answered does not want to talk to us.
        Ok(Err(WsError::ConnectionClosed | WsError::Protocol(_))) | Err(_) => Gone::NoAnswer,
        Ok(Err(error)) => failed(&error),
    }
}

/// What a connection runs over: TCP, or TLS on top of it.
trait Io: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Io for S {}

type Writer<S> = SplitSink<WebSocketStream<S>, Message>;
type Reader<S> = SplitStream<WebSocketStream<S>>;

/// The next message; the bytes if it is a binary one. Pings and pongs are the library's business.
async fn next<S: Io>(reader: &mut Reader<S>) -> Result<Option<Vec<u8>>, WsError> {
    match reader.next().await.ok_or(WsError::ConnectionClosed)?? {
        Message::Binary(bytes) => Ok(Some(bytes.into())),
        Message::Close(_) => Err(WsError::ConnectionClosed),
        Message::Text(_) => Err(WsError::AttackAttempt),
        _ => Ok(None),
    }
}

async fn next_binary<S: Io>(reader: &mut Reader<S>) -> Result<Vec<u8>, WsError> {
    loop {
        if let Some(bytes) = next(reader).await? {
            return Ok(bytes);
        }
    }
}

/// Moves messages until either side ends.
async fn run<S: Io>(
    link: LinkId,
    writer: Writer<S>,
    reader: Reader<S>,
    mut inbox: Inbox,
    reporter: &Reporter,
    pace: Option<Pace>,
) -> Gone {
    let reading = Running::spawn(read(link, reader, reporter.clone(), pace));
    let end = inbox.end();
    let why = tokio::select! {
        why = write(writer, inbox) => why,
        () = end => Gone::Limit("the last words were not taken"),
    };
    drop(reading);
    why
}

/// Hands over what arrives, no faster than the pace; says when the connection has ended.
async fn read<S: Io>(link: LinkId, mut reader: Reader<S>, reporter: Reporter, mut pace: Option<Pace>) {
    let why = loop {
        match tokio::time::timeout(IDLE, next(&mut reader)).await {
            Ok(Ok(Some(bytes))) => {
                if !reporter.report(Event::Stream { link, lane: LaneId(0), bytes }).await {
                    return;
                }
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => break failed(&error),
            Err(_) => break Gone::Limit("nothing came for too long"),
        }
        if let Some(wait) = pace.as_mut().and_then(|pace| pace.take(Instant::now())) {
            tokio::time::sleep(wait).await;
        }
    };
    reporter.report(Event::Gone { link, why }).await;
}

/// Writes what the link wants; several messages share a flush.
async fn write<S: Io>(mut writer: Writer<S>, mut inbox: Inbox) -> Gone {
    loop {
        let Some(command) = inbox.next().await else { return finish(writer).await };
        let mut written = 0;
        let mut next = Some(command);
        while let Some(command) = next {
            written += cost(command.len());
            if let Command::Stream(_, bytes) = command
                && let Err(error) = writer.feed(Message::binary(bytes)).await
            {
                return failed(&error);
            }
            next = inbox.try_next();
        }
        if let Err(error) = writer.flush().await {
            return failed(&error);
        }
        inbox.meter().written(written);
    }
}

async fn finish<S: Io>(mut writer: Writer<S>) -> Gone {
    let _ = tokio::time::timeout(LAST_WORDS, writer.close()).await;
    Gone::Closed
}

/// Messages that may be taken; refills with time.
struct Pace {
    tokens: f64,
    filled_at: Instant,
}

impl Pace {
    fn new() -> Pace {
        Pace { tokens: MESSAGE_BURST, filled_at: Instant::now() }
    }

    /// Takes one. Returns how long to wait before the next.
    fn take(&mut self, now: Instant) -> Option<Duration> {
        let earned = now.duration_since(self.filled_at).as_secs_f64() * MESSAGES_PER_SECOND;
        self.tokens = (self.tokens + earned).min(MESSAGE_BURST) - 1.0;
        self.filled_at = now;
        (self.tokens < 0.0).then(|| Duration::from_secs_f64(-self.tokens / MESSAGES_PER_SECOND))
    }
}

fn failed(error: &WsError) -> Gone {
    match error {
        WsError::ConnectionClosed | WsError::AlreadyClosed | WsError::Protocol(_) => Gone::Closed,
        WsError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => Gone::Closed,
        WsError::AttackAttempt => Gone::Limit("only binary messages are taken"),
        WsError::Capacity(_) => Gone::Limit("a message is too long"),
        error => Gone::Failed(error.to_string()),
    }
}
