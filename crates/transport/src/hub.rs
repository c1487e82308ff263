//! The hub, the driver of the transports: any number of endpoints, a link for each connection, and one application.
//!
//! `loop { receive or wake → handle → drain }`. All decisions are made in [`Link`] and in the application; the hub only
//! moves data. One task, one thread: work stays on the core that received the packet.

mod app;
pub mod budget;
mod links;
mod unmet;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use sametick_wire::access::Source;
use sametick_wire::closing::THROWN_OUT;
use sametick_wire::hello::{Answer, HelloOutcome, Proven};
use sametick_wire::netem::Profile;
use sametick_wire::netem_carrier::{NetemCarrier, Way};
use sametick_wire::{Carrier, Delivery, Input, Link, Output, Time};

use crate::clock::Clock;
use crate::endpoint::{Arrival, CALL, Endpoint, EndpointStats, Gone, LinkId, RawEvent};
use crate::hub_waker::HubWaker;
use crate::proof_journal::ProofJournal;
use crate::rate_limit::network;
pub use app::{App, Ended, Event};
pub use links::Links;
use unmet::{Client, Unmet};

/// How long the final bytes of ended links may take when a hub stops.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(3);

/// The least time that a hub reads arrivals before it handles timers, if there are so many.
const LEAST_LISTENING_US: u64 = 2_000;

/// How often the runtime may poll for more: once for the sockets, once for the tasks that read from them.
const RUNTIME_TURNS: u32 = 2;

/// A time after all others.
const NEVER: Time = Time::from_micros(u64::MAX);

/// The id of a link of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    endpoint: usize,
    link: LinkId,
}

/// An arrival that has to be handled after the endpoint's poll.
enum Later {
    Hello(Key, SocketAddr, Vec<u8>),
    /// A packet of a client that is still unproven.
    Met(Key, Vec<u8>),
    Opened(Key),
    Refused(Key, Ended),
    Gone(Key, Gone),
    Raw(Key, RawEvent),
}

/// Takes the server's answer. The link opens at once, since its first bytes may follow directly; the application is
/// told before it gets them.
fn on_answer(links: &mut Links, key: Key, carrier: Carrier, bytes: &[u8]) -> Later {
    match Answer::from_bytes(bytes) {
        Ok(Answer::Welcome) => {
            links.open(key, Link::new(links.now, carrier), None);
            Later::Opened(key)
        }
        Ok(Answer::Refused(refusal)) => Later::Refused(key, Ended::Refused(refusal)),
        Err(error) => Later::Refused(key, Ended::BadAnswer(error)),
    }
}

/// Endpoints and their links.
pub struct Hub {
    clock: Clock,
    endpoints: Vec<Box<dyn Endpoint>>,
    proofs: Option<ProofJournal>,
    links: Links,
    /// Our own connection attempts that are unanswered.
    calls: HashSet<Key>,
    unmet: Unmet,
    timers: BinaryHeap<Reverse<(Time, Key)>>,
    later: Vec<Later>,
    trouble: Option<NetemCarrier<Key>>,
    waker: Option<HubWaker>,
    buf: Vec<u8>,
}

impl Hub {
    /// A hub without endpoints. The proof journal checks first messages; a client needs none.
    pub fn new(clock: Clock, proofs: Option<ProofJournal>) -> Hub {
        Hub {
            clock,
            endpoints: Vec::new(),
            proofs,
            links: Links::default(),
            calls: HashSet::new(),
            unmet: Unmet::default(),
            timers: BinaryHeap::new(),
            later: Vec::new(),
            trouble: None,
            waker: None,
            buf: Vec::new(),
        }
    }

    /// Adds an endpoint. The key is that of its link if it is a client's.
    pub fn add(&mut self, endpoint: Box<dyn Endpoint>) -> Key {
        self.endpoints.push(endpoint);
        let key = Key { endpoint: self.endpoints.len() - 1, link: CALL };
        if self.proofs.is_none() {
            self.calls.insert(key);
        }
        key
    }

