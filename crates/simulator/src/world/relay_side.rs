//! The relay's machine: its ends of the cables, its outputs, and the log.

use sametick_lockstep::message::{self, ToPeer, read_inputs};
use sametick_lockstep::relay::{Input, Output};
use sametick_lockstep::rows::row_as_bytes;
use sametick_lockstep::session::{CAME_BACK, Member, SessionId};
use sametick_sim::record::{Leaving, Record, decode_inputs};
use sametick_sim::{Inputs, Seat, Tick, from_canonical, to_canonical};
use sametick_wire::closing::THROWN_OUT;
use sametick_wire::{Channel, Closed};

use super::{NEVER, World};
use crate::cable::{Cable, Heard};
use crate::games::Playable;
use crate::outcome::Checker;
use crate::referee::Referee;

/// How recent an event must be to explain silence of a link.
const EXCUSE_US: u64 = 13_000_000;

/// How many repairs of a member's state the relay tolerates before it kicks the member.
const MAX_MENDINGS: usize = 5;

impl<G: Playable> World<G> {
    pub(super) fn run_relay(&mut self) {
        if self.relay_stalled || self.relay_down {
            return;
        }
        for index in 0..self.cables.len() {
            if self.cables_next[index] <= self.now {
                self.hear(index);
                // A message of one member can end the link of another.
                self.say_if_told();
            }
        }
        if self.relay_wake_at.is_some_and(|at| at <= self.now) {
            self.relay.handle(self.now, Input::Timeout);
            self.relay_told = true;
        }
        self.say_if_told();
    }

    fn say_if_told(&mut self) {
        if std::mem::take(&mut self.relay_told) {
            self.say();
        }
    }

    /// Passes arrivals on a cable to the relay.
    fn hear(&mut self, index: usize) {
        let World { now, relay, cables, referees, bufs, .. } = self;
        let Some(cable) = &mut cables[index] else { return };
        let (mut closed, mut wrong, mut told, mut late) = (None, None, false, None);
        let Cable { member, up, down, place, handed, thrown_out, there, .. } = cable;
        let Some(there) = there else { return };
        there.run((*now, *now), (up, down), bufs, |heard| match heard {
            Heard::Message(..) if *thrown_out => {}
            Heard::Message(channel, bytes) => {
                if let (Channel::Input, Some((id, seat))) = (channel, *place)
                    && let Some(referee) = referees.iter_mut().rfind(|referee| referee.id == id)
                {
                    let result = read_inputs(bytes, referee.last(), |tick, input| {
                        if !handed.has(tick, input) {
                            wrong = Some(format!("{member:?} never handed in {input:?} for tick {tick}"));
                        }
                        if tick <= referee.last() {
                            late = Some((tick, seat));
                        }
                        referee.on_input(*member, seat, tick, input);
                    });
                    if result.is_err() {
                        wrong = Some(format!("{member:?} sent inputs that cannot be read"));
                    }
                }
                relay.handle(*now, Input::Message(*member, channel, bytes));
                told = true;
            }
            Heard::Closed(why) => closed = Some(why),
        });
        self.relay_told |= told;
        if let Some((tick, seat)) = late.filter(|_| self.calm) {
            self.note(|| format!("seat {seat}'s input for tick {tick} is late"));
        }
        if let Some(what) = wrong {
            self.fail(Checker::Inputs, what);
        }
        if let Some(why) = closed {
            self.on_there_closed(index, &why);
        }
        self.rest_cable(index);
    }

    /// Handles the close of the relay's end of a cable.
    fn on_there_closed(&mut self, index: usize, why: &Closed) {
        let Some(cable) = &mut self.cables[index] else { return };
        let (member, client) = (cable.member, cable.client);
        cable.there = None;
        let silent_us = self.now.micros_since(cable.troubled_at);
        let excused = cable.here.is_none()
            || cable.has_swallowed(true)
            || self.clients[client].is_silenced()
            || silent_us < EXCUSE_US;
        self.note(|| format!("{member:?} (client {client}) ended at the relay: {why:?}"));
        let leaving = match why {
            Closed::TimedOut => Leaving::TimedOut,
            Closed::There(_) => Leaving::Left,
            Closed::Here | Closed::Violation(_) => Leaving::Kicked,
        };
        match why {
            Closed::TimedOut => {
                self.figures.time_outs += 1;
                if !excused {
                    self.fail(
                        Checker::Links,
                        format!("{member:?} timed out at the relay, and nothing explains it"),
                    );
                }
            }
            Closed::Violation(error) => {
                self.fail(Checker::Links, format!("{member:?} sent nonsense: {error:?}"));
            }
            _ => {}
        }
        self.relay.handle(self.now, Input::Closed(member, leaving));
        self.relay_told = true;
    }

