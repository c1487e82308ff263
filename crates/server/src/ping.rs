//! Measures a link: a server that echoes every message, and a client that counts the echoes and times them.

use std::net::SocketAddr;

use postcard_schema::Schema;
use sametick_transport::clock::Clock;
use sametick_transport::dial::Locator;
use sametick_transport::hub::{App, Ended, Event, Hub, Key, Links};
use sametick_wire::access::{AccessKey, NO_ANSWER};
use sametick_wire::closing::{LEAVING, THROWN_OUT};
use sametick_wire::hello::{Hello, Identity, Intent, Proven, Refusal};
use sametick_wire::netem::Profile;
use sametick_wire::{Channel, LinkStats, Time};
use serde::{Deserialize, Serialize};

use crate::report::{Ms, Percentiles};

/// A ping, which is echoed unchanged.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
struct Ping {
    number: u32,
    padding: Vec<u8>,
}

impl Ping {
    /// A ping of at most `size` bytes, and of nearly as many.
    fn to_bytes(number: u32, size: usize) -> Vec<u8> {
        let padding = vec![0; size.saturating_sub(HEAD_LEN)];
        sametick_sim::to_canonical(&Ping { number, padding }).expect("numbers and bytes always serialise")
    }
}

/// The longest encodings of the number and of the length of the padding.
const HEAD_LEN: usize = 5 + 2;

/// The longest message the server echoes.
const MAX_ECHO: usize = 1_000;

/// After the last ping, the client waits for missing echoes for this many round trips and this long.
const PATIENCE_RTTS: u64 = 3;
const PATIENCE_US: u64 = 300_000;

/// The identity that both sides must share: no game takes part, so the build is that of `sim` alone.
pub fn identity() -> Identity {
    Identity { build: sametick_sim::BUILD, schema: sametick_sim::schema::hash::<Ping>() }
}

/// The server's side.
#[derive(Debug, Default)]
pub struct PingServer {
    stopping: bool,
    open: usize,
}

impl PingServer {
    /// Tells all clients, and stops when they have been told.
    pub fn stop(&mut self, links: &mut Links) {
        self.stopping = true;
        links.keys().into_iter().for_each(|key| links.close(key, LEAVING, "the server stops"));
    }
}

impl App for PingServer {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        if self.stopping {
            return Err(Refusal::Other("the server stops".into()));
        }
        if proven.hello.intent != Intent::Ping {
            return Err(Refusal::Other("this server only answers pings".into()));
        }
        identity().refusal(&proven.hello.identity).map_or(Ok(()), Err)
    }

    fn enter(&mut self, _: Time, _: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        tracing::info!(%from, name = proven.hello.name, "a client has come");
        Ok(())
    }

    fn handle(&mut self, _: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(_) => self.open += 1,
            Event::Message(key, channel @ (Channel::State | Channel::Input), bytes)
                if bytes.len() <= MAX_ECHO =>
            {
                // Unreliable: a message that cannot be sent now is lost, and the client counts it.
                let _ = links.send(key, channel, bytes);
            }
            Event::Message(key, ..) => {
                links.close(key, THROWN_OUT, "only short unreliable messages are sent back");
            }
            Event::Ended(_, why, _) => {
                self.open -= 1;
                tracing::info!(%why, "a client has gone");
            }
            Event::Timeout => {}
        }
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn is_done(&self) -> bool {
        self.stopping && self.open == 0
    }
}

/// What a client measures.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of pings.
    pub count: u32,
    /// Pings per second.
    pub rate: u32,
    /// The size of each, in bytes.
    pub size: usize,
    /// A simulated bad network in front of the link, and its seed.
    pub netem: Option<(Profile, u64)>,
}

