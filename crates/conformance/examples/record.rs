//! Plays a session of pong on bad networks, in virtual time, and writes its log: `record FILE SEED TICKS`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [file, seed, ticks] = arguments.as_slice()
        && let (Ok(seed), Ok(ticks)) = (seed.parse(), ticks.parse())
    {
        if let Err(error) = std::fs::write(file, sametick_conformance::record(seed, ticks)) {
            eprintln!("cannot write {file}: {error}");
            return ExitCode::FAILURE;
        }
        return ExitCode::SUCCESS;
    }
    eprintln!("usage: record FILE SEED TICKS");
    ExitCode::FAILURE
}
