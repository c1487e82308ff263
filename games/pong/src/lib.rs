//! Pong for two to four players: the smallest complete game on [`sametick_sim::Game`] (L21).
//!
//! # Rules
//!
//! - Seat 0 defends the left wall, seat 1 the right, seat 2 the top, seat 3 the bottom. With fewer than four players
//!   walls left over are solid and the ball bounces off them. Seats beyond the players only spectate.
//! - Before the first serve of a game, and before the next serve after a player has joined, a countdown of three
//!   seconds runs while the ball is held ([`Pong::count`]). During a game, joins on one seat delay the others at most
//!   once a minute.
//! - A player serves: the ball sticks to the paddle until the player releases it, or until three seconds have passed.
//!   Its angle is random, changed by the motion of the paddle. The player who missed the last ball serves next.
//! - A paddle returns the ball at an angle that depends on where it was hit and how the paddle moved; with both, the
//!   ball also gets faster. The speed grows over a rally up to a limit, and never falls.
//! - A ball that passes a paddle's front is lost for that paddle: a point for the player who touched it last, or, if
//!   that was the paddle itself, for the one who touched it before. So every rally gives one point to one player.
//! - The first player with [`points`](Setup::points) (11), and [`lead`](Setup::lead) (1) more than every other, wins.
//!   At [`MAX_SCORE`](setup::MAX_SCORE) no lead is required.
//! - A rally of a whole minute is a let: the same player serves again.
//! - After the game another one begins as soon as all present players have asked for it, unless it is played
//!   [`once`](Setup::once).
//!
//! # Joining and leaving
//!
//! A game begins when every wall has its player; with [`bots`](Setup::bots), also when all present players are ready,
//! or by itself after five seconds without players. One that is played [`once`](Setup::once), as in a session, begins
//! by itself after two seconds at the latest. A bot takes over the paddle of an empty seat, with its position and
//! motion, and gives it back to the next player on the seat; the game continues. Without bots such a paddle stands
//! still, and the next serve waits until its seat is taken again. The score stays with the paddle.
//!
//! Bots are gentle with a new player: slower and less exact, a little less so with each of the first five points.
//!
//! A missing input continues the motion, without a button.
//!
//! # Controls
//!
//! | | left and right wall | top and bottom wall |
//! |---|---|---|
//! | [`Motion::Less`] | up | left |
//! | [`Motion::More`] | down | right |
//! | [`Input::and_serve`] | ready; let the ball go | the same |
//! | [`Input::and_rematch`] | another game | the same |
//!
//! # Playing it
//!
//! ```
//! use sametick_pong::{Input, Motion, Phase, Pong, Setup};
//! use sametick_sim::{Game, Inputs, Seat};
//!
//! let mut pong = Pong::new(&Setup { seed: 7, ..Setup::default() });
//! let mut inputs = Inputs::new();
//! for _ in 0..600 {
//!     inputs.clear();
//!     inputs.set(Seat(0), Input::moving(Motion::More).and_serve());
//!     pong.step(&inputs); // the right paddle is played by a bot
//! }
//! assert!(!matches!(pong.phase, Phase::Waiting { .. }));
//! assert!(pong.score(Seat(0)).is_some());
//! ```
//!
//! For drawing, [`View::between`] gives positions as floats, and [`Pong::events_since`] the sounds to play. To watch it
//! in a terminal: `cargo run -p sametick-pong --example watch`.
#![no_std]

mod ai;
mod ball;
mod contest;
pub mod court;
pub mod crowd;
mod input;
pub mod setup;
mod state;
mod step;
mod view;

pub use ai::{autopilot, steer};
pub use ball::{MAX_SPEED, SERVE_SPEED};
pub use court::{Point, Wall};
pub use input::{BadInput, Input, Motion};
pub use setup::{Setup, Skill};
pub use state::{BadState, Ball, Driver, Event, Paddle, Phase, Pong, What};
pub use view::{Bar, View};
