//! The interface of a game to a page: drawing, sounds and controls.

use sametick_client::{SessionCopy, Side};
use sametick_lockstep::message::Seated;
use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_sim::{Game, Seat, Tick, TickRate, Time};
use serde::Serialize;

use crate::diagnostics::Figures;
use crate::options::{COMMIT, Options};
use crate::persona::Persona;

/// The state of the player's controls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controls {
    /// Keys that are down.
    pub held: Held,
    /// The position of the pointer, in the units of frames.
    pub pointer: Option<[f32; 2]>,
    /// The action button was pressed a moment ago.
    pub action: bool,
    /// What to build: 0 nothing, 1 and 2 a kind, 3 remove.
    pub build: u32,
}

/// Keys that are down, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held(pub u32);

impl Held {
    /// Up, down, left and right.
    pub const UP: u32 = 1;
    /// See [`Held::UP`].
    pub const DOWN: u32 = 2;
    /// See [`Held::UP`].
    pub const LEFT: u32 = 4;
    /// See [`Held::UP`].
    pub const RIGHT: u32 = 8;
    /// The action button.
    pub const ACTION: u32 = 16;

    /// Whether a key is down.
    pub fn has(self, key: u32) -> bool {
        self.0 & key != 0
    }
}

/// A shape of a frame. Its numbers go to JavaScript in this order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The id of the thing, the same in every frame.
    pub id: f32,
    /// What it is: see the table at the top of this crate.
    pub kind: f32,
    /// Its middle.
    pub x: f32,
    /// Its middle.
    pub y: f32,
    /// Its width, or diameter.
    pub w: f32,
    /// Its height.
    pub h: f32,
    /// Changes when the shape jumps instead of moving.
    pub epoch: f32,
    /// Its player: a seat, or -1.
    pub tint: f32,
    /// The direction it faces, in radians.
    pub angle: f32,
    /// Its health or the like, from 0 to 1.
    pub level: f32,
}

impl Shape {
    /// How many numbers it has.
    pub const NUMBERS: usize = 10;

    /// A shape without player and direction, at full level.
    pub fn new(id: f32, kind: f32, [x, y]: [f32; 2], [w, h]: [f32; 2]) -> Shape {
        Shape { id, kind, x, y, w, h, epoch: 0.0, tint: -1.0, angle: 0.0, level: 1.0 }
    }

    /// Its numbers.
    pub fn numbers(self) -> [f32; Shape::NUMBERS] {
        let Shape { id, kind, x, y, w, h, epoch, tint, angle, level } = self;
        [id, kind, x, y, w, h, epoch, tint, angle, level]
    }
}

/// The part of a side's status that is not the client's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// The player's seat.
    pub seat: Option<u16>,
    /// The progress of catching up, from 0 to 1.
    pub progress: f32,
    /// The number of spectators.
    pub spectators: u16,
    /// The speed of the session in percent of its rate: less than 100 if the server is overloaded.
    pub pace: u8,
}

/// A player's side of a session that a page can show.
pub trait OnScreen: Side {
    /// The HUD.
    type Hud: Serialize;
    /// State that is kept between frames.
    type Memory: Default;

    /// The frame rate.
    const FRAMES: TickRate;

    /// The parameters of the join.
    fn join(options: &Options, seed: u64) -> Self::JoinAs;

    /// The number of the frame to show now; none before the first.
    fn frame(&self, now: Time) -> Option<Tick>;

    /// When the next frame is due, if nothing else happens.
    fn next_frame(&self, now: Time) -> Option<Time>;

    /// Advances to a frame after `since`: returns its sound events, as bits.
    fn look(&mut self, now: Time, since: Tick, memory: &mut Self::Memory) -> u32;

    /// The shapes of that frame.
    fn draw(&self, memory: &mut Self::Memory, shapes: &mut Vec<Shape>);

    /// The shapes of the confirmed state.
    fn draw_ghost(&self, memory: &mut Self::Memory, shapes: &mut Vec<Shape>);

    /// The HUD.
    fn hud(&self, memory: &Self::Memory) -> Option<Self::Hud>;

