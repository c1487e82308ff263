//! What the driver of a relay decides: player and seat of a link, and when a session ends.

use alloc::vec::Vec;

use super::{Member, Output, Relay, SessionId, SessionKey};
use crate::assignment::SeatAssignment;

impl Relay {
    /// Sets the assignment of a link; ignored once the link has joined.
    pub(super) fn assign(&mut self, member: Member, assignment: SeatAssignment) {
        if let Some(door) = self.doors.get_mut(&member).filter(|door| !door.waits && door.session.is_none()) {
            door.assignment = Some(assignment);
        }
    }

    /// Ends a session for its members and the peers about to join. They get no news of each other any more.
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

    /// A session has ended; it can be read until the next event.
    pub(super) fn finish(&mut self, id: SessionId) {
        let Some(room) = self.rooms.get(&id) else { return };
        self.names.remove(&room.key);
        self.over.push(id);
        self.outbox.push_bare(Output::Ended(id));
    }
}
