//! Resuming a session after a relay restart (L12): the relay waits for the seated players, all go on from the last tick
//! that every one of them has, and peers give the relay the ticks it lost.

use alloc::vec::Vec;

use sametick_sim::record::{Leaving, Record};
use sametick_sim::{Inputs, Seat, Tick, Time};
use sametick_wire::claims::{HOLD_US, Hold};
use sametick_wire::{Channel, Malformed};

use crate::assignment::JoinRequest;
use crate::facts::JoinError;
use crate::history::{Excerpt, SEGMENT_TICKS};
use crate::kept::Kept;
use crate::message::{Claim, GIVEN_TICKS, RECENT_TICKS, Resume, ToPeer};
use crate::planted::{self, Bug};
use crate::relay::{Output, RelayConfig};
use crate::rows::{MAX_SEATS, Opaque, Table};
use crate::seat_slot::SeatSlot;
use crate::session::{CAME_BACK, MAX_MEMBERS, Member, Out, START_DELAY_US, Session, SessionId, refuse, send};

/// How long the relay waits for reports of the seated players, from the first report on.
pub const REPORTS_US: u64 = 2_000_000;

/// A peer further behind the newest report than this many ticks joins late instead of dragging the others back.
pub const MAX_BEHIND: u32 = RECENT_TICKS;

/// How long the relay waits for ticks that it lost.
pub const GIVING_US: u64 = 1_000_000;

/// The most peers asked for lost ticks.
pub const MAX_GIVERS: usize = 8;

/// The most bytes of coded ticks in one answer: [`SEGMENT_TICKS`] with the longest inputs of all seats.
pub const MAX_GIVEN_BYTES: usize = 512 << 10;

/// The most ticks read again to find the seats taken when the relay went down: more than are kept after a save.
const SCANNED_TICKS: u32 = 30_000;

/// Where a session began, or was resumed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    /// The tick before the first one closed by this relay process.
    pub from: Tick,
    /// How often the session has been resumed.
    pub restarts: u32,
    /// The value of `restarts` before the last resumption: claims with it have valid ticks up to `from`.
    before: Option<u32>,
    /// The first link of this relay process; earlier ones were to another process.
    first: Option<Member>,
    /// Joins up to this tick are not known.
    scanned_after: Tick,
}

/// Peers that wait until the session goes on.
#[derive(Clone, Debug)]
pub(super) struct Returning {
    /// The time-out, if a peer waits.
    until: Option<Time>,
    waiting: Vec<(Member, JoinRequest)>,
    asking: Option<Asking>,
}

/// Lost ticks that have been asked for.
#[derive(Clone, Debug)]
struct Asking {
    /// The last of them.
    to: Tick,
    givers: Vec<Giver>,
}

/// A peer that was asked for lost ticks.
#[derive(Clone, Debug)]
struct Giver {
    member: Member,
    /// The ticks it has given, and the table after them.
    rows: Vec<Inputs<Opaque>>,
    table: Table,
    /// The peer cannot give the ticks.
    failed: bool,
}

impl Returning {
    pub fn until(&self) -> Option<Time> {
        self.until
    }

    pub fn count(&self) -> usize {
        self.waiting.len()
    }

    pub fn forget(&mut self, member: Member) {
        self.waiting.retain(|(other, _)| *other != member);
        if let Some(asking) = &mut self.asking {
            asking.givers.retain(|giver| giver.member != member);
        }
        // The next peer is the first again.
        if self.waiting.is_empty() {
            (self.until, self.asking) = (None, None);
        }
    }
}

impl Giver {
    /// Takes a run of ticks that continues those given before, up to `to`.
    fn take(&mut self, closed: Tick, to: Tick, excerpt: &Excerpt) -> Option<()> {
        let have = closed + self.rows.len() as u32;
        if excerpt.first > have.next() || excerpt.last() <= have {
            return None;
        }
        let before = excerpt.read_to(have, |_, _| ()).ok()?;
        if before != self.table {
            return None;
        }
        let rows = &mut self.rows;
        let table = excerpt.read_to(to, |tick, given| {
            if tick > have {
                rows.push(given.clone());
            }
        });
        self.table = table.ok()?;
        Some(())
    }
}

