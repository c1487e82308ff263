//! The truth about one session: every tick stepped once more, independent of the machines under test, and every input
//! that arrived in time. All output of peers, logs and reports is compared with it.

use sametick_lockstep::inquiry::Report;
use sametick_lockstep::message::RECENT_TICKS;
use sametick_lockstep::rows::{MAX_SEATS, Opaque, row_as_bytes};
use sametick_lockstep::session::{Facts, MAX_AHEAD, Member, Save, Session, SessionId};
use sametick_sim::diff::{Lines, differences};
use sametick_sim::record::{Record, decode_inputs};
use sametick_sim::{Inputs, Rng, Seat, Tick, Time, from_canonical};

use crate::games::Playable;
use crate::journal::{Closed, Journal, Left};
use crate::outcome::Checker;

/// How long after a repair wrong answers of the old state may still be reported.
const ECHO_US: u64 = 20_000_000;

/// How many ticks may pass between the request for the last states and the answer.
const SLACK_TICKS: u32 = 60;

/// How many differing fields of a wrong state are named.
const REPORTED: usize = 8;

/// A finding of a checker.
pub type Finding = (Checker, String);

/// The inputs of a seat that have arrived in time.
struct Desk {
    /// The client's number.
    client: usize,
    /// Its current member id; `None` until it is welcomed.
    member: Option<Member>,
    /// Its earlier member id after a resume, until an input of it arrives.
    before: Option<Member>,
    arrived: Vec<Option<(Tick, Opaque)>>,
}

impl Desk {
    fn slot(&mut self, tick: Tick) -> &mut Option<(Tick, Opaque)> {
        let at = tick.0 as usize % self.arrived.len();
        &mut self.arrived[at]
    }
}

/// A corrupted state.
#[derive(Clone, Debug)]
pub struct Tampering {
    /// The member with the state.
    pub member: Member,
    /// Its seat.
    pub seat: Option<Seat>,
    /// The first tick whose state is wrong.
    pub tick: Tick,
    /// When it was corrupted.
    pub at: Time,
    /// When it was repaired.
    pub mended_at: Option<Time>,
}

impl Tampering {
    fn is_open(&self, now: Time) -> bool {
        self.mended_at.is_none_or(|at| now.micros_since(at) < ECHO_US)
    }
}

/// The truth about a session.
pub struct Referee<G: Playable> {
    /// The id of the session.
    pub id: SessionId,
    /// Its log.
    pub journal: Journal,
    /// The closed ticks.
    pub closed: Closed,
    /// The corrupted states.
    pub tampered: Vec<Tampering>,
    /// Whether it is over.
    pub ended: bool,
    /// Whether its log is whole after its end: it can be resumed.
    pub resumable: bool,
    /// Inputs and omissions so far.
    pub counts: (u64, u64),
    /// The facts given when it began.
    pub facts: Facts,
    /// The rest of its log, while the relay does not run.
    pub left: Option<Left>,
    /// The newest stored save, and those being stored.
    pub saves: (Option<Save>, Vec<Save>),
    /// When it was last found again.
    pub found_at: Option<Time>,
    /// The tick after which it was last resumed.
    pub from: Tick,
    /// Lost rewinds that no client remembered.
    pub revived: u64,
    /// The newest welcomed link.
    newest: Member,
    /// The ticks that the last rewinds voided, as long as the log may lose them.
    void: Vec<Void>,
    state: G,
    /// All ticks, for rewinds.
    ticks: Vec<Inputs<Opaque>>,
    inputs: Inputs<G::Input>,
    desks: Vec<Option<Desk>>,
    /// Who had which seat, in order.
    sittings: Vec<Sitting>,
    /// The first link since the relay's last start.
    pub first: Member,
}

/// The effect of a rewind.
struct Void {
    to: Tick,
    /// The closed ticks after its target.
    closed: Closed,
    ticks: Vec<Inputs<Opaque>>,
    /// All seatings so far.
    sittings: Vec<Sitting>,
}