/// The result of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct PingReport {
    /// The server's URL.
    pub url: String,
    /// The time from the first packet to the open link.
    pub handshake_us: u64,
    /// Pings sent.
    pub sent: u32,
    /// Pings that came back.
    pub received: u32,
    /// The share of lost pings, in percent.
    pub loss_percent: f64,
    /// The round trips of pings.
    pub rtt: Option<Percentiles>,
    /// The round-trip time that the link estimates.
    pub link_rtt_us: Option<u64>,
    /// The jitter that the link estimates.
    pub link_jitter_us: u64,
    /// Sent datagrams that were lost, as the link estimates it.
    pub packets_lost: u64,
    /// Datagrams sent; 0 on a WebSocket.
    pub packets_sent: u64,
    /// Bytes handed to the transport, including our headers.
    pub bytes_sent: u64,
    /// Bytes received from the transport.
    pub bytes_received: u64,
    /// The simulated bad network in front of the link, if any.
    pub netem: Option<String>,
}

impl std::fmt::Display for PingReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.url)?;
        writeln!(f, "  handshake  {}", Ms(self.handshake_us))?;
        match &self.rtt {
            Some(rtt) => writeln!(f, "  round trip {rtt}")?,
            None => writeln!(f, "  round trip -")?,
        }
        let link = self.link_rtt_us.map_or("-".into(), |rtt_us| Ms(rtt_us).to_string());
        writeln!(f, "  link       rtt {link}  jitter {}", Ms(self.link_jitter_us))?;
        let lost = self.sent - self.received;
        writeln!(f, "  loss       {lost} of {} pings ({:.1} %), both ways", self.sent, self.loss_percent)?;
        write!(f, "  bytes      {} sent, {} received", self.bytes_sent, self.bytes_received)?;
        self.netem.as_ref().map_or(Ok(()), |netem| write!(f, "\n  netem      {netem}"))
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum PingError {
    /// The server cannot be reached.
    #[error("{url}: {error}")]
    Dial {
        /// The URL.
        url: Locator,
        /// The error.
        error: std::io::Error,
    },
    /// The link never opened, or ended early.
    #[error("{url}: {}", explain(.ended))]
    Ended {
        /// The URL.
        url: Locator,
        /// How it ended.
        ended: Box<Ended>,
    },
}

fn explain(ended: &Ended) -> String {
    use sametick_transport::endpoint::Gone;
    match ended {
        Ended::Carrier(Gone::NoAnswer) => {
            format!("{NO_ANSWER} (see --secret-file)")
        }
        other => other.to_string(),
    }
}

/// The client's side.
struct PingClient {
    plan: Plan,
    started: Time,
    opened: Option<(Key, Time)>,
    sent: Vec<Time>,
    back: Vec<bool>,
    rtts_us: Vec<u64>,
    stats: LinkStats,
    closing: bool,
    ended: Option<Ended>,
}

impl PingClient {
    fn new(plan: Plan, started: Time) -> PingClient {
        PingClient {
            plan,
            started,
            opened: None,
            sent: Vec::new(),
            back: Vec::new(),
            rtts_us: Vec::new(),
            stats: LinkStats::default(),
            closing: false,
            ended: None,
        }
    }

    fn next_at(&self) -> Option<Time> {
        let (_, opened_at) = self.opened?;
        let sent = self.sent.len() as u64;
        if sent < u64::from(self.plan.count) {
            return Some(opened_at.plus_micros(sent * 1_000_000 / u64::from(self.plan.rate)));
        }
        let patience_us = self.rtts_us.iter().max().map_or(0, |rtt_us| PATIENCE_RTTS * rtt_us) + PATIENCE_US;
        self.sent.last().map(|last| last.plus_micros(patience_us))
    }

    fn on_time(&mut self, now: Time, links: &mut Links) {
        let Some((key, _)) = self.opened.filter(|_| !self.closing) else { return };
        if self.sent.len() == self.plan.count as usize {
            return self.finish(key, links);
        }
        let message = Ping::to_bytes(self.sent.len() as u32, self.plan.size);
        // A link that has ended reports that itself.
        let _ = links.send(key, Channel::State, &message);
        self.sent.push(now);
        self.back.push(false);
    }