impl Session {
    /// A stored session that goes on once its players have come back. `first` is the first link to this relay process.
    pub(crate) fn kept(id: SessionId, kept: Kept, first: Member, config: &RelayConfig) -> Session {
        let Kept { facts, uid, started_unix_ms, restarts, save, history } = kept;
        let mut session = Session::new(id, uid, facts, 0, config);
        session.started_unix_ms = started_unix_ms;
        session.recent = (0..GIVEN_TICKS).map(|_| Inputs::new()).collect();
        session.recent_after = history.last();
        session.history = history;
        session.origin = Origin { restarts, first: Some(first), ..Origin::default() };
        if let Some(save) = save {
            session.saves.begin_with(save);
        }
        session.returning = Some(Returning { until: None, waiting: Vec::new(), asking: None });
        session
    }

    /// Waits for no player, because none can prove its seat, such as in a session from a peer's copy.
    pub(crate) fn expect_nobody(&mut self, now: Time) {
        if let Some(returning) = &mut self.returning {
            returning.until = Some(now);
        }
    }

    /// Whether the session waits for its seated players.
    pub fn is_returning(&self) -> bool {
        self.returning.is_some()
    }

    /// The claim for a member that is let in.
    pub(super) fn claim_of(&self, member: Member, seat: Option<Seat>) -> Claim {
        let seat_slot = seat.and_then(|seat| Some((seat, self.seat_slots[seat.index()].as_ref()?)));
        // A seat that was just taken is seen by the game in the next tick.
        let next = self.history.last().next();
        let place = seat_slot.map(|(seat, seat_slot)| (seat, seat_slot.sat.unwrap_or(next)));
        Claim::new(&self.claims, member, place, (self.origin.restarts, self.origin.from))
    }

    /// Whether the peer had the seat when the relay went down: the log shows no join on it since its claim.
    pub(super) fn has_sat_on(&self, seat_slot: &SeatSlot, resume: &Resume) -> bool {
        let is_its = match seat_slot.sat {
            Some(sat) => sat == resume.claim.since,
            None => resume.have >= self.origin.scanned_after,
        };
        is_its && self.is_earlier(&resume.claim)
    }

    /// The last tick in which each seat was taken, within the ticks that are scanned.
    fn last_joins(&mut self) -> [Option<Tick>; MAX_SEATS] {
        let first = self.history.first().0.max(self.history.last().0.saturating_sub(SCANNED_TICKS));
        self.origin.scanned_after = Tick(first - 1);
        let (mut joins, mut from) = ([None; MAX_SEATS], Tick(first));
        while let Some(excerpt) = self.history.excerpt(from) {
            // The kept ticks are valid.
            let _ = excerpt.read(|tick, rows| {
                let joined = rows.iter().filter(|row| row.joined);
                joined.for_each(|row| joins[row.seat.index()] = Some(tick));
            });
            from = excerpt.last().next();
        }
        joins
    }

    /// Whether, by the log, the peer still has the seat of its claim.
    fn sat_last(&self, joins: &[Option<Tick>; MAX_SEATS], resume: &Resume) -> bool {
        let seat = resume.claim.seat.filter(|seat| self.history.table().is_taken(*seat));
        let joined = seat.and_then(|seat| joins.get(seat.index()));
        joined.is_some_and(|joined| joined.is_none_or(|tick| tick == resume.claim.since))
    }

    /// Whether a claim is valid and belongs to this member id.
    pub(super) fn is_claim_of(&self, claim: &Claim, member: Member) -> bool {
        claim.member == member.0 && claim.is_true(&self.claims)
    }

    /// Whether a valid claim was made since the session was last resumed: by this relay process, and after as many
    /// rewinds. Both are needed: the relay that ended a session may resume it, and a log may have lost its last rewind.
    fn is_of_this_life(&self, claim: &Claim) -> bool {
        let Some(first) = self.origin.first else { return true };
        self.returning.is_none() && claim.member >= first.0 && claim.restarts == self.origin.restarts
    }

