//! Catch: players walk on a field and catch coins.
#![no_std]

extern crate alloc;

mod pilot;
pub mod room;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sametick_sim::{BuildId, Game, Inputs, Rng, Schema, Seat, TickRate};
use serde::{Deserialize, Serialize};

pub use pilot::autopilot;

/// A place on the field, in centimetres.
pub type Place = [i32; 2];

/// How long a side of the field is.
pub const SIZE: i32 = 10_000;

/// How far a player walks in a tick: almost five metres a second.
pub const SPEED: i32 = 16;

/// The same, along each side of a diagonal.
const DIAGONAL: i32 = 11;

/// How close a coin is caught, along each side.
const REACH: u32 = 80;

/// What a session starts from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Setup {
    /// Where all chance comes from.
    pub seed: u64,
    /// How many coins lie on the field.
    pub coins: u16,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { seed: 0, coins: 200 }
    }
}

/// What one player does in one tick. Only the signs count: right and down are positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Input {
    /// To the left or to the right.
    pub x: i8,
    /// Up or down.
    pub y: i8,
}

/// The state: everything that matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Catch {
    /// How many coins there should be.
    pub wanted: u16,
    /// Those there are, the oldest first.
    pub coins: Vec<Coin>,
    /// The number of the next one.
    pub next_coin: u32,
    /// Who is there.
    pub players: BTreeMap<Seat, Player>,
    /// What was caught in the last step.
    pub caught: Vec<Caught>,
    /// All chance there is.
    pub rng: Rng,
}

/// A coin on the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Coin {
    /// Its number: no other coin ever has it.
    pub id: u32,
    /// Where it lies.
    pub at: Place,
    /// What it is worth to whoever catches it.
    pub worth: u8,
}

/// Someone who plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Player {
    /// Where they are.
    pub at: Place,
    /// Where they look, in 256 directions from the right over downwards.
    pub facing: u8,
    /// What they did last: they go on doing it until they are heard of again.
    pub held: Input,
    /// How many coins they have caught.
    pub coins: u16,
    /// What these are worth.
    pub worth: u16,
}

/// Somebody has caught a coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Caught {
    /// Who.
    pub by: Seat,
    /// Where.
    pub at: Place,
}

impl Game for Catch {
    const NAME: &'static str = "catch";
    const RATE: TickRate = TickRate::hz(30);
    const BUILD: BuildId = sametick_sim::build_id!();
    type Setup = Setup;
    type Input = Input;

    fn new(setup: &Setup) -> Catch {
        let (rng, players) = (Rng::new(setup.seed), BTreeMap::new());
        let mut game =
            Catch { wanted: setup.coins, coins: Vec::new(), next_coin: 0, players, caught: Vec::new(), rng };
        game.scatter();
        game
    }

    fn step(&mut self, inputs: &Inputs<Input>) {
        self.caught.clear();
        self.players.retain(|seat, _| inputs.get(*seat).is_some_and(|row| !row.joined));
        for row in inputs {
            let new = || Player { at: anywhere(&mut self.rng), ..Player::default() };
            let player = self.players.entry(row.seat).or_insert_with(new);
            player.held = *row.input_or(&player.held);
            walk(&mut player.at, &mut player.facing, player.held);
        }
        self.catch();
        self.scatter();
        self.players.retain(|seat, _| inputs.get(*seat).is_some_and(|row| !row.left));
    }
}

impl Catch {
    /// Of two who reach a coin in one tick, the lower seat gets it.
    fn catch(&mut self) {
        for (seat, player) in &mut self.players {
            self.coins.retain(|coin| {
                let is_caught = (0..2).all(|axis| player.at[axis].abs_diff(coin.at[axis]) < REACH);
                if is_caught {
                    player.coins = player.coins.saturating_add(1);
                    player.worth = player.worth.saturating_add(coin.worth.into());
                    self.caught.push(Caught { by: *seat, at: coin.at });
                }
                !is_caught
            });
        }
    }

    /// As many coins as there should be.
    fn scatter(&mut self) {
        while self.coins.len() < usize::from(self.wanted) {
            let worth = self.rng.between(1, 5) as u8;
            self.coins.push(Coin { id: self.next_coin, at: anywhere(&mut self.rng), worth });
            self.next_coin += 1;
        }
    }
}

/// One tick of walking. The step does it, and a player's own screen predicts it with the same code.
pub(crate) fn walk(at: &mut Place, facing: &mut u8, input: Input) {
    const FACING: [[u8; 3]; 3] = [[160, 192, 224], [128, 0, 0], [96, 64, 32]];
    let (x, y) = (i32::from(input.x.signum()), i32::from(input.y.signum()));
    let speed = if x != 0 && y != 0 { DIAGONAL } else { SPEED };
    let stay = |part: i32| part.clamp(0, SIZE);
    *at = [stay(at[0].saturating_add(x * speed)), stay(at[1].saturating_add(y * speed))];
    if (x, y) != (0, 0) {
        *facing = FACING[(y + 1) as usize][(x + 1) as usize];
    }
}

fn anywhere(rng: &mut Rng) -> Place {
    [rng.between(0, SIZE), rng.between(0, SIZE)]
}
