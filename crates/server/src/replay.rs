//! Replays a log: to any tick, step by step, against another log, or on two instances at once.
//!
//! A [`Playback`] is a log with its game. It compares the checks of the log on the way, and keeps [states] so that
//! going back, or opening the log again, is quick.
//!
//! ```no_run
//! use sametick::games::Layout;
//! use sametick::replay::{Keep, Playback};
//! use sametick_sim::Tick;
//!
//! let games = sametick::games![sametick_pong::Pong];
//! let mut playback = Playback::open("match.log".as_ref(), &games, Keep::InFile)?;
//! playback.go_to(Tick(3_999))?;
//! println!("{}", playback.run().to_json(Layout::Page)?);
//! assert_eq!(playback.covered().first_bad, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod against;
mod beginning;
mod command;
mod reports;
pub mod states;
mod stepping;
mod twice;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sametick_sim::canon::DecodeError;
use sametick_sim::record::TickInputs;
use sametick_sim::{StateHash, Tick};
use serde::{Deserialize, Serialize};

use crate::games::{AnyGame, Games, Run, Unknown};
use crate::logs::{LogError, LogFile};
use crate::progress::Progress;

pub use against::{Divergence, InputsAt, compare};
pub use beginning::NotUsed;
pub use command::{ReplayArgs, replay};
pub use states::{Covered, States};
pub(crate) use twice::on_two_threads;
pub use twice::{Disagreement, play_twice};

/// Fewer new states than this are not written to the file: they are quickly computed again.
const WORTH_KEEPING: usize = 10;

/// A log and its game, at some tick.
pub struct Playback<'a> {
    log: LogFile,
    game: &'a dyn AnyGame,
    run: Box<dyn Run>,
    states: States,
    covered: Covered,
    /// The hashes of the log's checks, once they are needed.
    checks: Option<BTreeMap<Tick, StateHash>>,
    /// The state of the save beside the log, if a replay may begin with it.
    save: Option<(Tick, Vec<u8>)>,
    /// Ticks up to `covered.to` whose checks were not compared, because the replay began with a later save.
    passed_over: Option<RangeInclusive<Tick>>,
    /// How many ticks this playback has simulated.
    played: u64,
    started_from: Start,
    new_states: usize,
    bytes: Vec<u8>,
}

/// What the last seek began from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The setup of the session.
    Setup,
    /// The state after a tick: the current one, or one kept from an earlier seek.
    Kept(Tick),
    /// The save of a tick that lies beside the log.
    Save(Tick),
}

impl Start {
    /// The tick of that state; zero for the setup.
    pub fn tick(self) -> Tick {
        match self {
            Start::Setup => Tick::ZERO,
            Start::Kept(tick) | Start::Save(tick) => tick,
        }
    }
}

/// Where states are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// In memory, for as long as the playback lives.
    InMemory,
    /// In a file beside the log; existing states are used.
    InFile,
    /// In a file beside the log, replacing existing states: everything is simulated and compared again.
    Afresh,
}

/// A check of the log that does not match the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadCheck {
    /// The tick after which it was taken.
    pub tick: Tick,
    /// The hash in the log, which the players agreed on.
    pub logged: StateHash,
    /// The hash that the replay has computed.
    pub replayed: StateHash,
}

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log needs a game, or a build of one, that is not known.
    #[error("{}: {unknown}; {}", path.display(), advice(commit, unknown.commit))]
    Unknown {
        /// The log.
        path: PathBuf,
        /// What is missing, and what is known instead.
        unknown: Box<Unknown>,
        /// The commit of the log's build.
        commit: String,
    },
    /// The log is of a known build, but has another schema.
    #[error("{}: the log is of this build, but of another schema: it is not what it says", .0.display())]
    Schema(PathBuf),
    /// The log continues another one, and there is no save to begin with.
    #[error("{}: a part of a log that begins at tick {first}; a replay begins with the part that has tick 1, or with a save of \
        tick {} or later: {why}", path.display(), first.0.saturating_sub(1))]
    Part {
        /// The log.
        path: PathBuf,
        /// Its first tick.
        first: Tick,
        /// Why the replay cannot begin with the save.
        why: NotUsed,
    },
    /// The ticks before the save are not available.
    #[error("{}: there is no tick {asked} any more: the log begins with tick {first}, and the first state there is is the save of \
        tick {begins}", path.display())]
    TooEarly {
        /// The log.
        path: PathBuf,
        /// The tick that was asked for.
        asked: Tick,
        /// The first tick in the log.
        first: Tick,
        /// The tick of the save.
        begins: Tick,
    },
    /// The setup of the session cannot be decoded.
    #[error("{}: the setup in the header cannot be read: {error}", path.display())]
    Setup {
        /// The log.
        path: PathBuf,
        /// The error.
        error: DecodeError,
    },
    /// The log ends before that tick.
    #[error("{}: there is no tick {asked}; the log ends with tick {last}", path.display())]
    NoSuchTick {
        /// The log.
        path: PathBuf,
        /// The tick that was asked for.
        asked: Tick,
        /// The last tick.
        last: Tick,
    },
    /// The game panics.
    #[error("{}: the game panics in tick {tick}", path.display())]
    Panicked {
        /// The log.
        path: PathBuf,
        /// The tick.
        tick: Tick,
    },
    /// Two logs are of different games.
    #[error("{} is of another game or build than {}: only logs of one build can be compared tick by tick", .0.display(), .1.display())]
    Mixed(PathBuf, PathBuf),
}

