//! Whatever gateways, hosts, players and strangers send to a host and a gateway, and whatever is on disk, neither
//! panics, sends for ever or gets into an impossible state.
//!
//! The input: steps. A step is one byte: the event, with a message as a part where one is sent.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeMap;

use sametick_fuzz::part;
use sametick_session::catalog::Remembered;
use sametick_session::gateway::{self, Asking, ClientId, Gateway, GatewayConfig};
use sametick_session::host::{self, GatewayId, Host, HostConfig, Offer};
use sametick_session::id::{HostId, Incarnation, SessionId, Source};
use sametick_session::lobby::Reply;
use sametick_session::message::Event;
use sametick_session::name::Name;
use sametick_session::plan::Plan;
use sametick_session::settings::Mode;
use sametick_sim::Time;
use sametick_wire::identity::{PlayerId, Token};
use sametick_wire::{Member, control};

/// The most outputs of one step.
const MAX_OUTPUTS: usize = 5_000;

/// A host with some sessions, a gateway, and the files on disk.
const ALLOWANCE: usize = 8 << 20;

const WAITS_US: [u64; 4] = [200_000, 3_000_000, 61_000_000, 301_000_000];

sametick_fuzz::target!(allowing ALLOWANCE, |bytes: &[u8]| {
    let mut town = Town::new();
    let mut rest = bytes;
    while let Some((step, after)) = rest.split_first() {
        rest = town.step(*step, after);
        town.drain();
    }
});

struct Town {
    now: Time,
    life: u32,
    host: Host,
    gateway: Gateway<Remembered>,
    disk: BTreeMap<SessionId, Vec<u8>>,
    ticket: String,
    token: Option<(SessionId, PlayerId, Token)>,
    next: u64,
}

fn config(life: u32) -> HostConfig {
    let plan = Plan::uniform("Ship", 2, &["helm", "guns"]).unwrap();
    HostConfig {
        id: HostId(1),
        life: Incarnation(life),
        secret: [1; 32],
        address: "here".into(),
        capacity: 4,
        offers: vec![Offer { game: Name::parse("bridge").unwrap(), mode: Mode::Room, plan }],
    }
}

impl Town {
    fn new() -> Town {
        let now = Time::from_micros(1_000_000);
        Town {
            now,
            life: 1,
            host: Host::new(now, config(1), &[], None).0,
            gateway: Gateway::new(now, Remembered::default(), GatewayConfig::default()),
            disk: BTreeMap::new(),
            ticket: String::new(),
            token: None,
            next: 0,
        }
    }

