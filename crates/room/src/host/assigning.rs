//! Who sits where whoever drives the host has decided it: exactly there, and nobody else.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sametick_sim::Seat;
use sametick_sim::record::Leaving;
use sametick_sim::replica::Hosted;
use sametick_wire::Member;
use sametick_wire::identity::PlayerId;

use super::joining::CAME_BACK;
use super::{Host, Output, SeatSlot};
use crate::message::Join;

/// What somebody is told whose seat was given to another player.
pub const SEAT_GIVEN: &str = "this seat is somebody else's now";

/// What somebody is told who was given a seat that is not there, or that was given to somebody else since.
const NO_SEAT: &str = "that seat is taken, or there is none";

impl<G: Hosted> Host<G> {
    /// Where somebody sits for whom that was decided; none if the game has to see first that the seat was left. Whoever else sits
    /// there has to go: one who is out of date, since no two players are given one seat.
    pub(super) fn assigned_place(
        &mut self,
        member: Member,
        player: PlayerId,
        seat: Option<Seat>,
    ) -> Result<Option<Option<Seat>>, &'static str> {
        self.end_other_link(member, player, seat)?;
        let Some(seat) = seat else { return self.place_to_look().map(Some) };
        let Some(seat_slot) = self.seat_slots.get_mut(seat.index()).ok_or(NO_SEAT)? else {
            let held = self.take_held(seat, player);
            self.seat_slots[seat.index()] = Some(Box::new(SeatSlot::new(member, Some(player))));
            self.keeping.seat(member, seat, held);
            return Ok(Some(Some(seat)));
        };
        let (old, is_their_own) =
            (seat_slot.member, seat_slot.player == Some(player) || seat_slot.is_absent());
        match seat_slot.leaving {
            // A player who is back before the game knows that they left has never gone.
            _ if is_their_own && seat_slot.can_be_taken_again() => {
                (seat_slot.member, seat_slot.player, seat_slot.leaving) = (member, Some(player), None);
                self.take_held(seat, player);
                self.keeping.holds.clear(seat);
                Ok(Some(Some(seat)))
            }
            Some(_) => Ok(None),
            None if is_their_own => {
                self.hand_over(old, seat, member, Some(player));
                Ok(Some(Some(seat)))
            }
            None if old > member => Err(NO_SEAT),
            None => {
                self.kick(old, SEAT_GIVEN);
                Ok(None)
            }
        }
    }

    /// Ends the link over which a player takes part elsewhere than on this seat, or is about to take part. A later one than this
    /// stays.
    fn end_other_link(
        &mut self,
        member: Member,
        player: PlayerId,
        seat: Option<Seat>,
    ) -> Result<(), &'static str> {
        let is_theirs = |it: &&(Member, Join)| self.keeping.expected(it.0).is_some_and(|it| it.0 == player);
        let deferred = self.deferred.iter().filter(is_theirs).map(|(other, _)| (*other, None));
        let links = self.who.iter().filter(|(_, who)| who.player == Some(player));
        let mut links = links.map(|(other, who)| (*other, who.seat)).chain(deferred);
        // There is one at most, besides one that asks again.
        let Some((other, sits)) = links.find(|(other, _)| *other != member) else { return Ok(()) };
        if other > member {
            return Err(CAME_BACK);
        }
        if sits.is_none() || sits != seat {
            self.remove(other, Leaving::Left);
            self.outbox.push_bare(Output::Close(other, CAME_BACK));
        }
        Ok(())
    }

    /// What was kept of a player when they left this seat, or of whoever sat there before the host was.
    fn take_held(&mut self, seat: Seat, player: PlayerId) -> Option<Vec<u8>> {
        let own = self.keeping.holds.find(Some(player), |_| false).filter(|hold| hold.seat == seat);
        let own = own.map(|hold| hold.kept.clone());
        let absent = self.keeping.absent.extract_if(.., |(of, ..)| *of == seat).next();
        own.or_else(|| absent.filter(|(_, until, _)| self.now < *until).map(|(.., kept)| kept))
    }

    /// Somebody is let in after the next tick.
    pub(super) fn defer(&mut self, member: Member, join: &Join) {
        self.deferred.retain(|(other, _)| *other != member);
        self.deferred.push((member, join.clone()));
    }

    /// Seats were left: those who wait for one are let in.
    pub(super) fn let_in_deferred(&mut self) {
        for (member, join) in core::mem::take(&mut self.deferred) {
            // It was sound when it came.
            let _ = self.join(member, &join);
        }
    }
}
