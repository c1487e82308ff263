//! Test harness: a room of arena with scripts and a native view, in virtual time and without a network.

use std::collections::{BTreeMap, VecDeque};

use sametick::rooms::envelope::Encoding;
use sametick::rooms::script::{AnyScript, Input, Output, Script, claim_of};
use sametick_arena::{Arena, Setup};
use sametick_room::host::{self, Host};
use sametick_room::view::{self, JoinAs, View};
use sametick_room::{HostConfig, view::Stats};
use sametick_sim::Time;
use sametick_sim::record::{Leaving, Record};
use sametick_wire::pacer::Path;
use sametick_wire::{Channel, Member};
use serde_json::{Value, json};

/// A script, and the messages it has received.
pub struct Actor {
    member: Member,
    script: Script<Arena>,
    wake_at: Option<Time>,
    /// The messages that the test has not taken yet.
    pub told: VecDeque<(Encoding, Value)>,
    /// The state of a client that merges snapshots.
    pub known: Value,
    pub hung_up: bool,
}

/// A room with scripts.
pub struct Stage {
    pub now: Time,
    pub host: Host<Arena>,
    pub actors: Vec<Actor>,
    /// How often the log has recorded a join.
    pub joined: usize,
    native: (Member, View<Arena>),
    to_host: Vec<(Member, Channel, Vec<u8>)>,
    next: u64,
}

pub fn join_as(name: &str, setup: Setup) -> JoinAs<Arena> {
    let (commit, name) = (String::new(), name.to_owned());
    JoinAs { name, commit, setup, seed: setup.seed, seats: setup.seats, watch: false, listed: true }
}

impl Stage {
    /// A room with a native player on seat 0.
    pub fn new(setup: Setup) -> Stage {
        let config = HostConfig { seats: setup.seats, secret: [7; 32], ..HostConfig::default() };
        let view = View::new(Time::ZERO, &join_as("native", setup), Path::default());
        let host = Host::new(Time::ZERO, &setup, config);
        let native = (Member(0), view);
        let mut stage = Stage {
            now: Time::ZERO,
            host,
            actors: Vec::new(),
            joined: 0,
            native,
            to_host: Vec::new(),
            next: 1,
        };
        stage.run_millis(500);
        stage
    }

    pub fn enter(&mut self, name: &str) -> usize {
        self.enter_with(name, None, false)
    }

    pub fn enter_with(&mut self, name: &str, token: Option<&str>, watch: bool) -> usize {
        let join = JoinAs { watch, ..join_as(name, Setup::default()) };
        let resume = token.map(|token| claim_of(token).unwrap());
        let script = Script::new(self.now, "den".into(), &join, resume, None);
        self.actors.push(Actor {
            member: Member(self.next),
            script,
            wake_at: Some(self.now),
            told: VecDeque::new(),
            known: json!({}),
            hung_up: false,
        });
        self.next += 1;
        self.run_millis(1);
        self.actors.len() - 1
    }

    pub fn leave(&mut self, actor: usize) {
        self.actors[actor].hung_up = true;
        self.host.handle(self.now, host::Input::Closed(self.actors[actor].member, Leaving::Left));
    }

    /// Sends a script's message as JSON.
    pub fn say(&mut self, actor: usize, message: &Value) {
        self.say_bytes(actor, Encoding::Json, message.to_string().as_bytes());
    }

    /// Sends a script's message as MessagePack.
    pub fn say_packed(&mut self, actor: usize, message: &Value) {
        self.say_bytes(actor, Encoding::MessagePack, &rmp_serde::to_vec_named(message).unwrap());
    }

    pub fn say_bytes(&mut self, actor: usize, encoding: Encoding, bytes: &[u8]) {
        self.tell(actor, Input::Said(encoding, bytes));
    }

    pub fn tell(&mut self, actor: usize, input: Input<'_>) {
        self.actors[actor].script.handle(self.now, input);
        self.drain(actor);
    }

    fn drain(&mut self, index: usize) {
        let actor = &mut self.actors[index];
        let mut buf = Vec::new();
        actor.wake_at = loop {
            match actor.script.poll_output(&mut buf) {
                Output::Send(channel) => self.to_host.push((actor.member, channel, buf.clone())),
                Output::Say(encoding) => {
                    let value: Value = match encoding {
                        Encoding::Json => serde_json::from_slice(&buf).unwrap(),
                        Encoding::MessagePack => rmp_serde::from_slice(&buf).unwrap(),
                    };
                    assert_eq!(value["v"], 2);
                    merge(&mut actor.known, &value);
                    actor.told.push_back((encoding, value));
                }
                Output::HangUp => {
                    if !std::mem::replace(&mut actor.hung_up, true) {
                        self.host.handle(self.now, host::Input::Closed(actor.member, Leaving::Left));
                    }
                    break None;
                }
                Output::WakeAt(at) => break Some(at),
                Output::Wait => break None,
            }
        };
    }

