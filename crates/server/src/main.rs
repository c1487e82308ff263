//! The `sametick` command, with the games of this repository.

use std::process::ExitCode;

use sametick_pong::{Pong, autopilot};

fn main() -> ExitCode {
    sametick::main(sametick::games![Pong[2..=4] => autopilot])
}
