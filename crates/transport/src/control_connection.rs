//! Control connections between our own processes: whole messages over TCP, encrypted with a pre-shared key. A peer
//! without the key learns nothing, not even which service listens.
//!
//! ```text
//! first    length (2) · NNpsk0 message 1           caller → listener
//! answer   length (2) · NNpsk0 message 2           listener → caller
//! after    length (2) · ciphertext of: more (1) · bytes      a message is one such piece or several
//! ```
//! Both sides send an empty message every two seconds, and time out a silent peer. A caller reconnects by itself.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use snow::StatelessTransportState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::connection_slots::ConnectionSlots;
use crate::hub_waker::HubWaker;
use crate::tasks::Running;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"sametick connection 1";

/// The longest message: a host's report of a thousand sessions.
pub const MAX_MESSAGE: usize = 1 << 20;

/// The most bytes of a message in one piece; encrypted, they fit a length of two bytes.
const MAX_PIECE: usize = 60_000;
const SEAL_LEN: usize = 16;
const LAST: u8 = 0;
const MORE: u8 = 1;

/// The time-out of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// How many handshakes of callers run at once, in total and per address: peers without the key cannot use up all of
/// them.
const MAX_HANDSHAKES: usize = 1_024;
const MAX_HANDSHAKES_EACH: usize = 64;

/// How long the final bytes of a connection may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The interval of keep-alives, and the time-out of a silent peer.
const SAY_EVERY: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_secs(8);

/// How long a caller waits before it reconnects: at first, and at most.
const CALL_AGAIN: Duration = Duration::from_millis(100);
const MAX_CALL_AGAIN: Duration = Duration::from_secs(2);

/// The most messages that wait to be sent to a peer. A peer with more counts as gone.
const MAX_WAITING: usize = 4_096;

/// The key of both sides: 256 random bits.
pub type ControlKey = [u8; 32];

/// The id of a connection. An id is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControlId(pub u64);

/// An event of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer with the key has connected.
    Opened(ControlId),
    /// The peer sent a message.
    Message(ControlId, Vec<u8>),
    /// The connection has ended.
    Closed(ControlId),
}

enum Report {
    Opened(ControlId, mpsc::Sender<Vec<u8>>),
    Message(ControlId, Vec<u8>),
    Closed(ControlId),
}

/// Where connections report their events.
#[derive(Clone)]
struct Reporter {
    key: ControlKey,
    reports: mpsc::Sender<Report>,
    waker: HubWaker,
    next: Arc<AtomicU64>,
}

/// The connections of a process, from one listener or one caller. Dropping it ends all of them.
pub struct ControlConnections {
    reports: mpsc::Receiver<Report>,
    open: HashMap<ControlId, mpsc::Sender<Vec<u8>>>,
    _task: Running,
}

impl ControlConnections {
    /// Accepts connections. The waker is rung when there is an event to [poll](ControlConnections::poll).
    pub fn listen(listener: TcpListener, key: ControlKey, waker: HubWaker) -> ControlConnections {
        ControlConnections::run(key, waker, |desk| Running::spawn(accept(listener, desk)))
    }

    /// Connects, and reconnects after each end, to the address that `where_to` returns at that moment.
    pub fn call(
        where_to: impl Fn() -> Option<String> + Send + 'static,
        key: ControlKey,
        waker: HubWaker,
    ) -> ControlConnections {
        ControlConnections::run(key, waker, |desk| Running::spawn(keep_calling(where_to, desk)))
    }

    fn run(key: ControlKey, waker: HubWaker, start: impl FnOnce(Reporter) -> Running) -> ControlConnections {
        let (sender, reports) = mpsc::channel(MAX_WAITING);
        let task = start(Reporter { key, reports: sender, waker, next: Arc::default() });
        ControlConnections { reports, open: HashMap::new(), _task: task }
    }

    /// Returns the next event.
    pub fn poll(&mut self) -> Option<Event> {
        match self.reports.try_recv().ok()? {
            Report::Opened(id, outbox) => {
                self.open.insert(id, outbox);
                Some(Event::Opened(id))
            }
            Report::Message(id, bytes) => Some(Event::Message(id, bytes)),
            Report::Closed(id) => {
                self.open.remove(&id);
                Some(Event::Closed(id))
            }
        }
    }

    /// Sends a message, if the connection is open. A peer that does not read in time is disconnected.
    pub fn send(&mut self, id: ControlId, message: Vec<u8>) {
        if let Some(outbox) = self.open.get(&id)
            && outbox.try_send(message).is_err()
        {
            self.open.remove(&id);
        }
    }

    /// Closes a connection.
    pub fn close(&mut self, id: ControlId) {
        self.open.remove(&id);
    }

    /// Closes all connections, once sent messages are out or a short time has passed.
    pub async fn finish(mut self) {
        let mut ending = self.open.len();
        self.open.clear();
        let all = async {
            while ending > 0 {
                match self.reports.recv().await {
                    Some(Report::Closed(_)) => ending -= 1,
                    Some(_) => {}
                    None => return,
                }
            }
        };
        let _ = timeout(LAST_WORDS, all).await;
    }

