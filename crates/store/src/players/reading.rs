//! The reader thread: looks up joining players while the persist thread writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, Sender};

use super::persist::{PersistState, Reader, words_of};
use super::player_writer::{Answer, Said};
use super::stats::Counters;
use super::storage::{Found, Purpose, Question, StorageError, Write};

/// A question and its number.
pub type Ask = (u64, Question);

/// Answers until the other end is gone.
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
        Err(StorageError::Other(format!("a look-up of a player failed: {}", words_of(&*panic))))
    });
    if let Err(error) = &found {
        if matches!(error, StorageError::Corrupt(_)) {
            shared.suspect();
        }
        Counters::add(&shared.counters.errors, 1);
        // The storage is opened anew for the next question; one that has panicked may do so again when it is dropped.
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

/// The write that repairs senseless rows, so that the next look-up finds the same without repair.
fn mend(found: &Found, question: &Question) -> Option<Box<Write>> {
    let player = found.player.as_ref().filter(|_| found.senseless > 0)?.id;
    Some(Box::new(Write::Mend { player, game: question.game.clone() }))
}
