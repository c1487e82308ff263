//! The driver's side of rooms: assigns players and seats, and ends rooms.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::relay::SessionKey;
use sametick_room::host::{Input, KnownPlayer, NOT_RESUMED};
use sametick_room::message::{Join, ToHost};
use sametick_sim::Time;
use sametick_sim::contest::Outcome;
use sametick_wire::{Channel, Member, control};

use super::beginning::Beginning;
use super::open::Ending;
use super::{Output, RoomId, Rooms, Turned};

impl Rooms {
    /// Assigns player and seat to a member before it joins, overriding its `Join` and the database. A room with an
    /// assigned member goes on until it is [ended](Rooms::end), even if it is empty.
    pub fn assign(&mut self, member: Member, assignment: SeatAssignment) {
        let is_new = |door: &&mut super::Door| door.room.is_none() && door.asking.is_none();
        if let Some(door) = self.doors.get_mut(&member).filter(is_new) {
            door.assignment = Some(assignment);
        }
    }

    /// Ends a room and closes its present and waiting members with a reason. The room is saved if it has run long
    /// enough. Does nothing if it is not open.
    pub fn end(&mut self, now: Time, key: &SessionKey, why: &'static str) {
        self.now = self.now.max(now);
        self.looked_for.remove(key);
        let waiting = self.doors.iter().filter(|(_, door)| door.key == *key && door.room.is_none());
        let waiting: Vec<Member> = waiting.map(|(member, _)| *member).collect();
        waiting.into_iter().for_each(|member| self.close(member, why));
        let Some(id) = self.find(key) else { return };
        if let Some(room) = self.rooms.get_mut(&id) {
            room.ending.get_or_insert(Ending::Told(why));
        }
        self.attend(id);
    }

    /// The outcome of a room's game, if the game is over and can be played in sessions.
    pub fn outcome(&self, id: RoomId) -> Option<Outcome> {
        let room = self.room(id)?;
        let game = self.games.find(&room.facts.game, room.facts.build).ok()?;
        game.contest()?.outcome(room.host.state())
    }

    /// Outputs the outcome of a room's game, once.
    pub(super) fn tell_outcome(&mut self, id: RoomId) {
        if self.rooms.get(&id).is_none_or(|room| !room.stays || room.is_told) {
            return;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| self.outcome(id)));
        let Some(room) = self.rooms.get_mut(&id) else { return };
        match outcome {
            Ok(Some(outcome)) => {
                room.is_told = true;
                self.outbox.push_bare(Output::Outcome(id, outcome));
            }
            Ok(None) => {}
            Err(_) => room.ending = Some(Ending::Failed),
        }
    }

    /// Whether the room is told a member's player before it joins.
    pub(super) fn is_introduced(&self, member: Member) -> bool {
        self.keeping.is_some() || self.doors.get(&member).is_some_and(|door| door.assignment.is_some())
    }

    /// Joins a member without a database lookup: a guest, or a member with an assignment.
    pub(super) fn come_in(&mut self, member: Member, join: Join) -> Result<(), Turned> {
        if self.look_for(member, &join) {
            return Ok(());
        }
        let door = self.doors.get(&member).filter(|door| !door.is_closed).ok_or(Turned::Out)?;
        let (key, assignment) = (door.key.clone(), door.assignment.clone());
        let join = match &assignment {
            Some(assignment) => decided(join, assignment),
            None => join,
        };
        let found = match self.find(&key) {
            None => self.reopen(member, &join)?,
            found => found,
        };
        let id = match found {
            Some(id) => id,
            None if join.must_resume => return Err(Turned::Away(NOT_RESUMED)),
            None => {
                let (setup, seed, seats) = (&join.setup[..], join.seed, join.seats);
                self.begin(member, &join, &Beginning { setup, seed, seats, listed: join.listed })?
            }
        };
        if let Some(door) = self.doors.get_mut(&member) {
            door.room = Some(id);
        }
        if let Some(assignment) = assignment {
            self.introduce_on(id, member, &assignment);
        }
        self.tell(id, Input::Message(member, Channel::Control, &control::to_bytes(&ToHost::Join(join))));
        Ok(())
    }

    fn introduce_on(&mut self, id: RoomId, member: Member, assignment: &SeatAssignment) {
        let SeatAssignment { player, seat, .. } = *assignment;
        if let Some(room) = self.rooms.get_mut(&id) {
            room.stays = true;
        }
        let known = KnownPlayer { player, seat, is_firm: true, kept: &[], character: &[] };
        self.tell(id, Input::KnownPlayer(member, known));
    }
}

/// The join with the values of the assignment. Only the claim to resume stays the member's own.
fn decided(join: Join, assignment: &SeatAssignment) -> Join {
    let SeatAssignment { name, seat, setup, seed, seats, listed, .. } = assignment.clone();
    Join { name, watch: seat.is_none(), setup, seed, seats, listed, ..join }
}

#[cfg(test)]
mod tests;
