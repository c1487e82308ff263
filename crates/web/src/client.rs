//! The client as JavaScript holds it.

use sametick_client as machine;
use sametick_client::{Attempt, Carried, Input, Output, Plan};
use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_pong::Pong;
use sametick_sim::{Tick, Time};
use sametick_wire::LaneId;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::diagnostics::PageDiagnostics;
use crate::options::{Options, Route};
use crate::screen::{Controls, Held, OnScreen, Shape};
use crate::status::{Around, PageStatus};

/// For so many ticks a press counts: one that is lost with an input would be felt.
const PRESS_TICKS: u32 = 5;

/// How often diagnostics are told.
const DIAGNOSTICS_US: u64 = 250_000;

/// In place of the git commit: the committed module cannot know in which commit it will be.
const COMMIT: &str = "browser";

/// What [`Client::poll`] answers.
mod wanted {
    pub const NOTHING: u32 = 0;
    pub const DIAL: u32 = 1;
    pub const DATAGRAM: u32 = 2;
    pub const STREAM: u32 = 3;
    pub const HANG_UP: u32 = 4;
    pub const FRAME: u32 = 5;
    pub const STATUS: u32 = 6;
    pub const HUD: u32 = 7;
    pub const DIAGNOSTICS: u32 = 8;
    pub const DONE: u32 = 9;
}

/// A player in a page, from dialling to leaving. All times are microseconds on one clock that never goes back.
#[wasm_bindgen]
pub struct Client {
    played: Played<Pong>,
}

#[wasm_bindgen]
impl Client {
    /// A client that dials at once. Options are JSON; throws a sentence if something is wrong with them.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str) -> Result<Client, String> {
        let options = Options::from_json(options)?;
        match options.game.as_str() {
            "pong" => Ok(Client { played: Played::new(&options)? }),
            other => Err(format!("there is no game called {other} in this page")),
        }
    }

    /// The server's answer to the hello.
    pub fn answer(&mut self, now_us: f64, attempt: u32, bytes: &[u8]) {
        self.played.carried(now_us, attempt, Carried::Answer(bytes));
    }

    /// A datagram.
    pub fn datagram(&mut self, now_us: f64, attempt: u32, bytes: &[u8]) {
        self.played.carried(now_us, attempt, Carried::Datagram(bytes));
    }

    /// The next bytes of a lane.
    pub fn stream(&mut self, now_us: f64, attempt: u32, lane: u8, bytes: &[u8]) {
        self.played.carried(now_us, attempt, Carried::Stream(LaneId(lane), bytes));
    }

    /// A carrier has ended or could not be opened.
    pub fn gone(&mut self, now_us: f64, attempt: u32, why: &str) {
        self.played.carried(now_us, attempt, Carried::Gone(why));
    }

    /// The time of [`Client::wake_at`] has come.
    pub fn timeout(&mut self, now_us: f64) {
        self.played.client.handle(time(now_us), Input::Timeout);
    }

    /// What is held now: 1 up, 2 down, 4 left, 8 right; and where the pointer is, in the units of frames, NaN if nowhere.
    pub fn controls(&mut self, held: u32, x: f32, y: f32) {
        self.played.held = Held(held);
        self.played.pointer = (x.is_finite() && y.is_finite()).then_some([x, y]);
    }

    /// The action button went down.
    pub fn press(&mut self) {
        self.played.press_ticks = PRESS_TICKS;
    }

    /// Puts a bad network in front of the own link, such as "rtt=100ms,jitter=20ms,loss=5%"; none if empty. Throws a sentence.
    pub fn netem(&mut self, profile: &str) -> Result<(), String> {
        let profile = match profile {
            "" => None,
            text => Some(text.parse().map_err(|error| format!("{error}"))?),
        };
        self.played.client.set_netem(profile);
        Ok(())
    }

    /// Cuts the connection and dials again after so long.
    pub fn drop(&mut self, now_us: f64, for_ms: f64) {
        self.played.client.drop_link(time(now_us), (for_ms * 1_000.0) as u64);
    }

    /// Leaves for good.
    pub fn leave(&mut self, now_us: f64) {
        self.played.client.leave(time(now_us));
    }

    /// What is wanted next: 0 nothing until `wake_at`, 1 dial `route` as `attempt` with `bytes` as the hello, 2 send the datagram
    /// `bytes`, 3 send `bytes` on `lane`, 4 hang up `attempt`, 5 show `frame`, 6 show `status`, 7 show `hud`, 8 show `diagnostics`,
    /// 9 nothing more, ever.
    pub fn poll(&mut self, now_us: f64) -> u32 {
        self.played.poll(time(now_us))
    }

    /// See [`Client::poll`].
    pub fn attempt(&self) -> u32 {
        self.played.attempt.0
    }

    /// See [`Client::poll`].
    pub fn route(&self) -> String {
        self.played.route_name().into()
    }

    /// See [`Client::poll`].
    pub fn lane(&self) -> u8 {
        self.played.lane
    }

    /// See [`Client::poll`].
    pub fn bytes(&self) -> Vec<u8> {
        self.played.buf.clone()
    }

    /// When to call `timeout` at the latest; infinite if never.
    pub fn wake_at(&self) -> f64 {
        self.played.wake_at.map_or(f64::INFINITY, |at| at.as_micros() as f64)
    }

    /// The tick of the frame.
    pub fn tick(&self) -> u32 {
        self.played.shown.0
    }

    /// The shapes on screen, eight numbers each: id, kind, x, y, w, h, epoch, tint.
    pub fn frame(&mut self) -> Vec<f32> {
        self.played.frame()
    }

    /// The shapes of the confirmed state.
    pub fn ghost(&mut self) -> Vec<f32> {
        self.played.ghost()
    }

    /// What there is to hear since the last frame, as bits: 1 a paddle, 2 a wall, 4 a point, 8 the end, 16 a serve.
    pub fn events(&self) -> u32 {
        self.played.events
    }

    /// What the client is doing, as JSON.
    pub fn status(&self) -> String {
        to_json(&self.played.status)
    }

    /// What is shown in words and numbers, as JSON.
    pub fn hud(&self) -> String {
        to_json(&self.played.hud)
    }

    /// How the connection and this machine are doing, as JSON.
    pub fn diagnostics(&self) -> String {
        to_json(&PageDiagnostics::of(&self.played.client))
    }
}

