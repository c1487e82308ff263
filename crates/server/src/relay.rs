//! The relay's side of a server: what it hears and says, into logs and traces, and nothing of its own to decide.

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

/// How long a server that stops takes to see what its sessions have led to.
const CLOSING: Duration = Duration::from_secs(10);

/// Sessions that have not come this far when it stops are not saved: nobody has played yet.
const LEAST_SAVED: Tick = Tick(300);

/// A session that was looked for, as the relay wants to know it, and what is left of it.
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

/// A relay for any game.
pub(crate) struct RelaySide {
    relay: Relay,
    judge: Judge,
    /// Since links take part on assignment.
    follower: Option<Spectator>,
    games: Games,
    search: Option<Search<Find>>,
    /// What is left of the sessions that are about to go on.
    recovered: BTreeMap<SessionKey, Box<RecoveredSession>>,
    tracer: Option<Tracer>,
    wake_at: Option<Time>,
    buf: Vec<u8>,
}

impl RelaySide {
    /// Without sessions. It relays any game; those it is given it can also replay, to decide a dispute.
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

    /// Writes down every message from now on.
    pub fn set_trace(&mut self, trace: Trace) {
        self.tracer = Some(Tracer::new(trace));
    }

    /// Makes saves of sessions of these games itself before it asks players.
    pub fn set_keeper(&mut self, games: &[String]) -> Result<(), UnknownGame> {
        self.judge.set_keeper(games)
    }

    /// Has sessions found again from now on, if the relay asks for them.
    pub fn set_finder(&mut self, finder: Rc<Finder>, waker: HubWaker) {
        self.search = Some(Search::new(finder, Mode::Lockstep, waker));
    }

    /// Saves what goes on as it is, by replaying it, and waits until that is kept. Returns whether it is.
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
            // Of a game that is not known there is only the log.
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

    /// Writes down what there is when nobody is left to be told anything.
    fn write_rest(&mut self, recorder: &mut Recorder) {
        loop {
            match self.relay.poll_output(&mut self.buf) {
                Output::WakeAt(_) | Output::Wait => return,
                output => self.write_down(Time::ZERO, recorder, output),
            }
        }
    }

    /// The machine itself, to look at.
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    /// When it wants to be woken.
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

    /// Time has passed.
    pub fn on_time(&mut self, now: Time) {
        self.relay.handle(now, Input::Timeout);
    }

    /// Carries out what the relay wants. Returns whether somebody may have come or gone.
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
                    // The first tick ends the waiting.
                    changed |= !matches!(other, Output::Closed(_, tick) if tick > Tick(1));
                    self.write_down(now, sink.recorder, other);
                }
            }
        };
        // Nobody has waited for what is left.
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

    /// What the relay says for others to read later.
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
            tracing::info!(%why, "somebody who had not joined has gone");
            return;
        };
        let (seat, omissions) = (seat.map(|seat| seat.0), arrivals.map_or(0, |arrivals| arrivals.omissions));
        let connection = diagnostics.map_or("", |diagnostics| diagnostics.verdict());
        tracing::info!(name, seat, omissions, connection, %why, "a player has gone");
    }
}

impl RelaySide {
    /// As whom a link takes part that has opened, before it joins.
    pub fn assign(&mut self, now: Time, member: Member, assignment: SeatAssignment) {
        self.follower.get_or_insert_with(|| Spectator::new(self.games.clone()));
        self.relay.handle(now, Input::Assigned(member, assignment));
    }

    /// What has become of a session whose links take part on assignment; asked for after [`RelaySide::drain`].
    pub fn poll_told(&mut self) -> Option<Told> {
        self.follower.as_mut()?.poll()
    }

    /// Somebody is to go, and is told why.
    pub fn kick(&mut self, now: Time, member: Member, why: &'static str) {
        self.relay.handle(now, Input::Kick(member, why));
    }

    /// A session is to be over: whoever is there is told why.
    pub fn end(&mut self, now: Time, key: SessionKey, why: &'static str) {
        self.relay.handle(now, Input::End(key, why));
    }
}
