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

/// A position on the field, in centimetres.
pub type Place = [i32; 2];

/// The length of a side of the field.
pub const SIZE: i32 = 10_000;

/// The distance a player walks in a tick: almost five metres a second.
pub const SPEED: i32 = 16;

/// The same, along each axis of a diagonal.
const DIAGONAL: i32 = 11;

/// The distance at which a coin is caught, along each axis.
const REACH: u32 = 80;

/// The setup of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Setup {
    /// The seed of all randomness.
    pub seed: u64,
    /// The number of coins on the field.
    pub coins: u16,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { seed: 0, coins: 200 }
    }
}

/// The input of a player in one tick. Only the signs count: right and down are positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Input {
    /// To the left or to the right.
    pub x: i8,
    /// Up or down.
    pub y: i8,
}

/// The state of the game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Catch {
    /// The number of coins there should be.
    pub wanted: u16,
    /// The coins, the oldest first.
    pub coins: Vec<Coin>,
    /// The number of the next coin.
    pub next_coin: u32,
    /// The players.
    pub players: BTreeMap<Seat, Player>,
    /// The coins caught in the last step.
    pub caught: Vec<Caught>,
    /// The source of all randomness.
    pub rng: Rng,
}

/// A coin on the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Coin {
    /// Its number, never used again.
    pub id: u32,
    /// Its position.
    pub at: Place,
    /// Its value.
    pub worth: u8,
}

/// A player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Player {
    /// The player's position.
    pub at: Place,
    /// The direction of view: one of 256, clockwise from the right.
    pub facing: u8,
    /// The last input, which continues until the next one arrives.
    pub held: Input,
    /// The number of coins caught.
    pub coins: u16,
    /// Their total value.
    pub worth: u16,
}

/// A player has caught a coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct Caught {
    /// The player.
    pub by: Seat,
    /// The position.
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

    /// Adds coins up to the wanted number.
    fn scatter(&mut self) {
        while self.coins.len() < usize::from(self.wanted) {
            let worth = self.rng.between(1, 5) as u8;
            self.coins.push(Coin { id: self.next_coin, at: anywhere(&mut self.rng), worth });
            self.next_coin += 1;
        }
    }
}

/// One tick of walking, for the step and for the client's prediction.
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
