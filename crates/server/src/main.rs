//! The `sametick` command.

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser;
use sametick::cli::{Command, CommandError, run};

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(code) => code,
        // Whoever read our output has read enough.
        Err(CommandError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sametick: {error}");
            ExitCode::FAILURE
        }
    }
}
