//! A relay that is restarted with a log, and its output for each event.

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::history::History;
use sametick_lockstep::message::{self, Claim, Join, Resume, ToPeer, ToRelay};
use sametick_lockstep::relay::{Found, Input, Kept, Output, Relay, RelayConfig, SessionKey};
use sametick_lockstep::rows::Opaque;
use sametick_lockstep::session::{Facts, Member, START_DELAY_US};
use sametick_sim::record::{Leaving, Record};
use sametick_sim::{BuildId, Inputs, SchemaHash, Seat, Tick, Time};
use sametick_wire::Channel;

/// The number that the session began with.
pub const UID: u64 = 77;

/// The number of seats.
pub const SEATS: u16 = 8;

/// The relay's output for one event.
#[derive(Default)]
pub struct Came {
    pub messages: Vec<(Member, ToPeer)>,
    /// Links that were closed.
    pub closed: Vec<Member>,
    pub records: Vec<Record>,
    /// Ticks that were closed.
    pub ticks: Vec<Tick>,
    /// A rewind was recorded before any welcome was sent.
    pub is_written_first: bool,
}

impl Came {
    /// No messages were sent and no records written.
    pub fn is_nothing(&self) -> bool {
        self.messages.is_empty() && self.closed.is_empty() && self.records.is_empty() && self.ticks.is_empty()
    }

    /// The ticks to which the session was rewound.
    pub fn rewinds(&self) -> Vec<Tick> {
        let to = |record: &Record| match record {
            Record::Rewind { to } => Some(*to),
            _ => None,
        };
        self.records.iter().filter_map(to).collect()
    }

    /// The seats that were left, and in which ticks.
    pub fn left(&self) -> Vec<(Tick, Seat)> {
        let left = |record: &Record| match record {
            Record::Left { tick, seat, .. } => Some((*tick, *seat)),
            _ => None,
        };
        self.records.iter().filter_map(left).collect()
    }

    /// The members asked for lost ticks.
    pub fn asked(&self) -> Vec<u64> {
        let is_question = |it: &&(Member, ToPeer)| matches!(it.1, ToPeer::GiveTicks { .. });
        self.messages.iter().filter(is_question).map(|(member, _)| member.0).collect()
    }

    /// The members whose join was refused.
    pub fn refused(&self) -> Vec<u64> {
        let is_no = |it: &&(Member, ToPeer)| matches!(it.1, ToPeer::Refused { .. });
        self.messages.iter().filter(is_no).map(|(member, _)| member.0).collect()
    }

    /// Appends the output of a later event.
    pub fn and(mut self, more: Came) -> Came {
        self.messages.extend(more.messages);
        self.closed.extend(more.closed);
        self.records.extend(more.records);
        self.ticks.extend(more.ticks);
        self.is_written_first |= more.is_written_first;
        self
    }
}

pub struct Den {
    pub relay: Relay,
    pub now: Time,
    /// The answer when the session is looked up.
    pub found: Option<Kept>,
    pub facts: Option<Facts>,
    /// The rows of the ticks that were closed here.
    pub ticks: Vec<Inputs<Opaque>>,
}

impl Den {
    pub fn new(found: Option<Kept>) -> Den {
        let config = RelayConfig { secret: [1; 32], finds: true, ..RelayConfig::default() };
        Den { relay: Relay::new(config), now: Time::ZERO, found, facts: None, ticks: vec![] }
    }

    pub fn handle(&mut self, input: Input<'_>) -> Came {
        self.relay.handle(self.now, input);
        let (mut came, mut buf) = (Came::default(), vec![]);
        loop {
            match self.relay.poll_output(&mut buf) {
                Output::Send(to, Channel::Control) => {
                    came.is_written_first |= !came.rewinds().is_empty() && came.messages.is_empty();
                    came.messages.push((to, message::from_bytes(&buf).unwrap()));
                }
                Output::Close(member, _) => came.closed.push(member),
                Output::Record(_, record) => came.records.push(record),
                Output::Find(key) => {
                    let kept = self.found.take().map(|kept| Found::Kept(Box::new(kept)));
                    let found = kept.unwrap_or(Found::New { uid: UID });
                    self.relay.handle(self.now, Input::Found(key, found));
                }
                Output::Begun(id) => self.facts = self.relay.session(id).map(|it| it.facts().clone()),
                Output::Closed(id, tick) => {
                    let rows = self.relay.session(id).and_then(|session| session.rows(tick));
                    self.ticks.push(rows.expect("the rows of a closed tick").clone());
                    came.ticks.push(tick);
                }
                Output::WakeAt(_) | Output::Wait => return came,
                _ => {}
            }
        }
    }

    pub fn join(&mut self, member: u64, resume: Option<Resume>) -> Came {
        self.join_as(member, false, resume)
    }

    pub fn join_as(&mut self, member: u64, watch: bool, resume: Option<Resume>) -> Came {
        self.handle(Input::Opened(Member(member), key(), SchemaHash::from_bytes([3; SchemaHash::LEN])));
        let bytes = message::to_bytes(&ToRelay::Join(Join { watch, resume, ..join(member) }));
        self.handle(Input::Message(Member(member), Channel::Control, &bytes))
    }

