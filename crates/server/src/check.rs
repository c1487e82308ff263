//! `sametick check`: tests whether a game is deterministic.
//!
//! Sessions are [rehearsed](crate::games::AnyGame::rehearse), from random setups and inputs and with the game's
//! autopilot if it has one. Each is put through the [sync-test](sametick_sim::sync_test), which simulates every tick
//! again from the states before it, from clones and from saved bytes, and looks for fields that are not serialised;
//! then each is played on two threads that share nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use clap::Args;
use sametick_sim::Tick;
use sametick_sim::diff::Difference;
use sametick_store::disk::MemDisk;
use sametick_store::log::{Header, LogWriter};
use serde::Serialize;

use crate::cli::CommandError;
use crate::games::{AnyGame, Games, Rehearsal};
use crate::progress::Progress;
use crate::replay::on_two_threads;
use crate::report::{Count, Field, print};

/// The arguments of `sametick check`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  sametick check pong
  sametick check pong --sessions 100 --seed 7
  sametick check pong --keep pong.log && sametick replay pong.log --step

Ends with an error if the game is not deterministic, and names the first tick and the fields that differ, or the fields that
are not serialised.")]
pub struct CheckArgs {
    /// The game
    #[arg(value_name = "GAME")]
    game: String,

    /// How many ticks a session has
    #[arg(long, value_name = "N", default_value_t = 3_600, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    ticks: u32,

    /// How many sessions to play, each from a seed of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    sessions: u64,

    /// The first seed: the same seed plays the same session
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// From how many states before it a tick is simulated again
    #[arg(long, value_name = "TICKS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=120))]
    depth: u32,

    /// Keep the session that failed, or else the last, as a log for `sametick replay`
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,

    /// Print a line of JSON
    #[arg(long)]
    json: bool,
}

/// Why a game cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// There is no such game.
    #[error("{name:?} is no game of this program; it has {}", .names.join(", "))]
    NoSuchGame {
        /// The name that was asked for.
        name: String,
        /// The names of the known games.
        names: Vec<&'static str>,
    },
    /// No setup could be generated.
    #[error("{0} takes none of the setups that were thought of: give it some with `Known::with_setup`")]
    NoSetup(&'static str),
}

/// How thoroughly to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckPlan {
    /// How many ticks a session has.
    pub ticks: u32,
    /// How many sessions.
    pub sessions: u64,
    /// The seed of the first.
    pub seed: u64,
    /// From how many states before it a tick is simulated again.
    pub depth: u32,
}

/// Where a game failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed of the session.
    pub seed: u64,
    /// The tick in which it failed.
    pub tick: Tick,
    /// Which check failed.
    pub what: String,
    /// The fields that differ.
    pub differences: Vec<Difference>,
    /// The session, for debugging, unless the game did not even begin.
    pub rehearsal: Option<Rehearsal>,
}

/// Checks a game. Returns `None` if it passed.
pub fn check_game(game: &dyn AnyGame, plan: CheckPlan) -> Result<Option<Box<Failure>>, CheckError> {
    let mut progress = Progress::new("checking", plan.sessions);
    for number in 0..plan.sessions {
        progress.show(number);
        let seed = plan.seed.wrapping_add(number);
        let failure = check_session(game, plan, seed)?;
        if failure.is_some() {
            return Ok(failure.map(Box::new));
        }
    }
    Ok(None)
}

fn check_session(game: &dyn AnyGame, plan: CheckPlan, seed: u64) -> Result<Option<Failure>, CheckError> {
    let failure = |tick, what: String, differences, rehearsal| {
        Ok(Some(Failure { seed, tick, what, differences, rehearsal }))
    };
    let panics = "the game panics".to_owned();
    let Some(rehearsed) = alone(|| game.rehearse(seed, plan.ticks)) else {
        return failure(Tick::ZERO, panics, vec![], None);
    };
    let rehearsal = rehearsed.ok_or(CheckError::NoSetup(game.name()))?;
    let last = Tick(u32::try_from(rehearsal.ticks.len()).unwrap_or(u32::MAX));
    if last < Tick(plan.ticks) {
        return failure(last, panics, vec![], Some(rehearsal));
    }
    match alone(|| game.sync_test(&rehearsal, plan.depth)) {
        Some(Ok(_)) => {}
        Some(Err(desync)) => {
            return failure(desync.tick, desync.cause.to_string(), desync.differences, Some(rehearsal));
        }
        None => return failure(last, panics + " when simulated again", vec![], Some(rehearsal)),
    }
    let twice = on_two_threads::<std::convert::Infallible>(game, last, |states| {
        let mut run = game.begin(&rehearsal.setup).expect("it has been played");
        states.note(&*run);
        for inputs in &rehearsal.ticks {
            run.step(inputs);
            states.note(&*run);
        }
        Ok(())
    });
    let Ok(twice) = twice;
    match twice {
        Some(found) => {
            let what = "two threads came to different states".to_owned();
            failure(found.tick, what, found.differences, Some(rehearsal))
        }
        None => Ok(None),
    }
}

