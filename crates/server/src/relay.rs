//! The driver of the relay: passes links' messages to it, and its outputs to links, logs and traces.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::relay::{Found, Input, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::session::{Member, Participant, Session, SessionId};
use sametick_sim::{SchemaHash, Tick};
use sametick_store::saves::Mode;
use sametick_transport::clock::unix_ms;
use sametick_transport::hub::Ended;
use sametick_transport::hub_waker::HubWaker;
use sametick_wire::{Channel, Time};

use crate::app::{OutputSink, leaving};
use crate::finder::{Finder, Search, Sought};
use crate::games::{Games, UnknownGame};
use crate::judge::{Judge, Purpose};
use crate::recorder::{Place, Recorder};
use crate::recovered::RecoveredSession;
use crate::spectator::{Spectator, Told};
use crate::trace::Trace;
use crate::tracer::Tracer;

/// How long a server that stops takes for replaying and saving its sessions.
const CLOSING: Duration = Duration::from_secs(10);

/// A session that ends before this tick is not saved: almost nothing has happened yet.
const LEAST_SAVED: Tick = Tick(300);

/// The result of a search as the relay needs it, and the stored data.
type Find = (Found, Option<Box<RecoveredSession>>);

fn find_of(key: &SessionKey, sought: Sought) -> Find {
    match sought {
        Sought::New(uid) => (Found::New { uid }, None),
        Sought::Spoilt(uid) => (Found::Spoilt { uid }, None),
        Sought::Kept(recovered) => match recovered.kept() {
            Ok(kept) => (Found::Kept(Box::new(kept)), Some(recovered)),
            Err(why) => {
                tracing::error!(session = key.name, why, "a session cannot go on; another begins");
                (Found::Spoilt { uid: unix_ms() }, None)
            }
        },
    }
}

fn begin_replay(judge: &Judge, purpose: Purpose, relay: &Relay, (id, tick): (SessionId, Tick)) {
    if let Some(session) = relay.session(id) {
        judge.begin(purpose, id, session, tick);
    }
}

/// A relay for any game, with its driver.
pub(crate) struct RelaySide {
    relay: Relay,
    judge: Judge,
    /// Follows the games, if links take part with an assignment.
    follower: Option<Spectator>,
    games: Games,
    search: Option<Search<Find>>,
    /// The stored data of sessions that are about to resume.
    recovered: BTreeMap<SessionKey, Box<RecoveredSession>>,
    tracer: Option<Tracer>,
    wake_at: Option<Time>,
    buf: Vec<u8>,
}

impl RelaySide {
    /// A relay without sessions. It relays any game, and replays the given ones to settle a desync.
    pub fn new(config: RelayConfig, games: Games) -> RelaySide {
        RelaySide {
            relay: Relay::new(config),
            judge: Judge::new(games.clone()),
            follower: None,
            games,
            search: None,
            recovered: BTreeMap::new(),
            tracer: None,
            wake_at: None,
            buf: Vec::new(),
        }
    }

    /// Traces every message from now on.
    pub fn set_trace(&mut self, trace: Trace) {
        self.tracer = Some(Tracer::new(trace));
    }

    /// Makes saves of sessions of these games by replay, before it asks players.
    pub fn set_keeper(&mut self, games: &[String]) -> Result<(), UnknownGame> {
        self.judge.set_keeper(games)
    }

    /// Searches for stored sessions from now on, if the relay asks for them.
    pub fn set_finder(&mut self, finder: Rc<Finder>, waker: HubWaker) {
        self.search = Some(Search::new(finder, Mode::Lockstep, waker));
    }