    /// A link that takes part on assignment, though its join asks for another game and any seat.
    pub fn join_on(&mut self, member: u64, assignment: SeatAssignment, resume: Option<Resume>) -> Came {
        let schema = SchemaHash::from_bytes([3; SchemaHash::LEN]);
        let opened = self.handle(Input::Opened(Member(member), key(), schema));
        let came = opened.and(self.handle(Input::Assigned(Member(member), assignment)));
        let join = Join { setup: vec![9; 9], seed: 9, seats: 2, wait_for: 9, listed: false, ..join(member) };
        let bytes = message::to_bytes(&ToRelay::Join(Join { resume, ..join }));
        came.and(self.handle(Input::Message(Member(member), Channel::Control, &bytes)))
    }

    pub fn leave(&mut self, member: u64) -> Came {
        self.handle(Input::Closed(Member(member), Leaving::TimedOut))
    }

    pub fn give(&mut self, member: u64, ticks: &ToRelay) -> Came {
        self.handle(Input::Message(Member(member), Channel::Chunks, &message::to_bytes(ticks)))
    }

    pub fn run_to(&mut self, us: u64) -> Came {
        self.now = Time::from_micros(us);
        self.handle(Input::Timeout)
    }
}

/// A session that ran for some ticks: its facts, its ticks, and the claims of its players, by seat.
pub struct Life {
    pub facts: Facts,
    pub ticks: Vec<Inputs<Opaque>>,
    pub claims: Vec<Claim>,
}

pub fn key() -> SessionKey {
    SessionKey { build: BuildId::from_bytes([1; 16]), name: "den".into() }
}

pub fn join(member: u64) -> Join {
    Join {
        game: "den".into(),
        commit: String::new(),
        setup: vec![],
        seed: 0,
        rate: 60,
        seats: SEATS,
        wait_for: 1,
        name: format!("p{member}"),
        watch: false,
        seat: None,
        listed: false,
        resume: None,
        bring: None,
    }
}

/// A life of two players.
pub fn live(ticks: u32) -> Life {
    live_with(2, ticks)
}

/// A life of this many players, who all send an input in every tick.
pub fn live_with(players: u64, ticks: u32) -> Life {
    let mut den = Den::new(None);
    let claims = (1..=players).map(|member| {
        let came = den.join(member, None);
        welcomed(&came, member).2
    });
    let claims = claims.collect();
    for tick in 1..=u64::from(ticks) {
        for member in 1..=players {
            let (input, mut bytes) = (Opaque::new(&[(tick * member) as u8]).unwrap(), vec![]);
            message::put_inputs(&mut bytes, Tick(tick as u32), [input].iter());
            den.handle(Input::Message(Member(member), Channel::Input, &bytes));
        }
        den.run_to(START_DELAY_US + tick * 1_000_000 / 60 + 1);
    }
    assert_eq!(den.ticks.len(), ticks as usize);
    Life { facts: den.facts.unwrap(), ticks: den.ticks, claims }
}

impl Life {
    /// A restarted relay with a log of the ticks up to this one.
    pub fn restarted(&self, last: usize) -> Den {
        self.restarted_after(last, 0)
    }

    /// The same with this many rewinds in the log.
    pub fn restarted_after(&self, last: usize, restarts: u32) -> Den {
        let mut kept = Kept::new(self.facts.clone(), UID, restarts, None);
        self.ticks[..last].iter().for_each(|rows| kept.push(rows));
        Den::new(Some(kept))
    }

    pub fn having(&self, seat: usize, have: u32) -> Option<Resume> {
        Some(Resume { claim: self.claims[seat], have: Tick(have) })
    }

    /// The ticks up to this one, as a peer gives them.
    pub fn given(&self, from: u32, to: usize) -> ToRelay {
        self.given_all(from, to).remove(0)
    }

    /// All of these ticks, in several messages if they are many.
    pub fn given_all(&self, from: u32, to: usize) -> Vec<ToRelay> {
        let mut history = History::default();
        self.ticks[..to].iter().for_each(|rows| history.push(rows));
        let (mut from, mut given) = (Tick(from), vec![]);
        while let Some(excerpt) = history.excerpt(from) {
            from = excerpt.last().next();
            let (first, ticks, table) = (excerpt.first, excerpt.ticks, excerpt.start.to_bytes());
            given.push(ToRelay::Ticks { first, ticks, table, bytes: excerpt.bytes });
        }
        given
    }
}

/// Seat, first tick that follows, and claim of a welcomed member.
pub fn find_welcome(came: &Came, member: u64) -> Option<(Option<Seat>, Tick, Claim)> {
    came.messages.iter().find_map(|(to, message)| match message {
        ToPeer::Welcome { seat, first, claim, .. } if *to == Member(member) => Some((*seat, *first, *claim)),
        _ => None,
    })
}

#[track_caller]
pub fn welcomed(came: &Came, member: u64) -> (Option<Seat>, Tick, Claim) {
    find_welcome(came, member).unwrap_or_else(|| panic!("{:?}", came.messages))
}

pub fn rewind(to: u32) -> Record {
    Record::Rewind { to: Tick(to) }
}
