//! Reports of replays, of two instances and of two logs, as text and as JSON.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::Path;

use sametick_sim::Tick;
use serde::Serialize;
use serde_json::value::RawValue;

use super::against::Divergence;
use super::twice::Disagreement;
use super::{BadCheck, Playback, Start};
use crate::cli::CommandError;
use crate::games::{AnyGame, Layout};
use crate::logs::of_row;
use crate::report::{Count, Field};

/// The result of replaying a log.
#[derive(Serialize)]
pub struct Played {
    log: String,
    game: &'static str,
    build: String,
    session: String,
    tick: u32,
    last_tick: u32,
    hash: String,
    ticks_played: u64,
    /// The tick of the state it began from; zero for the start.
    from_tick: u32,
    /// Whether that state is the save beside the log.
    from_save: bool,
    /// The first tick of the log.
    first_tick: u32,
    seconds: f64,
    /// How many times faster than real time it was.
    times_real: f64,
    /// `None` if they were compared when the states were kept.
    checks_compared: Option<usize>,
    pub first_bad: Option<BadCheckLine>,
    torn_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Box<RawValue>>,
    #[serde(skip)]
    started_from: Start,
}

#[derive(Serialize)]
pub struct BadCheckLine {
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
    pub fn of(playback: &Playback<'_>, seconds: f64, state: Option<Layout>) -> Result<Played, CommandError> {
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
            from_tick: playback.started_from().tick().0,
            from_save: matches!(playback.started_from(), Start::Save(_)),
            first_tick: log.header().first_tick.0,
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
            started_from: playback.started_from(),
        })
    }
}

impl Played {
    /// Which checks could be compared.
    fn checked(&self) -> String {
        if self.from_save { format!("after tick {}", self.from_tick) } else { "up to there".into() }
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Played { log, game, build, session, tick, last_tick, hash, ticks_played, .. } = self;
        writeln!(f, "{log}: {game} of build {}, session {session:?}", &build[..8])?;
        writeln!(f, "  tick {tick} of {last_tick}, hash {hash}")?;
        let from = match self.started_from {
            Start::Setup => String::new(),
            Start::Kept(tick) => format!(" from the kept state of tick {tick}"),
            Start::Save(tick) => format!(" from the save of tick {tick}"),
        };
        let (ms, times) = (self.seconds * 1e3, self.times_real);
        let played = Count(*ticks_played, "tick");
        writeln!(f, "  {played} played{from} in {ms:.1} ms: {times:.0} times real time")?;
        if self.first_tick > 1 {
            writeln!(f, "  the log begins with tick {}: what was before is not there", self.first_tick)?;
        }
        if self.torn_bytes > 0 {
            writeln!(f, "  the last {} bytes of the log are torn, and were not read", self.torn_bytes)?;
        }
        match (&self.first_bad, self.checks_compared) {
            (Some(bad), _) => write!(f, "  A CHECK DOES NOT MATCH: {bad}")?,
            (None, None) if self.from_save => write!(f, "  no checks {}", self.checked())?,
            (None, Some(0)) => write!(f, "  no checks {}", self.checked())?,
            (None, Some(count)) if self.from_save => {
                write!(f, "  {} {} compared: all match", Count(count as u64, "check"), self.checked())?;
            }
            (None, Some(count)) => {
                write!(f, "  {} compared: all match", Count(count as u64, "check"))?;
            }
            (None, None) => write!(f, "  all checks up to there matched when the states were kept")?,
        }
        self.state.as_ref().map_or(Ok(()), |state| write!(f, "\n{state}"))
    }
}

/// The result of two runs of one log.
#[derive(Serialize)]
pub struct TwiceReport {
    log: String,
    ticks: u32,
    same: bool,
    first_tick: Option<u32>,
    fields: Vec<Field>,
}

impl TwiceReport {
    pub fn of(log: &Path, to: Tick, found: Option<&Disagreement>) -> TwiceReport {
        TwiceReport {
            log: log.display().to_string(),
            ticks: to.0,
            same: found.is_none(),
            first_tick: found.map(|found| found.tick.0),
            fields: found.into_iter().flat_map(|found| &found.differences).map(Field::from).collect(),
        }
    }
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

/// The result of comparing two logs.
#[derive(Serialize)]
pub struct AgainstReport {
    log: String,
    other: String,
    /// How many ticks both logs have.
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
    seat: u16,
    first: Option<String>,
    second: Option<String>,
}

impl AgainstReport {
    pub fn of(
        ours: &Playback<'_>,
        theirs: &Playback<'_>,
        to: Tick,
        found: Option<&Divergence>,
    ) -> AgainstReport {
        AgainstReport {
            log: ours.log().path().display().to_string(),
            other: theirs.log().path().display().to_string(),
            ticks: to.0,
            last_ticks: [ours, theirs].map(|playback| playback.log().last_tick().0),
            same: found.is_none(),
            first_tick: found.map(|found| found.tick.0),
            inputs: found.and_then(|found| inputs_report(found, ours.game())),
            fields: found.into_iter().flat_map(|found| &found.differences).map(Field::from).collect(),
        }
    }
}

/// The seats with different inputs.
fn inputs_report(found: &Divergence, game: &dyn AnyGame) -> Option<InputsReport> {
    let inputs = found.inputs.as_ref()?;
    let seats: BTreeSet<_> = inputs.ours.iter().chain(inputs.theirs.iter()).map(|row| row.seat).collect();
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
