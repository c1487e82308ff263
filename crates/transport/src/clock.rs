//! The clocks and the randomness of the drivers: no other code reads them.

use std::time::{Duration, Instant, SystemTime};

use sametick_wire::Time;

/// A monotonic clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// The time since the start.
    pub fn now(&self) -> Time {
        Time::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// The moment on the machine's own clock.
    pub fn instant(&self, time: Time) -> Instant {
        // A day is as good as never, and cannot overflow.
        self.start
            + Duration::from_micros(time.as_micros()).min(self.start.elapsed() + Duration::from_secs(86_400))
    }
}

/// The wall clock, in Unix seconds: for proofs and tokens only.
pub fn unix_seconds() -> u64 {
    unix_ms() / 1_000
}

/// The wall clock, in milliseconds.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Bytes from the operating system's randomness.
///
/// # Panics
/// If the operating system has none: nothing secure can be done then.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives randomness");
    bytes
}
