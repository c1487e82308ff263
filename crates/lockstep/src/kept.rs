//! Stored sessions: what a relay continues from after a restart, or after all members had left.

use alloc::boxed::Box;

use sametick_sim::{Inputs, Tick};

use crate::facts::Facts;
use crate::history::History;
use crate::rows::Opaque;
use crate::session::Save;

/// What the driver of a relay has found of a session that is not running.
#[derive(Clone, Debug)]
pub enum Found {
    /// Nothing: the session begins.
    New {
        /// Distinguishes the session from others of its name, also over restarts: for example its start time.
        uid: u64,
    },
    /// Nothing usable: the session begins, and what is stored must not be overwritten. A copy that a peer brings gets
    /// this number as well.
    Spoilt {
        /// As in [`Found::New`].
        uid: u64,
    },
    /// The session, which goes on.
    Kept(Box<Kept>),
}

/// A stored session.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The session's constant facts.
    pub(crate) facts: Facts,
    pub(crate) uid: u64,
    pub(crate) started_unix_ms: u64,
    /// How often the session has been resumed.
    pub(crate) restarts: u32,
    pub(crate) save: Option<Save>,
    pub(crate) history: History,
}

impl Kept {
    /// A stored session with the number it began with, and its newest save if there is one. `restarts` is the number of
    /// rewinds in its log, void or not: each resumption writes one.
    pub fn new(facts: Facts, uid: u64, restarts: u32, save: Option<Save>) -> Kept {
        let history = save.as_ref().map(|save| History::after(save.tick, save.table.clone()));
        let history = history.unwrap_or_default();
        Kept { facts, uid, started_unix_ms: uid, restarts, save, history }
    }

    /// Sets the start time of a session whose number is not its start time.
    #[must_use]
    pub fn started(mut self, unix_ms: u64) -> Kept {
        self.started_unix_ms = unix_ms;
        self
    }

    /// The last tick.
    pub fn last(&self) -> Tick {
        self.history.last()
    }

    /// Adds the next tick of its log. Leave out ticks up to the save's tick, and those made void by a rewind.
    pub fn push(&mut self, rows: &Inputs<Opaque>) {
        self.history.push(rows);
    }
}
