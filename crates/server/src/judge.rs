//! Decides who is right when two players differ: plays what the relay has closed again, on a thread of its own.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use sametick_lockstep::history::Excerpt;
use sametick_lockstep::rows::row_as_bytes;
use sametick_lockstep::session::{Session, SessionId};
use sametick_sim::Tick;
use sametick_sim::record::TickInputs;

use crate::games::{AnyGame, Games};

/// What a replay has after a tick; nothing if it could not be played.
pub type Verdict = (SessionId, Tick, Option<Vec<u8>>);

/// Replays disputed sessions of the games it knows.
pub struct Judge {
    games: Games,
    verdicts: (Sender<Verdict>, Receiver<Verdict>),
}

impl Judge {
    /// Knows these games.
    pub fn new(games: Games) -> Judge {
        Judge { games, verdicts: channel() }
    }

    /// Begins to replay a session up to a tick. The verdict comes later, see [`Judge::poll`].
    pub fn begin(&self, id: SessionId, session: &Session, tick: Tick) {
        let (facts, sender) = (session.facts(), self.verdicts.0.clone());
        let (mut excerpts, mut from) = (Vec::new(), Tick(1));
        while let Some(excerpt) = session.history().excerpt(from).filter(|excerpt| excerpt.first <= tick) {
            from = excerpt.first + excerpt.ticks;
            excerpts.push(excerpt);
        }
        let (games, game, build, setup) =
            (self.games.clone(), facts.game.clone(), facts.build, facts.setup.clone());
        let is_whole = session.history().is_whole();
        thread::spawn(move || {
            let known = games.find(&game, build).ok().filter(|_| is_whole);
            let state = known.and_then(|game| replay(game, &setup, &excerpts, tick));
            // The relay may have stopped meanwhile.
            let _ = sender.send((id, tick, state));
        });
    }

    /// A verdict that has been reached since, if any. Never waits.
    pub fn poll(&self) -> Option<Verdict> {
        self.verdicts.1.try_recv().ok()
    }
}

fn replay(game: &dyn AnyGame, setup: &[u8], excerpts: &[Excerpt], to: Tick) -> Option<Vec<u8>> {
    let (mut run, mut inputs) = (game.begin(setup).ok()?, TickInputs::new());
    for excerpt in excerpts {
        let step = |tick: Tick, rows: &_| {
            if tick <= to {
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
