//! Pong in a terminal, for a person who plays against others through a relay.
//!
//! `keys.rs` turns keys into inputs and `scene.rs` draws a state; neither knows of a terminal. `terminal.rs` is the
//! terminal, and this file is the driver between it and the client.

mod command;
mod court;
mod frame;
mod keys;
mod scene;
mod terminal;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use sametick_client::{SessionCopy, Status};
use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_pong::{Phase, Pong, Setup, Wall};
use sametick_sim::Tick;
use sametick_transport::clock::Clock;
use sametick_transport::dial::Locator;
use sametick_wire::Time;
use sametick_wire::access::AccessKey;
use sametick_wire::netem::Profile;
use serde::Serialize;

pub(crate) use command::{PlayGame, play};
use keys::{Keyboard, Wish};
use scene::{Scene, own_wall};
use terminal::{Terminal, Told};

use crate::calling::Caller;
use crate::copies::{self, Keep};
use crate::trace::Trace;
use crate::{config, signals};

/// The least time between two frames: a little less than a tick, so that no tick is skipped for being early.
const FRAME_US: u64 = 15_000;

/// How often the screen and the keys are polled when no tick is due.
const IDLE_US: u64 = 40_000;

/// For how long the screen shows where a copy was kept.
const NOTE_US: u64 = 5_000_000;

/// How a person plays.
#[derive(Clone, Debug)]
pub struct PlayPlan {
    /// The session's name.
    pub session: String,
    /// The player's name.
    pub name: String,
    /// Whether to join as a spectator.
    pub watch: bool,
    /// The setup with which the session begins, if it is not running.
    pub setup: Setup,
    /// A simulated bad network in front of the link, and its seed.
    pub netem: Option<(Profile, u64)>,
    /// The file that every message is written to, if any.
    pub trace: Option<PathBuf>,
    /// The copy from which the session begins if the server has nothing of it.
    pub bring: Option<SessionCopy>,
    /// Where a copy of the session is kept, if anywhere.
    pub keep: Option<Keep>,
    /// The git commit that this program was built from, for the log.
    pub commit: &'static str,
}

/// The report after a game.
#[derive(Clone, Debug, Serialize)]
pub struct PlayReport {
    /// The session's name.
    pub session: String,
    /// The player's seat.
    pub seat: Option<u16>,
    /// The last confirmed tick.
    pub tick: u32,
    /// The points of every seat at that tick.
    pub scores: Vec<u8>,
    /// Inputs that arrived too late for their tick.
    pub omissions: u32,
    /// A sentence about the last second.
    pub verdict: &'static str,
    /// What happened to the copy that was brought.
    pub brought: Option<String>,
    /// Where a copy of the session is kept.
    pub saved: Option<String>,
}

impl fmt::Display for PlayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scores: Vec<String> = self.scores.iter().map(ToString::to_string).collect();
        write!(f, "left session {} at tick {}, {}", self.session, self.tick, scores.join(" : "))?;
        self.seat.map_or(Ok(()), |seat| write!(f, " (you were seat {seat})"))?;
        self.brought.iter().chain(&self.saved).try_for_each(|line| write!(f, "\n{line}"))
    }
}

/// Why the player cannot play, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// Standard output is no terminal.
    #[error("this is no terminal to play in; `sametick bot pong` plays without one")]
    NoTerminal,
    /// The terminal does not work.
    #[error("the terminal: {0}")]
    Terminal(io::Error),
    /// The message log cannot be written.
    #[error("cannot write the message log to {}: {error}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The relay was never reached.
    #[error("{url}: {why}")]
    NotReached {
        /// The URL.
        url: Locator,
        /// The reason.
        why: String,
    },
    /// The session refused the player.
    #[error("{url}: session {session}: {why}")]
    Refused {
        /// The URL.
        url: Locator,
        /// The session's name.
        session: String,
        /// The reason.
        why: String,
    },
    /// The player could not go on, but a copy of the session is kept.
    #[error("{error}\n{saved}")]
    Saved {
        /// Why the player could not go on.
        error: Box<PlayError>,
        /// Where the copy is.
        saved: String,
    },
}

