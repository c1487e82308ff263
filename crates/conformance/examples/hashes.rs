//! Prints the result of a run of the conformance game, as a line of JSON: `hashes SEED TICKS`.

use std::process::ExitCode;

use sametick_conformance::{arena, identity, pong, room, run, session, talk};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [seed, ticks] = arguments.as_slice()
        && let (Ok(seed), Ok(ticks)) = (seed.parse(), ticks.parse())
    {
        print_line(seed, ticks);
        return ExitCode::SUCCESS;
    }
    eprintln!("usage: hashes SEED TICKS");
    ExitCode::FAILURE
}

fn print_line(seed: u64, ticks: u32) {
    let (build, schema) = identity();
    let outcome = run(seed, ticks);
    let (chain, last, talk) = (outcome.chain, outcome.last, talk(seed, ticks));
    let (pong, session) = (pong(seed, ticks), session(seed, ticks));
    let (arena, room) = (arena(seed, ticks), room(seed, ticks));
    // A seed is a string because a JSON number has only 53 bits.
    println!(
        r#"{{"seed":"{seed}","ticks":{ticks},"hash":"{chain}","last":"{last}","talk":"{talk}","pong":"{pong}","session":"{session}","arena":"{arena}","room":"{room}","build":"{build}","schema":"{schema}"}}"#
    );
}
