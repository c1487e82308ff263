//! Joining and leaving a session: seats, welcomes and rosters.

use alloc::vec::Vec;

use sametick_sim::record::{Leaving, Record};
use sametick_sim::{Seat, Tick, Time};
use sametick_wire::Channel;
use sametick_wire::claims::{HOLD_US, Hold};
use sametick_wire::identity::PlayerId;

use crate::assignment::JoinRequest;
use crate::facts::{Facts, JoinError};
use crate::message::{self, About, Seated, ToPeer};
use crate::relay::Output;
use crate::seat_slot::SeatSlot;
use crate::session::placing::Place;
use crate::session::{
    CAME_BACK, JOIN_PATIENCE_US, MAX_MEMBERS, Member, Membership, Out, START_DELAY_US, Session, Source,
    Stage, send,
};

impl Session {
    /// Handles a peer's join.
    pub(crate) fn join(
        &mut self,
        now: Time,
        member: Member,
        wish: &JoinRequest,
        out: &mut Out,
    ) -> Result<(), JoinError> {
        let join = &wish.join;
        self.is_on_assignment |= wish.player.is_some();
        if join.game != self.facts.game {
            return Err(JoinError::Game);
        }
        if u32::from(join.rate) != self.facts.rate.per_second() {
            return Err(JoinError::Rate);
        }
        if self.returning.is_some() {
            return self.wait_with_the_others(now, member, wish, out);
        }
        let resume = join.resume.and_then(|resume| self.what_holds(resume));
        let source = self.source(resume.as_ref()).ok_or(JoinError::TooLong)?;
        let Some(place) = self.place_for(now, member, wish, resume.as_ref(), out)? else {
            self.deferred.push((member, wish.without_setup()));
            return Ok(());
        };
        if self.members.len() >= MAX_MEMBERS {
            return Err(JoinError::Full);
        }
        self.sit(now, member, wish, place, out);
        // Ticks are sent in runs; the ticks sent to one newcomer must end where a run ends.
        self.send_ticks(out);
        let membership = Membership {
            seat: place.seat,
            player: wish.player,
            name: join.name.clone(),
            commit: join.commit.clone(),
            resent_at: None,
            diagnostics: None,
            stage: Stage::Waiting(now.plus_micros(JOIN_PATIENCE_US)),
        };
        self.members.insert(member, membership);
        match self.epoch {
            Some(epoch) => {
                // A peer that came back never left its seat.
                if place.as_whom.is_none() {
                    self.note_joined(member, out);
                }
                let is_waiting = self.is_worth_waiting(now, &source, out) || self.is_welcome(member);
                if !is_waiting {
                    self.welcome(now, epoch, member, source, out);
                }
            }
            None => self.begin(now, out),
        }
        self.send_roster(out);
        Ok(())
    }

    /// A peer takes a seat, or has come back to its seat.
    fn sit(&mut self, now: Time, member: Member, wish: &JoinRequest, place: Place, out: &mut Out) {
        let Some(seat) = place.seat else { return };
        let Some(before) = place.as_whom else {
            self.seat_slots[seat.index()] = Some(SeatSlot::new(member, wish.player));
            self.holds.clear(seat);
            self.agreement.on_joined();
            return;
        };
        self.hand_over(now, (seat, before), member, out);
        if let Some(seat_slot) = &mut self.seat_slots[seat.index()] {
            let claim = wish.join.resume.map(|resume| resume.claim).filter(|claim| claim.seat == Some(seat));
            seat_slot.sat = seat_slot.sat.or(claim.map(|claim| claim.since));
            seat_slot.player = wish.player;
        }
    }

    /// A peer has come back before its last link was found dead: that link is closed.
    fn hand_over(&mut self, now: Time, (seat, from): (Seat, Member), to: Member, out: &mut Out) {
        let closed = self.history.last();
        let Some(seat_slot) = &mut self.seat_slots[seat.index()] else { return };
        let (before, was_vacant) = (seat_slot.member, seat_slot.vacant);
        seat_slot.hand_over(from, to, closed);
        if !was_vacant && self.members.remove(&before).is_some() {
            self.compare(out, |agreement, floor, out| agreement.on_left(now, floor, before, out));
            self.on_giver_left(now, before, out);
            out.push_bare(Output::Kick(before, CAME_BACK));
        }
        self.agreement.on_joined();
    }

    /// Begins the session if enough players have joined: a moment later, so that all are in time for the first tick.
    fn begin(&mut self, now: Time, out: &mut Out) {
        let players = self.members.values().filter(|membership| membership.seat.is_some()).count();
        if players < usize::from(self.wait_for.min(self.facts.seats)) {
            return;
        }
        let epoch = now.plus_micros(START_DELAY_US);
        self.epoch = Some(epoch);
        let mut members: Vec<(Option<Seat>, Member)> =
            self.members.iter().map(|(member, membership)| (membership.seat, *member)).collect();
        members.sort_unstable();
        for (_, member) in members {
            self.note_joined(member, out);
            self.welcome(now, epoch, member, Source::Ticks(self.history.first()), out);
        }
    }