    /// The ids of all open connections.
    pub fn ids(&self) -> Vec<ControlId> {
        self.open.keys().copied().collect()
    }
}

impl Reporter {
    async fn report(&self, report: Report) -> bool {
        let is_taken = self.reports.send(report).await.is_ok();
        self.waker.ring();
        is_taken
    }
}

async fn accept(listener: TcpListener, desk: Reporter) {
    let places = ConnectionSlots::at_most(MAX_HANDSHAKES, MAX_HANDSHAKES_EACH);
    let mut running: Vec<Running> = Vec::new();
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Probably out of file descriptors for a moment.
            sleep(CALL_AGAIN).await;
            continue;
        };
        running.retain(|task| !task.is_over());
        let Some(place) = places.take(from.ip()) else { continue };
        let desk = desk.clone();
        running.push(Running::spawn(async move {
            let shaken = timeout(HANDSHAKE, shake(stream, &desk.key, false)).await;
            drop(place);
            if let Ok(Ok((stream, seal))) = shaken {
                serve(stream, seal, &desk).await;
            }
        }));
    }
}

async fn keep_calling(where_to: impl Fn() -> Option<String>, desk: Reporter) {
    let mut pause = CALL_AGAIN;
    loop {
        let address = where_to();
        let calling = async {
            let stream = TcpStream::connect(address.as_deref()?).await.ok()?;
            shake(stream, &desk.key, true).await.ok()
        };
        if let Ok(Some((stream, seal))) = timeout(HANDSHAKE, calling).await {
            pause = CALL_AGAIN;
            serve(stream, seal, &desk).await;
        }
        if desk.reports.is_closed() {
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(MAX_CALL_AGAIN);
    }
}

/// Runs the handshake that proves that both sides have the key.
async fn shake(
    mut stream: TcpStream,
    key: &ControlKey,
    is_caller: bool,
) -> io::Result<(TcpStream, StatelessTransportState)> {
    let stranger = |error: snow::Error| io::Error::new(io::ErrorKind::PermissionDenied, error.to_string());
    stream.set_nodelay(true)?;
    let builder = || {
        let params = PATTERN.parse().map_err(stranger)?;
        snow::Builder::new(params).psk(0, key).and_then(|it| it.prologue(PROLOGUE)).map_err(stranger)
    };
    let mut state = match is_caller {
        true => builder()?.build_initiator().map_err(stranger)?,
        false => builder()?.build_responder().map_err(stranger)?,
    };
    let mut buf = [0; 128];
    for turn in [true, false] {
        if turn == is_caller {
            let len = state.write_message(&[], &mut buf).map_err(stranger)?;
            stream.write_u16(len as u16).await?;
            stream.write_all(&buf[..len]).await?;
        } else {
            let len = usize::from(stream.read_u16().await?);
            let piece = buf.get_mut(..len).ok_or(io::ErrorKind::InvalidData)?;
            stream.read_exact(piece).await?;
            state.read_message(piece, &mut [0; 128]).map_err(stranger)?;
        }
    }
    Ok((stream, state.into_stateless_transport_mode().map_err(stranger)?))
}

/// Runs a connection until either side ends it.
async fn serve(stream: TcpStream, seal: StatelessTransportState, desk: &Reporter) {
    let id = ControlId(desk.next.fetch_add(1, Ordering::Relaxed));
    let (outbox, inbox) = mpsc::channel(MAX_WAITING);
    if !desk.report(Report::Opened(id, outbox)).await {
        return;
    }
    let (reader, writer) = stream.into_split();
    tokio::select! {
        _ = read(reader, &seal, id, desk) => {}
        _ = write(writer, &seal, inbox) => {}
    }
    desk.report(Report::Closed(id)).await;
}

async fn read(
    mut stream: OwnedReadHalf,
    seal: &StatelessTransportState,
    id: ControlId,
    desk: &Reporter,
) -> io::Result<()> {
    let (mut message, mut plain) = (Vec::new(), vec![0; MAX_PIECE + 1]);
    let mut piece = vec![0; MAX_PIECE + 1 + SEAL_LEN];
    for nonce in 0.. {
        let len = usize::from(timeout(SILENCE, stream.read_u16()).await??);
        let piece = piece.get_mut(..len).ok_or(io::ErrorKind::InvalidData)?;
        timeout(SILENCE, stream.read_exact(piece)).await??;
        let len = seal.read_message(nonce, piece, &mut plain).map_err(|_| io::ErrorKind::InvalidData)?;
        let Some((more, bytes)) = plain.get(..len).and_then(<[u8]>::split_first) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        message.extend_from_slice(bytes);
        if message.len() > MAX_MESSAGE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if *more == LAST && !message.is_empty() {
            let report = Report::Message(id, std::mem::take(&mut message));
            if !desk.report(report).await {
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn write(
    mut stream: OwnedWriteHalf,
    seal: &StatelessTransportState,
    mut inbox: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut beat = interval(SAY_EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut nonce, mut out, mut plain) = (0, Vec::new(), Vec::new());
    loop {
        let message = tokio::select! {
            message = inbox.recv() => match message {
                Some(message) => message,
                None => return stream.shutdown().await,
            },
            _ = beat.tick() => Vec::new(),
        };
        let mut pieces = message.chunks(MAX_PIECE).peekable();
        let mut next = Some(pieces.next().unwrap_or_default());
        while let Some(piece) = next {
            next = pieces.next();
            plain.clear();
            plain.push(if next.is_some() { MORE } else { LAST });
            plain.extend_from_slice(piece);
            out.resize(2 + plain.len() + SEAL_LEN, 0);
            let (head, body) = out.split_at_mut(2);
            let len = seal.write_message(nonce, &plain, body).map_err(|_| io::ErrorKind::InvalidData)?;
            head.copy_from_slice(&(len as u16).to_be_bytes());
            nonce += 1;
            timeout(SILENCE, stream.write_all(&out[..2 + len])).await??;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpSocket;

    use super::*;

    const KEY: ControlKey = [7; 32];

    async fn listen() -> (ControlConnections, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        (ControlConnections::listen(listener, KEY, HubWaker::default()), address)
    }

    fn call(address: &str, key: ControlKey) -> ControlConnections {
        let address = address.to_owned();
        ControlConnections::call(move || Some(address.clone()), key, HubWaker::default())
    }

    async fn next(connections: &mut ControlConnections) -> Event {
        loop {
            if let Some(event) = connections.poll() {
                return event;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn opened(connections: &mut ControlConnections) -> ControlId {
        let Event::Opened(id) = next(connections).await else { panic!("not opened") };
        id
    }

    #[tokio::test]
    async fn messages_of_any_length_arrive_whole_both_ways() {
        let (mut listener, address) = listen().await;
        let mut caller = call(&address, KEY);
        let (here, there) = (opened(&mut listener).await, opened(&mut caller).await);
        for len in [1, MAX_PIECE - 1, MAX_PIECE, MAX_PIECE + 1, 3 * MAX_PIECE, MAX_MESSAGE] {
            let message: Vec<u8> = (0..len).map(|at| at as u8).collect();
            caller.send(there, message.clone());
            assert_eq!(next(&mut listener).await, Event::Message(here, message.clone()));
            listener.send(here, message.clone());
            assert_eq!(next(&mut caller).await, Event::Message(there, message));
        }
    }

    #[tokio::test]
    async fn a_caller_without_the_key_is_told_nothing() {
        let (mut listener, address) = listen().await;
        let _stranger = call(&address, [8; 32]);
        let mut bare = TcpStream::connect(&address).await.unwrap();
        bare.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = bare.read_to_end(&mut answer).await;
        assert!(answer.is_empty());
        // A caller with the key connects, and the listener has heard of no other caller before.
        let mut caller = call(&address, KEY);
        assert_eq!(opened(&mut listener).await, ControlId(0));
        opened(&mut caller).await;
    }

    #[tokio::test]
    async fn a_caller_reconnects_to_a_new_listener() {
        let (mut listener, address) = listen().await;
        let mut caller = call(&address, KEY);
        let (first, here) = (opened(&mut caller).await, opened(&mut listener).await);
        drop(listener);
        assert_eq!(next(&mut caller).await, Event::Closed(first));
        assert_eq!(here, ControlId(0));
        let listening = TcpListener::bind(&address).await.unwrap();
        let mut listener = ControlConnections::listen(listening, KEY, HubWaker::default());
        let (second, here) = (opened(&mut caller).await, opened(&mut listener).await);
        assert!(second > first);
        drop(caller);
        assert_eq!(next(&mut listener).await, Event::Closed(here));
    }

    #[tokio::test]
    async fn the_final_messages_arrive() {
        let (mut listener, address) = listen().await;
        let mut caller = call(&address, KEY);
        let (here, there) = (opened(&mut listener).await, opened(&mut caller).await);
        caller.send(there, b"bye".to_vec());
        caller.finish().await;
        assert_eq!(next(&mut listener).await, Event::Message(here, b"bye".to_vec()));
        assert_eq!(next(&mut listener).await, Event::Closed(here));
    }

    #[tokio::test]
    async fn silent_strangers_of_one_address_lock_no_caller_out() {
        let (mut listener, address) = listen().await;
        let mut crowd = Vec::new();
        for _ in 0..5 * MAX_HANDSHAKES_EACH {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.9:0".parse().unwrap()).unwrap();
            crowd.push(socket.connect(address.parse().unwrap()).await.unwrap());
        }
        let mut caller = call(&address, KEY);
        opened(&mut listener).await;
        opened(&mut caller).await;
    }
}
