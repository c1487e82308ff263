//! One session on a relay: seats, ticks closed on the relay's clock, and messages to members. Knows no game.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sametick_sim::record::Record;
use sametick_sim::{Inputs, Seat, Tick, Time};
use sametick_wire::channel::MAX_REDUNDANT_MESSAGE;
use sametick_wire::claims::{Claims, Holds};
use sametick_wire::identity::PlayerId;
use sametick_wire::{Channel, Malformed};

use crate::agreement::{Agreement, Floor};
use crate::assignment::JoinRequest;
use crate::compaction::Compaction;
use crate::diagnostics::Diagnostics;
use crate::history::History;
use crate::message::{self, CHECK_EVERY, MAX_RUN, Pace, ToPeer, ToRelay, put_ticks};
use crate::planted::{self, Bug};
use crate::relay::{Output, RelayConfig};
use crate::rows::{MAX_SEATS, Opaque, Table};
use crate::seat_slot::SeatSlot;
use sametick_wire::outbox::Outbox;
use sametick_wire::pacer::{PACE_EVERY, batch_at};

mod coming;
mod placing;
mod returning;
mod saves;
mod stage;

pub use crate::facts::{CAME_BACK, Facts, JoinError};
pub use crate::seat_slot::Arrivals;
pub use returning::{GIVING_US, MAX_BEHIND, MAX_GIVEN_BYTES, MAX_GIVERS, REPORTS_US};
use returning::{Origin, Returning};
pub use sametick_wire::Member;
pub(crate) use saves::Saves;
pub use saves::{JOIN_PATIENCE_US, KEPT_IN, PASS_ON_PER_SECOND, STORED_AS};
pub use stage::{CATCH_UP_PATIENCE_US, Save};
pub(crate) use stage::{Source, Stage};

/// How far ahead of the last closed tick an input may be. No player plays two seconds ahead.
pub const MAX_AHEAD: u32 = 128;

/// The most members of a session, spectators included.
pub const MAX_MEMBERS: usize = 256;

/// A stalled relay closes at most this many ticks at once; the rest of the lost time is dropped for all players.
pub const MAX_CATCH_UP: u32 = 30;

/// Closed ticks whose inputs can be read again: more than are closed between two polls of the relay's output.
const RECENT: usize = MAX_RUN as usize;

/// A session begins this long after its players have joined: long enough for a welcome to arrive and a first input to
/// come back from most places.
pub const START_DELAY_US: u64 = 300_000;

/// A peer that asks for the same ticks repeatedly is answered at most this often.
const RESEND_EVERY_US: u64 = 100_000;

/// Told to a peer whose seat was assigned to another player.
pub const SEAT_GIVEN: &str = "this seat was given to another player";

/// The id of a session: its first number, see [`Found`](crate::kept::Found), or one of this relay process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A member of a session.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub seat: Option<Seat>,
    /// The player, if the driver assigned one.
    player: Option<PlayerId>,
    pub name: String,
    commit: String,
    resent_at: Option<Time>,
    diagnostics: Option<Diagnostics>,
    pub stage: Stage,
}

/// A read-only view of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant<'a> {
    /// The peer.
    pub member: Member,
    /// Its seat, if it plays.
    pub seat: Option<Seat>,
    /// The player, if the driver assigned one.
    pub player: Option<PlayerId>,
    /// The name of the player or spectator.
    pub name: &'a str,
    /// How its inputs arrive, if it plays.
    pub arrivals: Option<Arrivals>,
    /// The diagnostics that it reports.
    pub diagnostics: Option<&'a Diagnostics>,
    /// Whether it votes when states are compared: not while it catches up without a state of its own.
    pub has_say: bool,
}

/// One session.
#[derive(Clone, Debug)]
pub struct Session {
    id: SessionId,
    uid: u64,
    started_unix_ms: u64,
    facts: Facts,
    /// The time of the tick after which the session began or was resumed; none while the session waits for players.
    epoch: Option<Time>,
    origin: Origin,
    /// Players seated before a relay restart, while the session waits for them.
    returning: Option<Returning>,
    /// Joins without a free seat that wait until peers have left that did not come back or lost their seat.
    deferred: Vec<(Member, JoinRequest)>,
    /// With how many players the session begins.
    wait_for: u16,
    /// A member has joined on assignment.
    is_on_assignment: bool,
    history: History,
    seat_slots: [Option<Box<SeatSlot>>; MAX_SEATS],
    members: BTreeMap<Member, Membership>,
    /// The last closed ticks, each at its number modulo the length of this.
    recent: Vec<Inputs<Opaque>>,
    /// Only ticks after this one are in `recent`.
    recent_after: Tick,
    /// The number of closed ticks that have not been sent, and the table before them.
    unsent: u32,
    sent_table: Table,
    /// Closed ticks per packet, if configured; none if latency decides.
    fixed_batch: Option<u32>,
    batch: u32,
    agreement: Agreement,
    saves: Saves,
    claims: Claims,
    holds: Holds,
}

