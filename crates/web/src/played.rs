//! A game in a page: the client, the player's controls, and the changes that the page has not been told of yet.

use std::cell::RefCell;

use sametick_client::{Attempt, Carried, Client, Input, Output, Plan, SessionCopy};
use sametick_sim::{Tick, Time};
use sametick_wire::identity::Token;
use sametick_wire::netem::Profile;

use crate::diagnostics::Counted;
use crate::options::{Options, Route};
use crate::persona::Persona;
use crate::screen::{Controls, Held, OnScreen, Shape};
use crate::status::{Around, PageStatus};
use crate::{time, to_json};

/// A press of the button counts for this many ticks, so that it survives a lost input.
const PRESS_TICKS: u32 = 5;

/// The size of the message log: some minutes of pong, most of a minute in a crowded room.
const MESSAGES_BYTES: usize = 1 << 20;

/// The interval of diagnostics.
const DIAGNOSTICS_US: u64 = 250_000;

/// The results of [`Playing::poll`].
pub(crate) mod wanted {
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
    pub const WHO: u32 = 10;
}

/// State between client and page that does not depend on the game.
pub(crate) struct Desk {
    pub held: Held,
    pub pointer: Option<[f32; 2]>,
    pub build: u32,
    /// Ticks for which a press still counts.
    press_ticks: u32,
    pub buf: Vec<u8>,
    pub attempt: Attempt,
    pub lane: u8,
    pub wake_at: Option<Time>,
    /// The number of the last frame.
    pub shown: Tick,
    pub events: u32,
    pub status: Option<PageStatus>,
    pub persona: Option<Persona>,
    pub hud: String,
    pub diagnostics: String,
}

impl Desk {
    pub fn press(&mut self) {
        self.press_ticks = PRESS_TICKS;
    }

    fn controls(&mut self) -> Controls {
        let action = self.press_ticks > 0;
        self.press_ticks = self.press_ticks.saturating_sub(1);
        Controls { held: self.held, pointer: self.pointer, action, build: self.build }
    }
}

/// A running game, of any type.
pub(crate) trait Playing {
    fn desk(&self) -> &Desk;
    fn desk_mut(&mut self) -> &mut Desk;
    fn carried(&mut self, now: Time, attempt: Attempt, carried: Carried<'_>);
    fn timeout(&mut self, now: Time);
    fn poll(&mut self, now: Time) -> u32;
    fn come_as(&mut self, token: Token);
    fn choose_character(&mut self, name: &str);
    fn set_netem(&mut self, profile: Option<Profile>);
    fn drop_link(&mut self, now: Time, for_us: u64);
    fn leave(&mut self, now: Time);
    fn route_name(&self) -> &'static str;
    fn claim(&self) -> Option<Vec<u8>>;
    fn messages(&self, now: Time, unix_us: u64) -> String;
    fn bring(&mut self, copy: SessionCopy) -> Result<(), String>;
    fn copy(&self) -> Option<SessionCopy>;
    fn frame(&mut self) -> Vec<f32>;
    fn ghost(&mut self) -> Vec<f32>;
}

/// A running game.
pub(crate) struct Played<S: OnScreen> {
    client: Client<S>,
    session: String,
    routes: Vec<Route>,
    desk: Desk,
    diagnostics_at: Time,
    counted: Counted,
    /// A frame is ready and the page has not been told of it yet.
    fresh: bool,
    memory: S::Memory,
    ghost_memory: S::Memory,
    shapes: Vec<Shape>,
}

impl<S: OnScreen> Played<S> {
    pub fn new(options: &Options) -> Result<Played<S>, String> {
        let (now, random) = (time(options.now_us), options.random()?);
        // A part of the randomness is for the seed of the session, which becomes public.
        let [.., a, b, c, d, e, f, g, h] = random;
        let plan = Plan {
            session: options.session.clone(),
            join: S::join(options, options.seed.unwrap_or(u64::from_le_bytes([a, b, c, d, e, f, g, h]))),
            key: options.access_key()?,
            pass: options.pass()?,
            routes: options.routes.iter().map(|route| route.carrier()).collect(),
            unix_s: (options.unix_ms / 1_000.0) as u64,
            random,
        };
        let desk = Desk {
            held: Held::default(),
            pointer: None,
            build: 0,
            press_ticks: 0,
            buf: Vec::new(),
            attempt: Attempt::default(),
            lane: 0,
            wake_at: Some(now),
            shown: Tick::ZERO,
            events: 0,
            status: None,
            persona: None,
            hud: String::new(),
            diagnostics: String::new(),
        };
        let mut client = Client::new(now, plan).map_err(|error| error.to_string())?;
        client.keep_messages(MESSAGES_BYTES);
        options.token().into_iter().for_each(|token| client.come_as(token));
        options.claim().into_iter().for_each(|claim| client.come_back(claim));
        Ok(Played {
            client,
            session: options.session.clone(),
            routes: options.routes.clone(),
            desk,
            diagnostics_at: now,
            counted: Counted::default(),
            fresh: false,
            memory: S::Memory::default(),
            ghost_memory: S::Memory::default(),
            shapes: Vec::new(),
        })
    }

