//! The relay on a hub: links in, links out, what it says into logs, and nothing of its own to decide.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

use sametick_lockstep::relay::{Input, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::session::{Member, Participant, THROWN_OUT};
use sametick_sim::record::Leaving;
use sametick_sim::{SchemaHash, Tick};
use sametick_transport::hub::{App, Ended, Event, Key, Links};
use sametick_wire::hello::{Intent, Proven, Refusal};
use sametick_wire::{Channel, Closed, Time};

use crate::games::Games;
use crate::judge::Judge;
use crate::lobby::{Lobby, LobbyKeeper};
use crate::recorder::Recorder;
use crate::status::Status;
use crate::trace::Trace;
use crate::tracer::Tracer;

/// A relay for any game, as an application of a hub.
pub struct RelayApp {
    relay: Relay,
    recorder: Recorder,
    judge: Judge,
    members: HashMap<Key, Member>,
    keys: HashMap<Member, Key>,
    /// What a link that is about to open asked for.
    opening: HashMap<Key, (SessionKey, SchemaHash)>,
    next: u64,
    wake_at: Option<Time>,
    buf: Vec<u8>,
    stopping: bool,
    tracer: Option<Tracer>,
    status: Option<Status>,
    lobby: Option<LobbyKeeper>,
}

impl RelayApp {
    /// A relay without sessions that keeps what happens below this folder. It relays any game; those it is given it can also
    /// replay, to decide a dispute.
    pub fn new(config: RelayConfig, data: &Path, games: Games) -> RelayApp {
        RelayApp {
            relay: Relay::new(config),
            recorder: Recorder::new(data, games.clone()),
            judge: Judge::new(games),
            members: HashMap::new(),
            keys: HashMap::new(),
            opening: HashMap::new(),
            next: 0,
            wake_at: None,
            buf: Vec::new(),
            stopping: false,
            tracer: None,
            status: None,
            lobby: None,
        }
    }

    /// Writes down every message from now on.
    pub fn set_trace(&mut self, trace: Trace) {
        self.tracer = Some(Tracer::new(trace));
    }

    /// The machine itself, to look at.
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    /// Writes what goes on into a file from now on.
    pub fn set_status(&mut self, status: Status) {
        self.status = Some(status);
    }

    /// Shows who is there from now on.
    pub(crate) fn set_lobby(&mut self, lobby: Lobby) {
        self.lobby = Some(LobbyKeeper::new(lobby));
    }

    /// Notes that somebody may have come or gone.
    fn change_lobby(&mut self, now: Time) {
        if let Some(lobby) = &mut self.lobby {
            lobby.changed(now);
        }
    }

    /// Tells everybody and stops when they have been told.
    pub fn stop(&mut self, links: &mut Links) {
        self.stopping = true;
        links.keys().into_iter().for_each(|key| links.close(key, 0, "the relay stops"));
    }

    /// Waits until everything is written. Returns whether it is.
    pub fn close(self) -> bool {
        self.recorder.close()
    }

    fn drain(&mut self, now: Time, links: &mut Links) {
        while let Some((id, tick, state)) = self.judge.poll() {
            self.relay.handle(now, Input::Verdict(id, tick, state));
        }
        if let Some(status) = &mut self.status {
            status.look(now, &self.relay);
        }
        self.wake_at = loop {
            match self.relay.poll_output(&mut self.buf) {
                Output::Send(member, channel) => {
                    let Some(key) = self.keys.get(&member) else { continue };
                    if let Some(tracer) = &mut self.tracer {
                        tracer.sent(&self.relay, member, channel, &self.buf);
                    }
                    if let Err(error) = links.send(*key, channel, &self.buf) {
                        links.close(*key, 2, &error.to_string());
                    }
                }
                Output::Close(member, why) => {
                    if let Some(key) = self.keys.get(&member) {
                        tracing::warn!(why, "a player was closed");
                        links.close(*key, THROWN_OUT, why);
                    }
                }
                Output::WakeAt(at) => break Some(at),
                Output::Wait => break None,
                other => self.write_down(now, other),
            }
        };
        let lobby_at = self.lobby.as_mut().and_then(|lobby| lobby.look(now, &self.relay));
        self.wake_at = self.wake_at.into_iter().chain(lobby_at).min();
    }

    /// What the relay says for others to read later.
    fn write_down(&mut self, now: Time, output: Output) {
        // The first tick ends the waiting.
        if !matches!(output, Output::Closed(_, tick) if tick > Tick(1)) {
            self.change_lobby(now);
        }
        let RelayApp { relay, recorder, judge, tracer, .. } = self;
        match output {
            Output::Begun(id) => {
                if let Some(session) = relay.session(id) {
                    recorder.begin(id, session.facts());
                }
            }
            Output::Record(id, record) => recorder.record(id, &record),
            Output::Closed(id, tick) => {
                let Some(session) = relay.session(id) else { return };
                if let Some(rows) = session.rows(tick) {
                    recorder.close_tick(id, tick, rows);
                }
                if let Some(tracer) = tracer {
                    tracer.closed(now, session, tick);
                }
            }
            Output::Ended(id) => recorder.end(id),
            Output::Judge(id, tick) => {
                if let Some(session) = relay.session(id) {
                    judge.begin(id, session, tick);
                }
            }
            Output::Desync(id, report) => {
                if let Some(session) = relay.session(id) {
                    recorder.keep_report(id, session.facts(), *report);
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

impl App for RelayApp {
    fn admit(&mut self, _: Time, key: Key, from: SocketAddr, proven: &Proven) -> Result<(), Refusal> {
        if self.stopping {
            return Err(Refusal::Other("the relay stops".into()));
        }
        let Intent::Join { session } = &proven.hello.intent else {
            return Err(Refusal::Other("this is a relay: join a session".into()));
        };
        tracing::info!(%from, name = proven.hello.name, session, "a player has come");
        let identity = proven.hello.identity;
        let session = SessionKey { build: identity.build, name: session.clone() };
        self.opening.insert(key, (session, identity.schema));
        Ok(())
    }

    fn handle(&mut self, now: Time, links: &mut Links, event: Event<'_>) {
        match event {
            Event::Opened(key) => {
                let Some((session, schema)) = self.opening.remove(&key) else { return };
                let member = Member(self.next);
                self.next += 1;
                if let Some(tracer) = &mut self.tracer {
                    tracer.opened(member, &session);
                }
                self.members.insert(key, member);
                self.keys.insert(member, key);
                self.relay.handle(now, Input::Opened(member, session, schema));
            }
            Event::Message(key, channel, bytes) => {
                let Some(member) = self.members.get(&key).copied() else { return };
                if channel == Channel::Control {
                    self.change_lobby(now);
                }
                if let Some(tracer) = &mut self.tracer {
                    tracer.received(now, &self.relay, member, channel, bytes);
                }
                self.relay.handle(now, Input::Message(member, channel, bytes));
            }
            Event::Ended(key, why, _) => {
                let Some(member) = self.members.remove(&key) else { return };
                self.keys.remove(&member);
                if let Some(tracer) = &mut self.tracer {
                    tracer.ended(member);
                }
                self.say_goodbye(member, why);
                self.change_lobby(now);
                self.relay.handle(now, Input::Closed(member, leaving(why)));
            }
            Event::Timeout => self.relay.handle(now, Input::Timeout),
        }
        self.drain(now, links);
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn is_done(&self) -> bool {
        self.stopping && self.members.is_empty()
    }
}

/// How the log calls the end of a link.
fn leaving(ended: &Ended) -> Leaving {
    match ended {
        Ended::Link(Closed::TimedOut) => Leaving::TimedOut,
        Ended::Link(Closed::Here | Closed::Violation(_)) => Leaving::Kicked,
        _ => Leaving::Left,
    }
}
