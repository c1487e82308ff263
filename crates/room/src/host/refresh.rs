//! Whether entities that an update repeats are told as they are now, while others do not fit.

use sametick_sim::Tick;

/// For so many round trips repeated entities are refreshed although updates have not room for all: each makes them cheaper.
const PATIENCE: u32 = 8;
/// Then they are not refreshed for so many round trips; twice as many each time, up to the second number.
const PAUSES: [u32; 2] = [32, 512];

/// Whether entities that an update repeats are told as they are now, while others do not fit.
///
/// Everything that was said since the base is in every update, as any of them may be lost. To tell it as it is now costs no more
/// than to repeat it, and keeps what is known of motions fresh, so that the next update costs less and has room for others.
/// Otherwise a full update leaves no room for anything new until it is acknowledged, everything is some round trips old, and so
/// costs too much to ever get better.
///
/// But what is refreshed never leaves the update. If that does not make room for all, there is more to tell than ever fits: then
/// entities are repeated as they were, leave the update when they are acknowledged, and others have their turn.
#[derive(Default)]
pub(super) struct Refresh {
    /// The last update that had room for all.
    whole: Tick,
    round_trip: Option<u32>,
    pause_ticks: u32,
    paused_until: Tick,
}

impl Refresh {
    /// Another update is made, with a base so many ticks ago. Nothing leaves an update before something is acknowledged.
    pub fn begin(&mut self, now: Tick, base_age: Option<u32>) {
        self.round_trip = base_age;
        if base_age.is_none() {
            self.finish(now, true);
        }
    }

    /// Whether repeated entities are refreshed in an update that has not room for all.
    pub fn is_on(&mut self, now: Tick) -> bool {
        let ticks = |round_trips: u32| round_trips.saturating_mul(self.round_trip.unwrap_or(u32::MAX));
        if now < self.paused_until {
            return false;
        }
        if now.ticks_since(self.whole.max(self.paused_until)) <= ticks(PATIENCE) {
            return true;
        }
        let [first, longest] = PAUSES.map(ticks);
        self.pause_ticks = self.pause_ticks.saturating_mul(2).clamp(first, longest);
        self.paused_until = now + self.pause_ticks;
        false
    }

    /// An update is sent. Had it room for all?
    pub fn finish(&mut self, now: Tick, is_whole: bool) {
        if is_whole {
            (self.whole, self.pause_ticks, self.paused_until) = (now, 0, Tick::ZERO);
        }
    }
}
