//! Where somebody sits who comes: where they sat, anywhere that is free, or exactly where it was decided.

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

/// Where somebody takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// None: it watches.
    pub seat: Option<Seat>,
    /// For the game it has never left that seat. This is who it was when it was last told.
    pub as_whom: Option<Member>,
}

impl Session {
    /// Where somebody takes part who comes; none if it has to wait until somebody has left. `resume` is what holds of what it says
    /// it has.
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

    /// Where somebody sits who has a say in it.
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
        // What it says it has, whether or not that holds, tells whether the seat is still its own.
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

    /// Where somebody sits for whom that was decided. Whoever else sits there has to go: one who is out of date, since no two players
    /// are given one seat.
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
        // The game sees first that the seat was left.
        Ok(self.seat_slots[seat.index()].is_none().then_some(place))
    }

    /// Ends the link over which a player takes part elsewhere than on this seat, or is about to take part. A later one than this
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
        // There is one at most.
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

    /// Where somebody sits down who has no seat: where it sat, if nobody does now, or anywhere.
    fn another_seat(&self, now: Time, join: &Join, resume: Option<&Resume>) -> Result<Seat, JoinError> {
        let held = self.held_seat(now, resume);
        held.map_or_else(|| self.free_seat(now, join.seat, join.resume.is_some()), Ok)
    }

    /// Where the one who comes back still sits, as far as the game knows, and who it was when it was last told.
    fn claimed_seat(&self, resume: &Resume, to: Member) -> Option<(Seat, Member)> {
        let mut seat_slots = (0..).map(Seat).zip(&self.seat_slots);
        seat_slots.find_map(|(seat, seat_slot)| {
            // What comes late over a link that was given up ends no later one.
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

    /// Where the one who comes back sat, if nobody sits there now.
    fn held_seat(&self, now: Time, resume: Option<&Resume>) -> Option<Seat> {
        let claim = &resume?.claim;
        let hold = self.holds.find(None, |member| self.is_claim_of(claim, member));
        // By whom it was left before a restart is not known, but where they sat.
        let is_vacated = |seat: &Seat| self.holds.of(now, *seat).is_some_and(|hold| hold.member.is_none());
        let vacated = || claim.seat.filter(|seat| self.is_earlier(claim) && is_vacated(seat));
        let seat = hold.map(|hold| hold.seat).or_else(vacated);
        seat.filter(|seat| self.seat_slots[seat.index()].is_none())
    }

    /// A free seat: the one that is wished for, or, where the wish is no condition, any.
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
