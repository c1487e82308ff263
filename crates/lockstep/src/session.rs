//! One session on a relay: seats, ticks that close on the relay's clock, and who is sent what. Knows nothing of games.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sametick_sim::{Inputs, Seat, Tick, TickRate, Time};
use sametick_wire::Malformed;

use crate::history::History;
use crate::message::{MAX_RUN, Pace, ToPeer, put_ticks};
use crate::rows::{MAX_SEATS, Opaque, Table};

/// How far ahead of the last closed tick an input may be for. Nobody plays two seconds ahead.
pub const MAX_AHEAD: u32 = 128;

/// Peers of one session, those who only watch included.
pub const MAX_MEMBERS: usize = 256;

/// How often a peer is told how its inputs arrive, in ticks.
pub const PACE_EVERY: u32 = 15;

/// A stalled relay closes at most this many ticks at once; the rest of the lost time is given up, for everybody alike.
pub const MAX_CATCH_UP: u32 = 30;

/// A peer of a session. The relay gives one to each link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u64);

/// Why a peer cannot take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// No seat is free, and there is no room to watch.
    Full,
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
            JoinError::Rate => "the session runs at another tick rate",
            JoinError::TooLong => "the session is too long to be joined from its beginning",
        }
    }
}

/// What a session wants sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Send {
    /// To one peer, reliably.
    Control(Member, ToPeer),
    /// To one peer, the newest wins.
    Pace(Member, Pace),
    /// These closed ticks to all of these.
    Ticks(Vec<Member>, Vec<u8>),
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

#[derive(Clone, Debug)]
struct Chair {
    member: Member,
    /// Not yet part of a closed tick.
    joining: bool,
    leaving: bool,
    waiting: Waiting,
    omissions: u32,
    late: u32,
    least_slack_us: Option<i64>,
}

/// One session.
#[derive(Clone, Debug)]
pub struct Session {
    rate: TickRate,
    setup: Vec<u8>,
    /// When tick 0 stood.
    epoch: Time,
    history: History,
    chairs: [Option<Chair>; MAX_SEATS],
    members: BTreeMap<Member, Option<Seat>>,
    /// Closed ticks that have not been sent, and the table before them.
    unsent: Vec<Inputs<Opaque>>,
    unsent_count: usize,
    sent_table: Table,
    ticks_per_packet: u32,
    players: u8,
}

impl Session {
    /// A session that begins now, for up to `players` seats; `ticks_per_packet` closed ticks are sent together.
    pub fn new(now: Time, rate: TickRate, setup: Vec<u8>, players: u8, ticks_per_packet: u32) -> Session {
        Session {
            rate,
            setup,
            epoch: now,
            history: History::default(),
            chairs: [const { None }; MAX_SEATS],
            members: BTreeMap::new(),
            unsent: Vec::new(),
            unsent_count: 0,
            sent_table: Table::default(),
            ticks_per_packet: ticks_per_packet.clamp(1, MAX_RUN),
            players: players.min(MAX_SEATS as u8),
        }
    }

    /// The closed ticks.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// How many take part, those who watch included.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Whether a peer takes part.
    pub fn is_member(&self, member: Member) -> bool {
        self.members.contains_key(&member)
    }

    /// Inputs of a seat that were missing when their tick closed, and those that came after it.
    pub fn missed(&self, seat: Seat) -> Option<(u32, u32)> {
        let chair = self.chairs.get(seat.index())?.as_ref()?;
        Some((chair.omissions, chair.late))
    }

    /// When the next tick closes.
    pub fn wake_at(&self) -> Time {
        self.due(self.history.last().next())
    }

    fn due(&self, tick: Tick) -> Time {
        self.epoch.plus_micros(self.rate.due_micros(tick))
    }

    /// A peer wants to take part.
    pub fn join(
        &mut self,
        now: Time,
        member: Member,
        rate: u16,
        watch: bool,
        out: &mut Vec<Send>,
    ) -> Result<(), JoinError> {
        if u32::from(rate) != self.rate.per_second() {
            return Err(JoinError::Rate);
        }
        if self.history.is_full() {
            return Err(JoinError::TooLong);
        }
        let seat = if watch { None } else { Some(self.free_seat().ok_or(JoinError::Full)?) };
        if self.members.len() >= MAX_MEMBERS {
            return Err(JoinError::Full);
        }
        if let Some(seat) = seat {
            self.chairs[seat.index()] = Some(Chair {
                member,
                joining: true,
                leaving: false,
                waiting: Waiting::EMPTY,
                omissions: 0,
                late: 0,
                least_slack_us: None,
            });
        }
        // Ticks are sent in runs; what the newcomer is sent by itself must end where a run does.
        self.send_ticks(out);
        self.members.insert(member, seat);
        let closed = self.history.last();
        let welcome = ToPeer::Welcome {
            seat,
            closed,
            age_us: now.micros_since(self.due(closed)),
            setup: self.setup.clone(),
            rate: self.rate.per_second() as u16,
        };
        out.push(Send::Control(member, welcome));
        self.send_history(member, Tick(1), out);
        Ok(())
    }

