//! Registry of the games a program knows, by name and build, whatever their types: for replays, the judge and checks.
//!
//! A relay needs no game. Replays, the judge and checks do: a [`Run`] plays recorded inputs of a game that is known
//! only by name. A game author writes a binary of one line and has every tool for their own game:
//!
//! ```no_run
//! # use sametick_pong::Pong as MyGame;
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     sametick::main(sametick::games![MyGame])
//! }
//! ```
//!
//! To play the inputs of a log, or other inputs of closed ticks:
//!
//! ```
//! use sametick::games;
//! use sametick::games::Layout;
//! use sametick_pong::{Pong, Setup};
//! use sametick_sim::record::TickInputs;
//! use sametick_sim::{Game, Row, Seat, Tick, to_canonical};
//!
//! let games = games![Pong];
//! let pong = games.find("pong", Pong::BUILD)?;
//! let mut run = pong.begin(&to_canonical(&Setup::default())?)?;
//! let mut inputs = TickInputs::new();
//! inputs.set(Tick(1), [Row { seat: Seat(0), joined: true, left: false, input: Some(&[4][..]) }]);
//! run.step(&inputs);
//! assert_eq!(run.tick(), Tick(1));
//! assert!(run.to_json(Layout::Line)?.contains("\"paddles\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contest;
mod invent;
mod known;
mod rehearsal;

use std::any::Any;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use sametick_lockstep::session::Facts;
use sametick_session::settings::{Mode, Settings};
use sametick_sim::canon::DecodeError;
use sametick_sim::diff::Difference;
use sametick_sim::hash::Part;
use sametick_sim::record::TickInputs;
use sametick_sim::sync_test::Desync;
use sametick_sim::{BuildId, SchemaHash, StateHash, Tick, TickRate};

use crate::rooms::AnyRoom;

pub use contest::AnyContest;
pub use known::Known;
pub use rehearsal::Rehearsal;

/// The games a program knows. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct Games {
    all: Arc<Vec<Box<dyn AnyGame>>>,
    commit: &'static str,
}

/// A game of any type.
pub trait AnyGame: Send + Sync {
    /// Its name in sessions, logs and saves.
    fn name(&self) -> &'static str;

    /// The id of what decides the simulation: only the same build replays a log.
    fn build(&self) -> BuildId;

    /// The description of its state, setup and input types, line by line.
    fn description(&self) -> String;

    /// The hash of that description.
    fn schema(&self) -> SchemaHash;

    /// How many ticks a second it runs at.
    fn rate(&self) -> TickRate;

    /// How many players it takes.
    fn seats(&self) -> RangeInclusive<u16>;

    /// The state before the first tick, from the canonical bytes of a setup.
    fn begin(&self, setup: &[u8]) -> Result<Box<dyn Run>, DecodeError>;

    /// The state after a tick, from its canonical bytes.
    fn resume(&self, tick: Tick, state: &[u8]) -> Result<Box<dyn Run>, DecodeError>;

    /// The first differences, at most `limit`, between two states given as canonical bytes.
    fn differences(&self, ours: &[u8], theirs: &[u8], limit: usize) -> Result<Vec<Difference>, DecodeError>;

    /// A setup as JSON on one line.
    fn setup_to_json(&self, setup: &[u8]) -> Result<String, ShowError>;

    /// An input as JSON on one line.
    fn input_to_json(&self, input: &[u8]) -> Result<String, ShowError>;

    /// Generates a session as players could have played it, for `ticks` ticks; all randomness comes from `seed`.
    ///
    /// `None` if no setup that the game takes could be generated; see [`Known::with_setup`].
    fn rehearse(&self, seed: u64, ticks: u32) -> Option<Rehearsal>;

    /// Runs the [sync-test](sametick_sim::sync_test) on such a session.
    fn sync_test(&self, rehearsal: &Rehearsal, max_depth: u32) -> Result<StateHash, Desync>;

    /// How it is hosted, if it can be: see [`rooms`](crate::rooms).
    fn room(&self) -> Option<&dyn AnyRoom>;