/// The output queue of a session.
pub(crate) type Out = Outbox<Output>;

impl Session {
    /// Distinguishes the session from others of its name, also over restarts.
    pub fn uid(&self) -> u64 {
        self.uid
    }

    /// When the session began, in milliseconds of Unix time, if its [number](Session::uid) is of that kind.
    pub fn started_unix_ms(&self) -> u64 {
        self.started_unix_ms
    }

    /// A session that begins as soon as `wait_for` players have joined. Claims are made from `uid`.
    pub fn new(id: SessionId, uid: u64, facts: Facts, wait_for: u16, config: &RelayConfig) -> Session {
        let RelayConfig { ticks_per_packet, secret, compaction, .. } = config;
        Session {
            claims: Claims::new(secret, uid),
            id,
            uid,
            started_unix_ms: uid,
            facts,
            epoch: None,
            origin: Origin::default(),
            returning: None,
            deferred: Vec::new(),
            wait_for,
            is_on_assignment: false,
            history: History::default(),
            seat_slots: [const { None }; MAX_SEATS],
            members: BTreeMap::new(),
            recent: (0..RECENT).map(|_| Inputs::new()).collect(),
            recent_after: Tick::ZERO,
            unsent: 0,
            sent_table: Table::default(),
            fixed_batch: ticks_per_packet.map(|ticks| ticks.clamp(1, MAX_RUN)),
            batch: ticks_per_packet.unwrap_or(1).clamp(1, MAX_RUN),
            agreement: Agreement::default(),
            saves: Saves::new(Compaction::new(*compaction, Tick::ZERO)),
            holds: Holds::default(),
        }
    }

    /// The session's constant facts.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The closed ticks.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The rows of one of the last closed ticks.
    pub fn rows(&self, tick: Tick) -> Option<&Inputs<Opaque>> {
        let last = self.history.last();
        let is_kept = tick > self.recent_after && tick <= last;
        let is_kept = is_kept && (last.ticks_since(tick) as usize) < self.recent.len();
        is_kept.then(|| &self.recent[tick.0 as usize % self.recent.len()])
    }

    /// The number of members, spectators included, and of joins that wait for the session to go on.
    pub fn members(&self) -> usize {
        self.members.len() + self.deferred.len() + self.returning.as_ref().map_or(0, Returning::count)
    }

    /// Whether the driver decides who takes part and when the session ends: a member has joined on
    /// [assignment](crate::assignment::SeatAssignment).
    pub fn is_on_assignment(&self) -> bool {
        self.is_on_assignment
    }