    /// The input for these controls.
    fn input(&self, memory: &mut Self::Memory, controls: &Controls) -> Self::Input;

    /// The part of its status that is not the client's.
    fn place(&self) -> Place;

    /// Its diagnostics.
    fn figures(&self) -> Option<Figures>;

    /// Checks whether a copy can be offered to the session of this name; a sentence if not.
    fn check_copy(_copy: &SessionCopy, _session: &str) -> Result<(), String> {
        Err("a room cannot be brought: the server decides what happens in it".into())
    }

    /// The player's identity, where players have one.
    fn persona(&self) -> Option<Persona> {
        None
    }

    /// Switches to another character, where players have several.
    fn choose_character(&mut self, _name: &str) {}
}

/// A game whose state can be shown in a page.
pub trait Pictured: Game {
    /// The HUD.
    type Hud: Serialize;
    /// State that is kept between frames.
    type Memory: Default;

    /// The setup of a new session, and its number of seats.
    fn setup(options: &Options, seed: u64) -> (Self::Setup, u16);

    /// Advances to a state after `since`: returns its sound events, as bits. `confirmed` is the confirmed state.
    fn look(&self, confirmed: &Self, own: Option<Seat>, since: Tick, memory: &mut Self::Memory) -> u32;

    /// The shapes of a state.
    fn draw(&self, own: Option<Seat>, memory: &mut Self::Memory, shapes: &mut Vec<Shape>);

    /// The HUD.
    fn hud(&self, own: Option<Seat>, roster: &[Seated], memory: &Self::Memory) -> Self::Hud;

    /// The input of a seat for these controls in this state.
    fn input(&self, seat: Seat, memory: &mut Self::Memory, controls: &Controls) -> Self::Input;

    /// The input while there is nothing to see yet.
    fn nothing() -> Self::Input;
}

/// In lockstep the predicted state is on screen, a frame for each tick.
impl<G: Pictured> OnScreen for Peer<G> {
    type Hud = G::Hud;
    type Memory = G::Memory;
    const FRAMES: TickRate = G::RATE;

    fn join(options: &Options, seed: u64) -> JoinAs<G> {
        let (setup, seats) = G::setup(options, seed);
        JoinAs {
            setup,
            seed,
            seats,
            wait_for: 1,
            name: options.name.clone(),
            commit: COMMIT.into(),
            watch: options.watch,
            listed: options.listed,
        }
    }

    fn frame(&self, _: Time) -> Option<Tick> {
        self.shown().map(|(tick, _)| tick)
    }

    fn next_frame(&self, _: Time) -> Option<Time> {
        None
    }

    fn look(&mut self, _: Time, since: Tick, memory: &mut G::Memory) -> u32 {
        let (Some((_, state)), Some((_, confirmed))) = (self.shown(), self.confirmed()) else { return 0 };
        state.look(confirmed, self.seat(), since, memory)
    }

    fn draw(&self, memory: &mut G::Memory, shapes: &mut Vec<Shape>) {
        if let Some((_, state)) = self.shown() {
            state.draw(self.seat(), memory, shapes);
        }
    }

    fn draw_ghost(&self, memory: &mut G::Memory, shapes: &mut Vec<Shape>) {
        if let Some((_, state)) = self.confirmed() {
            state.draw(self.seat(), memory, shapes);
        }
    }

    fn hud(&self, memory: &G::Memory) -> Option<G::Hud> {
        self.shown().map(|(_, state)| state.hud(self.seat(), self.roster(), memory))
    }

    fn input(&self, memory: &mut G::Memory, controls: &Controls) -> G::Input {
        let played = self.shown().zip(self.seat());
        played.map_or_else(G::nothing, |((_, state), seat)| state.input(seat, memory, controls))
    }

    fn place(&self) -> Place {
        let seat = self.seat().map(|seat| seat.0);
        Place { seat, progress: self.progress(), spectators: self.spectators(), pace: 100 }
    }

    fn figures(&self) -> Option<Figures> {
        Figures::of_peer(self)
    }

    fn check_copy(copy: &SessionCopy, session: &str) -> Result<(), String> {
        copy.check::<G>(session).map_err(|unfit| unfit.to_string())
    }
}
