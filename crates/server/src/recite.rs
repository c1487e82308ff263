//! Plays a log against a live relay: a headless player on every seat sends the inputs of the log, and the log that the
//! relay writes must be the same session again (V8).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use sametick_lockstep::log_player::{Input, LogPlayer, Output};
use sametick_lockstep::message::{CHECK_EVERY, Join};
use sametick_lockstep::rows::{Opaque, row_as_bytes};
use sametick_sim::record::{Record, TickInputs};
use sametick_sim::{Seat, StateHash, Tick};
use sametick_store::log::Header;
use sametick_transport::clock::Clock;
use sametick_transport::dial::Locator;
use sametick_transport::hub::{App, Ended, Event, Hub, Key, Links};
use sametick_wire::access::AccessKey;
use sametick_wire::closing::{LEAVING, THROWN_OUT};
use sametick_wire::hello::{Hello, Identity, Intent, Proven, Refusal};
use sametick_wire::{Channel, Time};
use serde::Serialize;

use crate::cli::CommandError;
use crate::games::{Games, Run};
use crate::logs::{LogError, LogFile};

/// The arguments of `sametick recite`, besides those of every client.
#[derive(Clone, Debug, Args)]
pub struct ReciteArgs {
    /// The log of a session in which everybody came before the first tick
    #[arg(value_name = "LOG")]
    pub log: PathBuf,

    /// The relay to play it against
    #[arg(long, value_name = "URL")]
    pub connect: Locator,

    /// The session to play it in, which must not be running
    #[arg(long, value_name = "NAME", default_value = "recital")]
    pub session: String,
}

/// Why a log cannot be played against a relay.
#[derive(Debug, thiserror::Error)]
pub enum ReciteError {
    /// A player joins after the first tick, and the relay cannot be told to wait for that.
    #[error(
        "in this log a player comes at tick {0}: only a session that begins with all its players can be recited"
    )]
    LateComer(Tick),
    /// The log has no players.
    #[error("in this log nobody plays")]
    Nobody,
    /// The relay cannot be reached.
    #[error("{0}: {1}")]
    Dial(Locator, std::io::Error),
    /// A link ended early.
    #[error("{0}: {1}")]
    Ended(Locator, Box<Ended>),
    /// The session refused a player.
    #[error("{0}: {1}")]
    Refused(Locator, String),
}

/// The players and the inputs of all ticks of a log.
#[derive(Clone, Debug)]
struct Script {
    header: Header,
    /// The name and the commit of each player.
    players: BTreeMap<Seat, (String, String)>,
    ticks: Vec<TickInputs>,
}

impl Script {
    /// Reads a log up to the tick before the first player leaves.
    fn read(path: &Path) -> Result<Script, CommandError> {
        let mut log = LogFile::open(path)?;
        let header = log.header().clone();
        let damage = |error| LogError::Read { path: path.to_owned(), error };
        let (mut players, mut ticks) = (BTreeMap::new(), Vec::new());
        let mut records = log.reader().holding();
        while let Some(record) = records.next().map_err(damage)? {
            match record {
                Record::Joined { tick: Tick(1), seat, name, commit } => {
                    players.insert(*seat, (name.clone(), commit.clone()));
                }
                Record::Joined { tick, .. } => return Err(ReciteError::LateComer(*tick).into()),
                Record::Left { .. } => break,
                Record::Inputs(inputs) => ticks.push(inputs.clone()),
                _ => {}
            }
        }
        if players.is_empty() {
            return Err(ReciteError::Nobody.into());
        }
        Ok(Script { header, players, ticks })
    }

    fn line(&self, seat: Seat, tick: Tick) -> Option<Opaque> {
        let inputs = self.ticks.get(tick.0.checked_sub(1)? as usize)?;
        inputs.get(seat).and_then(|row| row.input).and_then(Opaque::new)
    }

    fn join(&self, seat: Seat) -> Join {
        let (name, commit) = self.players.get(&seat).cloned().unwrap_or_default();
        let last = self.players.keys().last().map_or(0, |seat| seat.0);
        Join {
            game: self.header.game.clone(),
            commit,
            setup: self.header.setup.clone(),
            seed: self.header.seed,
            rate: self.header.rate.per_second() as u16,
            seats: last.saturating_add(1),
            wait_for: self.players.len() as u16,
            name,
            watch: false,
            seat: Some(seat),
            listed: false,
            resume: None,
            bring: None,
        }
    }
}

/// The result of a recital.
#[derive(Clone, Debug, Serialize)]
pub struct Recital {
    /// The relay's URL.
    pub url: String,
    /// The session's name.
    pub session: String,
    /// The number of players.
    pub players: usize,
    /// The number of ticks played.
    pub ticks: usize,
    /// Ticks that the relay closed with other inputs than the log has.
    pub different: u32,
    /// How many hashes were sent, if the game is known.
    pub checks: u32,
}

impl std::fmt::Display for Recital {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Recital { url, session, players, ticks, different, checks } = self;
        writeln!(f, "{url}")?;
        writeln!(f, "  {players} players, {ticks} ticks, {checks} states checked, in session \"{session}\"")?;
        match different {
            0 => write!(f, "  the relay closed every tick as the log says"),
            _ => write!(f, "  the relay closed {different} ticks otherwise than the log says"),
        }
    }
}

struct Player {
    seat: Seat,
    reciter: LogPlayer,
    run: Option<Box<dyn Run>>,
    closed: Tick,
}

