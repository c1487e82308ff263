//! Spectates relay sessions with assignments by running their games: a relay knows no game and cannot see how one ends.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sametick_lockstep::relay::{Relay, SessionKey};
use sametick_lockstep::rows::{Opaque, row_as_bytes};
use sametick_lockstep::session::{Save, Session, SessionId};
use sametick_sim::contest::Outcome;
use sametick_sim::record::TickInputs;
use sametick_sim::{Inputs, Tick};

use crate::games::{AnyGame, Games, Run};

/// The end of a session's game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The game is over. The session goes on until the driver ends it.
    Ended(SessionKey, Outcome),
    /// The game has panicked, or cannot begin: it will for every peer.
    Crashed(SessionKey),
}

/// Runs the games of sessions alongside.
pub(crate) struct Spectator {
    games: Games,
    /// The followed sessions; `None` once the end of a game was reported.
    runs: BTreeMap<SessionId, Option<Box<dyn Run>>>,
    inputs: TickInputs,
    told: VecDeque<Told>,
}

impl Spectator {
    /// A spectator for these games.
    pub fn new(games: Games) -> Spectator {
        Spectator { games, runs: BTreeMap::new(), inputs: TickInputs::new(), told: VecDeque::new() }
    }

    /// The next end of a game, reported once for each.
    pub fn poll(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// Forgets a session that is over.
    pub fn forget(&mut self, id: SessionId) {
        self.runs.remove(&id);
    }

    /// Plays the ticks that were closed since the last call; of a long backlog only a part.
    pub fn look(&mut self, relay: &Relay) {
        let followed = relay.sessions().filter(|(_, it)| it.is_on_assignment() && !it.is_returning());
        for (id, session) in followed {
            self.follow(id, session);
        }
    }

    fn follow(&mut self, id: SessionId, session: &Session) {
        let facts = session.facts();
        let Ok(game) = self.games.find(&facts.game, facts.build) else { return };
        let Some(contest) = game.contest() else { return };
        let (runs, inputs) = (&mut self.runs, &mut self.inputs);
        let played = catch_unwind(AssertUnwindSafe(|| {
            let run = match runs.remove(&id) {
                Some(None) => return Some((None, None)),
                Some(Some(run)) => run,
                None => begin(game, session)?,
            };
            let run = play(run, session, inputs)?;
            let outcome = contest.outcome(run.state());
            Some((Some(run).filter(|_| outcome.is_none()), outcome))
        }));
        let key = || SessionKey { build: facts.build, name: facts.name.clone() };
        let run = match played {
            Ok(Some((run, outcome))) => {
                self.told.extend(outcome.map(|outcome| Told::Ended(key(), outcome)));
                run
            }
            Ok(None) | Err(_) => {
                tracing::error!(session = facts.name, "the game of a session has failed");
                self.told.push_back(Told::Crashed(key()));
                None
            }
        };
        self.runs.insert(id, run);
    }
}

/// Begins the game from its save, or from its setup.
fn begin(game: &dyn AnyGame, session: &Session) -> Option<Box<dyn Run>> {
    let is_useful = |save: &&Save| save.tick.next() >= session.history().first();
    match session.save().filter(is_useful) {
        Some(save) => game.resume(save.tick, &save.state).ok(),
        None => game.begin(&session.facts().setup).ok().filter(|_| session.history().is_whole()),
    }
}

/// Plays up to the last closed tick, or to the end of one segment of the backlog.
fn play(mut run: Box<dyn Run>, session: &Session, inputs: &mut TickInputs) -> Option<Box<dyn Run>> {
    let mut step = |run: &mut dyn Run, tick: Tick, rows: &Inputs<Opaque>| {
        inputs.set(tick, rows.iter().map(row_as_bytes));
        run.step(inputs);
    };
    let last = session.history().last();
    while run.tick() < last {
        let next = run.tick().next();
        if let Some(rows) = session.rows(next) {
            step(&mut *run, next, rows);
            continue;
        }
        let Some(excerpt) = session.history().excerpt(next) else {
            // A save has replaced ticks that were not played yet.
            let save = session.save()?;
            run.load(save.tick, &save.state).ok()?;
            return Some(run);
        };
        let played = excerpt.read(|tick, rows| step(&mut *run, tick, rows));
        return played.ok().map(|_| run);
    }
    Some(run)
}

#[cfg(test)]
mod tests;