    fn free_seat(&self) -> Option<Seat> {
        let free = |seat: &Seat| self.chairs[seat.index()].is_none();
        (0..self.players).map(Seat).find(free)
    }

    /// Sends every closed tick from `from` on to one peer.
    fn send_history(&self, member: Member, mut from: Tick, out: &mut Vec<Send>) {
        while let Some(excerpt) = self.history.excerpt(from) {
            from = excerpt.first + excerpt.ticks;
            let table = excerpt.start.to_bytes();
            let ticks =
                ToPeer::Ticks { first: excerpt.first, ticks: excerpt.ticks, table, bytes: excerpt.bytes };
            out.push(Send::Control(member, ticks));
        }
    }

    /// A peer has lost ticks.
    pub fn resend(&mut self, member: Member, from: Tick, out: &mut Vec<Send>) {
        self.send_ticks(out);
        if self.members.contains_key(&member) {
            self.send_history(member, from, out);
        }
    }

    /// A peer is gone, for whatever reason. The others see its seat left in the next tick (L11).
    pub fn leave(&mut self, member: Member) {
        let Some(Some(seat)) = self.members.remove(&member) else { return };
        match &mut self.chairs[seat.index()] {
            // Nobody has seen it come.
            chair @ Some(Chair { joining: true, .. }) => *chair = None,
            Some(chair) => chair.leaving = true,
            None => {}
        }
    }

    /// A peer's input for a tick. Late ones and repeats change nothing but the counts.
    pub fn input(&mut self, now: Time, member: Member, tick: Tick, input: Opaque) -> Result<(), Malformed> {
        let closed = self.history.last();
        let due = self.due(tick);
        let Some(Some(seat)) = self.members.get(&member) else { return Err(Malformed::Forbidden) };
        let Some(chair) = &mut self.chairs[seat.index()] else { return Ok(()) };
        let slack_us = due.as_micros() as i64 - now.as_micros() as i64;
        chair.least_slack_us = Some(chair.least_slack_us.map_or(slack_us, |least| least.min(slack_us)));
        if tick <= closed {
            chair.late += 1;
        } else if tick.ticks_since(closed) >= MAX_AHEAD {
            return Err(Malformed::Forbidden);
        } else {
            chair.waiting.slot(tick).get_or_insert(input);
        }
        Ok(())
    }

    /// Closes the ticks that are due.
    pub fn on_time(&mut self, now: Time, out: &mut Vec<Send>) {
        for _ in 0..MAX_CATCH_UP {
            if self.wake_at() > now {
                return;
            }
            self.close(out);
        }
        // Stalled for longer than is made up for: the clock of the session stands still for the rest.
        let behind_us = now.micros_since(self.wake_at());
        self.epoch = self.epoch.plus_micros(behind_us);
    }

    fn close(&mut self, out: &mut Vec<Send>) {
        let tick = self.history.last().next();
        if self.unsent.len() == self.unsent_count {
            self.unsent.push(Inputs::new());
        }
        let rows = &mut self.unsent[self.unsent_count];
        self.unsent_count += 1;
        rows.clear();
        for (seat, place) in (0..).map(Seat).zip(&mut self.chairs) {
            let Some(chair) = place else { continue };
            fill_row(rows, seat, chair, tick);
            if chair.leaving {
                *place = None;
            }
        }
        self.history.push(rows);
        if self.unsent_count as u32 >= self.ticks_per_packet {
            self.send_ticks(out);
        }
        if tick.0.is_multiple_of(PACE_EVERY) {
            self.send_paces(tick, out);
        }
    }

    /// Sends the closed ticks that have not been sent to everybody.
    fn send_ticks(&mut self, out: &mut Vec<Send>) {
        if self.unsent_count == 0 {
            return;
        }
        let rows = &self.unsent[..self.unsent_count];
        let first = self.history.last() - (self.unsent_count as u32 - 1);
        let mut bytes = Vec::new();
        put_ticks(&mut bytes, first, &mut self.sent_table, rows.iter());
        self.unsent_count = 0;
        out.push(Send::Ticks(self.members.keys().copied().collect(), bytes));
    }

    fn send_paces(&mut self, tick: Tick, out: &mut Vec<Send>) {
        for chair in self.chairs.iter_mut().flatten() {
            if let Some(least) = chair.least_slack_us.take() {
                let least_slack_us = least.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
                out.push(Send::Pace(chair.member, Pace { tick, least_slack_us, omissions: chair.omissions }));
            }
        }
    }
}

fn fill_row(rows: &mut Inputs<Opaque>, seat: Seat, chair: &mut Chair, tick: Tick) {
    let joined = core::mem::take(&mut chair.joining);
    if joined {
        rows.join(seat);
    }
    match chair.waiting.slot(tick).take() {
        Some(input) => rows.set(seat, input),
        None => {
            rows.omit(seat);
            // Nothing is due from somebody who has just come or is going.
            chair.omissions += u32::from(!joined && !chair.leaving);
        }
    }
    if chair.leaving {
        rows.leave(seat);
    }
}
