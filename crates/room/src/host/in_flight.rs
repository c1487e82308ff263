//! When an update may be coded against one that has not been acknowledged.

use sametick_sim::Tick;

/// How many updates in flight may become a base one after the other: enough to tell a joiner of a few thousand entities.
const MOST: u32 = 32;

/// One more may after so many updates. If there is always more to tell than fits, that is one a second or less: what its loss
/// costs, a round trip without updates, is seldom seen then.
const REFILL_EVERY: u32 = 32;

/// When an update may be coded against one that has not been acknowledged.
///
/// Updates are coded against what was acknowledged, so that any of them may be lost, and each repeats everything since. While
/// there is more to tell than fits, that lets through one update of news for each round trip. Coded against the update before
/// it, every update has news; but if one is lost, those after it cannot be read, and the view sees nothing new for a round trip.
/// So this is for a view that joins, or has been away, for one member only, of whom fewer are lost than of several, and
/// a token bucket limits it.
pub(super) struct InFlight {
    left: u32,
    /// Updates since the bucket was last refilled.
    updates: u32,
    /// The member has been heard since nothing was known to it.
    heard: bool,
    /// What the last report said is newest.
    reported: Option<Tick>,
    retreat: Option<Retreat>,
}

/// The base was lost, and updates are coded against an older one.
#[derive(Clone, Copy)]
struct Retreat {
    /// The last update that was coded against what was lost.
    last: Tick,
    /// Reports of those may arrive until then.
    until: Tick,
}

impl InFlight {
    /// For a member that has just joined.
    pub fn new() -> InFlight {
        InFlight { left: MOST, updates: 0, heard: true, reported: None, retreat: None }
    }

    /// Another update is made.
    pub fn pass(&mut self) {
        self.updates += 1;
        if self.updates >= REFILL_EVERY {
            self.updates = 0;
            self.left = (self.left + 1).min(MOST);
        }
    }

    /// Whether an update in flight may be a base. To one who is not heard nothing would arrive that it could be read with.
    pub fn is_allowed(&self) -> bool {
        self.left > 0 && self.heard
    }

    /// An update in flight is a base.
    pub fn take(&mut self) {
        self.left -= 1;
    }

    /// The member has not been heard for too long: it is told everything anew.
    pub fn lose(&mut self) {
        (self.heard, self.retreat) = (false, None);
    }

    /// Takes in what a report says is newest, and says whether the member has received something that it could not read: a view
    /// reports after every update that it receives, and has nothing newer than before if it could not read it. `now` is the
    /// tick of the last update.
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

    /// What was sent since `first` cannot be read, as the host learns when it has sent an update of `now`: a round trip later.
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
        // What was sent before that is still arriving.
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
    fn a_member_that_is_not_heard_is_told_what_it_can_read_by_itself() {
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
