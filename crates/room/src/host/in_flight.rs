//! Decides when an update may be coded against a base that has not been acknowledged.

use sametick_sim::Tick;

/// The most consecutive updates whose base is in flight: enough to send a few thousand entities to a joining member.
const MOST: u32 = 32;

/// The bucket gains one token per this many updates. If there is always more to send than fits, that is one a second or
/// less, so that the cost of a lost base, a round trip without updates, is rare.
const REFILL_EVERY: u32 = 32;

/// Decides when an update may be coded against a base that has not been acknowledged.
///
/// Updates are normally coded against an acknowledged base, so that any of them may be lost, and each repeats all
/// changes since. While there is more to send than fits, only one update per round trip then has news. Coded against
/// the update before it, every update has news; but after a loss the following ones cannot be decoded, and the view
/// gets nothing new for a round trip. So this is for a view that joins or returns, with only one member, since a loss
/// is more likely among several, and a token bucket limits it.
pub(super) struct InFlight {
    left: u32,
    /// Updates since the bucket was last refilled.
    updates: u32,
    /// A report of the member has arrived since it was last without a base.
    heard: bool,
    /// The newest update according to the last report.
    reported: Option<Tick>,
    retreat: Option<Retreat>,
}

/// The base was lost, and updates are coded against an older one.
#[derive(Clone, Copy)]
struct Retreat {
    /// The last update that was coded against the lost base.
    last: Tick,
    /// Reports about such updates may arrive until then.
    until: Tick,
}

impl InFlight {
    /// For a member that has just joined.
    pub fn new() -> InFlight {
        InFlight { left: MOST, updates: 0, heard: true, reported: None, retreat: None }
    }

    /// Counts an update.
    pub fn pass(&mut self) {
        self.updates += 1;
        if self.updates >= REFILL_EVERY {
            self.updates = 0;
            self.left = (self.left + 1).min(MOST);
        }
    }

    /// Whether an update in flight may be the base. Without reports from the member its base might never have arrived.
    pub fn is_allowed(&self) -> bool {
        self.left > 0 && self.heard
    }

    /// Consumes a token: an update in flight becomes the base.
    pub fn take(&mut self) {
        self.left -= 1;
    }

    /// No report has arrived for too long: the member has no base any more.
    pub fn lose(&mut self) {
        (self.heard, self.retreat) = (false, None);
    }

    /// Handles the newest update of a report, and returns whether the member received an update that it could not
    /// decode: a view reports after every update it receives, and its newest update does not advance if it could not
    /// decode it. `now` is the tick of the last update.
    pub fn on_report(&mut self, newest: Option<Tick>, now: Tick) -> bool {
        if !core::mem::replace(&mut self.heard, true) {
            self.left = MOST;
        }
        let same = core::mem::replace(&mut self.reported, newest) == newest;
        let is_over =
            |retreat: &Retreat| newest.is_some_and(|newest| newest > retreat.last) || now >= retreat.until;
        self.retreat = self.retreat.filter(|retreat| !is_over(retreat));
        same && self.retreat.is_none()
    }

    /// Updates since `first` cannot be decoded. The host learns this a round trip later, when it has sent the update of
    /// `now`.
    pub fn retreat(&mut self, first: Tick, now: Tick) {
        let round_trip = now.ticks_since(first);
        self.retreat = Some(Retreat { last: now, until: now + round_trip + round_trip / 4 + 2 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_found_once_and_only_where_it_was() {
        let mut in_flight = InFlight::new();
        assert!(!in_flight.on_report(Some(Tick(10)), Tick(19)));
        assert!(!in_flight.on_report(Some(Tick(11)), Tick(20)), "both could be read");
        assert!(in_flight.on_report(Some(Tick(11)), Tick(21)), "something after the second could not");
        in_flight.retreat(Tick(12), Tick(21));
        // Reports on updates that were sent before still arrive.
        for now in 22..31 {
            assert!(!in_flight.on_report(Some(Tick(11)), Tick(now)));
        }
        assert!(!in_flight.on_report(Some(Tick(22)), Tick(31)), "the first after the retreat");
        assert!(in_flight.on_report(Some(Tick(22)), Tick(32)), "and the one after that was lost again");
        in_flight.retreat(Tick(23), Tick(32));
        assert!(!in_flight.on_report(Some(Tick(22)), Tick(40)));
        assert!(in_flight.on_report(Some(Tick(22)), Tick(46)), "the first after the retreat was lost itself");
    }

    #[test]
    fn a_silent_member_gets_no_base_in_flight() {
        let mut in_flight = InFlight::new();
        (0..MOST).for_each(|_| in_flight.take());
        assert!(!in_flight.is_allowed());
        (0..REFILL_EVERY).for_each(|_| in_flight.pass());
        assert!(in_flight.is_allowed(), "one more after a while");
        in_flight.lose();
        assert!(!in_flight.is_allowed());
        in_flight.on_report(None, Tick(50));
        assert!(in_flight.is_allowed() && in_flight.left == MOST);
    }
}
