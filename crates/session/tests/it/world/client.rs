//! A simulated player: joins, plays, loses the connection, resumes, leaves.

use sametick_session::id::{Key, SessionId};
use sametick_session::lobby::{Ask, Reply};
use sametick_session::message::{Closing, Event, Forward, Phase, Request, View};
use sametick_session::password::Password;
use sametick_session::session::WINDOW_US;
use sametick_sim::{Seat, Time};
use sametick_wire::Member;
use sametick_wire::identity::{PlayerId, Token};

use super::{Happening, Link, Told, Word, World, host};
use crate::stage::{SECOND, line, name_of, settings};

/// The most repetitions of one request to a gateway.
const MAX_TRIES: u32 = 5;

pub struct Client {
    pub player: PlayerId,
    pub state: State,
    seq: u64,
    home: Option<Home>,
}

pub enum State {
    Idle,
    Asking { seq: u64, ask: Ask, tries: u32, at: Time },
    Entering { member: Member, at: Time },
    In { member: Member, view: Box<View> },
    Away,
}

/// The session of a client, to which it can return.
struct Home {
    session: SessionId,
    /// None before the client has been at the host that the session has moved to.
    token: Option<Token>,
    seat: Option<Seat>,
    /// The last request for another seat, while it is unanswered.
    moving: Option<u64>,
    /// Has asked to leave; the request may have arrived.
    is_leaving: bool,
    cut_at: Option<Time>,
    /// Without network until this time.
    dark_until: Time,
}

impl Client {
    pub fn new(at: usize) -> Client {
        Client { player: PlayerId(at as u128 + 1), state: State::Idle, seq: 0, home: None }
    }

    fn number(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn is_on(&self, member: Member) -> bool {
        match self.state {
            State::Entering { member: own, .. } | State::In { member: own, .. } => own == member,
            _ => false,
        }
    }
}

impl World {
    /// The client takes its next step.
    pub(super) fn act(&mut self, at: usize) {
        if self.is_evening && matches!(self.clients[at].state, State::Idle) {
            return;
        }
        let wait_us = SECOND / 5 + self.rng.below(3 * SECOND);
        self.at(wait_us, Happening::Act(at));
        let state = std::mem::replace(&mut self.clients[at].state, State::Idle);
        self.clients[at].state = match state {
            State::In { member, view } if self.is_evening => {
                if self.rng.chance(1, 2) {
                    let seq = self.clients[at].number();
                    self.up_link(member, Word::Say(seq, Request::Leave {}));
                } else {
                    self.clients[at].home = None;
                    self.cut(member);
                    return self.clients[at].state = State::Idle;
                }
                State::In { member, view }
            }
            state if self.is_evening => {
                if let State::Entering { member, .. } = state {
                    self.cut(member);
                }
                self.clients[at].home = None;
                State::Idle
            }
            State::Idle if self.is_calm => State::Idle,
            State::Idle => self.ask_something(at),
            State::Asking { tries, at: since, .. }
                if tries >= MAX_TRIES && self.now.micros_since(since) > 9 * SECOND =>
            {
                State::Idle
            }
            State::Asking { ask, tries, at: since, seq } => {
                if self.now.micros_since(since) < 3 * SECOND {
                    State::Asking { ask, tries, at: since, seq }
                } else {
                    self.ask(at, ask, tries + 1)
                }
            }
            State::Entering { member, at: since } if self.now.micros_since(since) > 6 * SECOND => {
                self.cut(member);
                if self.clients[at].home.is_some() { State::Away } else { State::Idle }
            }
            State::Entering { member, at } => State::Entering { member, at },
            State::In { member, view } => {
                if !self.is_calm {
                    self.play(at, member, &view);
                }
                State::In { member, view }
            }
            State::Away => self.come_back(at),
        };
    }

