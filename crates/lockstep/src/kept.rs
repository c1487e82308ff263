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
    /// It goes on.
    Kept(Box<Kept>),
}

/// What was kept of a session.
#[derive(Clone, Debug)]
pub struct Kept {
    /// What was said when it began.
    pub(crate) facts: Facts,
    pub(crate) uid: u64,
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
        Kept { facts, uid, restarts, save, history: history.unwrap_or_default() }
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
