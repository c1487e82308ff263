//! The gateway of a server: brings what visitors and hosts say to [`Gateway`], and carries out what that wants. It decides nothing
//! itself, and knows no game's traffic.

mod catalog;
pub(crate) mod command;
pub(crate) mod lists;
pub(crate) mod processes;
pub(crate) mod settings;
mod visitors;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use sametick_session::catalog::Catalog;
use sametick_session::gateway::{self, ClientId, Gateway, GatewayConfig};
use sametick_session::id::{HostId, Source};
use sametick_session::placing::FromHost;
use sametick_sim::Time;
use sametick_transport::clock::random;
use sametick_transport::control_connection::{ControlConnections, ControlId, Event};
use sametick_transport::hub::{Key, Links};
use sametick_transport::pace::network;
use sametick_wire::control;
use sametick_wire::identity::Token;

use crate::games::Games;
use crate::hosting::{Downward, Upward};
use catalog::Kept;
use lists::Lists;
use processes::Processes;
pub(crate) use visitors::SOCKET;
use visitors::Visitor;

/// This machine.
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A host that somebody speaks for.
struct Speaker {
    host: HostId,
    /// Where this machine has started it.
    port: Option<u16>,
}

/// A gateway and its driver.
pub(crate) struct GatewaySide {
    gateway: Gateway<Kept>,
    connections: ControlConnections,
    speakers: HashMap<ControlId, Speaker>,
    /// Over which connection a host was heard of last.
    hosts: HashMap<HostId, ControlId>,
    processes: Option<Processes>,
    visitors: HashMap<Key, Visitor>,
    clients: HashMap<ClientId, Key>,
    next: u64,
    /// Makes addresses into something that says nothing about them.
    salt: [u8; 32],
    games: Games,
    lists: Lists,
    wake_at: Option<Time>,
    is_ending: bool,
    /// Whether only those come in who have signed in, and whose tokens are to be looked up.
    is_strict: bool,
    questions: VecDeque<(u64, Token)>,
}

impl GatewaySide {
    /// Takes calls of hosts. With `processes`, it starts hosts itself.
    pub fn new(
        now: Time,
        connections: ControlConnections,
        catalog: Kept,
        mut processes: Option<Processes>,
        (lists, games): (Lists, Games),
    ) -> GatewaySide {
        if let Some(processes) = &mut processes {
            processes.begin(now);
        }
        let salt = random();
        let config = GatewayConfig {
            run: u32::from_le_bytes(random()),
            grows: processes.is_some(),
            // Whatever comes through a proxy comes from here as well.
            exempt: Some(source_of(&salt, LOCALHOST)),
            ..GatewayConfig::default()
        };
        GatewaySide {
            gateway: Gateway::new(now, catalog, config),
            connections,
            speakers: HashMap::new(),
            hosts: HashMap::new(),
            processes,
            visitors: HashMap::new(),
            clients: HashMap::new(),
            next: 0,
            salt,
            lists,
            games,
            wake_at: Some(now),
            is_ending: false,
            is_strict: false,
            questions: VecDeque::new(),
        }
    }

    /// From now on only those come in who show a token that this server has given to somebody who has signed in.
    pub fn set_strict(&mut self) {
        self.is_strict = true;
    }

