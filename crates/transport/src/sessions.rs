//! QUIC and WebTransport connections: datagrams, and one bidirectional stream for each lane.
//!
//! ```text
//! a lane's stream   lane (1) · then the lane's bytes, both ways; all four are opened by the client at once
//! lane 0            its bytes begin with length (u16) · hello    from the client
//!                                and length (u16) · answer  from the server
//! ```

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sametick_wire::hello::{MAX_ANSWER, MAX_HELLO};
use sametick_wire::{LaneId, packet::MAX_QUIC_DATAGRAM};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::connection_slots::ConnectionSlot;
use crate::endpoint::{Gone, LinkId};
use crate::rate_limit::RateLimiter;
use crate::tasks::{Command, Event, Inbox, LAST_WORDS, Meter, Reporter, Running, cost};

/// How many lanes a link has: one for each reliable channel.
pub(crate) const LANES: usize = 4;

/// The time-out of a client's first message.
pub(crate) const HELLO_DEADLINE: Duration = Duration::from_secs(3);

/// The time-out of a server's answer.
pub(crate) const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// How much of a lane is read at once.
const READ_LEN: usize = 8_192;

/// The rate limit of datagrams on a public server, and its burst; more are dropped. A link sends some 60 to 120 a
/// second.
const DATAGRAMS_PER_SECOND: u32 = 1_200;
const DATAGRAM_BURST: u32 = 2_400;

/// The rate limit of bytes on one lane of a public server, and its burst; more wait in the sender's window.
const BYTES_PER_SECOND: u32 = 1 << 20;
const BYTE_BURST: u32 = 1 << 20;

/// A connection with datagrams and streams.
pub(crate) trait Session: Clone + Send + Sync + 'static {
    type Writer: AsyncWrite + Send + Unpin + 'static;
    type Reader: AsyncRead + Send + Unpin + 'static;

    /// Whether clients need no proof to open one. Their data is then rate-limited.
    const IS_PUBLIC: bool;

    fn remote(&self) -> SocketAddr;
    fn open(&self) -> impl Future<Output = io::Result<(Self::Writer, Self::Reader)>> + Send;
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Writer, Self::Reader)>> + Send;
    fn receive(&self) -> impl Future<Output = io::Result<Vec<u8>>> + Send;
    fn send(&self, datagram: Vec<u8>);
    /// Raises the window of a peer that has joined.
    fn widen(&self);
    fn shut(&self);
}

type Lane<S> = (<S as Session>::Writer, <S as Session>::Reader);
type Lanes<S> = [Lane<S>; LANES];

/// Runs the server's side of a connection until it ends.
pub(crate) async fn serve<S: Session>(session: S, _place: ConnectionSlot, reporter: Reporter) {
    match tokio::time::timeout(HELLO_DEADLINE, accept_lanes(&session)).await {
        Ok(Ok((lanes, hello))) => {
            let (outbox, inbox) = reporter.connection();
            let (link, from) = (reporter.new_link(), session.remote());
            if reporter.report(Event::Hello { link, from, bytes: hello, outbox }).await {
                let why = answered(&session, link, lanes, inbox, &reporter).await;
                reporter.report(Event::Gone { link, why }).await;
            }
        }
        _ => reporter.ignore(),
    }
    session.shut();
}

/// Takes the lanes, in whatever order they arrive, and the first message.
async fn accept_lanes<S: Session>(session: &S) -> io::Result<(Lanes<S>, Vec<u8>)> {
    let mut lanes = [const { None }; LANES];
    let mut hello = Vec::new();
    for _ in 0..LANES {
        let (writer, mut reader) = session.accept().await?;
        let lane = usize::from(reader.read_u8().await?);
        if lane == 0 {
            hello = read_blob(&mut reader, MAX_HELLO).await?;
        }
        match lanes.get_mut(lane) {
            Some(slot @ None) => *slot = Some((writer, reader)),
            _ => return Err(io::Error::other("a lane that does not exist, or twice")),
        }
    }
    Ok((lanes.map(|lane| lane.expect("as many different lanes as there are")), hello))
}

