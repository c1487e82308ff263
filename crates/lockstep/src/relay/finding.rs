//! Joins of a session that is not running wait until the driver has looked up what is stored of it.

use super::bringing::Number;
use super::{Found, MAX_SESSIONS, Member, NO_ROOM, Output, Relay, SessionId, SessionKey};
use crate::assignment::JoinRequest;
use crate::session::{JoinError, MAX_MEMBERS, refuse};

impl Relay {
    /// A peer wants to join a session that is not running.
    pub(super) fn look_for(&mut self, member: Member, wish: JoinRequest) {
        let Some(door) = self.doors.get_mut(&member) else { return };
        let is_new = !self.looked_for.contains_key(&door.key);
        let has_room = self.looked_for.len() < MAX_SESSIONS;
        if is_new && !has_room {
            return refuse(&mut self.outbox, member, NO_ROOM);
        }
        let waiting = self.looked_for.entry(door.key.clone()).or_default();
        if waiting.len() >= MAX_MEMBERS {
            return refuse(&mut self.outbox, member, JoinError::Full.text());
        }
        waiting.push((member, wish));
        door.waits = true;
        let key = door.key.clone();
        if is_new && self.config.finds {
            self.outbox.push_bare(Output::Find(key));
        } else if is_new {
            self.begin_found(&key, Number { uid: self.next, is_spoilt: false });
        }
    }

    /// The driver has found what is stored of a session: the waiting peers join.
    pub(super) fn on_found(&mut self, key: &SessionKey, found: Found) {
        let kept = match found {
            Found::New { uid } => return self.begin_found(key, Number { uid, is_spoilt: false }),
            Found::Spoilt { uid } => return self.begin_found(key, Number { uid, is_spoilt: true }),
            Found::Kept(kept) => kept,
        };
        let waiting = self.take_waiting(key);
        if !waiting.is_empty() {
            let id = self.resume(key.clone(), *kept);
            self.let_in(&waiting, id);
        }
    }

    pub(super) fn look_for_returning(&mut self, id: SessionId) {
        if let Some(room) = self.rooms.get_mut(&id) {
            room.session.look_for_returning(self.now, &mut self.outbox);
        }
    }
}
