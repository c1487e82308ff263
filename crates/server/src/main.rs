//! The `sametick` command, with the games of this repository.

use std::process::ExitCode;

use sametick_arena::Arena;
use sametick_pong::Pong;

fn main() -> ExitCode {
    sametick::main(sametick::games![
        Pong[2..=4] => sametick_pong::autopilot; sessions,
        Arena[1..=16] => sametick_arena::autopilot; rooms[1..=1000]; sessions,
    ])
}