impl<'a> Playback<'a> {
    /// Opens a log before its first tick, or at the save beside it if the log lacks its beginning.
    pub fn open(path: &Path, games: &'a Games, keep: Keep) -> Result<Playback<'a>, ReplayError> {
        Playback::of(LogFile::open(path)?, games, keep)
    }

    /// Opens a playback of an open log.
    pub fn of(mut log: LogFile, games: &'a Games, keep: Keep) -> Result<Playback<'a>, ReplayError> {
        let game = game_of(&log, games)?;
        let run = begin(&mut log, game)?;
        let interval = game.rate().per_second();
        // A log from an object store has no folder for states, and a log without its beginning was not compared from
        // its start.
        let keep = if log.is_file() && run.tick() == Tick::ZERO { keep } else { Keep::InMemory };
        let (states, covered) = match keep {
            Keep::InMemory if run.tick() > Tick::ZERO => {
                (States::in_memory(interval), Covered { to: run.tick(), first_bad: None })
            }
            Keep::InMemory => (States::in_memory(interval), Covered::default()),
            Keep::Afresh => (States::new(log.path(), interval), Covered::default()),
            Keep::InFile => States::load(&mut log, game.build()).unwrap_or_else(|(place, why)| {
                if !matches!(why, states::Unusable::None) {
                    tracing::warn!("the states in {} are not used: {why}", place.display());
                }
                (States::new(log.path(), interval), Covered::default())
            }),
        };
        let mut playback = Playback {
            log,
            game,
            run,
            states,
            covered,
            checks: None,
            save: None,
            passed_over: None,
            played: 0,
            started_from: Start::Setup,
            new_states: 0,
            bytes: Vec::new(),
        };
        playback.keep_beginning();
        Ok(playback)
    }

    /// Keeps the state of the save that the log begins with: seeking back ends there.
    fn keep_beginning(&mut self) {
        let begins = self.run.tick();
        if begins > Tick::ZERO {
            self.run.save(&mut self.bytes);
            self.save = Some((begins, self.bytes.clone()));
            self.passed_over = Some(Tick(1)..=begins);
            self.started_from = Start::Save(begins);
        }
    }

    /// From now on a seek begins with the save beside the log if that is nearer than the setup and all kept states. The
    /// save is used only if the log agrees with it; otherwise returns why not. `None` if there is no save.
    pub fn use_save(&mut self) -> Result<Option<NotUsed>, ReplayError> {
        if self.begins() > Tick::ZERO {
            return Ok(None);
        }
        match beginning::agreed_save(&mut self.log, self.game)? {
            Ok(save) => self.save = Some((save.info.tick, save.state)),
            Err(NotUsed::None) => {}
            Err(why) => return Ok(Some(why)),
        }
        Ok(None)
    }

    /// The first tick that can be reached: zero, unless the log lacks its beginning.
    pub fn begins(&self) -> Tick {
        if self.log.header().first_tick <= Tick(1) {
            return Tick::ZERO;
        }
        self.save.as_ref().map_or(Tick::ZERO, |(tick, _)| *tick)
    }

    /// The log.
    pub fn log(&self) -> &LogFile {
        &self.log
    }

    /// The game.
    pub fn game(&self) -> &'a dyn AnyGame {
        self.game
    }

    /// The current state.
    pub fn run(&self) -> &dyn Run {
        &*self.run
    }

    /// How far the checks of the log were compared, and the first that did not match.
    pub fn covered(&self) -> Covered {
        self.covered
    }

    /// How many checks were compared by this playback.
    pub fn checks_compared(&self) -> Option<usize> {
        let passed = |tick: &Tick| self.passed_over.as_ref().is_some_and(|passed| passed.contains(tick));
        let compared = |checks: &BTreeMap<Tick, StateHash>| {
            checks.range(..=self.covered.to).filter(|(tick, _)| !passed(tick)).count()
        };
        self.checks.as_ref().map(compared)
    }

    /// All checks of the log.
    pub fn read_checks(&mut self) -> Result<&BTreeMap<Tick, StateHash>, ReplayError> {
        if self.checks.is_none() {
            self.checks = Some(read_checks(&mut self.log)?);
        }
        Ok(self.checks.get_or_insert_default())
    }

    /// How many ticks this playback has simulated.
    pub fn ticks_played(&self) -> u64 {
        self.played
    }

    /// What the last seek began from.
    pub fn started_from(&self) -> Start {
        self.started_from
    }

    /// Goes to the state after a tick, from the nearest state before it.
    pub fn go_to(&mut self, tick: Tick) -> Result<(), ReplayError> {
        self.expect_tick(tick)?;
        let here = self.run.tick();
        let is_nearer = |there: Tick| there <= tick && (there > here || here > tick);
        let kept = self.states.before(tick).filter(|(kept, _)| is_nearer(*kept));
        let kept_tick = kept.as_ref().map(|(kept, _)| *kept);
        let saved = self.save.as_ref().filter(|(saved, _)| is_nearer(*saved) && Some(*saved) > kept_tick);
        match (saved, kept) {
            (Some((saved, state)), _) if self.run.load(*saved, state).is_ok() => {
                self.started_from = Start::Save(*saved);
                self.pass_over();
            }
            (_, Some((kept, state))) if self.run.load(kept, &state).is_ok() => {
                self.started_from = Start::Kept(kept);
            }
            _ if here > tick => {
                self.run = begin(&mut self.log, self.game)?;
                self.started_from = Start::Setup;
                self.compare_again();
            }
            _ => self.started_from = self.start_of(here),
        }
        self.play_to(tick, |_, _| {})
    }

    fn start_of(&self, here: Tick) -> Start {
        match here {
            Tick::ZERO => Start::Setup,
            here if here == self.begins() => Start::Save(here),
            here => Start::Kept(here),
        }
    }

    /// Marks the checks before the current save as not compared.
    fn pass_over(&mut self) {
        let (from, to) = (self.covered.to.next(), self.run.tick());
        if from <= to {
            self.passed_over = Some(from..=to);
            self.covered.to = to;
        }
    }

    /// Begins to compare the checks that were skipped.
    fn compare_again(&mut self) {
        if let Some(passed) = self.passed_over.take() {
            self.covered.to = Tick(passed.start().0.saturating_sub(1));
        }
    }

    /// Plays on up to a tick, and shows every tick on the way.
    pub fn play_to(
        &mut self,
        tick: Tick,
        mut each: impl FnMut(&dyn Run, &TickInputs),
    ) -> Result<(), ReplayError> {
        self.expect_tick(tick)?;
        let from = self.run.tick();
        if tick > self.covered.to {
            self.read_checks()?;
        }
        let mut progress = Progress::new("replaying", u64::from(tick.0));
        let damage = self.log.damage();
        let path = self.log.path().to_owned();
        let mut ticks = self.log.reader().ticks_from(from.next());
        while self.run.tick() < tick {
            let Some(inputs) = ticks.next().map_err(&damage)? else { break };
            let now = inputs.tick();
            step(&mut *self.run, inputs, &path)?;
            self.played += 1;
            progress.at(u64::from(now.0));
            let logged =
                self.checks.as_ref().filter(|_| now > self.covered.to).map(|checks| checks.get(&now));
            if let Some(logged) = logged {
                self.covered = compare_check(self.covered, now, logged, &*self.run);
            }
            if self.states.wants(now) {
                self.run.save(&mut self.bytes);
                self.states.keep(now, &self.bytes);
                self.new_states += 1;
            }
            each(&*self.run, inputs);
        }
        Ok(())
    }

    /// Writes the kept states to their file, if there are enough of them.
    pub fn keep_states(&mut self) {
        // States after a save would be taken for compared from the start on.
        if self.new_states < WORTH_KEEPING || self.passed_over.is_some() {
            return;
        }
        if let Err(error) = self.states.save(&mut self.log, self.game.build(), self.covered) {
            tracing::warn!("the states of {} cannot be kept: {error}", self.log.path().display());
        }
    }

    /// The inputs of a tick, if it is in the log.
    pub fn inputs_at(&mut self, tick: Tick) -> Result<Option<TickInputs>, ReplayError> {
        let damage = self.log.damage();
        let mut ticks = self.log.reader().ticks_from(tick);
        let found = ticks.next().map_err(damage)?;
        Ok(found.filter(|inputs| inputs.tick() == tick).cloned())
    }

    fn expect_tick(&self, tick: Tick) -> Result<(), ReplayError> {
        let (last, begins) = (self.log.last_tick(), self.begins());
        let path = || self.log.path().to_owned();
        if tick > last {
            return Err(ReplayError::NoSuchTick { path: path(), asked: tick, last });
        }
        if tick < begins {
            let first = self.log.header().first_tick;
            return Err(ReplayError::TooEarly { path: path(), asked: tick, first, begins });
        }
        Ok(())
    }
}

impl fmt::Debug for Playback<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at tick {}", self.log.path().display(), self.run.tick())
    }
}