    /// When this waker is rung, calls the application as if its timer were due.
    pub fn set_waker(&mut self, waker: HubWaker) {
        self.waker = Some(waker);
    }

    /// Simulates a bad network on every link, both ways, from now on. First messages and answers bypass it.
    pub fn set_netem(&mut self, profile: Profile, seed: u64) {
        self.trouble = Some(NetemCarrier::new(profile, seed));
    }

    /// Gives access to the links while the hub does not run.
    pub fn with_links<T>(&mut self, reach: impl FnOnce(&mut Links) -> T) -> T {
        self.turn();
        reach(&mut self.links)
    }

    /// The counters of each endpoint, in the order they were added.
    pub fn endpoint_stats(&self) -> Vec<EndpointStats> {
        self.endpoints.iter().map(|endpoint| endpoint.stats()).collect()
    }

    /// Runs the application until it is done, or an endpoint fails for good.
    pub async fn run(&mut self, app: &mut impl App) -> io::Result<()> {
        let mut sleep = pin!(tokio::time::sleep(std::time::Duration::ZERO));
        let mut is_rung = false;
        loop {
            let now = self.turn();
            self.on_time(now, is_rung, app);
            self.settle(now, app);
            app.settled(now);
            let spent_us = self.clock.now().micros_since(now).max(LEAST_LISTENING_US);
            if app.is_done() {
                self.finish().await;
                return Ok(());
            }
            // Also when there is nothing to wait for: an expired timer would fire again at once.
            let at = self.wake_at(app).unwrap_or(NEVER);
            sleep.as_mut().reset(self.clock.instant(at).into());
            poll_fn(|cx| {
                is_rung = self.waker.as_ref().is_some_and(|waker| waker.poll(cx).is_ready());
                match self.poll_endpoints(cx) {
                    Poll::Pending if is_rung => Poll::Ready(Ok(())),
                    Poll::Pending => sleep.as_mut().poll(cx).map(Ok),
                    ready => ready,
                }
            })
            .await?;
            let now = self.turn();
            self.settle(now, app);
            self.listen_until(now.plus_micros(spent_us), is_rung, app).await?;
        }
    }

