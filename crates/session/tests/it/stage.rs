//! A session with a driver in virtual time: a disk that may be slow, clients that apply events to their view, and a
//! game that knows the player of each seat.

use std::collections::{BTreeMap, BTreeSet};

use sametick_session::id::{HostId, Incarnation, Key, SessionId};
use sametick_session::message::{Closing, Ending, Event, Phase, Refusal, Request, View};
use sametick_session::name::{Line, Name};
use sametick_session::password::{Lock, Password, Salt};
use sametick_session::plan::Plan;
use sametick_session::session::{Founding, Input, Output, Reserve, Session};
use sametick_session::settings::{Difficulty, Mode, Settings};
use sametick_session::ticket::Ticket;
use sametick_sim::{Seat, Time};
use sametick_wire::Member;
use sametick_wire::identity::{PlayerId, Token};

pub const SECRET: [u8; 32] = [9; 32];
pub const ID: SessionId = SessionId { host: HostId(1), born: Incarnation(1), mark: 77 };
pub const SECOND: u64 = 1_000_000;
pub const MINUTE: u64 = 60 * SECOND;

pub const ADA: PlayerId = PlayerId(1);
pub const BOB: PlayerId = PlayerId(2);
pub const EVE: PlayerId = PlayerId(3);

/// Eight ships of six consoles, each with an autopilot.
pub fn bridge() -> Plan {
    Plan::uniform("Ship", 8, &["helm", "weapons", "engines", "science", "comms", "screen"]).unwrap()
}

pub fn pong() -> Plan {
    Plan::uniform("Players", 1, &["left", "right", "top", "bottom"]).unwrap()
}

/// The number of seeds: `cargo xtask long sessions` sets it.
#[expect(clippy::disallowed_methods, reason = "the environment sets the size of a test")]
pub fn seeds(usual: u64) -> u64 {
    std::env::var_os("SAMETICK_SEEDS").map_or(usual, |seeds| seeds.to_str().unwrap().parse().unwrap())
}

pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

pub fn line(text: &str) -> Line {
    Line::parse(text).unwrap()
}

pub fn settings(groups: u8) -> Settings {
    Settings {
        name: name("Tuesday"),
        game: name("bridge"),
        mode: Mode::Room,
        scenario: None,
        difficulty: Difficulty::default(),
        groups,
        listed: true,
    }
}

pub fn name_of(player: PlayerId) -> Name {
    let known = [(ADA, "Ada"), (BOB, "Bob"), (EVE, "Eve")];
    let found = known.iter().find(|(one, _)| *one == player);
    found.map_or_else(|| name(&format!("P{}", player.0)), |(_, text)| name(text))
}

/// A session and its driver.
pub struct Stage {
    pub session: Session,
    pub now: Time,
    /// The view of each member.
    pub views: BTreeMap<Member, View>,
    /// The newest token of each player.
    pub tokens: BTreeMap<PlayerId, Token>,
    /// Members whose connection has ended: they hear nothing.
    pub cut: BTreeSet<Member>,
    pub heard: Vec<(Member, Event)>,
    pub answers: Vec<(Member, u64, Result<(), Refusal>)>,
    pub closed: Vec<(Member, Closing)>,
    pub reserved: Vec<(u64, Result<Ticket, Refusal>)>,
    /// The player of each seat, as the game knows it.
    pub manned: BTreeMap<Seat, PlayerId>,
    /// Players who may have links to the game, also while they are disconnected.
    pub guests: BTreeSet<PlayerId>,
    /// The round that runs.
    pub game: Option<u32>,
    pub over: Option<Ending>,
    pub is_suspended: bool,
    pub disk: Option<Vec<u8>>,
    /// The snapshot that was written and not yet acknowledged.
    pub writing: Option<(u64, Vec<u8>)>,
    pub is_disk_slow: bool,
    pub wake_at: Option<Time>,
    next: u64,
}

impl Stage {
    pub fn new(plan: Plan, groups: u8, password: Option<&str>) -> Stage {
        let salt = Salt([3; 16]);
        let lock =
            password.map(|word| Lock { salt, weight: Password::new(word).unwrap().weigh_lightly(salt) });
        let founding = Founding { id: ID, key: Key([1; 16]), plan, settings: settings(groups), lock };
        let now = Time::from_micros(SECOND);
        let mut stage = Stage::with(now, Session::new(now, &SECRET, founding).unwrap());
        stage.drain();
        stage
    }

