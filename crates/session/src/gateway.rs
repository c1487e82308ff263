//! A gateway: lists sessions to clients and sends clients to hosts. It decides nothing about a session, and its memory
//! is disposable: after a crash it hears of every session from the hosts. [`Gateway`] ↔ [`Host`](crate::host::Host). A client
//! that it sends to a host is taken in there by `session/joining.rs`.
//!
//! After each [`Gateway::handle`], the driver calls [`Gateway::poll_output`] until it returns [`Output::WakeAt`].

mod listing;
mod moving;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use sametick_sim::Time;
use sametick_wire::identity::PlayerId;

use crate::catalog::{Catalog, Health};
use crate::id::{HostId, Incarnation, Key, SessionId, Source};
use crate::lobby::{Ask, Reply};
use crate::message::Refusal;
use crate::placing::{FromHost, Granted, ToHost};
use crate::settings::Settings;
use crate::still::{LOOK_US, still_us};
use listing::ListSubscriber;
use moving::Move;
use sametick_wire::rate_limit::{RateLimit, TokenBuckets};

/// A host that has not answered is asked again after this time.
pub const AGAIN_US: u64 = 1_000_000;

/// A client without an answer is refused after this time.
pub const GIVE_UP_US: u64 = 8_000_000;

/// A gateway that has just started waits this long to hear of hosts: more than two beats.
pub const HEARING_US: u64 = 5_000_000;

/// The most sessions in one list.
pub const MAX_LISTED: usize = 100;

/// The shortest time between two updates to a client that follows a list.
pub const TELL_EVERY_US: u64 = 500_000;

/// The most requests that wait for a host's answer at once.
pub const MAX_PENDING: usize = 4_096;

/// The most of them for one client.
const MAX_PENDING_EACH: usize = 4;

/// The most clients that follow a list.
pub const MAX_FOLLOWERS: usize = 10_000;

/// The rate limit for creating sessions, for each source.
pub const CREATIONS: RateLimit = RateLimit::every_us(3_000_000, 20);

/// The most sources with a rate limiter of their own.
const MAX_SOURCES: usize = 4_096;

/// Configuration of a gateway.
#[derive(Clone, Copy, Debug)]
pub struct GatewayConfig {
    /// Differs in each run of the gateway, so that late answers to earlier runs are ignored.
    pub run: u32,
    /// The driver starts more hosts where there are [too few](Gateway::wanting): a request for a session waits for
    /// that.
    pub grows: bool,
    /// The rate limit for creating sessions, for each source.
    pub creations: RateLimit,
    /// The source without this limit: this machine itself.
    pub exempt: Option<Source>,
}

impl Default for GatewayConfig {
    fn default() -> GatewayConfig {
        GatewayConfig { run: 0, grows: false, creations: CREATIONS, exempt: None }
    }
}

/// A client's connection, as the driver names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// What happens to a gateway.
#[derive(Clone, Debug)]
pub enum Input {
    /// A client asks for something.
    Ask(Asking),
    /// A client's connection has ended.
    Gone(ClientId),
    /// A message from a host.
    Host(HostId, FromHost),
    /// The process is shutting down: no new sessions.
    Drain,
    /// The time of `WakeAt` has come.
    Timeout,
}

/// A client's request.
#[derive(Clone, Debug)]
pub struct Asking {
    /// The connection.
    pub client: ClientId,
    /// The client's own number for the request.
    pub seq: u64,
    /// The player; the driver has verified it.
    pub player: PlayerId,
    /// The source of the connection, for rate limits.
    pub source: Source,
    /// The request.
    pub ask: Ask,
}

/// What a gateway asks its driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Answer a client; without a number it is an update of the list that it follows.
    Reply(ClientId, Option<u64>, Reply),
    /// Send a message to a host.
    Host(HostId, ToHost),
    /// A host is lost, and with it these sessions: players who ask have to be told.
    Lost(HostId, Vec<SessionId>),
    /// Nothing to do before this time.
    WakeAt(Option<Time>),
}

/// A request that waits for a host.
struct Pending {
    client: ClientId,
    seq: u64,
    what: ToHost,
    /// The settings of the new session, if it asks for one.
    settings: Option<Settings>,
    /// The host that is asked.
    host: Option<HostId>,
    /// The hosts that had no room.
    refused: BTreeSet<HostId>,
    again_at: Time,
    until: Time,
}

