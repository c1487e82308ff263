//! Seat choice for a joining peer: its earlier seat, any free seat, or exactly the assigned one.

use sametick_sim::record::Leaving;
use sametick_sim::{Seat, Time};
use sametick_wire::identity::PlayerId;

use crate::assignment::JoinRequest;
use crate::facts::JoinError;
use crate::message::{Join, Resume};
use crate::planted::{self, Bug};
use crate::relay::Output;
use crate::rows::MAX_SEATS;
use crate::session::{CAME_BACK, MAX_MEMBERS, Member, Out, SEAT_GIVEN, Session};

/// The place of a member in the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The seat; none for a spectator.
    pub seat: Option<Seat>,
    /// For the game the member never left that seat. This is the member id in its last claim.
    pub as_whom: Option<Member>,
}

impl Session {
    /// The place of a joining peer; none if it has to wait until another has left. `resume` is the valid part of what
    /// the peer states.
    pub(super) fn place_for(
        &mut self,
        now: Time,
        member: Member,
        wish: &JoinRequest,
        resume: Option<&Resume>,
        out: &mut Out,
    ) -> Result<Option<Place>, JoinError> {
        match wish.player {
            Some(player) => self.assigned_place(now, member, player, &wish.join, out),
            None => self.wished_place(now, member, &wish.join, resume),
        }
    }

    /// The place of a peer without an assignment.
    fn wished_place(
        &self,
        now: Time,
        member: Member,
        join: &Join,
        resume: Option<&Resume>,
    ) -> Result<Option<Place>, JoinError> {
        if join.watch {
            return Ok(Some(Place::default()));
        }
        // The stated claim decides whether the seat is still its own, valid ticks or not.
        let said = join.resume.filter(|_| resume.is_some());
        if let Some((own, before)) = said.and_then(|said| self.claimed_seat(&said, member)) {
            return Ok(Some(Place { seat: Some(own), as_whom: Some(before) }));
        }
        match self.another_seat(now, join, resume) {
            Ok(seat) => Ok(Some(Place { seat: Some(seat), as_whom: None })),
            Err(_) if self.may_defer() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The place of a peer with an assignment. Another peer on the seat is out of date and has to leave, since no two
    /// players are assigned one seat.
    fn assigned_place(
        &mut self,
        now: Time,
        member: Member,
        player: PlayerId,
        join: &Join,
        out: &mut Out,
    ) -> Result<Option<Place>, JoinError> {
        if self.members.len() >= MAX_MEMBERS {
            return Err(JoinError::Full);
        }
        self.end_other_link(now, member, player, join.seat, out)?;
        let Some(seat) = join.seat else { return Ok(Some(Place::default())) };
        let place = Place { seat: Some(seat), as_whom: None };
        let is_there = seat.0 < self.facts.seats;
        let seat_slot = self.seat_slots.get(seat.index()).filter(|_| is_there).ok_or(JoinError::Taken)?;
        let Some(seat_slot) = seat_slot else { return Ok(Some(place)) };
        if seat_slot.vacant || seat_slot.player == Some(player) {
            let claimed = join.resume.filter(|_| seat_slot.vacant).map(|resume| Member(resume.claim.member));
            return Ok(Some(Place { as_whom: claimed.or(Some(seat_slot.member)), ..place }));
        }
        if seat_slot.leaving.is_none() {
            let other = seat_slot.member;
            if other > member {
                return Err(JoinError::Taken);
            }
            self.leave(now, other, Leaving::Kicked, out);
            out.push_bare(Output::Kick(other, SEAT_GIVEN));
        }
        // The game sees the seat left first.
        Ok(self.seat_slots[seat.index()].is_none().then_some(place))
    }

    /// Closes the player's earlier link, if it takes part elsewhere than on this seat or is about to. A later link
    /// stays.
    fn end_other_link(
        &mut self,
        now: Time,
        member: Member,
        player: PlayerId,
        seat: Option<Seat>,
        out: &mut Out,
    ) -> Result<(), JoinError> {
        let deferred = self.deferred.iter().filter(|(_, wish)| wish.player == Some(player));
        let deferred = deferred.map(|(other, _)| (*other, None));
        let links = self.members.iter().filter(|(_, it)| it.player == Some(player));
        let mut links = links.map(|(other, it)| (*other, it.seat)).chain(deferred);
        // There is at most one.
        let Some((other, sits)) = links.next() else { return Ok(()) };
        if other > member {
            return Err(JoinError::Overtaken);
        }
        if sits.is_none() || sits != seat {
            self.leave(now, other, Leaving::Left, out);
            out.push_bare(Output::Kick(other, CAME_BACK));
        }
        Ok(())
    }

    /// A seat for a peer that does not have one: its earlier seat if that is free, or any.
    fn another_seat(&self, now: Time, join: &Join, resume: Option<&Resume>) -> Result<Seat, JoinError> {
        let held = self.held_seat(now, resume);
        held.map_or_else(|| self.free_seat(now, join.seat, join.resume.is_some()), Ok)
    }

    /// The seat that a resuming peer still has, as far as the game knows, and the member id in its last claim.
    fn claimed_seat(&self, resume: &Resume, to: Member) -> Option<(Seat, Member)> {
        let mut seat_slots = (0..).map(Seat).zip(&self.seat_slots);
        seat_slots.find_map(|(seat, seat_slot)| {
            // A late join over an abandoned link does not close a later link.
            let seat_slot =
                seat_slot.as_ref().filter(|seat_slot| seat_slot.member < to && seat_slot.player.is_none())?;
            if seat_slot.vacant {
                let is_its = resume.claim.seat == Some(seat) && self.has_sat_on(seat_slot, resume);
                return is_its.then_some((seat, Member(resume.claim.member)));
            }
            let mut known = [Some(seat_slot.member), seat_slot.before].into_iter().flatten();
            let is_good = |member| self.is_claim_of(&resume.claim, member) || planted::has(Bug::AnyClaim);
            Some((seat, known.find(|member| is_good(*member))?))
        })
    }

    /// The earlier seat of a resuming peer, if it is free.
    fn held_seat(&self, now: Time, resume: Option<&Resume>) -> Option<Seat> {
        let claim = &resume?.claim;
        let hold = self.holds.find(None, |member| self.is_claim_of(claim, member));
        // The member that left before a restart is not known, but its seat is.
        let is_vacated = |seat: &Seat| self.holds.of(now, *seat).is_some_and(|hold| hold.member.is_none());
        let vacated = || claim.seat.filter(|seat| self.is_earlier(claim) && is_vacated(seat));
        let seat = hold.map(|hold| hold.seat).or_else(vacated);
        seat.filter(|seat| self.seat_slots[seat.index()].is_none())
    }

    /// A free seat: the wished one, or any if the wish is not binding.
    fn free_seat(&self, now: Time, wish: Option<Seat>, or_any: bool) -> Result<Seat, JoinError> {
        let all = (0..self.facts.seats.min(MAX_SEATS as u16)).map(Seat);
        let free = all.filter(|seat| self.seat_slots[seat.index()].is_none());
        let wished = wish.and_then(|wish| free.clone().find(|seat| *seat == wish));
        match wish {
            Some(_) if wished.is_some() || !or_any => wished.ok_or(JoinError::Taken),
            _ => self.holds.free_among(now, free).ok_or(JoinError::Full),
        }
    }
}
