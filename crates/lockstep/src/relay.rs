//! Many sessions behind one door: which link belongs to which session, and what each is sent. Sessions are split by
//! build (L10); no game is known here (L1).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sametick_sim::record::{Leaving, Record};
use sametick_sim::{BuildId, SchemaHash, Tick, TickRate, Time};
use sametick_wire::text::{NAME_RULE, is_safe_to_show};
use sametick_wire::{Channel, Malformed};

use crate::assignment::{JoinRequest, SeatAssignment};
use crate::compaction::CompactionConfig;
use crate::inquiry::Report;
pub use crate::kept::{Found, Kept};
use crate::message::{self, Join, MAX_SETUP, MAX_STATE, MAX_TEXT, ToRelay, read_inputs};
use crate::session::{Facts, JoinError, Member, START_DELAY_US, Session, SessionId, refuse};
use sametick_wire::outbox::Outbox;

mod bringing;
mod driving;
mod finding;

use bringing::Bringing;
pub use bringing::{BRINGING_US, BROUGHT_TOO_SLOWLY, BROUGHT_WRONG, MAX_BRINGING};

/// Sessions of one relay at once.
pub const MAX_SESSIONS: usize = 4_096;

/// Closed ticks, as coded bytes, and saves kept by all sessions together: beyond it no session is begun or saved.
pub const MAX_TOTAL_HISTORY: usize = 256 << 20;

/// A session that everybody has left is kept for this long, for those who come back.
pub const LINGER_US: u64 = 10_000_000;

/// What somebody is told who would begin one session too many.
const NO_ROOM: &str = "the relay has no room for another session";

/// The first rule of the protocol.
const JOIN_FIRST: &str = "the first message to a relay is Join, on the channel for control";

/// The tick rates that a session may have.
const RATES: core::ops::RangeInclusive<u16> = 1..=240;

/// The longest message on the control channel: two hundred hashes and some text.
const MAX_CONTROL: usize = 64 << 10;

/// Which session: those of different builds never meet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    /// The build of the simulation.
    pub build: BuildId,
    /// The session's name.
    pub name: String,
}

