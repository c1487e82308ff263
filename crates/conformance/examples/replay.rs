//! Prints the hash after every tick of a log, and how many of its hash checks matched: `replay FILE`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: replay FILE");
        return ExitCode::FAILURE;
    };
    let log = std::fs::read(&file).map_err(|error| error.to_string());
    match log.and_then(|log| sametick_conformance::replay(&log)) {
        Ok(done) => {
            let lines = done.hashes.iter().enumerate().map(|(at, hash)| format!("{} {hash}\n", at + 1));
            println!("{}checks {}", lines.collect::<String>(), done.checks);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}