    /// Whether a claim is valid, and from before the session was resumed.
    pub(super) fn is_earlier(&self, claim: &Claim) -> bool {
        !self.is_of_this_life(claim) && claim.is_true(&self.claims)
    }

    /// The part of a resume request that is still valid: ticks that were or may have been rewound are not.
    pub(super) fn what_holds(&self, resume: Resume) -> Option<Resume> {
        let Resume { claim, have } = resume;
        if !self.claims.run().eq(&claim.run) {
            return None;
        }
        if self.is_of_this_life(&claim) {
            return Some(resume);
        }
        let is_last = self.origin.before == Some(claim.restarts);
        let can_go_back = have.0.saturating_sub(self.origin.from.0) <= MAX_BEHIND;
        let have = if is_last && can_go_back { have.min(self.origin.from) } else { Tick::ZERO };
        Some(Resume { claim, have })
    }

    /// A join waits until it is decided from which tick the session goes on.
    pub(super) fn wait_with_the_others(
        &mut self,
        now: Time,
        member: Member,
        wish: &JoinRequest,
        out: &mut Out,
    ) -> Result<(), JoinError> {
        let Some(returning) = &mut self.returning else { return Ok(()) };
        if returning.waiting.len() >= MAX_MEMBERS {
            return Err(JoinError::Full);
        }
        // A peer that has joined twice waits once.
        let (player, claim) = (wish.player, wish.join.resume.map(|resume| resume.claim));
        let claim = claim.filter(|claim| player.is_none() && claim.is_true(&self.claims));
        let is_claimed = |it: &JoinRequest| claim.is_some() && it.join.resume.map(|it| it.claim) == claim;
        let is_same = |it: &JoinRequest| it.player == player && (player.is_some() || is_claimed(it));
        let before = returning.waiting.iter().find(|(_, it)| is_same(it)).map(|(before, _)| *before);
        returning.waiting.push((member, wish.without_setup()));
        if let Some(before) = before {
            returning.forget(before);
            out.push_bare(Output::Kick(before, CAME_BACK));
        }
        returning.until.get_or_insert(now.plus_micros(REPORTS_US));
        Ok(())
    }

    /// Whether seats of players that did not come back are about to be left, and another join may wait for one.
    pub(super) fn may_defer(&self) -> bool {
        self.deferred.len() < MAX_MEMBERS
            && self.seat_slots.iter().flatten().any(|seat_slot| seat_slot.vacant)
    }

    /// Seats of players that did not come back are free: joins that wait for one are let in.
    pub(super) fn let_in_deferred(&mut self, now: Time, out: &mut Out) {
        for (member, wish) in core::mem::take(&mut self.deferred) {
            if let Err(error) = self.join(now, member, &wish, out) {
                refuse(out, member, error.text());
            }
        }
    }

    /// How often the session has been resumed, this time included: its log has as many rewinds.
    pub fn restarts(&self) -> u32 {
        self.origin.restarts
    }

    /// The waiting peers with a valid earlier claim, and their resume requests.
    fn reports(&self) -> Vec<(Member, Resume)> {
        let waiting = self.returning.iter().flat_map(|returning| &returning.waiting);
        let reports = waiting.filter_map(|(member, wish)| Some((*member, wish.join.resume?)));
        reports.filter(|(_, resume)| self.is_earlier(&resume.claim)).collect()
    }

    /// Checks whether the session can go on.
    pub(crate) fn look_for_returning(&mut self, now: Time, out: &mut Out) {
        let Some(returning) = self.returning.as_ref().filter(|returning| !returning.waiting.is_empty())
        else {
            return;
        };
        let is_time = returning.until.is_some_and(|until| now >= until);
        if let Some(asking) = &returning.asking {
            let lacks = asking.to.ticks_since(self.history.last()) as usize;
            let is_over = |giver: &Giver| giver.failed || giver.rows.len() >= lacks;
            if is_time || asking.givers.iter().all(is_over) {
                self.take_given(now, out);
            }
            return;
        }
        let reports = self.reports();
        let waiting = &returning.waiting;
        let is_assigned = |seat| waiting.iter().any(|(_, wish)| wish.assigned() == Some(seat));
        let is_claimed = |seat| reports.iter().any(|(_, resume)| resume.claim.seat == Some(seat));
        let is_there = |seat| is_claimed(seat) || is_assigned(seat);
        // The first peer may be a stranger while the seated players are on their way.
        if is_time || self.history.table().taken().all(is_there) {
            self.decide(now, &reports, out);
        }
    }

