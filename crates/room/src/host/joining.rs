//! Members that join, leave and rejoin.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use sametick_sim::record::{Leaving, Record};
use sametick_sim::replica::{Hosted, ViewId};
use sametick_sim::{Seat, Tick};
use sametick_wire::claims::{Claim, Hold};
use sametick_wire::identity::PlayerId;
use sametick_wire::{Channel, Malformed, Member, control};

use super::crew::Crew;
use super::{Clock, CrewId, Host, Output, SeatSlot, Who};
use crate::message::{Join, Seated, ToView, Welcome};

/// The most spectators: fewer than the crews of a view have places.
pub const MAX_SPECTATORS: usize = 1_024;

/// The reason given to an old link whose player has rejoined over another.
pub const CAME_BACK: &str = "you have come back over another connection";

/// The reason given to a member for whom there is no seat.
pub const ROOM_IS_FULL: &str = "the room is full";

/// The reason given to a client with `must_resume` that cannot resume.
pub const NOT_RESUMED: &str =
    "this claim brings nobody back: it was used before, is of another room, or the seat was given away";

/// The view that all spectators share.
pub const SPECTATORS: ViewId = ViewId(u16::MAX);

impl<G: Hosted> Host<G> {
    pub(super) fn join(&mut self, member: Member, join: &Join) -> Result<(), Malformed> {
        join.check()?;
        if join.game != G::NAME {
            self.refuse(member, "another game is played in this room");
            return Ok(());
        }
        let player = self.keeping.expected(member).map(|(player, _)| player);
        let is_back = join.watch
            || self.keeping.assigned(member).is_some()
            || self.seat_of(player, join.resume).is_some()
            || self.hold_of(player, join.resume).is_some();
        if join.must_resume && !is_back {
            self.keeping.forget_guest(member);
            self.refuse(member, NOT_RESUMED);
            return Ok(());
        }
        let place = match self.keeping.assigned(member) {
            Some((player, seat)) => self.assigned_place(member, player, seat),
            None => self.place_for(member, join).map(Some),
        };
        let seat = match place {
            Ok(Some(seat)) => seat,
            Ok(None) => {
                self.defer(member, join);
                return Ok(());
            }
            Err(why) => {
                self.refuse(member, why);
                return Ok(());
            }
        };
        self.keeping.forget_guest(member);
        let view = seat.map_or(SPECTATORS, |seat| self.state.view_of(seat));
        let crew = self.board(member, view);
        let (name, commit) = (join.name.clone(), join.commit.clone());
        let (clock, paced) = (Clock::default(), self.tick);
        self.who.insert(member, Who { name, commit, seat, player, crew, clock, paced });
        let age_us = u32::try_from(self.now.micros_since(self.due(self.tick))).unwrap_or(u32::MAX);
        let claim = self.claims.of(member);
        let (view, tick) = (view.0, self.tick);
        self.say(member, &ToView::Welcome(Welcome { seat, view, tick, age_us, claim, is_back }));
        let seated = self.seated();
        self.say(member, &ToView::Roster { seated });
        if let Some(seat) = seat {
            self.say_to_others(member, &ToView::Came(Seated { seat, name: join.name.clone() }));
        }
        Ok(())
    }

