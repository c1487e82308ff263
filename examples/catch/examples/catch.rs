//! The complete `sametick` program, for catch.

use std::process::ExitCode;

use catch::{Catch, autopilot};

fn main() -> ExitCode {
    sametick::main(sametick::games![Catch[1..=8] => autopilot; rooms[1..=64]])
}
