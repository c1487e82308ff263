//! A person plays in a terminal, against others, through a relay.
//!
//! `keys.rs` makes inputs of keys, `scene.rs` a screen of a state; both know no terminal. `terminal.rs` is the terminal,
//! and this the driver between it, the peer and the hub.

mod command;
mod court;
mod frame;
mod keys;
mod scene;
mod terminal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::SocketAddr;

use sametick_lockstep::peer::{Input, JoinAs, Output, Peer, Status};
use sametick_pong::{Phase, Pong, Setup, Wall};
use sametick_sim::{Game, Tick};
use sametick_transport::clock::Clock;
use sametick_transport::dial::Locator;
use sametick_transport::endpoint::Gone;
use sametick_transport::hub::{App, Ended, Event, Hub, Key, Links};
use sametick_wire::access::AccessKey;
use sametick_wire::hello::{Hello, Identity, Intent, Proven, Refusal};
use sametick_wire::netem::Profile;
use sametick_wire::{Channel, Time};
use serde::Serialize;

pub(crate) use command::{PlayGame, play};
use keys::{Keyboard, Wish};
use scene::{Scene, own_wall};
use terminal::{Terminal, Told};

use crate::{config, signals};

/// The least time between two frames: a little less than a tick, so that no tick is left out for being early.
const FRAME_US: u64 = 15_000;

/// How often the screen and the keys are looked at when no tick asks for it.
const IDLE_US: u64 = 40_000;

/// How somebody wants to play.
#[derive(Clone, Debug)]
pub struct PlayPlan {
    /// The session to meet in.
    pub session: String,
    /// What the player is called.
    pub name: String,
    /// Only watch.
    pub watch: bool,
    /// What the session begins with, if it is not running.
    pub setup: Setup,
    /// A bad network in front of the link, and its seed.
    pub netem: Option<(Profile, u64)>,
}

/// How it was.
#[derive(Clone, Debug, Serialize)]
pub struct PlayReport {
    /// The session.
    pub session: String,
    /// Where the player sat.
    pub seat: Option<u16>,
    /// The last tick that was known for sure.
    pub tick: u32,
    /// The points of every seat then.
    pub scores: Vec<u8>,
    /// Inputs that missed their tick.
    pub omissions: u32,
    /// How the last second was, in a sentence.
    pub verdict: &'static str,
}

impl fmt::Display for PlayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scores: Vec<String> = self.scores.iter().map(ToString::to_string).collect();
        write!(f, "left session {} at tick {}, {}", self.session, self.tick, scores.join(" : "))?;
        self.seat.map_or(Ok(()), |seat| write!(f, " (you were seat {seat})"))
    }
}

/// Why somebody could not play, or not go on.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// There is nothing to draw on.
    #[error("this is no terminal to play in; `sametick bot pong` plays without one")]
    NoTerminal,
    /// The terminal does not work.
    #[error("the terminal: {0}")]
    Terminal(io::Error),
    /// The relay cannot be called.
    #[error("{url}: {error}")]
    Dial {
        /// Which.
        url: Locator,
        /// Why not.
        error: io::Error,
    },
    /// Nobody has answered.
    #[error("{0}: no answer: there is no relay, or it has another passphrase")]
    NoAnswer(Locator),
    /// What the relay says cannot be understood.
    #[error("{0}: the relay does not speak the lockstep protocol of this build")]
    Nonsense(Locator),
    /// The link has ended.
    #[error("{url}: {ended}")]
    Ended {
        /// Which.
        url: Locator,
        /// Why.
        ended: Box<Ended>,
    },
    /// The session turned the player down.
    #[error("{url}: session {session}: {why}")]
    Refused {
        /// Which.
        url: Locator,
        /// Of which name.
        session: String,
        /// Why.
        why: String,
    },
}

struct Player {
    plan: PlayPlan,
    relay: String,
    terminal: Terminal,
    keyboard: Keyboard,
    panel: bool,
    ghost: bool,
    /// The link, once the relay has answered.
    key: Option<Key>,
    peer: Option<Peer<Pong>>,
    wake_at: Option<Time>,
    rtt_us: Option<u64>,
    drawn_at: Time,
    /// The last tick that was drawn.
    drawn: Option<Tick>,
    leaving: bool,
    is_nonsense: bool,
    ended: Option<Ended>,
    failed: Option<io::Error>,
    buf: Vec<u8>,
}

impl Player {
    fn new(plan: PlayPlan, relay: String, terminal: Terminal) -> Player {
        Player {
            plan,
            relay,
            keyboard: Keyboard::new(terminal.tells_releases()),
            terminal,
            panel: false,
            ghost: false,
            key: None,
            peer: None,
            wake_at: None,
            rtt_us: None,
            drawn_at: Time::ZERO,
            drawn: None,
            leaving: false,
            is_nonsense: false,
            ended: None,
            failed: None,
            buf: Vec::new(),
        }
    }

