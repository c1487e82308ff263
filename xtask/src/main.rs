//! The project's own chores: `cargo xtask test`, `tidy`, `fuzz`, `wasm`, `web`, `dist`, `long` and `setup`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a chore measures wall time and reads the environment; it is never part of the product"
)]

mod arguments;
mod crowd;
mod deny;
mod dist;
mod fuzz;
mod layers;
mod long;
mod races;
mod setup;
mod shell;
mod test;
mod tidy;
mod wasm;
mod web;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
The project's own chores.

Usage: cargo xtask COMMAND [OPTIONS]

Commands:
  test    everything that must pass before a commit lands, in order
  tidy    the house rules: layering, names, lengths, links, unfinished code
  fuzz    run each fuzz target for a bounded time
  wasm    build the pure crates for wasm32 and compare their hashes with native ones
  web     build the web app, check that what is committed was built from these sources, or play it in a browser
  dist    build the program as it is shipped, its symbols apart
  long    a proof for longer than the test command has time for
  setup   install, or ask for, the tools the others need

Examples:
  cargo xtask test                   everything
  cargo xtask test --list            the steps, in order
  cargo xtask test --only clippy     one step
  cargo xtask tidy --update          record that long files or functions have shrunk
  cargo xtask fuzz                   every target, a few seconds each
  cargo xtask fuzz canonical --seconds 600
  cargo xtask COMMAND --help         more about one command
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> Result<()> {
    let Some((command, rest)) = words.split_first() else {
        print!("{HELP}");
        return Ok(());
    };
    match command.as_str() {
        "test" => test::command(rest),
        "tidy" => tidy::command(rest),
        "dist" => dist::command(rest),
        "fuzz" => fuzz::command(rest),
        "long" => long::command(rest),
        "wasm" => wasm::command(rest),
        "web" => web::command(rest),
        "setup" => setup::command(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        unknown => bail!("there is no command `{unknown}`\n\n{HELP}"),
    }
}