    /// The earliest tick to which the session can be rewound: the save's, and no further back than ticks are kept.
    fn floor_tick(&self) -> Tick {
        let saved = self.save().map_or(Tick::ZERO, |save| save.tick);
        saved.max(Tick(self.history.first().0 - 1))
    }

    /// Decides from which tick the session goes on, and asks for what the relay lacks up to it.
    fn decide(&mut self, now: Time, reports: &[(Member, Resume)], out: &mut Out) {
        let floor = self.floor_tick();
        let newest = reports.iter().map(|(_, resume)| resume.claim.restarts).max().unwrap_or(0);
        if newest > self.origin.restarts {
            // The log has lost a rewind: the ticks after it are void.
            let last = reports.iter().filter(|(_, resume)| resume.claim.restarts == newest);
            let from = last.map(|(_, resume)| resume.claim.from).min().unwrap_or(floor);
            let holds = from.max(floor).min(self.history.last());
            self.history.rewind(holds);
            for _ in self.origin.restarts..newest {
                out.push_bare(Output::Record(self.id, Record::Rewind { to: holds }));
            }
            self.origin.restarts = newest;
        }
        let (closed, joins) = (self.history.last(), self.last_joins());
        self.recent_after = closed;
        let most = Tick(closed.0.saturating_add(GIVEN_TICKS));
        let holds = |resume: &Resume| resume.claim.restarts == self.origin.restarts && resume.have <= most;
        // Peers that had left their seat or were spectators cause no rewind: they are sent what they lack.
        let counts =
            |resume: &Resume| holds(resume) && (resume.have >= closed || self.sat_last(&joins, resume));
        let haves = || reports.iter().filter(|(_, resume)| counts(resume)).map(|(_, resume)| resume.have);
        // The log counts as a report: a player that has hardly begun does not rewind everything.
        let max = haves().chain([closed]).max().unwrap_or(closed);
        let to = haves().filter(|have| have.0.saturating_add(MAX_BEHIND) >= max.0).min();
        let to = to.unwrap_or(closed).max(floor);
        if to <= closed {
            return self.go_on(now, to, out);
        }
        let able = reports.iter().filter(|(_, resume)| holds(resume) && resume.have >= to);
        let givers: Vec<Member> = able.map(|(member, _)| *member).take(MAX_GIVERS).collect();
        for member in &givers {
            send(out, *member, Channel::Control, &ToPeer::GiveTicks { from: closed.next() });
        }
        let table = self.history.table();
        let giver = |member| Giver { member, rows: Vec::new(), table: table.clone(), failed: false };
        let asking = Asking { to, givers: givers.into_iter().map(giver).collect() };
        if let Some(returning) = &mut self.returning {
            returning.until = Some(now.plus_micros(GIVING_US));
            returning.asking = Some(asking);
        }
    }

    /// A peer gives ticks that the relay lost.
    pub(super) fn on_given(
        &mut self,
        now: Time,
        member: Member,
        (first, ticks): (Tick, u32),
        (table, bytes): (&[u8], Vec<u8>),
        out: &mut Out,
    ) -> Result<(), Malformed> {
        if ticks > SEGMENT_TICKS || bytes.len() > MAX_GIVEN_BYTES {
            return Err(Malformed::TooLong);
        }
        let closed = self.history.last();
        let asking = self.returning.as_mut().and_then(|returning| returning.asking.as_mut());
        // The answer may come too late.
        let Some(Asking { to, givers }) = asking else { return Ok(()) };
        let Some(giver) = givers.iter_mut().find(|giver| giver.member == member && !giver.failed) else {
            return Ok(());
        };
        if closed + giver.rows.len() as u32 >= *to {
            return Ok(());
        }
        let excerpt = Table::from_bytes(table).ok().map(|start| Excerpt { first, ticks, start, bytes });
        giver.failed = excerpt.and_then(|excerpt| giver.take(closed, *to, &excerpt)).is_none();
        self.look_for_returning(now, out);
        Ok(())
    }