/// Runs work on a thread of its own, as a player's machine would. Returns `None` if it panics.
fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| scope.spawn(work).join().ok())
}

/// Runs `sametick check`.
pub fn check(args: &CheckArgs, games: &Games) -> Result<ExitCode, CommandError> {
    let game = games.named(&args.game).ok_or_else(|| CheckError::NoSuchGame {
        name: args.game.clone(),
        names: games.iter().map(AnyGame::name).collect(),
    })?;
    let plan = CheckPlan { ticks: args.ticks, sessions: args.sessions, seed: args.seed, depth: args.depth };
    let failure = check_game(game, plan)?;
    if let Some(path) = &args.keep {
        let last = || game.rehearse(args.seed.wrapping_add(args.sessions - 1), args.ticks);
        let kept = failure.as_ref().map_or_else(last, |failure| failure.rehearsal.clone());
        kept.map_or(Ok(()), |rehearsal| keep(path, (game, games.commit()), &rehearsal))?;
    }
    let report = CheckReport::new((game, games.commit()), plan, failure.as_deref());
    print(&report, args.json)?;
    Ok(if report.deterministic { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes a session as a log of a program of this git commit, in place of an existing file.
fn keep(path: &Path, (game, commit): (&dyn AnyGame, &str), rehearsal: &Rehearsal) -> std::io::Result<()> {
    let header = Header { commit: commit.into(), ..rehearsal.header(game, "check") };
    let log = LogWriter::new(MemDisk::new(), &header);
    let mut log = log.map_err(std::io::Error::other)?;
    for record in &rehearsal.records(game) {
        log.push(record).map_err(std::io::Error::other)?;
    }
    log.flush().map_err(std::io::Error::other)?;
    std::fs::write(path, log.disk().bytes())
}

#[derive(Serialize)]
struct CheckReport {
    game: &'static str,
    build: String,
    /// The git commit of the program; empty if it is not known.
    commit: &'static str,
    deterministic: bool,
    sessions: u64,
    ticks: u32,
    seed: u64,
    depth: u32,
    failure: Option<FailureReport>,
}

#[derive(Serialize)]
struct FailureReport {
    seed: u64,
    tick: u32,
    what: String,
    fields: Vec<Field>,
}

impl CheckReport {
    fn new(
        (game, commit): (&dyn AnyGame, &'static str),
        plan: CheckPlan,
        failure: Option<&Failure>,
    ) -> CheckReport {
        let CheckPlan { ticks, sessions, seed, depth } = plan;
        CheckReport {
            game: game.name(),
            build: game.build().to_string(),
            commit,
            deterministic: failure.is_none(),
            sessions,
            ticks,
            seed,
            depth,
            failure: failure.map(|failure| FailureReport {
                seed: failure.seed,
                tick: failure.tick.0,
                what: failure.what.clone(),
                fields: failure.differences.iter().map(Field::from).collect(),
            }),
        }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckReport { game, build, commit, sessions, ticks, depth, .. } = self;
        write!(f, "{game} of build {}", &build[..8])?;
        if let Some(short) = commit.get(..8) {
            write!(f, " (commit {short})")?;
        }
        f.write_str(": ")?;
        let Some(FailureReport { seed, tick, what, fields }) = &self.failure else {
            return write!(
                f,
                "deterministic, as far as {} of {ticks} ticks show.\nEvery tick was simulated again from \
                 {depth} states before it, as a clone and from saved bytes, and on another thread.",
                Count(*sessions, "session")
            );
        };
        write!(f, "NOT DETERMINISTIC\n  seed {seed}, tick {tick}: {what}")?;
        fields.iter().try_for_each(|field| write!(f, "\n  {field}"))
    }
}