struct Player {
    plan: PlayPlan,
    relay: String,
    terminal: Terminal,
    keyboard: Keyboard,
    panel: bool,
    ghost: bool,
    drawn_at: Time,
    /// The last tick that was drawn.
    drawn: Option<Tick>,
    leaving: bool,
    /// Whether a copy is to be kept now.
    keeping: bool,
    /// The note about a kept copy, and since when it is shown.
    note: Option<(Time, String)>,
    failed: Option<io::Error>,
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
            drawn_at: Time::ZERO,
            drawn: None,
            leaving: false,
            keeping: false,
            note: None,
            failed: None,
        }
    }

    fn read_keys(&mut self, now: Time, wall: Option<Wall>) {
        while !self.is_over() {
            match self.terminal.poll() {
                Ok(Some(Told::Key(key, stroke))) => match self.keyboard.handle(now, key, stroke, wall) {
                    Some(Wish::Quit) => self.leaving = true,
                    Some(Wish::TogglePanel) => self.panel = !self.panel,
                    Some(Wish::ToggleGhost) => self.ghost = !self.ghost,
                    Some(Wish::Keep) => self.keeping = true,
                    None => {}
                },
                Ok(Some(Told::FocusLost)) => self.keyboard.let_go(),
                Ok(None) => return,
                Err(error) => self.failed = Some(error),
            }
        }
    }

    /// The player's current input.
    fn input(&mut self, now: Time, peer: &Peer<Pong>) -> sametick_pong::Input {
        let wall = wall_of(peer);
        self.read_keys(now, wall);
        let is_over = peer.shown().is_some_and(|(_, pong)| matches!(pong.phase, Phase::Over { .. }));
        wall.map(|wall| self.keyboard.input(now, wall, is_over)).unwrap_or_default()
    }

    /// When to draw next: soon if there is a new tick to show.
    fn frame_at(&self, peer: Option<&Peer<Pong>>) -> Time {
        let shown = peer.and_then(Peer::shown).map(|(tick, _)| tick);
        self.drawn_at.plus_micros(if shown == self.drawn { IDLE_US } else { FRAME_US })
    }

    fn draw(&mut self, now: Time, caller: &Caller<Peer<Pong>>) {
        let client = caller.client();
        let (peer, status) = (client.side(), client.status());
        let diagnostics = peer.map(Peer::diagnostics).filter(|_| self.panel);
        let scene = Scene {
            relay: &self.relay,
            session: &self.plan.session,
            name: &self.plan.name,
            tells_releases: self.keyboard.tells_releases(),
            status: &status,
            seat: peer.and_then(Peer::seat),
            shown: peer.and_then(Peer::shown),
            confirmed: peer.and_then(Peer::confirmed),
            ghost: self.ghost,
            rtt_us: client.link_stats().and_then(|stats| stats.rtt_us),
            omissions: peer.map_or(0, |peer| peer.stats().omissions),
            diagnostics: diagnostics.as_ref(),
            note: self.note.as_ref().map(|(_, note)| note.as_str()),
        };
        let frame = scene::draw(&scene, self.terminal.size(), self.terminal.palette());
        self.drawn = scene.shown.map(|(tick, _)| tick);
        self.drawn_at = now;
        if let Err(error) = self.terminal.show(frame) {
            self.failed = Some(error);
        }
    }

    /// Keeps a copy if the player wants one, and shows where for a while.
    fn keep_copy(&mut self, now: Time, copy: impl FnOnce() -> Option<SessionCopy>) {
        self.note = self.note.take().filter(|(since, _)| now.micros_since(*since) < NOTE_US);
        if std::mem::take(&mut self.keeping) {
            let kept = self.kept(copy());
            let note = kept.unwrap_or_else(|| "no copy is kept: see --save".into());
            self.note = Some((now, note));
        }
    }

    /// Keeps a copy, if copies are enabled. Returns where.
    fn kept(&self, copy: Option<SessionCopy>) -> Option<String> {
        let kept = self.plan.keep.as_ref()?.write(&copy?);
        Some(kept.map_or_else(|error| error.to_string(), |kept| kept.to_string()))
    }

    /// Whether the game has ended for this player.
    fn is_over(&self) -> bool {
        self.leaving || self.failed.is_some()
    }

    fn report(&self, peer: Option<&Peer<Pong>>) -> PlayReport {
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
            brought: peer.and_then(Peer::brought).map(copies::tell),
            saved: self.kept(peer.and_then(|peer| peer.copy(&self.plan.session))),
        }
    }

    /// The error that keeps the player from going on, if there is one.
    fn trouble(&self, url: &Locator, caller: &Caller<Peer<Pong>>) -> Option<PlayError> {
        let (url, session) = (url.clone(), self.plan.session.clone());
        match caller.client().status() {
            Status::Refused(why) => Some(PlayError::Refused { url, session, why }),
            // A player who was never connected does not retry for long.
            Status::Lost { why, .. } if caller.client().side().is_none() => {
                Some(PlayError::NotReached { url, why })
            }
            _ => None,
        }
    }
}

