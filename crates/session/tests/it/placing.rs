//! Placing and finding sessions: the behaviour of gateway, catalogue and host.

use std::collections::{BTreeMap, BTreeSet};

use sametick_session::catalog::{Catalog, Health, Remembered};
use sametick_session::gateway::{self, Asking, CREATIONS, ClientId, Gateway, GatewayConfig, TELL_EVERY_US};
use sametick_session::host::{self, GatewayId, Host, HostConfig, Offer};
use sametick_session::id::{HostId, Incarnation, Key, SessionId, Source};
use sametick_session::lobby::{Ask, Filter, Reply, Summary};
use sametick_session::message::{Closing, Ending, Event, Forward, Phase, Refusal, Request};
use sametick_session::password::Password;
use sametick_session::placing::{Adopted, Beat, FromHost, Granted, Standing, ToHost};
use sametick_session::session::Session;
use sametick_session::settings::{Mode, Settings};
use sametick_session::ticket::{Sealed, TICKET_US};
use sametick_sim::{Seat, Time};
use sametick_wire::Member;
use sametick_wire::identity::{PlayerId, Token};

use crate::stage::{ADA, BOB, EVE, MINUTE, SECOND, name, name_of, pong, settings};

/// A gateway and hosts with immediate delivery.
struct Town {
    now: Time,
    gateway: Gateway<Remembered>,
    hosts: BTreeMap<HostId, Host>,
    /// Hosts that are cut off.
    deaf: Vec<HostId>,
    disk: BTreeMap<SessionId, Vec<u8>>,
    replies: Vec<(ClientId, Option<u64>, Reply)>,
    asked: Vec<(HostId, ToHost)>,
    said: Vec<host::Output>,
    lost: Vec<HostId>,
    next: u64,
}

fn config(id: u32, life: u32, capacity: u16) -> HostConfig {
    HostConfig {
        id: HostId(id),
        life: Incarnation(life),
        secret: [id as u8; 32],
        address: format!("ws://host-{id}"),
        capacity,
        offers: vec![Offer { game: name("bridge"), mode: Mode::Room, plan: pong() }],
    }
}

fn fresh_gateway(now: Time, run: u32) -> Gateway<Remembered> {
    Gateway::new(now, Remembered::default(), GatewayConfig { run, ..GatewayConfig::default() })
}

impl Town {
    fn new(capacities: &[u16]) -> Town {
        let now = Time::from_micros(SECOND);
        let mut town = Town {
            now,
            gateway: fresh_gateway(now, 1),
            hosts: BTreeMap::new(),
            deaf: Vec::new(),
            disk: BTreeMap::new(),
            replies: Vec::new(),
            asked: Vec::new(),
            said: Vec::new(),
            lost: Vec::new(),
            next: 0,
        };
        for (id, capacity) in (1..).zip(capacities) {
            town.hosts.insert(HostId(id), Host::new(now, config(id, 1, *capacity), &[], None).0);
            town.host(id, host::Input::Timeout);
        }
        town
    }

    fn host(&mut self, id: u32, input: host::Input) {
        let id = HostId(id);
        let Some(host) = self.hosts.get_mut(&id) else { return };
        host.handle(self.now, input);
        loop {
            let Some(host) = self.hosts.get_mut(&id) else { return };
            match host.poll_output() {
                host::Output::WakeAt(_) => return,
                host::Output::Gateway(_, said) | host::Output::Gateways(said) => {
                    if !self.deaf.contains(&id) {
                        self.ask_gateway(gateway::Input::Host(id, said));
                    }
                }
                host::Output::Store(session, number) => {
                    self.disk.insert(session, host.snapshot(session).unwrap());
                    host.handle(self.now, host::Input::Stored(session, number));
                }
                host::Output::Delete(session) => drop(self.disk.remove(&session)),
                host::Output::Weigh(work, salt, password) => {
                    self.said.push(host::Output::Weigh(work, salt, password.clone()));
                    host.handle(self.now, host::Input::Weighed(work, password.weigh_lightly(salt)));
                }
                host::Output::Save(session) => {
                    self.said.push(host::Output::Save(session));
                    host.handle(self.now, host::Input::Saved(session));
                }
                other => self.said.push(other),
            }
        }
    }

    fn ask_gateway(&mut self, input: gateway::Input) {
        self.gateway.handle(self.now, input);
        loop {
            match self.gateway.poll_output() {
                gateway::Output::WakeAt(_) => return,
                gateway::Output::Reply(client, seq, reply) => self.replies.push((client, seq, reply)),
                gateway::Output::Host(host, ask) => {
                    self.asked.push((host, ask.clone()));
                    if !self.deaf.contains(&host) {
                        self.host(host.0, host::Input::Gateway(GatewayId(1), ask));
                    }
                }
                gateway::Output::Lost(host, _) => self.lost.push(host),
            }
        }
    }

    fn ask(&mut self, player: PlayerId, ask: Ask) -> Option<Reply> {
        self.ask_from(player, Source(player.0 as u64), ask)
    }

    fn ask_from(&mut self, player: PlayerId, source: Source, ask: Ask) -> Option<Reply> {
        self.next += 1;
        let (client, seq) = (ClientId(player.0 as u64), self.next);
        self.ask_gateway(gateway::Input::Ask(Asking { client, seq, player, source, ask }));
        let at = self.replies.iter().position(|(_, number, _)| *number == Some(seq))?;
        Some(self.replies.remove(at).2)
    }

    fn create(&mut self, player: PlayerId, key: u8, password: Option<&str>) -> Option<Reply> {
        self.create_with(player, key, password, settings(1))
    }

