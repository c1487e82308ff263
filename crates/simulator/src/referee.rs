//! What really happened in one session: every tick stepped once more, apart from all machines under test, and every input
//! that arrived in time. All that peers, logs and reports say is compared with this.

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

/// For so long after a state was mended, its wrong answers may still be found.
const ECHO_US: u64 = 20_000_000;

/// So many ticks may pass between the question for the last states and the answer.
const SLACK_TICKS: u32 = 60;

/// How many fields are named in which a state is wrong.
const REPORTED: usize = 8;

/// What a checker found.
pub type Finding = (Checker, String);

/// The inputs of a seat that have arrived in time.
struct Desk {
    /// Which client.
    client: usize,
    /// Who it is at the moment; nobody until it is made welcome.
    member: Option<Member>,
    /// As whom it came back, until an input of it comes.
    before: Option<Member>,
    arrived: Vec<Option<(Tick, Opaque)>>,
}

impl Desk {
    fn slot(&mut self, tick: Tick) -> &mut Option<(Tick, Opaque)> {
        let at = tick.0 as usize % self.arrived.len();
        &mut self.arrived[at]
    }
}

/// A state that was tampered with.
#[derive(Clone, Debug)]
pub struct Tampering {
    /// Whose.
    pub member: Member,
    /// Where it sits.
    pub seat: Option<Seat>,
    /// The first tick whose state is wrong.
    pub tick: Tick,
    /// When.
    pub at: Time,
    /// When it was mended.
    pub mended_at: Option<Time>,
}

impl Tampering {
    fn is_open(&self, now: Time) -> bool {
        self.mended_at.is_none_or(|at| now.micros_since(at) < ECHO_US)
    }
}

/// What really happened in a session.
pub struct Referee<G: Playable> {
    /// Which session.
    pub id: SessionId,
    /// Its log.
    pub journal: Journal,
    /// What was closed.
    pub closed: Closed,
    /// States that were tampered with.
    pub tampered: Vec<Tampering>,
    /// It is over.
    pub ended: bool,
    /// And its log is whole: it can be taken up again.
    pub resumable: bool,
    /// Inputs and omissions seen.
    pub counts: (u64, u64),
    /// What was said when it began.
    pub facts: Facts,
    /// What is left of its log, while the relay does not run.
    pub left: Option<Left>,
    /// The newest save that is stored, and those that will be.
    pub saves: (Option<Save>, Vec<Save>),
    /// When it was last found again.
    pub found_at: Option<Time>,
    /// The tick after which it was last taken up.
    pub from: Tick,
    /// Times nobody knew of a rewind that the log had lost.
    pub revived: u64,
    /// The newest link that was made welcome.
    newest: Member,
    /// What the last rewinds made void, as long as the log may lose them.
    void: Vec<Void>,
    state: G,
    /// All ticks, to go back.
    ticks: Vec<Inputs<Opaque>>,
    inputs: Inputs<G::Input>,
    desks: Vec<Option<Desk>>,
    /// Who sat where, in order.
    sittings: Vec<Sitting>,
    /// The first link since the relay was last started.
    pub first: Member,
}

/// What a rewind made void.
struct Void {
    to: Tick,
    /// After that tick.
    closed: Closed,
    ticks: Vec<Inputs<Opaque>>,
    /// Everybody who had sat somewhere.
    sittings: Vec<Sitting>,
}

/// Somebody who sits somewhere for a while.
#[derive(Clone)]
struct Sitting {
    seat: Seat,
    client: usize,
    member: Option<Member>,
    from: Tick,
    left: Option<Tick>,
}

impl<G: Playable> Referee<G> {
    /// A session that has just begun.
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

    /// What the state after a tick comes to.
    pub fn digest(&self, tick: Tick) -> Option<u64> {
        self.closed.states.get((tick.0 as usize).checked_sub(1)?).copied()
    }

    /// In words, in which fields the state of a client or a save differs from that after a tick: theirs != ours.
    pub fn disagreement(&self, whose: &str, tick: Tick, state: &G) -> String {
        let closed = self.ticks.get(..tick.0 as usize);
        let right = closed.and_then(|ticks| replay::<G>(&self.facts, ticks).ok());
        let fields = right.map(|right| differences(state, &right, REPORTED)).unwrap_or_default();
        format!("{whose} != the replay after tick {tick}:{}", Lines(&fields))
    }

    /// An input has arrived at the relay.
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

    /// The relay is killed: links to it are no more.
    pub fn on_crash(&mut self, rng: &mut Rng, next: Member) -> Result<(), Finding> {
        self.first = next;
        self.left = self.journal.crash(rng).map_err(|what| (Checker::Log, what))?;
        // What is in the log for good is not undone.
        self.void.drain(..self.void.len().saturating_sub(self.journal.lost.len()));
        Ok(())
    }

    /// The session had ended, and is found again.
    pub fn take_up(&mut self) -> Result<(), Finding> {
        self.left = Some(self.journal.take_up().map_err(|what| (Checker::Log, what))?);
        self.begin_again();
        Ok(())
    }

    /// All that is found of the session is a save: it goes on from there as another, with a log of its own.
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

    /// Nobody knows of rewinds that the log has lost: what they had made void is what was.
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

    /// The session goes on after this tick, with who sat there then. Returns how many ticks that takes back.
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

    /// A client sits down.
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

    /// Who sits on a seat.
    pub fn member_on(&self, seat: Seat) -> Option<Member> {
        self.desks[seat.index()].as_ref()?.member
    }

    /// Where whoever was a member when it was last told has a seat that a later link, `to`, may take over.
    pub fn seat_of(&self, member: Member, to: Member) -> Option<Seat> {
        let is_its = |desk: &Option<Desk>| {
            let desk = desk.as_ref().filter(|desk| desk.member < Some(to));
            desk.is_some_and(|desk| [desk.member, desk.before].contains(&Some(member)))
        };
        self.desks.iter().position(is_its).map(|index| Seat(index as u16))
    }

    /// Somebody is given a seat: one that it has just sat down on, or, if it comes back as `before`, the one it never left.
    /// Whatever had come for that one counts. Returns whether it is such a seat.
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
            return wrong("is given somebody else's seat");
        };
        let taken_from = desk.member.replace(member);
        if let Some(sitting) = self.sittings.iter_mut().rfind(|it| it.seat == seat) {
            sitting.member = Some(member);
        }
        // A relay that was restarted cannot always tell who sat where long ago, and takes claims whose welcome was lost since.
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

    /// A tick was closed.
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

    /// A tick that the relay had lost is what it was.
    fn on_given(&mut self, tick: Tick, rows: &Inputs<Opaque>) -> Result<(), Finding> {
        self.revive()?;
        let digest = self.journal.close(tick, rows).map_err(|what| (Checker::Log, what))?;
        match self.closed.rows.get(tick.0 as usize - 1) {
            Some(closed) if *closed == digest => Ok(()),
            _ => Err((Checker::Ticks, format!("tick {tick} that the relay was given is not what it was"))),
        }
    }

    /// Each input that came in time is in its tick, as it came, and there are no others.
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

    /// Something is written down.
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

    /// Whether `tick` is rightly called the first bad one: exactly that, unless it is longer ago than peers remember.
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

    /// All that is known about a desync.
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
