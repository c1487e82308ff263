//! WebSocket: one ordered stream, for browsers and for networks that let nothing else through.
//!
//! The first binary message of each side is the hello and its answer; every later one carries bytes of lane 0.
//! Datagrams use extra sockets (`extras.rs`).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream::SplitSink, stream::SplitStream};
use rustls::pki_types::ServerName;
use sametick_wire::hello::{MAX_ANSWER, MAX_HELLO};
use sametick_wire::link::EXTRA_SOCKETS;
use sametick_wire::{Carrier, LaneId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::connection_slots::ConnectionSlot;
use crate::endpoint::{CALL, Gone, LinkId, RawMessage};
use crate::extras::{Extra, LinkName};
use crate::http;
use crate::rate_limit::{RateLimited, RateLimiter};
use crate::sessions::{ANSWER_DEADLINE, HELLO_DEADLINE};
use crate::site::Site;
use crate::tasks::{
    Command, Event, Inbox, LAST_WORDS, MAX_UNWRITTEN, Reporter, Running, TaskEndpoint, cost, reports,
};
use crate::tls::{Certificate, Trust, client_config};

/// The idle time-out of a connection. The link's own time-out of 10 s comes first.
pub(crate) const IDLE: Duration = Duration::from_secs(30);

/// The longest message. A link's are at most half of that.
pub const MAX_MESSAGE: usize = 16 << 10;

/// The rate limit of messages on a server, control frames included, and its burst, which covers the end of a stall.
/// More are not lost: they wait in the sender's own connection.
pub(crate) const MESSAGES_PER_SECOND: u32 = 120;
pub(crate) const MESSAGE_BURST: u32 = 600;

/// The rate limit of bytes on a server: messages can be cut into any number of empty frames.
const BYTES_PER_SECOND: u32 = 1 << 20;
const BYTE_BURST: u32 = 1 << 20;

/// Reading in large pieces costs more than it saves for small messages.
const READ_BUFFER: usize = 4 << 10;

pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_UNWRITTEN)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
}

/// Listens on a port of its own; with a certificate, for `wss://`. Requests that do not open a link are answered
/// according to the site.
pub async fn listen(
    addr: SocketAddr,
    certificate: Option<&Certificate>,
    site: impl Into<Site>,
) -> io::Result<TaskEndpoint<Running>> {
    serve(TcpListener::bind(addr).await?, certificate, site)
}

/// Like [`listen`], on a port that is bound already.
pub fn serve(
    listener: TcpListener,
    certificate: Option<&Certificate>,
    site: impl Into<Site>,
) -> io::Result<TaskEndpoint<Running>> {
    http::serve(listener, certificate, site.into())
}

/// Runs an upgraded connection, of which these bytes have been read: hello, answer, link. `None` if it sent no hello.
pub(crate) async fn serve_link<S: Io>(
    stream: S,
    early: Bytes,
    from: SocketAddr,
    (_place, name): (ConnectionSlot, Option<LinkName>),
    reporter: &Reporter,
) -> Option<()> {
    let (writer, mut reader) = open(stream, early, config()).await;
    let hello = tokio::time::timeout(HELLO_DEADLINE, next_binary(&mut reader)).await.ok()?.ok()?;
    if hello.len() > MAX_HELLO {
        return None;
    }
    accept(writer, reader, from, (hello, name), reporter).await
}

/// Runs an extra socket of a link, until either ends.
pub(crate) async fn serve_extra<S: Io>(
    stream: S,
    early: Bytes,
    (_place, extra): (ConnectionSlot, Extra),
    reporter: &Reporter,
) -> Option<()> {
    let (writer, reader) = open(stream, early, config()).await;
    run_extra(
        extra.link,
        writer,
        reader,
        reporter,
        Some(RateLimiter::new(MESSAGES_PER_SECOND, MESSAGE_BURST)),
    )
    .await;
    Some(())
}

/// Moves datagrams on an extra socket until either side ends.
async fn run_extra<S: Io>(
    link: LinkId,
    writer: Writer<S>,
    reader: Reader<S>,
    reporter: &Reporter,
    limiter: Option<RateLimiter>,
) {
    let (outbox, inbox) = reporter.connection();
    let extra = reporter.new_link();
    if reporter.report(Event::Extra { link, extra, outbox }).await {
        run(Socket::Extra(link, extra), writer, reader, inbox, reporter, limiter).await;
        reporter.report(Event::ExtraGone { link, extra }).await;
    }
}

