//! Playing a log again: to any tick, step by step, against another log, or on two instances at once.
//!
//! A [`Playback`] is a log and the game it needs. It compares the checks of the log as it passes them, and keeps
//! [states] so that going back, or coming again, is quick.
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
mod command;
mod reports;
pub mod states;
mod stepping;
mod twice;

use std::collections::BTreeMap;
use std::fmt;
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
pub use command::{ReplayArgs, replay};
pub use states::{Covered, States};
pub(crate) use twice::on_two_threads;
pub use twice::{Disagreement, play_twice};

/// Fewer new states than this are not worth a file: it takes no time to make them again.
const WORTH_KEEPING: usize = 10;

/// A log, and the game it needs, at some tick.
pub struct Playback<'a> {
    log: LogFile,
    game: &'a dyn AnyGame,
    run: Box<dyn Run>,
    states: States,
    covered: Covered,
    /// The hashes of the log, once they are needed.
    checks: Option<BTreeMap<Tick, StateHash>>,
    /// How many ticks were played here.
    played: u64,
    started_from: Tick,
    new_states: usize,
    bytes: Vec<u8>,
}

/// Where states are kept on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// In memory, for as long as the playback lives.
    InMemory,
    /// In a file beside the log; those that are there already are used.
    InFile,
    /// In a file beside the log, in place of those that are there: everything is played and compared again.
    Afresh,
}

/// A check of the log that a replay does not come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadCheck {
    /// After which tick.
    pub tick: Tick,
    /// What the players agreed on.
    pub logged: StateHash,
    /// What the replay came to.
    pub replayed: StateHash,
}

/// Why a log cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// It needs a game, or a build of one, that is not here.
    #[error("{}: {unknown}; {}", path.display(), advice(commit))]
    Unknown {
        /// Which log.
        path: PathBuf,
        /// What is missing, and what there is instead.
        unknown: Box<Unknown>,
        /// The commit that its build was made from.
        commit: String,
    },
    /// It is of this build, but says other things of its types.
    #[error("{}: the log is of this build, but of another schema: it is not what it says", .0.display())]
    Schema(PathBuf),
    /// It goes on where another one ends.
    #[error("{}: a part of a log that begins at tick {first}; a replay begins with the part that has tick 1", path.display())]
    Part {
        /// Which log.
        path: PathBuf,
        /// Its first tick.
        first: Tick,
    },
    /// What the session started from cannot be read.
    #[error("{}: the setup in the header cannot be read: {error}", path.display())]
    Setup {
        /// Which log.
        path: PathBuf,
        /// Why not.
        error: DecodeError,
    },
    /// The log does not go so far.
    #[error("{}: there is no tick {asked}; the log ends with tick {last}", path.display())]
    NoSuchTick {
        /// Which log.
        path: PathBuf,
        /// The tick that was asked for.
        asked: Tick,
        /// The last one there is.
        last: Tick,
    },
    /// The game failed.
    #[error("{}: the game panics in tick {tick}", path.display())]
    Panicked {
        /// Which log.
        path: PathBuf,
        /// In which tick.
        tick: Tick,
    },
    /// Two logs are of different games.
    #[error("{} is of another game or build than {}: only logs of one build can be compared tick by tick", .0.display(), .1.display())]
    Mixed(PathBuf, PathBuf),
}

