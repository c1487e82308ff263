//! The `sametick` command for a game that fails, beside one that does not: what tests of crashing games run.

use std::process::ExitCode;

use game::Brittle;
use sametick_pong::Pong;

mod game;

fn main() -> ExitCode {
    sametick::main(sametick::games![Brittle; sessions, Pong[2..=4] => sametick_pong::autopilot; sessions])
}
