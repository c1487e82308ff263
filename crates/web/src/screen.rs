//! What a game needs besides its rules to be played in a page: how its state looks, and what keys and fingers mean.

use sametick_lockstep::message::Seated;
use sametick_sim::{Game, Seat, Tick};
use serde::Serialize;

use crate::options::Options;

/// What a player does with the machine's controls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controls {
    /// Keys that are down.
    pub held: Held,
    /// Where the pointer is, in the units of frames.
    pub pointer: Option<[f32; 2]>,
    /// The action button was pressed a moment ago.
    pub action: bool,
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
    /// 0 a circle, 1 a bar that somebody moves, 2 a bar that nobody does.
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
}

impl Shape {
    /// Its numbers.
    pub fn numbers(self) -> [f32; 8] {
        let Shape { id, kind, x, y, w, h, epoch, tint } = self;
        [id, kind, x, y, w, h, epoch, tint]
    }
}

/// A game that can be played in a page.
pub trait OnScreen: Game {
    /// What is shown in words and numbers.
    type Hud: PartialEq + Serialize;
    /// What has to be remembered from one frame to the next.
    type Memory: Default;

    /// What a session begins with, and how many seats it has.
    fn setup(options: &Options, seed: u64) -> (Self::Setup, u16);

    /// The shapes of a state.
    fn draw(&self, memory: &mut Self::Memory, shapes: &mut Vec<Shape>);

    /// What there is to hear since a tick, as bits.
    fn events(&self, since: Tick) -> u32;

    /// What is shown in words and numbers.
    fn hud(&self, own: Option<Seat>, roster: &[Seated]) -> Self::Hud;

    /// What the controls mean for a seat in this state.
    fn input(&self, seat: Seat, controls: &Controls) -> Self::Input;

    /// What is done on a seat while there is nothing to see yet.
    fn nothing() -> Self::Input;
}
