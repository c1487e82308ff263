//! One session on a relay: seats, ticks that close on the relay's clock, and who is sent what. Knows nothing of games.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sametick_sim::record::{Leaving, Record};
use sametick_sim::{BuildId, Inputs, SchemaHash, Seat, StateHash, Tick, TickRate, Time};
use sametick_wire::channel::MAX_REDUNDANT_MESSAGE;
use sametick_wire::{Channel, Malformed};

use crate::checks::{Checks, Finding};
use crate::diagnostics::Diagnostics;
use crate::history::History;
use crate::inquiry::{Decided, Inquiry, Report, Want, Witness};
use crate::message::{self, CHECK_EVERY, Join, MAX_RUN, Pace, ToPeer, ToRelay, put_ticks};
use crate::outbox::Outbox;
use crate::relay::Output;
use crate::rows::{MAX_SEATS, Opaque, Table};

/// How far ahead of the last closed tick an input may be for. Nobody plays two seconds ahead.
pub const MAX_AHEAD: u32 = 128;

/// Peers of one session, those who only watch included.
pub const MAX_MEMBERS: usize = 256;

/// How often a peer is told how its inputs arrive, in ticks.
pub const PACE_EVERY: u32 = 15;

/// A stalled relay closes at most this many ticks at once; the rest of the lost time is given up, for everybody alike.
pub const MAX_CATCH_UP: u32 = 30;

/// Closed ticks whose inputs can be read again: more than are closed between two looks at the relay's output.
const RECENT: usize = MAX_RUN as usize;

/// A session begins this long after its players have come: long enough for a welcome to arrive and a first input to come back
/// from most places.
pub const START_DELAY_US: u64 = 300_000;

/// A peer that asks for the same ticks again and again is answered this often at most.
const RESEND_EVERY_US: u64 = 100_000;

/// A peer that has been given the good state this often within [`RESYNC_WINDOW_TICKS`] and still computes something
/// else has a fault that no state mends.
const MAX_RESYNCS: u32 = 5;

/// See [`MAX_RESYNCS`]. A minute at 60 Hz.
const RESYNC_WINDOW_TICKS: u32 = 3_600;

/// The most closed ticks in a packet when the relay may choose.
const MAX_AUTO_BATCH: u32 = 4;

/// When the relay may choose, another tick is put into each packet for every so many ticks of latency: what it adds to
/// the latency is then hardly felt.
const LATENCY_PER_BATCHED: u32 = 10;

/// A peer of a session. The relay gives one to each link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u64);

/// A session of a relay, for as long as the relay lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// What is said once about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The session's name.
    pub name: String,
    /// The name of the game.
    pub game: String,
    /// The build of the simulation.
    pub build: BuildId,
    /// The git commit of the peer that began it.
    pub commit: String,
    /// The shape of state, setup and input.
    pub schema: SchemaHash,
    /// What it was begun with.
    pub setup: Vec<u8>,
    /// The seed in that setup.
    pub seed: u64,
    /// Ticks a second.
    pub rate: TickRate,
    /// How many seats there are.
    pub seats: u8,
}

/// Why a peer cannot take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// No seat is free, and there is no room to watch.
    Full,
    /// The seat that was asked for is not free.
    Taken,
    /// The session runs at another rate than the peer's game.
    Rate,
    /// The session has become too long for somebody to begin at its start.
    TooLong,
}

impl JoinError {
    /// For a person.
    pub const fn text(self) -> &'static str {
        match self {
            JoinError::Full => "the session is full",
            JoinError::Taken => "that seat is taken, or there is none",
            JoinError::Rate => "the session runs at another tick rate",
            JoinError::TooLong => "the session is too long to be joined from its beginning",
        }
    }
}

/// Inputs that have arrived for ticks that are still open.
#[derive(Clone, Debug)]
struct Waiting {
    slots: [Option<Opaque>; MAX_AHEAD as usize],
}

impl Waiting {
    const EMPTY: Waiting = Waiting { slots: [None; MAX_AHEAD as usize] };

    fn slot(&mut self, tick: Tick) -> &mut Option<Opaque> {
        &mut self.slots[tick.0 as usize % MAX_AHEAD as usize]
    }
}

