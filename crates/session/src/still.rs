//! Detects that the process was suspended. Messages that came meanwhile are still unread, so no peer may be blamed for
//! silence.

use sametick_sim::Time;

/// The longest time between two looks at the clock, even if nothing is due.
pub(crate) const LOOK_US: u64 = 2_000_000;

/// A longer gap between two looks means that the process was suspended.
const STILL_US: u64 = 5_000_000;

/// How long the process was suspended, if it was.
pub(crate) fn still_us(looked_at: Time, now: Time) -> Option<u64> {
    Some(now.micros_since(looked_at)).filter(|us| *us > STILL_US)
}