    fn create_with(
        &mut self,
        player: PlayerId,
        key: u8,
        word: Option<&str>,
        settings: Settings,
    ) -> Option<Reply> {
        let (key, password) = (Key([key; 16]), word.map(|word| Password::new(word).unwrap()));
        self.ask(player, Ask::Create { key, name: name_of(player), settings, password })
    }

    fn join(&mut self, player: PlayerId, session: SessionId, word: Option<&str>) -> Reply {
        let password = word.map(|word| Password::new(word).unwrap());
        self.ask(player, Ask::Join { session, name: name_of(player), password, seat: None })
            .expect("an answer")
    }

    /// A session with its creator in it.
    fn session(&mut self, player: PlayerId, key: u8, word: Option<&str>) -> (SessionId, Member) {
        let (session, _, ticket) = go(self.create(player, key, word));
        self.next += 1;
        let member = Member(self.next);
        self.host(session.host.0, host::Input::Arrive(member, ticket));
        (session, member)
    }

    fn list(&mut self) -> Vec<SessionId> {
        let reply = self.ask(EVE, Ask::List { filter: Filter::default(), follow: false });
        let Some(Reply::Sessions { sessions, .. }) = reply else { panic!("{reply:?}") };
        sessions.iter().map(|listed| listed.summary.session).collect()
    }

    /// Advances the time, in steps small enough for everything that is due.
    fn wait(&mut self, us: u64) {
        for _ in 0..us / (SECOND / 5) {
            self.now = self.now.plus_micros(SECOND / 5);
            self.ask_gateway(gateway::Input::Timeout);
            for id in self.hosts.keys().map(|id| id.0).collect::<Vec<_>>() {
                self.host(id, host::Input::Timeout);
            }
        }
    }

    /// A process is killed, and another starts with what is on disk.
    fn restart(&mut self, id: u32, life: u32, crashed_s: Option<u64>) {
        let stored: Vec<Vec<u8>> =
            self.disk.iter().filter(|(key, _)| key.host.0 == id).map(|(_, b)| b.clone()).collect();
        let (host, lost) = Host::new(self.now, config(id, life, 4), &stored, crashed_s);
        assert_eq!(lost, []);
        self.hosts.insert(HostId(id), host);
        self.host(id, host::Input::Timeout);
    }

    fn closing_of(&self, member: Member) -> Option<Closing> {
        self.said.iter().rev().find_map(|output| match output {
            host::Output::Close(closed, why) if *closed == member => Some(*why),
            _ => None,
        })
    }
}

