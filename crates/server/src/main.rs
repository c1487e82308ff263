//! The `sametick` command.

use std::process::ExitCode;

use clap::Parser;
use sametick::cli::{Command, run};

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sametick: {error}");
            ExitCode::FAILURE
        }
    }
}
