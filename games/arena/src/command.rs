//! Script commands, by feature and action.
//!
//! ```json
//! {"movement": {"input_batch": {"inputs": [{"seq": 101, "up": true, "down": false, "left": false, "right": true}]}}}
//! {"movement": {"aim": {"angle": 0.5}}}
//! {"build": {"preview": {"x": 3, "y": 4, "kind": "wall"}}}
//! {"build": {"place": {"x": 3, "y": 4, "kind": "crate"}}}
//! {"build": {"remove": {"x": 3, "y": 4}}}
//! {"build": {"clear_preview": {}}}
//! {"projectile": {"fire": {"angle": 1.57}}}
//! ```

use alloc::format;
use alloc::vec::Vec;
use core::f32::consts::TAU;

use sametick_sim::maths;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::build::Kind;
use crate::input::{Action, Input, Walk};
use crate::space::{BadTile, TURN, Tile};

/// The most inputs of a batch: two seconds. Longer ones are refused.
pub const MAX_BATCH: usize = 60;

/// A script command.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Movement and aim.
    Movement(Movement),
    /// Building and previews.
    Build(Build),
    /// Shooting.
    Projectile(Projectile),
}

/// Commands of the feature "movement".
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Movement {
    /// Walks for as many ticks as there are inputs; afterwards the last one continues.
    InputBatch {
        /// One for each of the next ticks, at most [`MAX_BATCH`].
        #[serde(deserialize_with = "read_batch")]
        inputs: Vec<Keys>,
    },
    /// Aims.
    Aim {
        /// The direction in radians, clockwise from the right.
        angle: f32,
    },
}

fn read_batch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Keys>, D::Error> {
    let inputs = Vec::<Keys>::deserialize(deserializer)?;
    if inputs.len() > MAX_BATCH {
        let why = format!("a batch has at most {MAX_BATCH} inputs, and this one has {}", inputs.len());
        return Err(D::Error::custom(why));
    }
    Ok(inputs)
}

/// The keys held in a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// The script's own sequence number.
    #[serde(default)]
    pub seq: u32,
    /// Whether this key is held.
    #[serde(default)]
    pub up: bool,
    /// Whether this key is held.
    #[serde(default)]
    pub down: bool,
    /// Whether this key is held.
    #[serde(default)]
    pub left: bool,
    /// Whether this key is held.
    #[serde(default)]
    pub right: bool,
}

/// Commands of the feature "build".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Build {
    /// Shows a preview to others, for half a second.
    Preview(What),
    /// Builds.
    Place(What),
    /// Removes a structure.
    Remove(Where),
    /// Removes the preview.
    ClearPreview {},
}

/// A structure at a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct What {
    /// The column.
    pub x: Coordinate,
    /// The row.
    pub y: Coordinate,
    /// The kind.
    pub kind: Buildable,
}

/// A tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Where {
    /// The column.
    pub x: Coordinate,
    /// The row.
    pub y: Coordinate,
}

/// A column or row within the largest map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i32")]
pub struct Coordinate(i32);

impl TryFrom<i32> for Coordinate {
    type Error = BadTile;

    fn try_from(number: i32) -> Result<Coordinate, BadTile> {
        Tile::new(number, 0).map(|_| Coordinate(number)).ok_or(BadTile)
    }
}

/// The kinds that players can build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buildable {
    /// [`Kind::Wall`].
    Wall,
    /// [`Kind::Crate`].
    Crate,
}

/// Commands of the feature "projectile".
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Projectile {
    /// Pulls the trigger for one tick.
    Fire {
        /// The direction in radians, clockwise from the right.
        angle: f32,
    },
}

/// Translates a command to one input for each of the next ticks.
pub(crate) fn carry_out(held: &Input, command: Command, inputs: &mut Vec<Input>) {
    let held = held.going_on();
    let acts = |action| Input { action, ..held };
    match command {
        Command::Movement(Movement::InputBatch { inputs: batch }) => {
            let walk = |keys: &Keys| Walk::of_keys(keys.up, keys.down, keys.left, keys.right);
            inputs.extend(batch.iter().map(|keys| Input { walk: walk(keys), ..held }));
        }
        Command::Movement(Movement::Aim { angle }) => inputs.push(Input { aim: aim_of_angle(angle), ..held }),
        Command::Build(Build::Preview(What { x, y, kind })) => {
            inputs.push(acts(tile(x, y).map(|tile| Action::Preview(tile, kind.into()))));
        }
        Command::Build(Build::Place(What { x, y, kind })) => {
            inputs.push(acts(tile(x, y).map(|tile| Action::Place(tile, kind.into()))));
        }
        Command::Build(Build::Remove(Where { x, y })) => inputs.push(acts(tile(x, y).map(Action::Remove))),
        Command::Build(Build::ClearPreview {}) => inputs.push(acts(Some(Action::Clear))),
        Command::Projectile(Projectile::Fire { angle }) => {
            let aim = aim_of_angle(angle);
            inputs.extend([true, false].map(|fire| Input { aim, fire, ..held }));
        }
    }
}

/// The direction nearest to an angle in radians; to the right if the angle is not finite.
pub fn aim_of_angle(angle: f32) -> u8 {
    let turns = angle / TAU;
    let part = turns - maths::floor(turns);
    (maths::round(part * TURN as f32) as u32 % TURN) as u8
}

fn tile(x: Coordinate, y: Coordinate) -> Option<Tile> {
    Tile::new(x.0, y.0)
}

impl From<Buildable> for Kind {
    fn from(kind: Buildable) -> Kind {
        match kind {
            Buildable::Wall => Kind::Wall,
            Buildable::Crate => Kind::Crate,
        }
    }
}
