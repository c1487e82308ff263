//! `sametick-simulator`: runs worlds from seeds and reports violations.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command counts processors and wall time"
)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sametick_simulator::plan::Plan;
use sametick_simulator::report;
use sametick_simulator::run::{self, Total, Until};

const HELP: &str = "\
Simulate sessions from seeds: a relay, its peers, bad networks, crashing clients and disks, and checkers.

Usage: sametick-simulator [--seeds N | --hours H | --seed S] [--first S] [--jobs J] [--json]

  --seeds N   run N seeds (default 100)
  --hours H   run seeds until H hours have been simulated with at least four clients
  --first S   the first seed (default 0)
  --seed S    run one seed and show what happened
  --jobs J    so many threads (default: one for each processor)
  --json      print one line of JSON
";

struct Arguments {
    until: Until,
    first: u64,
    seed: Option<u64>,
    jobs: usize,
    json: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match read(&words) {
        Ok(arguments) => match arguments.seed {
            Some(seed) => show(seed),
            None => run_many(&arguments),
        },
        Err(what) => {
            eprintln!("{what}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn read(words: &[String]) -> Result<Arguments, String> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut arguments = Arguments { until: Until::Seeds(100), first: 0, seed: None, jobs, json: false };
    let mut words = words.iter();
    while let Some(name) = words.next() {
        if name == "--json" {
            arguments.json = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
        let wrong = || format!("{name} {value}: not a number");
        match name.as_str() {
            "--seeds" => arguments.until = Until::Seeds(value.parse().map_err(|_| wrong())?),
            "--hours" => arguments.until = Until::Hours(value.parse().map_err(|_| wrong())?),
            "--first" => arguments.first = value.parse().map_err(|_| wrong())?,
            "--seed" => arguments.seed = Some(value.parse().map_err(|_| wrong())?),
            "--jobs" => arguments.jobs = value.parse().map_err(|_| wrong())?,
            _ => return Err(format!("{name} is not known")),
        }
    }
    Ok(arguments)
}

/// Runs one seed and prints its last events.
fn show(seed: u64) -> ExitCode {
    println!("{:?}", Plan::draw(seed).0);
    let outcome = run::seed(seed, true);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    println!("\n{:?}\ndigest {:016x}", outcome.figures, outcome.digest);
    print!("{}", report::failure(&outcome));
    if outcome.violation.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run_many(arguments: &Arguments) -> ExitCode {
    let shown_at = Mutex::new(Instant::now());
    let told = Mutex::new(0);
    let see = |total: &Total| {
        // Failures are printed at once, since a run may take hours.
        if let Ok(mut told) = told.lock() {
            total.failed.iter().skip(*told).for_each(|outcome| eprint!("{}", report::failure(outcome)));
            *told = total.failed.len();
        }
        if let Ok(mut at) = shown_at.lock()
            && at.elapsed() > Duration::from_secs(10)
        {
            *at = Instant::now();
            eprintln!("{}", report::progress(total));
        }
        // A few failures show what is wrong; thousands add nothing.
        total.failed.len() < 20
    };
    let total = run::run(arguments.first, arguments.until, arguments.jobs, see);
    if arguments.json {
        println!("{}", report::json(&total));
    } else {
        print!("{}", report::text(&total));
    }
    if total.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
