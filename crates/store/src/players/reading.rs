//! The thread that reads: who comes in is looked up here, while others are written.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, Sender};

use super::persist::{PersistState, Reader, words_of};
use super::player_writer::{Answer, Said};
use super::stats::Counters;
use super::storage::{Found, Purpose, Question, StorageError, Write};

/// A question and its number.
pub type Ask = (u64, Question);

/// Answers until nobody can ask any more.
pub fn run(asked: &Receiver<Ask>, answers: &Sender<Said>, shared: &PersistState) {
    while let Ok((id, question)) = asked.recv() {
        let found = answer(shared, &question);
        let mend = found.as_ref().ok().and_then(|found| mend(found, &question));
        if let Ok(found) = &found {
            Counters::add(&shared.counters.mended, u64::from(found.senseless));
        }
        shared.say(answers, (Answer::Found(id, found), mend));
    }
}

fn answer(shared: &PersistState, question: &Question) -> Result<Found, StorageError> {
    let mut reader = shared.reader();
    while reader.usable.is_none() {
        reader = shared.reader_may_look.wait(reader).unwrap_or_else(PoisonError::into_inner);
    }
    let looked = catch_unwind(AssertUnwindSafe(|| look_up(shared, &mut reader, question)));
    let found = looked.unwrap_or_else(|panic| {
        Counters::add(&shared.counters.restarts, 1);
        Err(StorageError::Other(format!("looking somebody up went wrong: {}", words_of(&*panic))))
    });
    if let Err(error) = &found {
        if matches!(error, StorageError::Corrupt(_)) {
            shared.suspect();
        }
        Counters::add(&shared.counters.errors, 1);
        // It is opened anew for the next question; what has panicked may do so again when it is dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| reader.storage = None));
    }
    found
}

fn look_up(shared: &PersistState, reader: &mut Reader, question: &Question) -> Result<Found, StorageError> {
    if let Some(Err(error)) = &reader.usable {
        return Err(error.clone());
    }
    let storage = match &mut reader.storage {
        Some(storage) => storage,
        None => reader.storage.insert((shared.open)(Purpose::Reading)?.storage),
    };
    storage.look_up(question)
}

/// What has to be written so that the same is found without mending the next time.
fn mend(found: &Found, question: &Question) -> Option<Box<Write>> {
    let player = found.player.as_ref().filter(|_| found.senseless > 0)?.id;
    Some(Box::new(Write::Mend { player, game: question.game.clone() }))
}
