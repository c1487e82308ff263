//! Seats assigned by the driver: the player gets exactly that seat, and no other player gets it.

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

/// The reason given to a member whose seat was assigned to another player.
pub const SEAT_GIVEN: &str = "this seat was given to another player";

/// The reason given to a member whose assigned seat does not exist, or was assigned to another player since.
const NO_SEAT: &str = "that seat is taken, or there is none";

impl<G: Hosted> Host<G> {
    /// The seat that was assigned to a joining player; none yet if the game first has to see that the seat was left.
    /// Another player who sits there has to leave: that assignment is out of date, since no two players are assigned
    /// one seat.
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
            // A player who is back before the game was told of the departure has never left.
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

    /// Closes the link over which the player is in another place, or waits to join. A link that opened later stays.
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
        // There is one at most, besides another join over the same link.
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

    /// The state that was saved when this player left this seat, or of the absent player of before the restart.
    fn take_held(&mut self, seat: Seat, player: PlayerId) -> Option<Vec<u8>> {
        let own = self.keeping.holds.find(Some(player), |_| false).filter(|hold| hold.seat == seat);
        let own = own.map(|hold| hold.kept.clone());
        let absent = self.keeping.absent.extract_if(.., |(of, ..)| *of == seat).next();
        own.or_else(|| absent.filter(|(_, until, _)| self.now < *until).map(|(.., kept)| kept))
    }

    /// The member is let in after the next tick.
    pub(super) fn defer(&mut self, member: Member, join: &Join) {
        self.deferred.retain(|(other, _)| *other != member);
        self.deferred.push((member, join.clone()));
    }

    /// Seats were left: members that wait for one are let in.
    pub(super) fn let_in_deferred(&mut self) {
        for (member, join) in core::mem::take(&mut self.deferred) {
            // The request was checked when it arrived.
            let _ = self.join(member, &join);
        }
    }
}
