//! The relay: assigns links to sessions and routes their messages. Sessions are split by build (L10); the relay knows
//! no game (L1).

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

/// The most sessions of one relay.
pub const MAX_SESSIONS: usize = 4_096;

/// Memory for closed ticks and saves of all sessions together: beyond it no session is begun or saved.
pub const MAX_TOTAL_HISTORY: usize = 256 << 20;

/// A session without members is kept for this long, so that peers can come back.
pub const LINGER_US: u64 = 10_000_000;

/// Told to a peer that would begin one session too many.
const NO_ROOM: &str = "the relay has no room for another session";

/// The reason for closing a link whose first message is not a join.
const JOIN_FIRST: &str = "the first message to a relay is Join, on the channel for control";

/// The tick rates that a session may have.
const RATES: core::ops::RangeInclusive<u16> = 1..=240;

/// The longest message on the control channel: two hundred hashes and some text.
const MAX_CONTROL: usize = 64 << 10;

/// The key of a session: peers of different builds never meet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    /// The build of the simulation.
    pub build: BuildId,
    /// The session's name.
    pub name: String,
}

/// An event for a relay.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// A link has opened; its hello named a session and a schema.
    Opened(Member, SessionKey, SchemaHash),
    /// A message has arrived on a link.
    Message(Member, Channel, &'a [u8]),
    /// A link has ended.
    Closed(Member, Leaving),
    /// The driver assigns player and seat of a link, overriding its `Join`; passed after the link has opened and before
    /// it joins. A session with an assigned member goes on until it is [ended](Input::End), also without members.
    Assigned(Member, SeatAssignment),
    /// The driver removes a peer, which is told why.
    Kick(Member, &'static str),
    /// The driver ends a session: members and joining peers are told why. Ignored if it is not running.
    End(SessionKey, &'static str),
    /// The state of a tick from a replay, as [`Output::Judge`] asked for; none if the session cannot be replayed.
    Verdict(SessionId, Tick, Option<Vec<u8>>),
    /// The state of a tick from a replay, as [`Output::WantSave`] asked for; none if the session cannot be replayed.
    Made(SessionId, Tick, Option<Vec<u8>>),
    /// The save of this tick is stored. Passed only where saves are stored.
    Saved(SessionId, Tick),
    /// What is stored of a session, as [`Output::Find`] asked for.
    Found(SessionKey, Found),
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a relay wants done. Bytes are in the buffer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes to a peer.
    Send(Member, Channel),
    /// Close a link, with the reason.
    Close(Member, &'static str),
    /// A peer joins a session that is not running: look up what is stored of it, and answer with [`Input::Found`]. Only
    /// asked where [`RelayConfig::finds`].
    Find(SessionKey),
    /// A session has begun: its log starts here.
    Begun(SessionId),
    /// A stored session goes on: so does its log. First come ticks that the log lacks, as [`Output::Closed`], and a
    /// [`Record::Rewind`]; or the session's end, if no peer stays. The rewind should be durable before any peer is sent
    /// the ticks after it: a log that lost it holds void ticks.
    Resumed(SessionId),
    /// A session begins with a peer's copy, see [`Session::save`]: its log starts here, and the copy is to be stored.
    Brought(SessionId),
    /// Write this record to the log.
    Record(SessionId, Record),
    /// A tick is closed: write its inputs to the log, see [`Session::rows`].
    Closed(SessionId, Tick),
    /// A session is over: its log ends here.
    Ended(SessionId),
    /// Players differ and no state has a majority: replay the session up to this tick, see [`Input::Verdict`].
    Judge(SessionId, Tick),
    /// There is a new save, see [`Session::save`]: store it, and answer with [`Input::Saved`].
    Save(SessionId),
    /// No peer can give a save: replay the session up to this tick, see [`Input::Made`].
    WantSave(SessionId, Tick),
    /// The report of a desync.
    Desync(SessionId, Box<Report>),
    /// Internal to the relay: a peer is to be removed.
    #[doc(hidden)]
    Kick(Member, &'static str),
    /// Wait until this time or the next event.
    WakeAt(Time),
    /// Wait for the next event.
    Wait,
}

/// The configuration of a relay.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayConfig {
    /// Closed ticks per packet: more ticks cost fewer bytes and as many ticks of latency. If none, each session chooses
    /// the number that its nearest player hardly notices.
    pub ticks_per_packet: Option<u32>,
    /// The secret that authenticates claims: 256 random bits, new for each relay process, or the same ones where the
    /// relay stores its sessions.
    pub secret: [u8; 32],
    /// When sessions are saved to compact their logs.
    pub compaction: CompactionConfig,
    /// Whether sessions are stored: the relay then asks with [`Output::Find`] before it begins one.
    pub finds: bool,
}

struct Room {
    key: SessionKey,
    session: Session,
    /// Since when the session has no members.
    empty_since: Option<Time>,
}

impl Room {
    /// When the session is ended for lack of members.
    fn given_up_at(&self) -> Option<Time> {
        self.empty_since
            .filter(|_| !self.session.is_on_assignment())
            .map(|since| since.plus_micros(LINGER_US))
    }

    /// When the next tick closes, or the session is ended for lack of members, or another check is due.
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
    /// Player and seat, if the driver assigned them.
    assignment: Option<SeatAssignment>,
    /// The link waits until its stored session is found.
    waits: bool,
    /// The session, once the link has joined.
    session: Option<SessionId>,
}

/// A relay.
pub struct Relay {
    config: RelayConfig,
    now: Time,
    next: u64,
    names: BTreeMap<SessionKey, SessionId>,
    /// In boxes: a node of the map has room for eleven values, which would be moved.
    rooms: BTreeMap<SessionId, Box<Room>>,
    /// When each room wants to be woken: one entry per room.
    wakes: BinaryHeap<Reverse<(Time, SessionId)>>,
    doors: BTreeMap<Member, Door>,
    /// The first link of this relay process.
    first: Option<Member>,
    /// Sessions being looked up, and the joins that wait for them: at most [`MAX_MEMBERS`] each.
    looked_for: BTreeMap<SessionKey, Vec<(Member, JoinRequest)>>,
    /// Copies being transferred, each from the first peer that joins.
    bringing: BTreeMap<SessionKey, Bringing>,
    outbox: Outbox<Output>,
    /// Rooms that have ended, kept until the last output about them has been taken.
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

    /// A session; one that has ended is available until the next event.
    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.rooms.get(&id).map(|room| &room.session)
    }

    /// The running session with this key.
    pub fn find(&self, key: &SessionKey) -> Option<SessionId> {
        self.names.get(key).copied()
    }

    /// The running sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        let running = self.rooms.iter().filter(|(id, _)| !self.over.contains(id));
        running.map(|(id, room)| (*id, &room.session))
    }

    /// Handles an event. A peer that violates the protocol is closed; the others do not notice.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.now = self.now.max(now);
        for id in self.over.drain(..) {
            self.rooms.remove(&id);
        }
        match input {
            Input::Opened(member, key, schema) => {
                self.first.get_or_insert(member);
                // Member ids do not repeat; if one did, its earlier owner would be removed.
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

    /// Whether a member takes part in a session, or brings a copy: its long messages are read only then.
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

    /// A peer joins a running session.
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

    /// Begins a session with the setup of this join, if there is room for one.
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

    /// Goes on with a stored session.
    fn resume(&mut self, key: SessionKey, kept: Kept) -> Option<SessionId> {
        let id = self.next_id(kept.uid)?;
        let first = self.first.unwrap_or(Member(0));
        let session = Session::kept(id, kept, first, &self.config);
        self.open(id, key, session);
        self.outbox.push_bare(Output::Resumed(id));
        Some(id)
    }

    /// A free session id, if there is room for another session.
    fn next_id(&mut self, uid: u64) -> Option<SessionId> {
        let has_room = self.rooms.len() < MAX_SESSIONS && self.kept_bytes() < MAX_TOTAL_HISTORY;
        self.next += u64::from(has_room);
        // Two sessions that began in the same moment need different ids only here.
        let free = (uid..).map(SessionId).find(|id| !self.rooms.contains_key(id));
        free.filter(|_| has_room)
    }

    fn open(&mut self, id: SessionId, key: SessionKey, session: Session) {
        self.wakes.push(Reverse((self.now.plus_micros(START_DELAY_US / 2), id)));
        self.names.insert(key.clone(), id);
        // The session stays only if a peer joins: one that no peer could join ends like one without members.
        self.rooms.insert(id, Box::new(Room { key, session, empty_since: Some(self.now) }));
    }

    fn kept_bytes(&self) -> usize {
        let kept: usize = self.rooms.values().map(|room| room.session.kept_bytes()).sum();
        kept + self.bringing_bytes()
    }

    /// Allows saves while there is memory for them.
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

/// The constant facts of a session that a peer begins.
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
