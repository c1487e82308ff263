//! What whoever drives a relay decides: as whom somebody takes part, and when a session is over.

use alloc::vec::Vec;

use super::{Member, Output, Relay, SessionId, SessionKey};
use crate::assignment::SeatAssignment;

impl Relay {
    /// Whoever has joined already has done so as they were.
    pub(super) fn assign(&mut self, member: Member, assignment: SeatAssignment) {
        if let Some(door) = self.doors.get_mut(&member).filter(|door| !door.waits && door.session.is_none()) {
            door.assignment = Some(assignment);
        }
    }

    /// Ends a session for everybody who is there or on the way. Nobody is told of the others any more.
    pub(super) fn end(&mut self, key: &SessionKey, why: &'static str) {
        let there = self.doors.iter().filter(|(_, door)| door.key == *key);
        let there: Vec<Member> = there.map(|(member, _)| *member).collect();
        self.looked_for.remove(key);
        self.bringing.remove(key);
        for member in there {
            self.doors.remove(&member);
            self.outbox.push_bare(Output::Close(member, why));
        }
        if let Some(id) = self.find(key) {
            self.wakes.retain(|wake| wake.0.1 != id);
            self.finish(id);
        }
    }

    /// A session is over; it can be looked at until something else happens.
    pub(super) fn finish(&mut self, id: SessionId) {
        let Some(room) = self.rooms.get(&id) else { return };
        self.names.remove(&room.key);
        self.over.push(id);
        self.outbox.push_bare(Output::Ended(id));
    }
}
