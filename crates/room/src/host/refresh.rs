//! Decides whether repeated entities are sent with their current values while other entities do not fit.

use sametick_sim::Tick;

/// The number of round trips for which repeated entities are refreshed without room for all: refreshing makes them
/// cheaper.
const PATIENCE: u32 = 8;
/// Then they are not refreshed for this many round trips; twice as many each time, up to the second number.
const PAUSES: [u32; 2] = [32, 512];

/// Decides whether repeated entities are sent with their current values while other entities do not fit.
///
/// Every update contains all changes since the base, as any update may be lost. Sending the current values costs no
/// more than repeating old ones, and keeps the motion models current, so that the next update is smaller and has room
/// for others. Otherwise a full update leaves no room for news until it is acknowledged, all values are some round
/// trips old, and updates stay too expensive to improve.
///
/// But a refreshed entity never leaves the update. If refreshing does not make room for all, there is permanently too
/// much to send: then entities are repeated with their old values, leave the update when they are acknowledged, and
/// others take their turn.
#[derive(Default)]
pub(super) struct Refresh {
    /// The last update that had room for everything.
    whole: Tick,
    round_trip: Option<u32>,
    pause_ticks: u32,
    paused_until: Tick,
}

impl Refresh {
    /// Begins an update whose base is this many ticks old. Nothing leaves an update before an acknowledgement.
    pub fn begin(&mut self, now: Tick, base_age: Option<u32>) {
        self.round_trip = base_age;
        if base_age.is_none() {
            self.finish(now, true);
        }
    }

    /// Whether repeated entities are refreshed in an update that does not have room for everything.
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

    /// Ends an update, and records whether it had room for everything.
    pub fn finish(&mut self, now: Tick, is_whole: bool) {
        if is_whole {
            (self.whole, self.pause_ticks, self.paused_until) = (now, 0, Tick::ZERO);
        }
    }
}