    fn ask_something(&mut self, at: usize) -> State {
        let player = self.clients[at].player;
        let known = self.rng.pick(&self.ids).copied();
        let word = self.rng.chance(1, 6).then(|| Password::new("open sesame").unwrap());
        let ask = match known.filter(|_| self.rng.chance(3, 5)) {
            Some(session) => {
                let seat = self.rng.chance(1, 2).then(|| Seat(self.rng.below(4) as u16));
                let password = self.rng.chance(5, 6).then(|| Password::new("open sesame").unwrap());
                Ask::Join { session, name: name_of(player), password, seat }
            }
            None => {
                let key = Key(u128::from(self.rng.next_u64()).to_be_bytes());
                Ask::Create { key, name: name_of(player), settings: settings(1), password: word }
            }
        };
        self.ask(at, ask, 0)
    }

    fn ask(&mut self, at: usize, ask: Ask, tries: u32) -> State {
        let seq = self.clients[at].number();
        self.send(&Happening::ToGateway(at, seq, ask.clone()));
        State::Asking { seq, ask, tries, at: self.now }
    }

    pub(super) fn replied(&mut self, at: usize, seq: Option<u64>, reply: Reply) {
        let State::Asking { seq: asked, .. } = self.clients[at].state else { return };
        if seq != Some(asked) || self.is_evening {
            return;
        }
        self.clients[at].state = match reply {
            Reply::Go { session, address, ticket } => {
                if !self.ids.contains(&session) {
                    self.ids.push(session);
                    self.counts.sessions += 1;
                }
                let host = self.hosts.iter().position(|machine| format!("host-{}", machine.id.0) == address);
                // The earlier session has ended for this client, unless it has moved to this one.
                self.clients[at].home.take_if(|home| home.session != session);
                self.connect(at, host.expect("an address"), Word::Arrive(ticket.0))
            }
            _ => State::Idle,
        };
    }

    fn connect(&mut self, at: usize, host: usize, word: Word) -> State {
        if !self.hosts[host].is_up() {
            return if self.clients[at].home.is_some() { State::Away } else { State::Idle };
        }
        let member = Member(self.number());
        let life = self.hosts[host].life;
        let (up_at, down_at) = (self.now, self.now);
        self.links.insert(member, Link { client: at, host, life, is_open: true, up_at, down_at });
        self.up_link(member, word);
        State::Entering { member, at: self.now }
    }

    /// Messages over a connection arrive in order, if they arrive.
    fn up_link(&mut self, member: Member, word: Word) {
        let delay_us = 1_000 + self.rng.below(200_000);
        let Some(link) = self.links.get_mut(&member).filter(|link| link.is_open) else { return };
        link.up_at = link.up_at.max(self.now.plus_micros(delay_us)).plus_micros(1);
        let wait_us = link.up_at.micros_since(self.now);
        self.at(wait_us, Happening::Up(member, word));
    }

    pub(super) fn down(&mut self, member: Member, told: Told) {
        let delay_us = 1_000 + self.rng.below(200_000);
        let Some(link) = self.links.get_mut(&member).filter(|link| link.is_open) else { return };
        link.down_at = link.down_at.max(self.now.plus_micros(delay_us)).plus_micros(1);
        let wait_us = link.down_at.micros_since(self.now);
        self.at(wait_us, Happening::Down(member, told));
    }

    pub(super) fn up(&mut self, member: Member, word: Word) {
        let Some(link) = self.links.get(&member).filter(|link| link.is_open) else { return };
        let host = link.host;
        let input = match word {
            Word::Arrive(ticket) => host::Input::Arrive(member, ticket),
            Word::Resume(session, player, token) => host::Input::Resume(member, session, player, token),
            Word::Say(seq, request) => {
                let kicked = match request {
                    Request::Kick { player, .. } => Some(player),
                    _ => None,
                };
                let session = self.clients[self.links[&member].client].home.as_ref().map(|home| home.session);
                self.tell_host(host, host::Input::Say(member, seq, request));
                if let (Some(player), Some(session)) = (kicked, session) {
                    self.note_kick(host, session, player);
                }
                return;
            }
        };
        self.tell_host(host, input);
    }