/// A client's time on a seat.
#[derive(Clone)]
struct Sitting {
    seat: Seat,
    client: usize,
    member: Option<Member>,
    from: Tick,
    left: Option<Tick>,
}

impl<G: Playable> Referee<G> {
    /// The referee of a new session.
    pub fn new(id: SessionId, session: &Session) -> Result<Referee<G>, Finding> {
        let facts = session.facts();
        Ok(Referee {
            id,
            journal: Journal::new(facts).map_err(|what| (Checker::Log, what))?,
            closed: Closed::default(),
            tampered: Vec::new(),
            ended: false,
            resumable: false,
            counts: (0, 0),
            facts: facts.clone(),
            left: None,
            saves: (None, Vec::new()),
            found_at: None,
            from: Tick::ZERO,
            revived: 0,
            newest: Member(0),
            void: Vec::new(),
            ticks: Vec::new(),
            sittings: Vec::new(),
            first: Member(0),
            state: replay(facts, &[])?,
            inputs: Inputs::new(),
            desks: (0..MAX_SEATS).map(|_| None).collect(),
        })
    }

    /// The last closed tick.
    pub fn last(&self) -> Tick {
        Tick(self.closed.rows.len() as u32)
    }

    /// The hash of the state after a tick.
    pub fn digest(&self, tick: Tick) -> Option<u64> {
        self.closed.states.get((tick.0 as usize).checked_sub(1)?).copied()
    }

    /// Describes in which fields the state of a client or a save differs from that after a tick: theirs != ours.
    pub fn disagreement(&self, whose: &str, tick: Tick, state: &G) -> String {
        let closed = self.ticks.get(..tick.0 as usize);
        let right = closed.and_then(|ticks| replay::<G>(&self.facts, ticks).ok());
        let fields = right.map(|right| differences(state, &right, REPORTED)).unwrap_or_default();
        format!("{whose} != the replay after tick {tick}:{}", Lines(&fields))
    }

    /// Notes an input that arrived at the relay.
    pub fn on_input(&mut self, member: Member, seat: Seat, tick: Tick, input: Opaque) {
        let last = self.last();
        let Some(desk) = self.desks[seat.index()].as_mut().filter(|desk| desk.member == Some(member)) else {
            return;
        };
        desk.before = None;
        if tick > last && tick.ticks_since(last) < MAX_AHEAD {
            let slot = desk.slot(tick);
            if slot.is_none_or(|(at, _)| at != tick) {
                *slot = Some((tick, input));
            }
        }
    }

    /// Notes that the relay was killed: its links are gone.
    pub fn on_crash(&mut self, rng: &mut Rng, next: Member) -> Result<(), Finding> {
        self.first = next;
        self.left = self.journal.crash(rng).map_err(|what| (Checker::Log, what))?;
        // Rewinds that are durable in the log cannot be undone.
        self.void.drain(..self.void.len().saturating_sub(self.journal.lost.len()));
        Ok(())
    }

    /// Notes that the ended session is found again.
    pub fn take_up(&mut self) -> Result<(), Finding> {
        self.left = Some(self.journal.take_up().map_err(|what| (Checker::Log, what))?);
        self.begin_again();
        Ok(())
    }

    /// Notes that only a save is found: the session goes on from there under a new id, with a log of its own.
    pub fn take_up_after(&mut self, id: SessionId, save: Save) -> Result<(), Finding> {
        self.journal = self.journal.after(save.clone()).map_err(|what| (Checker::Log, what))?;
        let ticks = self.ticks.iter().take(save.tick.0 as usize).cloned().collect();
        self.left = Some(Left { ticks, rewinds: 0, is_last: false });
        (self.id, self.saves) = (id, (Some(save), Vec::new()));
        self.void.clear();
        self.begin_again();
        Ok(())
    }