    /// Saves all running sessions by replay, and waits until the saves are stored. Returns whether all are.
    pub fn close(&mut self, recorder: &mut Recorder) -> bool {
        if !recorder.keeps_saves() {
            return true;
        }
        let until = Instant::now() + CLOSING;
        let left = || until.saturating_duration_since(Instant::now());
        let mut missing = 0;
        for (id, session) in self.relay.sessions() {
            let closed = session.history().last();
            if closed > session.save().map_or(LEAST_SAVED, |save| save.tick) {
                self.judge.begin(Purpose::Save, id, session, closed);
                missing += 1;
            }
        }
        let mut unsaved = BTreeSet::new();
        while missing > 0
            && let Some((_, id, tick, state)) = self.judge.wait(left())
        {
            missing -= 1;
            // A session of an unknown game has only its log.
            unsaved.extend(state.is_some().then_some(id));
            self.relay.handle(Time::ZERO, Input::Made(id, tick, state));
            self.write_rest(recorder);
        }
        while !unsaved.is_empty()
            && let Some((id, tick)) = recorder.wait_saved(left())
        {
            unsaved.remove(&id);
            self.relay.handle(Time::ZERO, Input::Saved(id, tick));
            self.write_rest(recorder);
        }
        missing == 0 && unsaved.is_empty()
    }

    /// Writes the remaining outputs to logs when there are no links left.
    fn write_rest(&mut self, recorder: &mut Recorder) {
        loop {
            match self.relay.poll_output(&mut self.buf) {
                Output::WakeAt(_) | Output::Wait => return,
                output => self.write_down(Time::ZERO, recorder, output),
            }
        }
    }

    /// The relay itself, read-only.
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    /// The next wake time.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// A link has opened.
    pub fn on_opened(&mut self, now: Time, member: Member, session: SessionKey, schema: SchemaHash) {
        if let Some(tracer) = &mut self.tracer {
            tracer.opened(member, &session);
        }
        self.relay.handle(now, Input::Opened(member, session, schema));
    }

    /// A message has arrived.
    pub fn on_message(&mut self, now: Time, member: Member, channel: Channel, bytes: &[u8]) {
        if let Some(tracer) = &mut self.tracer {
            tracer.received(now, &self.relay, member, channel, bytes);
        }
        self.relay.handle(now, Input::Message(member, channel, bytes));
    }

    /// A link has ended.
    pub fn on_ended(&mut self, now: Time, member: Member, why: &Ended) {
        if let Some(tracer) = &mut self.tracer {
            tracer.ended(member);
        }
        self.say_goodbye(member, why);
        self.relay.handle(now, Input::Closed(member, leaving(why)));
    }

    /// Handles timers that are due.
    pub fn on_time(&mut self, now: Time) {
        self.relay.handle(now, Input::Timeout);
    }

    /// Carries out the relay's outputs. Returns whether presence may have changed.
    pub fn drain(&mut self, now: Time, sink: &mut OutputSink<'_>) -> bool {
        while let Some((purpose, id, tick, state)) = self.judge.poll() {
            self.relay.handle(
                now,
                match purpose {
                    Purpose::Dispute => Input::Verdict(id, tick, state),
                    Purpose::Save => Input::Made(id, tick, state),
                },
            );
        }
        while let Some((id, tick)) = sink.recorder.poll_saved() {
            self.relay.handle(now, Input::Saved(id, tick));
        }
        self.take_finds(now);
        let mut changed = false;
        self.wake_at = loop {
            match self.relay.poll_output(&mut self.buf) {
                Output::Send(member, channel) => {
                    if let Some(tracer) = self.tracer.as_mut().filter(|_| sink.reaches(member)) {
                        tracer.sent(now, &self.relay, member, channel, &self.buf);
                    }
                    sink.send(member, channel, &self.buf);
                }
                Output::Close(member, why) => sink.close(member, why),
                Output::WakeAt(at) => break Some(at),
                Output::Wait => break None,
                other => {
                    if let (Output::Ended(id), Some(follower)) = (&other, &mut self.follower) {
                        follower.forget(*id);
                    }
                    // The first tick ends the session's wait for players.
                    changed |= !matches!(other, Output::Closed(_, tick) if tick > Tick(1));
                    self.write_down(now, sink.recorder, other);
                }
            }
        };
        // No link waits for the remaining sessions.
        self.recovered.clear();
        if let Some(follower) = &mut self.follower {
            follower.look(&self.relay);
        }
        changed
    }

    fn take_finds(&mut self, now: Time) {
        while let Some((key, (found, recovered))) = self.search.as_ref().and_then(Search::poll) {
            self.recovered.extend(recovered.map(|recovered| (key.clone(), recovered)));
            self.relay.handle(now, Input::Found(key, found));
        }
    }

