//! Headless players: real links, real peers, no screen. They play, and compare what they ended up with.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use sametick_lockstep::diagnostics::{Diagnostics, Level, Reading};
use sametick_lockstep::message::Way;
use sametick_lockstep::peer::{Input, JoinAs, Output, Peer, Status};
use sametick_pong::{Pong, Setup, autopilot};
use sametick_sim::diff::differences;
use sametick_sim::{Game, Seat, StateHash, Tick, from_canonical, to_canonical};
use sametick_transport::clock::Clock;
use sametick_transport::dial::Locator;
use sametick_transport::hub::{App, Ended, Event, Hub, Key, Links};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Hello, Identity, Intent, Proven, Refusal};
use sametick_wire::netem::Profile;
use sametick_wire::{LinkStats, Time};
use serde::Serialize;

use crate::trace::{Trace, Whose};

/// How many confirmed ticks back players compare their states.
const COMPARED: usize = 120;

/// What bots should do.
#[derive(Clone, Debug)]
pub struct BotPlan {
    /// The session they meet in.
    pub session: String,
    /// How many.
    pub count: u32,
    /// For how long.
    pub seconds: u64,
    /// A bad network in front of each, and its seed.
    pub netem: Option<(Profile, u64)>,
    /// What the session begins with, if it is not running.
    pub setup: Setup,
    /// Every message goes into this file, if any.
    pub trace: Option<PathBuf>,
    /// After this tick a bit of the first bot's state is flipped: a test of what happens then.
    pub flip: Option<Tick>,
}

/// What one bot ended up with.
#[derive(Clone, Debug, Serialize)]
pub struct BotReport {
    /// Where it sat.
    pub seat: Option<u16>,
    /// The last tick it knows for sure.
    pub tick: u32,
    /// The hash of its state then.
    pub hash: String,
    /// Its inputs that missed their tick.
    pub omissions: u32,
    /// Guesses that were wrong.
    pub rollbacks: u64,
    /// Ticks simulated again.
    pub resimulated: u64,
    /// How often its state was wrong and had to be replaced.
    pub resyncs: u32,
    /// As the link estimates it.
    pub rtt_us: Option<u64>,
    /// Bytes taken from the carrier.
    pub bytes_received: u64,
    /// Bytes given to it.
    pub bytes_sent: u64,
    /// How its last second was, in a sentence.
    pub verdict: &'static str,
    /// The same in figures.
    pub diagnostics: Diagnostics,
    /// Each figure with what is normal and what it means.
    pub readings: [Reading; 7],
}

/// What all of them ended up with.
#[derive(Clone, Debug, Serialize)]
pub struct BotsReport {
    /// The relay.
    pub url: String,
    /// Whether no two of them had different states at the same tick.
    pub agree: bool,
    /// How many pairs of states were compared.
    pub compared: usize,
    /// Each bot.
    pub bots: Vec<BotReport>,
}

