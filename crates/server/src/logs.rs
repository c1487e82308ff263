//! `sametick log`: shows, verifies, compares and exports logs.

mod compare;
mod file;
mod info;
mod lines;
mod named;
mod verify;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use sametick_sim::Tick;
use sametick_store::log::export::{self, ExportError, header_to_json, record_to_json};

use crate::cli::CommandError;
use crate::games::Games;

pub use file::{LogBytes, LogError, LogFile};
pub use info::{LogInfo, PlayerInfo, info_of};
pub(crate) use lines::{of_row, rows};
pub use named::NamedLog;
pub(crate) use named::open;
pub use verify::{Verdict, verify};

/// The subcommands of `sametick log`.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "\
Examples:
  sametick log info match.log
  sametick log cat match.log --from 3990 --to 4010
  sametick log verify match.log
  sametick log verify friday-1800000000000 --store s3://games/sametick
  sametick log diff ada.log bob.log
  sametick log export --jsonl match.log -o match.jsonl

A relay keeps one folder for each session; each command also takes the folder in place of the log in it.
All but diff also take a session that is kept, by its id, from a data folder or from S3 (--store); `sametick sessions list`
prints the ids.")]
pub enum LogCommand {
    /// What a log is of: game, build, players, length, size
    #[command(after_help = "Examples:
  sametick log info match.log
  sametick log info match.log --json | jq .players")]
    Info(OneLog),
    /// Print what happened, a line for each record
    #[command(after_help = "Examples:
  sametick log cat match.log | less
  sametick log cat match.log --from 3990 --to 4010
  sametick log cat match.log --json | jq 'select(.kind == \"check\")'")]
    Cat(CatArgs),
    /// Read all of it, play it again if its build is here, and compare every check
    #[command(after_help = "Examples:
  sametick log verify match.log && echo sound

Ends with an error if the log is damaged or torn, or if a check does not match.")]
    Verify(OneLog),
    /// Compare two logs, or two streams of events (.jsonl)
    #[command(after_help = "Examples:
  sametick log diff ada.log bob.log
  sametick log diff expected.jsonl match.log --json

Reports missing, reordered and different events, and headers that differ (schema drift).
Ends with an error if there are any.")]
    Diff(DiffArgs),
    /// Write every record as a line of JSON
    #[command(after_help = "Examples:
  sametick log export --jsonl match.log -o match.jsonl
  sametick log export match.log | grep '\"kind\":\"desync\"'")]
    Export(ExportArgs),
}

/// A log, and the form of the output.
#[derive(Clone, Debug, Args)]
pub struct OneLog {
    #[command(flatten)]
    named: NamedLog,

    /// Print a line of JSON
    #[arg(long)]
    json: bool,
}

/// The arguments of `sametick log cat`.
#[derive(Clone, Debug, Args)]
pub struct CatArgs {
    #[command(flatten)]
    one: OneLog,

    /// From this tick on
    #[arg(long, value_name = "TICK", default_value_t = 0)]
    from: u32,

    /// Up to this tick
    #[arg(long, value_name = "TICK")]
    to: Option<u32>,
}

/// The arguments of `sametick log diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// A log, or a stream of events
    #[arg(value_name = "A")]
    left: PathBuf,

    /// Another one
    #[arg(value_name = "B")]
    right: PathBuf,

    /// Compare only up to this tick
    #[arg(long, value_name = "TICK")]
    to: Option<u32>,

    /// How many differences to print
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Print a line of JSON
    #[arg(long)]
    json: bool,
}

/// The arguments of `sametick log export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    named: NamedLog,

    /// As lines of JSON, the only form there is
    #[arg(long, visible_alias = "json")]
    jsonl: bool,

    /// Into this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs `sametick log`.
pub fn log(command: &LogCommand, games: &Games) -> Result<ExitCode, CommandError> {
    match command {
        LogCommand::Info(args) => {
            let report = info_of(&mut args.named.open()?, games)?;
            crate::report::print(&report, args.json)?;
            Ok(ExitCode::SUCCESS)
        }
        LogCommand::Cat(args) => cat(args, games),
        LogCommand::Verify(args) => {
            let verdict = verify(args.named.open()?, games)?;
            crate::report::print(&verdict, args.json)?;
            Ok(if verdict.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        LogCommand::Diff(args) => {
            let report = compare::compare(&args.left, &args.right, args.to.map(Tick), args.limit)?;
            crate::report::print(&report, args.json)?;
            Ok(if report.count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        LogCommand::Export(args) => export(args),
    }
}

fn cat(args: &CatArgs, games: &Games) -> Result<ExitCode, CommandError> {
    let mut log = args.one.named.open()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let header = log.header().clone();
    let game = games.find(&header.game, header.build).ok();
    if args.one.json {
        writeln!(out, "{}", header_to_json(&header))?;
    } else {
        let (game, build, session) = (&header.game, header.build, &header.session);
        writeln!(out, "{game} of build {build}, session {session:?}, from tick {}", header.first_tick)?;
    }
    let range = Tick(args.from)..=args.to.map_or(Tick(u32::MAX), Tick);
    let damage = log.damage();
    let mut records = log.reader().records();
    let mut at = Tick::ZERO;
    while let Some(record) = records.next().map_err(&damage)? {
        // A record without a tick belongs to the tick before it.
        at = record.tick().unwrap_or(at);
        if !range.contains(&at) {
            continue;
        }
        match args.one.json {
            true => writeln!(out, "{}", record_to_json(record))?,
            false => writeln!(out, "{}", lines::line(record, &header, game))?,
        }
    }
    out.flush()?;
    let torn = log.tail().torn_bytes;
    if torn > 0 {
        eprintln!("sametick: the last {torn} bytes of {} are torn, and were not read", log.path().display());
    }
    Ok(ExitCode::SUCCESS)
}

fn export(args: &ExportArgs) -> Result<ExitCode, CommandError> {
    let mut log = args.named.open()?;
    match &args.output {
        Some(path) => write_lines(&mut log, &mut create(path)?)?,
        None => write_lines(&mut log, &mut BufWriter::new(io::stdout().lock()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn create(path: &Path) -> Result<BufWriter<std::fs::File>, CommandError> {
    let file = std::fs::File::create(path);
    let error = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    Ok(BufWriter::new(file.map_err(error)?))
}

fn write_lines(log: &mut LogFile, out: &mut impl Write) -> Result<(), CommandError> {
    let damage = log.damage();
    match export::jsonl(log.reader(), out) {
        Ok(()) => Ok(out.flush()?),
        Err(ExportError::Write(error)) => Err(error.into()),
        Err(ExportError::Read(error)) => Err(damage(error).into()),
    }
}