    fn open(&mut self, now: Time, key: Key, links: &Links) {
        let Setup { seed, players, .. } = self.plan.setup;
        let join = JoinAs {
            setup: self.plan.setup,
            seed,
            seats: players.into(),
            wait_for: 1,
            name: self.plan.name.clone(),
            commit: crate::COMMIT.into(),
            watch: self.plan.watch,
            listed: true,
        };
        self.key = Some(key);
        self.peer = Some(Peer::new(now, &join, links.stats(key).unwrap_or_default().into()));
    }

    /// Gives the terminal back at once, and tells the relay.
    fn leave(&mut self, links: &mut Links) {
        self.leaving |= !self.is_over();
        self.terminal.close();
        if let Some(key) = self.key {
            links.close(key, 0, "the player leaves");
        }
    }

    fn wall(&self) -> Option<Wall> {
        let peer = self.peer.as_ref()?;
        own_wall(peer.shown()?.1, peer.seat())
    }

    fn read_keys(&mut self, now: Time, links: &mut Links) {
        while !self.is_over() {
            match self.terminal.poll() {
                Ok(Some(Told::Key(key, stroke))) => {
                    match self.keyboard.handle(now, key, stroke, self.wall()) {
                        Some(Wish::Quit) => self.leave(links),
                        Some(Wish::TogglePanel) => self.panel = !self.panel,
                        Some(Wish::ToggleGhost) => self.ghost = !self.ghost,
                        None => {}
                    }
                }
                Ok(Some(Told::FocusLost)) => self.keyboard.let_go(),
                Ok(None) => return,
                Err(error) => self.failed = Some(error),
            }
        }
    }

    fn input(&self, now: Time) -> sametick_pong::Input {
        let pong = self.peer.as_ref().and_then(Peer::shown).map(|(_, pong)| pong);
        let is_over = pong.is_some_and(|pong| matches!(pong.phase, Phase::Over { .. }));
        self.wall().map(|wall| self.keyboard.input(now, wall, is_over)).unwrap_or_default()
    }

    fn drain(&mut self, now: Time, links: &mut Links) {
        let Some(key) = self.key else { return };
        self.wake_at = loop {
            let Some(peer) = &mut self.peer else { return };
            let handled = match peer.poll_output(&mut self.buf) {
                Output::Send(channel) => {
                    // A link that has ended says so itself.
                    let _ = links.send(key, channel, &self.buf);
                    continue;
                }
                Output::WantInput(_) => {
                    self.read_keys(now, links);
                    Input::Local(self.input(now))
                }
                Output::WantPath => {
                    let stats = links.stats(key).unwrap_or_default();
                    self.rtt_us = stats.rtt_us;
                    Input::Path(stats.into())
                }
                Output::WakeAt(at) => break Some(at),
                Output::Wait => break None,
            };
            // What this side says of itself is never malformed.
            let _ = self.peer.as_mut().map(|peer| peer.handle(now, handled));
        };
    }

    fn on_message(&mut self, now: Time, links: &mut Links, channel: Channel, bytes: &[u8]) {
        let (Some(peer), Some(key)) = (&mut self.peer, self.key) else { return };
        if peer.handle(now, Input::Message(channel, bytes)).is_err() {
            self.is_nonsense = true;
            links.close(key, 1, "this is not the lockstep protocol");
        }
    }

    fn on_time(&mut self, now: Time, links: &mut Links) {
        self.read_keys(now, links);
        if let Some(peer) = self.peer.as_mut().filter(|_| self.wake_at.is_some_and(|at| at <= now)) {
            // A time-out is never malformed.
            let _ = peer.handle(now, Input::Timeout);
        }
    }

    /// When to draw next: soon if there is a new tick to see.
    fn frame_at(&self) -> Time {
        let shown = self.peer.as_ref().and_then(Peer::shown).map(|(tick, _)| tick);
        self.drawn_at.plus_micros(if shown == self.drawn { IDLE_US } else { FRAME_US })
    }

    fn draw(&mut self, now: Time) {
        let peer = self.peer.as_ref();
        let diagnostics = peer.map(Peer::diagnostics).filter(|_| self.panel);
        let scene = Scene {
            relay: &self.relay,
            session: &self.plan.session,
            name: &self.plan.name,
            tells_releases: self.keyboard.tells_releases(),
            status: peer.map(Peer::status),
            seat: peer.and_then(Peer::seat),
            shown: peer.and_then(Peer::shown),
            confirmed: peer.and_then(Peer::confirmed),
            ghost: self.ghost,
            rtt_us: self.rtt_us,
            omissions: peer.map_or(0, |peer| peer.stats().omissions),
            diagnostics: diagnostics.as_ref(),
        };
        let frame = scene::draw(&scene, self.terminal.size(), self.terminal.palette());
        self.drawn = scene.shown.map(|(tick, _)| tick);
        self.drawn_at = now;
        if let Err(error) = self.terminal.show(frame) {
            self.failed = Some(error);
        }
    }