impl std::fmt::Display for BotsReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.url)?;
        writeln!(f, "  seat    tick  hash              omissions  rollbacks      rtt  bytes in  bytes out")?;
        for bot in &self.bots {
            let seat = bot.seat.map_or("-".into(), |seat| seat.to_string());
            let rtt = bot.rtt_us.map_or("-".into(), |rtt_us| crate::report::Ms(rtt_us).to_string());
            writeln!(
                f,
                "  {seat:>4} {:>7}  {}  {:>9}  {:>9} {rtt:>8}  {:>8}  {:>9}",
                bot.tick, bot.hash, bot.omissions, bot.rollbacks, bot.bytes_received, bot.bytes_sent
            )?;
        }
        for bot in &self.bots {
            let seat = bot.seat.map_or("-".into(), |seat| seat.to_string());
            writeln!(f, "  seat {seat}: {}", bot.verdict)?;
            for reading in bot.readings.iter().filter(|reading| reading.level == Level::Concerning) {
                writeln!(f, "    {reading}")?;
            }
        }
        let verdict = if self.agree { "all agree" } else { "THEY DISAGREE" };
        write!(f, "  {verdict} ({} states compared)", self.compared)
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum BotError {
    /// The relay cannot be called.
    #[error("{url}: {error}")]
    Dial {
        /// Which.
        url: Locator,
        /// Why not.
        error: std::io::Error,
    },
    /// The message trace cannot be written.
    #[error("cannot write the message trace to {}: {error}", path.display())]
    Trace {
        /// Where.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A bot's link ended early.
    #[error("{url}: {ended}")]
    Ended {
        /// Which.
        url: Locator,
        /// Why.
        ended: Box<Ended>,
    },
    /// The session turned a bot down.
    #[error("{url}: {why}")]
    Refused {
        /// Which.
        url: Locator,
        /// Why.
        why: String,
    },
}

struct Bot {
    peer: Peer<Pong>,
    wake_at: Option<Time>,
    hashes: BTreeMap<Tick, StateHash>,
    resyncs: u32,
    stats: LinkStats,
}

struct Bots {
    plan: BotPlan,
    bots: BTreeMap<Key, Bot>,
    /// Set when all have come.
    end_at: Option<Time>,
    closing: bool,
    ended: usize,
    failed: Option<Ended>,
    refused: Option<String>,
    buf: Vec<u8>,
    trace: Option<Trace>,
}

impl Bots {
    fn open(&mut self, now: Time, key: Key, links: &Links) {
        let name = format!("bot {}", self.bots.len() + 1);
        let Setup { seed, players, .. } = self.plan.setup;
        let commit = crate::COMMIT.into();
        let join = JoinAs {
            setup: self.plan.setup,
            seed,
            seats: players.into(),
            wait_for: self.plan.count as u16,
            name,
            commit,
            watch: false,
            listed: true,
        };
        let stats = links.stats(key).unwrap_or_default();
        let peer = Peer::new(now, &join, stats.into());
        self.bots.insert(key, Bot { peer, wake_at: Some(now), hashes: BTreeMap::new(), resyncs: 0, stats });
        if self.bots.len() == self.plan.count as usize {
            self.end_at = Some(now.plus_micros(self.plan.seconds * 1_000_000));
        }
    }

    fn on_message(
        &mut self,
        now: Time,
        key: Key,
        links: &mut Links,
        channel: sametick_wire::Channel,
        bytes: &[u8],
    ) {
        let Some(bot) = self.bots.get_mut(&key) else { return };
        if let Some(trace) = &mut self.trace {
            trace.message(bot.whose(&self.plan.session), Way::ToPeer, false, channel, bytes);
        }
        if bot.peer.handle(now, Input::Message(channel, bytes)).is_err() {
            links.close(key, 1, "this is not the lockstep protocol");
        }
        if self.plan.flip.is_some_and(|tick| bot.peer.confirmed().is_some_and(|(now, _)| now >= tick))
            && bot.peer.seat() == Some(Seat(0))
        {
            self.plan.flip = None;
            bot.flip();
        }
        bot.note();
        if let Status::Refused(why) = bot.peer.status() {
            self.refused = Some(why.clone());
        }
        self.drain(now, key, links);
    }

    fn drain(&mut self, now: Time, key: Key, links: &mut Links) {
        let Some(bot) = self.bots.get_mut(&key) else { return };
        bot.wake_at = loop {
            match bot.peer.poll_output(&mut self.buf) {
                Output::Send(channel) => {
                    if let Some(trace) = &mut self.trace {
                        trace.message(bot.whose(&self.plan.session), Way::ToRelay, true, channel, &self.buf);
                    }
                    // A link that has ended says so itself.
                    let _ = links.send(key, channel, &self.buf);
                }
                Output::WantInput(_) => {
                    let played = bot.peer.shown().zip(bot.peer.seat());
                    let input = played.map(|((_, pong), seat)| autopilot(pong, seat)).unwrap_or_default();
                    if bot.peer.handle(now, Input::Local(input)).is_err() {
                        break None;
                    }
                }
                Output::WantPath => {
                    let path = links.stats(key).unwrap_or_default().into();
                    if bot.peer.handle(now, Input::Path(path)).is_err() {
                        break None;
                    }
                }
                Output::WakeAt(at) => break Some(at),
                Output::Wait => break None,
            }
        };
    }

    fn on_time(&mut self, now: Time, links: &mut Links) {
        if self.end_at.is_some_and(|at| at <= now) && !self.closing {
            self.closing = true;
            for (key, bot) in &mut self.bots {
                bot.stats = links.stats(*key).unwrap_or_default();
                links.close(*key, 0, "done");
            }
        }
        let due: Vec<Key> = self
            .bots
            .iter()
            .filter(|(_, bot)| bot.wake_at.is_some_and(|at| at <= now))
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            if let Some(bot) = self.bots.get_mut(&key) {
                // A time-out is never malformed.
                let _ = bot.peer.handle(now, Input::Timeout);
            }
            self.drain(now, key, links);
        }
    }

    /// Whether all bots had the same state at every tick that two of them know, and how many were compared.
    fn agreement(&self) -> (bool, usize) {
        let mut seen: BTreeMap<Tick, StateHash> = BTreeMap::new();
        let (mut agree, mut compared) = (true, 0);
        for (tick, hash) in self.bots.values().flat_map(|bot| &bot.hashes) {
            match seen.get(tick) {
                Some(other) => {
                    compared += 1;
                    agree &= other == hash;
                }
                None => {
                    seen.insert(*tick, *hash);
                }
            }
        }
        (agree, compared)
    }

    fn report(&self, url: &Locator) -> BotsReport {
        let (agree, compared) = self.agreement();
        let bots = self.bots.values().map(Bot::report).collect();
        BotsReport { url: url.to_string(), agree, compared, bots }
    }
}