impl fmt::Display for BadCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadCheck { tick, logged, replayed } = self;
        write!(f, "at tick {tick} the players agreed on {logged}, the replay comes to {replayed}")
    }
}

/// The game that a log needs.
pub fn game_of<'a>(log: &LogFile, games: &'a Games) -> Result<&'a dyn AnyGame, ReplayError> {
    let header = log.header();
    let path = || log.path().to_owned();
    let game = games.find(&header.game, header.build).map_err(|unknown| ReplayError::Unknown {
        path: path(),
        unknown: Box::new(unknown),
        commit: header.commit.clone(),
    })?;
    if game.schema() != header.schema {
        return Err(ReplayError::Schema(path()));
    }
    Ok(game)
}

/// The state before the first tick of a log; that of the save in it or beside it if the log lacks its beginning.
fn begin(log: &mut LogFile, game: &dyn AnyGame) -> Result<Box<dyn Run>, ReplayError> {
    if log.header().first_tick > Tick(1) {
        return beginning::of_part(log, game);
    }
    let setup = |error| ReplayError::Setup { path: log.path().to_owned(), error };
    game.begin(&log.header().setup).map_err(setup)
}

/// Plays one tick. A panic prints what happened; the error has the tick.
fn step(run: &mut dyn Run, inputs: &TickInputs, path: &Path) -> Result<(), ReplayError> {
    catch_unwind(AssertUnwindSafe(|| run.step(inputs)))
        .map_err(|_| ReplayError::Panicked { path: path.to_owned(), tick: inputs.tick() })
}

fn read_checks(log: &mut LogFile) -> Result<BTreeMap<Tick, StateHash>, ReplayError> {
    let damage = log.damage();
    Ok(log.reader().checks().collect::<Result<_, _>>().map_err(damage)?)
}

fn compare_check(covered: Covered, now: Tick, logged: Option<&StateHash>, run: &dyn Run) -> Covered {
    let first_bad = covered.first_bad.or_else(|| {
        let (logged, replayed) = (*logged?, run.hash());
        (logged != replayed).then_some(BadCheck { tick: now, logged, replayed })
    });
    Covered { to: now, first_bad }
}

/// What to do about a log of another build, with this commit, for a program of the commit `ours`.
pub(crate) fn advice(commit: &str, ours: &str) -> String {
    // Pages report `browser`: they do not know their commit.
    let is_commit = !commit.is_empty() && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    match commit {
        _ if !is_commit => "the log does not say which commit to check out".into(),
        _ if commit == ours => format!("it is of commit {commit} too: one was built with changes to it"),
        _ => format!("check out commit {commit} and build that"),
    }
}
