//! Pong for two to four players: the smallest complete game on [`sametick_sim::Game`] (L21).
//!
//! # Rules
//!
//! - Seat 0 defends the left wall, seat 1 the right, seat 2 the top, seat 3 the bottom. With fewer than four players
//!   the walls left over are solid and the ball bounces off them. Seats beyond the players only watch.
//! - Before the first serve of a game, and before the next serve after a player has sat down, a countdown of three seconds runs
//!   while the ball is held ([`Pong::count`]). While others play, players who sit down on one seat make them wait at most once a
//!   minute.
//! - Someone serves: the ball sticks to their paddle until they let it go, or until three seconds have passed. Its
//!   angle is random, bent by the way the paddle moves. Who has just missed a ball serves next.
//! - A paddle returns the ball at an angle that depends on where it was hit and how the paddle moved; with both, the
//!   ball also gets faster. The speed grows over a rally up to a limit, and never falls.
//! - A ball that passes a paddle's front is lost for that paddle: a point for whoever touched it last, or, if
//!   that was the paddle itself, for whoever touched it before. So every rally gives one point to one player.
//! - Who first has [`points`](Setup::points) (11), and [`lead`](Setup::lead) (1) more than anyone else, wins. At
//!   [`MAX_SCORE`](setup::MAX_SCORE) no lead is asked for.
//! - A rally of a whole minute is a let: the same player serves again.
//! - After the game there is another one as soon as everyone present has asked for it; not where it is played
//!   [`once`](Setup::once).
//!
//! # Who is there
//!
//! A game begins when every wall has its player; with [`bots`](Setup::bots), also when everyone present is ready, or by
//! itself after five seconds without anyone. One that is played [`once`](Setup::once), as in a session, begins by itself after two
//! seconds at the latest. A bot takes the paddle of an empty seat, in the place and motion it
//! was left in, and gives it back to whoever sits down; the game goes on. Without bots such a paddle stands still, and the next
//! serve waits until its seat is taken again. The score stays with the paddle.
//!
//! Bots are gentle with a new player: slower and less exact, a little less so with each of the first five points.
//!
//! An input that did not arrive in time means: moving on as before, and no button pressed.
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
//! To draw it, [`View::between`] gives positions as floats and [`Pong::events_since`] what there is to hear. To watch
//! it in a terminal: `cargo run -p sametick-pong --example watch`.
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