    /// Records that a peer has taken a seat.
    fn note_joined(&self, member: Member, out: &mut Out) {
        let Some(Membership { seat: Some(seat), name, commit, .. }) = self.members.get(&member) else {
            return;
        };
        let (seat, name, commit) = (*seat, name.clone(), commit.clone());
        let joined = Record::Joined { tick: self.history.last().next(), seat, name, commit };
        out.push_bare(Output::Record(self.id, joined));
    }

    /// Whether a peer has been let in.
    fn is_welcome(&self, member: Member) -> bool {
        self.members.get(&member).is_some_and(|it| !matches!(it.stage, Stage::Waiting(_)))
    }

    /// Lets a peer in, and sends what it lacks: the ticks at once, a save when it asks for it.
    pub(super) fn welcome(&mut self, now: Time, epoch: Time, member: Member, source: Source, out: &mut Out) {
        let (closed, first) = (self.history.last(), source.first());
        let Some(&Membership { seat, .. }) = self.members.get(&member) else { return };
        let welcome = ToPeer::Welcome {
            seat,
            closed,
            first,
            save: Session::head_of(&source),
            age_us: now.as_micros() as i64 - self.due(epoch, closed).as_micros() as i64,
            setup: self.facts.setup.clone(),
            rate: self.facts.rate.per_second() as u16,
            claim: self.claim_of(member, seat),
            about: self.about(),
        };
        send(out, member, Channel::Control, &welcome);
        let save = match source {
            Source::Save(save) => Some(save),
            Source::Ticks(_) => {
                self.send_history(member, first, out);
                None
            }
        };
        let Some(membership) = self.members.get_mut(&member) else { return };
        let is_new = save.is_some() || first == Tick(1);
        membership.stage = match closed {
            Tick::ZERO => Stage::Level,
            _ => Stage::CatchingUp { since: now, needs: first, save, is_new },
        };
    }

    /// The session's facts for a welcome.
    fn about(&self) -> About {
        let Facts { seed, seats, listed, commit, .. } = &self.facts;
        let (seed, seats, listed, commit) = (*seed, *seats, *listed, commit.clone());
        About { seed, seats, listed, commit, started_unix_ms: self.started_unix_ms }
    }

    /// Sends the roster to all members.
    pub(super) fn send_roster(&self, out: &mut Out) {
        if self.epoch.is_none() || self.members.is_empty() {
            return;
        }
        let seated = |member: &Membership| member.seat.map(|seat| Seated { seat, name: member.name.clone() });
        let mut players: Vec<Seated> = self.members.values().filter_map(seated).collect();
        players.sort_unstable_by_key(|seated| seated.seat);
        let spectators = (self.members.len() - players.len()) as u16;
        out.write(|bytes| message::put(bytes, &ToPeer::Roster { players, spectators }));
        // A peer that has not been welcomed gets the roster afterwards.
        for member in self.members.keys().filter(|member| self.is_welcome(**member)) {
            out.push_again(Output::Send(*member, Channel::Control));
        }
    }

    /// A peer has left, for whatever reason. The others see its seat left in the next tick (L11).
    pub fn leave(&mut self, now: Time, member: Member, why: Leaving, out: &mut Out) {
        if let Some(returning) = &mut self.returning {
            returning.forget(member);
        }
        self.deferred.retain(|(other, _)| *other != member);
        let Some(membership) = self.members.remove(&member) else { return };
        self.compare(out, |agreement, floor, out| agreement.on_left(now, floor, member, out));
        self.on_giver_left(now, member, out);
        if let Some(seat) = membership.seat {
            match &mut self.seat_slots[seat.index()] {
                // The join has not been seen by the game.
                seat_slot if self.epoch.is_none() => *seat_slot = None,
                Some(seat_slot) => {
                    seat_slot.leaving = Some(why);
                    self.hold(now, member, membership.player, seat, why);
                }
                None => {}
            }
        }
        self.send_roster(out);
    }

    /// Holds the seat of a peer that has left (B9): it is the last one given to others, unless the peer was kicked. It
    /// is not locked: a player whose claim was lost with its process must not be kept out.
    fn hold(&mut self, now: Time, member: Member, player: Option<PlayerId>, seat: Seat, why: Leaving) {
        if why != Leaving::Kicked {
            let (member, until) = (Some(member), now.plus_micros(HOLD_US));
            self.holds.push(Hold { seat, member, player, until, is_firm: false, kept: Vec::new() });
        }
    }
}