impl Pending {
    /// The answer to the client if no host can answer.
    fn refusal(&self) -> Refusal {
        if self.settings.is_some() { Refusal::NoHost } else { Refusal::NotFound }
    }
}

/// A gateway.
pub struct Gateway<C> {
    catalog: C,
    now: Time,
    born_at: Time,
    pending: BTreeMap<u64, Pending>,
    moves: BTreeMap<(SessionId, Incarnation), Move>,
    followers: BTreeMap<ClientId, ListSubscriber>,
    tell_at: Time,
    next: u64,
    is_draining: bool,
    grows: bool,
    creations: TokenBuckets<Source>,
    exempt: Option<Source>,
    outputs: VecDeque<Output>,
}

impl<C: Catalog> Gateway<C> {
    /// A gateway with this catalogue.
    pub fn new(now: Time, catalog: C, config: GatewayConfig) -> Gateway<C> {
        Gateway {
            catalog,
            now,
            born_at: now,
            pending: BTreeMap::new(),
            moves: BTreeMap::new(),
            followers: BTreeMap::new(),
            tell_at: now,
            next: u64::from(config.run) << 32,
            is_draining: false,
            grows: config.grows,
            creations: TokenBuckets::new(config.creations, MAX_SOURCES),
            exempt: config.exempt,
            outputs: VecDeque::new(),
        }
    }

    /// The number of requests for a session that no host has room for.
    pub fn wanting(&self) -> usize {
        let is_new = |pending: &&Pending| pending.settings.is_some() && pending.host.is_none();
        self.pending.values().filter(is_new).count()
    }

    /// The catalogue.
    pub fn catalog(&self) -> &C {
        &self.catalog
    }

    /// The catalogue, at shutdown.
    pub fn into_catalog(self) -> C {
        self.catalog
    }