    fn refusal(&self) -> Option<&str> {
        match self.peer.as_ref()?.status() {
            Status::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Whether there is nothing more to play.
    fn is_over(&self) -> bool {
        self.leaving || self.ended.is_some() || self.failed.is_some() || self.refusal().is_some()
    }

    fn report(&self) -> PlayReport {
        let peer = self.peer.as_ref();
        let (tick, pong) =
            peer.and_then(Peer::confirmed).map_or((0, None), |(tick, pong)| (tick.0, Some(pong)));
        let score = |pong: &Pong| -> Vec<u8> {
            pong.rules.court().open_walls().map(|wall| pong.paddle(wall).score).collect()
        };
        PlayReport {
            session: self.plan.session.clone(),
            seat: peer.and_then(Peer::seat).map(|seat| seat.0),
            tick,
            scores: pong.map(score).unwrap_or_default(),
            omissions: peer.map_or(0, |peer| peer.stats().omissions),
            verdict: peer.map(Peer::diagnostics).unwrap_or_default().verdict(),
        }
    }
}

impl App for Player {
    fn admit(&mut self, _: Time, _: Key, _: SocketAddr, _: &Proven) -> Result<(), Refusal> {
        Err(Refusal::Other("this is a client".into()))
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => self.open(now, key, links),
            Event::Message(_, channel, bytes) => self.on_message(now, links, channel, bytes),
            Event::Ended(_, ended, _) => self.ended = Some(ended.clone()),
            Event::Timeout => self.on_time(now, links),
        }
        if !self.is_over() {
            self.drain(now, links);
        }
        if !self.is_over() && self.frame_at() <= now {
            self.draw(now);
        }
    }

    fn wake_at(&self) -> Option<Time> {
        let frame_at = self.frame_at();
        (!self.is_over()).then(|| self.wake_at.map_or(frame_at, |at| at.min(frame_at)))
    }

    fn is_done(&self) -> bool {
        // Who leaves waits until the relay has been told.
        self.is_over() && (!self.leaving || self.key.is_none() || self.ended.is_some())
    }
}

/// Plays pong in this terminal until the player leaves. Needs a runtime of one thread.
pub async fn play_pong(url: &Locator, key: &AccessKey, plan: PlayPlan) -> Result<PlayReport, PlayError> {
    if !Terminal::is_there() {
        return Err(PlayError::NoTerminal);
    }
    let clock = Clock::start();
    let mut hub = Hub::new(clock, None);
    if let Some((profile, seed)) = plan.netem {
        hub.set_netem(profile, seed);
    }
    let identity = Identity { build: Pong::BUILD, schema: sametick_sim::schema_hash_of::<Pong>() };
    let intent = Intent::Join { session: plan.session.clone() };
    let hello = Hello { identity, intent, name: plan.name.clone(), ticket: None };
    let dial = |error| PlayError::Dial { url: url.clone(), error };
    // Before the terminal is taken: while a name is looked up, Ctrl-C ends everything as usual.
    hub.add(url.dial(clock.now(), key, &hello).await.map_err(dial)?);
    let terminal = Terminal::open().map_err(PlayError::Terminal)?;
    let mut player = Player::new(plan, url.to_string(), terminal);
    player.draw(clock.now());
    let mut hangups = signals::Hangups::listen();
    let mut stops = signals::Stops::listen().map_err(PlayError::Terminal)?;
    tokio::select! {
        done = hub.run(&mut player) => done.map_err(dial)?,
        _ = stops.next() => {}
        () = hangups.next() => {}
    }
    hub.with_links(|links| player.leave(links));
    hub.run(&mut player).await.map_err(dial)?;
    if player.key.is_some() {
        config::remember_relay(url);
    }
    outcome(url, player)
}

fn outcome(url: &Locator, mut player: Player) -> Result<PlayReport, PlayError> {
    player.terminal.close();
    let url = url.clone();
    if let Some(error) = player.failed.take() {
        return Err(PlayError::Terminal(error));
    }
    if let Some(why) = player.refusal() {
        let (session, why) = (player.plan.session.clone(), why.to_owned());
        return Err(PlayError::Refused { url, session, why });
    }
    match player.ended.take() {
        _ if player.leaving => Ok(player.report()),
        _ if player.is_nonsense => Err(PlayError::Nonsense(url)),
        Some(Ended::Carrier(Gone::NoAnswer)) if player.key.is_none() => Err(PlayError::NoAnswer(url)),
        Some(ended) => Err(PlayError::Ended { url, ended: Box::new(ended) }),
        None => Ok(player.report()),
    }
}