/// How a player's inputs arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Inputs that were missing when their tick closed, since the first one.
    pub omissions: u32,
    /// Inputs that came after their tick was closed.
    pub late: u32,
    /// Inputs that came more than once.
    pub repeated: u32,
    /// The least time by which a fresh input came before its tick closed, in the last second or so.
    pub least_slack_us: Option<i64>,
}

#[derive(Clone, Debug)]
struct Chair {
    member: Member,
    /// Not yet part of a closed tick.
    joining: bool,
    leaving: Option<Leaving>,
    waiting: Waiting,
    arrivals: Arrivals,
    /// An input has come; before it nothing is missed.
    began: bool,
    least_slack_us: Option<i64>,
    /// When the newest input came, and by how much before its tick closes. If another comes at the same moment, this
    /// one had only been waiting for a packet that was not lost.
    newest: Option<(Time, i64)>,
}

impl Chair {
    fn new(member: Member) -> Box<Chair> {
        Box::new(Chair {
            member,
            joining: true,
            leaving: None,
            waiting: Waiting::EMPTY,
            arrivals: Arrivals::default(),
            began: false,
            least_slack_us: None,
            newest: None,
        })
    }

    fn note_slack(&mut self, now: Time, slack_us: i64) {
        match self.newest {
            Some((at, before_us)) if at == now => self.newest = Some((at, before_us.max(slack_us))),
            before => {
                self.newest = Some((now, slack_us));
                if let Some((_, fresh_us)) = before {
                    let least_us = self.least_slack_us.map_or(fresh_us, |least_us| least_us.min(fresh_us));
                    self.least_slack_us = Some(least_us);
                }
            }
        }
    }
}

/// A peer that takes part.
#[derive(Clone, Debug)]
struct Membership {
    seat: Option<Seat>,
    name: String,
    commit: String,
    resent_at: Option<Time>,
    diagnostics: Option<Diagnostics>,
    /// How often it was given the good state since this tick.
    resyncs: (Tick, u32),
}

/// What a relay knows of somebody who takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant<'a> {
    /// The peer.
    pub member: Member,
    /// Where it sits, if it plays.
    pub seat: Option<Seat>,
    /// What it is called.
    pub name: &'a str,
    /// How its inputs arrive, if it plays.
    pub arrivals: Option<Arrivals>,
    /// What it says of itself.
    pub diagnostics: Option<&'a Diagnostics>,
}

/// One session.
#[derive(Clone, Debug)]
pub struct Session {
    id: SessionId,
    facts: Facts,
    /// When tick 0 stood, or will; none while the session waits for players.
    epoch: Option<Time>,
    /// With how many players it begins.
    wait_for: u8,
    history: History,
    chairs: [Option<Box<Chair>>; MAX_SEATS],
    members: BTreeMap<Member, Membership>,
    /// The last closed ticks, each at its number modulo [`RECENT`].
    recent: Vec<Inputs<Opaque>>,
    /// How many of them have not been sent, and the table before those.
    unsent: u32,
    sent_table: Table,
    /// How many closed ticks are sent together; none if latency decides.
    fixed_batch: Option<u32>,
    batch: u32,
    checks: Checks,
    findings: Vec<Finding>,
    inquiry: Option<Inquiry>,
    /// Players differ and nobody could say who is right.
    disputed: bool,
    mismatches: u32,
}

type Out = Outbox<Output>;

impl Session {
    /// A session that begins as soon as `wait_for` players are there. So many closed ticks are sent together; if none, latency
    /// decides.
    pub fn new(id: SessionId, facts: Facts, wait_for: u8, ticks_per_packet: Option<u32>) -> Session {
        Session {
            id,
            facts,
            epoch: None,
            wait_for,
            history: History::default(),
            chairs: [const { None }; MAX_SEATS],
            members: BTreeMap::new(),
            recent: (0..RECENT).map(|_| Inputs::new()).collect(),
            unsent: 0,
            sent_table: Table::default(),
            fixed_batch: ticks_per_packet.map(|ticks| ticks.clamp(1, MAX_RUN)),
            batch: ticks_per_packet.unwrap_or(1).clamp(1, MAX_RUN),
            checks: Checks::default(),
            findings: Vec::new(),
            inquiry: None,
            disputed: false,
            mismatches: 0,
        }
    }