    /// When it wants to be woken.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at.into_iter().chain(self.processes.as_ref().and_then(Processes::wake_at)).min()
    }

    /// Takes no more sessions, and has the hosts it has started end: those that play may go on for so long.
    pub fn end(&mut self, now: Time, within_us: u64) {
        self.is_ending = true;
        self.gateway.handle(now, gateway::Input::Drain);
        if let Some(processes) = &mut self.processes {
            processes.end(now, within_us);
        }
    }

    /// Whether it was told to end, and all hosts have ended that it has started.
    pub fn has_ended(&self) -> bool {
        self.is_ending && self.processes.as_ref().is_none_or(Processes::is_done)
    }

    /// Where a host is, as clients are told it.
    pub fn address_of(&self, now: Time, host: HostId) -> Option<String> {
        self.gateway.catalog().host(now, host).map(|state| state.address)
    }

    /// Whether nobody talks any more.
    pub fn is_empty(&self) -> bool {
        self.visitors.is_empty()
    }

    /// The process ends: what is known is written down.
    pub fn close(self) {
        self.gateway.into_catalog().close();
    }

    /// Time has passed.
    pub fn on_time(&mut self, now: Time) {
        self.gateway.handle(now, gateway::Input::Timeout);
    }

    /// Carries out what the gateway wants.
    pub fn drain(&mut self, now: Time, links: &mut Links) {
        while let Some(event) = self.connections.poll() {
            self.heard(now, event);
        }
        loop {
            match self.gateway.poll_output() {
                gateway::Output::Reply(client, seq, reply) => self.reply(links, client, seq, reply),
                gateway::Output::Host(host, ask) => {
                    if let Some(connection) = self.hosts.get(&host) {
                        self.connections.send(*connection, control::to_bytes(&Downward::Asked(ask)));
                    }
                }
                gateway::Output::Lost(host, sessions) => {
                    tracing::error!(?host, sessions = sessions.len(), "a host is lost");
                }
                gateway::Output::WakeAt(at) => {
                    self.wake_at = at;
                    break;
                }
            }
        }
        self.run_processes(now);
        let again = self.lists.show(now, self.gateway.catalog());
        self.wake_at = self.wake_at.into_iter().chain(again).min();
    }

    fn run_processes(&mut self, now: Time) {
        let wanting = self.gateway.wanting();
        let Some(processes) = &mut self.processes else { return };
        processes.wanted(now, wanting);
        for (port, said) in processes.carry_out(now) {
            // One that has called again may have an old connection that nobody has noticed to be dead.
            let is_it = |connection: &ControlId, speaker: &Speaker| {
                speaker.port == Some(port) && self.hosts.get(&speaker.host) == Some(connection)
            };
            let speaker = self.speakers.iter().find(|(connection, speaker)| is_it(connection, speaker));
            if let Some((connection, _)) = speaker {
                self.connections.send(*connection, control::to_bytes(&said));
            }
        }
    }

    fn heard(&mut self, now: Time, event: Event) {
        match event {
            Event::Opened(_) => {}
            Event::Closed(connection) => {
                if let Some(speaker) = self.speakers.remove(&connection)
                    && self.hosts.get(&speaker.host) == Some(&connection)
                {
                    self.hosts.remove(&speaker.host);
                }
            }
            Event::Message(connection, bytes) => match control::from_bytes(&bytes) {
                Ok(Upward::Enlist { host, port }) => {
                    self.speakers.insert(connection, Speaker { host, port });
                    self.hosts.insert(host, connection);
                }
                Ok(Upward::Said(said)) => self.host_said(now, connection, said),
                Err(error) => {
                    tracing::error!(%error, "a host says what cannot be understood: is it of another version?");
                    self.connections.close(connection);
                }
            },
        }
    }

    fn host_said(&mut self, now: Time, connection: ControlId, said: FromHost) {
        let Some(speaker) = self.speakers.get(&connection) else { return };
        let (host, port) = (speaker.host, speaker.port);
        if let (FromHost::Beat(beat), Some(port), Some(processes)) = (&said, port, &mut self.processes) {
            let sessions = beat.sessions.len() + usize::from(beat.others);
            processes.heard(now, port, sessions, beat.is_draining);
        }
        self.gateway.handle(now, gateway::Input::Host(host, said));
    }
}

/// Where somebody comes from, for limits. All of this machine is one.
fn source_of(salt: &[u8; 32], ip: IpAddr) -> Source {
    let mut hasher = blake3::Hasher::new_keyed(salt);
    match if ip.to_canonical().is_loopback() { LOCALHOST } else { network(ip) } {
        IpAddr::V4(ip) => hasher.update(&ip.octets()),
        IpAddr::V6(ip) => hasher.update(&ip.octets()),
    };
    let mut source = [0; 8];
    hasher.finalize_xof().fill(&mut source);
    Source(u64::from_le_bytes(source))
}
