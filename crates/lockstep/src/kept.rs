//! A session that is found again: what was kept of it when its relay went down, or when everybody had gone.

use alloc::boxed::Box;

use sametick_sim::{Inputs, Tick};

use crate::facts::Facts;
use crate::history::History;
use crate::rows::Opaque;
use crate::session::Save;

/// What whoever drives a relay has found of a session that is not running.
#[derive(Clone, Debug)]
pub enum Found {
    /// Nothing: it begins.
    New {
        /// What tells it from others of its name, before it and after it, also over restarts: for example when it began.
        uid: u64,
    },
    /// Nothing that is of any use: it begins, and what is left must not be written over. A copy that somebody brings gets this
    /// number as well.
    Spoilt {
        /// As in [`Found::New`].
        uid: u64,
    },
    /// It goes on.
    Kept(Box<Kept>),
}

/// What was kept of a session.
#[derive(Clone, Debug)]
pub struct Kept {
    /// What was said when it began.
    pub(crate) facts: Facts,
    pub(crate) uid: u64,
    pub(crate) started_unix_ms: u64,
    /// How often it has been taken up again.
    pub(crate) restarts: u32,
    pub(crate) save: Option<Save>,
    pub(crate) history: History,
}

impl Kept {
    /// A session with the number it was begun with, and the newest save if there is one. `restarts` is how many rewinds its log has,
    /// void or not: each time it is taken up again writes one.
    pub fn new(facts: Facts, uid: u64, restarts: u32, save: Option<Save>) -> Kept {
        let history = save.as_ref().map(|save| History::after(save.tick, save.table.clone()));
        let history = history.unwrap_or_default();
        Kept { facts, uid, started_unix_ms: uid, restarts, save, history }
    }

    /// The same, where the session began at another time than its number says.
    #[must_use]
    pub fn started(mut self, unix_ms: u64) -> Kept {
        self.started_unix_ms = unix_ms;
        self
    }

    /// The last tick there is.
    pub fn last(&self) -> Tick {
        self.history.last()
    }

    /// The next tick of its log. Those up to the save's are left out, and so are those that a rewind made void.
    pub fn push(&mut self, rows: &Inputs<Opaque>) {
        self.history.push(rows);
    }
}