    fn note_kick(&mut self, host: usize, session: SessionId, player: PlayerId) {
        let is_there = |session: &sametick_session::session::Session| {
            session.view().people.iter().any(|person| person.player == player)
        };
        if !self.hosts[host].session(session).is_some_and(is_there) {
            self.kicked.insert((session, player));
        }
    }

    /// A connection breaks: its client knows at once, its host later.
    pub(super) fn cut(&mut self, member: Member) {
        let Some(link) = self.links.get_mut(&member).filter(|link| link.is_open) else { return };
        link.is_open = false;
        let at = link.client;
        let wait_us = self.rng.below(10 * SECOND);
        self.at(wait_us, Happening::Unplugged(member));
        if self.clients[at].is_on(member) {
            let now = self.now;
            self.clients[at].state = match &mut self.clients[at].home {
                Some(home) => {
                    home.cut_at.get_or_insert(now);
                    if self.rng.chance(1, 4) {
                        home.dark_until = now.plus_micros(self.rng.below(WINDOW_US));
                    }
                    State::Away
                }
                None => State::Idle,
            };
        }
    }

    pub(super) fn unplugged(&mut self, member: Member) {
        let link = &self.links[&member];
        let (host, life) = (link.host, link.life);
        if self.hosts[host].life == life {
            self.tell_host(host, host::Input::Cut(member));
        }
    }

    fn come_back(&mut self, at: usize) -> State {
        let player = self.clients[at].player;
        let Some(home) = &self.clients[at].home else { return State::Idle };
        let (session, token) = (home.session, home.token);
        let name = name_of(player);
        if home.cut_at.is_some_and(|cut_at| self.now.micros_since(cut_at) > 2 * WINDOW_US) {
            self.clients[at].home = None;
            return State::Idle;
        }
        if self.now < home.dark_until {
            return State::Away;
        }
        match token {
            Some(token) => self.connect(at, session.host.0 as usize, Word::Resume(session, player, token)),
            None => self.ask(at, Ask::Join { session, name, password: None, seat: None }, 0),
        }
    }

    fn play(&mut self, at: usize, member: Member, view: &View) {
        let player = self.clients[at].player;
        let is_creator = view.creator == Some(player);
        let other = self.rng.pick(&view.people).map_or(player, |person| person.player);
        let seat = Seat(self.rng.below(4) as u16);
        let request = match (self.rng.below(12), view.phase) {
            (0..=2, _) => Request::Take { seat },
            (3..=5, Phase::Lobby) if is_creator => Request::Start {},
            (3..=6, Phase::Lobby) => Request::Ready { ready: true },
            (3..=5, Phase::Results) => Request::Rematch {},
            (7, _) => Request::Chat { line: line("hello") },
            (8, _) if self.rng.chance(1, 4) => Request::Kick { player: other, ban: self.rng.chance(1, 3) },
            (9, _) if self.rng.chance(1, 2) => Request::Leave {},
            (10, _) if self.rng.chance(1, 3) => Request::Stand {},
            _ => return,
        };
        let seq = self.clients[at].number();
        if let (Request::Take { .. } | Request::Stand {}, Some(home)) = (&request, &mut self.clients[at].home)
        {
            home.moving = Some(seq);
        }
        if let (Request::Leave {}, Some(home)) = (&request, &mut self.clients[at].home) {
            home.is_leaving = true;
        }
        self.up_link(member, Word::Say(seq, request));
    }

