//! Desync check of a session (L6): runs one inquiry at a time, writes records for the log and sends the agreed state to
//! desynced peers.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sametick_sim::record::Record;
use sametick_sim::{Seat, StateHash, Tick, Time};
use sametick_wire::Channel;

use crate::checks::{Checks, Finding};
use crate::inquiry::{Decided, Inquiry, Want, Witness};
use crate::message::{RECENT_TICKS, ToPeer, ToRelay};
use crate::relay::Output;
use crate::seat_slot::SeatSlot;
use crate::session::{Member, Membership, Out, SessionId, send};

/// A peer that was resynced this often within [`RESYNC_WINDOW_TICKS`] and desyncs again is removed: its fault cannot be
/// repaired with a state.
const MAX_RESYNCS: u32 = 5;

/// The period of [`MAX_RESYNCS`]: a minute at 60 Hz.
const RESYNC_WINDOW_TICKS: u32 = 3_600;

/// What a comparison of states needs to know about the session.
pub(crate) struct Floor<'a> {
    pub id: SessionId,
    pub closed: Tick,
    pub seat_slots: &'a [Option<Box<SeatSlot>>],
    pub members: &'a BTreeMap<Member, Membership>,
}

impl Floor<'_> {
    /// How many players vote on the state of a tick: those seated at that tick who are not catching up.
    fn voters(&self, tick: Tick) -> usize {
        let has_say = |member: &Member| self.members.get(member).is_none_or(|it| it.stage.has_say());
        let players = self.seat_slots.iter().flatten();
        players.filter(|seat_slot| seat_slot.was_there(tick) && has_say(&seat_slot.member)).count()
    }

    fn seat(&self, member: Member) -> Option<Seat> {
        self.members.get(&member).and_then(|membership| membership.seat)
    }

    fn witness(&self, member: Member) -> Option<Witness> {
        let membership = self.members.get(&member)?;
        Some(Witness::new(member, membership.seat, membership.name.clone()))
    }

    fn player_but(&self, member: Member) -> Option<Member> {
        let players = self.members.iter().filter(|(_, membership)| membership.seat.is_some());
        players.map(|(other, _)| *other).find(|other| *other != member)
    }
}

/// What a relay knows about the agreement of a session's players on the state.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    checks: Checks,
    findings: Vec<Finding>,
    inquiry: Option<Inquiry>,
    /// Players differ and it could not be decided who is right.
    disputed: bool,
    mismatches: u32,
    /// For each peer, how often it was resynced and the tick from which that is counted.
    resyncs: BTreeMap<Member, (Tick, u32)>,
}

impl Agreement {
    /// The last tick on whose state the players agree.
    pub fn agreed(&self) -> Tick {
        self.checks.agreed()
    }

    /// The agreed state hash of a tick, if it is still remembered.
    pub fn hash_at(&self, tick: Tick) -> Option<StateHash> {
        self.checks.decided(tick)
    }

    /// The peers that reported the agreed state for this tick.
    pub(crate) fn holders(&self, tick: Tick) -> Vec<Member> {
        self.checks.holders(tick)
    }

    /// Whether players differ and it is undecided who is right.
    pub fn is_disputed(&self) -> bool {
        self.disputed
            || self.inquiry.as_ref().is_some_and(|inquiry| inquiry.report().decided == Decided::Open)
    }

    /// How often a peer was desynced.
    pub fn mismatches(&self) -> u32 {
        self.mismatches
    }

    /// A peer has joined: its vote may give one state a majority.
    pub(crate) fn on_joined(&mut self) {
        self.disputed = false;
    }

    /// A peer has left and no longer votes.
    pub(crate) fn on_left(&mut self, now: Time, floor: &Floor<'_>, member: Member, out: &mut Out) {
        self.checks.forget(member);
        self.resyncs.remove(&member);
        self.disputed = false;
        if self.inquiry.as_ref().is_some_and(|inquiry| inquiry.is_about(member)) {
            self.end_inquiry(floor, out);
        }
        self.on_tick(now, floor, out);
    }

