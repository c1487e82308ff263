//! Plays along with the sessions of a relay whose links take part on assignment: somebody has to see how they end, and a relay knows no
//! game.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sametick_lockstep::relay::{Relay, SessionKey};
use sametick_lockstep::rows::{Opaque, row_as_bytes};
use sametick_lockstep::session::{Save, Session, SessionId};
use sametick_sim::contest::Outcome;
use sametick_sim::record::TickInputs;
use sametick_sim::{Inputs, Tick};

use crate::games::{AnyGame, Games, Run};

/// What has become of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Its game is over. It goes on until somebody ends it.
    Ended(SessionKey, Outcome),
    /// Its game has panicked, or cannot be begun: it will for everybody.
    Crashed(SessionKey),
}

/// Plays along with sessions.
pub(crate) struct Spectator {
    games: Games,
    /// Those that are followed; with nothing more to be told there is no game.
    runs: BTreeMap<SessionId, Option<Box<dyn Run>>>,
    inputs: TickInputs,
    told: VecDeque<Told>,
}

impl Spectator {
    /// Knows these games.
    pub fn new(games: Games) -> Spectator {
        Spectator { games, runs: BTreeMap::new(), inputs: TickInputs::new(), told: VecDeque::new() }
    }

    /// What has become of a session, each once.
    pub fn poll(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// A session is over: nothing more is told of it.
    pub fn forget(&mut self, id: SessionId) {
        self.runs.remove(&id);
    }

    /// Plays what was closed since the last time; of a session that has gone on for long, a part of it.
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

/// The game as it was saved, or as it began.
fn begin(game: &dyn AnyGame, session: &Session) -> Option<Box<dyn Run>> {
    let is_useful = |save: &&Save| save.tick.next() >= session.history().first();
    match session.save().filter(is_useful) {
        Some(save) => game.resume(save.tick, &save.state).ok(),
        None => game.begin(&session.facts().setup).ok().filter(|_| session.history().is_whole()),
    }
}

/// Plays on: up to the last closed tick, or to the end of a segment of what was closed long ago.
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
            // What was not played yet was saved meanwhile.
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
