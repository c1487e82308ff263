//! What whoever drives rooms decides: as whom somebody takes part, and when a room is over.

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
    /// As whom somebody takes part who has come in, before they ask to: whatever they ask for, and whoever a database would say
    /// they are. A room that somebody joins on assignment goes on until it is [ended](Rooms::end), also while nobody is there.
    pub fn assign(&mut self, member: Member, assignment: SeatAssignment) {
        let is_new = |door: &&mut super::Door| door.room.is_none() && door.asking.is_none();
        if let Some(door) = self.doors.get_mut(&member).filter(is_new) {
            door.assignment = Some(assignment);
        }
    }

    /// Ends a room: whoever is there, or on the way, is told why. What is worth it is saved. Nothing if it is not open.
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

    /// How the game of a room has ended, if it has, and if it is one of which sessions can be made.
    pub fn outcome(&self, id: RoomId) -> Option<Outcome> {
        let room = self.room(id)?;
        let game = self.games.find(&room.facts.game, room.facts.build).ok()?;
        game.contest()?.outcome(room.host.state())
    }

    /// Says how the game of a room has ended, once it has.
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

    /// Whether it is said to a room who somebody is before they join it.
    pub(super) fn is_introduced(&self, member: Member) -> bool {
        self.keeping.is_some() || self.doors.get(&member).is_some_and(|door| door.assignment.is_some())
    }

    /// Somebody joins whom no database is asked about: a guest, or one for whom it was decided who they are.
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

/// What somebody asks for, as it was decided. How they come back is their own to say.
fn decided(join: Join, assignment: &SeatAssignment) -> Join {
    let SeatAssignment { name, seat, setup, seed, seats, listed, .. } = assignment.clone();
    Join { name, watch: seat.is_none(), setup, seed, seats, listed, ..join }
}

#[cfg(test)]
mod tests;