    /// Takes the ticks that most of the asked peers gave, if any did.
    fn take_given(&mut self, now: Time, out: &mut Out) {
        let asking = self.returning.as_mut().and_then(|returning| returning.asking.take());
        let Some(Asking { to, givers }) = asking else { return };
        let closed = self.history.last();
        let lacks = to.ticks_since(closed) as usize;
        let whole: Vec<Vec<Inputs<Opaque>>> = { givers }
            .into_iter()
            .filter(|giver| !giver.failed && giver.rows.len() == lacks)
            .map(|giver| giver.rows)
            .collect();
        let votes = |rows: &&Vec<Inputs<Opaque>>| whole.iter().filter(|other| other == rows).count();
        // With equal votes the first giver wins: the last maximum, seen from the end.
        if let Some(rows) = whole.iter().rev().max_by_key(votes) {
            for rows in rows {
                self.close_given(rows, out);
            }
        }
        self.go_on(now, self.history.last(), out);
    }

    /// Adds a tick that was closed before the restart and is not in the log.
    fn close_given(&mut self, rows: &Inputs<Opaque>, out: &mut Out) {
        let tick = self.history.last().next();
        for row in rows {
            let seat = row.seat;
            if row.joined {
                let (name, commit) = Default::default();
                out.push_bare(Output::Record(self.id, Record::Joined { tick, seat, name, commit }));
            }
            if row.left {
                let why = Leaving::TimedOut;
                out.push_bare(Output::Record(self.id, Record::Left { tick, seat, why }));
            }
        }
        let place = tick.0 as usize % self.recent.len();
        let given = &mut self.recent[place];
        given.clone_from(rows);
        if planted::has(Bug::GivenWrong) {
            rows.iter().take(1).for_each(|row| given.omit(row.seat));
        }
        self.history.push(given);
        out.push_bare(Output::Closed(self.id, tick));
    }

    /// The session goes on after this tick: later ticks are void, and players that have not come back have left.
    fn go_on(&mut self, now: Time, to: Tick, out: &mut Out) {
        let Some(returning) = self.returning.take() else { return };
        self.history.rewind(to);
        if !planted::has(Bug::RewindUnwritten) {
            out.push_bare(Output::Record(self.id, Record::Rewind { to }));
        }
        let before = self.origin.restarts;
        self.origin = Origin { from: to, restarts: before + 1, before: Some(before), ..self.origin };
        self.recent_after = self.recent_after.min(to);
        self.epoch = Some(now.plus_micros(START_DELAY_US));
        self.sent_table = self.history.table().clone();
        let joins = self.last_joins();
        for seat in self.history.table().taken() {
            self.seat_slots[seat.index()] = Some(SeatSlot::vacated(joins[seat.index()]));
        }
        self.want_save_to_go_on(out);
        let mut waiting = returning.waiting;
        // Peers with a valid seat come first; if two claim one seat, the one that took it last.
        waiting.sort_by_key(|(_, wish)| {
            let claim = wish.join.resume.map(|resume| resume.claim).filter(|claim| self.is_earlier(claim));
            core::cmp::Reverse(claim.map(|claim| claim.member))
        });
        for (member, wish) in waiting {
            if let Err(error) = self.join(now, member, &wish, out) {
                refuse(out, member, error.text());
            }
        }
        for (seat, seat_slot) in (0..).map(Seat).zip(&mut self.seat_slots) {
            let Some(seat_slot) = seat_slot.as_mut().filter(|seat_slot| seat_slot.vacant) else { continue };
            seat_slot.leaving = Some(Leaving::TimedOut);
            let until = now.plus_micros(HOLD_US);
            self.holds.push(Hold {
                seat,
                member: None,
                player: None,
                until,
                is_firm: false,
                kept: Vec::new(),
            });
        }
    }
}