    /// Carries out the relay's outputs.
    fn say(&mut self) {
        let mut message = std::mem::take(&mut self.message);
        loop {
            match self.relay.poll_output(&mut message) {
                Output::Send(member, channel) => self.send_down(member, channel, &message),
                Output::Close(member, why) => self.on_close(member, why),
                Output::Find(key) => {
                    let found = self.find();
                    self.relay.handle(self.now, Input::Found(key, found));
                }
                Output::Resumed(id) => {
                    self.note(|| format!("{id:?} goes on"));
                    let now = self.now;
                    if let Some(referee) = self.referee(id) {
                        referee.found_at = Some(now);
                    }
                }
                Output::Begun(id) => self.on_begun(id),
                Output::Record(id, record) => self.on_record(id, &record),
                Output::Closed(id, tick) => self.on_closed(id, tick),
                Output::Ended(id) => self.on_ended(id),
                Output::Judge(id, tick) => {
                    let state = self.replay(id, tick);
                    self.note(|| format!("the relay asks for a replay to tick {tick}"));
                    self.relay.handle(self.now, Input::Verdict(id, tick, state));
                }
                Output::Desync(id, report) => {
                    self.note(|| {
                        let odd = report.witnesses.iter().filter(|it| it.odd).map(|it| it.member);
                        let odd: Vec<Member> = odd.collect();
                        format!("desync since {}: {odd:?}, resynced: {}", report.tick, report.resynced)
                    });
                    let now = self.now;
                    let result = self.referee(id).map(|referee| referee.on_report(now, &report));
                    self.judge(result.unwrap_or(Ok(())));
                }
                Output::WakeAt(at) => {
                    self.relay_wake_at = Some(at);
                    break;
                }
                Output::Wait => {
                    self.relay_wake_at = None;
                    break;
                }
                Output::Save(id) => self.on_save(id),
                Output::WantSave(id, tick) => {
                    self.note(|| format!("the relay asks for a save by replay, after tick {tick}"));
                    let state = self.replay(id, tick);
                    self.relay.handle(self.now, Input::Made(id, tick, state));
                }
                // No items are brought here; the other is for the relay itself.
                Output::Brought(_) | Output::Kick(..) => {}
            }
        }
        self.message = message;
        for index in 0..self.cables.len() {
            self.flush(index);
        }
    }

    fn send_down(&mut self, member: Member, channel: Channel, message: &[u8]) {
        let current = self.referees.last().map(|referee| referee.id);
        let Some(cable) = self.cables.iter_mut().flatten().find(|cable| cable.member == member) else {
            return;
        };
        cable.session = cable.session.or(current);
        let is_question = matches!(message::from_bytes(message), Ok(ToPeer::GiveTicks { .. }));
        if channel == Channel::Control && !is_question && !std::mem::replace(&mut cable.answered, true) {
            self.on_answer(member, message);
        }
        let Some(cable) = self.cables.iter_mut().flatten().find(|cable| cable.member == member) else {
            return;
        };
        let Some(there) = &mut cable.there else { return };
        cable.dirty = true;
        if let Err(error) = there.link().send(self.now, channel, message)
            && error != sametick_wire::link::SendError::Closed
        {
            self.fail(Checker::Bounds, format!("{member:?} cannot be sent {} bytes: {error}", message.len()));
        }
    }

    /// Sends the queued data of the relay's end of a cable.
    fn flush(&mut self, index: usize) {
        let World { now, cables, bufs, .. } = self;
        let Some(cable) = cables[index].as_mut().filter(|cable| cable.dirty) else { return };
        cable.dirty = false;
        let Some(there) = &mut cable.there else { return };
        let mut closed = None;
        there.drain(*now, &mut cable.down, bufs, &mut |heard| {
            if let Heard::Closed(why) = heard {
                closed = Some(why);
            }
        });
        if let Some(why) = closed {
            self.on_there_closed(index, &why);
        }
        self.rest_cable(index);
        self.wake_owner(index);
    }

    /// Updates the time of a cable's next event, and removes it once both ends are closed.
    pub(super) fn rest_cable(&mut self, index: usize) {
        let Some(cable) = &mut self.cables[index] else { return };
        cable.note_deliveries();
        self.cables_next[index] = cable.next_there().unwrap_or(NEVER);
        if cable.there.is_none() && cable.here.is_none() {
            self.cables[index] = None;
        }
    }

    /// Sent data may reach the client before its next planned event.
    fn wake_owner(&mut self, index: usize) {
        let Some(cable) = self.cables[index].as_ref().filter(|cable| cable.here.is_some()) else { return };
        let client = &mut self.clients[cable.client];
        if let Some(at) = cable.down.next_delivery().filter(|_| !client.stalled) {
            client.next_at = client.next_at.min(at);
        }
    }