/// Waits for the driver's answer, then runs the link if it is open.
async fn answered<S: Session>(
    session: &S,
    link: LinkId,
    mut lanes: Lanes<S>,
    mut inbox: Inbox,
    reporter: &Reporter,
) -> Gone {
    let Some(Command::Answer { bytes, open }) = inbox.next().await else { return Gone::Closed };
    inbox.written(bytes.len());
    let writer = &mut lanes[0].0;
    match tokio::time::timeout(LAST_WORDS, write_blob(writer, &bytes)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return failed(&error),
        Err(_) => return Gone::Limit("the answer was not taken"),
    }
    if open {
        return run(session, link, lanes, inbox, reporter, S::IS_PUBLIC).await;
    }
    // Gives the answer time to arrive: the client ends its lane when it has read it.
    let _ = writer.shutdown().await;
    let _ = tokio::time::timeout(LAST_WORDS, lanes[0].1.read_u8()).await;
    Gone::Closed
}

/// Runs the client's side of a connection until it ends.
pub(crate) async fn call<S: Session>(
    connecting: impl Future<Output = io::Result<S>>,
    link: LinkId,
    hello: Vec<u8>,
    inbox: Inbox,
    reporter: Reporter,
) {
    let called = tokio::time::timeout(ANSWER_DEADLINE, async {
        let session = connecting.await.map_err(|error| failed(&error))?;
        // A server that closes before it has answered refuses us.
        let mut lanes = open_lanes(&session, &hello).await.map_err(|_| Gone::NoAnswer)?;
        let answer = read_blob(&mut lanes[0].1, MAX_ANSWER).await.map_err(|_| Gone::NoAnswer)?;
        Ok((session, lanes, answer))
    });
    let why = match called.await {
        Ok(Ok((session, lanes, answer))) => {
            let why = match reporter.report(Event::Answer { link, bytes: answer }).await {
                true => run(&session, link, lanes, inbox, &reporter, false).await,
                false => Gone::Closed,
            };
            session.shut();
            why
        }
        Ok(Err(gone)) => gone,
        Err(_) => Gone::NoAnswer,
    };
    reporter.report(Event::Gone { link, why }).await;
}

async fn open_lanes<S: Session>(session: &S, hello: &[u8]) -> io::Result<Lanes<S>> {
    let mut lanes = [const { None }; LANES];
    for (lane, slot) in (0u8..).zip(&mut lanes) {
        let (mut writer, reader) = session.open().await?;
        // The peer learns of a stream when something is written to it.
        writer.write_all(&[lane]).await?;
        if lane == 0 {
            write_blob(&mut writer, hello).await?;
        }
        *slot = Some((writer, reader));
    }
    Ok(lanes.map(|lane| lane.expect("all have been opened")))
}

/// Moves datagrams and lanes' bytes until either side ends.
async fn run<S: Session>(
    session: &S,
    link: LinkId,
    lanes: Lanes<S>,
    mut inbox: Inbox,
    reporter: &Reporter,
    is_paced: bool,
) -> Gone {
    let limiter = is_paced.then(|| RateLimiter::new(DATAGRAMS_PER_SECOND, DATAGRAM_BURST));
    let mut readers = Vec::with_capacity(LANES);
    let mut writers = Vec::with_capacity(LANES);
    for (lane, (writer, reader)) in (0u8..).zip(lanes) {
        let bytes = is_paced.then(|| RateLimiter::new(BYTES_PER_SECOND, BYTE_BURST));
        readers.push(Running::spawn(read_lane(link, LaneId(lane), reader, reporter.clone(), bytes)));
        writers.push(LaneWriter::start(writer, inbox.meter()));
    }
    let Err(why) = pass_on(session, link, &writers, &mut inbox, reporter, limiter).await else {
        let _ = tokio::time::timeout(LAST_WORDS, part(writers, &mut readers)).await;
        return Gone::Closed;
    };
    // Data of the lanes before the end is passed on first.
    session.shut();
    let ends = futures_util::future::join_all(readers.iter_mut().map(Running::ended));
    let _ = tokio::time::timeout(LAST_WORDS, ends).await;
    why
}

