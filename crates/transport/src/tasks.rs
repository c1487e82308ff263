//! An [`Endpoint`] for connections that run in tasks of their own (QUIC, WebSocket, WebTransport).

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sametick_wire::{Carrier, LaneId, Time};
use tokio::sync::{mpsc, oneshot};

use crate::endpoint::{Arrival, Endpoint, EndpointStats, Gone, LinkId, RawEvent, RawMessage};
use crate::extras::{Extras, MAX_EXTRA_UNWRITTEN};

/// How many arrivals wait for the driver before connections are no longer read from.
const MAX_WAITING: usize = 1_024;

/// How many arrivals one poll passes on, so that timers get their turn.
const MAX_AT_ONCE: usize = 256;

/// The write buffer of one connection; a peer that reads more slowly is dropped.
pub const MAX_UNWRITTEN: usize = 256 << 10;

/// The write buffers of all connections of an endpoint together. Beyond it, connections with more than
/// [`FAIR_UNWRITTEN`] are dropped.
const MAX_ALL_UNWRITTEN: usize = 64 << 20;
const FAIR_UNWRITTEN: usize = 16 << 10;

/// The overhead counted for each piece: about what it costs to keep one.
const PIECE_COST: usize = 64;

/// How long the final bytes of a dropped link may take.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);

/// An event from a connection's task.
pub(crate) enum Event {
    Hello {
        link: LinkId,
        from: SocketAddr,
        bytes: Vec<u8>,
        outbox: Outbox,
    },
    Answer {
        link: LinkId,
        bytes: Vec<u8>,
    },
    Datagram {
        link: LinkId,
        bytes: Vec<u8>,
    },
    Stream {
        link: LinkId,
        lane: LaneId,
        bytes: Vec<u8>,
    },
    Gone {
        link: LinkId,
        why: Gone,
    },
    /// A link has an extra socket.
    Extra {
        link: LinkId,
        extra: LinkId,
        outbox: Outbox,
    },
    ExtraGone {
        link: LinkId,
        extra: LinkId,
    },
    /// The outbox comes with its first event.
    Raw {
        link: LinkId,
        event: RawEvent,
        outbox: Option<Outbox>,
    },
}

/// A command to a connection's task.
#[derive(Debug)]
pub(crate) enum Command {
    Answer { bytes: Vec<u8>, open: bool },
    Datagram(Vec<u8>),
    Stream(LaneId, Vec<u8>),
    Say(RawMessage),
    Joined,
}

/// The sender of commands to a connection's task. Dropping it ends the connection after the data already sent, if that
/// does not take longer than [`LAST_WORDS`].
pub(crate) struct Outbox {
    commands: mpsc::UnboundedSender<Command>,
    unwritten: Arc<Unwritten>,
    _alive: oneshot::Sender<()>,
}

/// The receiver in the task.
pub(crate) struct Inbox {
    commands: mpsc::UnboundedReceiver<Command>,
    unwritten: Arc<Unwritten>,
    alive: Option<oneshot::Receiver<()>>,
}

/// Counts bytes that wait to be written to a connection, and to all of its endpoint.
struct Unwritten {
    own: AtomicUsize,
    all: Arc<AtomicUsize>,
}

impl Unwritten {
    /// Counts a piece by its cost. False if too much is waiting.
    fn add(&self, cost: usize) -> bool {
        let own = self.own.fetch_add(cost, Ordering::Relaxed) + cost;
        let all = self.all.fetch_add(cost, Ordering::Relaxed) + cost;
        own <= MAX_UNWRITTEN && (own <= FAIR_UNWRITTEN || all <= MAX_ALL_UNWRITTEN)
    }

    fn subtract(&self, cost: usize) {
        self.own.fetch_sub(cost, Ordering::Relaxed);
        self.all.fetch_sub(cost, Ordering::Relaxed);
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// A command channel to a connection's task; `all` counts the waiting bytes of all connections.
fn connection(all: Arc<AtomicUsize>) -> (Outbox, Inbox) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (_alive, alive) = oneshot::channel();
    let unwritten = Arc::new(Unwritten { own: AtomicUsize::new(0), all });
    let outbox = Outbox { commands: sender, unwritten: unwritten.clone(), _alive };
    (outbox, Inbox { commands: receiver, unwritten, alive: Some(alive) })
}

/// The counted cost of so many bytes: a peer must not make us keep many tiny pieces either.
pub(crate) fn cost(len: usize) -> usize {
    len + PIECE_COST
}

impl Outbox {
    /// Sends a datagram on an extra socket, unless too much waits there already.
    fn send_datagram(&self, bytes: &[u8]) {
        let cost = cost(bytes.len());
        if self.unwritten.own.load(Ordering::Relaxed) + cost <= MAX_EXTRA_UNWRITTEN {
            self.unwritten.add(cost);
            // A task that has ended reports that itself.
            let _ = self.commands.send(Command::Stream(LaneId(0), bytes.to_vec()));
        }
    }