    /// Checks a kick: only a member whose state was wrong repeatedly, or which has resumed elsewhere, may be kicked.
    fn on_close(&mut self, member: Member, why: &'static str) {
        self.note(|| format!("the relay throws out {member:?}: {why}"));
        let tampered = self.referees.iter().flat_map(|referee| &referee.tampered);
        let is_back = why == CAME_BACK && self.has_come_back(member);
        if tampered.filter(|it| it.member == member).count() < MAX_MENDINGS && !is_back {
            self.fail(Checker::Links, format!("the relay threw out {member:?}: {why}"));
        }
        if let Some(cable) = self.cables.iter_mut().flatten().find(|cable| cable.member == member)
            && let Some(there) = &mut cable.there
        {
            there.link().close(self.now, THROWN_OUT, why);
            (cable.dirty, cable.thrown_out) = (true, true);
        }
    }

    fn on_begun(&mut self, id: SessionId) {
        self.figures.sessions += 1;
        self.note(|| format!("{id:?} begins"));
        match self.relay.session(id).map(|session| Referee::new(id, session)) {
            Some(Ok(referee)) => self.referees.push(referee),
            Some(Err((checker, what))) => self.fail(checker, what),
            None => {}
        }
    }

    fn on_record(&mut self, id: SessionId, record: &Record) {
        match record {
            Record::Joined { seat, name, .. } => self.on_joined(id, *seat, name),
            Record::Left { seat, .. } => self.on_left(id, *seat),
            Record::Rewind { to } => self.on_rewind(id, *to),
            _ => {}
        }
        if !matches!(record, Record::Check { .. }) {
            self.note(|| format!("record: {record:?}"));
        }
        let now = self.now;
        let result = self.referee(id).map(|referee| referee.on_record(now, record));
        self.judge(result.unwrap_or(Ok(())));
    }

    fn on_closed(&mut self, id: SessionId, tick: Tick) {
        self.figures.ticks += 1;
        let is_given = self.referee(id).is_some_and(|referee| referee.left.is_some());
        self.figures.given += u64::from(is_given);
        let World { relay, referees, .. } = self;
        let rows = relay.session(id).and_then(|session| session.rows(tick));
        let referee = referees.iter_mut().rfind(|referee| referee.id == id);
        let result = match (rows, referee) {
            (Some(rows), Some(referee)) => referee.on_closed(tick, rows),
            _ => Err((Checker::Ticks, format!("tick {tick} of {id:?} cannot be read"))),
        };
        self.judge(result);
        if self.calm && self.trace.is_some() {
            self.note_omissions(id, tick);
        }
    }

    fn note_omissions(&mut self, id: SessionId, tick: Tick) {
        let rows = self.relay.session(id).and_then(|session| session.rows(tick));
        let omitted: Vec<Seat> =
            rows.into_iter().flatten().filter(|row| row.input.is_none()).map(|row| row.seat).collect();
        if !omitted.is_empty() {
            self.note(|| format!("tick {tick} was closed without {omitted:?}"));
        }
    }

    fn on_ended(&mut self, id: SessionId) {
        self.note(|| format!("{id:?} ends"));
        self.finish_log(id);
    }

    /// Closes and checks the log of a session.
    pub(super) fn finish_log(&mut self, id: SessionId) {
        let Some(referee) = self.referee(id).filter(|referee| !referee.ended) else { return };
        referee.ended = true;
        let (inputs, omissions) = std::mem::take(&mut referee.counts);
        let revived = std::mem::take(&mut referee.revived);
        let result = referee.journal.finish::<G>(&referee.closed, referee.left.is_some(), &mut |_| {});
        referee.resumable = result.is_ok();
        self.figures.revived += revived;
        self.figures.inputs += inputs;
        self.figures.omissions += omissions;
        match result {
            Ok(ticks) => self.figures.logged += ticks,
            Err(what) => self.fail(Checker::Log, what),
        }
    }

    /// The state after a tick, from the relay's own history.
    fn replay(&self, id: SessionId, to: Tick) -> Option<Vec<u8>> {
        let session = self.relay.session(id)?;
        let setup = from_canonical(&session.facts().setup).ok()?;
        let (mut state, mut begun) = (G::new(&setup), Tick::ZERO);
        match session.save().filter(|save| save.tick <= to) {
            Some(save) => (state, begun) = (from_canonical(&save.state).ok()?, save.tick),
            None if !session.history().is_whole() => return None,
            None => {}
        }
        let (mut inputs, mut from) = (Inputs::new(), begun.next());
        while let Some(excerpt) = session.history().excerpt(from).filter(|_| from <= to) {
            from = excerpt.first + excerpt.ticks;
            let read = excerpt.read(|tick, rows| {
                if tick <= to {
                    decode_inputs(rows.iter().map(row_as_bytes), &mut inputs);
                    state.step(&inputs);
                }
            });
            read.ok()?;
        }
        to_canonical(&state).ok()
    }
}