    /// A change that the page has not been told of.
    fn news(&mut self, now: Time) -> Option<u32> {
        let status = Some(self.page_status());
        if status != self.desk.status {
            self.desk.status = status;
            return Some(wanted::STATUS);
        }
        let side = self.client.side_mut()?;
        let persona = side.persona();
        if persona != self.desk.persona {
            self.desk.persona = persona;
            return Some(wanted::WHO);
        }
        let frame = side.frame(now)?;
        let due = now >= self.diagnostics_at;
        if frame != self.desk.shown && !self.fresh {
            // After a restart of the session, or a step back, there are no sound events.
            let heard = side.look(now, self.desk.shown, &mut self.memory);
            self.desk.events = if frame > self.desk.shown { heard } else { 0 };
            (self.desk.shown, self.fresh) = (frame, true);
        }
        if self.fresh || due {
            let hud = to_json(&side.hud(&self.memory));
            if hud != self.desk.hud {
                self.desk.hud = hud;
                return Some(wanted::HUD);
            }
        }
        if core::mem::take(&mut self.fresh) {
            return Some(wanted::FRAME);
        }
        if due {
            self.diagnostics_at = now.plus_micros(DIAGNOSTICS_US);
            let figures = side.figures()?;
            self.counted.count(now, &figures);
            let link = self.client.link_stats().unwrap_or_default();
            self.desk.diagnostics = to_json(&figures.with(self.client.totals(), link, &self.counted));
            return Some(wanted::DIAGNOSTICS);
        }
        None
    }

    /// When there is a new frame, if nothing happens before.
    fn next_frame(&self, now: Time) -> Option<Time> {
        self.client.side().and_then(|side| side.next_frame(now))
    }

    fn page_status(&self) -> PageStatus {
        let place = self.client.side().map(S::place).unwrap_or_default();
        let around = Around {
            route: self.route_name(),
            attempt: self.client.attempt().0,
            place,
            ticks_per_second: S::FRAMES.per_second(),
            restarts: self.client.totals().restarts,
            brought: self.client.side().and_then(S::brought),
        };
        PageStatus::new(self.client.status(), around)
    }
}

impl<S: OnScreen> Playing for Played<S> {
    fn desk(&self) -> &Desk {
        &self.desk
    }

    fn desk_mut(&mut self) -> &mut Desk {
        &mut self.desk
    }

    fn carried(&mut self, now: Time, attempt: Attempt, carried: Carried<'_>) {
        self.client.handle(now, Input::Carrier(attempt, carried));
    }

    fn timeout(&mut self, now: Time) {
        self.client.handle(now, Input::Timeout);
    }

    fn poll(&mut self, now: Time) -> u32 {
        loop {
            let (attempt, wanted) = match self.client.poll_output(&mut self.desk.buf) {
                Output::Dial(attempt, _) => (attempt, wanted::DIAL),
                Output::Datagram(attempt) => (attempt, wanted::DATAGRAM),
                Output::Stream(attempt, lane) => {
                    self.desk.lane = lane.0;
                    (attempt, wanted::STREAM)
                }
                Output::HangUp(attempt) => (attempt, wanted::HANG_UP),
                Output::WantInput(_) => {
                    let controls = self.desk.controls();
                    let Some(side) = self.client.side() else { return wanted::NOTHING };
                    let input = side.input(&mut self.memory, &controls);
                    self.client.handle(now, Input::Local(input));
                    continue;
                }
                Output::WakeAt(at) => {
                    self.desk.wake_at = Some(self.next_frame(now).map_or(at, |frame_at| frame_at.min(at)));
                    return self.news(now).unwrap_or(wanted::NOTHING);
                }
                Output::Done => {
                    self.desk.wake_at = None;
                    return self.news(now).unwrap_or(wanted::DONE);
                }
            };
            self.desk.attempt = attempt;
            return wanted;
        }
    }

    fn come_as(&mut self, token: Token) {
        self.client.come_as(token);
    }

    fn choose_character(&mut self, name: &str) {
        if let Some(side) = self.client.side_mut() {
            side.choose_character(name);
        }
    }

    fn set_netem(&mut self, profile: Option<Profile>) {
        self.client.set_netem(profile, 0);
    }

    fn drop_link(&mut self, now: Time, for_us: u64) {
        self.client.drop_link(now, for_us);
    }

    fn leave(&mut self, now: Time) {
        self.client.leave(now);
    }

    fn route_name(&self) -> &'static str {
        self.routes.get(self.client.route()).map_or("", |route| route.name())
    }

    fn claim(&self) -> Option<Vec<u8>> {
        self.client.side().and_then(S::claim)
    }

    fn messages(&self, now: Time, unix_us: u64) -> String {
        let lines = RefCell::new(String::new());
        let add = |line: &str| *lines.borrow_mut() += &format!("{line}\n");
        self.client.message_lines(
            |at| unix_us.saturating_sub(now.micros_since(at)),
            |dropped| add(&to_json(dropped)),
            |message| add(&to_json(message)),
        );
        lines.into_inner()
    }

    fn bring(&mut self, copy: SessionCopy) -> Result<(), String> {
        S::check_copy(&copy, &self.session)?;
        self.client.bring(copy);
        Ok(())
    }

    fn copy(&self) -> Option<SessionCopy> {
        self.client.copy()
    }

    fn frame(&mut self) -> Vec<f32> {
        self.shapes.clear();
        if let Some(side) = self.client.side() {
            side.draw(&mut self.memory, &mut self.shapes);
        }
        numbers(&self.shapes)
    }

    fn ghost(&mut self) -> Vec<f32> {
        self.shapes.clear();
        if let Some(side) = self.client.side() {
            side.draw_ghost(&mut self.ghost_memory, &mut self.shapes);
        }
        numbers(&self.shapes)
    }
}

/// Shapes as numbers.
pub(crate) fn numbers(shapes: &[Shape]) -> Vec<f32> {
    shapes.iter().flat_map(|shape| shape.numbers()).collect()
}
