//! The thread's CPU time, which other work on the machine does not change much.

use nix::time::{ClockId, clock_gettime};

/// What this thread has used so far, in nanoseconds.
pub fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux counts it");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