    /// False if too much waits already.
    fn send(&self, command: Command) -> bool {
        if !self.unwritten.add(cost(command.len())) {
            return false;
        }
        // A task that has ended reports that itself.
        let _ = self.commands.send(command);
        true
    }
}

impl Command {
    pub fn len(&self) -> usize {
        match self {
            Command::Answer { bytes, .. } | Command::Datagram(bytes) | Command::Stream(_, bytes) => {
                bytes.len()
            }
            Command::Say(words) => words.len(),
            Command::Joined => 0,
        }
    }
}

impl Inbox {
    /// The next command; `None` when the link has been dropped.
    pub async fn next(&mut self) -> Option<Command> {
        self.commands.recv().await
    }

    /// The next command if there is one already.
    pub fn try_next(&mut self) -> Option<Command> {
        self.commands.try_recv().ok()
    }

    /// Notes that a piece of this length has been written.
    pub fn written(&self, len: usize) {
        self.meter().written(cost(len));
    }

    /// Ready when the link was dropped and the time for its final bytes is over: a peer that does not read must not
    /// keep its connection alive.
    pub fn end(&mut self) -> impl Future<Output = ()> + use<> {
        let alive = self.alive.take();
        async {
            if let Some(alive) = alive {
                let _ = alive.await;
            }
            tokio::time::sleep(LAST_WORDS).await;
        }
    }

    /// A meter for the writer.
    pub fn meter(&self) -> Meter {
        Meter(self.unwritten.clone())
    }
}

/// Counts written bytes, so that [`Outbox`] knows the unwritten ones.
pub(crate) struct Meter(Arc<Unwritten>);

impl Meter {
    /// Notes written bytes, by their [`cost`].
    pub fn written(&self, cost: usize) {
        self.0.subtract(cost);
    }
}

/// The state that connections' tasks share.
#[derive(Clone)]
pub(crate) struct Reporter {
    events: mpsc::Sender<Event>,
    next_link: Arc<AtomicU64>,
    ignored: Arc<AtomicU64>,
    unwritten: Arc<AtomicUsize>,
    /// The links that can have extra sockets.
    pub extras: Extras,
}

/// The endpoint's end of [`Reporter`].
pub(crate) struct Events(mpsc::Receiver<Event>);

pub(crate) fn reports() -> (Reporter, Events) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let reporter = Reporter {
        events: sender,
        next_link: Arc::default(),
        ignored: Arc::default(),
        unwritten: Arc::default(),
        extras: Extras::default(),
    };
    (reporter, Events(receiver))
}

impl Reporter {
    pub fn new_link(&self) -> LinkId {
        LinkId(self.next_link.fetch_add(1, Ordering::Relaxed))
    }

    /// A connection of this endpoint.
    pub fn connection(&self) -> (Outbox, Inbox) {
        connection(self.unwritten.clone())
    }

    /// Sends an event; waits while too many wait. False when the endpoint is gone.
    pub async fn report(&self, event: Event) -> bool {
        self.events.send(event).await.is_ok()
    }

    /// Counts a connection that never became a link.
    pub fn ignore(&self) {
        self.ignored.fetch_add(1, Ordering::Relaxed);
    }
}

/// The outboxes of the tasks of one link.
struct Connection {
    outbox: Outbox,
    extra: Vec<(LinkId, Outbox)>,
    /// Counts datagrams: extra sockets take turns.
    turn: usize,
}

impl From<Outbox> for Connection {
    fn from(outbox: Outbox) -> Connection {
        Connection { outbox, extra: Vec::new(), turn: 0 }
    }
}

/// An endpoint whose connections run in tasks. `T` is kept alive with it, for example the listener.
pub struct TaskEndpoint<T> {
    carrier: Carrier,
    local_addr: SocketAddr,
    events: mpsc::Receiver<Event>,
    reporter: Reporter,
    links: HashMap<LinkId, Connection>,
    /// Dropped links whose tasks have not ended.
    ending: HashSet<LinkId>,
    /// Links that were dropped for being too slow, not yet reported.
    too_slow: Vec<LinkId>,
    _kept: T,
}

impl<T> TaskEndpoint<T> {
    /// The endpoint of its tasks' events. `ours` is the connection of a client.
    pub(crate) fn new(
        carrier: Carrier,
        local_addr: SocketAddr,
        (reporter, events): (Reporter, Events),
        ours: Option<(LinkId, Outbox)>,
        kept: T,
    ) -> TaskEndpoint<T> {
        let links = ours.into_iter().map(|(link, outbox)| (link, outbox.into())).collect();
        TaskEndpoint {
            carrier,
            local_addr,
            events: events.0,
            reporter,
            links,
            ending: HashSet::new(),
            too_slow: vec![],
            _kept: kept,
        }
    }

    fn send(&mut self, link: LinkId, command: Command) {
        let Some(connection) = self.links.get(&link) else { return };
        if !connection.outbox.send(command) {
            self.drop_link(link);
            self.too_slow.push(link);
        }
    }

