//! What players in a room see of the game, and what their clients predict.

use alloc::vec::Vec;

use sametick_sim::replica::{
    Audience, Entity, Events, Hosted, Kind, PredictionError, Promise, Scene, ViewId,
};
use sametick_sim::{Game, Seat, Tick, TickRate, maths};
use serde::Deserialize;

use crate::pilot::towards;
use crate::{Catch, Caught, Input, Place, Player, SIZE, SPEED, walk};

/// The distance at which players hear a coin being caught.
const EARSHOT: f32 = 2_000.0;

/// A prediction error larger than this is corrected at once.
const SNAP: f32 = 150.0;

/// A player, as others see it. Its number is that of the seat.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(feature = "movement", zone(near within 2000 at 10 hz), zone(far within 6000 at 2 hz))]
pub struct Walker {
    /// The position.
    #[entity(place, step = 2)]
    pub at: Place,
    /// The direction of view.
    #[entity(turn = 256)]
    pub facing: u8,
    /// The number of coins caught.
    #[entity(zones = "near", hz = 2)]
    pub coins: u16,
    /// Their total value, visible to the player only.
    #[entity(owner)]
    pub worth: u16,
}

/// A coin. Its value is revealed when it is caught.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "coin", feature = "coins", zone(near within 3000 at 5 hz))]
pub struct Gold {
    /// Its position.
    #[entity(place)]
    pub at: Place,
}

/// The state that a client predicts for its player, exactly.
#[derive(Clone, Debug, PartialEq, Entity)]
pub struct Me {
    /// The player's position.
    #[entity(place)]
    pub at: Place,
    /// The direction of view.
    #[entity(turn = 256)]
    pub facing: u8,
    /// Whether the player walks.
    pub walks: bool,
}

/// Script commands: `{"movement": {"walk": {"x": 1, "y": 0}}}`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Commands of the feature "movement".
    Movement(Movement),
}

/// Commands of the feature "movement".
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Movement {
    /// Walks in this direction until the next command.
    Walk {
        /// To the left or to the right.
        x: i8,
        /// Up or down.
        y: i8,
    },
}

impl Hosted for Catch {
    const KINDS: &'static [Kind] = &[Walker::KIND, Gold::KIND];
    const UPDATES: TickRate = TickRate::hz(10);
    type Own = Me;
    type Event = Caught;
    type Command = Command;

    /// A spectator looks from the middle of the field.
    fn eye(&self, view: ViewId) -> Option<[f32; 3]> {
        let player = self.players.get(&Seat(view.0));
        Some(place_of(player.map_or([SIZE / 2; 2], |player| player.at)))
    }

    fn show(&self, scene: &mut Scene) {
        for (seat, player) in &self.players {
            let Player { at, facing, coins, worth, .. } = *player;
            scene.put(seat.0.into(), Some(ViewId(seat.0)), &Walker { at, facing, coins, worth });
        }
        for coin in &self.coins {
            scene.put(coin.id, None, &Gold { at: coin.at });
        }
    }

    fn own(&self, view: ViewId) -> Option<Me> {
        let player = self.players.get(&Seat(view.0))?;
        let walks = player.held != Input::default();
        Some(Me { at: player.at, facing: player.facing, walks })
    }

    fn predict(own: &mut Me, input: &Input, _around: &Scene) {
        walk(&mut own.at, &mut own.facing, *input);
        own.walks = *input != Input::default();
    }

    fn prediction_error(predicted: &Me, right: &Me) -> PredictionError {
        let [x, y] = [0, 1].map(|axis| predicted.at[axis].abs_diff(right.at[axis]) as f32);
        let distance = maths::sqrt(x * x + y * y);
        let per_second = (SPEED * Catch::RATE.per_second() as i32) as f32;
        let speed = if right.walks { per_second } else { 0.0 };
        PredictionError { distance, speed, snaps: distance > SNAP }
    }

    fn events(&self, events: &mut Events<Caught>) {
        for caught in &self.caught {
            events.tell(Audience::Near(place_of(caught.at), EARSHOT), Promise::Reliable, *caught);
        }
    }

    fn command(_held: &Input, command: Command, inputs: &mut Vec<Input>) {
        let Command::Movement(Movement::Walk { x, y }) = command;
        inputs.push(Input { x, y });
    }
}

fn place_of([x, y]: Place) -> [f32; 3] {
    [x as f32, y as f32, 0.0]
}

/// Plays in a room, with the player's own state and the visible entities.
pub fn pilot(own: &Me, around: &Scene, _tick: Tick, _seed: u64) -> Input {
    towards(own.at, around.iter::<Gold>().map(|(_, gold)| gold.at))
}
