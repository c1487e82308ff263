//! A copy of a session: one confirmed state, with all that is needed to begin the session again from it where nothing else is left
//! of it. A peer makes copies of what it plays, and brings one back.

use alloc::string::String;
use core::fmt;

use sametick_sim::{BuildId, Game, StateHash, Tick, from_canonical, schema_hash_of};

use crate::facts::Facts;
use crate::message::{Bring, MAX_SETUP, MAX_STATE, SaveHead};
use crate::rows::{MAX_SEATS, Table};
use crate::session::Save;

/// The last tick that a session can be begun after: as many again are left to play, more than a year at 60 Hz.
pub const MAX_BROUGHT_TICK: Tick = Tick(u32::MAX / 2);

/// A confirmed state of a session, and what is said once about the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCopy {
    /// What is said once about the session.
    pub facts: Facts,
    /// When it began, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// The state, and who sat where.
    pub save: Save,
}

/// Why a copy cannot be brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Of another game.
    Game {
        /// Which it is of.
        found: String,
        /// Which is to be played.
        wanted: &'static str,
    },
    /// Of another session.
    Session {
        /// Which it is of.
        found: String,
        /// Which is to be joined.
        wanted: String,
    },
    /// Of another build.
    Build {
        /// Which it is of.
        found: BuildId,
        /// The commit that it was made from.
        commit: String,
        /// Which this is.
        wanted: BuildId,
    },
    /// Of another shape of state, setup or input.
    Schema,
    /// At another speed.
    Rate {
        /// Of the save.
        found: u32,
        /// Of the game.
        wanted: u32,
    },
    /// More seats than there can be, or none.
    Seats {
        /// How many it says.
        found: u16,
    },
    /// Somebody sits where there is no seat, or it cannot be read who sat where.
    Table {
        /// How many seats it says.
        seats: u16,
    },
    /// The setup is not the game's.
    Setup,
    /// Too many ticks.
    Tick {
        /// Of which it is.
        found: Tick,
    },
    /// Too large a state.
    TooLarge {
        /// How many.
        found: usize,
    },
    /// Not the state that it says.
    Hash {
        /// What the state hashes to.
        found: StateHash,
        /// What it should hash to.
        said: StateHash,
    },
    /// Not a state of the game.
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
    /// Whether a peer that plays this game can begin the session of this name with it.
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

    /// What a join says of it.
    pub(crate) fn to_bring(&self) -> Bring {
        Bring { save: self.save.head(), started_unix_ms: self.started_unix_ms }
    }
}

/// What of a copy can be told without its state.
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
    /// What is offered, if a session of so many seats can begin with it: who sat where.
    pub(crate) fn table(&self, seats: u16) -> Result<Table, Unfit> {
        let SaveHead { tick, bytes, table, .. } = &self.save;
        let table = Table::from_bytes(table).map_err(|_| Unfit::Table { seats })?;
        check_head(*tick, *bytes as usize, &table, seats)?;
        Ok(table)
    }
}