    fn begin_again(&mut self) {
        (self.ended, self.resumable) = (false, false);
        self.first = self.first.max(Member(self.newest.0 + 1));
    }

    /// No client remembers rewinds that the log has lost: the ticks that they voided are valid again.
    fn revive(&mut self) -> Result<(), Finding> {
        let lost = std::mem::take(&mut self.journal.lost).len();
        self.revived += lost as u64;
        for _ in 0..lost {
            let Some(void) = self.void.pop() else { break };
            let at = void.to.0 as usize;
            self.closed.rows.truncate(at);
            self.closed.states.truncate(at);
            self.ticks.truncate(at);
            self.closed.rows.extend(void.closed.rows);
            self.closed.states.extend(void.closed.states);
            self.ticks.extend(void.ticks);
            self.sittings = void.sittings;
        }
        let left = self.left.iter().flat_map(|left| &left.ticks).skip(self.journal.begins_after().0 as usize);
        let was = self.ticks.iter().skip(self.journal.begins_after().0 as usize);
        match lost > 0 && left.zip(was).any(|(left, was)| left != was) {
            true => Err((Checker::Log, "the log holds what never was".into())),
            false => Ok(()),
        }
    }

    /// Goes on after this tick, with its seats. Returns how many ticks that takes back.
    fn rewind(&mut self, to: Tick) -> Result<u32, Finding> {
        let back = self.last().0.saturating_sub(to.0);
        if to > self.last() {
            return Err((
                Checker::Ticks,
                format!("the session goes on after {to}, {} was the last", self.last()),
            ));
        }
        let at = to.0 as usize;
        let closed =
            Closed { rows: self.closed.rows.split_off(at), states: self.closed.states.split_off(at) };
        let (ticks, sittings) = (self.ticks.split_off(at), self.sittings.clone());
        self.void.push(Void { to, closed, ticks, sittings });
        self.from = to;
        self.state = replay(&self.facts, &self.ticks)?;
        self.sittings.retain(|it| it.from <= to);
        self.desks.iter_mut().for_each(|desk| *desk = None);
        for sitting in &mut self.sittings {
            sitting.left = sitting.left.filter(|left| *left <= to);
            if sitting.left.is_none() {
                let arrived = vec![None; 2 * MAX_AHEAD as usize];
                let Sitting { client, member, .. } = *sitting;
                self.desks[sitting.seat.index()] = Some(Desk { client, member, before: None, arrived });
            }
        }
        self.journal.rewind(to);
        Ok(back)
    }

    /// Notes that a client takes a seat.
    pub fn on_joined(&mut self, client: usize, seat: Seat) -> Result<(), Finding> {
        let from = self.last().next();
        self.sittings.push(Sitting { seat, client, member: None, from, left: None });
        let arrived = vec![None; 2 * MAX_AHEAD as usize];
        match self.desks[seat.index()].replace(Desk { client, member: None, before: None, arrived }) {
            Some(_) => {
                Err((Checker::Back, format!("client {client} sits down on seat {seat}, which is taken")))
            }
            None => Ok(()),
        }
    }

    /// The member on a seat.
    pub fn member_on(&self, seat: Seat) -> Option<Member> {
        self.desks[seat.index()].as_ref()?.member
    }

    /// The seat of an earlier `member` that a later link, `to`, may resume.
    pub fn seat_of(&self, member: Member, to: Member) -> Option<Seat> {
        let is_its = |desk: &Option<Desk>| {
            let desk = desk.as_ref().filter(|desk| desk.member < Some(to));
            desk.is_some_and(|desk| [desk.member, desk.before].contains(&Some(member)))
        };
        self.desks.iter().position(is_its).map(|index| Seat(index as u16))
    }