struct Recitals<'a> {
    script: &'a Script,
    waiting: BTreeMap<Key, Player>,
    players: BTreeMap<Key, Player>,
    different: u32,
    checks: u32,
    inputs: TickInputs,
    buf: Vec<u8>,
    ended: usize,
    failed: Option<Ended>,
    refused: Option<String>,
}

impl Recitals<'_> {
    fn drain(&mut self, now: Time, key: Key, links: &mut Links) {
        let Some(player) = self.players.get_mut(&key) else { return };
        loop {
            let told = match player.reciter.poll_output(&mut self.buf) {
                Output::Send(channel) => {
                    // A link that has ended reports that itself.
                    let _ = links.send(key, channel, &self.buf);
                    continue;
                }
                Output::WantLine(tick) if tick.0 as usize > self.script.ticks.len() => break,
                Output::WantLine(tick) => Input::Line(self.script.line(player.seat, tick)),
                Output::Closed(tick, rows) => {
                    self.inputs.set(tick, rows.iter().map(row_as_bytes));
                    player.closed = tick;
                    let expected = self.script.ticks.get(tick.0 as usize - 1);
                    let is_first =
                        player.seat == self.script.players.keys().next().copied().unwrap_or_default();
                    if expected.is_some_and(|expected| *expected != self.inputs) && is_first {
                        self.different += 1;
                    }
                    match player.step(&self.inputs) {
                        Some(hash) => {
                            self.checks += 1;
                            Input::Hash(tick, hash)
                        }
                        None => continue,
                    }
                }
                Output::Wait => break,
            };
            // Only messages can be malformed.
            let _ = player.reciter.handle(now, told);
        }
        self.refused = self.refused.take().or(player.reciter.refused().map(ToOwned::to_owned));
        if self.players.values().all(|player| player.closed.0 as usize >= self.script.ticks.len()) {
            self.players.keys().for_each(|key| links.close(*key, LEAVING, "done"));
        }
    }

    fn on_message(&mut self, now: Time, key: Key, links: &mut Links, channel: Channel, bytes: &[u8]) {
        let Some(player) = self.players.get_mut(&key) else { return };
        if let Err(broken) = player.reciter.handle(now, Input::Message(channel, bytes)) {
            links.close(key, THROWN_OUT, broken.rule());
        }
        self.drain(now, key, links);
    }
}

impl Player {
    /// Plays a tick, if the game is known. Returns the hash of a state that is due for a check.
    fn step(&mut self, inputs: &TickInputs) -> Option<StateHash> {
        let run = self.run.as_mut()?;
        run.step(inputs);
        inputs.tick().0.is_multiple_of(CHECK_EVERY).then(|| run.hash())
    }
}

impl App for Recitals<'_> {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        Err(Refusal::Other("this is a client".into()))
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => {
                if let Some(player) = self.waiting.remove(&key) {
                    self.players.insert(key, player);
                }
                self.drain(now, key, links);
            }
            Event::Message(key, channel, bytes) => self.on_message(now, key, links, channel, bytes),
            Event::Ended(key, ended, _) => {
                self.ended += 1;
                let is_done = |player: &Player| player.closed.0 as usize >= self.script.ticks.len();
                if !self.players.get(&key).is_some_and(is_done) {
                    self.failed.get_or_insert(ended.clone());
                }
            }
            Event::Timeout => {}
        }
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn is_done(&self) -> bool {
        self.failed.is_some() || self.refused.is_some() || self.ended == self.script.players.len()
    }
}

/// Plays a log against a live relay. Needs a single-threaded runtime.
pub async fn recite(args: &ReciteArgs, key: &AccessKey, games: &Games) -> Result<Recital, CommandError> {
    let script = Script::read(&args.log)?;
    let Header { build, schema, game, setup, .. } = &script.header;
    let known = games.find(game, *build).ok();
    let clock = Clock::start();
    let mut hub = Hub::new(clock, None);
    let mut waiting = BTreeMap::new();
    let dial = |error| ReciteError::Dial(args.connect.clone(), error);
    for (seat, (name, _)) in &script.players {
        let intent = Intent::Join { session: args.session.clone() };
        let identity = Identity { build: *build, schema: *schema };
        let hello = Hello { identity, intent, name: name.clone(), pass: None };
        let link = hub.add(args.connect.dial(clock.now(), key, &hello).await.map_err(dial)?);
        let run = known.and_then(|game| game.begin(setup).ok());
        let reciter = LogPlayer::new(script.join(*seat));
        waiting.insert(link, Player { seat: *seat, reciter, run, closed: Tick::ZERO });
    }
    let mut recitals = Recitals {
        script: &script,
        waiting,
        players: BTreeMap::new(),
        different: 0,
        checks: 0,
        inputs: TickInputs::new(),
        buf: Vec::new(),
        ended: 0,
        failed: None,
        refused: None,
    };
    hub.run(&mut recitals).await.map_err(dial)?;
    let Recitals { different, checks, failed, refused, .. } = recitals;
    if let Some(why) = refused {
        return Err(ReciteError::Refused(args.connect.clone(), why).into());
    }
    if let Some(ended) = failed {
        return Err(ReciteError::Ended(args.connect.clone(), Box::new(ended)).into());
    }
    let (players, ticks) = (script.players.len(), script.ticks.len());
    Ok(Recital {
        url: args.connect.to_string(),
        session: args.session.clone(),
        players,
        ticks,
        different,
        checks,
    })
}