impl Bot {
    fn whose<'a>(&self, session: &'a str) -> Whose<'a> {
        let near = self.peer.confirmed().map_or(Tick::ZERO, |(tick, _)| tick);
        Whose { session, seat: self.peer.seat(), near }
    }

    /// Flips the first bit of the state that makes another state of it.
    fn flip(&mut self) {
        let Some((tick, state)) = self.peer.confirmed() else { return };
        let bytes = to_canonical(state).unwrap_or_default();
        let flipped = (0..bytes.len() * 8).rev().find_map(|bit| {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let flipped: Pong = from_canonical(&bytes).ok()?;
            (to_canonical(&flipped).ok()? == bytes).then_some(flipped)
        });
        let Some(flipped) = flipped else { return };
        let fields = differences(state, &flipped, 1);
        tracing::warn!(tick = tick.0, field = %fields[0], "a bit was flipped");
        self.peer.tamper(|state| *state = flipped);
    }

    /// Keeps the hash of the newest confirmed state.
    fn note(&mut self) {
        if self.peer.stats().resyncs > self.resyncs {
            // What was wrong has been found and mended; what is compared is what came of it.
            self.resyncs = self.peer.stats().resyncs;
            self.hashes.clear();
        }
        if let Some((tick, state)) = self.peer.confirmed()
            && self.hashes.last_key_value().is_none_or(|(last, _)| *last < tick)
        {
            self.hashes.insert(tick, StateHash::of(state));
            if self.hashes.len() > COMPARED {
                self.hashes.pop_first();
            }
        }
    }

    fn report(&self) -> BotReport {
        let (stats, diagnostics) = (self.peer.stats(), self.peer.diagnostics());
        let (tick, hash) = self
            .peer
            .confirmed()
            .map_or((0, String::new()), |(tick, state)| (tick.0, StateHash::of(state).to_string()));
        BotReport {
            seat: self.peer.seat().map(|seat| seat.0),
            tick,
            hash,
            omissions: stats.omissions,
            rollbacks: stats.rollbacks,
            resimulated: stats.resimulated,
            resyncs: stats.resyncs,
            verdict: diagnostics.verdict(),
            diagnostics,
            readings: diagnostics.readings(),
            rtt_us: self.stats.rtt_us,
            bytes_received: self.stats.bytes_received,
            bytes_sent: self.stats.bytes_sent,
        }
    }
}

impl App for Bots {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        Err(Refusal::Other("this is a client".into()))
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => {
                self.open(now, key, links);
                self.drain(now, key, links);
            }
            Event::Message(key, channel, bytes) => self.on_message(now, key, links, channel, bytes),
            Event::Ended(_, ended, _) => {
                self.ended += 1;
                if !self.closing {
                    self.failed.get_or_insert(ended.clone());
                }
            }
            Event::Timeout => self.on_time(now, links),
        }
    }

    fn wake_at(&self) -> Option<Time> {
        let bots = self.bots.values().filter_map(|bot| bot.wake_at);
        bots.chain(self.end_at).min().filter(|_| !self.closing)
    }

    fn is_done(&self) -> bool {
        self.failed.is_some() || self.refused.is_some() || self.ended == self.plan.count as usize
    }
}

/// Plays pong with headless players and reports. Needs a runtime of one thread.
pub async fn play_pong(url: &Locator, key: &AccessKey, plan: BotPlan) -> Result<BotsReport, BotError> {
    let clock = Clock::start();
    let mut hub = Hub::new(clock, None);
    if let Some((profile, seed)) = plan.netem {
        hub.set_netem(profile, seed);
    }
    let trace = plan.trace.as_deref().map(Trace::create).transpose();
    let trace =
        trace.map_err(|error| BotError::Trace { path: plan.trace.clone().unwrap_or_default(), error })?;
    let identity = Identity { build: Pong::BUILD, schema: sametick_sim::schema_hash_of::<Pong>() };
    let dial = |error| BotError::Dial { url: url.clone(), error };
    for number in 1..=plan.count {
        let intent = Intent::Join { session: plan.session.clone() };
        let hello = Hello { identity, intent, name: format!("bot {number}"), ticket: None };
        hub.add(url.dial(clock.now(), key, &hello).await.map_err(dial)?);
    }
    let mut bots = Bots {
        plan,
        bots: BTreeMap::new(),
        end_at: None,
        closing: false,
        ended: 0,
        failed: None,
        refused: None,
        buf: Vec::new(),
        trace,
    };
    hub.run(&mut bots).await.map_err(dial)?;
    if let Some(why) = bots.refused.take() {
        return Err(BotError::Refused { url: url.clone(), why });
    }
    match bots.failed.take() {
        Some(ended) => Err(BotError::Ended { url: url.clone(), ended: Box::new(ended) }),
        None => Ok(bots.report(url)),
    }
}