    /// Notes a welcome with a seat: a newly taken one, or, after a resume as `before`, the seat it never left. Inputs
    /// that came for that seat count. Returns whether the seat is right.
    pub fn on_welcome(
        &mut self,
        (client, member): (usize, Member),
        before: Option<Member>,
        seat: Option<Seat>,
    ) -> Result<bool, Finding> {
        let own = before.and_then(|before| self.seat_of(before, member));
        let wrong = |what: &str| {
            let what =
                format!("client {client} as {member:?}, before {before:?} on {own:?}, {what} ({seat:?})");
            Err((Checker::Back, what))
        };
        self.newest = self.newest.max(member);
        let Some(seat) = seat else { return Ok(false) };
        for tampering in self.tampered.iter_mut().filter(|it| it.member == member) {
            tampering.seat = Some(seat);
        }
        let Some(desk) = self.desks[seat.index()].as_mut().filter(|desk| desk.client == client) else {
            return wrong("is given another player's seat");
        };
        let taken_from = desk.member.replace(member);
        if let Some(sitting) = self.sittings.iter_mut().rfind(|it| it.seat == seat) {
            sitting.member = Some(member);
        }
        // A restarted relay cannot always tell who had which seat, and accepts claims whose welcome was lost since.
        let is_earlier = before.is_some_and(|before| before < self.first);
        if taken_from.is_some() && own.is_none() && !is_earlier {
            return wrong("is given a seat that it did not claim");
        }
        desk.before = taken_from.and(before);
        if !is_earlier && own.is_some_and(|own| own != seat) {
            return wrong("is given another seat than it has");
        }
        Ok(taken_from.is_some())
    }

    /// Notes a closed tick.
    pub fn on_closed(&mut self, tick: Tick, rows: &Inputs<Opaque>) -> Result<(), Finding> {
        if self.left.is_some() {
            return self.on_given(tick, rows);
        }
        if tick != self.last().next() {
            return Err((Checker::Ticks, format!("tick {tick} was closed after {}", self.last())));
        }
        self.compare_inputs(tick, rows)?;
        decode_inputs(rows.iter().map(row_as_bytes), &mut self.inputs);
        self.state.step(&self.inputs);
        let digest = self.journal.close(tick, rows).map_err(|what| (Checker::Log, what))?;
        self.closed.rows.push(digest);
        self.closed.states.push(self.state.digest());
        self.ticks.push(rows.clone());
        Ok(())
    }

    /// Checks that a tick given back to the relay is the one it had lost.
    fn on_given(&mut self, tick: Tick, rows: &Inputs<Opaque>) -> Result<(), Finding> {
        self.revive()?;
        let digest = self.journal.close(tick, rows).map_err(|what| (Checker::Log, what))?;
        match self.closed.rows.get(tick.0 as usize - 1) {
            Some(closed) if *closed == digest => Ok(()),
            _ => Err((Checker::Ticks, format!("tick {tick} that the relay was given is not what it was"))),
        }
    }

    /// Checks that each input that came in time is in its tick, unchanged, and that there are no others.
    fn compare_inputs(&mut self, tick: Tick, rows: &Inputs<Opaque>) -> Result<(), Finding> {
        let wrong = |what: String| Err((Checker::Inputs, what));
        let taken = self.desks.iter().flatten().count();
        if rows.len() != taken {
            return wrong(format!("tick {tick} has {} rows, {taken} seats are taken", rows.len()));
        }
        for row in rows {
            let Some(desk) = &mut self.desks[row.seat.index()] else {
                return wrong(format!("tick {tick} has a row for seat {}, where nobody sits", row.seat));
            };
            let arrived = desk.slot(tick).take().filter(|(at, _)| *at == tick).map(|(_, input)| input);
            match (arrived, row.input) {
                (Some(arrived), Some(input)) if arrived == input => self.counts.0 += 1,
                (None, None) => self.counts.1 += 1,
                (Some(_), None) => {
                    return wrong(format!(
                        "seat {}'s input for tick {tick} came in time and is not in it",
                        row.seat
                    ));
                }
                (None, Some(_)) => {
                    return wrong(format!("seat {} has an input in tick {tick} that never came", row.seat));
                }
                (Some(ours), Some(theirs)) => {
                    return wrong(format!(
                        "seat {}'s input for tick {tick} was {ours:?}, the tick has {theirs:?}",
                        row.seat
                    ));
                }
            }
            if row.left {
                self.desks[row.seat.index()] = None;
                if let Some(sitting) = self.sittings.iter_mut().rfind(|it| it.seat == row.seat) {
                    sitting.left = Some(tick);
                }
            }
        }
        Ok(())
    }