fn go(reply: Option<Reply>) -> (SessionId, String, String) {
    match reply {
        Some(Reply::Go { session, address, ticket }) => (session, address, ticket.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_is_placed_on_the_host_with_the_most_room() {
    let mut town = Town::new(&[1, 2]);
    let (first, address, _) = go(town.create(ADA, 1, None));
    assert_eq!((first.host, address.as_str()), (HostId(2), "ws://host-2"));
    let (second, ..) = go(town.create(BOB, 2, None));
    let (third, ..) = go(town.create(EVE, 3, None));
    let mut hosts = [second.host.0, third.host.0];
    hosts.sort_unstable();
    assert_eq!(hosts, [1, 2]);
    town.wait(6 * SECOND);
    assert_eq!(town.create(PlayerId(9), 4, None), Some(Reply::Refused(Refusal::NoHost)));
}

#[test]
fn a_repeated_key_yields_the_same_session() {
    let mut town = Town::new(&[4, 4]);
    let (first, _, ticket) = go(town.create(ADA, 1, None));
    let (again, _, same) = go(town.create(ADA, 1, None));
    assert_eq!((first, ticket), (again, same));
    let (other, ..) = go(town.create(BOB, 1, None));
    assert_ne!(first, other, "a key is one player's");
    // Also in the next incarnation of its host, and with another gateway without memory.
    town.restart(first.host.0, 2, Some(1_000));
    town.gateway = fresh_gateway(town.now, 2);
    town.wait(3 * SECOND);
    let (again, ..) = go(town.create(ADA, 1, None));
    assert_eq!(first, again);
    // A late request does not create again a session that is over.
    town.wait(MINUTE);
    assert_eq!(town.list(), []);
    let key = Key([1; 16]).of(ADA);
    let place = ToHost::Place { key, player: ADA, name: name("Ada"), settings: settings(1), password: None };
    town.asked.clear();
    town.replies.clear();
    let before = town.hosts[&first.host].sessions().count();
    town.host(first.host.0, host::Input::Gateway(GatewayId(1), place));
    assert_eq!(town.hosts[&first.host].sessions().count(), before);
}

#[test]
fn a_lost_answer_is_requested_again_and_then_given_up() {
    let mut town = Town::new(&[4, 4]);
    town.deaf = vec![HostId(1), HostId(2)];
    assert_eq!(town.create(ADA, 1, None), None);
    town.wait(3 * SECOND);
    let asked: Vec<u32> = town.asked.iter().map(|(host, _)| host.0).collect();
    assert_eq!(asked, [1, 1, 1, 1], "once a second, and nobody else: it may have been heard");
    town.wait(6 * SECOND);
    assert_eq!(town.replies.pop().map(|reply| reply.2), Some(Reply::Refused(Refusal::Unavailable)));
    assert_eq!(town.gateway.waiting(), 0);
    town.deaf.clear();
    town.wait(3 * SECOND);
    go(town.create(ADA, 1, None));
}

#[test]
fn a_full_host_refuses_and_the_next_one_is_asked() {
    let mut town = Town::new(&[2, 1]);
    // The gateway does not hear that the first host is full.
    for key in 0..2 {
        let place = ToHost::Place {
            key: Key([90 + key; 16]),
            player: PlayerId(70 + u128::from(key)),
            name: name("Zoe"),
            settings: settings(1),
            password: None,
        };
        town.deaf = vec![HostId(1)];
        town.host(1, host::Input::Gateway(GatewayId(7), place));
    }
    town.deaf.clear();
    let (session, ..) = go(town.create(ADA, 1, None));
    assert_eq!(session.host, HostId(2));
    let asked: Vec<u32> = town.asked.iter().map(|(host, _)| host.0).collect();
    assert_eq!(asked, [1, 2], "a list that is old costs one more question");
}

#[test]
fn the_host_decides_and_a_stale_list_costs_one_question() {
    let mut town = Town::new(&[4]);
    let (session, ada) = town.session(ADA, 1, None);
    assert_eq!(town.list(), [session]);
    // All members leave, and the gateway does not hear of it.
    town.deaf = vec![HostId(1)];
    town.host(1, host::Input::Say(ada, 1, Request::Leave {}));
    town.now = town.now.plus_micros(31 * SECOND);
    town.host(1, host::Input::Timeout);
    assert_eq!(town.list(), [session], "it is a list, not the truth");
    town.deaf.clear();
    assert_eq!(town.join(BOB, session, None), Reply::Refused(Refusal::Over));
    assert_eq!(town.list(), []);
    let stranger = SessionId { host: HostId(77), ..session };
    assert_eq!(town.join(BOB, stranger, None), Reply::Refused(Refusal::NotFound));
}

#[test]
fn a_restarted_gateway_finds_every_session() {
    let mut town = Town::new(&[4, 4]);
    let sessions: Vec<SessionId> =
        (0..5).map(|key| town.session(PlayerId(key.into()), key, None).0).collect();
    town.gateway = fresh_gateway(town.now, 2);
    assert_eq!(town.list(), []);
    let ask = Ask::Join { session: sessions[0], name: name("Eve"), password: None, seat: None };
    assert_eq!(town.ask(EVE, ask), None, "hosts are heard of soon");
    town.wait(3 * SECOND);
    assert!(matches!(town.replies.pop(), Some((_, _, Reply::Go { .. }))));
    let mut listed = town.list();
    listed.sort();
    let mut sessions = sessions;
    sessions.sort();
    assert_eq!(listed, sessions);
}

#[test]
fn a_silent_host_gets_no_sessions_then_is_lost() {
    let mut town = Town::new(&[4]);
    let (session, _) = town.session(ADA, 1, None);
    town.wait(SECOND);
    town.deaf = vec![HostId(1)];
    let table = [
        (9 * SECOND, Health::Good, 1, 1),
        (3 * SECOND, Health::Quiet, 1, 0),
        (45 * SECOND, Health::Quiet, 1, 0),
        (5 * SECOND, Health::Lost, 0, 0),
    ];
    for (us, health, listed, candidates) in table {
        town.wait(us);
        assert_eq!(town.gateway.health(HostId(1)), Some(health));
        assert_eq!(town.list().len(), listed, "{health:?}");
        let places = town.gateway.catalog().candidates(town.now, &settings(1));
        assert_eq!(places.len(), candidates, "{health:?}");
    }
    assert_eq!(town.lost, [HostId(1)], "told once");
    town.deaf.clear();
    town.wait(3 * SECOND);
    assert_eq!((town.gateway.health(HostId(1)), town.list()), (Some(Health::Good), vec![session]));
    town.deaf = vec![HostId(1)];
    town.wait(11 * MINUTE);
    assert_eq!(town.gateway.health(HostId(1)), None);
}

#[test]
fn a_host_that_shut_down_is_lost_only_with_sessions() {
    for (has_session, lost) in [(false, vec![]), (true, vec![HostId(1)])] {
        let mut town = Town::new(&[4]);
        if has_session {
            town.session(ADA, 1, None);
        }
        town.wait(SECOND);
        town.ask_gateway(gateway::Input::Host(HostId(1), FromHost::Bye(Incarnation(1))));
        town.deaf = vec![HostId(1)];
        town.wait(MINUTE + 3 * SECOND);
        assert_eq!((town.gateway.health(HostId(1)), town.lost), (Some(Health::Lost), lost));
    }
}

#[test]
fn a_join_to_a_lost_host_is_refused_at_once() {
    let mut town = Town::new(&[4]);
    let (session, _) = town.session(ADA, 1, None);
    town.wait(SECOND);
    town.deaf = vec![HostId(1)];
    town.wait(MINUTE + 3 * SECOND);
    town.asked.clear();
    assert_eq!(town.join(BOB, session, None), Reply::Refused(Refusal::Lost));
    assert!(matches!(town.asked[..], [(HostId(1), ToHost::Reserve { .. })]), "it may be back");
    assert_eq!(town.gateway.waiting(), 0);
    town.deaf.clear();
    town.wait(3 * SECOND);
    assert!(matches!(town.join(BOB, session, None), Reply::Go { .. }));
}

#[test]
fn a_suspended_gateway_loses_no_host_for_it() {
    let mut town = Town::new(&[4]);
    let (session, _) = town.session(ADA, 1, None);
    town.wait(SECOND);
    town.now = town.now.plus_micros(20 * MINUTE);
    town.ask_gateway(gateway::Input::Timeout);
    assert_eq!((town.gateway.health(HostId(1)), town.list()), (Some(Health::Good), vec![session]));
    town.deaf = vec![HostId(1)];
    town.wait(MINUTE);
    assert_eq!((town.gateway.health(HostId(1)), town.lost), (Some(Health::Lost), vec![HostId(1)]));
}

#[test]
fn three_crashes_in_a_minute_quarantine_a_host() {
    let mut town = Town::new(&[4]);
    for life in 2..=3 {
        town.wait(2 * SECOND);
        town.restart(1, life, Some(1_000));
        assert_eq!(town.gateway.health(HostId(1)), Some(Health::Good));
    }
    town.restart(1, 4, Some(1_000));
    assert_eq!(town.gateway.health(HostId(1)), Some(Health::Quarantined));
    assert_eq!(town.create(ADA, 1, None), None, "there may be others");
    town.wait(6 * SECOND);
    assert_eq!(town.create(ADA, 2, None), Some(Reply::Refused(Refusal::NoHost)));
    town.wait(5 * MINUTE);
    assert_eq!(town.gateway.health(HostId(1)), Some(Health::Good));
    // Orderly restarts do not count.
    for life in 5..10 {
        town.host(1, host::Input::Drain(0));
        assert_eq!(town.gateway.health(HostId(1)), Some(Health::Draining));
        town.restart(1, life, None);
        assert_eq!(town.gateway.health(HostId(1)), Some(Health::Good));
    }
}

#[test]
fn an_older_beat_is_ignored() {
    let mut catalog = Remembered::default();
    let beat = |life, number, capacity| Beat {
        life: Incarnation(life),
        number,
        address: "a".into(),
        capacity,
        is_draining: false,
        offers: vec![(name("bridge"), Mode::Room)],
        sessions: Vec::new(),
        others: 0,
    };
    let now = Time::from_micros(SECOND);
    let mut capacity_after = |beat| {
        catalog.beat(now, HostId(1), &beat);
        catalog.host(now, HostId(1)).unwrap().capacity
    };
    assert_eq!(capacity_after(beat(3, 2, 20)), 20);
    assert_eq!(capacity_after(beat(3, 1, 10)), 20, "late");
    assert_eq!(capacity_after(beat(3, 2, 11)), 20, "twice");
    assert_eq!(capacity_after(beat(2, 9, 12)), 20, "of the last life");
    assert_eq!(capacity_after(beat(4, 1, 40)), 40);
}

#[test]
fn a_host_is_believed_only_for_its_own_sessions() {
    let mut town = Town::new(&[4, 4]);
    let (session, _) = town.session(ADA, 1, None);
    town.wait(SECOND);
    let own = SessionId { host: HostId(3 - session.host.0), ..session };
    let granted = |town: &Town, id| {
        let summary = town.hosts[&session.host].session(session).unwrap().summary();
        let standing =
            Standing { summary: Summary { session: id, players: 3, ..summary }, key: Key([7; 16]) };
        Granted { ticket: Sealed("00".into()), standing, life: Incarnation(1), beats: u64::MAX }
    };
    town.deaf = vec![own.host];
    assert_eq!(
        town.ask(BOB, Ask::Join { session: own, name: name_of(BOB), password: None, seat: None }),
        None
    );
    let Some((_, ToHost::Reserve { ask, .. })) = town.asked.last() else { panic!("it was asked") };
    let said = FromHost::Reserved { ask: *ask, answer: Ok(granted(&town, session)), exists: true };
    town.ask_gateway(gateway::Input::Host(own.host, said));
    let said = FromHost::Placed { key: Key([7; 16]), answer: Ok(granted(&town, session)) };
    town.ask_gateway(gateway::Input::Host(own.host, said));
    assert!(town.replies.is_empty(), "{:?}", town.replies);
    assert_eq!(town.gateway.catalog().host(town.now, session.host).unwrap().players, 1);
    // Its statements about its own sessions count for as long as it makes them.
    town.deaf.clear();
    let said = FromHost::Placed { key: Key([7; 16]), answer: Ok(granted(&town, own)) };
    town.ask_gateway(gateway::Input::Host(own.host, said));
    assert_eq!(town.list().len(), 2);
    town.wait(3 * MINUTE);
    assert_eq!(town.list(), [session]);
}

#[test]
fn a_draining_host_stores_its_sessions_for_its_next_run() {
    let mut town = Town::new(&[4]);
    let (session, ada) = town.session(ADA, 1, None);
    town.host(1, host::Input::Drain(20 * SECOND));
    assert_eq!(town.gateway.health(HostId(1)), Some(Health::Draining));
    let place = ToHost::Place {
        key: Key([8; 16]),
        player: BOB,
        name: name("Bob"),
        settings: settings(1),
        password: None,
    };
    town.host(1, host::Input::Gateway(GatewayId(1), place));
    assert_eq!(town.hosts[&HostId(1)].sessions().count(), 1);
    town.wait(19 * SECOND);
    assert!(!town.said.contains(&host::Output::Done));
    town.wait(SECOND);
    assert_eq!(town.closing_of(ada), Some(Closing::Suspended));
    assert!(town.said.contains(&host::Output::Suspended(session)));
    assert_eq!(town.said.last(), Some(&host::Output::Done));
    assert!(town.disk.contains_key(&session));
    town.restart(1, 2, None);
    assert_eq!(town.hosts[&HostId(1)].session(session).map(Session::phase), Some(Phase::Lobby));
    // A host without sessions exits at once.
    let mut empty = Town::new(&[4]);
    empty.host(1, host::Input::Drain(20 * SECOND));
    assert_eq!(empty.said.last(), Some(&host::Output::Done));
}

#[test]
fn a_draining_host_does_not_wait_for_a_failing_disk() {
    let (mut host, _) = Host::new(Time::ZERO, config(1, 1, 1), &[], None);
    let place = ToHost::Place {
        key: Key([1; 16]),
        player: ADA,
        name: name_of(ADA),
        settings: settings(1),
        password: None,
    };
    host.handle(Time::ZERO, host::Input::Gateway(GatewayId(1), place));
    host.handle(Time::ZERO, host::Input::Drain(SECOND));
    loop {
        match host.poll_output() {
            host::Output::Done => break,
            host::Output::WakeAt(at) => {
                let at = at.expect("it ends");
                assert!(at <= Time::from_micros(9 * SECOND), "{at:?}");
                host.handle(at, host::Input::Timeout);
            }
            _ => {}
        }
    }
}

#[test]
fn a_session_moves_to_another_host_when_its_own_ends() {
    let mut town = Town::new(&[4, 2]);
    let (session, ada) = town.session(ADA, 1, None);
    assert_eq!(session.host, HostId(1));
    for (seq, request) in
        [(1, Request::Take { seat: Seat(2) }), (2, Request::Ready { ready: true }), (3, Request::Start {})]
    {
        town.host(1, host::Input::Say(ada, seq, request));
    }
    // Bob is disconnected when it moves.
    let reply = town.join(BOB, session, None);
    let bob = Member(60);
    town.host(1, host::Input::Arrive(bob, go(Some(reply)).2));
    let welcome = |output: &host::Output| match output {
        host::Output::Tell(_, Event::Welcome { you: BOB, resume_token, .. }) => Token::from_hex(resume_token),
        _ => None,
    };
    let token = town.said.iter().find_map(welcome).unwrap();
    town.host(1, host::Input::Cut(bob));
    town.host(1, host::Input::Drain(0));
    let forward = |town: &Town, to: Member| {
        town.said.iter().rev().find_map(|output| match output {
            host::Output::Tell(member, Event::Moved(forward)) if *member == to => Some(forward.clone()),
            _ => None,
        })
    };
    let there = forward(&town, ada).expect("Ada is told where it goes on");
    assert_eq!((there.session.host, there.address.as_str()), (HostId(2), "ws://host-2"));
    assert_eq!(town.closing_of(ada), Some(Closing::Over(Ending::Moved)));
    let save = town.said.iter().position(|output| *output == host::Output::Save(session)).unwrap();
    let told =
        town.said.iter().position(|output| matches!(output, host::Output::Tell(_, Event::Moved(_)))).unwrap();
    assert!(save < told, "saved before anybody goes");
    assert_eq!(town.said.last(), Some(&host::Output::Done));
    // The copy is inactive before a member arrives.
    let begin = host::Output::Begin { session: there.session, round: 1, again: true };
    assert!(!town.said.contains(&begin));
    town.wait(SECOND);
    assert_eq!(town.list(), []);
    assert_eq!(town.join(EVE, there.session, None), Reply::Refused(Refusal::NotFound));
    town.host(2, host::Input::Arrive(Member(70), there.ticket.unwrap().0));
    assert!(town.said.contains(&begin));
    assert!(town.said.contains(&host::Output::Manned(there.session, Seat(2), ADA)));
    let moved = town.hosts[&HostId(2)].session(there.session).unwrap();
    assert_eq!(
        (moved.was(), moved.view().creator, moved.phase()),
        (Some(session), Some(ADA), Phase::Running)
    );
    town.wait(SECOND);
    assert_eq!(town.list(), [there.session]);
    // The next incarnation of the old host knows where it is; a disconnected member joins again and is recognised.
    town.restart(1, 2, None);
    assert_eq!(town.hosts[&HostId(1)].sessions().count(), 0);
    town.host(1, host::Input::Resume(Member(80), session, BOB, token));
    let there_again = forward(&town, Member(80)).unwrap();
    assert_eq!((there_again.session, there_again.ticket), (there.session, None));
    assert!(matches!(town.join(BOB, there.session, None), Reply::Go { .. }));
    town.wait(5 * MINUTE);
    assert!(!town.disk.contains_key(&session), "and forgets it");
}

#[test]
fn an_unused_copy_closes_and_the_session_stays() {
    let mut town = Town::new(&[4, 2]);
    let (session, ada) = town.session(ADA, 1, None);
    let stored = town.disk[&session].clone();
    let adopt = ToHost::Adopt { from: session, life: Incarnation(1), stored };
    for _ in 0..3 {
        town.host(2, host::Input::Gateway(GatewayId(1), adopt.clone()));
    }
    assert_eq!(town.hosts[&HostId(2)].sessions().count(), 1, "asked again is the same");
    // A message of another incarnation, or about a session that was not offered, moves nothing.
    let to = Forward { session: SessionId { host: HostId(2), ..session }, address: "x".into(), ticket: None };
    let moved = ToHost::Moved { from: session, life: Incarnation(1), to, admissions: Vec::new() };
    town.host(1, host::Input::Gateway(GatewayId(1), moved));
    assert_eq!(town.hosts[&HostId(1)].session_of(ada), Some(session));
    town.restart(2, 2, Some(1_000));
    town.wait(5 * MINUTE);
    assert_eq!(town.hosts[&HostId(2)].sessions().count(), 0);
    assert!(town.disk.keys().all(|id| id.host == HostId(1)));
    assert_eq!(town.list(), [session]);
}

#[test]
fn a_repeated_adoption_yields_the_same_tickets() {
    let mut town = Town::new(&[1]);
    let (from, _) = town.session(ADA, 1, None);
    let adopt = ToHost::Adopt { from, life: Incarnation(1), stored: town.disk[&from].clone() };
    let (mut host, _) = Host::new(town.now, config(2, 1, 1), &[], None);
    let ask = |gateway| host::Input::Gateway(GatewayId(gateway), adopt.clone());
    let drain = |host: &mut Host| {
        std::iter::from_fn(|| Some(host.poll_output()))
            .take_while(|output| !matches!(output, host::Output::WakeAt(_)))
            .collect::<Vec<_>>()
    };
    let answers = |outputs: &[host::Output]| -> Vec<(u64, Adopted)> {
        outputs
            .iter()
            .filter_map(|output| match output {
                host::Output::Gateway(gateway, FromHost::Adopted { answer: Ok(adopted), .. }) => {
                    Some((gateway.0, adopted.clone()))
                }
                _ => None,
            })
            .collect()
    };
    // The disk is slow, and another gateway asks as well.
    host.handle(town.now, ask(1));
    host.handle(town.now, ask(2));
    let outputs = drain(&mut host);
    assert_eq!(answers(&outputs), []);
    let store = outputs.iter().find_map(|output| match output {
        host::Output::Store(session, number) => Some((*session, *number)),
        _ => None,
    });
    let (session, number) = store.unwrap();
    host.handle(town.now, host::Input::Stored(session, number));
    let told = answers(&drain(&mut host));
    assert_eq!(told.iter().map(|(gateway, _)| *gateway).collect::<Vec<_>>(), [1, 2]);
    host.handle(town.now.plus_micros(TICKET_US / 3), ask(1));
    let again = answers(&drain(&mut host));
    assert!(again.iter().chain(&told).all(|(_, adopted)| *adopted == told[0].1), "{again:?}");
    let ticket = told[0].1.admissions[0].ticket.0.clone();
    host.handle(town.now.plus_micros(TICKET_US / 2), host::Input::Arrive(Member(1), ticket));
    assert_eq!(host.session_of(Member(1)), Some(session));
}

#[test]
fn a_host_is_needed_while_it_has_a_copy_or_an_end_to_tell() {
    let mut town = Town::new(&[1]);
    let (session, ada) = town.session(ADA, 1, None);
    let adopt = ToHost::Adopt { from: session, life: Incarnation(1), stored: town.disk[&session].clone() };
    let (mut other, _) = Host::new(town.now, config(2, 1, 1), &[], None);
    assert!(other.is_idle());
    other.handle(town.now, host::Input::Gateway(GatewayId(1), adopt));
    let now = town.now.plus_micros(3 * SECOND);
    other.handle(now, host::Input::Timeout);
    let outputs = std::iter::from_fn(|| Some(other.poll_output()));
    let mut beats =
        outputs.take_while(|output| !matches!(output, host::Output::WakeAt(_))).filter_map(|output| {
            match output {
                host::Output::Gateways(FromHost::Beat(beat)) => Some((beat.sessions.len(), beat.others)),
                _ => None,
            }
        });
    assert_eq!(beats.by_ref().last(), Some((0, 1)), "in no list, but there");
    drop(beats);
    assert!(!other.is_idle());
    for request in [Request::Take { seat: Seat(0) }, Request::Ready { ready: true }, Request::Start {}] {
        town.host(1, host::Input::Say(ada, 1, request));
    }
    for unix_s in 1..=3 {
        town.host(1, host::Input::Crashed(session, unix_s));
    }
    assert_eq!(town.closing_of(ada), Some(Closing::Over(Ending::Quarantined)));
    assert!(!town.hosts[&HostId(1)].is_idle());
    town.restart(1, 2, None);
    assert!(!town.hosts[&HostId(1)].is_idle(), "in its next life as well");
    town.wait(5 * MINUTE);
    assert!(town.hosts[&HostId(1)].is_idle() && town.disk.is_empty());
}

#[test]
fn no_session_and_a_wrong_password_look_the_same() {
    let mut town = Town::new(&[4]);
    let (session, _) = town.session(ADA, 1, Some("secret"));
    let nowhere = SessionId { mark: session.mark ^ 1, ..session };
    let mut seen = Vec::new();
    for (target, word) in
        [(session, Some("wrong")), (nowhere, Some("wrong")), (session, None), (nowhere, None)]
    {
        town.said.clear();
        let reply = town.join(EVE, target, word);
        let works = town.said.iter().filter(|output| matches!(output, host::Output::Weigh(..))).count();
        seen.push((reply, works));
    }
    assert_eq!(seen[0], (Reply::Refused(Refusal::NotFound), 1));
    assert_eq!((&seen[0], &seen[2]), (&seen[1], &seen[3]));
    assert!(matches!(town.join(BOB, session, Some("secret")), Reply::Go { .. }));
}

#[test]
fn guesses_are_limited_by_source_over_all_sessions() {
    let mut town = Town::new(&[4]);
    let (session, _) = town.session(ADA, 1, Some("secret"));
    let mut tried = 0;
    for guess in 0..100_u64 {
        let target = SessionId { mark: session.mark ^ (guess % 3), ..session };
        match town.join(EVE, target, Some("guess")) {
            Reply::Refused(Refusal::NotFound) => tried += 1,
            Reply::Refused(Refusal::TooManyGuesses) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tried, 10);
    assert_eq!(town.join(EVE, session, Some("secret")), Reply::Refused(Refusal::TooManyGuesses), "too late");
    assert!(matches!(town.join(BOB, session, Some("secret")), Reply::Go { .. }), "others are not held up");
    town.wait(6 * SECOND);
    assert!(matches!(town.join(EVE, session, Some("secret")), Reply::Go { .. }));
}

#[test]
fn session_creation_is_limited_by_source() {
    let mut town = Town::new(&[100]);
    town.gateway = Gateway::new(
        town.now,
        Remembered::default(),
        GatewayConfig { exempt: Some(Source(1)), ..GatewayConfig::default() },
    );
    town.wait(3 * SECOND);
    let create = |town: &mut Town, key: u8, source| {
        let (key, settings) = (Key([key; 16]), settings(1));
        let ask = Ask::Create { key, name: name_of(EVE), settings, password: None };
        town.ask_from(PlayerId(source), Source(source as u64), ask).unwrap()
    };
    let made = |reply: &Reply| matches!(reply, Reply::Go { .. });
    let replies: Vec<Reply> = (0..40).map(|key| create(&mut town, key, 3)).collect();
    assert_eq!(replies.iter().filter(|reply| made(reply)).count() as u64, CREATIONS.burst());
    assert_eq!(replies.last(), Some(&Reply::Refused(Refusal::TooFast)));
    assert!(made(&create(&mut town, 0, 2)), "another source");
    assert!((0..40).all(|key| made(&create(&mut town, key, 1))), "the exempt source");
    town.wait(CREATIONS.interval_us());
    assert!(made(&create(&mut town, 50, 3)) && !made(&create(&mut town, 51, 3)));
}

#[test]
fn forged_used_and_expired_tickets_are_refused() {
    let mut town = Town::new(&[4, 4]);
    let (session, ada) = town.session(ADA, 1, None);
    let reply = town.join(BOB, session, None);
    let (_, _, ticket) = go(Some(reply));
    let mut changed = ticket.clone();
    changed.replace_range(70..71, if &ticket[70..71] == "0" { "1" } else { "0" });
    let other_host = 3 - session.host.0;
    let show = |town: &mut Town, host: u32, ticket: &str| {
        town.next += 1;
        let member = Member(1_000 + town.next);
        town.host(host, host::Input::Arrive(member, ticket.into()));
        town.closing_of(member)
    };
    let bad = Some(Closing::BadTicket);
    assert_eq!(show(&mut town, session.host.0, ""), bad);
    assert_eq!(show(&mut town, session.host.0, &"f".repeat(100_000)), bad);
    assert_eq!(show(&mut town, session.host.0, &changed), bad);
    assert_eq!(show(&mut town, other_host, &ticket), bad);
    assert_eq!(show(&mut town, session.host.0, &ticket), None);
    assert_eq!(show(&mut town, session.host.0, &ticket), bad, "used");
    let reply = town.join(EVE, session, None);
    let (_, _, ticket) = go(Some(reply));
    town.wait(TICKET_US);
    assert_eq!(show(&mut town, session.host.0, &ticket), bad, "old");
    let reply = town.join(EVE, session, None);
    let (_, _, ticket) = go(Some(reply));
    town.restart(session.host.0, 2, None);
    assert_eq!(show(&mut town, session.host.0, &ticket), bad, "of the last life");
    assert!(town.hosts[&session.host].session_of(ada).is_none());
}

#[test]
fn followers_of_the_list_get_updates_at_a_limited_rate() {
    let mut town = Town::new(&[100]);
    let filter = Filter { locked: Some(false), ..Filter::default() };
    town.ask(EVE, Ask::List { filter, follow: true });
    for key in 0..20 {
        town.session(PlayerId(100 + u128::from(key)), key, (key % 2 == 0).then_some("x"));
        town.wait(SECOND / 5);
    }
    town.wait(2 * SECOND);
    let told: Vec<&Reply> = town
        .replies
        .iter()
        .filter(|(client, seq, _)| client.0 == 3 && seq.is_none())
        .map(|(_, _, reply)| reply)
        .collect();
    assert!((2..=(6 * SECOND / TELL_EVERY_US) as usize + 1).contains(&told.len()), "{}", told.len());
    let Some(Reply::Sessions { sessions, more: false }) = told.last() else { panic!() };
    assert_eq!(sessions.len(), 10, "only what was asked for");
    let count = told.len();
    town.wait(20 * SECOND);
    let told = town.replies.iter().filter(|(client, seq, _)| client.0 == 3 && seq.is_none()).count();
    assert_eq!(told, count, "what is the same is no news");
    town.ask_gateway(gateway::Input::Gone(ClientId(3)));
    town.replies.clear();
    town.session(ADA, 77, None);
    town.wait(2 * SECOND);
    assert!(town.replies.iter().all(|(_, seq, _)| seq.is_some()));
}

#[test]
fn lists_are_filtered_and_unlisted_sessions_found_by_id() {
    let mut town = Town::new(&[9]);
    let (open, _) = town.session(ADA, 1, None);
    let (locked, _) = town.session(BOB, 2, Some("x"));
    let hidden = Settings { listed: false, ..settings(1) };
    let (unlisted, ..) = go(town.create_with(EVE, 3, None, hidden));
    town.wait(SECOND);
    let mut wanted = |filter: Filter| {
        let reply = town.ask(EVE, Ask::List { filter, follow: false });
        let Some(Reply::Sessions { sessions, .. }) = reply else { panic!() };
        sessions.iter().map(|listed| listed.summary.session).collect::<Vec<_>>()
    };
    assert_eq!(wanted(Filter { locked: Some(false), ..Filter::default() }), [open]);
    assert_eq!(wanted(Filter { locked: Some(true), ..Filter::default() }), [locked]);
    assert_eq!(wanted(Filter { game: Some(name("Bridge")), players: 1, ..Filter::default() }).len(), 2);
    assert_eq!(wanted(Filter { players: 2, ..Filter::default() }), []);
    assert_eq!(wanted(Filter { mode: Some(Mode::Lockstep), ..Filter::default() }), []);
    assert_eq!(wanted(Filter { open: Some(false), ..Filter::default() }), []);
    assert!(matches!(town.join(BOB, unlisted, None), Reply::Go { .. }));
    let other_game = Settings { game: name("chess"), ..settings(1) };
    town.wait(6 * SECOND);
    assert_eq!(town.create_with(ADA, 9, None, other_game), Some(Reply::Refused(Refusal::NoHost)));
    assert_eq!(town.create_with(ADA, 10, None, settings(9)), Some(Reply::Refused(Refusal::BadSettings)));
}

#[test]
fn a_lookup_by_id_does_not_reveal_a_locked_session() {
    let mut town = Town::new(&[9]);
    let hidden = Settings { listed: false, ..settings(1) };
    let (listed, _) = town.session(ADA, 1, Some("x"));
    let (unlisted, ..) = go(town.create_with(BOB, 2, None, hidden.clone()));
    let (secret, ..) = go(town.create_with(EVE, 3, Some("x"), hidden));
    let none = SessionId { mark: 77, ..listed };
    let nowhere = SessionId { host: HostId(99), ..listed };
    let found = |town: &mut Town, session| match town.ask(EVE, Ask::Find { session }) {
        Some(Reply::Sessions { sessions, more: false }) => {
            assert_eq!(sessions[0].address, "ws://host-1");
            Ok(sessions.iter().map(|listed| listed.summary.session).collect::<Vec<_>>())
        }
        Some(Reply::Refused(refusal)) => Err(refusal),
        other => panic!("{other:?}"),
    };
    assert_eq!(found(&mut town, none), Err(Refusal::Unavailable), "hosts may not have been heard of yet");
    assert_eq!(found(&mut town, secret), Err(Refusal::Unavailable));
    town.wait(6 * SECOND);
    assert_eq!(found(&mut town, listed), Ok(vec![listed]));
    assert_eq!(found(&mut town, unlisted), Ok(vec![unlisted]));
    for session in [none, nowhere, secret] {
        assert_eq!(found(&mut town, session), Err(Refusal::NotFound));
    }
    assert_eq!(town.gateway.waiting(), 0, "no host is asked");
    town.deaf.push(HostId(1));
    town.wait(61 * SECOND);
    assert_eq!(found(&mut town, listed), Err(Refusal::Lost));
    assert_eq!(found(&mut town, secret), Err(Refusal::NotFound));
}

#[test]
fn a_deserted_game_is_listed_last_and_is_not_open() {
    let mut town = Town::new(&[4]);
    let (left, ada) = town.session(ADA, 1, None);
    let (other, _) = town.session(BOB, 2, None);
    for request in [Request::Take { seat: Seat(0) }, Request::Ready { ready: true }, Request::Start {}] {
        town.host(1, host::Input::Say(ada, 1, request));
    }
    town.wait(SECOND);
    let open = |town: &mut Town, open| {
        let filter = Filter { open: Some(open), ..Filter::default() };
        let reply = town.ask(EVE, Ask::List { filter, follow: false });
        let Some(Reply::Sessions { sessions, .. }) = reply else { panic!("{reply:?}") };
        sessions.iter().map(|listed| listed.summary.session).collect::<BTreeSet<_>>()
    };
    assert_eq!(
        open(&mut town, true),
        BTreeSet::from([left, other]),
        "a game can be joined while it is played"
    );
    town.host(1, host::Input::Say(ada, 4, Request::Leave {}));
    town.wait(SECOND);
    assert_eq!(open(&mut town, true), BTreeSet::from([other]));
    assert_eq!(open(&mut town, false), BTreeSet::new(), "it is not full either");
    assert_eq!(town.list(), [other, left]);
    assert!(matches!(town.join(EVE, left, None), Reply::Go { .. }), "who has its link may still come");
}

#[test]
fn a_whole_evening_through_the_gateway() {
    let mut town = Town::new(&[4]);
    let (session, ada) = town.session(ADA, 1, None);
    let reply = town.join(BOB, session, None);
    let (_, _, ticket) = go(Some(reply));
    let bob = Member(50);
    town.host(1, host::Input::Arrive(bob, ticket));
    for (member, seat) in [(ada, 0), (bob, 1)] {
        town.host(1, host::Input::Say(member, 1, Request::Take { seat: Seat(seat) }));
        town.host(1, host::Input::Say(member, 2, Request::Ready { ready: true }));
    }
    town.host(1, host::Input::Say(ada, 3, Request::Start {}));
    assert!(town.said.contains(&host::Output::Begin { session, round: 1, again: false }));
    assert!(town.said.contains(&host::Output::Manned(session, Seat(1), BOB)));
    town.host(1, host::Input::Ended(session, "{}".into()));
    let is_over = |output: &host::Output| matches!(output, host::Output::Tell(to, Event::Phase { phase: Phase::Results, .. }) if *to == bob);
    assert!(town.said.iter().any(is_over));
    town.wait(5 * MINUTE + SECOND);
    assert_eq!(town.list(), []);
    assert!(town.disk.is_empty());
    assert_eq!(town.join(EVE, session, None), Reply::Refused(Refusal::Over));
}

#[test]
fn a_late_arrival_at_a_closed_session_is_told_so() {
    let mut town = Town::new(&[1]);
    town.create(ADA, 7, None);
    let stored: Vec<Vec<u8>> = town.disk.values().cloned().collect();
    let id = *town.disk.keys().next().unwrap();
    let (mut host, lost) = Host::new(town.now, config(1, 2, 1), &stored, None);
    assert!(lost.is_empty());
    let mut outputs = |input| {
        host.handle(town.now, input);
        std::iter::from_fn(|| Some(host.poll_output()).filter(|it| !matches!(it, host::Output::WakeAt(_))))
            .collect::<Vec<_>>()
    };
    let mut number = 0;
    for output in outputs(host::Input::Close(id)) {
        if let host::Output::Store(_, revision) = output {
            number = revision;
        }
    }
    let token = Token::from_bytes([1; 16]);
    let told = |outputs: Vec<host::Output>| {
        outputs.contains(&host::Output::Close(Member(1), Closing::Over(Ending::Stopped)))
    };
    assert!(!told(outputs(host::Input::Resume(Member(1), id, ADA, token))), "not before it is stored");
    assert!(told(outputs(host::Input::Stored(id, number))));
}

#[test]
fn requests_to_a_host_that_ended_go_to_another() {
    let mut town = Town::new(&[2, 1]);
    // The first host has the most room, and does not hear the request.
    town.deaf.push(HostId(1));
    assert_eq!(town.create(ADA, 7, None), None);
    town.deaf.clear();
    town.ask_gateway(gateway::Input::Host(HostId(1), FromHost::Bye(Incarnation(1))));
    let (_, _, reply) = town.replies.last().expect("an answer");
    assert!(matches!(reply, Reply::Go { session, .. } if session.host == HostId(2)), "{reply:?}");
}
