//! Plays a session of pong in lockstep, or one of arena in a room, on bad networks, in virtual time, and writes its log:
//! `record pong|arena FILE SEED TICKS`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [game, file, seed, ticks] = arguments.as_slice()
        && let Some(record) = recorder(game)
        && let (Ok(seed), Ok(ticks)) = (seed.parse(), ticks.parse())
    {
        if let Err(error) = std::fs::write(file, record(seed, ticks)) {
            eprintln!("cannot write {file}: {error}");
            return ExitCode::FAILURE;
        }
        return ExitCode::SUCCESS;
    }
    eprintln!("usage: record pong|arena FILE SEED TICKS");
    ExitCode::FAILURE
}

fn recorder(game: &str) -> Option<fn(u64, u32) -> Vec<u8>> {
    match game {
        "pong" => Some(sametick_conformance::record),
        "arena" => Some(sametick_conformance::record_room),
        _ => None,
    }
}