    pub(super) fn told(&mut self, member: Member, told: Told) {
        let Some(link) = self.links.get_mut(&member).filter(|link| link.is_open) else { return };
        let at = link.client;
        if let Told::Close(_) = told {
            link.is_open = false;
        }
        if !self.clients[at].is_on(member) {
            return;
        }
        match told {
            Told::Event(Event::Welcome { you, resume_token, view }) => {
                assert_eq!(you, self.clients[at].player);
                self.welcome(at, member, Token::from_hex(&resume_token).unwrap(), view);
            }
            Told::Event(Event::Moved(forward)) => self.follow(at, member, forward),
            Told::Event(event) => {
                let client = &mut self.clients[at];
                let State::In { view, .. } = &mut client.state else { panic!("the first word is a welcome") };
                view.apply(&event);
                let own = view.people.iter().find(|person| person.player == client.player);
                if let (Some(own), Some(home)) = (own, &mut client.home) {
                    home.seat = own.seat;
                }
            }
            Told::Answer(seq) => {
                if let Some(home) = &mut self.clients[at].home {
                    home.moving.take_if(|moving| *moving == seq);
                }
            }
            Told::Close(why) => self.closed(at, why),
        }
    }

    /// The session has moved.
    fn follow(&mut self, at: usize, member: Member, forward: Forward) {
        self.counts.followed += 1;
        if let Some(link) = self.links.get_mut(&member) {
            link.is_open = false;
        }
        let wait_us = self.rng.below(SECOND);
        self.at(wait_us, Happening::Unplugged(member));
        let (now, player) = (self.now, self.clients[at].player);
        let Some(home) = &mut self.clients[at].home else {
            return self.clients[at].state = State::Idle;
        };
        if self.kicked.contains(&(home.session, player)) {
            self.kicked.insert((forward.session, player));
        }
        home.session = forward.session;
        home.token = None;
        home.cut_at.get_or_insert(now);
        let host = forward.session.host.0 as usize;
        assert_eq!(forward.address, format!("host-{host}"));
        self.clients[at].state = match forward.ticket {
            Some(ticket) => self.connect(at, host, Word::Arrive(ticket.0)),
            None => State::Away,
        };
    }

    fn welcome(&mut self, at: usize, member: Member, token: Token, view: Box<View>) {
        let client = &mut self.clients[at];
        let own = view.people.iter().find(|person| person.player == client.player).expect("who is in is in");
        if let Some(home) = &client.home {
            self.counts.resumes += 1;
            // A client without a token for the new host joins it, perhaps as a player who was released.
            let is_late = home.cut_at.is_some_and(|cut_at| self.now.micros_since(cut_at) >= WINDOW_US);
            let is_kicked = self.kicked.contains(&(home.session, client.player));
            let is_new = home.token.is_none() && (is_late || is_kicked || home.is_leaving);
            let is_same = home.seat == own.seat;
            assert!(home.moving.is_some() || is_new || is_same, "a returning player has the same seat");
        }
        let (seat, session) = (own.seat, view.session);
        client.home = Some(Home {
            session,
            token: Some(token),
            seat,
            moving: None,
            is_leaving: false,
            cut_at: None,
            dark_until: Time::ZERO,
        });
        client.state = State::In { member, view };
    }

    fn closed(&mut self, at: usize, why: Closing) {
        let client = &mut self.clients[at];
        let now = self.now;
        match (why, &mut client.home) {
            (Closing::Suspended, Some(home)) => {
                home.cut_at.get_or_insert(now);
                return client.state = State::Away;
            }
            (Closing::BadToken, Some(home)) => {
                let is_kicked = self.kicked.contains(&(home.session, client.player));
                let is_late = home.cut_at.is_some_and(|cut_at| now.micros_since(cut_at) >= WINDOW_US);
                assert!(is_kicked || is_late || home.is_leaving, "back within a minute, so admitted");
            }
            (Closing::BadTicket, Some(home)) if home.token.is_none() => {
                // The ticket was too old: the client joins again and is recognised.
                return client.state = State::Away;
            }
            (Closing::CameBack, _) => panic!("nobody has two connections that they care for"),
            _ => {}
        }
        client.home = None;
        client.state = State::Idle;
    }
}
