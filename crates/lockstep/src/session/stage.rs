//! How far a peer of a session has come, and with what it begins.

use alloc::sync::Arc;
use alloc::vec::Vec;

use sametick_sim::{StateHash, Tick, Time};

use crate::message::SaveHead;
use crate::rows::Table;

/// For somebody who catches up, what they still need is kept for this long, and no save is made.
pub const CATCH_UP_PATIENCE_US: u64 = 60_000_000;

/// The state of a session after a tick, as its players agree on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Save {
    /// After which tick.
    pub tick: Tick,
    /// What its bytes hash to.
    pub hash: StateHash,
    /// Its canonical bytes, which only the game understands.
    pub state: Vec<u8>,
    /// Who sat where.
    pub table: Table,
}

impl Save {
    /// What is said of it before its bytes.
    pub(crate) fn head(&self) -> SaveHead {
        let (tick, hash, bytes) = (self.tick, self.hash, self.state.len() as u32);
        SaveHead { tick, hash, bytes, table: self.table.to_bytes() }
    }
}

/// With what somebody begins.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// With what it has, or the setup: the ticks from this one on.
    Ticks(Tick),
    /// With a save, and the ticks after it.
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

/// How far a peer has come.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// It has not been answered, for a save that is being made; at most until this time.
    Waiting(Time),
    /// It has been sent what it lacks, and has not shown yet that it has come so far.
    CatchingUp {
        since: Time,
        /// The first tick that it may still ask for.
        needs: Tick,
        /// It begins with this.
        save: Option<Arc<Save>>,
        /// It had nothing of its own: until it has caught up it cannot say what is right.
        is_new: bool,
    },
    /// It takes part.
    Level,
}

impl Stage {
    /// Whether it says what the state is, or will in a moment.
    pub fn has_say(&self) -> bool {
        !matches!(self, Stage::Waiting(_) | Stage::CatchingUp { is_new: true, .. })
    }

    /// Whether it can use ticks: who begins with a save asks for them when it has that.
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