    /// Reads further arrivals before timers are handled, for as long as the last handling took: an overloaded
    /// application then spends half its time reading, and does not answer stale messages.
    async fn listen_until(&mut self, until: Time, is_rung: bool, app: &mut impl App) -> io::Result<()> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut runtime_turns = 0;
        loop {
            let now = self.turn();
            let is_due = is_rung || self.wake_at(app).is_some_and(|at| at <= now);
            if !is_due || now >= until {
                return Ok(());
            }
            match self.poll_endpoints(&mut cx) {
                Poll::Ready(result) => {
                    result?;
                    self.settle(now, app);
                }
                // While the application was busy, the runtime has not polled the sockets.
                Poll::Pending if runtime_turns < RUNTIME_TURNS => {
                    runtime_turns += 1;
                    tokio::task::yield_now().await;
                }
                Poll::Pending => return Ok(()),
            }
        }
    }

    /// Waits until the final bytes of ended links are out, up to a limit.
    async fn finish(&mut self) {
        let finished = poll_fn(|cx| {
            let pending = self
                .endpoints
                .iter_mut()
                .filter_map(|endpoint| endpoint.poll_finished(cx).is_pending().then_some(()));
            if pending.count() > 0 { Poll::Pending } else { Poll::Ready(()) }
        });
        let _ = tokio::time::timeout(LAST_WORDS, finished).await;
    }

    fn turn(&mut self) -> Time {
        self.links.now = self.clock.now();
        self.links.now
    }

    /// Reads arrivals. Ready if there is anything to settle.
    fn poll_endpoints(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let now = self.clock.now();
        self.links.now = now;
        let Hub { endpoints, links, later, trouble, calls, unmet, .. } = self;
        let mut ready = Poll::Pending;
        for (index, endpoint) in endpoints.iter_mut().enumerate() {
            let key = |link| Key { endpoint: index, link };
            let carrier = endpoint.carrier();
            let polled = endpoint.poll(cx, now, &mut |arrival| match (arrival, &mut *trouble) {
                (Arrival::Datagram { link, bytes }, _) if unmet.contains(key(link)) => {
                    later.push(Later::Met(key(link), bytes.to_vec()));
                }
                (Arrival::Datagram { link, bytes }, None) => links.handle(key(link), Input::Datagram(bytes)),
                (Arrival::Stream { link, lane, bytes }, None) => {
                    links.handle(key(link), Input::Stream(lane, bytes));
                }
                (Arrival::Datagrams { link, carried }, _) => {
                    links.handle(key(link), Input::Datagrams(carried));
                }
                (Arrival::Datagram { link, bytes }, Some(trouble)) => {
                    trouble.incoming(now, key(link), Way::of_datagram(carrier), bytes);
                }
                (Arrival::Stream { link, lane, bytes }, Some(trouble)) => {
                    trouble.incoming(now, key(link), Way::Stream(lane), bytes);
                }
                (Arrival::Hello { link, from, bytes }, _) => {
                    later.push(Later::Hello(key(link), from, bytes.to_vec()));
                }
                (Arrival::Answer { link, bytes }, _) => {
                    calls.remove(&key(link));
                    later.push(on_answer(links, key(link), carrier, bytes));
                }
                (Arrival::Gone { link, why }, _) => later.push(Later::Gone(key(link), why)),
                (Arrival::Raw { link, event }, _) => later.push(Later::Raw(key(link), event)),
            });
            if let Poll::Ready(result) = polled {
                result?;
                ready = Poll::Ready(Ok(()));
            } else if !later.is_empty() || !links.dirty.is_empty() {
                ready = Poll::Ready(Ok(()));
            }
        }
        // An endpoint that is pending may still have passed on arrivals.
        if later.is_empty() && links.dirty.is_empty() { ready } else { Poll::Ready(Ok(())) }
    }

    /// Handles due timers. The application is called too if its waker was rung.
    fn on_time(&mut self, now: Time, is_rung: bool, app: &mut impl App) {
        while let Some(Reverse((at, key))) = self.timers.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.timers.pop();
            let Some(entry) = self.links.entries.get_mut(&key).filter(|entry| entry.timer_at == Some(at))
            else {
                continue;
            };
            entry.timer_at = None;
            if entry.wake_at <= now {
                self.links.handle(key, Input::Timeout);
            } else {
                self.set_timer(key);
            }
        }
        self.give_up_unmet(now);
        self.poll_trouble(now);
        if is_rung || app.wake_at().is_some_and(|at| at <= now) {
            app.handle(now, &mut self.links, Event::Timeout);
        }
    }

    /// Delivers packets that the simulated network has delayed.
    fn poll_trouble(&mut self, now: Time) {
        let Some(trouble) = &mut self.trouble else { return };
        while let Some((key, way)) = trouble.poll_incoming(now, &mut self.buf) {
            match way {
                Way::Datagram | Way::Socket => self.links.handle(key, Input::Datagram(&self.buf)),
                Way::Stream(lane) => self.links.handle(key, Input::Stream(lane, &self.buf)),
            }
        }
        self.poll_outgoing(now);
    }

    /// Sends packets that the simulated network has delayed.
    fn poll_outgoing(&mut self, now: Time) {
        let mut buf = std::mem::take(&mut self.buf);
        while let Some((key, way)) =
            self.trouble.as_mut().and_then(|trouble| trouble.poll_outgoing(now, &mut buf))
        {
            self.send(key, way, &buf);
        }
        self.buf = buf;
    }

    /// Handles everything that is waiting, until nothing is.
    fn settle(&mut self, now: Time, app: &mut impl App) {
        for later in std::mem::take(&mut self.later) {
            match later {
                Later::Hello(key, from, bytes) => self.on_hello(now, key, from, &bytes, app),
                Later::Met(key, bytes) => self.on_met(now, key, &bytes, app),
                Later::Opened(key) => app.handle(now, &mut self.links, Event::Opened(key)),
                Later::Refused(key, ended) => {
                    self.endpoints[key.endpoint].drop_link(key.link);
                    app.handle(now, &mut self.links, Event::Ended(key, &ended, None));
                }
                Later::Gone(key, why) => self.on_gone(now, key, why, app),
                Later::Raw(key, event) => self.on_raw(now, key, event, app),
            }
        }
        loop {
            while let Some(key) = self.links.dirty.pop() {
                self.drain(now, key, app);
            }
            let Some(key) = self.links.over.pop() else { break };
            self.enforce(key, app);
        }
        self.poll_trouble(now);
        self.speak(now, app);
        self.endpoints.iter_mut().for_each(|endpoint| endpoint.flush());
    }

    fn on_raw(&mut self, now: Time, key: Key, event: RawEvent, app: &mut impl App) {
        if matches!(event, RawEvent::Began { .. }) {
            self.links.raw_sockets.insert(key, true);
        }
        // The peer of a closed raw WebSocket may not have noticed.
        if self.links.raw_sockets.get(&key).is_some_and(|is_heard| *is_heard) {
            app.on_raw(now, &mut self.links, key, event);
        }
    }

    /// Carries out the application's raw WebSocket commands.
    fn speak(&mut self, now: Time, app: &mut impl App) {
        while !self.links.said.is_empty() {
            for (key, words) in std::mem::take(&mut self.links.said) {
                if !self.links.raw_sockets.contains_key(&key) {
                    continue;
                }
                let endpoint = &mut self.endpoints[key.endpoint];
                match words {
                    Some(words) => endpoint.say(key.link, words),
                    None => {
                        endpoint.drop_link(key.link);
                        self.links.raw_sockets.remove(&key);
                        app.on_raw(now, &mut self.links, key, RawEvent::Ended(Gone::Closed));
                    }
                }
            }
        }
    }

    fn on_hello(&mut self, now: Time, key: Key, from: SocketAddr, bytes: &[u8], app: &mut impl App) {
        let endpoint = &mut self.endpoints[key.endpoint];
        let Some(proofs) = &self.proofs else { return endpoint.drop_link(key.link) };
        let of = network(from.ip());
        let source = Source { network: of, is_proven: endpoint.are_sources_proven() };
        let verdict = match proofs.knock(source, bytes) {
            HelloOutcome::Silent(_) => return endpoint.drop_link(key.link),
            HelloOutcome::Refused(refusal) => Err(refusal),
            HelloOutcome::Proven(proven) => app.admit(now, key, from, &proven).map(|()| proven),
        };
        let (answer, proven) = match verdict {
            Ok(proven) => (Answer::Welcome, Some(proven)),
            Err(refusal) => (Answer::Refused(refusal), None),
        };
        endpoint.answer(key.link, &answer.to_bytes(), proven.is_some());
        if let Some(proven) = proven {
            match proven.unspent {
                Some(proof) => self.unmet.insert(now, key, Client { from, proven, proof }),
                None => self.enter(now, key, from, &proven, app),
            }
        }
        self.give_up_unmet(now);
    }

    /// A client has proven its source address: it is admitted if its proof is still good.
    fn on_met(&mut self, now: Time, key: Key, bytes: &[u8], app: &mut impl App) {
        if let (Some(Client { from, proven, proof }), Some(proofs)) = (self.unmet.take(key), &self.proofs) {
            if proofs.spend(Source::proven(network(from.ip())), proof).is_err() {
                return self.endpoints[key.endpoint].drop_link(key.link);
            }
            self.enter(now, key, from, &proven, app);
        }
        match &mut self.trouble {
            Some(trouble) => trouble.incoming(now, key, Way::Datagram, bytes),
            None => self.links.handle(key, Input::Datagram(bytes)),
        }
    }

    fn enter(&mut self, now: Time, key: Key, from: SocketAddr, proven: &Proven, app: &mut impl App) {
        let link = Link::new(now, self.endpoints[key.endpoint].carrier());
        self.links.open(key, link, Some(network(from.ip())));
        match app.enter(now, key, from, proven) {
            Ok(()) => app.handle(now, &mut self.links, Event::Opened(key)),
            Err(refusal) => self.links.close(key, THROWN_OUT, &refusal.to_string()),
        }
    }

    fn give_up_unmet(&mut self, now: Time) {
        while let Some(key) = self.unmet.poll_given_up(now) {
            self.endpoints[key.endpoint].drop_link(key.link);
        }
    }

    fn on_gone(&mut self, now: Time, key: Key, why: Gone, app: &mut impl App) {
        if self.links.raw_sockets.remove(&key).is_some() {
            return app.on_raw(now, &mut self.links, key, RawEvent::Ended(why));
        }
        // Data that arrived before the end counts, above all a close.
        self.drain(now, key, app);
        let entry = self.links.remove(key);
        // Without a link or a connection attempt it has ended before, or was never admitted.
        if entry.is_some() || self.calls.remove(&key) {
            let stats = entry.map(|entry| entry.link.stats());
            app.handle(now, &mut self.links, Event::Ended(key, &Ended::Carrier(why), stats));
        }
    }

    /// Carries out the outputs of a link.
    fn drain(&mut self, now: Time, key: Key, app: &mut impl App) {
        let mut buf = std::mem::take(&mut self.buf);
        while let Some(entry) = self.links.entries.get_mut(&key) {
            entry.dirty = false;
            match entry.link.poll_output(&mut buf) {
                Output::Datagram => {
                    let way = Way::of_datagram(self.endpoints[key.endpoint].carrier());
                    self.transmit(now, key, way, &buf);
                }
                Output::Stream(lane) => self.transmit(now, key, Way::Stream(lane), &buf),
                Output::Message(channel) => {
                    app.handle(now, &mut self.links, Event::Message(key, channel, &buf));
                    if channel.delivery() == Delivery::Ordered {
                        self.look_whether_joined(key, app);
                    }
                }
                Output::Closed(closed) => {
                    let stats = self.links.remove(key).map(|entry| entry.link.stats());
                    // Final packets must not be delayed until the carrier is gone.
                    self.poll_outgoing(NEVER);
                    self.endpoints[key.endpoint].drop_link(key.link);
                    app.handle(now, &mut self.links, Event::Ended(key, &Ended::Link(closed), stats));
                }
                Output::WakeAt(at) => {
                    entry.wake_at = at;
                    self.set_timer(key);
                    self.links.weigh(key);
                    break;
                }
                Output::Done => break,
            }
        }
        self.buf = buf;
    }

    fn transmit(&mut self, now: Time, key: Key, way: Way, bytes: &[u8]) {
        match &mut self.trouble {
            Some(trouble) => trouble.outgoing(now, key, way, bytes),
            None => self.send(key, way, bytes),
        }
    }

    fn send(&mut self, key: Key, way: Way, bytes: &[u8]) {
        let endpoint = &mut self.endpoints[key.endpoint];
        match way {
            Way::Datagram | Way::Socket => endpoint.send_datagram(key.link, bytes),
            Way::Stream(lane) => endpoint.send_stream(key.link, lane, bytes),
        }
    }

    fn set_timer(&mut self, key: Key) {
        let Some(entry) = self.links.entries.get_mut(&key) else { return };
        if entry.timer_at.is_none_or(|at| entry.wake_at < at) {
            entry.timer_at = Some(entry.wake_at);
            self.timers.push(Reverse((entry.wake_at, key)));
        }
    }

    fn wake_at(&self, app: &impl App) -> Option<Time> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let trouble = self.trouble.as_ref().and_then(NetemCarrier::next_at);
        let endpoints = self.endpoints.iter().filter_map(|endpoint| endpoint.wake_at());
        endpoints.chain(timer).chain(trouble).chain(app.wake_at()).min()
    }
}
