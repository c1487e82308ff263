//! How far a member has come in a session, and what it begins with.

use alloc::sync::Arc;
use alloc::vec::Vec;

use sametick_sim::{StateHash, Tick, Time};

use crate::message::SaveHead;
use crate::rows::Table;

/// The time for which a peer may catch up: the ticks it needs are kept, and no save is made.
pub const CATCH_UP_PATIENCE_US: u64 = 60_000_000;

/// The agreed state of a session after a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Save {
    /// The tick of the state.
    pub tick: Tick,
    /// The hash of its bytes.
    pub hash: StateHash,
    /// Its canonical bytes, which only the game can interpret.
    pub state: Vec<u8>,
    /// The seats taken at that tick.
    pub table: Table,
}

impl Save {
    /// The description sent before its bytes.
    pub(crate) fn head(&self) -> SaveHead {
        let (tick, hash, bytes) = (self.tick, self.hash, self.state.len() as u32);
        SaveHead { tick, hash, bytes, table: self.table.to_bytes() }
    }
}

/// What a peer begins with.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Its own state, or the setup: the ticks from this one on follow.
    Ticks(Tick),
    /// A save, and the ticks after it.
    Save(Arc<Save>),
}

impl Source {
    /// The first tick that follows.
    pub fn first(&self) -> Tick {
        match self {
            Source::Ticks(first) => *first,
            Source::Save(save) => save.tick.next(),
        }
    }
}

/// How far a member has come.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// The join waits for a save that is being made; at most until this time.
    Waiting(Time),
    /// The peer has been sent what it lacks, and has not shown yet that it has caught up.
    CatchingUp {
        since: Time,
        /// The first tick that it may still ask for.
        needs: Tick,
        /// The save that it begins with.
        save: Option<Arc<Save>>,
        /// It had no state of its own: until it has caught up it has no vote.
        is_new: bool,
    },
    /// The peer has caught up.
    Level,
}

impl Stage {
    /// Whether it votes on the state, or soon will.
    pub fn has_say(&self) -> bool {
        !matches!(self, Stage::Waiting(_) | Stage::CatchingUp { is_new: true, .. })
    }

    /// Whether it can use ticks: a peer that begins with a save asks for them once it has the save.
    pub fn takes_ticks(&self) -> bool {
        !matches!(self, Stage::Waiting(_) | Stage::CatchingUp { save: Some(_), .. })
    }

    /// The first tick that has to be kept for it.
    pub fn needs(&self, now: Time) -> Option<Tick> {
        match self {
            Stage::CatchingUp { since, needs, .. } => {
                Some(*needs).filter(|_| now.micros_since(*since) < CATCH_UP_PATIENCE_US)
            }
            _ => None,
        }
    }
}
