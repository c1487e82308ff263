//! Signals of the operating system: requests to end, to reload, and notice that a file has reached its size limit.

use std::io;

/// A stream of signals of one kind, on systems that have it. The default has none.
#[derive(Default)]
pub struct Signals {
    #[cfg(unix)]
    taken: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    /// SIGHUPs from now on; they no longer end the process.
    pub fn hangups() -> Signals {
        Signals {
            #[cfg(unix)]
            taken: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    /// SIGXFSZs from now on: a file would become larger than this process may make it (`ulimit -f`). By default they
    /// end the process; once handled, the write fails instead, as on a full disk.
    pub fn file_limits() -> Signals {
        Signals {
            #[cfg(unix)]
            taken: {
                use tokio::signal::unix::{SignalKind, signal};
                signal(SignalKind::from_raw(nix::sys::signal::Signal::SIGXFSZ as i32)).ok()
            },
        }
    }

    /// The next signal.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(taken) = &mut self.taken {
            taken.recv().await;
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// From now on, writes to a file that would become too large fail, anywhere in this process. Needs a runtime.
pub fn survive_file_limit() {
    // A handler that was installed once stays installed.
    drop(Signals::file_limits());
}

/// How a process is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// By Ctrl-C: a person waits for it.
    Now,
    /// By SIGTERM: running work may be finished, within reason.
    Soon,
}

/// Ctrl-C and SIGTERM.
pub struct Stops {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Stops {
    /// Installs the handlers. Call it before announcing that the server can be stopped.
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

    /// The next signal.
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
