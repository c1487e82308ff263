//! The backup thread: makes regular backups beside the writing thread, never two at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::persist::{Ending, PersistState, words_of};
use super::player_writer::{Answer, Said};
use super::sqlite::backup;
use super::stats::Counters;
use super::storage::StorageError;

/// Makes a backup at once and then one per interval, until the writer is gone.
pub fn run(
    path: &Path,
    every: Duration,
    shared: &PersistState,
    answers: &Sender<Said>,
    alive: &Receiver<()>,
) {
    let mut is_failing = false;
    loop {
        let made = make(path, shared);
        match (&made, is_failing) {
            (Err(error), false) => {
                let words = format!("the database of players has no new backup: {error}; it is tried again");
                shared.say(answers, (Answer::Notice(words), None));
            }
            (Ok(()), true) => {
                shared.say(
                    answers,
                    (Answer::Notice("the database of players is backed up again".into()), None),
                );
            }
            _ => {}
        }
        is_failing = made.is_err();
        if alive.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn make(path: &Path, shared: &PersistState) -> Result<(), StorageError> {
    // The database must not be opened anew meanwhile, to check or replace it.
    let _files = shared.files.lock().unwrap_or_else(PoisonError::into_inner);
    let is_over = || shared.ends(Ending::AfterThis);
    let made = catch_unwind(AssertUnwindSafe(|| backup::make(path, &is_over)));
    let made = made.unwrap_or_else(|panic| Err(StorageError::Other(words_of(&*panic).to_owned())));
    match made {
        Ok(Some(_)) => {
            Counters::add(&shared.counters.backups, 1);
            let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            shared.counters.last_backup_unix_s.store(now_s, Ordering::Relaxed);
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => {
            if matches!(error, StorageError::Corrupt(_)) {
                shared.suspect();
            }
            Err(error)
        }
    }
}
