//! Threads that others must not wait for.

/// How much this thread yields to others: enough that one which steps games goes first on the same core.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// This thread does its work when there is nothing more urgent to do on its core. Where that cannot be said, it is one thread like
/// the others.
pub fn go_to_the_background() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    }
}