impl<'a> Playback<'a> {
    /// Opens a log before its first tick.
    pub fn open(path: &Path, games: &'a Games, keep: Keep) -> Result<Playback<'a>, ReplayError> {
        Playback::of(LogFile::open(path)?, games, keep)
    }

    /// A log that is open.
    pub fn of(mut log: LogFile, games: &'a Games, keep: Keep) -> Result<Playback<'a>, ReplayError> {
        let game = game_of(&log, games)?;
        let run = begin(&log, game)?;
        let interval = game.rate().per_second();
        let (states, covered) = match keep {
            Keep::InMemory => (States::in_memory(interval), Covered::default()),
            Keep::Afresh => (States::new(log.path(), interval), Covered::default()),
            Keep::InFile => States::load(&mut log, game.build()).unwrap_or_else(|(place, why)| {
                if !matches!(why, states::Unusable::None) {
                    tracing::warn!("the states in {} are not used: {why}", place.display());
                }
                (States::new(log.path(), interval), Covered::default())
            }),
        };
        Ok(Playback {
            log,
            game,
            run,
            states,
            covered,
            checks: None,
            played: 0,
            started_from: Tick::ZERO,
            new_states: 0,
            bytes: Vec::new(),
        })
    }

    /// The log.
    pub fn log(&self) -> &LogFile {
        &self.log
    }

    /// The game.
    pub fn game(&self) -> &'a dyn AnyGame {
        self.game
    }

    /// The state it is at.
    pub fn run(&self) -> &dyn Run {
        &*self.run
    }

    /// How far the checks of the log were compared, and the first that did not match.
    pub fn covered(&self) -> Covered {
        self.covered
    }

    /// How many checks were compared, of those that were looked at here.
    pub fn checks_compared(&self) -> Option<usize> {
        self.checks.as_ref().map(|checks| checks.range(..=self.covered.to).count())
    }

    /// The checks of the log, all of them.
    pub fn read_checks(&mut self) -> Result<&BTreeMap<Tick, StateHash>, ReplayError> {
        if self.checks.is_none() {
            self.checks = Some(read_checks(&mut self.log)?);
        }
        Ok(self.checks.get_or_insert_default())
    }

    /// How many ticks were played here.
    pub fn ticks_played(&self) -> u64 {
        self.played
    }

    /// The tick of the kept state that the last way began from; zero if it was the start.
    pub fn started_from(&self) -> Tick {
        self.started_from
    }

    /// Goes to the state after a tick, from the nearest state before it.
    pub fn go_to(&mut self, tick: Tick) -> Result<(), ReplayError> {
        self.expect_tick(tick)?;
        let here = self.run.tick();
        let kept = self.states.before(tick).filter(|(kept, _)| *kept > here || here > tick);
        match kept {
            Some((kept, state)) if self.run.load(kept, &state).is_ok() => self.started_from = kept,
            _ if here > tick => {
                self.run = begin(&self.log, self.game)?;
                self.started_from = Tick::ZERO;
            }
            _ => self.started_from = here,
        }
        self.play_to(tick, |_, _| {})
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

    /// Writes the states that were kept to their file, if there are enough to be worth it.
    pub fn keep_states(&mut self) {
        if self.new_states < WORTH_KEEPING {
            return;
        }
        if let Err(error) = self.states.save(&mut self.log, self.game.build(), self.covered) {
            tracing::warn!("the states of {} cannot be kept: {error}", self.log.path().display());
        }
    }

    /// What happened in a tick, if it is in the log.
    pub fn inputs_at(&mut self, tick: Tick) -> Result<Option<TickInputs>, ReplayError> {
        let damage = self.log.damage();
        let mut ticks = self.log.reader().ticks_from(tick);
        let found = ticks.next().map_err(damage)?;
        Ok(found.filter(|inputs| inputs.tick() == tick).cloned())
    }

    fn expect_tick(&self, tick: Tick) -> Result<(), ReplayError> {
        let last = self.log.last_tick();
        let path = || self.log.path().to_owned();
        if tick > last { Err(ReplayError::NoSuchTick { path: path(), asked: tick, last }) } else { Ok(()) }
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
    if header.first_tick > Tick(1) {
        return Err(ReplayError::Part { path: path(), first: header.first_tick });
    }
    Ok(game)
}

/// The state before the first tick of a log.
fn begin(log: &LogFile, game: &dyn AnyGame) -> Result<Box<dyn Run>, ReplayError> {
    let setup = |error| ReplayError::Setup { path: log.path().to_owned(), error };
    game.begin(&log.header().setup).map_err(setup)
}

/// Plays one tick. The message of a panic says what happened, the error says when.
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

/// What to do about a log of another build.
pub(crate) fn advice(commit: &str) -> String {
    match commit {
        "" => "the log does not say which commit to check out".into(),
        commit => format!("check out commit {commit} and build that"),
    }
}
