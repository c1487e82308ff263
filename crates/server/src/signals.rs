//! What the operating system tells a process: to end, to read things again, that its terminal is gone.

use std::io;

/// Signals of one kind, where the system has them. The default is none.
#[derive(Default)]
pub struct Signals {
    #[cfg(unix)]
    taken: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    /// SIGHUPs from now on; they do not end the process any more.
    pub fn hangups() -> Signals {
        Signals {
            #[cfg(unix)]
            taken: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    /// SIGXFSZs from now on: a file would become larger than this process may make it (`ulimit -f`). They would end the process; once
    /// they are taken, the write fails instead, as on a full disk.
    pub fn file_limits() -> Signals {
        Signals {
            #[cfg(unix)]
            taken: {
                use tokio::signal::unix::{SignalKind, signal};
                signal(SignalKind::from_raw(nix::sys::signal::Signal::SIGXFSZ as i32)).ok()
            },
        }
    }

    /// The next one.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(taken) = &mut self.taken {
            taken.recv().await;
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Lets writes of too large a file fail from now on, in whatever this process does. Needs a runtime.
pub fn survive_file_limit() {
    // What was taken once stays taken.
    drop(Signals::file_limits());
}

/// How a process is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// By Ctrl-C: somebody waits for it.
    Now,
    /// By a polite kill: what goes on may be finished, within reason.
    Soon,
}

/// Ctrl-C, or a polite kill.
pub struct Stops {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Stops {
    /// Takes them from now on: before anybody is told that there is something to stop.
    pub fn listen() -> io::Result<Stops> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Stops {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> io::Result<Stop> {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => Ok(Stop::Now),
            _ = self.terminate.recv() => Ok(Stop::Soon),
        }
        #[cfg(not(unix))]
        tokio::signal::ctrl_c().await.map(|()| Stop::Now)
    }
}