    fn with(now: Time, session: Session) -> Stage {
        Stage {
            now,
            views: BTreeMap::new(),
            tokens: BTreeMap::new(),
            cut: BTreeSet::new(),
            heard: Vec::new(),
            answers: Vec::new(),
            closed: Vec::new(),
            reserved: Vec::new(),
            manned: BTreeMap::new(),
            guests: session.view().people.iter().map(|person| person.player).collect(),
            session,
            game: None,
            over: None,
            is_suspended: false,
            disk: None,
            writing: None,
            is_disk_slow: false,
            wake_at: None,
            next: 0,
        }
    }

    /// The process dies, and another restores the session from disk, `down_us` later.
    pub fn restart(&mut self, down_us: u64, crashed_s: Option<u64>) {
        let now = self.now.plus_micros(down_us);
        let disk = self.disk.take().expect("something was stored");
        let session = Session::restore(now, &SECRET, &disk, crashed_s).unwrap();
        let old = std::mem::replace(self, Stage::with(now, session));
        (self.tokens, self.disk, self.next, self.is_disk_slow) =
            (old.tokens, Some(disk), old.next, old.is_disk_slow);
        self.drain();
    }

    pub fn handle(&mut self, input: Input) {
        if let Input::Cut(member) = input {
            self.views.remove(&member);
            self.cut.insert(member);
        }
        self.session.handle(self.now, input);
        self.drain();
    }

    /// Advances the time; whatever is due happens when it is.
    pub fn wait(&mut self, us: u64) {
        let until = self.now.plus_micros(us);
        while let Some(at) = self.wake_at.filter(|at| *at <= until) {
            assert!(at >= self.now, "a machine that wakes in the past never sleeps");
            let before = self.wake_at;
            self.now = at;
            self.handle(Input::Timeout);
            assert_ne!(self.wake_at, before, "what was due has been done");
        }
        self.now = until;
    }

    pub fn store(&mut self) {
        if let Some((revision, bytes)) = self.writing.take() {
            self.disk = Some(bytes);
            self.handle(Input::Stored(revision));
        }
    }

    pub fn drain(&mut self) {
        loop {
            match self.session.poll_output() {
                Output::Reserved(ask, answer) => self.reserved.push((ask, answer)),
                Output::Weigh(work, salt, password) => {
                    self.session.handle(self.now, Input::Weighed(work, password.weigh_lightly(salt)));
                }
                Output::Store(revision) => {
                    assert!(self.writing.is_none(), "one at a time");
                    self.writing = Some((revision, self.session.snapshot()));
                    if !self.is_disk_slow {
                        self.store();
                    }
                }
                Output::Tell(member, event) => self.tell(member, event),
                Output::Answer(member, seq, answer) => self.answers.push((member, seq, answer)),
                Output::Close(member, why) => {
                    self.views.remove(&member);
                    self.closed.push((member, why));
                }
                Output::Begin { round, .. } => {
                    self.game = Some(round);
                    self.manned.clear();
                }
                Output::Manned(seat, player) => {
                    assert_eq!(self.manned.insert(seat, player), None, "one at a seat");
                }
                Output::Unmanned(seat) => assert!(self.manned.remove(&seat).is_some(), "it was occupied"),
                Output::Left(player) => assert!(self.guests.remove(&player), "the player was a member"),
                Output::Finish => self.game = None,
                Output::Closed(ending) => {
                    self.guests.clear();
                    self.over = Some(ending);
                }
                Output::Suspended => self.is_suspended = true,
                Output::Frozen | Output::Adopted(_) => {}
                Output::WakeAt(at) => {
                    self.wake_at = at;
                    break;
                }
            }
        }
        assert!(self.session.is_sound());
        if self.writing.is_none() {
            self.compare();
        }
    }

