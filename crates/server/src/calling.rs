//! Driver of the client state machine: dials, moves bytes between it and the transports of this machine, and passes the
//! time. The client itself decides when to reconnect.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use sametick_client::{Attempt, Carried, Client, Input, Output, Plan, Side};
use sametick_sim::Tick;
use sametick_transport::clock::{Clock, random, unix_seconds};
use sametick_transport::dial::Locator;
use sametick_transport::endpoint::{Arrival, CALL, Endpoint};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::HelloError;
use sametick_wire::{LaneId, Time};

use crate::trace::Trace;

/// How long the last packets may take to be sent before the connection closes.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How many arrivals of one endpoint are handled before the others have their turn.
const AT_ONCE: u32 = 64;

/// More bytes than a client sends and receives between two drains: a save of the largest size is handed over in pieces.
const TRACED_BYTES: usize = 16 << 20;

/// A file that all clients of a thread write their messages to.
pub(crate) type SharedTrace = Rc<RefCell<Trace>>;

/// A time that is never reached.
const NEVER: Time = Time::from_micros(u64::MAX);

type Found = Pin<Box<dyn Future<Output = io::Result<Box<dyn Endpoint>>>>>;

enum Carrying {
    Calling(Found),
    Open(Box<dyn Endpoint>),
    /// Sends its last packets.
    Closing(Box<dyn Endpoint>),
}

struct Line {
    attempt: Attempt,
    carrying: Carrying,
}

/// A client and its connections to a server. Needs a single-threaded runtime.
pub(crate) struct Caller<S: Side> {
    client: Client<S>,
    clock: Clock,
    url: Locator,
    key: AccessKey,
    lines: Vec<Line>,
    /// What has arrived and has not been handed to the client.
    heard: Heard,
    wake_at: Time,
    is_done: bool,
    buf: Vec<u8>,
    /// The file that its messages are written to, if any.
    trace: Option<SharedTrace>,
}

/// What the transports have received, in order.
#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    all: VecDeque<(Attempt, News, Range<usize>)>,
}

#[derive(Clone, Copy)]
enum News {
    Answer,
    Datagram,
    Datagrams(bool),
    Stream(LaneId),
    Gone,
}

impl Heard {
    fn push(&mut self, attempt: Attempt, news: News, bytes: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.all.push_back((attempt, news, from..self.bytes.len()));
    }

    /// Records why a connection is gone.
    fn push_gone(&mut self, attempt: Attempt, why: &dyn fmt::Display) {
        self.push(attempt, News::Gone, why.to_string().as_bytes());
    }
}

impl<S: Side> Caller<S> {
    /// A caller that connects at once, to take part in a session or room.
    pub fn new(
        clock: Clock,
        url: &Locator,
        key: &AccessKey,
        session: String,
        join: S::JoinAs,
    ) -> Result<Caller<S>, HelloError> {
        Caller::with_pass(clock, url, key, (session, None), join)
    }

    /// The same, with the pass of a member of a session.
    pub fn with_pass(
        clock: Clock,
        url: &Locator,
        key: &AccessKey,
        (session, pass): (String, Option<Vec<u8>>),
        join: S::JoinAs,
    ) -> Result<Caller<S>, HelloError> {
        let plan = Plan {
            session,
            join,
            key: key.clone(),
            pass,
            routes: vec![url.scheme.carrier()],
            unix_s: unix_seconds(),
            random: random(),
        };
        Ok(Caller {
            client: Client::new(clock.now(), plan)?,
            clock,
            url: url.clone(),
            key: key.clone(),
            lines: Vec::new(),
            heard: Heard::default(),
            wake_at: Time::ZERO,
            is_done: false,
            buf: Vec::new(),
            trace: None,
        })
    }

    /// The client.
    pub fn client(&self) -> &Client<S> {
        &self.client
    }

    /// The client, to change it; the caller must then be [drained](Caller::drain).
    pub fn client_mut(&mut self) -> &mut Client<S> {
        &mut self.client
    }

    /// Writes its messages to this file from now on.
    pub fn set_trace(&mut self, trace: SharedTrace) {
        self.client.keep_messages(TRACED_BYTES);
        self.trace = Some(trace);
    }

    /// Whether the client has ended.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Does what can be done now. `play` returns the player's input for a tick.
    pub fn drain(&mut self, mut play: impl FnMut(&mut S, Tick) -> S::Input) {
        self.poll_client(&mut play);
        let mut heard = std::mem::take(&mut self.heard);
        while let Some((attempt, news, range)) = heard.all.pop_front() {
            let bytes = &heard.bytes[range];
            let why = String::from_utf8_lossy(bytes);
            let carried = match news {
                News::Answer => Carried::Answer(bytes),
                News::Datagram => Carried::Datagram(bytes),
                News::Datagrams(carried) => Carried::Datagrams(carried),
                News::Stream(lane) => Carried::Stream(lane, bytes),
                News::Gone => Carried::Gone(&why),
            };
            self.client.handle(self.clock.now(), Input::Carrier(attempt, carried));
            self.poll_client(&mut play);
        }
        heard.bytes.clear();
        self.heard = heard;
        for line in &mut self.lines {
            if let Carrying::Open(endpoint) | Carrying::Closing(endpoint) = &mut line.carrying {
                endpoint.flush();
            }
        }
        if let Some(trace) = &self.trace {
            trace.borrow_mut().take_messages(self.clock.now(), &mut self.client);
        }
    }

