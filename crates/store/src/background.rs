//! Low-priority scheduling for background threads that others must not wait for.

/// The nice value of a background thread: enough that a thread that steps games runs first on the same core.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lowers the priority of this thread, so that it runs when nothing more urgent is due on its core. Where the system
/// has no such priority, nothing changes.
pub fn go_to_the_background() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    }
}