/// Passes on arriving datagrams, and the link's data to its writers, until the link is dropped.
async fn pass_on<S: Session>(
    session: &S,
    link: LinkId,
    writers: &[LaneWriter],
    inbox: &mut Inbox,
    reporter: &Reporter,
    mut limiter: Option<RateLimiter>,
) -> Result<(), Gone> {
    loop {
        tokio::select! {
            datagram = session.receive() => {
                let bytes = datagram.map_err(|error| failed(&error))?;
                if bytes.len() > MAX_QUIC_DATAGRAM {
                    return Err(Gone::Limit("a datagram is too long"));
                }
                if limiter.as_mut().is_some_and(|limiter| !limiter.try_take(Instant::now())) {
                    continue;
                }
                if !reporter.report(Event::Datagram { link, bytes }).await {
                    return Err(Gone::Closed);
                }
            }
            command = inbox.next() => match command {
                Some(Command::Datagram(bytes)) => {
                    inbox.written(bytes.len());
                    session.send(bytes);
                }
                Some(Command::Stream(lane, bytes)) => {
                    let writer = writers.get(usize::from(lane.0));
                    if !writer.is_some_and(|writer| writer.push(bytes)) {
                        return Err(Gone::Failed("the other side stopped a lane".into()));
                    }
                }
                Some(Command::Joined) => session.widen(),
                Some(Command::Answer { .. } | Command::Say(_)) => {}
                None => return Ok(()),
            },
        }
    }
}

/// Lets the lanes write their queued data, then waits for the peer to end its own: only then has it read ours, which
/// closing the connection would discard.
async fn part(writers: Vec<LaneWriter>, readers: &mut [Running]) {
    futures_util::future::join_all(writers.into_iter().map(LaneWriter::finish)).await;
    futures_util::future::join_all(readers.iter_mut().map(Running::ended)).await;
}

/// Passes on a lane's bytes as they arrive. The connection reports the end of the lane.
async fn read_lane(
    link: LinkId,
    lane: LaneId,
    mut reader: impl AsyncRead + Unpin,
    reporter: Reporter,
    mut limiter: Option<RateLimiter>,
) {
    let mut buffer = vec![0; READ_LEN];
    while let Ok(len @ 1..) = reader.read(&mut buffer).await {
        if !reporter.report(Event::Stream { link, lane, bytes: buffer[..len].to_vec() }).await {
            return;
        }
        if let Some(wait) = limiter.as_mut().and_then(|limiter| limiter.take(Instant::now(), len)) {
            tokio::time::sleep(wait).await;
        }
    }
}

/// The writer of one lane, in a task of its own so that a slow lane delays no other.
struct LaneWriter {
    pieces: mpsc::UnboundedSender<Vec<u8>>,
    task: tokio::task::JoinHandle<()>,
}

impl LaneWriter {
    fn start(mut writer: impl AsyncWrite + Send + Unpin + 'static, meter: Meter) -> LaneWriter {
        let (pieces, mut waiting) = mpsc::unbounded_channel::<Vec<u8>>();
        let task = tokio::spawn(async move {
            while let Some(piece) = waiting.recv().await {
                if writer.write_all(&piece).await.is_err() {
                    return;
                }
                meter.written(cost(piece.len()));
            }
            let _ = writer.shutdown().await;
        });
        LaneWriter { pieces, task }
    }

    /// False if the lane has failed.
    fn push(&self, piece: Vec<u8>) -> bool {
        self.pieces.send(piece).is_ok()
    }

    async fn finish(self) {
        drop(self.pieces);
        let _ = self.task.await;
    }
}

async fn read_blob(reader: &mut (impl AsyncRead + Unpin), limit: usize) -> io::Result<Vec<u8>> {
    let len = usize::from(reader.read_u16_le().await?);
    if len > limit {
        return Err(io::Error::other("a first message or answer is too long"));
    }
    let mut blob = vec![0; len];
    reader.read_exact(&mut blob).await?;
    Ok(blob)
}

async fn write_blob(writer: &mut (impl AsyncWrite + Unpin), blob: &[u8]) -> io::Result<()> {
    writer.write_all(&[&(blob.len() as u16).to_le_bytes()[..], blob].concat()).await
}

fn failed(error: &io::Error) -> Gone {
    match error.kind() {
        io::ErrorKind::TimedOut => Gone::NoAnswer,
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
            Gone::Closed
        }
        _ => Gone::Failed(error.to_string()),
    }
}
