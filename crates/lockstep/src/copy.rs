//! Copy of a session: one confirmed state with all that is needed to continue the session where nothing else of it is
//! left. Peers make copies of what they play and bring them to a relay.

use alloc::string::String;
use core::fmt;

use sametick_sim::{BuildId, Game, StateHash, Tick, from_canonical, schema_hash_of};

use crate::facts::Facts;
use crate::message::{Bring, MAX_SETUP, MAX_STATE, SaveHead};
use crate::rows::{MAX_SEATS, Table};
use crate::session::Save;

/// The last tick after which a session can begin: as many ticks are left to play, more than a year at 60 Hz.
pub const MAX_BROUGHT_TICK: Tick = Tick(u32::MAX / 2);

/// A confirmed state of a session with the session's facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCopy {
    /// The session's constant facts.
    pub facts: Facts,
    /// When the session began, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// The state, and the seats taken at that tick.
    pub save: Save,
}

/// Why a copy cannot be brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is of another game.
    Game {
        /// The game of the copy.
        found: String,
        /// The game to be played.
        wanted: &'static str,
    },
    /// It is of another session.
    Session {
        /// The session of the copy.
        found: String,
        /// The session to be joined.
        wanted: String,
    },
    /// It is of another build.
    Build {
        /// The build of the copy.
        found: BuildId,
        /// The git commit of that build.
        commit: String,
        /// The build of this peer.
        wanted: BuildId,
    },
    /// Its schema of state, setup or input differs.
    Schema,
    /// Its tick rate differs.
    Rate {
        /// The rate of the copy.
        found: u32,
        /// The rate of the game.
        wanted: u32,
    },
    /// It has no seats, or more than a session can have.
    Seats {
        /// The number of seats in the copy.
        found: u16,
    },
    /// Its seat table has a seat out of range, or cannot be read.
    Table {
        /// The number of seats in the copy.
        seats: u16,
    },
    /// Its setup does not belong to the game.
    Setup,
    /// Its tick is zero or too high.
    Tick {
        /// The tick of the copy.
        found: Tick,
    },
    /// Its state is empty or too large.
    TooLarge {
        /// The size in bytes.
        found: usize,
    },
    /// Its state does not match its hash.
    Hash {
        /// The hash of the state.
        found: StateHash,
        /// The hash that the copy states.
        said: StateHash,
    },
    /// Its state does not belong to the game.
    State,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Game { found, wanted } => {
                write!(f, "the save is of the game {found}, and {wanted} is to be played")
            }
            Unfit::Session { found, wanted } => {
                write!(f, "the save is of the session {found:?}, and {wanted:?} is to be joined")
            }
            Unfit::Build { found, commit, wanted } => write!(
                f,
                "the save is of build {found} of the game (commit {commit}), and this is build {wanted}"
            ),
            Unfit::Schema => write!(
                f,
                "the save has another schema than the game, though its build id is the same: it is not what it says"
            ),
            Unfit::Rate { found, wanted } => {
                write!(f, "the save has {found} ticks a second, and the game {wanted}")
            }
            Unfit::Seats { found } => {
                write!(f, "the save has {found} seats; a session has from 1 to {MAX_SEATS}")
            }
            Unfit::Table { seats } => {
                write!(f, "the save does not say who sat where in a session of {seats} seats")
            }
            Unfit::Setup => write!(f, "the setup in the save is none of the game's"),
            Unfit::Tick { found } => write!(
                f,
                "the save is of tick {found}; a session can begin after ticks 1 to {MAX_BROUGHT_TICK}"
            ),
            Unfit::TooLarge { found } => {
                write!(f, "the state in the save has {found} bytes, and may have from 1 to {MAX_STATE}")
            }
            Unfit::Hash { found, said } => {
                write!(f, "the save is damaged: its state hashes to {found}, and it says {said}")
            }
            Unfit::State => write!(f, "the state in the save is none of the game's"),
        }
    }
}

impl core::error::Error for Unfit {}

impl SessionCopy {
    /// Checks whether a peer that plays this game can begin the session of this name with the copy.
    pub fn check<G: Game>(&self, session: &str) -> Result<(), Unfit> {
        let Facts { name, game, build, commit, schema, setup, rate, .. } = &self.facts;
        if game != G::NAME {
            return Err(Unfit::Game { found: game.clone(), wanted: G::NAME });
        }
        if *build != G::BUILD {
            return Err(Unfit::Build { found: *build, commit: commit.clone(), wanted: G::BUILD });
        }
        if *schema != schema_hash_of::<G>() {
            return Err(Unfit::Schema);
        }
        if name != session {
            return Err(Unfit::Session { found: name.clone(), wanted: session.into() });
        }
        if *rate != G::RATE {
            return Err(Unfit::Rate { found: rate.per_second(), wanted: G::RATE.per_second() });
        }
        if setup.len() > MAX_SETUP || from_canonical::<G::Setup>(setup).is_err() {
            return Err(Unfit::Setup);
        }
        let Save { tick, hash, state, table } = &self.save;
        check_head(*tick, state.len(), table, self.facts.seats)?;
        let found = StateHash::of_bytes(state);
        if found != *hash {
            return Err(Unfit::Hash { found, said: *hash });
        }
        match from_canonical::<G>(state) {
            Ok(state) if StateHash::of(&state) == *hash => Ok(()),
            _ => Err(Unfit::State),
        }
    }

    /// The offer of this copy in a `Join`.
    pub(crate) fn to_bring(&self) -> Bring {
        Bring { save: self.save.head(), started_unix_ms: self.started_unix_ms }
    }
}

/// The checks of a copy that need no state.
fn check_head(tick: Tick, bytes: usize, table: &Table, seats: u16) -> Result<(), Unfit> {
    if !(Tick(1)..=MAX_BROUGHT_TICK).contains(&tick) {
        return Err(Unfit::Tick { found: tick });
    }
    if !(1..=MAX_STATE).contains(&bytes) {
        return Err(Unfit::TooLarge { found: bytes });
    }
    if !(1..=MAX_SEATS as u16).contains(&seats) {
        return Err(Unfit::Seats { found: seats });
    }
    if table.taken().any(|seat| seat.0 >= seats) {
        return Err(Unfit::Table { seats });
    }
    Ok(())
}

impl Bring {
    /// The seat table of the offer, if a session with this many seats can begin with it.
    pub(crate) fn table(&self, seats: u16) -> Result<Table, Unfit> {
        let SaveHead { tick, bytes, table, .. } = &self.save;
        let table = Table::from_bytes(table).map_err(|_| Unfit::Table { seats })?;
        check_head(*tick, *bytes as usize, &table, seats)?;
        Ok(table)
    }
}
