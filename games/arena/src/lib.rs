//! Arena: players move, build and shoot in one room. The same game runs in lockstep and with a host that shows everyone only what
//! concerns them.
//!
//! # Rules
//!
//! - The map is a square of tiles with a border, and rocks as cover: the seed decides where. It grows with the seats. Without
//!   [`rocks`](Setup::rocks) it is bare.
//! - Everyone walks five tiles a second in eight directions, slides along what stands in the way, and is gently pushed apart from
//!   others.
//! - A held trigger fires about four times a second. A shot flies fourteen tiles a second for a little more than a second, and
//!   takes 20 from whatever it meets first. Nobody meets their own.
//! - An avatar has 100. Who shoots it dead scores a point; it lives again after two seconds, far from the others.
//! - Walls (100) and crates (40) can be built within four tiles, where nothing and nobody is, three or four a second, 24 for
//!   each player. Their builder can take them away at once; anybody can shoot them down. Rocks never fall.
//! - Who asks first gets a tile that two want in one tick ([`Input::place`]); if that is not known, the lower seat.
//! - For three seconds after the beginning of a life nothing hurts an avatar, unless it shoots before that.
//! - Who first has [`points`](Setup::points) has won: from then on nobody scores. Without that it goes on for ever. With
//!   [`rounds`](Setup::rounds) another round follows after six seconds: points are cleared, everyone begins elsewhere, and nobody
//!   moves or shoots for three seconds more. What was built stays.
//! - Bots spare a newcomer for twenty seconds, or until the newcomer shoots, and aim worse at players who do badly.
//! - What somebody might build is seen by others, in a colour that says whether they could.
//!
//! # Who is there
//!
//! Whoever sits down plays at once, and whoever gets up is gone; what they have built stays and is nobody's. Seats beyond
//! [`Setup::seats`] only watch. Bots ([`Setup::bots`]) have the numbers from [`FIRST_BOT`] on.
//!
//! An input that did not arrive in time means: walking, looking and firing on as before, and nothing asked for.
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
//! [`presence`], [`movement`], [`build`] and [`projectile`] each have their rules in one module, and what is seen of them in
//! [`entities`]. What a player's own screen predicts is [`Own`], with the very functions of the step.
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
