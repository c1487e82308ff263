//! Arena: players move, build and shoot in one room. The same game runs in lockstep and with a host that sends every
//! player only the relevant part.
//!
//! # Rules
//!
//! - The map is a square of tiles with a border, and rocks as cover: the seed decides where. It grows with the seats. Without
//!   [`rocks`](Setup::rocks) it is bare.
//! - Everyone walks five tiles a second in eight directions, slides along obstacles, and is gently pushed apart from
//!   others.
//! - A held trigger fires about four times a second. A shot flies fourteen tiles a second for a little more than a
//!   second, and takes 20 from the first avatar or structure it hits. A shot never hits its owner.
//! - An avatar has 100. A player who kills another scores a point; the victim lives again after two seconds, far from
//!   the others.
//! - Walls (100) and crates (40) can be built on free tiles within a distance of four, three or four a second, 24 for
//!   each player. Their builder can remove them at once; every player can shoot them down. Rocks are indestructible.
//! - If two players want one tile in the same tick, the earlier input gets it ([`Input::place`]); if that is not known,
//!   the lower seat.
//! - For three seconds after a spawn an avatar is invulnerable, unless it shoots before that.
//! - The first player with [`points`](Setup::points) wins: from then on no player scores. Without a limit the game has
//!   no end. With [`rounds`](Setup::rounds) another round follows after six seconds: points are cleared, all players
//!   respawn elsewhere, and cannot move or shoot for three more seconds. Structures stay.
//! - Bots spare a newcomer for twenty seconds, or until the newcomer shoots, and aim worse at players who do badly.
//! - A planned structure is shown to others, in a colour that says whether it could be built.
//!
//! # Joining and leaving
//!
//! A player who joins plays at once, and a player who leaves is removed; the structures of that player stay, without an
//! owner. Seats beyond [`Setup::seats`] only spectate. Bots ([`Setup::bots`]) have the numbers from [`FIRST_BOT`] on.
//!
//! A missing input continues the walk, aim and trigger, without an action.
//!
//! # Controls
//!
//! | input | on a keyboard and mouse |
//! |---|---|
//! | [`Walk::of_keys`] | W, S, A and D, or arrows |
//! | [`Input::aim`] | where the mouse is ([`aim_of`]) |
//! | [`Input::fire`] | the left button |
//! | [`Action::Preview`] | the mouse over a tile, while building |
//! | [`Action::Place`], [`Action::Remove`] | the left and right button, while building |
//!
//! # Four features
//!
//! [`presence`], [`movement`], [`build`] and [`projectile`] each have their rules in one module, and their entities in
//! [`entities`]. The client predicts [`Own`], with the functions of the step.
//!
//! # Playing it
//!
//! ```
//! use sametick_arena::{Arena, Input, Setup, Walk, look::Look};
//! use sametick_sim::replica::{Hosted, Scene};
//! use sametick_sim::{Game, Inputs, Seat};
//!
//! let mut arena = Arena::new(&Setup { seed: 7, bots: 5, ..Setup::default() });
//! let mut inputs = Inputs::new();
//! for _ in 0..600 {
//!     inputs.clear();
//!     inputs.set(Seat(0), Input { walk: Walk::towards(1, 0), aim: 64, fire: true, ..Input::default() });
//!     arena.step(&inputs);
//! }
//! assert!(arena.at_seat(Seat(0)).is_some());
//!
//! let mut scene = Scene::new(Arena::KINDS);
//! arena.show(&mut scene);
//! assert!(Look::of(&scene).structures.len() > 10);
//! ```
#![no_std]

extern crate alloc;

mod ai;
mod around;
pub mod build;
pub mod command;
mod contest;
pub mod crowd;
pub mod entities;
mod input;
pub mod kept;
pub mod look;
mod map;
pub mod movement;
pub mod presence;
pub mod projectile;
pub mod round;
pub mod setup;
pub mod space;
mod state;
mod step;

pub use ai::{autopilot, pilot};
pub use build::{Ask, Denied, Kind, Plan};
pub use command::{Command, aim_of_angle};
pub use entities::{Avatar, Ground, Player, Preview, Projectile, Structure};
pub use input::{Action, BadInput, Input, Walk};
pub use map::{Block, Map};
pub use projectile::Shot;
pub use round::Round;
pub use setup::{FIRST_BOT, Rules, Setup};
pub use space::{At, Tile, UNIT, aim_of};
pub use state::{Arena, BadState, Event, Own, Person, Place};
