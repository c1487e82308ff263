//! The client, as an object for JavaScript.

use sametick_arena::Arena;
use sametick_client::{Attempt, Carried};
use sametick_lockstep::peer::Peer;
use sametick_pong::Pong;
use sametick_room::View;
use sametick_wire::LaneId;
use sametick_wire::hex::to_hex;
use sametick_wire::identity::Token;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::copies;
use crate::options::{Mode, Options};
use crate::played::{Played, Playing};
use crate::screen::Held;
use crate::{time, to_json};

/// A player in a page, from dialling to leaving. All times are microseconds on one clock that never goes back.
#[wasm_bindgen]
pub struct Client {
    played: Box<dyn Playing>,
}

#[wasm_bindgen]
impl Client {
    /// Creates a client, which dials at once. Options are JSON; throws a sentence if they are invalid.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str) -> Result<Client, String> {
        let options = Options::from_json(options)?;
        let played: Box<dyn Playing> = match (options.game.as_str(), options.mode) {
            ("pong", Mode::Lockstep) => Box::new(Played::<Peer<Pong>>::new(&options)?),
            ("arena", Mode::Lockstep) => Box::new(Played::<Peer<Arena>>::new(&options)?),
            ("arena", Mode::Room) => Box::new(Played::<View<Arena>>::new(&options)?),
            ("pong", Mode::Room) => return Err("pong is not played in rooms".into()),
            (other, _) => return Err(format!("there is no game called {other} in this page")),
        };
        Ok(Client { played })
    }

    /// The server's answer to the hello.
    pub fn answer(&mut self, now_us: f64, attempt: u32, bytes: &[u8]) {
        self.played.carried(time(now_us), Attempt(attempt), Carried::Answer(bytes));
    }

    /// A datagram.
    pub fn datagram(&mut self, now_us: f64, attempt: u32, bytes: &[u8]) {
        self.played.carried(time(now_us), Attempt(attempt), Carried::Datagram(bytes));
    }

    /// A carrier has extra sockets for datagrams from now on, or has none any more.
    pub fn datagrams(&mut self, now_us: f64, attempt: u32, carried: bool) {
        self.played.carried(time(now_us), Attempt(attempt), Carried::Datagrams(carried));
    }

    /// The next bytes of a lane.
    pub fn stream(&mut self, now_us: f64, attempt: u32, lane: u8, bytes: &[u8]) {
        self.played.carried(time(now_us), Attempt(attempt), Carried::Stream(LaneId(lane), bytes));
    }

    /// A carrier has ended or could not be opened.
    pub fn gone(&mut self, now_us: f64, attempt: u32, why: &str) {
        self.played.carried(time(now_us), Attempt(attempt), Carried::Gone(why));
    }

    /// The time of [`Client::wake_at`] has come.
    pub fn timeout(&mut self, now_us: f64) {
        self.played.timeout(time(now_us));
    }

    /// The controls: 1 up, 2 down, 4 left, 8 right, 16 the action button; the pointer in the units of frames, NaN if it
    /// is nowhere; and what to build: 0 nothing, 1 a wall, 2 a crate, 3 remove.
    pub fn controls(&mut self, held: u32, x: f32, y: f32, build: u32) {
        let desk = self.played.desk_mut();
        desk.held = Held(held);
        desk.pointer = (x.is_finite() && y.is_finite()).then_some([x, y]);
        desk.build = build;
    }

    /// The action button went down.
    pub fn press(&mut self) {
        self.played.desk_mut().press();
    }

    /// Uses this identity token from the next connection on. An invalid token changes nothing.
    pub fn come_as(&mut self, token: &str) {
        if let Some(token) = Token::from_hex(token) {
            self.played.come_as(token);
        }
    }

    /// Switches to another character.
    pub fn choose_character(&mut self, name: &str) {
        self.played.choose_character(name);
    }

    /// Puts a simulated bad network in front of the link, such as "rtt=100ms,jitter=20ms,loss=5%"; none if empty.
    /// Throws a sentence.
    pub fn netem(&mut self, profile: &str) -> Result<(), String> {
        let profile = match profile {
            "" => None,
            text => Some(text.parse().map_err(|error| format!("{error}"))?),
        };
        self.played.set_netem(profile);
        Ok(())
    }

    /// Cuts the connection and dials again after this time.
    pub fn drop(&mut self, now_us: f64, for_ms: f64) {
        self.played.drop_link(time(now_us), (for_ms * 1_000.0) as u64);
    }

    /// Leaves for good.
    pub fn leave(&mut self, now_us: f64) {
        self.played.leave(time(now_us));
    }

    /// The next thing to do: 0 nothing until `wake_at`, 1 dial `route` as `attempt` with `bytes` as the hello, 2 send
    /// the datagram `bytes`, 3 send `bytes` on `lane`, 4 hang up `attempt`, 5 show `frame`, 6 show `status`, 7 show
    /// `hud`, 8 show `diagnostics`, 9 nothing ever again, 10 store `who`.
    pub fn poll(&mut self, now_us: f64) -> u32 {
        self.played.poll(time(now_us))
    }

    /// See [`Client::poll`].
    pub fn attempt(&self) -> u32 {
        self.played.desk().attempt.0
    }

    /// See [`Client::poll`].
    pub fn route(&self) -> String {
        self.played.route_name().into()
    }

    /// See [`Client::poll`].
    pub fn lane(&self) -> u8 {
        self.played.desk().lane
    }

    /// See [`Client::poll`].
    pub fn bytes(&self) -> Vec<u8> {
        self.played.desk().buf.clone()
    }

    /// When to call `timeout` at the latest; infinite if never.
    pub fn wake_at(&self) -> f64 {
        self.played.desk().wake_at.map_or(f64::INFINITY, |at| at.as_micros() as f64)
    }

    /// The number of the frame: its tick in lockstep.
    pub fn tick(&self) -> u32 {
        self.played.desk().shown.0
    }

    /// The shapes on screen, ten numbers each: id, kind, x, y, w, h, epoch, tint, angle, level.
    pub fn frame(&mut self) -> Vec<f32> {
        self.played.frame()
    }

    /// The shapes of the confirmed state, or of the newest update.
    pub fn ghost(&mut self) -> Vec<f32> {
        self.played.ghost()
    }

    /// The sound events since the last frame, as bits.
    pub fn events(&self) -> u32 {
        self.played.desk().events
    }

    /// The status of the client, as JSON.
    pub fn status(&self) -> String {
        to_json(&self.played.desk().status)
    }

    /// The claim that resumes the player's seat from another page, in hexadecimal; empty if there is none yet. It
    /// changes with every connection, which also counts as a change of [`Client::status`]. A secret.
    pub fn claim(&self) -> String {
        self.played.claim().map(|claim| to_hex(&claim)).unwrap_or_default()
    }

    /// The newest messages of this client and its server, a line of JSON each, as `--trace` of the command writes them.
    /// `unix_ms` is the present Unix time.
    pub fn messages(&self, now_us: f64, unix_ms: f64) -> String {
        self.played.messages(time(now_us), (unix_ms * 1_000.0) as u64)
    }

    /// Offers a copy of the session, in case the server has lost it. Call it before anything else; throws a sentence if
    /// the copy does not fit.
    pub fn bring(&mut self, save: &[u8]) -> Result<(), String> {
        self.played.bring(copies::from_bytes(save)?)
    }

    /// A copy of the confirmed state of the session, as the bytes of a save; empty if there is none, as in a room.
    pub fn copy(&self, unix_ms: f64) -> Vec<u8> {
        let copy = self.played.copy();
        copy.and_then(|copy| copies::to_bytes(&copy, unix_ms as u64)).unwrap_or_default()
    }

    /// The HUD, as JSON.
    pub fn hud(&self) -> String {
        self.played.desk().hud.clone()
    }

    /// The player's identity, as JSON.
    pub fn who(&self) -> String {
        to_json(&self.played.desk().persona)
    }

    /// Diagnostics of the connection and this machine, as JSON.
    pub fn diagnostics(&self) -> String {
        self.played.desk().diagnostics.clone()
    }
}