    /// Checks a record of the log.
    pub fn on_record(&mut self, now: Time, record: &Record) -> Result<(), Finding> {
        match record {
            Record::Dissent { tick, seat, .. } => self.expect_tampered(now, Some(*seat), None, *tick)?,
            Record::Desync { tick, seat } => self.expect_tampered(now, Some(*seat), Some(*tick), *tick)?,
            Record::Dispute { tick } => self.expect_tampered(now, None, None, *tick)?,
            _ => {}
        }
        self.journal.record(record).map_err(|what| (Checker::Log, what))?;
        if let Record::Rewind { to } = record {
            match &mut self.left {
                Some(left) if !left.is_last => {
                    left.ticks.truncate(to.0 as usize);
                    self.journal.rewind(*to);
                    self.journal.lost.drain(..self.journal.lost.len().min(1));
                }
                _ => {
                    self.revive()?;
                    self.rewind(*to)?;
                    self.left = None;
                }
            }
        }
        Ok(())
    }

    /// Whether `tick` is the first wrong tick: exactly that, unless it is longer ago than peers remember.
    fn is_first(&self, tampering: &Tampering, tick: Tick) -> bool {
        let is_remembered = self.last().ticks_since(tampering.tick) < RECENT_TICKS - SLACK_TICKS;
        tick == tampering.tick || tick > tampering.tick && !is_remembered
    }

    fn expect_tampered(
        &self,
        now: Time,
        seat: Option<Seat>,
        first: Option<Tick>,
        tick: Tick,
    ) -> Result<(), Finding> {
        let fits = |it: &&Tampering| {
            it.is_open(now)
                && seat.is_none_or(|seat| it.seat == Some(seat))
                && first.is_none_or(|first| self.is_first(it, first))
        };
        match self.tampered.iter().find(fits) {
            Some(_) => Ok(()),
            None => Err((
                Checker::Desync,
                format!(
                    "seat {seat:?} is called wrong at tick {tick}; really wrong: {:?}",
                    self.tampered.last()
                ),
            )),
        }
    }

    /// Checks a desync report.
    pub fn on_report(&mut self, now: Time, report: &Report) -> Result<(), Finding> {
        for witness in report.witnesses.iter().filter(|witness| witness.odd) {
            let fits = |it: &&Tampering| {
                it.member == witness.member
                    && it.is_open(now)
                    && (!report.resynced || self.is_first(it, report.tick))
            };
            if self.tampered.iter().rfind(fits).is_none() {
                let what = format!(
                    "{:?} on seat {:?} is called wrong since tick {}; really wrong: {:?}",
                    witness.member,
                    witness.seat,
                    report.tick,
                    self.tampered.last()
                );
                return Err((Checker::Desync, what));
            }
        }
        Ok(())
    }
}

/// The state after these ticks of a session.
fn replay<G: Playable>(facts: &Facts, ticks: &[Inputs<Opaque>]) -> Result<G, Finding> {
    let setup =
        from_canonical(&facts.setup).map_err(|error| (Checker::Log, format!("the setup: {error}")))?;
    let (mut state, mut inputs) = (G::new(&setup), Inputs::new());
    for rows in ticks {
        decode_inputs(rows.iter().map(row_as_bytes), &mut inputs);
        state.step(&inputs);
    }
    Ok(state)
}
