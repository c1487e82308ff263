//! A process that stood still: it was stopped, or its machine was. What others have said meanwhile is still to be read, so that nobody is
//! to be blamed for silence.

use sametick_sim::Time;

/// Whoever watches others looks at them so often, whether or not something is due.
pub(crate) const LOOK_US: u64 = 2_000_000;

/// Whoever has not looked for so long stood still.
const STILL_US: u64 = 5_000_000;

/// For how long nobody looked, if that was too long.
pub(crate) fn still_us(looked_at: Time, now: Time) -> Option<u64> {
    Some(now.micros_since(looked_at)).filter(|us| *us > STILL_US)
}