    /// Handles the time-out of an inquiry.
    pub(crate) fn on_time(&mut self, now: Time, floor: &Floor<'_>, out: &mut Out) {
        let Some(inquiry) = &self.inquiry else { return };
        let mut want = Vec::new();
        inquiry.on_time(now, &mut want);
        self.act(floor, want, out);
    }

    /// Ticks have been closed: checks whose missing answers may never arrive are decided.
    pub(crate) fn on_tick(&mut self, now: Time, floor: &Floor<'_>, out: &mut Out) {
        self.checks.on_tick(floor.closed, &mut self.findings);
        self.act_on_findings(now, floor, out);
    }

    /// Handles a peer's answer about its states.
    pub(crate) fn on_answer(
        &mut self,
        now: Time,
        floor: &Floor<'_>,
        member: Member,
        answer: ToRelay,
        out: &mut Out,
    ) {
        match answer {
            ToRelay::Check { tick, hash } => self.on_check(now, floor, member, (tick, hash), out),
            ToRelay::Hashes { first, hashes } => {
                self.inquire(now, floor, out, |inquiry, want| {
                    inquiry.on_hashes(member, first, hashes, want);
                });
            }
            ToRelay::State(state) => {
                self.inquire(now, floor, out, |inquiry, want| inquiry.on_state(member, state, want));
            }
            ToRelay::Resynced { fields, .. } => {
                self.inquire(now, floor, out, |inquiry, want| inquiry.on_resynced(member, fields, want));
            }
            ToRelay::Join(_)
            | ToRelay::Resend { .. }
            | ToRelay::Offer { .. }
            | ToRelay::Piece(_)
            | ToRelay::Want { .. }
            | ToRelay::Ticks { .. } => {}
        }
    }

    /// The state of a tick from a replay of the log; none if it cannot be replayed.
    pub(crate) fn on_verdict(
        &mut self,
        now: Time,
        floor: &Floor<'_>,
        tick: Tick,
        state: Option<Vec<u8>>,
        out: &mut Out,
    ) {
        self.inquire(now, floor, out, |inquiry, want| match state {
            Some(state) => inquiry.on_verdict(tick, state, want),
            None => inquiry.on_no_verdict(want),
        });
    }

    fn on_check(
        &mut self,
        now: Time,
        floor: &Floor<'_>,
        member: Member,
        check: (Tick, StateHash),
        out: &mut Out,
    ) {
        // A peer whose state is in doubt has no vote.
        if self.inquiry.as_ref().is_some_and(|inquiry| inquiry.suspects(member)) {
            return;
        }
        let is_voter = floor.seat(member).is_some();
        self.checks.answer(member, is_voter, check, floor.voters(check.0), &mut self.findings);
        self.act_on_findings(now, floor, out);
    }

    fn act_on_findings(&mut self, now: Time, floor: &Floor<'_>, out: &mut Out) {
        while !self.findings.is_empty() {
            match self.findings.remove(0) {
                Finding::Agreed { tick, hash } => {
                    self.disputed = false;
                    out.push_bare(Output::Record(floor.id, Record::Check { tick, hash }));
                }
                Finding::Odd { tick, member, hash, agreed } => {
                    self.mismatches += 1;
                    if let Some(seat) = floor.seat(member) {
                        out.push_bare(Output::Record(floor.id, Record::Dissent { tick, seat, hash }));
                    }
                    let good = self.longest_with(member, tick, agreed).or_else(|| floor.player_but(member));
                    if let Some(good) = good {
                        self.begin_inquiry(now, floor, tick, [good, member], Decided::ByMajority, out);
                    }
                }
                Finding::Split { tick, members } => {
                    self.mismatches += 1;
                    if !self.disputed && self.inquiry.is_none() {
                        out.push_bare(Output::Record(floor.id, Record::Dispute { tick }));
                        self.begin_inquiry(now, floor, tick, members, Decided::Open, out);
                    }
                }
            }
        }
    }

    /// A peer with this state that agreed with the desynced peer for longest. A peer that has just joined cannot say
    /// when that agreement ended.
    fn longest_with(&self, odd: Member, tick: Tick, agreed: StateHash) -> Option<Member> {
        let holders = self.checks.holders(tick).into_iter().rev().filter(|member| *member != odd);
        let longest = holders.max_by_key(|member| self.checks.last_common([*member, odd], tick));
        longest.or_else(|| self.checks.member_with(tick, agreed))
    }