    /// What sessions need to know of it, if it supports them.
    fn contest(&self) -> Option<&dyn AnyContest>;
}

/// A running game, stepped tick by tick.
///
/// It stays on the thread that began it, because a game need not be `Send`; an [`AnyGame`] is `Send` and can begin
/// another.
pub trait Run {
    /// How many ticks have been played.
    fn tick(&self) -> Tick;

    /// Plays one tick. Inputs that cannot be decoded count as not arrived, as they do for every peer.
    ///
    /// # Panics
    /// If the tick is not the next one, or if the game panics.
    fn step(&mut self, inputs: &TickInputs);

    /// The hash of the state.
    fn hash(&self) -> StateHash;

    /// The state itself, for callers that know its type.
    fn state(&self) -> &dyn Any;

    /// Writes the canonical bytes of the state into `bytes`, replacing its content.
    fn save(&self, bytes: &mut Vec<u8>);

    /// Replaces the state by that after `tick`, from its canonical bytes. After an error nothing has changed.
    fn load(&mut self, tick: Tick, state: &[u8]) -> Result<(), DecodeError>;

    /// The hashes of the parts `depth` steps below `path`; below the whole state if that is empty.
    fn parts(&self, path: &str, depth: usize) -> Vec<Part>;

    /// The state as JSON, with the names of its fields. Numbers of any width are written in full.
    fn to_json(&self, layout: Layout) -> Result<String, ShowError>;
}

/// How JSON is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// On one line, for programs.
    Line,
    /// Over many lines, for people.
    Page,
}

/// A value that has no form in JSON, because a map in it has keys that are neither text nor numbers.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// Its bytes cannot be read.
    #[error("these bytes cannot be read: {0}")]
    Bytes(#[from] DecodeError),
    /// The value has no form in JSON.
    #[error("this has no form in JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A game of which no build is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no game {name:?}; there are {}", .known.join(", "))]
pub struct UnknownGame {
    /// The name that was asked for.
    pub name: String,
    /// The names of the known games.
    pub known: Vec<&'static str>,
}

/// A game or build that the program does not know. Its text lists the known ones and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The game that was asked for.
    pub name: String,
    /// The build that was asked for.
    pub build: BuildId,
    /// The known builds of this game.
    pub builds: Vec<BuildId>,
    /// The names of the known games.
    pub names: Vec<&'static str>,
    /// The git commit of the program, if it is known.
    pub commit: &'static str,
}

impl Games {
    /// A registry of these games. [`games!`](crate::games!) is shorter.
    pub fn new(games: Vec<Box<dyn AnyGame>>) -> Games {
        Games { all: Arc::new(games), commit: "" }
    }

    /// Sets the git commit of the program: [`commit!()`](crate::commit), which [`games!`](crate::games!) calls itself.
    #[must_use]
    pub fn with_commit(self, commit: &'static str) -> Games {
        Games { commit, ..self }
    }