    /// Writes an output to logs.
    fn write_down(&mut self, now: Time, recorder: &mut Recorder, output: Output) {
        let RelaySide { relay, judge, search, recovered, tracer, .. } = self;
        match output {
            Output::Find(key) => match search {
                Some(search) => search.look_for(key, find_of),
                None => relay.handle(now, Input::Found(key, Found::New { uid: unix_ms() })),
            },
            Output::Begun(id) => {
                if let Some(session) = relay.session(id) {
                    recorder.begin(Place::Session(id), session.facts(), session.uid());
                }
            }
            Output::Resumed(id) => {
                let facts = relay.session(id).map(Session::facts);
                let key = facts.map(|facts| SessionKey { build: facts.build, name: facts.name.clone() });
                let recovered = key.and_then(|key| recovered.remove(&key));
                if let Some((recovered, session)) = recovered.zip(relay.session(id)) {
                    recorder.resume(Place::Session(id), *recovered, session.history().table().taken());
                }
            }
            Output::Brought(id) => {
                let session = relay.session(id);
                if let Some((session, save)) = session.and_then(|session| Some((session, session.save()?))) {
                    recorder.begin_after(id, session.facts(), session.started_unix_ms(), save);
                }
            }
            Output::Record(id, record) => recorder.record(Place::Session(id), &record),
            Output::Closed(id, tick) => {
                let Some(session) = relay.session(id) else { return };
                if let Some(rows) = session.rows(tick) {
                    recorder.close_tick(Place::Session(id), tick, rows);
                }
                if let Some(tracer) = tracer {
                    tracer.closed(now, session, tick);
                }
            }
            Output::Ended(id) => recorder.end(Place::Session(id)),
            Output::Judge(id, tick) => begin_replay(judge, Purpose::Dispute, relay, (id, tick)),
            Output::WantSave(id, tick) => begin_replay(judge, Purpose::Save, relay, (id, tick)),
            Output::Save(id) => {
                if let Some(save) = relay.session(id).and_then(Session::save) {
                    recorder.save(
                        Place::Session(id),
                        (save.tick, save.hash),
                        save.state.clone(),
                        save.table.to_bytes(),
                    );
                }
            }
            Output::Desync(id, report) => {
                if let Some(session) = relay.session(id) {
                    recorder.keep_report(Place::Session(id), session.facts(), *report);
                }
            }
            _ => {}
        }
    }

    fn say_goodbye(&self, member: Member, why: &Ended) {
        let participants = self.relay.sessions().flat_map(|(_, session)| session.participants());
        let Some(Participant { name, seat, arrivals, diagnostics, .. }) =
            { participants }.find(|participant| participant.member == member)
        else {
            tracing::info!(%why, "a member that had not joined has left");
            return;
        };
        let (seat, omissions) = (seat.map(|seat| seat.0), arrivals.map_or(0, |arrivals| arrivals.omissions));
        let connection = diagnostics.map_or("", |diagnostics| diagnostics.verdict());
        tracing::info!(name, seat, omissions, connection, %why, "a player has gone");
    }
}

impl RelaySide {
    /// Assigns player and seat to an open link before it joins.
    pub fn assign(&mut self, now: Time, member: Member, assignment: SeatAssignment) {
        self.follower.get_or_insert_with(|| Spectator::new(self.games.clone()));
        self.relay.handle(now, Input::Assigned(member, assignment));
    }

    /// The next outcome or crash of a session with assignments; asked for after [`RelaySide::drain`].
    pub fn poll_told(&mut self) -> Option<Told> {
        self.follower.as_mut()?.poll()
    }

    /// Closes a member's link with a reason.
    pub fn kick(&mut self, now: Time, member: Member, why: &'static str) {
        self.relay.handle(now, Input::Kick(member, why));
    }

    /// Ends a session and closes its links with a reason.
    pub fn end(&mut self, now: Time, key: SessionKey, why: &'static str) {
        self.relay.handle(now, Input::End(key, why));
    }
}
