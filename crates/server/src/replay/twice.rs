//! Replays one log on two instances at once, without a network. If their states differ, the game is not deterministic;
//! otherwise a desync of the players came from the network.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use sametick_sim::Tick;
use sametick_sim::diff::Difference;

use super::{ReplayError, begin, game_of, step};
use crate::games::{AnyGame, Games, Run};
use crate::logs::LogFile;
use crate::progress::Progress;

/// How many states are handed over at once: a hand-over at every tick would dominate the run time.
const BATCH_STATES: usize = 64;

/// How many batches one instance may be ahead of the other.
const AHEAD: usize = 4;

/// How many fields are listed.
const NAMED: usize = 16;

/// Two instances that had the same inputs and have different states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The first tick at which they differ.
    pub tick: Tick,
    /// The fields that differ.
    pub differences: Vec<Difference>,
}

/// Plays a log up to a tick on two threads that share nothing, and compares every state byte by byte.
pub fn play_twice(log: &LogFile, games: &Games, to: Tick) -> Result<Option<Disagreement>, ReplayError> {
    let game = game_of(log, games)?;
    on_two_threads(game, to, |states| {
        // Each instance has its own reader and its own state.
        let mut log = log.again()?;
        let mut run = begin(&mut log, game)?;
        let (path, damage) = (log.path().to_owned(), log.damage());
        let mut ticks = log.reader().ticks_from(run.tick().next());
        states.note(&*run);
        while let Some(inputs) = ticks.next().map_err(&damage)?.filter(|inputs| inputs.tick() <= to) {
            step(&mut *run, inputs, &path)?;
            states.note(&*run);
        }
        Ok(())
    })
}

/// Runs the same work on two threads, and compares the states that they note, starting before the first tick.
pub(crate) fn on_two_threads<E: Send>(
    game: &dyn AnyGame,
    to: Tick,
    play: impl Fn(&mut Noted<E>) -> Result<(), E> + Sync,
) -> Result<Option<Disagreement>, E> {
    thread::scope(|scope| {
        let [first, second] = [(), ()].map(|()| {
            let (out, receiver) = sync_channel(AHEAD);
            let mut noted = Noted { batch: Batch::default(), state: Vec::new(), out };
            let play = &play;
            scope.spawn(move || {
                let end = play(&mut noted);
                noted.finish(end);
            });
            receiver
        });
        compare(&first, &second, game, to)
    })
}

/// Collects the states of one instance.
pub(crate) struct Noted<E> {
    batch: Batch,
    state: Vec<u8>,
    out: SyncSender<Result<Batch, E>>,
}

/// The states of some ticks, one after the other.
#[derive(Default)]
struct Batch {
    first: Tick,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl<E> Noted<E> {
    pub(crate) fn note(&mut self, run: &dyn Run) {
        if self.batch.ends.len() == BATCH_STATES {
            let full = std::mem::take(&mut self.batch);
            // The receiver is gone if it has already found a difference.
            let _ = self.out.send(Ok(full));
        }
        if self.batch.ends.is_empty() {
            self.batch.first = run.tick();
        }
        run.save(&mut self.state);
        self.batch.bytes.extend_from_slice(&self.state);
        self.batch.ends.push(self.batch.bytes.len());
    }

    fn finish(self, end: Result<(), E>) {
        // As above.
        let _ = self.out.send(Ok(self.batch));
        if let Err(error) = end {
            let _ = self.out.send(Err(error));
        }
    }
}

fn compare<E>(
    first: &Receiver<Result<Batch, E>>,
    second: &Receiver<Result<Batch, E>>,
    game: &dyn AnyGame,
    to: Tick,
) -> Result<Option<Disagreement>, E> {
    let mut progress = Progress::new("on two threads", u64::from(to.0));
    while let (Ok(ours), Ok(theirs)) = (first.recv(), second.recv()) {
        let (ours, theirs) = (ours?, theirs?);
        progress.show(u64::from(ours.first.0));
        let states = ours.ends.len().max(theirs.ends.len());
        if let Some(at) = (0..states).find(|&at| ours.state(at) != theirs.state(at)) {
            let tick = Tick(ours.first.0 + at as u32);
            let named = ours
                .state(at)
                .zip(theirs.state(at))
                .map(|(ours, theirs)| game.differences(ours, theirs, NAMED));
            let differences = named.and_then(Result::ok).unwrap_or_default();
            return Ok(Some(Disagreement { tick, differences }));
        }
    }
    Ok(None)
}

impl Batch {
    /// The state at an index, if there are so many.
    fn state(&self, at: usize) -> Option<&[u8]> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.get(at).map(|end| &self.bytes[start..*end])
    }
}
