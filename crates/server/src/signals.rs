//! What the operating system tells a process: to end, to read things again, that its terminal is gone.

use std::io;

/// SIGHUPs, where the system has them.
pub struct Hangups {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    /// Takes them from now on; they do not end the process any more.
    pub fn listen() -> Hangups {
        Hangups {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    /// The next one.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signals) = &mut self.signals {
            signals.recv().await;
            return;
        }
        std::future::pending::<()>().await;
    }
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