/// What happens to a relay.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// A link has opened; its hello named a session and a schema.
    Opened(Member, SessionKey, SchemaHash),
    /// A message has arrived on a link.
    Message(Member, Channel, &'a [u8]),
    /// A link has ended.
    Closed(Member, Leaving),
    /// As whom a link takes part, said after it has opened and before it joins. A session that somebody joins on assignment goes on until it
    /// is [ended](Input::End), also while nobody is there.
    Assigned(Member, SeatAssignment),
    /// Somebody is to be thrown out, and told why.
    Kick(Member, &'static str),
    /// A session is to be over: whoever is there, or on the way, is told why. Nothing if it is not running.
    End(SessionKey, &'static str),
    /// What a replay of a session has after a tick, as [`Output::Judge`] asked for; none if nobody can replay it.
    Verdict(SessionId, Tick, Option<Vec<u8>>),
    /// What a replay of a session has after a tick, as [`Output::WantSave`] asked for; none if nobody can replay it.
    Made(SessionId, Tick, Option<Vec<u8>>),
    /// The save of a session after this tick is stored. Only said where saves are.
    Saved(SessionId, Tick),
    /// What there is of a session, as [`Output::Find`] asked for.
    Found(SessionKey, Found),
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a relay wants. Bytes are in the buffer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes to a peer.
    Send(Member, Channel),
    /// End a link, and say why.
    Close(Member, &'static str),
    /// Somebody wants to join a session that is not running: look what there is of it, and say so with [`Input::Found`].
    /// Only asked where [`RelayConfig::finds`].
    Find(SessionKey),
    /// A session has begun: its log starts here.
    Begun(SessionId),
    /// A session goes on that was found: so does its log. Perhaps with ticks that it lacks, as [`Output::Closed`], and then
    /// with a [`Record::Rewind`], before anything else; or with its end, if nobody stays for so long. The rewind is to be durable
    /// before anybody is sent what follows it, as far as the disk lets it: a log that has lost it holds what is void.
    Resumed(SessionId),
    /// A session begins with a copy that a peer has brought, see [`Session::save`]: so does its log, and the copy is to be stored.
    Brought(SessionId),
    /// Write this down.
    Record(SessionId, Record),
    /// A tick is closed: write its inputs down, see [`Session::rows`].
    Closed(SessionId, Tick),
    /// A session is over: its log ends here.
    Ended(SessionId),
    /// Players differ and none has a majority: replay the session up to this tick, see [`Input::Verdict`].
    Judge(SessionId, Tick),
    /// There is a new save, see [`Session::save`]: store it, and say so with [`Input::Saved`].
    Save(SessionId),
    /// No peer can give a save: replay the session up to this tick, see [`Input::Made`].
    WantSave(SessionId, Tick),
    /// All that is known about a desync.
    Desync(SessionId, Box<Report>),
    /// For the relay itself: somebody is to be thrown out.
    #[doc(hidden)]
    Kick(Member, &'static str),
    /// Nothing more before this time.
    WakeAt(Time),
    /// Nothing more until something arrives.
    Wait,
}

/// How a relay behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayConfig {
    /// How many closed ticks are sent together: more cost fewer bytes, and as many ticks of latency. If none, each
    /// session has as many as its nearest player hardly feels.
    pub ticks_per_packet: Option<u32>,
    /// What claims to come back are made from: 256 random bits, other ones each time a relay starts, or the same ones where it
    /// finds its sessions again.
    pub secret: [u8; 32],
    /// When sessions are saved.
    pub compaction: CompactionConfig,
    /// Whether sessions are kept and found again: then the relay asks with [`Output::Find`] before it begins one.
    pub finds: bool,
}

struct Room {
    key: SessionKey,
    session: Session,
    /// Since when nobody is there.
    empty_since: Option<Time>,
}

impl Room {
    /// When it is given up, if nobody comes.
    fn given_up_at(&self) -> Option<Time> {
        self.empty_since
            .filter(|_| !self.session.is_on_assignment())
            .map(|since| since.plus_micros(LINGER_US))
    }

    /// When the next tick closes, or the room is given up, or at least is looked at again.
    fn wake_at(&self, now: Time) -> Time {
        let given_up = self.given_up_at();
        let idle = now.plus_micros(START_DELAY_US / 2);
        let looked_at = self.session.is_returning().then_some(idle);
        given_up.into_iter().chain(self.session.wake_at()).chain(looked_at).min().unwrap_or(idle)
    }
}

struct Door {
    key: SessionKey,
    schema: SchemaHash,
    /// As whom it takes part, if that was decided.
    assignment: Option<SeatAssignment>,
    /// It waits for its session to be found.
    waits: bool,
    /// Once it has joined.
    session: Option<SessionId>,
}

/// A relay.
pub struct Relay {
    config: RelayConfig,
    now: Time,
    next: u64,
    names: BTreeMap<SessionKey, SessionId>,
    /// In boxes: a node of the map has place for eleven, and would be moved through.
    rooms: BTreeMap<SessionId, Box<Room>>,
    /// When each room wants to be woken: one entry a room.
    wakes: BinaryHeap<Reverse<(Time, SessionId)>>,
    doors: BTreeMap<Member, Door>,
    /// The first link since it started.
    first: Option<Member>,
    /// Sessions that are looked for, and who wants to join them: at most [`MAX_MEMBERS`] each.
    looked_for: BTreeMap<SessionKey, Vec<(Member, JoinRequest)>>,
    /// Copies that are on their way, from the first of those who want to join.
    bringing: BTreeMap<SessionKey, Bringing>,
    outbox: Outbox<Output>,
    /// Rooms that are over, kept until what was said about them last has been taken.
    over: Vec<SessionId>,
}

impl Relay {
    /// A relay without sessions.
    pub fn new(config: RelayConfig) -> Relay {
        Relay {
            config,
            now: Time::ZERO,
            next: 0,
            names: BTreeMap::new(),
            rooms: BTreeMap::new(),
            wakes: BinaryHeap::new(),
            doors: BTreeMap::new(),
            first: None,
            looked_for: BTreeMap::new(),
            bringing: BTreeMap::new(),
            outbox: Outbox::default(),
            over: Vec::new(),
        }
    }

    /// A session; also one that is over, until something else happens.
    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.rooms.get(&id).map(|room| &room.session)
    }

    /// The session with this name, if it is running.
    pub fn find(&self, key: &SessionKey) -> Option<SessionId> {
        self.names.get(key).copied()
    }

    /// The sessions there are.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        let running = self.rooms.iter().filter(|(id, _)| !self.over.contains(id));
        running.map(|(id, room)| (*id, &room.session))
    }

    /// Takes what happened. A peer that does not speak the protocol is closed; the others do not notice.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.now = self.now.max(now);
        for id in self.over.drain(..) {
            self.rooms.remove(&id);
        }
        match input {
            Input::Opened(member, key, schema) => {
                self.first.get_or_insert(member);
                // Numbers do not repeat; if one did, whoever had it would be gone.
                self.drop_member(member, Leaving::Left);
                self.doors
                    .insert(member, Door { key, schema, assignment: None, waits: false, session: None });
            }
            Input::Message(member, channel, bytes) => {
                if let Err(broken) = self.on_message(member, channel, bytes) {
                    self.kick(member, broken.rule());
                }
            }
            Input::Closed(member, why) => self.drop_member(member, why),
            Input::Assigned(member, assignment) => self.assign(member, assignment),
            Input::Kick(member, why) => self.kick(member, why),
            Input::End(key, why) => self.end(&key, why),
            Input::Verdict(id, tick, state) => {
                if let Some(room) = self.rooms.get_mut(&id) {
                    room.session.on_verdict(self.now, tick, state, &mut self.outbox);
                }
            }
            Input::Made(id, tick, state) => {
                if let Some(room) = self.rooms.get_mut(&id) {
                    room.session.on_made(self.now, tick, state, &mut self.outbox);
                }
            }
            Input::Saved(id, tick) => {
                if let Some(room) = self.rooms.get_mut(&id) {
                    room.session.on_saved(self.now, tick, &mut self.outbox);
                }
            }
            Input::Found(key, found) => self.on_found(&key, found),
            Input::Timeout => self.on_time(),
        }
    }

    /// Whether a member takes part in a session, or brings a copy of one: before that nothing long is heard from it.
    pub fn has_joined(&self, member: Member) -> bool {
        let door = self.doors.get(&member);
        door.is_some_and(|door| door.session.is_some() || self.is_bringing(&door.key, member))
    }

    /// What the relay wants next.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        loop {
            match self.outbox.pop(buf) {
                Some(Output::Kick(member, why)) => self.kick(member, why),
                Some(output) => {
                    if matches!(output, Output::Save(_) | Output::Ended(_)) {
                        self.weigh();
                    }
                    return output;
                }
                None => {
                    let rooms_at = self.wakes.peek().map(|wake| wake.0.0);
                    let wake_at = rooms_at.into_iter().chain(self.bringing_wake_at()).min();
                    return wake_at.map_or(Output::Wait, Output::WakeAt);
                }
            }
        }
    }

    fn on_message(&mut self, member: Member, channel: Channel, bytes: &[u8]) -> Result<(), Malformed> {
        let door = self.doors.get(&member).ok_or(Malformed::Forbidden(JOIN_FIRST))?;
        let room = door.session.and_then(|id| self.rooms.get_mut(&id));
        let limit = if channel == Channel::Chunks { 2 * MAX_STATE } else { MAX_CONTROL };
        if bytes.len() > limit {
            return Err(Malformed::TooLong);
        }
        match (channel, room) {
            (Channel::Input, Some(room)) => {
                let (session, mut result) = (&mut room.session, Ok(()));
                read_inputs(bytes, session.history().last(), |tick, input| {
                    result = result.and(session.input(self.now, member, tick, input));
                })?;
                result
            }
            (Channel::Diagnostics, Some(room)) => {
                room.session.on_diagnostics(member, message::from_bytes(bytes)?);
                Ok(())
            }
            (Channel::Control | Channel::Chunks, Some(room)) => {
                let message = message::from_bytes(bytes)?;
                room.session.on_message(self.now, member, message, &mut self.outbox)
            }
            (Channel::Control, None) => match message::from_bytes(bytes)? {
                ToRelay::Join(join) => self.join(member, join),
                message => {
                    let key = door.key.clone();
                    self.on_brought(&key, member, message)
                }
            },
            (Channel::Chunks, None) => {
                let key = door.key.clone();
                self.read_brought(&key, member, bytes)
            }
            (_, None) => Err(Malformed::Forbidden(JOIN_FIRST)),
            _ => Err(Malformed::Forbidden(
                "a relay hears on the channels for control, chunks, input and diagnostics",
            )),
        }
    }

    fn join(&mut self, member: Member, join: Join) -> Result<(), Malformed> {
        let assignment = self.doors.get(&member).and_then(|door| door.assignment.clone());
        let wish = JoinRequest::new(join, assignment);
        let join = &wish.join;
        let texts = [&join.game, &join.commit, &join.name];
        if join.setup.len() > MAX_SETUP
            || !RATES.contains(&join.rate)
            || texts.iter().any(|text| text.len() > MAX_TEXT)
        {
            return Err(Malformed::Forbidden(
                "a Join has a setup of at most 4096 bytes, a rate from 1 to 240, and texts of at most 64 bytes",
            ));
        }
        if !is_safe_to_show(&join.name) {
            return Err(Malformed::Forbidden(NAME_RULE));
        }
        let Some(door) = self.doors.get_mut(&member).filter(|door| !door.waits) else {
            return Err(Malformed::Forbidden("Join is sent once"));
        };
        if let Some(id) = self.names.get(&door.key) {
            let id = *id;
            self.enter(id, member, &wish);
            self.look_for_returning(id);
        } else if self.config.finds || join.bring.is_some() || self.looked_for.contains_key(&door.key) {
            self.look_for(member, wish);
        } else {
            match self.begin(self.next, member, join) {
                Some(id) => self.enter(id, member, &wish),
                None => refuse(&mut self.outbox, member, NO_ROOM),
            }
        }
        Ok(())
    }

    /// Somebody comes into a session that is there.
    fn enter(&mut self, id: SessionId, member: Member, wish: &JoinRequest) {
        let Some(room) = self.rooms.get_mut(&id) else { return };
        let schema = self.doors.get(&member).map(|door| door.schema);
        if schema != Some(room.session.facts().schema) {
            return refuse(&mut self.outbox, member, JoinError::Schema.text());
        }
        match room.session.join(self.now, member, wish, &mut self.outbox) {
            Ok(()) => {
                room.empty_since = None;
                if let Some(door) = self.doors.get_mut(&member) {
                    door.session = Some(id);
                }
            }
            Err(error) => refuse(&mut self.outbox, member, error.text()),
        }
    }

    /// Begins a session as somebody wants it, if there is room for one.
    fn begin(&mut self, uid: u64, member: Member, join: &Join) -> Option<SessionId> {
        let door = self.doors.get(&member)?;
        let facts = facts_of(door, join);
        let key = door.key.clone();
        let id = self.next_id(uid)?;
        let session = Session::new(id, uid, facts, join.wait_for, &self.config);
        self.open(id, key, session);
        self.outbox.push_bare(Output::Begun(id));
        Some(id)
    }

    /// Goes on with a session that was found.
    fn resume(&mut self, key: SessionKey, kept: Kept) -> Option<SessionId> {
        let id = self.next_id(kept.uid)?;
        let first = self.first.unwrap_or(Member(0));
        let session = Session::kept(id, kept, first, &self.config);
        self.open(id, key, session);
        self.outbox.push_bare(Output::Resumed(id));
        Some(id)
    }

    /// The number of another session, if there is room for one.
    fn next_id(&mut self, uid: u64) -> Option<SessionId> {
        let has_room = self.rooms.len() < MAX_SESSIONS && self.kept_bytes() < MAX_TOTAL_HISTORY;
        self.next += u64::from(has_room);
        // Two that began in the same moment have to be told apart here only.
        let free = (uid..).map(SessionId).find(|id| !self.rooms.contains_key(id));
        free.filter(|_| has_room)
    }

    fn open(&mut self, id: SessionId, key: SessionKey, session: Session) {
        self.wakes.push(Reverse((self.now.plus_micros(START_DELAY_US / 2), id)));
        self.names.insert(key.clone(), id);
        // Kept only if somebody comes in: a session nobody could join is given up like one that everybody has left.
        self.rooms.insert(id, Box::new(Room { key, session, empty_since: Some(self.now) }));
    }

    fn kept_bytes(&self) -> usize {
        let kept: usize = self.rooms.values().map(|room| room.session.kept_bytes()).sum();
        kept + self.bringing_bytes()
    }

    /// Saves are made as long as there is room for them.
    fn weigh(&mut self) {
        let may_save = self.kept_bytes() < MAX_TOTAL_HISTORY;
        self.rooms.values_mut().for_each(|room| room.session.allow_saves(may_save));
    }

    fn kick(&mut self, member: Member, why: &'static str) {
        self.drop_member(member, Leaving::Kicked);
        self.outbox.push_bare(Output::Close(member, why));
    }

    fn drop_member(&mut self, member: Member, why: Leaving) {
        let Some(door) = self.doors.remove(&member) else { return };
        if let Some(waiting) = self.looked_for.get_mut(&door.key) {
            waiting.retain(|(other, _)| *other != member);
        }
        self.on_bringer_left(&door.key, member);
        let Some(id) = door.session else { return };
        if let Some(room) = self.rooms.get_mut(&id) {
            room.session.leave(self.now, member, why, &mut self.outbox);
            if room.session.members() == 0 {
                room.empty_since.get_or_insert(self.now);
            }
        }
    }

    fn on_time(&mut self) {
        self.look_after_bringing();
        while let Some(&Reverse((_, id))) = self.wakes.peek().filter(|wake| wake.0.0 <= self.now) {
            self.wakes.pop();
            let Some(room) = self.rooms.get_mut(&id) else { continue };
            room.session.on_time(self.now, &mut self.outbox);
            if room.given_up_at().is_some_and(|at| at <= self.now) {
                self.finish(id);
            } else {
                self.wakes.push(Reverse((room.wake_at(self.now), id)));
            }
        }
    }
}

/// What is said once about a session that a peer begins.
fn facts_of(door: &Door, join: &Join) -> Facts {
    Facts {
        name: door.key.name.clone(),
        game: join.game.clone(),
        build: door.key.build,
        commit: join.commit.clone(),
        schema: door.schema,
        setup: join.setup.clone(),
        seed: join.seed,
        rate: TickRate::hz(join.rate),
        seats: join.seats,
        listed: join.listed,
    }
}
