//! `sametick load`: simulates many players who find sessions, play them and leave, and reports how long things took.

mod member;
mod people;
mod report;
mod table;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use tokio::task::LocalSet;

use member::Place;
pub use report::LoadReport;
use report::Tally;
use table::Table;

use crate::cli::{ClientArgs, CommandError};

/// What `sametick load` can put under load.
#[derive(Debug, Subcommand)]
pub enum LoadCommand {
    /// Sessions: created, joined, played by bots until the game ends, left
    #[command(after_help = "\
Examples:
  sametick load sessions --gateway 127.0.0.1:8080 --sessions 50 --seconds 600
  sametick load sessions --gateway 127.0.0.1:8080 --sessions 200 --idle --seconds 60 --json

Each session has two players, of whom one does not move: a game takes about a quarter of a minute. With --idle nobody plays:
sessions are created and joined once, and wait. A player whose connection is cut comes back, as a page does; the report says
how many were cut and how long it took. Ends with an error if anything was refused, or a player was not back within a minute.")]
    Sessions(SessionsLoad),
}

/// The options of `sametick load sessions`.
#[derive(Debug, Args)]
pub struct SessionsLoad {
    /// The gateway: a name or address, and the port of its pages. Not over TLS
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    gateway: String,

    /// How many sessions there are at once
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    sessions: u32,

    /// For how many seconds new sessions are begun; those that run then are played to their end
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,

    /// Create and join sessions, and let them wait
    #[arg(long)]
    idle: bool,

    #[command(flatten)]
    client: ClientArgs,
}

/// Puts a server under load from a program of this git commit, and reports.
pub(crate) async fn load(command: &LoadCommand, commit: &'static str) -> Result<ExitCode, CommandError> {
    let LoadCommand::Sessions(args) = command;
    let tally = Rc::new(RefCell::new(Tally::default()));
    let began = Instant::now();
    let until = began + Duration::from_secs(args.seconds);
    let tables = LocalSet::new();
    for number in 0..args.sessions {
        let place = Place { gateway: args.gateway.clone(), key: args.client.key()?, tally: tally.clone() };
        let table = Table::new(place, number, commit);
        let is_idle = args.idle;
        tables.spawn_local(
            async move { if is_idle { table.wait(until).await } else { table.play(until).await } },
        );
    }
    tables.await;
    let report = tally.borrow().report(began.elapsed());
    args.client.print(&report)?;
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
