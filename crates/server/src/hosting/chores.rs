//! The worker threads of a host: they store sessions and hash passwords.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sametick_session::host::Input;
use sametick_session::id::SessionId;
use sametick_session::password::{Password, Salt};
use sametick_transport::hub_waker::HubWaker;

use super::folder::replace;

/// The pause before a failed write is tried again.
const AGAIN: Duration = Duration::from_secs(1);

enum Job {
    Store { session: SessionId, number: u64, path: PathBuf, bytes: Vec<u8> },
    Delete { session: SessionId, path: PathBuf },
}

/// The worker threads of a host. Their results are inputs of the host.
pub(crate) struct Chores {
    jobs: Option<Sender<Job>>,
    words: Option<Sender<(u64, Salt, Password)>>,
    done: Receiver<Input>,
    disk: Option<JoinHandle<()>>,
}

impl Chores {
    /// Starts the threads. Rings the waker for each result.
    pub fn start(waker: &HubWaker) -> io::Result<Chores> {
        let (sender, done) = channel();
        let (jobs, to_do) = channel();
        let (words, to_weigh) = channel();
        let (said, rung) = (sender.clone(), waker.clone());
        let disk = thread::Builder::new().name("sessions".into()).spawn(move || {
            keep(&to_do, |input| {
                // The host may have ended in the meantime.
                let _ = said.send(input);
                rung.ring();
            });
        })?;
        let waker = waker.clone();
        thread::Builder::new().name("passwords".into()).spawn(move || {
            let to_weigh: Receiver<(u64, Salt, Password)> = to_weigh;
            for (work, salt, password) in to_weigh {
                let _ = sender.send(Input::Weighed(work, password.weigh(salt)));
                waker.ring();
            }
        })?;
        Ok(Chores { jobs: Some(jobs), words: Some(words), done, disk: Some(disk) })
    }

    /// Stores a session.
    pub fn store(&self, session: SessionId, number: u64, path: PathBuf, bytes: Vec<u8>) {
        self.hand_over(Job::Store { session, number, path, bytes });
    }

    /// Deletes the file of a session.
    pub fn delete(&self, session: SessionId, path: PathBuf) {
        self.hand_over(Job::Delete { session, path });
    }

    /// Hashes a password.
    pub fn weigh(&self, work: u64, salt: Salt, password: Password) {
        if let Some(words) = &self.words {
            let _ = words.send((work, salt, password));
        }
    }

    /// The next result.
    pub fn poll(&self) -> Option<Input> {
        self.done.try_recv().ok()
    }

    /// Waits until all writes are on disk or have failed.
    pub fn finish(&mut self) {
        self.jobs = None;
        if let Some(disk) = self.disk.take() {
            let _ = disk.join();
        }
    }

    fn hand_over(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }
}

/// Writes and deletes session files. Only the newest version of a session is written; a failed write is tried again
/// until it succeeds or the host is gone.
fn keep(jobs: &Receiver<Job>, mut done: impl FnMut(Input)) {
    let mut pending: BTreeMap<SessionId, Job> = BTreeMap::new();
    let mut is_last = false;
    let mut had_trouble = false;
    while !is_last {
        match if had_trouble { jobs.recv_timeout(AGAIN) } else { jobs.recv().map_err(Into::into) } {
            Ok(job) => note(&mut pending, job),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => is_last = true,
        }
        jobs.try_iter().for_each(|job| note(&mut pending, job));
        let was_troubled = std::mem::take(&mut had_trouble);
        pending.retain(|session, job| match carry_out(job) {
            Ok(input) => {
                input.into_iter().for_each(&mut done);
                false
            }
            Err(error) => {
                if !was_troubled {
                    tracing::error!(%session, %error, "a session cannot be stored; its members wait");
                }
                had_trouble = true;
                true
            }
        });
    }
}

fn note(pending: &mut BTreeMap<SessionId, Job>, job: Job) {
    let (Job::Store { session, .. } | Job::Delete { session, .. }) = &job;
    pending.insert(*session, job);
}

fn carry_out(job: &Job) -> io::Result<Option<Input>> {
    match job {
        Job::Store { session, number, path, bytes } => {
            replace(path, bytes).map(|()| Some(Input::Stored(*session, *number)))
        }
        Job::Delete { path, .. } => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(None),
        },
    }
}
