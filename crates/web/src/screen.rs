//! What a game needs besides its rules to be played in a page: how it looks, and what keys and fingers mean.

use sametick_client::{SessionCopy, Side};
use sametick_lockstep::message::Seated;
use sametick_lockstep::peer::{JoinAs, Peer};
use sametick_sim::{Game, Seat, Tick, TickRate, Time};
use serde::Serialize;

use crate::diagnostics::Figures;
use crate::options::{COMMIT, Options};
use crate::persona::Persona;

/// What a player does with the machine's controls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controls {
    /// Keys that are down.
    pub held: Held,
    /// Where the pointer is, in the units of frames.
    pub pointer: Option<[f32; 2]>,
    /// The action button was pressed a moment ago.
    pub action: bool,
    /// What is built: 0 nothing, 1 and 2 a kind, 3 it is taken away.
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
    /// The same thing has the same number in every frame.
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
    /// Another number: it has not moved here, it is here.
    pub epoch: f32,
    /// Whose it is: a seat, or -1.
    pub tint: f32,
    /// Where it looks, in radians.
    pub angle: f32,
    /// How much is left of it, from 0 to 1.
    pub level: f32,
}

impl Shape {
    /// How many numbers it has.
    pub const NUMBERS: usize = 10;

    /// Something whole that is nobody's and looks nowhere.
    pub fn new(id: f32, kind: f32, [x, y]: [f32; 2], [w, h]: [f32; 2]) -> Shape {
        Shape { id, kind, x, y, w, h, epoch: 0.0, tint: -1.0, angle: 0.0, level: 1.0 }
    }

    /// Its numbers.
    pub fn numbers(self) -> [f32; Shape::NUMBERS] {
        let Shape { id, kind, x, y, w, h, epoch, tint, angle, level } = self;
        [id, kind, x, y, w, h, epoch, tint, angle, level]
    }
}

/// What is told of a player's side besides its status.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// Where the player sits.
    pub seat: Option<u16>,
    /// How much is caught up with, from 0 to 1.
    pub progress: f32,
    /// How many watch.
    pub watchers: u16,
    /// How fast the session goes, in percent of its rate: less than 100 where the server has too much to do.
    pub pace: u8,
}

/// A player's side of a session that a page can show.
pub trait OnScreen: Side {
    /// What is shown in words and numbers.
    type Hud: Serialize;
    /// What has to be remembered from one frame to the next.
    type Memory: Default;

    /// How many frames there are.
    const FRAMES: TickRate;

    /// How a page takes part.
    fn join(options: &Options, seed: u64) -> Self::JoinAs;

    /// The number of the frame to show now; none while there is nothing to see.
    fn frame(&self, now: Time) -> Option<Tick>;

    /// When there is another one, if nothing else happens.
    fn next_frame(&self, now: Time) -> Option<Time>;

    /// Looks at a frame that comes after `since`: what there is to hear, as bits.
    fn look(&mut self, now: Time, since: Tick, memory: &mut Self::Memory) -> u32;

    /// The shapes of what was looked at.
    fn draw(&self, memory: &mut Self::Memory, shapes: &mut Vec<Shape>);

    /// The shapes of what is known for certain.
    fn draw_ghost(&self, memory: &mut Self::Memory, shapes: &mut Vec<Shape>);

    /// What is shown in words and numbers.
    fn hud(&self, memory: &Self::Memory) -> Option<Self::Hud>;

    /// What the controls mean now.
    fn input(&self, memory: &mut Self::Memory, controls: &Controls) -> Self::Input;

    /// What is told of it besides its status.
    fn place(&self) -> Place;

    /// How it is doing.
    fn figures(&self) -> Option<Figures>;

    /// Whether a copy can be brought to the session of this name; a sentence if not.
    fn check_copy(_copy: &SessionCopy, _session: &str) -> Result<(), String> {
        Err("nobody brings a room: the server decides what happens in it".into())
    }

    /// Who the player is, where players are known.
    fn persona(&self) -> Option<Persona> {
        None
    }

    /// Plays on as another character, where players have several.
    fn choose_character(&mut self, _name: &str) {}
}

/// A game whose state can be shown in a page.
pub trait Pictured: Game {
    /// What is shown in words and numbers.
    type Hud: Serialize;
    /// What has to be remembered from one frame to the next.
    type Memory: Default;

    /// What a session begins with, and how many seats it has.
    fn setup(options: &Options, seed: u64) -> (Self::Setup, u16);

    /// Looks at a state that comes after `since`: what there is to hear, as bits. `confirmed` is what is known for certain.
    fn look(&self, confirmed: &Self, own: Option<Seat>, since: Tick, memory: &mut Self::Memory) -> u32;

    /// The shapes of a state.
    fn draw(&self, own: Option<Seat>, memory: &mut Self::Memory, shapes: &mut Vec<Shape>);

    /// What is shown in words and numbers.
    fn hud(&self, own: Option<Seat>, roster: &[Seated], memory: &Self::Memory) -> Self::Hud;

    /// What the controls mean for a seat in this state.
    fn input(&self, seat: Seat, memory: &mut Self::Memory, controls: &Controls) -> Self::Input;

    /// What is done on a seat while there is nothing to see yet.
    fn nothing() -> Self::Input;
}

/// In lockstep the state is on screen, a frame for each tick.
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
        Place { seat, progress: self.progress(), watchers: self.watchers(), pace: 100 }
    }

    fn figures(&self) -> Option<Figures> {
        Figures::of_peer(self)
    }

    fn check_copy(copy: &SessionCopy, session: &str) -> Result<(), String> {
        copy.check::<G>(session).map_err(|unfit| unfit.to_string())
    }
}