    /// Lets time pass.
    pub fn run_millis(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now.plus_micros(1_000);
            self.host.handle(self.now, host::Input::Timeout);
            self.drain_host();
            for index in 0..self.actors.len() {
                if self.actors[index].wake_at.is_some_and(|at| at <= self.now) && !self.actors[index].hung_up
                {
                    self.tell(index, Input::Timeout);
                }
            }
            self.run_native();
            for (member, channel, bytes) in std::mem::take(&mut self.to_host) {
                self.host.handle(self.now, host::Input::Message(member, channel, &bytes));
            }
            self.drain_host();
        }
    }

    fn drain_host(&mut self) {
        let mut buf = Vec::new();
        loop {
            match self.host.poll_output(&mut buf) {
                host::Output::Send(member, channel) if member == self.native.0 => {
                    self.native.1.handle(self.now, view::Input::Message(channel, &buf)).unwrap();
                }
                host::Output::Send(member, channel) => {
                    if let Some(index) = self.actor(member) {
                        self.tell(index, Input::Message(channel, &buf));
                    }
                }
                host::Output::Close(member, why) => {
                    if let Some(index) = self.actor(member) {
                        self.tell(index, Input::Closed(why));
                    }
                }
                host::Output::WakeAt(_) => return,
                host::Output::Record(Record::Joined { .. }) => self.joined += 1,
                host::Output::Record(_)
                | host::Output::Stepped(_)
                | host::Output::Keep(_)
                | host::Output::Kept(_) => {}
            }
        }
    }

    fn actor(&self, member: Member) -> Option<usize> {
        self.actors.iter().position(|actor| actor.member == member && !actor.hung_up)
    }

    fn run_native(&mut self) {
        let (member, view) = &mut self.native;
        let mut buf = Vec::new();
        view.look(self.now);
        loop {
            let input = match view.poll_output(&mut buf) {
                view::Output::Send(channel) => {
                    self.to_host.push((*member, channel, buf.clone()));
                    continue;
                }
                view::Output::WantInput(_) => view::Input::Local(sametick_arena::Input::default()),
                view::Output::WantPath => view::Input::Path(Path::default()),
                view::Output::WakeAt(at) if at <= self.now => view::Input::Timeout,
                view::Output::WakeAt(_) | view::Output::Wait => return,
            };
            view.handle(self.now, input).unwrap();
        }
    }

    /// The native player's statistics.
    pub fn native(&self) -> Stats {
        self.native.1.stats()
    }
}

impl Actor {
    /// The next message of a kind for a script; those before it are dropped.
    #[track_caller]
    pub fn next(&mut self, kind: &str) -> Value {
        self.find(kind).unwrap_or_else(|| panic!("no {kind} has come"))
    }

    pub fn find(&mut self, kind: &str) -> Option<Value> {
        while let Some((_, value)) = self.told.pop_front() {
            if value["kind"] == kind {
                return Some(value);
            }
        }
        None
    }

    /// All messages of a kind for a script that were not taken yet.
    pub fn all(&mut self, kind: &str) -> Vec<Value> {
        self.told.drain(..).map(|(_, value)| value).filter(|value| value["kind"] == kind).collect()
    }
}

/// Merges a snapshot as a client in any language does.
fn merge(known: &mut Value, snapshot: &Value) {
    if snapshot["kind"] != "snapshot" {
        return;
    }
    if snapshot["mode"] == "full" {
        *known = json!({"features": {}});
    }
    for name in ["tick", "ackSeq", "players", "own"] {
        if let Some(value) = snapshot.get(name) {
            known[name] = value.clone();
        }
    }
    for (feature, kinds) in snapshot["features"].as_object().unwrap() {
        for (kind, entities) in kinds.as_object().unwrap().iter().filter(|(kind, _)| *kind != "removed") {
            for (id, entity) in entities.as_object().unwrap() {
                known["features"][feature][kind][id] = entity.clone();
            }
        }
        let removed: BTreeMap<String, Vec<u32>> = kinds
            .get("removed")
            .map_or_else(BTreeMap::new, |gone| serde_json::from_value(gone.clone()).unwrap());
        for (kind, ids) in removed {
            for id in ids {
                let entities = known["features"][feature][&kind].as_object_mut().unwrap();
                assert!(entities.remove(&id.to_string()).is_some(), "what is removed was known");
            }
        }
    }
}