    /// The git commit that the program was built from; empty if its build script does not set it.
    pub fn commit(&self) -> &'static str {
        self.commit
    }

    /// The git commit to check out for the build of a session: the program's own if it has that build, or else the
    /// commit that the session's first player reported.
    pub(crate) fn commit_of<'a>(&self, facts: &'a Facts) -> &'a str {
        let is_ours = !self.commit.is_empty() && self.find(&facts.game, facts.build).is_ok();
        if is_ours { self.commit } else { &facts.commit }
    }

    /// All games.
    pub fn iter(&self) -> impl Iterator<Item = &dyn AnyGame> {
        self.all.iter().map(|game| &**game)
    }

    /// The game with a name and a build.
    pub fn find(&self, name: &str, build: BuildId) -> Result<&dyn AnyGame, Unknown> {
        let found = self.iter().find(|game| game.name() == name && game.build() == build);
        found.ok_or_else(|| Unknown {
            name: name.into(),
            build,
            builds: self.iter().filter(|game| game.name() == name).map(AnyGame::build).collect(),
            names: self.iter().map(AnyGame::name).collect(),
            commit: self.commit,
        })
    }

    /// The game with a build, whatever its name: a build id is unique.
    pub fn of_build(&self, build: BuildId) -> Option<&dyn AnyGame> {
        self.iter().find(|game| game.build() == build)
    }

    /// The newest build of a game: the one that was registered last.
    pub fn named(&self, name: &str) -> Option<&dyn AnyGame> {
        self.all.iter().rev().map(|game| &**game).find(|game| game.name() == name)
    }

    /// Whether sessions can have these settings; the error is a sentence.
    pub(crate) fn check(&self, settings: &Settings) -> Result<(), String> {
        let found = self.named(&settings.game).and_then(|game| Some((game, game.contest()?)));
        let Some((game, contest)) = found else {
            let names: Vec<&str> =
                self.iter().filter(|game| game.contest().is_some()).map(AnyGame::name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!(
                "there are no sessions of {:?} here; there are sessions of {known}",
                &*settings.game
            ));
        };
        if settings.mode == Mode::Room && game.room().is_none() {
            return Err(format!("{} is not played in rooms: its mode is lockstep", game.name()));
        }
        match settings.scenario.as_deref() {
            Some(scenario) if !contest.scenarios().contains(&scenario) => {
                let known = contest.scenarios().join(", ");
                Err(format!("{} has no scenario {scenario:?}; there are {known}", game.name()))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for dyn AnyGame + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of build {}", self.name(), self.build().short())
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let builds: Vec<String> = self.builds.iter().map(ToString::to_string).collect();
        let Unknown { name, build, names, commit, .. } = self;
        let program = if commit.is_empty() { String::new() } else { format!(" (commit {commit})") };
        match (builds.is_empty(), names.is_empty()) {
            (false, _) => {
                write!(
                    f,
                    "{name} of build {build} is not here; this program{program} has {}",
                    builds.join(", ")
                )
            }
            (true, false) => write!(f, "{name:?} is no game of this program; it has {}", names.join(", ")),
            (true, true) => write!(f, "{name:?} is no game of this program; it has none"),
        }
    }
}

impl std::error::Error for Unknown {}

/// The [`Games`] of these types. The range in brackets says how many players a game takes; without it, as many as there
/// are seats. After `=>` comes the autopilot for [rehearsals](AnyGame::rehearse); without it, inputs are random. `;
/// rooms` lets a game that is [`Hosted`](sametick_sim::replica::Hosted) be played in authoritative
/// [rooms](crate::rooms), with the number of seats in brackets. `; sessions` lets sessions be made of a game that is a
/// [`Contest`](sametick_sim::contest::Contest).
///
/// They also have the git commit of the program, if the build script of its package sets it: see
/// [`commit!`](crate::commit).
///
/// ```
/// use sametick::games;
/// use sametick_arena::Arena;
/// use sametick_pong::{Pong, autopilot};
///
/// assert_eq!(games![Pong].iter().count(), 1);
/// assert!(games![Pong[2..=4] => autopilot].named("pong").is_some());
/// let both = games![Pong[2..=4] => autopilot, Arena[1..=16] => sametick_arena::autopilot; rooms[1..=1000]; sessions];
/// assert!(both.named("arena").is_some_and(|arena| arena.room().is_some() && arena.contest().is_some()));
/// ```
#[macro_export]
macro_rules! games {
    (@with $known:ident rooms[$rooms:expr]) => { $known.with_rooms($rooms) };
    (@with $known:ident sessions) => { $known.with_sessions() };
    ($($game:ty $([$seats:expr])? $(=> $autopilot:expr)? $(; $with:ident $([$range:expr])?)*),* $(,)?) => {
        $crate::games::Games::new(::std::vec![$({
            let known = $crate::games::Known::<$game>::new()
                $(.with_seats($seats))?
                $(.with_autopilot($autopilot))?;
            $(let known = $crate::games!(@with known $with $([$range])?);)*
            ::std::boxed::Box::new(known)
        }),*])
        .with_commit($crate::commit!())
    };
}