fn wall_of(peer: &Peer<Pong>) -> Option<Wall> {
    own_wall(peer.shown()?.1, peer.seat())
}

fn join_of(plan: &PlayPlan) -> JoinAs<Pong> {
    let Setup { seed, players, .. } = plan.setup;
    JoinAs {
        setup: plan.setup,
        seed,
        seats: players.into(),
        wait_for: 1,
        name: plan.name.clone(),
        commit: plan.commit.into(),
        watch: plan.watch,
        listed: true,
    }
}

/// Plays pong in this terminal until the player leaves. Needs a single-threaded runtime.
pub async fn play_pong(url: &Locator, key: &AccessKey, plan: PlayPlan) -> Result<PlayReport, PlayError> {
    if !Terminal::is_there() {
        return Err(PlayError::NoTerminal);
    }
    let clock = Clock::start();
    let caller = Caller::new(clock, url, key, plan.session.clone(), join_of(&plan));
    let not_reached = |why: String| PlayError::NotReached { url: url.clone(), why };
    let mut caller = caller.map_err(|error| not_reached(error.to_string()))?;
    if let Some((profile, seed)) = plan.netem {
        caller.client_mut().set_netem(Some(profile), seed);
    }
    if let Some(path) = &plan.trace {
        let trace = Trace::create(path).map_err(|error| PlayError::Trace { path: path.clone(), error })?;
        caller.set_trace(Rc::new(RefCell::new(trace)));
    }
    if let Some(copy) = &plan.bring {
        caller.client_mut().bring(copy.clone());
    }
    let terminal = Terminal::open().map_err(PlayError::Terminal)?;
    let mut player = Player::new(plan, url.to_string(), terminal);
    let mut hangups = signals::Signals::hangups();
    let mut stops = signals::Stops::listen().map_err(PlayError::Terminal)?;
    let trouble = loop {
        let now = clock.now();
        caller.drain(|peer, _| player.input(now, peer));
        player.read_keys(now, caller.client().side().and_then(wall_of));
        player.keep_copy(now, || caller.client().copy());
        let trouble = player.trouble(url, &caller);
        if trouble.is_some() || player.is_over() {
            break trouble;
        }
        if player.frame_at(caller.client().side()) <= now {
            player.draw(now, &caller);
        }
        let frame_at = player.frame_at(caller.client().side());
        tokio::select! {
            () = caller.wait(Some(frame_at)) => {}
            _ = stops.next() => player.leaving = true,
            () = hangups.next() => player.leaving = true,
        }
    };
    // The terminal is restored at once: telling the relay may take a while.
    player.terminal.close();
    if caller.client().side().is_some() {
        config::remember_relay(url);
    }
    let error = match (player.failed.take(), trouble) {
        (Some(error), _) => PlayError::Terminal(error),
        (None, Some(trouble)) => trouble,
        (None, None) => return Ok(player.report(leave(caller, clock).await.as_ref())),
    };
    Err(match player.kept(caller.client().copy()) {
        Some(saved) => PlayError::Saved { error: Box::new(error), saved },
        None => error,
    })
}

/// Leaves, and waits until the relay has been told.
async fn leave(mut caller: Caller<Peer<Pong>>, clock: Clock) -> Option<Peer<Pong>> {
    caller.client_mut().leave(clock.now());
    loop {
        caller.drain(|_, _| sametick_pong::Input::default());
        if caller.is_done() {
            return caller.finish().await;
        }
        caller.wait(None).await;
    }
}