    fn hand_over(&mut self, event: Event, sink: &mut dyn FnMut(Arrival<'_>)) {
        match event {
            Event::Hello { link, from, bytes, outbox } => {
                self.links.insert(link, outbox.into());
                sink(Arrival::Hello { link, from, bytes: &bytes });
            }
            Event::Answer { link, bytes } => sink(Arrival::Answer { link, bytes: &bytes }),
            Event::Datagram { link, bytes } => sink(Arrival::Datagram { link, bytes: &bytes }),
            Event::Stream { link, lane, bytes } => sink(Arrival::Stream { link, lane, bytes: &bytes }),
            Event::Gone { link, why } => {
                self.links.remove(&link);
                self.ending.remove(&link);
                sink(Arrival::Gone { link, why });
            }
            Event::Raw { link, event, outbox } => {
                self.links.extend(outbox.map(|outbox| (link, outbox.into())));
                sink(Arrival::Raw { link, event });
            }
            Event::Extra { link, extra, outbox } => {
                // An extra socket of a link that has ended ends as well.
                let Some(connection) = self.links.get_mut(&link) else { return };
                connection.extra.push((extra, outbox));
                if connection.extra.len() == 1 {
                    sink(Arrival::Datagrams { link, carried: true });
                }
            }
            Event::ExtraGone { link, extra } => {
                let Some(connection) = self.links.get_mut(&link) else { return };
                let before = connection.extra.len();
                connection.extra.retain(|(other, _)| *other != extra);
                if before > 0 && connection.extra.is_empty() {
                    sink(Arrival::Datagrams { link, carried: false });
                }
            }
        }
    }
}

impl<T> Endpoint for TaskEndpoint<T> {
    fn carrier(&self) -> Carrier {
        self.carrier
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local_addr)
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        _: Time,
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> Poll<io::Result<()>> {
        for link in std::mem::take(&mut self.too_slow) {
            sink(Arrival::Gone { link, why: Gone::Limit("too much waits to be written") });
        }
        for count in 0..MAX_AT_ONCE {
            match self.events.poll_recv(cx) {
                Poll::Ready(Some(event)) => self.hand_over(event, sink),
                Poll::Ready(None) | Poll::Pending if count == 0 => return Poll::Pending,
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn joined(&mut self, link: LinkId) {
        self.send(link, Command::Joined);
    }

    fn answer(&mut self, link: LinkId, bytes: &[u8], open: bool) {
        self.send(link, Command::Answer { bytes: bytes.to_vec(), open });
        if !open {
            self.drop_link(link);
        }
    }

    fn send_datagram(&mut self, link: LinkId, bytes: &[u8]) {
        match self.links.get_mut(&link) {
            Some(Connection { extra, turn, .. }) if !extra.is_empty() => {
                *turn = turn.wrapping_add(1);
                extra[*turn % extra.len()].1.send_datagram(bytes);
            }
            _ => self.send(link, Command::Datagram(bytes.to_vec())),
        }
    }

    fn send_stream(&mut self, link: LinkId, lane: LaneId, bytes: &[u8]) {
        self.send(link, Command::Stream(lane, bytes.to_vec()));
    }

    fn say(&mut self, link: LinkId, words: RawMessage) {
        self.send(link, Command::Say(words));
    }

    fn drop_link(&mut self, link: LinkId) {
        if self.links.remove(&link).is_some() {
            self.ending.insert(link);
        }
    }

    fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.ending.is_empty() {
            match ready!(self.events.poll_recv(cx)) {
                Some(event) => self.hand_over(event, &mut |_| {}),
                None => break,
            }
        }
        Poll::Ready(())
    }

    fn stats(&self) -> EndpointStats {
        EndpointStats { ignored: self.reporter.ignored.load(Ordering::Relaxed), ..EndpointStats::default() }
    }
}

/// A task that ends when this is dropped.
pub struct Running(tokio::task::JoinHandle<()>);

impl Running {
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Running {
        Running(tokio::spawn(task))
    }
}

impl Running {
    /// Waits for the task to end by itself.
    pub(crate) async fn ended(&mut self) {
        // The result does not matter.
        let _ = (&mut self.0).await;
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_connections_are_dropped_when_all_buffer_too_much() {
        let (reporter, _events) = reports();
        let piece = || Command::Datagram(vec![0; FAIR_UNWRITTEN / 2 - PIECE_COST]);
        let mut slow = Vec::new();
        let mut first_refused = None;
        for number in 0..MAX_ALL_UNWRITTEN / MAX_UNWRITTEN + 8 {
            let (outbox, inbox) = reporter.connection();
            let taken = (0..).take_while(|_| outbox.send(piece())).count();
            if taken < MAX_UNWRITTEN / (FAIR_UNWRITTEN / 2) {
                first_refused = first_refused.or(Some(number));
            }
            assert!(taken >= 2, "a fair share is taken: {taken}");
            slow.push((outbox, inbox));
        }
        assert!(first_refused.is_some_and(|number| number <= MAX_ALL_UNWRITTEN / MAX_UNWRITTEN));
        drop(slow);
        assert_eq!(reporter.unwritten.load(Ordering::Relaxed), 0, "what is gone does not count");
        let (outbox, _inbox) = reporter.connection();
        assert!((0..20).all(|_| outbox.send(piece())));
    }
}
