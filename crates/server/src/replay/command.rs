//! `sametick replay`: its arguments and its output.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use sametick_sim::Tick;
use serde::Serialize;

use super::against::compare;
use super::reports::{AgainstReport, Played, TwiceReport};
use super::twice::play_twice;
use super::{Keep, Playback, stepping};
use crate::cli::CommandError;
use crate::games::{Games, Layout};
use crate::logs::{NamedLog, open};
use crate::report::{print, print_json};

/// The arguments of `sametick replay`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  sametick replay match.log                        play all of it, and compare every check
  sametick replay match.log --to 3999 --state      the state after a tick
  sametick replay match.log --to 3999 --step       step on from there: Enter, s, d, q
  printf '4000\\nd\\n' | sametick replay match.log --step
  sametick replay match.log --against other.log    the first tick at which they part ways
  sametick replay match.log --twice                a bug of the game, or of the network?
  sametick replay match.log --hashes > hashes.txt
  sametick replay friday-1800000000000             a session that is kept in sametick-data
  sametick replay friday-1800000000000 --store s3://games/sametick --to 3999
  sametick replay s3://games/sametick/sessions/BUILD/ID?endpoint=https://s3.example.org

With --to and --step, it begins with the save beside the log if that is nearer and the log agrees with it.
Ends with an error if a check does not match, or if what was compared is not the same.
States are kept in match.log.states, so that every tick is near; the file can be deleted at any time. Nothing is kept of what
is read from S3.")]
pub struct ReplayArgs {
    #[command(flatten)]
    named: NamedLog,

    /// Stop after this tick
    #[arg(long, value_name = "TICK")]
    to: Option<u32>,

    /// Step through the ticks by hand, or by lines on standard input
    #[arg(long, conflicts_with_all = ["hashes", "against", "twice", "json", "state"])]
    step: bool,

    /// Print the state at the end
    #[arg(long, conflicts_with_all = ["against", "twice"])]
    state: bool,

    /// Print the hash of every tick; with --json, of every check
    #[arg(long, conflicts_with_all = ["against", "twice"])]
    hashes: bool,

    /// Find the first tick at which another log comes to another state
    #[arg(long, value_name = "LOG", conflicts_with = "twice")]
    against: Option<PathBuf>,

    /// Play it on two instances at once and compare: if they differ, the game is not deterministic
    #[arg(long)]
    twice: bool,

    /// Print a line of JSON
    #[arg(long)]
    json: bool,

    /// Do not use or write kept states, and do not begin with a save unless the log begins there
    #[arg(long)]
    no_cache: bool,
}

/// Runs `sametick replay`.
pub fn replay(args: &ReplayArgs, games: &Games) -> Result<ExitCode, CommandError> {
    if args.twice {
        return twice(args, games);
    }
    if let Some(other) = &args.against {
        return against(args, other, games);
    }
    // A seek to one tick should be fast, so it uses kept states; a whole replay compares everything afresh.
    let keep = match (args.no_cache, args.to.is_some() || args.step) {
        (true, _) => Keep::InMemory,
        (false, true) => Keep::InFile,
        (false, false) => Keep::Afresh,
    };
    let mut playback = Playback::of(args.named.open()?, games, keep)?;
    let not_used = if keep == Keep::InFile { playback.use_save()? } else { None };
    if let Some(why) = not_used {
        eprintln!("sametick: the save beside the log is not used: {why}");
    }
    if args.step {
        return step(args, &mut playback);
    }
    let to = args.to.map_or(playback.log().last_tick(), Tick);
    let since = Instant::now();
    if args.hashes {
        print_hashes(args, &mut playback, to)?;
    } else {
        playback.go_to(to)?;
    }
    let seconds = since.elapsed().as_secs_f64();
    playback.keep_states();
    let layout = if args.json { Layout::Line } else { Layout::Page };
    let report = Played::of(&playback, seconds, args.state.then_some(layout))?;
    if !args.hashes {
        print(&report, args.json)?;
    } else if let Some(bad) = &report.first_bad {
        eprintln!("sametick: {bad}");
    }
    Ok(if report.first_bad.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn step(args: &ReplayArgs, playback: &mut Playback<'_>) -> Result<ExitCode, CommandError> {
    playback.go_to(args.to.map_or(playback.begins(), Tick))?;
    let prompt = if io::stdin().is_terminal() { "> " } else { "" };
    stepping::walk(playback, io::stdin().lock(), &mut io::stdout().lock(), prompt)?;
    playback.keep_states();
    let bad = playback.covered().first_bad;
    if let Some(bad) = &bad {
        eprintln!("sametick: {bad}");
    }
    Ok(if bad.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_hashes(args: &ReplayArgs, playback: &mut Playback<'_>, to: Tick) -> Result<(), CommandError> {
    #[derive(Serialize)]
    struct CheckLine {
        tick: u32,
        hash: String,
        logged: String,
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let checks = if args.json { playback.read_checks()?.clone() } else { Default::default() };
    let mut written = Ok(());
    playback.play_to(to, |run, _| {
        if written.is_err() {
            return;
        }
        let tick = run.tick();
        written = match checks.get(&tick) {
            Some(logged) => {
                let (hash, logged) = (run.hash().to_string(), logged.to_string());
                print_json(&mut out, &CheckLine { tick: tick.0, hash, logged })
            }
            None if args.json => Ok(()),
            None => writeln!(out, "{tick} {}", run.hash()),
        };
    })?;
    written?;
    Ok(out.flush()?)
}

fn twice(args: &ReplayArgs, games: &Games) -> Result<ExitCode, CommandError> {
    let log = args.named.open()?;
    let to = args.to.map_or(log.last_tick(), Tick).min(log.last_tick());
    let found = play_twice(&log, games, to)?;
    print(&TwiceReport::of(log.path(), to, found.as_ref()), args.json)?;
    Ok(if found.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn against(args: &ReplayArgs, other: &Path, games: &Games) -> Result<ExitCode, CommandError> {
    let mut ours = Playback::of(args.named.open()?, games, Keep::InMemory)?;
    let mut theirs = Playback::of(open(other, args.named.store.as_ref())?, games, Keep::InMemory)?;
    let last = ours.log().last_tick().min(theirs.log().last_tick());
    let to = args.to.map_or(last, Tick).min(last);
    let found = compare(&mut ours, &mut theirs, to)?;
    print(&AgainstReport::of(&ours, &theirs, to, found.as_ref()), args.json)?;
    Ok(if found.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