    /// What is said once about it.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The closed ticks.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What happened in one of the last closed ticks.
    pub fn rows(&self, tick: Tick) -> Option<&Inputs<Opaque>> {
        let last = self.history.last();
        let is_kept = tick > Tick::ZERO && tick <= last && (last.ticks_since(tick) as usize) < RECENT;
        is_kept.then(|| &self.recent[tick.0 as usize % RECENT])
    }

    /// How many take part, those who watch included.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Whether a peer takes part.
    pub fn is_member(&self, member: Member) -> bool {
        self.members.contains_key(&member)
    }

    /// Everybody who takes part.
    pub fn participants(&self) -> impl Iterator<Item = Participant<'_>> {
        self.members.iter().map(|(member, membership)| Participant {
            member: *member,
            seat: membership.seat,
            name: &membership.name,
            arrivals: membership.seat.and_then(|seat| self.arrivals(seat)),
            diagnostics: membership.diagnostics.as_ref(),
        })
    }

    /// How the inputs of a seat arrive.
    pub fn arrivals(&self, seat: Seat) -> Option<Arrivals> {
        self.chairs.get(seat.index())?.as_ref().map(|chair| chair.arrivals)
    }

    /// The last tick on whose state the players agree.
    pub fn agreed(&self) -> Tick {
        self.checks.agreed()
    }

    /// Whether players differ, and it is not known who is right.
    pub fn is_disputed(&self) -> bool {
        self.disputed
            || self.inquiry.as_ref().is_some_and(|inquiry| inquiry.report().decided == Decided::Open)
    }

    /// How often somebody had another state than the others.
    pub fn mismatches(&self) -> u32 {
        self.mismatches
    }

    /// When the next tick closes; never while the session waits for players.
    pub fn wake_at(&self) -> Option<Time> {
        self.epoch.map(|epoch| self.due(epoch, self.history.last().next()))
    }

    fn due(&self, epoch: Time, tick: Tick) -> Time {
        epoch.plus_micros(self.facts.rate.due_micros(tick))
    }

    /// A peer wants to take part.
    pub fn join(&mut self, now: Time, member: Member, join: &Join, out: &mut Out) -> Result<(), JoinError> {
        if u32::from(join.rate) != self.facts.rate.per_second() {
            return Err(JoinError::Rate);
        }
        if !self.history.is_whole() {
            return Err(JoinError::TooLong);
        }
        let seat = if join.watch { None } else { Some(self.free_seat(join.seat)?) };
        if self.members.len() >= MAX_MEMBERS {
            return Err(JoinError::Full);
        }
        if let Some(seat) = seat {
            self.chairs[seat.index()] = Some(Chair::new(member));
            // Somebody who comes can tip the scales.
            self.disputed = false;
        }
        // Ticks are sent in runs; what the newcomer is sent by itself must end where a run does.
        self.send_ticks(out);
        let membership = Membership {
            seat,
            name: join.name.clone(),
            commit: join.commit.clone(),
            resent_at: None,
            diagnostics: None,
            resyncs: (Tick::ZERO, 0),
        };
        self.members.insert(member, membership);
        match self.epoch {
            Some(epoch) => self.welcome(now, epoch, member, out),
            None => self.begin(now, out),
        }
        Ok(())
    }

    /// Begins, if enough players are there: a moment from now, so that everybody can be in time for the first tick.
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
        members.into_iter().for_each(|(_, member)| self.welcome(now, epoch, member, out));
    }

    fn welcome(&self, now: Time, epoch: Time, member: Member, out: &mut Out) {
        let closed = self.history.last();
        let Some(Membership { seat, name, commit, .. }) = self.members.get(&member) else { return };
        if let Some(seat) = *seat {
            let (name, commit) = (name.clone(), commit.clone());
            let joined = Record::Joined { tick: closed.next(), seat, name, commit };
            out.push_bare(Output::Record(self.id, joined));
        }
        let welcome = ToPeer::Welcome {
            seat: *seat,
            closed,
            age_us: now.as_micros() as i64 - self.due(epoch, closed).as_micros() as i64,
            setup: self.facts.setup.clone(),
            rate: self.facts.rate.per_second() as u16,
        };
        send(out, member, Channel::Control, &welcome);
        self.send_history(member, Channel::Control, Tick(1), out);
    }

    fn free_seat(&self, wish: Option<Seat>) -> Result<Seat, JoinError> {
        let free = |seat: &Seat| self.chairs[seat.index()].is_none();
        let mut seats = (0..self.facts.seats.min(MAX_SEATS as u8)).map(Seat).filter(free);
        match wish {
            Some(wish) => seats.find(|seat| *seat == wish).ok_or(JoinError::Taken),
            None => seats.next().ok_or(JoinError::Full),
        }
    }

    /// Sends every closed tick from `from` on to one peer.
    fn send_history(&self, member: Member, channel: Channel, mut from: Tick, out: &mut Out) {
        while let Some(excerpt) = self.history.excerpt(from) {
            from = excerpt.first + excerpt.ticks;
            let table = excerpt.start.to_bytes();
            let ticks =
                ToPeer::Ticks { first: excerpt.first, ticks: excerpt.ticks, table, bytes: excerpt.bytes };
            send(out, member, channel, &ticks);
        }
    }

    /// A peer is gone, for whatever reason. The others see its seat left in the next tick (L11).
    pub fn leave(&mut self, now: Time, member: Member, why: Leaving, out: &mut Out) {
        let Some(membership) = self.members.remove(&member) else { return };
        self.checks.forget(member);
        self.disputed = false;
        if self.inquiry.as_ref().is_some_and(|inquiry| inquiry.is_about(member)) {
            self.end_inquiry(out);
        }
        self.review(now, out);
        let Some(seat) = membership.seat else { return };
        match &mut self.chairs[seat.index()] {
            // Nobody has seen it come.
            chair if self.epoch.is_none() => *chair = None,
            Some(chair) => chair.leaving = Some(why),
            None => {}
        }
    }

    /// A peer's input for a tick. Late ones and repeats change nothing but the counts.
    pub fn input(&mut self, now: Time, member: Member, tick: Tick, input: Opaque) -> Result<(), Malformed> {
        let closed = self.history.last();
        let epoch = self.epoch.ok_or(Malformed::Forbidden)?;
        let slack_us = self.due(epoch, tick).as_micros() as i64 - now.as_micros() as i64;
        let seat = self.members.get(&member).and_then(|membership| membership.seat);
        let seat = seat.ok_or(Malformed::Forbidden)?;
        let Some(chair) = &mut self.chairs[seat.index()] else { return Ok(()) };
        if tick <= closed {
            chair.arrivals.late += 1;
        } else if tick.ticks_since(closed) >= MAX_AHEAD {
            return Err(Malformed::Forbidden);
        } else if let slot @ None = chair.waiting.slot(tick) {
            *slot = Some(input);
        } else {
            chair.arrivals.repeated += 1;
            return Ok(());
        }
        chair.note_slack(now, slack_us);
        Ok(())
    }

    /// What a peer says besides its inputs. A peer may be a stranger: what does not fit is refused.
    pub fn on_message(
        &mut self,
        now: Time,
        member: Member,
        message: ToRelay,
        out: &mut Out,
    ) -> Result<(), Malformed> {
        match message {
            ToRelay::Join(_) => return Err(Malformed::Forbidden),
            ToRelay::Resend { from } => self.resend(now, member, from, out),
            ToRelay::Check { tick, hash } => {
                if tick.0 % CHECK_EVERY != 0 || tick > self.history.last() {
                    return Err(Malformed::Forbidden);
                }
                self.on_check(now, member, tick, hash, out);
            }
            ToRelay::Hashes { first, hashes } => {
                self.inquire(now, out, |inquiry, want| inquiry.on_hashes(member, first, hashes, want));
            }
            ToRelay::State(state) => {
                if !self.inquiry.as_ref().is_some_and(|inquiry| inquiry.is_about(member)) {
                    // It was asked, and what it was asked about has come to an end.
                    return Ok(());
                }
                self.inquire(now, out, |inquiry, want| inquiry.on_state(member, state, want));
            }
            ToRelay::Resynced { fields, .. } => {
                self.inquire(now, out, |inquiry, want| inquiry.on_resynced(member, fields, want));
            }
        }
        Ok(())
    }

    /// A peer has lost ticks.
    fn resend(&mut self, now: Time, member: Member, from: Tick, out: &mut Out) {
        self.send_ticks(out);
        let (first, id) = (self.history.first(), self.id);
        let Some(membership) = self.members.get_mut(&member) else { return };
        if membership.resent_at.is_some_and(|at| now.micros_since(at) < RESEND_EVERY_US) {
            return;
        }
        membership.resent_at = Some(now);
        if from < first {
            out.push_bare(Output::Kick(id, member, "too far behind: the ticks asked for are no longer kept"));
        } else {
            self.send_history(member, Channel::Control, from, out);
        }
    }

    /// A peer's figures about itself.
    pub fn on_diagnostics(&mut self, member: Member, diagnostics: Diagnostics) {
        if let Some(membership) = self.members.get_mut(&member) {
            membership.diagnostics = Some(diagnostics);
        }
        self.choose_batch();
    }

    /// Puts as many ticks into a packet as the nearest player hardly feels.
    fn choose_batch(&mut self) {
        let tick_us = self.facts.rate.tick_micros().max(1);
        let players = self.members.values().filter(|membership| membership.seat.is_some());
        let rtt_us = players.map(|player| player.diagnostics.as_ref().map_or(0, |it| it.link_rtt_us)).min();
        let ticks = (u64::from(rtt_us.unwrap_or(0)) / tick_us) as u32;
        let chosen = (1 + ticks / LATENCY_PER_BATCHED).min(MAX_AUTO_BATCH);
        self.batch = self.fixed_batch.unwrap_or(chosen);
    }

    /// Closes the ticks that are due.
    pub fn on_time(&mut self, now: Time, out: &mut Out) {
        self.inquire_quietly(now, out);
        for _ in 0..MAX_CATCH_UP {
            if self.wake_at().is_none_or(|at| at > now) {
                return;
            }
            self.close(now, out);
        }
        // Stalled for longer than is made up for: the clock of the session stands still for the rest.
        if let Some(at) = self.wake_at() {
            let behind_us = now.micros_since(at);
            self.epoch = self.epoch.map(|epoch| epoch.plus_micros(behind_us));
        }
    }

    fn close(&mut self, now: Time, out: &mut Out) {
        let tick = self.history.last().next();
        let rows = &mut self.recent[tick.0 as usize % RECENT];
        rows.clear();
        for (seat, place) in (0..).map(Seat).zip(&mut self.chairs) {
            let Some(chair) = place else { continue };
            fill_row(rows, seat, chair, tick);
            if let Some(why) = chair.leaving {
                out.push_bare(Output::Record(self.id, Record::Left { tick, seat, why }));
                *place = None;
            }
        }
        self.history.push(rows);
        self.unsent += 1;
        out.push_bare(Output::Closed(self.id, tick));
        if self.unsent >= self.batch {
            self.send_ticks(out);
        }
        if tick.0.is_multiple_of(PACE_EVERY) {
            self.send_paces(tick, out);
        }
        if tick.0.is_multiple_of(CHECK_EVERY) {
            self.review(now, out);
        }
    }

    /// Sends the closed ticks that have not been sent to everybody.
    fn send_ticks(&mut self, out: &mut Out) {
        if self.unsent == 0 {
            return;
        }
        let first = self.history.last() - (self.unsent - 1);
        let rows = (0..self.unsent as usize).map(|offset| &self.recent[(first.0 as usize + offset) % RECENT]);
        let table = &mut self.sent_table;
        self.unsent = 0;
        if out.write(|bytes| put_ticks(bytes, first, table, rows)) <= MAX_REDUNDANT_MESSAGE {
            for member in self.members.keys() {
                out.push_again(Output::Send(*member, Channel::Input));
            }
        } else {
            // Many seats with long inputs, all changed at once: too much to be repeated in every packet.
            out.take_back();
            for member in self.members.keys() {
                self.send_history(*member, Channel::Control, first, out);
            }
        }
    }

    fn send_paces(&mut self, tick: Tick, out: &mut Out) {
        let (agreed, mismatches) = (self.checks.agreed(), self.mismatches);
        for chair in self.chairs.iter_mut().flatten() {
            let least_us = chair.least_slack_us.take();
            chair.arrivals.least_slack_us = least_us.or(chair.arrivals.least_slack_us);
            let least_slack_us = least_us.map(|us| us.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32);
            let omissions = chair.arrivals.omissions;
            send(
                out,
                chair.member,
                Channel::State,
                &Pace { tick, least_slack_us, omissions, agreed, mismatches },
            );
        }
    }

    fn on_check(&mut self, now: Time, member: Member, tick: Tick, hash: StateHash, out: &mut Out) {
        let Some(seat) = self.members.get(&member).map(|membership| membership.seat) else { return };
        // What a peer in doubt says is only taken down.
        if self.inquiry.as_ref().is_some_and(|inquiry| inquiry.suspects(member)) {
            return;
        }
        let voters = self.voters();
        let Session { checks, findings, .. } = self;
        checks.answer(member, seat.is_some(), (tick, hash), voters, findings);
        self.act_on_findings(now, out);
    }

    /// How many players have a say about a state: those who have begun.
    fn voters(&self) -> usize {
        self.chairs.iter().flatten().filter(|chair| !chair.joining && chair.leaving.is_none()).count()
    }

    /// Looks again at checks that wait for answers which may never come.
    fn review(&mut self, now: Time, out: &mut Out) {
        let closed = self.history.last();
        let Session { checks, findings, .. } = self;
        checks.on_tick(closed, findings);
        self.act_on_findings(now, out);
    }

    fn act_on_findings(&mut self, now: Time, out: &mut Out) {
        while !self.findings.is_empty() {
            match self.findings.remove(0) {
                Finding::Agreed { tick, hash } => {
                    self.disputed = false;
                    out.push_bare(Output::Record(self.id, Record::Check { tick, hash }));
                }
                Finding::Odd { tick, member, hash, agreed } => {
                    self.on_odd(now, tick, member, (hash, agreed), out);
                }
                Finding::Split { tick, members } => self.on_split(now, tick, members, out),
            }
        }
    }

    fn on_odd(
        &mut self,
        now: Time,
        tick: Tick,
        member: Member,
        (hash, agreed): (StateHash, StateHash),
        out: &mut Out,
    ) {
        self.mismatches += 1;
        if let Some(seat) = self.members.get(&member).and_then(|membership| membership.seat) {
            out.push_bare(Output::Record(self.id, Record::Dissent { tick, seat, hash }));
        }
        let good = self.checks.somebody_with(tick, agreed).or_else(|| self.somebody_but(member));
        if let Some(good) = good {
            self.begin_inquiry(now, tick, [good, member], Decided::ByMajority, out);
        }
    }

    fn somebody_but(&self, member: Member) -> Option<Member> {
        let players = self.members.iter().filter(|(_, membership)| membership.seat.is_some());
        players.map(|(other, _)| *other).find(|other| *other != member)
    }

    fn on_split(&mut self, now: Time, tick: Tick, members: [Member; 2], out: &mut Out) {
        self.mismatches += 1;
        if !self.disputed && self.inquiry.is_none() {
            out.push_bare(Output::Record(self.id, Record::Dispute { tick }));
            self.begin_inquiry(now, tick, members, Decided::Open, out);
        }
    }

    fn begin_inquiry(
        &mut self,
        now: Time,
        check: Tick,
        members: [Member; 2],
        decided: Decided,
        out: &mut Out,
    ) {
        let [Some(one), Some(other)] = members.map(|member| self.witness(member)) else { return };
        if self.inquiry.is_some() {
            return;
        }
        let agreed = self.checks.agreed_before(check).unwrap_or(check - CHECK_EVERY.min(check.0));
        let mut want = Vec::new();
        self.inquiry = Some(Inquiry::new(now, check, agreed, [one, other], decided, &mut want));
        self.act(want, out);
    }

    fn witness(&self, member: Member) -> Option<Witness> {
        let membership = self.members.get(&member)?;
        Some(Witness::new(member, membership.seat, membership.name.clone()))
    }

    /// Tells the inquiry something, if there is one, and does what it wants.
    fn inquire(&mut self, now: Time, out: &mut Out, tell: impl FnOnce(&mut Inquiry, &mut Vec<Want>)) {
        let Some(inquiry) = &mut self.inquiry else { return };
        let mut want = Vec::new();
        inquiry.heard(now);
        tell(inquiry, &mut want);
        self.act(want, out);
    }

    fn inquire_quietly(&mut self, now: Time, out: &mut Out) {
        let Some(inquiry) = &self.inquiry else { return };
        let mut want = Vec::new();
        inquiry.on_time(now, &mut want);
        self.act(want, out);
    }

    /// What a replay of the log has after a tick that was to be judged; none if nobody can replay it.
    pub fn on_verdict(&mut self, now: Time, tick: Tick, state: Option<Vec<u8>>, out: &mut Out) {
        self.inquire(now, out, |inquiry, want| match state {
            Some(state) => inquiry.on_verdict(tick, state, want),
            None => inquiry.on_no_verdict(want),
        });
    }

    fn act(&mut self, wants: Vec<Want>, out: &mut Out) {
        for want in wants {
            match want {
                Want::Hashes(member, from, to) => {
                    send(out, member, Channel::Control, &ToPeer::GiveHashes { from, to });
                }
                Want::State(member, tick) => {
                    send(out, member, Channel::Control, &ToPeer::GiveState { tick });
                }
                Want::Judge(tick) => out.push_bare(Output::Judge(self.id, tick)),
                Want::Found(member, tick) => {
                    if let Some(seat) = self.members.get(&member).and_then(|membership| membership.seat) {
                        out.push_bare(Output::Record(self.id, Record::Desync { tick, seat }));
                    }
                }
                Want::Resync(member, tick, state) => self.resync(member, tick, state, out),
                Want::Done => self.end_inquiry(out),
            }
        }
    }

    /// Gives a peer the good state, and the ticks after it.
    fn resync(&mut self, member: Member, tick: Tick, state: Vec<u8>, out: &mut Out) {
        let (closed, id) = (self.history.last(), self.id);
        let Some(membership) = self.members.get_mut(&member) else { return };
        if closed.ticks_since(membership.resyncs.0) > RESYNC_WINDOW_TICKS {
            membership.resyncs = (closed, 0);
        }
        membership.resyncs.1 += 1;
        if membership.resyncs.1 > MAX_RESYNCS {
            out.push_bare(Output::Kick(id, member, "its simulation keeps computing something else"));
            return;
        }
        // The peer asks for the ticks after it when it has taken the state.
        send(out, member, Channel::Chunks, &ToPeer::Resync { tick, state });
    }

    fn end_inquiry(&mut self, out: &mut Out) {
        if let Some(inquiry) = self.inquiry.take() {
            let report: Report = inquiry.into_report();
            self.disputed = report.decided == Decided::Open;
            out.push_bare(Output::Desync(self.id, Box::new(report)));
        }
    }
}

fn send<T: serde::Serialize>(out: &mut Out, to: Member, channel: Channel, message: &T) {
    out.push(Output::Send(to, channel), |bytes| message::put(bytes, message));
}

/// A session's answer to somebody it does not take.
pub fn refuse(out: &mut Out, member: Member, why: &str) {
    send(out, member, Channel::Control, &ToPeer::Refused { why: why.to_string() });
}

fn fill_row(rows: &mut Inputs<Opaque>, seat: Seat, chair: &mut Chair, tick: Tick) {
    let joined = core::mem::take(&mut chair.joining);
    if joined {
        rows.join(seat);
    }
    match chair.waiting.slot(tick).take() {
        Some(input) => {
            chair.began = true;
            rows.set(seat, input);
        }
        None => {
            rows.omit(seat);
            // Nothing is due from somebody who has not begun or is going.
            chair.arrivals.omissions += u32::from(chair.began && chair.leaving.is_none());
        }
    }
    if chair.leaving.is_some() {
        rows.leave(seat);
    }
}
