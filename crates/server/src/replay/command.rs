//! `sametick replay`: what can be typed, and what is printed then.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use sametick_sim::Tick;
use serde::Serialize;
use serde_json::value::RawValue;

use super::against::{Divergence, compare};
use super::twice::play_twice;
use super::{BadCheck, Keep, Playback, stepping};
use crate::cli::CommandError;
use crate::games::{AnyGame, Games, Layout};
use crate::logs::{LogFile, of_row};
use crate::report::{Field, print, print_json};

/// What `sametick replay` takes.
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

Ends with an error if a check does not match, or if what was compared is not the same.
States are kept in match.log.states, so that every tick is near; the file can be deleted at any time.")]
pub struct ReplayArgs {
    /// The log of a session
    #[arg(value_name = "LOG")]
    log: PathBuf,

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

    /// Do not use or write kept states
    #[arg(long)]
    no_cache: bool,
}

/// Plays a log as asked.
pub fn replay(args: &ReplayArgs, games: &Games) -> Result<ExitCode, CommandError> {
    if args.twice {
        return twice(args, games);
    }
    if let Some(other) = &args.against {
        return against(args, other, games);
    }
    // Whoever asks for a tick wants to be there soon; whoever asks for everything wants it compared.
    let keep = match (args.no_cache, args.to.is_some() || args.step) {
        (true, _) => Keep::InMemory,
        (false, true) => Keep::InFile,
        (false, false) => Keep::Afresh,
    };
    let mut playback = Playback::open(&args.log, games, keep)?;
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
    playback.go_to(args.to.map_or(Tick::ZERO, Tick))?;
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

/// What playing a log came to.
#[derive(Serialize)]
struct Played {
    log: String,
    game: &'static str,
    build: String,
    session: String,
    tick: u32,
    last_tick: u32,
    hash: String,
    ticks_played: u64,
    /// The kept state it began from; zero for the start.
    from_tick: u32,
    seconds: f64,
    /// How many times faster than it was played.
    times_real: f64,
    /// None if they were compared when the states were kept.
    checks_compared: Option<usize>,
    first_bad: Option<BadCheckLine>,
    torn_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Box<RawValue>>,
    #[serde(skip)]
    kept: bool,
}

#[derive(Serialize)]
struct BadCheckLine {
    tick: u32,
    logged: String,
    replayed: String,
    #[serde(skip)]
    text: String,
}

impl BadCheckLine {
    fn of(bad: &BadCheck) -> BadCheckLine {
        let (logged, replayed) = (bad.logged.to_string(), bad.replayed.to_string());
        BadCheckLine { tick: bad.tick.0, logged, replayed, text: bad.to_string() }
    }
}

impl fmt::Display for BadCheckLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Played {
    fn of(playback: &Playback<'_>, seconds: f64, state: Option<Layout>) -> Result<Played, CommandError> {
        let (run, log) = (playback.run(), playback.log());
        let played = playback.ticks_played();
        let real = played as f64 / f64::from(playback.game().rate().per_second());
        let raw = |json| RawValue::from_string(json).map_err(io::Error::other);
        let state =
            state.map(|layout| run.to_json(layout).map_err(io::Error::other).and_then(raw)).transpose()?;
        Ok(Played {
            log: log.path().display().to_string(),
            game: playback.game().name(),
            build: playback.game().build().to_string(),
            session: log.header().session.clone(),
            tick: run.tick().0,
            last_tick: log.last_tick().0,
            hash: run.hash().to_string(),
            ticks_played: played,
            from_tick: playback.started_from().0,
            seconds,
            times_real: if seconds > 0.0 { real / seconds } else { 0.0 },
            checks_compared: playback.checks_compared(),
            first_bad: playback
                .covered()
                .first_bad
                .filter(|bad| bad.tick <= run.tick())
                .as_ref()
                .map(BadCheckLine::of),
            torn_bytes: log.tail().torn_bytes,
            state,
            kept: playback.started_from() > Tick::ZERO,
        })
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Played { log, game, build, session, tick, last_tick, hash, ticks_played, from_tick, .. } = self;
        writeln!(f, "{log}: {game} of build {}, session {session:?}", &build[..8])?;
        writeln!(f, "  tick {tick} of {last_tick}, hash {hash}")?;
        let from =
            if self.kept { format!(" from the kept state of tick {from_tick}") } else { String::new() };
        let (ms, times) = (self.seconds * 1e3, self.times_real);
        writeln!(f, "  {ticks_played} ticks played{from} in {ms:.1} ms: {times:.0} times real time")?;
        if self.torn_bytes > 0 {
            writeln!(f, "  the last {} bytes of the log are torn, and were not read", self.torn_bytes)?;
        }
        match (&self.first_bad, self.checks_compared) {
            (Some(bad), _) => write!(f, "  A CHECK DOES NOT MATCH: {bad}")?,
            (None, Some(0)) => write!(f, "  no checks up to there")?,
            (None, Some(count)) => write!(f, "  {count} checks compared: all match")?,
            (None, None) => write!(f, "  all checks up to there matched when the states were kept")?,
        }
        self.state.as_ref().map_or(Ok(()), |state| write!(f, "\n{state}"))
    }
}

/// What two runs of one log came to.
#[derive(Serialize)]
struct TwiceReport {
    log: String,
    ticks: u32,
    same: bool,
    first_tick: Option<u32>,
    fields: Vec<Field>,
}

fn twice(args: &ReplayArgs, games: &Games) -> Result<ExitCode, CommandError> {
    let log = LogFile::open(&args.log)?;
    let to = args.to.map_or(log.last_tick(), Tick).min(log.last_tick());
    let found = play_twice(&log, games, to)?;
    let report = TwiceReport {
        log: args.log.display().to_string(),
        ticks: to.0,
        same: found.is_none(),
        first_tick: found.as_ref().map(|found| found.tick.0),
        fields: found.iter().flat_map(|found| &found.differences).map(Field::from).collect(),
    };
    print(&report, args.json)?;
    Ok(if report.same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl fmt::Display for TwiceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TwiceReport { log, ticks, .. } = self;
        let Some(tick) = self.first_tick else {
            return write!(
                f,
                "{log}: two instances came to the same state after each of {ticks} ticks: the game is deterministic \
                 here.\nIf players saw different things, look at the network: `sametick log diff` of their logs."
            );
        };
        write!(
            f,
            "{log}: TWO INSTANCES DIFFER from tick {tick} on, with the same inputs: a bug of the game"
        )?;
        self.fields.iter().try_for_each(|field| write!(f, "\n  {field}"))
    }
}

/// What two logs came to.
#[derive(Serialize)]
struct AgainstReport {
    log: String,
    other: String,
    /// How many ticks both have.
    ticks: u32,
    last_ticks: [u32; 2],
    same: bool,
    first_tick: Option<u32>,
    inputs: Option<InputsReport>,
    fields: Vec<Field>,
}

#[derive(Serialize)]
struct InputsReport {
    tick: u32,
    seats: Vec<SeatReport>,
}

#[derive(Serialize)]
struct SeatReport {
    seat: u8,
    first: Option<String>,
    second: Option<String>,
}

fn against(args: &ReplayArgs, other: &std::path::Path, games: &Games) -> Result<ExitCode, CommandError> {
    let mut ours = Playback::open(&args.log, games, Keep::InMemory)?;
    let mut theirs = Playback::open(other, games, Keep::InMemory)?;
    let last_ticks = [&ours, &theirs].map(|playback| playback.log().last_tick().0);
    let to = args.to.unwrap_or(u32::MAX).min(last_ticks[0]).min(last_ticks[1]);
    let found = compare(&mut ours, &mut theirs, Tick(to))?;
    let report = AgainstReport {
        log: args.log.display().to_string(),
        other: other.display().to_string(),
        ticks: to,
        last_ticks,
        same: found.is_none(),
        first_tick: found.as_ref().map(|found| found.tick.0),
        inputs: found.as_ref().and_then(|found| inputs_report(found, ours.game())),
        fields: found.iter().flat_map(|found| &found.differences).map(Field::from).collect(),
    };
    print(&report, args.json)?;
    Ok(if report.same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The seats on which something else happened.
fn inputs_report(found: &Divergence, game: &dyn AnyGame) -> Option<InputsReport> {
    let inputs = found.inputs.as_ref()?;
    let seats: std::collections::BTreeSet<_> =
        inputs.ours.iter().chain(inputs.theirs.iter()).map(|row| row.seat).collect();
    let differing = seats.into_iter().filter(|seat| inputs.ours.get(*seat) != inputs.theirs.get(*seat));
    let seats = differing.map(|seat| {
        let [first, second] =
            [&inputs.ours, &inputs.theirs].map(|inputs| inputs.get(seat).map(|row| of_row(&row, Some(game))));
        SeatReport { seat: seat.0, first, second }
    });
    Some(InputsReport { tick: inputs.ours.tick().0, seats: seats.collect() })
}

impl fmt::Display for AgainstReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AgainstReport { log, other, ticks, last_ticks, .. } = self;
        let Some(tick) = self.first_tick else {
            write!(f, "{log} and {other} come to the same state after each of {ticks} ticks")?;
            let [ours, theirs] = last_ticks;
            return match ours.cmp(theirs) {
                std::cmp::Ordering::Equal => Ok(()),
                _ => write!(f, "; one ends with tick {ours}, the other with tick {theirs}"),
            };
        };
        writeln!(f, "{log} and {other} PART WAYS in tick {tick}")?;
        match &self.inputs {
            None if tick == 0 => write!(f, "they start from different setups")?,
            None => write!(f, "with the same inputs: a bug of the game; see --twice")?,
            Some(inputs) => {
                write!(f, "inputs that differ, first in tick {}:", inputs.tick)?;
                for SeatReport { seat, first, second } in &inputs.seats {
                    let [first, second] = [first, second].map(|side| side.as_deref().unwrap_or("nobody"));
                    write!(f, "\n  seat {seat}: {first} and {second}")?;
                }
            }
        }
        write!(f, "\nstates after tick {tick}:")?;
        self.fields.iter().try_for_each(|field| write!(f, "\n  {field}"))
    }
}