    fn tell(&mut self, member: Member, event: Event) {
        if let Event::Welcome { you, .. } = &event {
            self.guests.insert(*you);
        }
        if self.cut.contains(&member) {
            return;
        }
        match &event {
            Event::Welcome { you, resume_token, view } => {
                self.tokens.insert(*you, Token::from_hex(resume_token).unwrap());
                self.views.insert(member, View::clone(view));
            }
            event => self.views.get_mut(&member).expect("the first word is a welcome").apply(event),
        }
        self.heard.push((member, event));
    }

    /// Once everything is stored, all views are complete, and the game knows the player of each seat.
    fn compare(&self) {
        let view = self.session.view();
        for (member, known) in &self.views {
            assert!(self.session.player_of(*member).is_some());
            assert_eq!(known, &view, "{member:?} has been told everything");
        }
        let people: BTreeSet<PlayerId> = view.people.iter().map(|person| person.player).collect();
        assert_eq!(self.guests, people, "who is gone has no link to the game");
        if self.session.phase() == Phase::Running && !self.is_suspended {
            let sitting = view.people.iter().filter(|person| !person.away);
            let sitting: BTreeMap<Seat, PlayerId> =
                sitting.filter_map(|person| Some((person.seat?, person.player))).collect();
            assert_eq!(self.manned, sitting, "who is at which seat");
        }
    }

    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub fn reserve(
        &mut self,
        player: PlayerId,
        password: Option<&str>,
        seat: Option<u16>,
    ) -> Result<Ticket, Refusal> {
        let ask = self.number();
        let password = password.and_then(Password::new);
        let seat = seat.map(Seat);
        self.handle(Input::Reserve(Reserve {
            ask,
            player,
            name: name_of(player),
            password,
            seat,
            is_maker: false,
        }));
        let (answered, answer) = self.reserved.pop().expect("an answer");
        assert_eq!(answered, ask);
        answer
    }

    pub fn arrive(&mut self, ticket: Ticket) -> Member {
        let member = Member(self.number());
        self.handle(Input::Arrive(member, ticket));
        member
    }

    /// A player joins.
    pub fn join(&mut self, player: PlayerId) -> Member {
        let ticket = self.reserve(player, None, None).unwrap();
        self.arrive(ticket)
    }

    /// Resumes with the newest token.
    pub fn resume(&mut self, player: PlayerId) -> Result<Member, Closing> {
        let token = self.tokens[&player];
        self.resume_with(player, token)
    }

    pub fn resume_with(&mut self, player: PlayerId, token: Token) -> Result<Member, Closing> {
        let member = Member(self.number());
        self.handle(Input::Resume(member, player, token));
        match self.closed.iter().find(|(closed, _)| *closed == member) {
            Some((_, why)) => Err(*why),
            None => Ok(member),
        }
    }

    pub fn say(&mut self, member: Member, request: Request) -> Result<(), Refusal> {
        let seq = self.number();
        self.handle(Input::Say(member, seq, request));
        let at = self.answers.iter().position(|(to, number, _)| (*to, *number) == (member, seq));
        self.answers.remove(at.expect("an answer")).2
    }

    pub fn take(&mut self, member: Member, seat: u16) -> Result<(), Refusal> {
        self.say(member, Request::Take { seat: Seat(seat) })
    }

    /// Takes a seat and is ready.
    pub fn get_ready(&mut self, member: Member, seat: u16) {
        self.take(member, seat).unwrap();
        self.say(member, Request::Ready { ready: true }).unwrap();
    }

    pub fn seat_of(&self, player: PlayerId) -> Option<u16> {
        let view = self.session.view();
        view.people.iter().find(|person| person.player == player)?.seat.map(|seat| seat.0)
    }

    pub fn players(&self) -> Vec<PlayerId> {
        self.session.view().people.iter().map(|person| person.player).collect()
    }

    pub fn closing_of(&self, member: Member) -> Option<Closing> {
        self.closed.iter().find(|(closed, _)| *closed == member).map(|(_, why)| *why)
    }
}

/// Ada at the helm of the first of these ships, Bob at that of the second, and the game runs.
pub fn under_way(ships: u8) -> (Stage, Member, Member) {
    let mut stage = Stage::new(bridge(), ships, None);
    let (ada, bob) = (stage.join(ADA), stage.join(BOB));
    stage.get_ready(ada, 0);
    stage.get_ready(bob, 6);
    stage.say(ada, Request::Start {}).unwrap();
    (stage, ada, bob)
}