    fn begin_inquiry(
        &mut self,
        now: Time,
        floor: &Floor<'_>,
        check: Tick,
        members: [Member; 2],
        decided: Decided,
        out: &mut Out,
    ) {
        let [Some(one), Some(other)] = members.map(|member| floor.witness(member)) else { return };
        if self.inquiry.is_some() {
            return;
        }
        let forgotten = Tick(check.0.saturating_sub(RECENT_TICKS));
        let agreed = self.checks.last_common(members, check).unwrap_or(forgotten).max(forgotten);
        let mut want = Vec::new();
        self.inquiry = Some(Inquiry::new(now, check, agreed, [one, other], decided, &mut want));
        self.act(floor, want, out);
    }

    /// Passes an event to the inquiry, if there is one, and carries out what it wants.
    fn inquire(
        &mut self,
        now: Time,
        floor: &Floor<'_>,
        out: &mut Out,
        tell: impl FnOnce(&mut Inquiry, &mut Vec<Want>),
    ) {
        let Some(inquiry) = &mut self.inquiry else { return };
        let mut want = Vec::new();
        inquiry.heard(now);
        tell(inquiry, &mut want);
        self.act(floor, want, out);
    }

    fn act(&mut self, floor: &Floor<'_>, wants: Vec<Want>, out: &mut Out) {
        for want in wants {
            match want {
                Want::Hashes(member, from, to) => {
                    send(out, member, Channel::Control, &ToPeer::GiveHashes { from, to });
                }
                Want::State(member, tick) => {
                    send(out, member, Channel::Control, &ToPeer::GiveState { tick });
                }
                Want::Judge(tick) => out.push_bare(Output::Judge(floor.id, tick)),
                Want::Found(member, tick) => {
                    if let Some(seat) = floor.seat(member) {
                        out.push_bare(Output::Record(floor.id, Record::Desync { tick, seat }));
                    }
                }
                Want::Resync(member, tick, state) => self.resync(floor, member, tick, state, out),
                Want::Done => self.end_inquiry(floor, out),
                // The peer was resynced after it gave that answer.
                Want::Dismiss => self.inquiry = None,
            }
        }
    }

    /// Sends a peer the agreed state. The peer asks for the ticks after it once it has loaded the state.
    fn resync(&mut self, floor: &Floor<'_>, member: Member, tick: Tick, state: Vec<u8>, out: &mut Out) {
        let (since, count) = self.resyncs.entry(member).or_default();
        if floor.closed.ticks_since(*since) > RESYNC_WINDOW_TICKS {
            (*since, *count) = (floor.closed, 0);
        }
        *count += 1;
        if *count > MAX_RESYNCS {
            let why = "its simulation keeps computing something else";
            out.push_bare(Output::Kick(member, why));
        } else {
            // Its earlier votes were for the wrong state.
            self.checks.forget(member);
            send(out, member, Channel::Chunks, &ToPeer::Resync { tick, state });
        }
    }

    fn end_inquiry(&mut self, floor: &Floor<'_>, out: &mut Out) {
        if let Some(inquiry) = self.inquiry.take() {
            let report = inquiry.into_report();
            self.disputed = report.decided == Decided::Open;
            out.push_bare(Output::Desync(floor.id, Box::new(report)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the peer that had just joined was asked first and could not say when the desync began.
    #[test]
    fn the_peer_that_agreed_longest_is_asked_when_a_desync_began() {
        let (mut agreement, mut findings) = (Agreement::default(), Vec::new());
        let [new, old, odd, other] = [0, 1, 2, 3].map(Member);
        let mut say = |member, tick, hash, voters| {
            agreement.checks.answer(member, true, (Tick(tick), StateHash(hash)), voters, &mut findings);
        };
        [old, odd, other].into_iter().for_each(|member| say(member, 30, 5, 3));
        [new, old, other].into_iter().for_each(|member| say(member, 60, 6, 4));
        say(odd, 60, 7, 4);
        assert_eq!(agreement.longest_with(odd, Tick(60), StateHash(6)), Some(old));
    }
}