    fn poll_client(&mut self, play: &mut impl FnMut(&mut S, Tick) -> S::Input) {
        loop {
            match self.client.poll_output(&mut self.buf) {
                Output::Dial(attempt, _) => self.dial(attempt),
                Output::Datagram(attempt) => {
                    if let Some(endpoint) = open_line(&mut self.lines, attempt) {
                        endpoint.send_datagram(CALL, &self.buf);
                    }
                }
                Output::Stream(attempt, lane) => {
                    if let Some(endpoint) = open_line(&mut self.lines, attempt) {
                        endpoint.send_stream(CALL, lane, &self.buf);
                    }
                }
                Output::HangUp(attempt) => self.hang_up(attempt),
                Output::WantInput(tick) => {
                    let Some(side) = self.client.side_mut() else { continue };
                    let input = play(side, tick);
                    self.client.handle(self.clock.now(), Input::Local(input));
                }
                Output::WakeAt(at) => break self.wake_at = at,
                Output::Done => {
                    self.is_done = true;
                    break self.wake_at = NEVER;
                }
            }
        }
    }

    fn dial(&mut self, attempt: Attempt) {
        let (url, key, first, now) = (self.url.clone(), self.key.clone(), self.buf.clone(), self.clock.now());
        let found: Found = Box::pin(async move { url.call(now, &key, first).await });
        self.lines.push(Line { attempt, carrying: Carrying::Calling(found) });
    }

    fn hang_up(&mut self, attempt: Attempt) {
        let Some(at) = self.lines.iter().position(|line| line.attempt == attempt) else { return };
        let line = self.lines.swap_remove(at);
        if let Carrying::Open(mut endpoint) = line.carrying {
            endpoint.drop_link(CALL);
            self.lines.push(Line { attempt, carrying: Carrying::Closing(endpoint) });
        }
    }

    /// Waits until something has happened, at most until this time.
    pub async fn wait(&mut self, until: Option<Time>) {
        let carriers = self.lines.iter().filter_map(|line| match &line.carrying {
            Carrying::Open(endpoint) => endpoint.wake_at(),
            Carrying::Calling(_) | Carrying::Closing(_) => None,
        });
        let at = carriers.chain(until).chain([self.wake_at]).min().unwrap_or(NEVER);
        let mut sleep = pin!(tokio::time::sleep_until(self.clock.instant(at).into()));
        poll_fn(|cx| match self.poll_lines(cx) {
            Poll::Pending => sleep.as_mut().poll(cx),
            ready => ready,
        })
        .await;
        let now = self.clock.now();
        if self.wake_at <= now {
            self.client.handle(now, Input::Timeout);
        }
    }

    /// Reads from the endpoints. Ready if anything has arrived.
    fn poll_lines(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Caller { heard, clock, lines, .. } = self;
        let now = clock.now();
        let mut has_opened = false;
        lines.retain_mut(|line| {
            let attempt = line.attempt;
            if let Carrying::Calling(found) = &mut line.carrying {
                match found.as_mut().poll(cx) {
                    Poll::Pending => return true,
                    Poll::Ready(Ok(endpoint)) => {
                        line.carrying = Carrying::Open(endpoint);
                        has_opened = true;
                    }
                    Poll::Ready(Err(error)) => {
                        heard.push_gone(attempt, &error);
                        return false;
                    }
                }
            }
            match &mut line.carrying {
                Carrying::Calling(_) => true,
                Carrying::Open(endpoint) => poll_open(attempt, endpoint.as_mut(), cx, now, heard),
                Carrying::Closing(endpoint) => {
                    while let Poll::Ready(Ok(())) = endpoint.poll(cx, now, &mut |_| {}) {}
                    endpoint.poll_finished(cx).is_pending()
                }
            }
        });
        // An endpoint that has just opened reports when it wants to be polled.
        if has_opened || !heard.all.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits, for a moment at most, until the last packets are sent. Returns the side, if there is one.
    pub async fn finish(mut self) -> Option<S> {
        let until = self.clock.now().plus_micros(LAST_WORDS.as_micros() as u64);
        while self.clock.now() < until && self.has_words() {
            self.wait(Some(until)).await;
        }
        self.client.into_side()
    }

    fn has_words(&self) -> bool {
        self.lines.iter().any(|line| matches!(line.carrying, Carrying::Closing(_)))
    }
}

/// Takes what has arrived, and returns whether the connection is still open.
fn poll_open(
    attempt: Attempt,
    endpoint: &mut dyn Endpoint,
    cx: &mut Context<'_>,
    now: Time,
    heard: &mut Heard,
) -> bool {
    let mut is_there = true;
    for _ in 0..AT_ONCE {
        let polled = endpoint.poll(cx, now, &mut |arrival| match arrival {
            Arrival::Answer { bytes, .. } => heard.push(attempt, News::Answer, bytes),
            Arrival::Datagram { bytes, .. } => heard.push(attempt, News::Datagram, bytes),
            Arrival::Datagrams { carried, .. } => heard.push(attempt, News::Datagrams(carried), &[]),
            Arrival::Stream { lane, bytes, .. } => heard.push(attempt, News::Stream(lane), bytes),
            Arrival::Gone { why, .. } => {
                is_there = false;
                heard.push_gone(attempt, &why);
            }
            // A client accepts no connections and reads no raw bytes.
            Arrival::Hello { .. } | Arrival::Raw { .. } => {}
        });
        match polled {
            Poll::Pending => return is_there,
            Poll::Ready(Ok(())) if is_there => {}
            Poll::Ready(Ok(())) => return false,
            Poll::Ready(Err(error)) => {
                heard.push_gone(attempt, &error);
                return false;
            }
        }
    }
    cx.waker().wake_by_ref();
    is_there
}

fn open_line(lines: &mut [Line], attempt: Attempt) -> Option<&mut Box<dyn Endpoint>> {
    lines.iter_mut().find_map(|line| match &mut line.carrying {
        Carrying::Open(endpoint) if line.attempt == attempt => Some(endpoint),
        _ => None,
    })
}