    fn on_message(&mut self, now: Time, key: Key, links: &mut Links, bytes: &[u8]) {
        // A message that is not one of our pings is not counted.
        let Ok(Ping { number, .. }) = sametick_sim::from_canonical(bytes) else { return };
        let number = number as usize;
        let Some(back) = self.back.get_mut(number).filter(|back| !**back) else { return };
        *back = true;
        self.rtts_us.push(now.micros_since(self.sent[number]));
        if self.rtts_us.len() == self.plan.count as usize {
            self.finish(key, links);
        }
    }

    fn finish(&mut self, key: Key, links: &mut Links) {
        self.closing = true;
        self.stats = links.stats(key).unwrap_or_default();
        links.close(key, LEAVING, "done");
    }

    fn report(&self, url: &Locator) -> PingReport {
        let (sent, received) = (self.sent.len() as u32, self.rtts_us.len() as u32);
        let opened_at = self.opened.map_or(self.started, |(_, at)| at);
        PingReport {
            url: url.to_string(),
            handshake_us: opened_at.micros_since(self.started),
            sent,
            received,
            loss_percent: f64::from(sent - received) * 100.0 / f64::from(sent.max(1)),
            rtt: Percentiles::of(&self.rtts_us),
            link_rtt_us: self.stats.rtt_us,
            link_jitter_us: self.stats.jitter_us,
            packets_lost: self.stats.packets_lost,
            packets_sent: self.stats.packets_sent,
            bytes_sent: self.stats.bytes_sent,
            bytes_received: self.stats.bytes_received,
            netem: self.plan.netem.map(|(profile, _)| profile.to_string()),
        }
    }
}

impl App for PingClient {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        Err(Refusal::Other("this is a client".into()))
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => self.opened = Some((key, now)),
            Event::Message(key, Channel::State, bytes) => self.on_message(now, key, links, bytes),
            Event::Message(..) => {}
            Event::Ended(_, ended, _) => self.ended = Some(ended.clone()),
            Event::Timeout => self.on_time(now, links),
        }
    }

    fn wake_at(&self) -> Option<Time> {
        self.next_at().filter(|_| !self.closing)
    }

    fn is_done(&self) -> bool {
        self.ended.is_some()
    }
}

/// Pings a server and reports. Needs a single-threaded runtime.
pub async fn ping(url: &Locator, key: &AccessKey, plan: Plan) -> Result<PingReport, PingError> {
    let clock = Clock::start();
    let hello = Hello { identity: identity(), intent: Intent::Ping, name: "ping".into(), pass: None };
    let mut hub = Hub::new(clock, None);
    if let Some((profile, seed)) = plan.netem {
        hub.set_netem(profile, seed);
    }
    let mut client = PingClient::new(plan, clock.now());
    let dial = |error| PingError::Dial { url: url.clone(), error };
    hub.add(url.dial(clock.now(), key, &hello).await.map_err(dial)?);
    hub.run(&mut client).await.map_err(dial)?;
    match client.ended.take() {
        Some(ended) if !client.closing => Err(PingError::Ended { url: url.clone(), ended: Box::new(ended) }),
        _ => Ok(client.report(url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        assert_eq!(Ping::to_bytes(300, 10), [0xac, 2, 3, 0, 0, 0]);
        assert_eq!(Ping::to_bytes(0, 0), [0, 0]);
        let read: Ping = sametick_sim::from_canonical(&[0xac, 2, 3, 0, 0, 0]).unwrap();
        assert_eq!(read, Ping { number: 300, padding: vec![0; 3] });
    }

    #[test]
    fn a_ping_is_never_longer_than_asked_for() {
        for size in [8, 32, 200, MAX_ECHO] {
            for number in [0, 1_000_000] {
                let len = Ping::to_bytes(number, size).len();
                assert!(len <= size && len + 6 >= size, "{len} of {size}");
            }
        }
    }
}
