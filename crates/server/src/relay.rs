//! The relay on a hub: links in, links out, and nothing of its own to decide.

use std::collections::HashMap;
use std::net::SocketAddr;

use sametick_lockstep::relay::{Input, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::session::Member;
use sametick_sim::SchemaHash;
use sametick_sim::record::Leaving;
use sametick_transport::hub::{App, Ended, Event, Key, Links};
use sametick_wire::hello::{Intent, Proven, Refusal};
use sametick_wire::{Closed, Time};

/// A relay for any game, as an application of a hub.
pub struct RelayApp {
    relay: Relay,
    members: HashMap<Key, Member>,
    keys: HashMap<Member, Key>,
    /// What a link that is about to open asked for.
    opening: HashMap<Key, (SessionKey, SchemaHash)>,
    next: u64,
    wake_at: Option<Time>,
    buf: Vec<u8>,
    stopping: bool,
}

impl RelayApp {
    /// A relay without sessions.
    pub fn new(config: RelayConfig) -> RelayApp {
        RelayApp {
            relay: Relay::new(config),
            members: HashMap::new(),
            keys: HashMap::new(),
            opening: HashMap::new(),
            next: 0,
            wake_at: None,
            buf: Vec::new(),
            stopping: false,
        }
    }

    /// Tells everybody and stops when they have been told.
    pub fn stop(&mut self, links: &mut Links) {
        self.stopping = true;
        links.keys().into_iter().for_each(|key| links.close(key, 0, "the relay stops"));
    }

    fn drain(&mut self, links: &mut Links) {
        loop {
            match self.relay.poll_output(&mut self.buf) {
                Output::Send(member, channel) => {
                    let Some(key) = self.keys.get(&member) else { continue };
                    if let Err(error) = links.send(*key, channel, &self.buf) {
                        links.close(*key, 2, &error.to_string());
                    }
                }
                Output::Close(member, why) => {
                    if let Some(key) = self.keys.get(&member) {
                        links.close(*key, 1, why);
                    }
                }
                Output::WakeAt(at) => {
                    self.wake_at = Some(at);
                    return;
                }
                Output::Wait => {
                    self.wake_at = None;
                    return;
                }
                _ => {}
            }
        }
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
                self.members.insert(key, member);
                self.keys.insert(member, key);
                self.relay.handle(now, Input::Opened(member, session, schema));
            }
            Event::Message(key, channel, bytes) => {
                let Some(member) = self.members.get(&key) else { return };
                self.relay.handle(now, Input::Message(*member, channel, bytes));
            }
            Event::Ended(key, why, _) => {
                let Some(member) = self.members.remove(&key) else { return };
                self.keys.remove(&member);
                self.relay.handle(now, Input::Closed(member, leaving(why)));
                tracing::info!(%why, "a player has gone");
            }
            Event::Timeout => self.relay.handle(now, Input::Timeout),
        }
        self.drain(links);
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