/// Splits an upgraded connection into reader and writer. Reads are rate-limited in bytes.
pub(crate) async fn open<S: Io>(
    stream: S,
    early: Bytes,
    config: WebSocketConfig,
) -> (Writer<RateLimited<S>>, Reader<RateLimited<S>>) {
    let stream = RateLimited::new(stream, RateLimiter::new(BYTES_PER_SECOND, BYTE_BURST));
    WebSocketStream::from_partially_read(stream, early.into(), Role::Server, Some(config)).await.split()
}

/// Runs a connection that has sent its hello: answer, link.
async fn accept<S: Io>(
    mut writer: Writer<S>,
    reader: Reader<S>,
    from: SocketAddr,
    (hello, name): (Vec<u8>, Option<LinkName>),
    reporter: &Reporter,
) -> Option<()> {
    let (outbox, mut inbox) = reporter.connection();
    let link = reporter.new_link();
    reporter.report(Event::Hello { link, from, bytes: hello, outbox }).await.then_some(())?;
    let why = match inbox.next().await {
        Some(Command::Answer { bytes, open }) => {
            inbox.written(bytes.len());
            // From before the answer is sent: a client that has it may ask for extra sockets.
            let _entered = name.filter(|_| open).and_then(|name| reporter.extras.enter(name, link));
            match tokio::time::timeout(LAST_WORDS, writer.send(Message::binary(bytes))).await {
                Ok(Ok(())) if open => {
                    let limiter = RateLimiter::new(MESSAGES_PER_SECOND, MESSAGE_BURST);
                    run(Socket::Main(link), writer, reader, inbox, reporter, Some(limiter)).await
                }
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

/// Connects to a server. The link has the id 0, and its first arrival is the answer or `Gone`.
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
    let server = Arc::new(Server { to, tls, url, name: LinkName::random() });
    let (reporter, events) = reports();
    let (outbox, inbox) = reporter.connection();
    let report = reporter.clone();
    let _ = reporter.new_link(); // It is `CALL`.
    tokio::spawn(async move {
        let why = match tokio::time::timeout(ANSWER_DEADLINE, server.reach()).await {
            Ok(Ok(Reached::Plain(stream))) => call(&server, stream, hello, inbox, &report).await,
            Ok(Ok(Reached::Tls(stream))) => call(&server, *stream, hello, inbox, &report).await,
            Ok(Err(error)) => Gone::Failed(error.to_string()),
            Err(_) => Gone::NoAnswer,
        };
        report.report(Event::Gone { link: CALL, why }).await;
    });
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    Ok(TaskEndpoint::new(Carrier::Stream, any, (reporter, events), Some((CALL, outbox)), ()))
}

/// The server of a link's sockets.
struct Server {
    to: SocketAddr,
    tls: Option<(tokio_rustls::TlsConnector, ServerName<'static>)>,
    url: String,
    name: LinkName,
}

impl Server {
    async fn reach(&self) -> io::Result<Reached> {
        let stream = TcpStream::connect(self.to).await?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => Ok(Reached::Plain(stream)),
            Some((tls, name)) => Ok(Reached::Tls(Box::new(tls.connect(name.clone(), stream).await?))),
        }
    }

    /// Opens an extra socket and runs it. A server that refuses one is not asked again: the link goes on without.
    async fn run_extra(self: Arc<Server>, reporter: Reporter) {
        match self.reach().await {
            Ok(Reached::Plain(stream)) => self.call_extra(stream, &reporter).await,
            Ok(Reached::Tls(stream)) => self.call_extra(*stream, &reporter).await,
            Err(_) => {}
        }
    }

    async fn call_extra<S: Io>(&self, stream: S, reporter: &Reporter) {
        let url = format!("{}?{}", self.url, self.name.to_extra_query());
        if let Ok((socket, _)) = client_async_with_config(url, stream, Some(config())).await {
            let (writer, reader) = socket.split();
            run_extra(CALL, writer, reader, reporter, None).await;
        }
    }
}

enum Reached {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

async fn call<S: Io>(
    server: &Arc<Server>,
    stream: S,
    hello: Vec<u8>,
    inbox: Inbox,
    reporter: &Reporter,
) -> Gone {
    let url = format!("{}?{}", server.url, server.name.to_query());
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
                true => {
                    let extra = || Running::spawn(server.clone().run_extra(reporter.clone()));
                    let _extra: [Running; EXTRA_SOCKETS] = std::array::from_fn(|_| extra());
                    run(Socket::Main(CALL), writer, reader, inbox, reporter, None).await
                }
                false => Gone::Closed,
            }
        }
        Ok(Ok(_)) => Gone::Limit("the answer is too long"),
        // A server that closes before it has answered refuses us.
        Ok(Err(WsError::ConnectionClosed | WsError::Protocol(_))) | Err(_) => Gone::NoAnswer,
        Ok(Err(error)) => failed(&error),
    }
}

/// The stream below a connection: TCP, or TLS on top of it.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Io for S {}

pub(crate) type Writer<S> = SplitSink<WebSocketStream<S>, Message>;
pub(crate) type Reader<S> = SplitStream<WebSocketStream<S>>;

/// The next message; the bytes if it is a binary one. The library handles pings and pongs.
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

/// The purpose of a socket.
#[derive(Clone, Copy)]
enum Socket {
    /// The stream of a link.
    Main(LinkId),
    /// Datagrams of a link, and the id of this extra socket.
    Extra(LinkId, LinkId),
}

impl Socket {
    fn brings(self, bytes: Vec<u8>) -> Event {
        match self {
            Socket::Main(link) => Event::Stream { link, lane: LaneId(0), bytes },
            Socket::Extra(link, _) => Event::Datagram { link, bytes },
        }
    }

    fn ends(self, why: Gone) -> Event {
        match self {
            Socket::Main(link) => Event::Gone { link, why },
            Socket::Extra(link, extra) => Event::ExtraGone { link, extra },
        }
    }
}

/// Moves messages until either side ends.
async fn run<S: Io>(
    socket: Socket,
    writer: Writer<S>,
    reader: Reader<S>,
    mut inbox: Inbox,
    reporter: &Reporter,
    limiter: Option<RateLimiter>,
) -> Gone {
    let reading = Running::spawn(read(socket, reader, reporter.clone(), limiter));
    let end = inbox.end();
    let why = tokio::select! {
        why = write(writer, inbox) => why,
        () = end => Gone::Limit("the last words were not taken"),
    };
    drop(reading);
    why
}

/// Passes on messages, rate-limited; reports the end of the connection.
async fn read<S: Io>(
    socket: Socket,
    mut reader: Reader<S>,
    reporter: Reporter,
    mut limiter: Option<RateLimiter>,
) {
    let why = loop {
        match tokio::time::timeout(IDLE, next(&mut reader)).await {
            Ok(Ok(Some(bytes))) => {
                if !reporter.report(socket.brings(bytes)).await {
                    return;
                }
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => break failed(&error),
            Err(_) => break Gone::Limit("nothing came for too long"),
        }
        if let Some(wait) = limiter.as_mut().and_then(|limiter| limiter.take(Instant::now(), 1)) {
            tokio::time::sleep(wait).await;
        }
    };
    reporter.report(socket.ends(why)).await;
}

/// Writes the messages of a link or raw WebSocket; several share a flush.
pub(crate) async fn write<S: Io>(mut writer: Writer<S>, mut inbox: Inbox) -> Gone {
    loop {
        let Some(command) = inbox.next().await else { return finish(writer).await };
        let mut written = 0;
        let mut next = Some(command);
        while let Some(command) = next {
            written += cost(command.len());
            let message = match command {
                Command::Stream(_, bytes) | Command::Say(RawMessage::Binary(bytes)) => {
                    Some(Message::binary(bytes))
                }
                Command::Say(RawMessage::Text(text)) => Some(Message::text(text)),
                Command::Answer { .. } | Command::Datagram(_) | Command::Joined => None,
            };
            if let Some(message) = message
                && let Err(error) = writer.feed(message).await
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

pub(crate) fn failed(error: &WsError) -> Gone {
    match error {
        WsError::ConnectionClosed | WsError::AlreadyClosed | WsError::Protocol(_) => Gone::Closed,
        WsError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => Gone::Closed,
        WsError::AttackAttempt => Gone::Limit("only binary messages are taken"),
        WsError::Capacity(_) => Gone::Limit("a message is too long"),
        // The server's reason is a sentence in the body.
        WsError::Http(response) => {
            let why = response.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            Gone::Failed(format!("{} {}", response.status(), why.trim()).trim_end().to_owned())
        }
        error => Gone::Failed(error.to_string()),
    }
}