    /// All members.
    pub fn participants(&self) -> impl Iterator<Item = Participant<'_>> {
        self.members.iter().map(|(member, membership)| Participant {
            member: *member,
            seat: membership.seat,
            player: membership.player,
            name: &membership.name,
            arrivals: membership.seat.and_then(|seat| self.arrivals(seat)),
            diagnostics: membership.diagnostics.as_ref(),
            has_say: membership.stage.has_say(),
        })
    }

    /// How the inputs of a seat arrive.
    pub fn arrivals(&self, seat: Seat) -> Option<Arrivals> {
        self.seat_slots.get(seat.index())?.as_ref().map(|seat_slot| seat_slot.arrivals)
    }

    /// The desync check.
    pub fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    /// When the next tick closes, or a wait for returning players ends; never while the session waits for players.
    pub fn wake_at(&self) -> Option<Time> {
        match &self.returning {
            Some(returning) => returning.until(),
            None => self.epoch.map(|epoch| self.due(epoch, self.history.last().next())),
        }
    }

    fn due(&self, epoch: Time, tick: Tick) -> Time {
        let due_us = |tick| self.facts.rate.due_micros(tick);
        Time::from_micros((epoch.as_micros() + due_us(tick)).saturating_sub(due_us(self.origin.from)))
    }

    /// Sends every closed tick from `from` on to one peer.
    fn send_history(&self, member: Member, mut from: Tick, out: &mut Out) {
        while let Some(excerpt) = self.history.excerpt(from) {
            from = excerpt.first + excerpt.ticks;
            let (first, table) = (excerpt.first, excerpt.start.to_bytes());
            let ticks = excerpt.ticks - u32::from(planted::has(Bug::TickForgotten));
            send(out, member, Channel::Control, &ToPeer::Ticks { first, ticks, table, bytes: excerpt.bytes });
        }
    }

    /// Handles a peer's input for a tick. Late and repeated inputs change only the counts.
    pub fn input(&mut self, now: Time, member: Member, tick: Tick, input: Opaque) -> Result<(), Malformed> {
        let closed = self.history.last();
        let epoch = self.epoch.ok_or(Malformed::Forbidden("inputs begin with the session"))?;
        let slack_us = self.due(epoch, tick).as_micros() as i64 - now.as_micros() as i64;
        // A late relay has not closed what is due: its lateness is not the player's.
        let slack_us = Some(slack_us).filter(|_| now <= self.due(epoch, closed.next()));
        let seat = self.members.get(&member).and_then(|membership| membership.seat);
        let seat = seat.ok_or(Malformed::Forbidden("only a seated peer sends inputs"))?;
        let Some(seat_slot) = &mut self.seat_slots[seat.index()] else { return Ok(()) };
        seat_slot.take(now, tick, closed, slack_us, input)?;
        self.note_level(member);
        Ok(())
    }

    /// Handles a peer's other messages. A peer may be untrusted: messages that do not fit are refused.
    pub fn on_message(
        &mut self,
        now: Time,
        member: Member,
        message: ToRelay,
        out: &mut Out,
    ) -> Result<(), Malformed> {
        match message {
            ToRelay::Ticks { first, ticks, table, bytes } => {
                return self.on_given(now, member, (first, ticks), (&table, bytes), out);
            }
            _ if self.returning.is_some() => {
                return Err(Malformed::Forbidden("while a session is taken up again only Ticks are sent"));
            }
            ToRelay::Join(_) => return Err(Malformed::Forbidden("Join is sent once")),
            ToRelay::Resend { from } => self.resend(now, member, from, out),
            ToRelay::Check { tick, .. } if tick.0 % CHECK_EVERY != 0 || tick > self.history.last() => {
                return Err(Malformed::Forbidden("a check is of a closed tick that is a multiple of 30"));
            }
            ToRelay::Offer { .. } | ToRelay::Piece(_) | ToRelay::Want { .. } => {
                return self.on_save_message(now, member, message, out);
            }
            answer => {
                if matches!(answer, ToRelay::Check { .. }) {
                    self.note_level(member);
                }
                self.compare(out, |agreement, floor, out| {
                    agreement.on_answer(now, floor, member, answer, out);
                });
            }
        }
        Ok(())
    }

    /// A peer asks for ticks that it lost.
    fn resend(&mut self, now: Time, member: Member, from: Tick, out: &mut Out) {
        self.send_ticks(out);
        let first = self.history.first();
        let Some(membership) = self.members.get_mut(&member) else { return };
        if membership.resent_at.is_some_and(|at| now.micros_since(at) < RESEND_EVERY_US) {
            return;
        }
        membership.resent_at = Some(now);
        if from >= first {
            self.note_need(member, from);
            self.send_history(member, from, out);
        } else if !self.load_anew(now, member, out) {
            out.push_bare(Output::Kick(member, "too far behind: the ticks asked for are no longer kept"));
        }
    }

    /// Handles a peer's own diagnostics.
    pub fn on_diagnostics(&mut self, member: Member, diagnostics: Diagnostics) {
        if let Some(membership) = self.members.get_mut(&member) {
            membership.diagnostics = Some(diagnostics);
        }
        self.choose_batch();
    }

    /// Chooses how many ticks go into a packet: as many as the nearest player hardly notices.
    fn choose_batch(&mut self) {
        let players = self.members.values().filter(|membership| membership.seat.is_some());
        let rtt_us = players.map(|player| player.diagnostics.as_ref().map_or(0, |it| it.link_rtt_us)).min();
        let chosen = batch_at(self.facts.rate, u64::from(rtt_us.unwrap_or(0)));
        self.batch = self.fixed_batch.unwrap_or(chosen);
    }

    /// Closes the ticks that are due.
    pub fn on_time(&mut self, now: Time, out: &mut Out) {
        if self.returning.is_some() {
            return self.look_for_returning(now, out);
        }
        self.compare(out, |agreement, floor, out| agreement.on_time(now, floor, out));
        self.close_due(now, out);
        self.look_after_saves(now, out);
    }

    fn close_due(&mut self, now: Time, out: &mut Out) {
        for _ in 0..MAX_CATCH_UP {
            if self.wake_at().is_none_or(|at| at > now) {
                return;
            }
            self.close(now, out);
        }
        // The stall was longer than is caught up: the session's clock stands still for the rest.
        if let Some(at) = self.wake_at() {
            let behind_us = now.micros_since(at);
            self.epoch = self.epoch.map(|epoch| epoch.plus_micros(behind_us));
        }
    }

    fn close(&mut self, now: Time, out: &mut Out) {
        let tick = self.history.last().next();
        let place = tick.0 as usize % self.recent.len();
        let rows = &mut self.recent[place];
        rows.clear();
        for (seat, place) in (0..).map(Seat).zip(&mut self.seat_slots) {
            let Some(seat_slot) = place else { continue };
            seat_slot.close(rows, seat, tick);
            if let Some(why) = seat_slot.leaving {
                if !planted::has(Bug::LeaveUnwritten) {
                    out.push_bare(Output::Record(self.id, Record::Left { tick, seat, why }));
                }
                *place = None;
            }
        }
        self.history.push(rows);
        self.unsent += 1;
        out.push_bare(Output::Closed(self.id, tick));
        if self.unsent >= self.batch {
            self.send_ticks(out);
        }
        self.let_in_deferred(now, out);
        if tick.0.is_multiple_of(PACE_EVERY) {
            self.send_paces(tick, out);
        }
        if tick.0.is_multiple_of(CHECK_EVERY) {
            self.compare(out, |agreement, floor, out| agreement.on_tick(now, floor, out));
        }
    }

    /// Sends the closed ticks that have not been sent to all members.
    fn send_ticks(&mut self, out: &mut Out) {
        if self.unsent == 0 {
            return;
        }
        let first = self.history.last() - (self.unsent - 1);
        let recent = &self.recent;
        let rows =
            (0..self.unsent as usize).map(|offset| &recent[(first.0 as usize + offset) % recent.len()]);
        let table = &mut self.sent_table;
        self.unsent = 0;
        if out.write(|bytes| put_ticks(bytes, first, table, rows)) <= MAX_REDUNDANT_MESSAGE {
            for member in self.members.keys() {
                out.push_again(Output::Send(*member, Channel::Input));
            }
        } else {
            // Many seats with long inputs, all changed at once: too large to be repeated in every packet.
            out.take_back();
            for (member, _) in self.members.iter().filter(|(_, it)| it.stage.takes_ticks()) {
                self.send_history(*member, first, out);
            }
        }
    }

    fn send_paces(&mut self, tick: Tick, out: &mut Out) {
        let (agreed, mismatches) = (self.agreement.agreed(), self.agreement.mismatches());
        for seat_slot in self.seat_slots.iter_mut().flatten() {
            let least_us = seat_slot.take_least_slack();
            let least_slack_us = least_us.map(|us| us.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32);
            let omissions = seat_slot.arrivals.omissions;
            send(
                out,
                seat_slot.member,
                Channel::State,
                &Pace { tick, least_slack_us, omissions, agreed, mismatches },
            );
        }
    }

    /// What a comparison of states needs to know about the session.
    fn floor(&self) -> Floor<'_> {
        Floor {
            id: self.id,
            closed: self.history.last(),
            seat_slots: &self.seat_slots,
            members: &self.members,
        }
    }

    /// Runs a part of the desync check.
    fn compare(&mut self, out: &mut Out, work: impl FnOnce(&mut Agreement, &Floor<'_>, &mut Out)) {
        let mut agreement = core::mem::take(&mut self.agreement);
        work(&mut agreement, &self.floor(), out);
        self.agreement = agreement;
    }

    /// Handles the state of the judged tick from a replay of the log; none if it cannot be replayed.
    pub fn on_verdict(&mut self, now: Time, tick: Tick, state: Option<Vec<u8>>, out: &mut Out) {
        self.compare(out, |agreement, floor, out| agreement.on_verdict(now, floor, tick, state, out));
    }
}

/// Sends a message to one peer.
pub(crate) fn send<T: serde::Serialize>(out: &mut Out, to: Member, channel: Channel, message: &T) {
    out.push(Output::Send(to, channel), |bytes| message::put(bytes, message));
}

/// Refuses a join.
pub(crate) fn refuse(out: &mut Out, member: Member, why: &str) {
    send(out, member, Channel::Control, &ToPeer::Refused { why: why.to_string() });
}
