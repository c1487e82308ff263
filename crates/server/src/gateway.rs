//! The driver of [`Gateway`]: passes messages of visitors and hosts to it, and carries out its outputs. It decides
//! nothing itself and handles no game traffic.

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
use sametick_transport::rate_limit::network;
use sametick_wire::control;
use sametick_wire::identity::Token;

use crate::games::Games;
use crate::hosting::{Downward, Upward};
use catalog::Kept;
use lists::Lists;
use processes::Processes;
pub(crate) use visitors::SOCKET;
use visitors::Visitor;

/// The loopback address.
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A connected host.
struct Speaker {
    host: HostId,
    /// Its port, if this machine started it.
    port: Option<u16>,
}

/// The gateway with its connections, processes and files.
pub(crate) struct GatewaySide {
    gateway: Gateway<Kept>,
    connections: ControlConnections,
    speakers: HashMap<ControlId, Speaker>,
    /// The latest connection of each host.
    hosts: HashMap<HostId, ControlId>,
    processes: Option<Processes>,
    visitors: HashMap<Key, Visitor>,
    clients: HashMap<ClientId, Key>,
    next: u64,
    /// Salt for hashing addresses, so that limits do not store them.
    salt: [u8; 32],
    games: Games,
    lists: Lists,
    wake_at: Option<Time>,
    is_ending: bool,
    /// Whether visitors must have signed in; then their tokens are looked up.
    is_strict: bool,
    questions: VecDeque<(u64, Token)>,
}

impl GatewaySide {
    /// Accepts connections of hosts. With `processes`, it starts hosts itself.
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
            // Clients behind a local proxy have this address as well.
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

    /// Requires a token of this server's sign-in from now on.
    pub fn set_strict(&mut self) {
        self.is_strict = true;
    }

    /// The next wake time.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at.into_iter().chain(self.processes.as_ref().and_then(Processes::wake_at)).min()
    }

    /// Takes no more sessions, and ends the hosts it started; running games may go on for `within_us`.
    pub fn end(&mut self, now: Time, within_us: u64) {
        self.is_ending = true;
        self.gateway.handle(now, gateway::Input::Drain);
        if let Some(processes) = &mut self.processes {
            processes.end(now, within_us);
        }
    }

    /// Whether it was told to end and all hosts that it started have ended.
    pub fn has_ended(&self) -> bool {
        self.is_ending && self.processes.as_ref().is_none_or(Processes::is_done)
    }

    /// The address of a host, as clients are told it.
    pub fn address_of(&self, now: Time, host: HostId) -> Option<String> {
        self.gateway.catalog().host(now, host).map(|state| state.address)
    }

    /// Whether there are no visitors and hosts left.
    pub fn is_empty(&self) -> bool {
        self.visitors.is_empty()
    }

    /// Writes the catalog; the process ends.
    pub fn close(self) {
        self.gateway.into_catalog().close();
    }

    /// Handles timers that are due.
    pub fn on_time(&mut self, now: Time) {
        self.gateway.handle(now, gateway::Input::Timeout);
    }

    /// Carries out the gateway's outputs.
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
            // A host that has reconnected may have an old connection that is dead but not closed yet.
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

/// The source of a visitor for rate limits. All of this machine is one source.
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
