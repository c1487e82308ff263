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

/// Ctrl-C, or a polite kill.
pub async fn stop() -> io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            stop = tokio::signal::ctrl_c() => stop,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