fn time(us: f64) -> Time {
    // Below zero and beyond the end it saturates.
    Time::from_micros(us as u64)
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

/// A game that is played.
struct Played<G: OnScreen> {
    client: machine::Client<Peer<G>>,
    routes: Vec<Route>,
    held: Held,
    pointer: Option<[f32; 2]>,
    /// For how many ticks a press still counts.
    press_ticks: u32,
    buf: Vec<u8>,
    attempt: Attempt,
    lane: u8,
    wake_at: Option<Time>,
    /// The tick of the last frame.
    shown: Tick,
    events: u32,
    status: Option<PageStatus>,
    hud: Option<G::Hud>,
    diagnostics_at: Time,
    memory: G::Memory,
    ghost_memory: G::Memory,
    shapes: Vec<Shape>,
}

impl<G: OnScreen> Played<G> {
    fn new(options: &Options) -> Result<Played<G>, String> {
        let (now, random) = (time(options.now_us), options.random()?);
        // A part of the randomness is for the seed of the session, which everybody gets to know.
        let [.., a, b, c, d, e, f, g, h] = random;
        let seed = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let (setup, seats) = G::setup(options, seed);
        let join = JoinAs {
            setup,
            seed,
            seats,
            wait_for: 1,
            name: options.name.clone(),
            commit: COMMIT.into(),
            watch: options.watch,
            listed: options.listed,
        };
        let plan = Plan {
            session: options.session.clone(),
            join,
            key: options.access_key()?,
            routes: options.routes.iter().map(|route| route.carrier()).collect(),
            unix_s: (options.unix_ms / 1_000.0) as u64,
            random,
        };
        let client = machine::Client::new(now, plan).map_err(|error| error.to_string())?;
        Ok(Played {
            client,
            routes: options.routes.clone(),
            held: Held::default(),
            pointer: None,
            press_ticks: 0,
            buf: Vec::new(),
            attempt: Attempt::default(),
            lane: 0,
            wake_at: Some(now),
            shown: Tick::ZERO,
            events: 0,
            status: None,
            hud: None,
            diagnostics_at: now,
            memory: G::Memory::default(),
            ghost_memory: G::Memory::default(),
            shapes: Vec::new(),
        })
    }

    fn carried(&mut self, now_us: f64, attempt: u32, carried: Carried<'_>) {
        self.client.handle(time(now_us), Input::Carrier(Attempt(attempt), carried));
    }

    fn route_name(&self) -> &'static str {
        self.routes.get(self.client.route()).map_or("", |route| route.name())
    }

    fn poll(&mut self, now: Time) -> u32 {
        loop {
            let last = match self.client.poll_output(&mut self.buf) {
                Output::Dial(attempt, _) => {
                    self.attempt = attempt;
                    return wanted::DIAL;
                }
                Output::Datagram(attempt) => {
                    self.attempt = attempt;
                    return wanted::DATAGRAM;
                }
                Output::Stream(attempt, lane) => {
                    (self.attempt, self.lane) = (attempt, lane.0);
                    return wanted::STREAM;
                }
                Output::HangUp(attempt) => {
                    self.attempt = attempt;
                    return wanted::HANG_UP;
                }
                Output::WantInput(_) => {
                    let input = self.input();
                    self.client.handle(now, Input::Local(input));
                    continue;
                }
                Output::WakeAt(at) => {
                    self.wake_at = Some(at);
                    wanted::NOTHING
                }
                Output::Done => {
                    self.wake_at = None;
                    wanted::DONE
                }
            };
            return self.news(now).unwrap_or(last);
        }
    }

    fn input(&mut self) -> G::Input {
        let controls = Controls { held: self.held, pointer: self.pointer, action: self.press_ticks > 0 };
        self.press_ticks = self.press_ticks.saturating_sub(1);
        let played = self.client.side().and_then(|peer| peer.shown().zip(peer.seat()));
        played.map_or_else(G::nothing, |((_, state), seat)| state.input(seat, &controls))
    }

    /// Something for the page to show that it has not been told.
    fn news(&mut self, now: Time) -> Option<u32> {
        let status = Some(self.page_status());
        if status != self.status {
            self.status = status;
            return Some(wanted::STATUS);
        }
        let peer = self.client.side()?;
        let (tick, state) = peer.shown()?;
        let hud = Some(state.hud(peer.seat(), peer.roster()));
        if hud != self.hud {
            self.hud = hud;
            return Some(wanted::HUD);
        }
        if tick != self.shown {
            // After a session has begun anew, or a step back, there is nothing to hear.
            self.events = if tick > self.shown { state.events(self.shown) } else { 0 };
            self.shown = tick;
            return Some(wanted::FRAME);
        }
        if now >= self.diagnostics_at {
            self.diagnostics_at = now.plus_micros(DIAGNOSTICS_US);
            return Some(wanted::DIAGNOSTICS);
        }
        None
    }

    fn page_status(&self) -> PageStatus {
        let peer = self.client.side();
        let around = Around {
            route: self.route_name(),
            attempt: self.client.attempt().0,
            seat: peer.and_then(Peer::seat).map(|seat| seat.0),
            progress: peer.map_or(0.0, Peer::progress),
            ticks_per_second: G::RATE.per_second(),
            watchers: peer.map_or(0, Peer::watchers),
            restarts: self.client.totals().restarts,
        };
        PageStatus::new(self.client.status(), around)
    }

    fn frame(&mut self) -> Vec<f32> {
        let Some((_, state)) = self.client.side().and_then(Peer::shown) else { return Vec::new() };
        numbers(state, &mut self.memory, &mut self.shapes)
    }

    fn ghost(&mut self) -> Vec<f32> {
        let Some((_, state)) = self.client.side().and_then(Peer::confirmed) else { return Vec::new() };
        numbers(state, &mut self.ghost_memory, &mut self.shapes)
    }
}

/// The shapes of a state, as numbers.
pub(crate) fn numbers<G: OnScreen>(state: &G, memory: &mut G::Memory, shapes: &mut Vec<Shape>) -> Vec<f32> {
    shapes.clear();
    state.draw(memory, shapes);
    shapes.iter().flat_map(|shape| shape.numbers()).collect()
}