    /// The seat of a joining member; from now on it is taken.
    fn place_for(&mut self, member: Member, join: &Join) -> Result<Option<Seat>, &'static str> {
        if join.watch {
            return self.place_to_look();
        }
        let (player, wish) = self.keeping.expected(member).unzip();
        if let Some((old, seat)) = self.seat_of(player, join.resume) {
            self.hand_over(old, seat, member, player);
            return Ok(Some(seat));
        }
        let held = self.hold_of(player, join.resume);
        let last = held.as_ref().map(|(seat, _)| *seat);
        if let Some(seat) = last.filter(|seat| self.stay(*seat, member, player, join.resume)) {
            return Ok(Some(seat));
        }
        let is_free = |seat: &Seat| self.seat_slots.get(seat.index()).is_some_and(Option::is_none);
        let free = (0..self.seat_slots.len() as u16).map(Seat).filter(is_free);
        let wish =
            wish.flatten().filter(|seat| is_free(seat) && self.keeping.holds.of(self.now, *seat).is_none());
        let any = || self.keeping.holds.free_among(self.now, free);
        let seat = last.filter(is_free).or(wish).or_else(any).ok_or(ROOM_IS_FULL)?;
        self.seat_slots[seat.index()] = Some(Box::new(SeatSlot::new(member, player)));
        self.keeping.seat(member, seat, held.map(|(_, kept)| kept));
        Ok(Some(seat))
    }

    /// A player has rejoined before the previous link was found dead: the seat is handed over, and the game is not
    /// told.
    pub(super) fn hand_over(&mut self, old: Member, seat: Seat, member: Member, player: Option<PlayerId>) {
        self.who.remove(&old);
        self.disembark(old);
        self.outbox.push_bare(Output::Close(old, CAME_BACK));
        if let Some(seat_slot) = &mut self.seat_slots[seat.index()] {
            (seat_slot.member, seat_slot.player) = (member, player);
        }
    }

    /// A place without a seat, if there is room for another spectator.
    pub(super) fn place_to_look(&self) -> Result<Option<Seat>, &'static str> {
        let spectators = self.who.values().filter(|who| who.seat.is_none()).count();
        if spectators < MAX_SPECTATORS { Ok(None) } else { Err("the room has too many spectators already") }
    }

    /// Reserves a seat for a player who was there before this host started.
    pub(super) fn hold(&mut self, seat: Seat, player: PlayerId, for_us: u64) {
        if seat.index() < self.seat_slots.len() {
            let until = self.now.plus_micros(for_us);
            let absent = self.seat_slots[seat.index()].as_ref().filter(|seat_slot| seat_slot.is_absent());
            let (member, player) = (absent.map(|seat_slot| seat_slot.member), Some(player));
            let kept = member.map_or_else(Vec::new, |_| self.kept_of(seat));
            self.keeping.holds.push(Hold { seat, member, player, until, is_firm: true, kept });
        }
    }

    /// A player who left a seat in this very tick and is back already has never left. Returns whether that is the case.
    fn stay(&mut self, seat: Seat, member: Member, player: Option<PlayerId>, claim: Option<Claim>) -> bool {
        let hold = self
            .keeping
            .holds
            .find(player, |gone| claim.is_some_and(|claim| self.claims.is_good(&claim, gone)));
        let last = hold.and_then(|hold| hold.member);
        let its = |seat_slot: &SeatSlot| last == Some(seat_slot.member);
        let seat_slot = self.seat_slots.get_mut(seat.index()).and_then(Option::as_mut);
        let Some(seat_slot) = seat_slot.filter(|seat_slot| seat_slot.can_be_taken_again() && its(seat_slot))
        else {
            return false;
        };
        (seat_slot.member, seat_slot.player, seat_slot.leaving) = (member, player, None);
        self.keeping.holds.clear(seat);
        true
    }

    /// The seat on which a player still sits, by identity or by claim. A claim alone does not give access to the seat
    /// of another known player.
    fn seat_of(&self, player: Option<PlayerId>, claim: Option<Claim>) -> Option<(Member, Seat)> {
        let is_claimed = |member: Member| claim.is_some_and(|claim| self.claims.is_good(&claim, member));
        let its = |member: Member, who: &Who| match who.player {
            Some(known) => player == Some(known),
            None => is_claimed(member),
        };
        let (member, who) = self.who.iter().find(|(member, who)| who.seat.is_some() && its(**member, who))?;
        Some((*member, who.seat?))
    }

    /// The reserved seat of a returning player, and the state saved when the player left.
    fn hold_of(&self, player: Option<PlayerId>, claim: Option<Claim>) -> Option<(Seat, Vec<u8>)> {
        let is_claimed = |member: Member| claim.is_some_and(|claim| self.claims.is_good(&claim, member));
        self.keeping.holds.find(player, is_claimed).map(|hold| (hold.seat, hold.kept.clone()))
    }

    /// Adds a member to a crew of the view, to another one if the first is full.
    fn board(&mut self, member: Member, view: ViewId) -> CrewId {
        for number in 0..=u8::MAX {
            let id = (view, number);
            let crew = self.crews.entry(id).or_insert_with(|| Crew::new(view, &self.layout, &self.family));
            if crew.add(member) {
                return id;
            }
        }
        unreachable!("a room has fewer members than the crews of a view have places")
    }

    fn disembark(&mut self, member: Member) {
        self.crews.retain(|_, crew| {
            crew.remove(member);
            !crew.is_empty()
        });
    }

    pub(super) fn kick(&mut self, member: Member, why: &'static str) {
        self.remove(member, Leaving::Kicked);
        self.outbox.push_bare(Output::Close(member, why));
    }

    pub(super) fn remove(&mut self, member: Member, why: Leaving) {
        self.keeping.forget_guest(member);
        self.deferred.retain(|(other, _)| *other != member);
        self.keep_member(member);
        let Some(who) = self.who.remove(&member) else { return };
        self.disembark(member);
        let Some(seat) = who.seat else { return };
        if let Some(seat_slot) =
            self.seat_slots[seat.index()].as_mut().filter(|seat_slot| seat_slot.member == member)
        {
            seat_slot.leaving = Some(why);
            if seat_slot.joined {
                // The log needs the player's identity even though the player leaves before the first tick.
                self.outbox.push_bare(Output::Record(Record::Joined {
                    tick: self.tick.next(),
                    seat,
                    name: who.name,
                    commit: who.commit,
                }));
            }
        }
        self.hold_for(member, seat, who.player, why);
        self.say_to_others(member, &ToView::Went(seat));
    }

    /// Reserves the seat of a player who left, unless the player was kicked.
    fn hold_for(&mut self, member: Member, seat: Seat, player: Option<PlayerId>, why: Leaving) {
        let kept = self.keeping.waiting_for(seat).unwrap_or_else(|| self.kept_of(seat));
        self.keeping.vacate(seat);
        if why == Leaving::Kicked {
            player.into_iter().for_each(|player| self.keeping.holds.forget(player));
            return;
        }
        let until = self.now.plus_micros(self.config.hold_us);
        let is_firm = why == Leaving::TimedOut;
        self.keeping.holds.push(Hold { seat, member: Some(member), player, until, is_firm, kept });
    }

    /// Absent players of before the restart whose time to rejoin is over leave in the next tick.
    pub(super) fn let_absent_go(&mut self) {
        if self.now < self.absent_until {
            return;
        }
        for seat_slot in self.seat_slots.iter_mut().flatten().filter(|seat_slot| seat_slot.is_absent()) {
            seat_slot.leaving.get_or_insert(Leaving::TimedOut);
        }
    }

    /// Records for the log which players join and leave in the next tick.
    pub(super) fn record_comings_and_goings(&mut self, tick: Tick) {
        for (seat, seat_slot) in (0..).map(Seat).zip(&self.seat_slots) {
            let Some(seat_slot) = seat_slot else { continue };
            if let Some(who) = self.who.get(&seat_slot.member).filter(|_| seat_slot.joined) {
                let (name, commit) = (who.name.clone(), who.commit.clone());
                self.outbox.push_bare(Output::Record(Record::Joined { tick, seat, name, commit }));
            }
            if let Some(why) = seat_slot.leaving {
                self.outbox.push_bare(Output::Record(Record::Left { tick, seat, why }));
            }
        }
    }

    /// After a tick, joins are no longer new, and leaving players have left.
    pub(super) fn clear_seat_slots(&mut self) {
        for seat_slot in &mut self.seat_slots {
            match seat_slot {
                Some(left) if left.leaving.is_some() => *seat_slot = None,
                Some(stays) => stays.joined = false,
                None => {}
            }
        }
    }

    /// A member whose view has changed moves to another crew, without a base.
    pub(super) fn follow_views(&mut self) {
        for seat_slot in 0..self.seat_slots.len() {
            let seat = Seat(seat_slot as u16);
            let Some(member) = self.seat_slots[seat_slot].as_ref().map(|seat_slot| seat_slot.member) else {
                continue;
            };
            let view = self.state.view_of(seat);
            if self.who.get(&member).is_some_and(|who| who.crew.0 != view) {
                self.disembark(member);
                let crew = self.board(member, view);
                if let Some(who) = self.who.get_mut(&member) {
                    who.crew = crew;
                }
                self.say(member, &ToView::View(view.0));
            }
        }
    }

    fn refuse(&mut self, member: Member, why: &'static str) {
        self.say(member, &ToView::Refused { why: why.to_string(), bad_token: false });
    }

    fn say(&mut self, member: Member, message: &ToView) {
        self.outbox.push(Output::Send(member, Channel::Control), |out| control::put(out, message));
    }

    fn say_to_others(&mut self, besides: Member, message: &ToView) {
        self.outbox.write(|out| control::put(out, message));
        for member in self.who.keys().filter(|member| **member != besides) {
            self.outbox.push_again(Output::Send(*member, Channel::Control));
        }
    }
}