    fn step<'a>(&mut self, step: u8, rest: &'a [u8]) -> &'a [u8] {
        let which = usize::from(step >> 4);
        let member = Member(self.next.saturating_sub(which as u64));
        self.next += 1;
        let session = self.host.sessions().nth(which).map(|session| session.id());
        let (said, after) = part(rest);
        let input = match step & 15 {
            0 => {
                self.now = self.now.plus_micros(WAITS_US[which & 3]);
                return rest;
            }
            1 => match control::from_bytes(said) {
                Ok(ask) => host::Input::Gateway(GatewayId(1), ask),
                Err(_) => return after,
            },
            2 => {
                if let Ok(said) = control::from_bytes(said) {
                    self.gateway
                        .handle(self.now, gateway::Input::Host(HostId(1 + u32::from(step >> 7)), said));
                }
                return after;
            }
            3 => match serde_json::from_slice(said) {
                Ok(request) => host::Input::Say(member, 1, request),
                Err(_) => return after,
            },
            4 => {
                if let Ok(ask) = serde_json::from_slice(said) {
                    let (client, player, source) =
                        (ClientId(1), PlayerId(which as u128), Source(which as u64));
                    let asking = Asking { client, seq: self.next, player, source, ask };
                    self.gateway.handle(self.now, gateway::Input::Ask(asking));
                }
                return after;
            }
            5 => host::Input::Arrive(Member(self.next), String::from_utf8_lossy(said).into_owned()),
            11 => {
                self.restart(Some(said));
                return after;
            }
            quiet => return self.quiet(quiet, member, session, rest),
        };
        self.host.handle(self.now, input);
        after
    }

    /// An event without a message.
    fn quiet<'a>(
        &mut self,
        step: u8,
        member: Member,
        session: Option<SessionId>,
        rest: &'a [u8],
    ) -> &'a [u8] {
        let input = match (step, session, self.token) {
            (6, ..) => host::Input::Arrive(Member(self.next), self.ticket.clone()),
            (7, _, Some((session, player, token))) => {
                host::Input::Resume(Member(self.next), session, player, token)
            }
            (8, ..) => host::Input::Cut(member),
            (9, Some(session), _) => host::Input::Ended(session, "{}".into()),
            (10, Some(session), _) => host::Input::Crashed(session, 1_000),
            (12, ..) => {
                let config = GatewayConfig { run: self.next as u32, ..GatewayConfig::default() };
                self.gateway = Gateway::new(self.now, Remembered::default(), config);
                return rest;
            }
            (13, ..) => host::Input::Drain(1_000_000),
            (14, ..) => {
                self.restart(None);
                return rest;
            }
            _ => host::Input::Timeout,
        };
        self.host.handle(self.now, input);
        rest
    }

    /// Restarts with the files on disk, and perhaps arbitrary content that looks as if it had been written.
    fn restart(&mut self, found: Option<&[u8]>) {
        self.life += 1;
        let mut stored: Vec<Vec<u8>> = self.disk.values().cloned().collect();
        stored.extend(found.map(|found| {
            let bytes = [&[2], found].concat();
            let check = blake3::hash(&bytes);
            [&bytes[..], &check.as_bytes()[..8]].concat()
        }));
        self.host = Host::new(self.now, config(self.life), &stored, Some(1_000)).0;
    }

    fn drain(&mut self) {
        self.gateway.handle(self.now, gateway::Input::Timeout);
        self.host.handle(self.now, host::Input::Timeout);
        for _ in 0..MAX_OUTPUTS {
            match self.gateway.poll_output() {
                gateway::Output::Host(HostId(1), ask) => {
                    self.host.handle(self.now, host::Input::Gateway(GatewayId(1), ask));
                }
                gateway::Output::Reply(_, _, Reply::Go { ticket, .. }) => self.ticket = ticket.0,
                gateway::Output::WakeAt(_) if !self.drain_host() => {
                    assert!(self.host.sessions().all(|session| session.is_sound()));
                    return;
                }
                _ => {}
            }
        }
        panic!("they talk for ever");
    }

    /// Takes the host's outputs, up to one that the gateway has to handle. Returns whether there was one.
    fn drain_host(&mut self) -> bool {
        for _ in 0..MAX_OUTPUTS {
            match self.host.poll_output() {
                host::Output::Gateway(_, said) | host::Output::Gateways(said) => {
                    self.gateway.handle(self.now, gateway::Input::Host(HostId(1), said));
                    return true;
                }
                host::Output::Store(session, number) => {
                    let stored = self.host.snapshot(session).expect("it is there");
                    self.disk.insert(session, stored);
                    self.host.handle(self.now, host::Input::Stored(session, number));
                }
                host::Output::Delete(session) => drop(self.disk.remove(&session)),
                host::Output::Weigh(work, salt, password) => {
                    let weight = password.weigh_lightly(salt);
                    self.host.handle(self.now, host::Input::Weighed(work, weight));
                }
                host::Output::Save(session) => self.host.handle(self.now, host::Input::Saved(session)),
                host::Output::Tell(_, Event::Welcome { you, resume_token, view }) => {
                    let token = Token::from_hex(&resume_token).expect("ours are tokens");
                    self.token = Some((view.session, you, token));
                }
                host::Output::WakeAt(_) => return false,
                _ => {}
            }
        }
        panic!("it talks for ever");
    }
}
