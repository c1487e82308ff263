//! The limit on open files and sockets of this process.

/// File descriptors reserved for logs, saves, a database and child processes.
const RESERVE: u64 = 256;

/// Raises the limit to the system's maximum. Called once, before anything listens.
pub fn raise_limit() {
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
            if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) }
        });
        if let Err(error) = raised {
            tracing::warn!(%error, "the number of files that may be open stays as it is");
        }
    }
}

/// The most connections that leave enough file descriptors for everything else.
pub(crate) fn most_connections() -> usize {
    #[cfg(unix)]
    if let Ok((soft, _)) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE) {
        return usize::try_from(soft.saturating_sub(RESERVE).max(soft / 2)).unwrap_or(usize::MAX);
    }
    usize::MAX
}
