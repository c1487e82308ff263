//! Replays closed ticks on a thread of its own, to settle a desync and to make saves that no player can give.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use sametick_lockstep::history::Excerpt;
use sametick_lockstep::rows::row_as_bytes;
use sametick_lockstep::session::{Save, Session, SessionId};
use sametick_sim::Tick;
use sametick_sim::record::TickInputs;

use crate::games::{AnyGame, Games, Run, UnknownGame};

/// The purpose of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Peers have reported different states.
    Dispute,
    /// A save is needed.
    Save,
}

/// The state after a tick by replay; `None` if the session could not be replayed.
pub type Verdict = (Purpose, SessionId, Tick, Option<Vec<u8>>);

/// Replays desynced sessions of the games it knows.
pub struct Judge {
    games: Games,
    /// The games that saves are made of; all if empty.
    kept: Vec<String>,
    verdicts: (Sender<Verdict>, Receiver<Verdict>),
}

impl Judge {
    /// A judge that knows these games.
    pub fn new(games: Games) -> Judge {
        Judge { games, kept: Vec::new(), verdicts: channel() }
    }

    /// Restricts saves to sessions of these games, and makes them before players are asked.
    pub fn set_keeper(&mut self, games: &[String]) -> Result<(), UnknownGame> {
        if let Some(name) = games.iter().find(|name| self.games.named(name).is_none()) {
            let known = self.games.iter().map(AnyGame::name).collect();
            return Err(UnknownGame { name: name.clone(), known });
        }
        self.kept = games.to_vec();
        Ok(())
    }

    /// Begins to replay a session up to a tick. The result comes later, see [`Judge::poll`].
    pub fn begin(&self, purpose: Purpose, id: SessionId, session: &Session, tick: Tick) {
        let (facts, sender) = (session.facts(), self.verdicts.0.clone());
        let is_useful = |save: &&Save| save.tick <= tick && save.tick.next() >= session.history().first();
        let save = session.save().filter(is_useful).cloned();
        let mut from = save.as_ref().map_or(Tick(1), |save| save.tick.next());
        let mut excerpts = Vec::new();
        while let Some(excerpt) = session.history().excerpt(from).filter(|excerpt| excerpt.first <= tick) {
            from = excerpt.first + excerpt.ticks;
            excerpts.push(excerpt);
        }
        let (games, game, build, setup) =
            (self.games.clone(), facts.game.clone(), facts.build, facts.setup.clone());
        let is_wanted =
            purpose == Purpose::Dispute || self.kept.is_empty() || self.kept.contains(&facts.game);
        let can_be_played = is_wanted && (save.is_some() || session.history().is_whole());
        thread::spawn(move || {
            let known = games.find(&game, build).ok().filter(|_| can_be_played);
            let state = known.and_then(|game| {
                let run = match &save {
                    Some(save) => game.resume(save.tick, &save.state),
                    None => game.begin(&setup),
                };
                replay(run.ok()?, &excerpts, tick)
            });
            // The relay may have stopped in the meantime.
            let _ = sender.send((purpose, id, tick, state));
        });
    }

    /// Waits for the next result.
    pub fn wait(&self, at_most: Duration) -> Option<Verdict> {
        self.verdicts.1.recv_timeout(at_most).ok()
    }

    /// The next result, if there is one. Does not block.
    pub fn poll(&self) -> Option<Verdict> {
        self.verdicts.1.try_recv().ok()
    }
}

fn replay(mut run: Box<dyn Run>, excerpts: &[Excerpt], to: Tick) -> Option<Vec<u8>> {
    let (begun, mut inputs) = (run.tick(), TickInputs::new());
    for excerpt in excerpts {
        let step = |tick: Tick, rows: &_| {
            if tick > begun && tick <= to {
                inputs.set(tick, sametick_sim::Inputs::iter(rows).map(row_as_bytes));
                run.step(&inputs);
            }
        };
        excerpt.read(step).ok()?;
    }
    let mut state = Vec::new();
    run.save(&mut state);
    (run.tick() == to).then_some(state)
}