    /// The number of requests that wait for an answer.
    pub fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Handles an event.
    pub fn handle(&mut self, now: Time, input: Input) {
        if let Some(us) = still_us(self.now, now) {
            self.catalog.stood_still(us);
        }
        self.now = self.now.max(now);
        match input {
            Input::Ask(asking) => self.ask(asking),
            Input::Gone(client) => {
                self.pending.retain(|_, pending| pending.client != client);
                self.followers.remove(&client);
            }
            Input::Host(host, said) => self.heard(host, said),
            Input::Drain => self.is_draining = true,
            Input::Timeout => {}
        }
        self.pass_time();
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Output {
        self.outputs.pop_front().unwrap_or_else(|| Output::WakeAt(self.wake_at()))
    }

    fn ask(&mut self, asking: Asking) {
        let Asking { client, seq, player, source, ask } = asking;
        let number = self.next + 1;
        let (what, settings) = match ask {
            Ask::List { filter, follow } => return self.list(client, seq, filter, follow),
            Ask::Find { session } => return self.find(client, seq, session),
            Ask::Create { .. } if self.is_draining => return self.refuse(client, seq, Refusal::Stopping),
            Ask::Create { .. } if !self.may_create(source) => {
                return self.refuse(client, seq, Refusal::TooFast);
            }
            Ask::Create { key, name, settings, password } => {
                let place =
                    ToHost::Place { key: key.of(player), player, name, settings: settings.clone(), password };
                (place, Some(settings))
            }
            Ask::Join { session, name, password, seat } => {
                (ToHost::Reserve { ask: number, session, player, name, password, seat, source }, None)
            }
        };
        let own = self.pending.values().filter(|pending| pending.client == client).count();
        if self.pending.len() >= MAX_PENDING || own >= MAX_PENDING_EACH {
            return self.refuse(client, seq, Refusal::Busy);
        }
        self.next = number;
        let until = self.now.plus_micros(GIVE_UP_US);
        let (host, refused, again_at) = (None, BTreeSet::new(), self.now);
        let pending = Pending { client, seq, what, settings, host, refused, again_at, until };
        self.pending.insert(number, pending);
        self.send(number);
    }

    fn may_create(&mut self, source: Source) -> bool {
        self.exempt == Some(source) || self.creations.try_take(self.now, source)
    }

    fn refuse(&mut self, client: ClientId, seq: u64, refusal: Refusal) {
        self.outputs.push_back(Output::Reply(client, Some(seq), Reply::Refused(refusal)));
    }

    /// Asks the host, or finds one to ask.
    fn send(&mut self, number: u64) {
        let Some(pending) = self.pending.get(&number) else { return };
        let host = match &pending.what {
            ToHost::Place { key, .. } => pending.host.or_else(|| self.host_for(*key, pending)),
            ToHost::Reserve { session, .. } => self.owner(*session),
            _ => None,
        };
        let is_hearing = self.is_hearing();
        let Some(pending) = self.pending.get_mut(&number) else { return };
        pending.again_at = self.now.plus_micros(AGAIN_US);
        pending.host = host;
        match host {
            Some(host) => {
                let is_join = pending.settings.is_none();
                self.outputs.push_back(Output::Host(host, pending.what.clone()));
                // The host is asked nevertheless: if it is back, the next request gets a ticket.
                if is_join && self.health(host) == Some(Health::Lost) {
                    self.finish(number, Reply::Refused(Refusal::Lost));
                }
            }
            // Known hosts will be heard of soon, and a host that had no room may have some when it is asked again.
            None if is_hearing || self.grows && pending.settings.is_some() => pending.refused.clear(),
            None => {
                let refusal = pending.refusal();
                self.finish(number, Reply::Refused(refusal));
            }
        }
    }

    /// The host that owns a session: its id names it, whatever the catalogue has.
    fn owner(&self, session: SessionId) -> Option<HostId> {
        let state = self.catalog.host(self.now, session.host)?;
        // A host that has shut down in order has reported all sessions of its next incarnation.
        let is_over = state.has_ended && !self.catalog.sessions_of(session.host).contains(&session);
        (!is_over).then_some(session.host)
    }

    /// The host that has the session already, or the one with the most room.
    fn host_for(&self, key: Key, pending: &Pending) -> Option<HostId> {
        let made = self.catalog.made_by(key).map(|session| session.host);
        let settings = pending.settings.as_ref()?;
        let fresh = || self.catalog.candidates(self.now, settings);
        made.or_else(|| fresh().into_iter().find(|host| !pending.refused.contains(host)))
    }

    fn heard(&mut self, host: HostId, said: FromHost) {
        match said {
            FromHost::Beat(beat) => {
                self.catalog.beat(self.now, host, &beat);
                let unasked = self.pending.iter().filter(|(_, pending)| pending.host.is_none());
                for number in unasked.map(|(number, _)| *number).collect::<Vec<_>>() {
                    self.send(number);
                }
            }
            FromHost::Bye(life) => {
                self.catalog.bye(self.now, host, life);
                self.place_elsewhere(host);
            }
            FromHost::Placed { key, answer } => self.placed(host, key, &answer),
            FromHost::Reserved { ask, answer, exists } => self.reserved(host, ask, answer, exists),
            FromHost::Offer { session, life, settings, stored } if session.host == host => {
                self.offered(session, life, &settings, stored);
            }
            FromHost::Offer { .. } => {}
            FromHost::Adopted { from, life, answer } => self.adopted(host, from, life, answer),
        }
    }

    fn placed(&mut self, host: HostId, key: Key, answer: &Result<Granted, Refusal>) {
        let is_it = |pending: &Pending| {
            pending.host == Some(host)
                && matches!(&pending.what, ToHost::Place { key: asked, .. } if *asked == key)
        };
        let numbers: Vec<u64> =
            self.pending.iter().filter(|(_, pending)| is_it(pending)).map(|(number, _)| *number).collect();
        if let Ok(granted) = answer {
            if granted.standing.summary.session.host != host {
                // The session is not this host's.
                return;
            }
            self.catalog.note(&granted.standing, granted.life, granted.beats);
        }
        for number in numbers {
            match answer {
                Ok(granted) => self.go(number, host, granted),
                Err(Refusal::NoHost | Refusal::Stopping | Refusal::Busy) => {
                    if let Some(pending) = self.pending.get_mut(&number) {
                        pending.refused.insert(host);
                        pending.host = None;
                    }
                    self.send_elsewhere(number);
                }
                Err(refusal) => self.finish(number, Reply::Refused(*refusal)),
            }
        }
    }

    /// A host has shut down and answers no more: its requests go to other hosts.
    fn place_elsewhere(&mut self, host: HostId) {
        let is_asked = |pending: &Pending| pending.host == Some(host) && pending.settings.is_some();
        let asked: Vec<u64> =
            self.pending.iter().filter(|(_, pending)| is_asked(pending)).map(|(number, _)| *number).collect();
        for number in asked {
            if let Some(pending) = self.pending.get_mut(&number) {
                pending.refused.insert(host);
                pending.host = None;
            }
            self.send_elsewhere(number);
        }
    }

    /// A host has no room: asks the next one, or refuses.
    fn send_elsewhere(&mut self, number: u64) {
        let Some(pending) = self.pending.get(&number) else { return };
        let ToHost::Place { key, .. } = &pending.what else { return };
        match self.host_for(*key, pending).filter(|host| !pending.refused.contains(host)) {
            Some(_) => self.send(number),
            None if self.grows => {}
            None => self.finish(number, Reply::Refused(Refusal::NoHost)),
        }
    }

    fn reserved(&mut self, host: HostId, ask: u64, answer: Result<Granted, Refusal>, exists: bool) {
        let Some(pending) = self.pending.get(&ask).filter(|pending| pending.host == Some(host)) else {
            return;
        };
        let ToHost::Reserve { session, .. } = pending.what else { return };
        if answer.as_ref().is_ok_and(|granted| granted.standing.summary.session != session) {
            return;
        }
        if !exists {
            // The catalogue was stale. The host is the authority.
            self.catalog.forget(session);
        }
        match answer {
            Ok(granted) => {
                self.catalog.note(&granted.standing, granted.life, granted.beats);
                self.go(ask, host, &granted);
            }
            Err(refusal) => self.finish(ask, Reply::Refused(refusal)),
        }
    }

    fn go(&mut self, number: u64, host: HostId, granted: &Granted) {
        let address = self.catalog.host(self.now, host).map(|state| state.address);
        let reply = match address {
            Some(address) => {
                let session = granted.standing.summary.session;
                Reply::Go { session, address, ticket: granted.ticket.clone() }
            }
            None => Reply::Refused(Refusal::Unavailable),
        };
        self.finish(number, reply);
    }

    fn finish(&mut self, number: u64, reply: Reply) {
        if let Some(pending) = self.pending.remove(&number) {
            self.outputs.push_back(Output::Reply(pending.client, Some(pending.seq), reply));
        }
    }

    fn pass_time(&mut self) {
        let now = self.now;
        for host in self.catalog.pass_time(now) {
            let sessions = self.catalog.sessions_of(host);
            let has_ended = self.catalog.host(now, host).is_some_and(|state| state.has_ended);
            // A host that shut down in order without sessions is not lost.
            if !has_ended || !sessions.is_empty() {
                self.outputs.push_back(Output::Lost(host, sessions));
            }
        }
        self.moves.retain(|_, entry| entry.until > now);
        let due: Vec<(u64, bool)> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.again_at <= now || pending.until <= now)
            .map(|(number, pending)| (*number, pending.until <= now))
            .collect();
        for (number, is_over) in due {
            if is_over {
                let asked = self.pending.get(&number);
                let refusal = asked.filter(|pending| pending.host.is_none()).map(Pending::refusal);
                self.finish(number, Reply::Refused(refusal.unwrap_or(Refusal::Unavailable)));
            } else {
                self.send(number);
            }
        }
        if self.tell_at <= now && self.has_news() {
            self.tell_followers();
        }
    }

    fn wake_at(&self) -> Option<Time> {
        let pending = self.pending.values().map(|pending| pending.again_at.min(pending.until));
        let tell = self.has_news().then_some(self.tell_at);
        let look = self.catalog.wake_at().map(|at| at.min(self.now.plus_micros(LOOK_US)));
        pending.chain(tell).chain(look).min()
    }

    /// The health of a host.
    pub fn health(&self, host: HostId) -> Option<Health> {
        self.catalog.host(self.now, host).map(|state| state.health)
    }
}
