//! All authoritative rooms of a server: assigns members to rooms, steps rooms when due, and outputs what to record.
//!
//! Like the state machines in it, this has no sockets: after each [`Rooms::handle`], the driver calls
//! [`Rooms::poll_output`] until it returns [`Output::WakeAt`] or [`Output::Wait`]. Members join over links
//! ([`Rooms::enter`]), or from within this process ([`Rooms::join_local`]); messages to the latter are queued for
//! [`Rooms::poll_local`].
//!
//! A room whose game panics is closed, and its log ends with the last tick that was stepped. Other rooms go on.

mod any;
pub(crate) mod archive;
mod arriving;
mod beginning;
mod budget;
pub(crate) mod command;
mod driving;
pub mod entrance;
pub mod envelope;
mod keeping;
mod open;
pub mod outgoing;
mod output;
mod reopening;
pub mod script;
pub(crate) mod scripts;
mod sharing;
mod showing;
mod times;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::IpAddr;

use sametick_lockstep::assignment::SeatAssignment;
use sametick_lockstep::relay::{LINGER_US, SessionKey};
use sametick_room::host;
use sametick_room::message::{Join, ToHost, ToView};
use sametick_sim::{Tick, Time};
use sametick_store::players::PlayerId;
use sametick_wire::outbox::Outbox;
use sametick_wire::{Channel, Member, control};

pub use any::{AnyHost, AnyRoom, Hosting};
use beginning::join_of;
use budget::Budget;
pub use entrance::check_code;
pub use keeping::{GRACE_US, Keeping, Mark};
use keeping::{Player, Retirements};
use open::Ending;
pub use open::OpenRoom;
pub use output::{Output, Resumed, ToLocal};
pub use reopening::Past;
pub use sametick_room::host::Input;
pub use sharing::RoomLimits;
use sharing::{Clock, Sharing};
pub use times::{TickTimes, Times};

use crate::games::Games;

/// The most open rooms of a server: each is a game that this machine steps.
pub const MAX_ROOMS: usize = 256;

/// How often a running room is saved: the ticks after a save are replayed when the room opens again.
const SAVE_EVERY_S: u32 = 180;

/// A room that ends before this tick is not saved: its log is enough.
pub(crate) const LEAST_SAVED: Tick = Tick(300);

/// Numbers of local members start here; links never get that far.
const FIRST_LOCAL: u64 = 1 << 63;

/// Close text for members of a room whose game has panicked.
pub const FAILED: &str = "the game has failed, and the room is over";

/// The id of a room, unique while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomId(pub u64);

/// A member that has come in, and its progress towards joining a room.
struct Door {
    key: SessionKey,
    /// The player and seat, if the driver has assigned them.
    assignment: Option<SeatAssignment>,
    /// The room, once the join was handled.
    room: Option<RoomId>,
    /// The join while the player is looked up, and whether the room is looked up as well.
    asking: Option<(Join, bool)>,
    /// The player of the claim.
    claimed: Option<PlayerId>,
    /// The player, once known.
    player: Option<Player>,
    /// Whether the member has been closed.
    is_closed: bool,
    /// The IP address, if the member has a link.
    source: Option<IpAddr>,
}

/// The rooms of a server.
pub struct Rooms {
    games: Games,
    keeping: Option<Keeping>,
    retirements: Retirements,
    now: Time,
    /// Rooms are stepped up to this time: under load, messages that have arrived are handled before rooms that are due.
    due: Time,
    next_room: u64,
    next_local: u64,
    names: BTreeMap<SessionKey, RoomId>,
    /// Whether stored rooms are searched for before a new one begins; members that wait for a search, and recent
    /// results.
    finds: bool,
    looked_for: BTreeMap<SessionKey, Vec<Member>>,
    pasts: BTreeMap<SessionKey, (Time, Past)>,
    rooms: BTreeMap<RoomId, Box<OpenRoom>>,
    /// Ended rooms, until their last outputs have been taken.
    over: BTreeMap<RoomId, Box<OpenRoom>>,
    doors: BTreeMap<Member, Door>,
    /// Wake times of rooms. An entry counts only if it equals the room's own `wake_at`.
    wakes: BinaryHeap<Reverse<(Time, RoomId)>>,
    /// Rooms whose host may have outputs.
    busy: VecDeque<RoomId>,
    outbox: Outbox<Output>,
    locals: Outbox<ToLocal>,
    /// The shares of processor time and the number of rooms per payer.
    budget: Budget,
    sharing: Sharing,
    limits: RoomLimits,
    clock: Clock,
}

impl Rooms {
    /// No rooms yet. Rooms can begin for those of these games that can be hosted.
    pub fn new(games: Games) -> Rooms {
        Rooms {
            games,
            keeping: None,
            retirements: Retirements::new(),
            now: Time::ZERO,
            due: Time::ZERO,
            next_room: 0,
            next_local: FIRST_LOCAL,
            names: BTreeMap::new(),
            finds: false,
            looked_for: BTreeMap::new(),
            pasts: BTreeMap::new(),
            rooms: BTreeMap::new(),
            over: BTreeMap::new(),
            doors: BTreeMap::new(),
            wakes: BinaryHeap::new(),
            busy: VecDeque::new(),
            outbox: Outbox::default(),
            locals: Outbox::default(),
            budget: Budget::default(),
            sharing: Sharing::default(),
            limits: RoomLimits::default(),
            clock: sharing::machine_clock(),
        }
    }

    /// Rooms with persistent players and state.
    pub fn keeping(games: Games, keeping: Keeping) -> Rooms {
        Rooms { keeping: Some(keeping), ..Rooms::new(games) }
    }

    /// Searches for a stored room before a new one begins, from now on: see [`Output::Find`].
    pub fn set_finds(&mut self) {
        self.finds = true;
    }

    /// All games, hostable or not.
    pub fn games(&self) -> &Games {
        &self.games
    }

    /// The room of a name, if there is one.
    pub fn find(&self, key: &SessionKey) -> Option<RoomId> {
        self.names.get(key).copied()
    }

    /// The rooms of a code, of any game and build.
    pub fn of_code<'a>(&'a self, code: &'a str) -> impl Iterator<Item = (RoomId, &'a OpenRoom)> {
        self.iter().filter(move |(_, room)| room.key.name == code)
    }

    /// An open room.
    pub fn room(&self, id: RoomId) -> Option<&OpenRoom> {
        self.rooms.get(&id).or_else(|| self.over.get(&id)).map(|room| &**room)
    }

    /// The room that a member has asked to take part in.
    pub fn room_of(&self, member: Member) -> Option<(RoomId, &OpenRoom)> {
        let id = self.doors.get(&member)?.room?;
        Some((id, self.room(id)?))
    }

    /// The open rooms.
    pub fn iter(&self) -> impl Iterator<Item = (RoomId, &OpenRoom)> {
        self.rooms.iter().map(|(id, room)| (*id, &**room))
    }

    /// Handles an input. A member that violates the protocol is closed, without an effect on the others.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.now = self.now.max(now);
        match input {
            Input::Message(member, channel, bytes) => self.on_message(member, channel, bytes),
            Input::Closed(member, _) => {
                let Some(door) = self.doors.remove(&member) else { return };
                if let Some(id) = door.room {
                    self.tell(id, input);
                }
            }
            Input::Kick(member, why) => {
                self.disown(member);
                match self.doors.get(&member).and_then(|door| door.room) {
                    Some(id) => self.tell(id, input),
                    None => self.close(member, why),
                }
            }
            // Rooms that are due are stepped one by one, between polls for their outputs.
            Input::Timeout => self.due = self.now,
            // These inputs come only from `Rooms` itself.
            Input::KnownPlayer(..)
            | Input::Bring(..)
            | Input::Keep(_)
            | Input::Hold(..)
            | Input::Remembered(_) => {}
        }
    }

    /// The next output.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        loop {
            if let Some(output) = self.outbox.pop(buf) {
                return output;
            }
            if let Some(id) = self.busy.front().copied() {
                if let Some(output) = self.poll_room(id, buf) {
                    return output;
                }
            } else if let Some(wake_at) = self.step_next() {
                self.over.clear();
                return wake_at;
            }
        }
    }

    /// The next output for a local member.
    pub fn poll_local(&mut self, buf: &mut Vec<u8>) -> Option<ToLocal> {
        self.locals.pop(buf)
    }

    fn poll_room(&mut self, id: RoomId, buf: &mut Vec<u8>) -> Option<Output> {
        let Some(room) = self.rooms.get_mut(&id) else {
            self.busy.pop_front();
            return None;
        };
        match room.host.poll_output(buf) {
            host::Output::Send(member, channel) if is_local(member) => {
                self.locals.push(ToLocal::Message(member, channel), |out| out.extend_from_slice(buf));
                None
            }
            host::Output::Send(member, channel) => Some(Output::Send(member, channel)),
            host::Output::Close(member, why) => {
                self.close(member, why);
                None
            }
            host::Output::Record(record) => Some(Output::Record(id, record)),
            host::Output::Stepped(tick) => {
                let every = room.facts.rate.per_second() * SAVE_EVERY_S;
                room.is_save_due |= self.finds && tick.0.is_multiple_of(every);
                room.pace.ticks += 1;
                Some(Output::Stepped(id, tick))
            }
            host::Output::Keep(what) => {
                self.keep(id, what, buf);
                None
            }
            host::Output::Kept(tick) => {
                self.kept(id, tick);
                None
            }
            host::Output::WakeAt(at) => {
                self.busy.pop_front();
                self.rest(id, at);
                None
            }
        }
    }

    /// Puts a room to rest until its next wake time, when it has no more outputs.
    fn rest(&mut self, id: RoomId, at: Time) {
        let Some(room) = self.rooms.get_mut(&id) else { return };
        room.is_busy = false;
        let began_us = room.stepping.take();
        if std::mem::take(&mut room.is_save_due) {
            self.outbox.push_bare(Output::SaveRoom(id));
        }
        if room.ending != Some(Ending::Failed) {
            self.tell_outcome(id);
        }
        began_us.into_iter().for_each(|began_us| self.charge(id, began_us));
        let Some(room) = self.rooms.get_mut(&id) else { return };
        match room.ending {
            Some(why) => self.finish(id, why),
            None if room.wake_at != Some(at) => {
                room.wake_at = Some(at);
                self.wakes.push(Reverse((at, id)));
            }
            None => {}
        }
    }

    /// Steps the next room that is due; if there is none, returns the next wake time.
    fn step_next(&mut self) -> Option<Output> {
        let retire_at = self.retire();
        if !self.outbox.is_empty() {
            return None;
        }
        let next = self.wakes.peek().map(|Reverse(next)| *next);
        let Some((at, id)) = next.filter(|(at, _)| *at <= self.due) else {
            let at = next.map(|(at, _)| at).into_iter().chain(retire_at).min();
            return Some(at.map_or(Output::Wait, Output::WakeAt));
        };
        self.wakes.pop();
        let room = self.rooms.get_mut(&id).filter(|room| room.wake_at == Some(at))?;
        if let Some(later) = self.budget.wait_until(self.now, id) {
            room.wake_at = Some(later);
            self.wakes.push(Reverse((later, id)));
            return None;
        }
        if self.budget.speed_percent(id) < 100 {
            // Catching up in one go would take time from other rooms.
            room.host.lose_time(self.now);
        }
        room.wake_at = None;
        room.stepping = Some((self.clock)());
        let is_late = |since: Time| self.now.micros_since(since) >= LINGER_US;
        if !room.stays && room.empty_since.is_some_and(is_late) {
            room.ending = Some(Ending::Empty);
        }
        self.tell(id, Input::Timeout);
        None
    }

    fn tell(&mut self, id: RoomId, input: Input<'_>) {
        let Some(room) = self.rooms.get_mut(&id).filter(|room| room.ending != Some(Ending::Failed)) else {
            return;
        };
        room.handle(self.now, input);
        self.attend(id);
    }

    /// Notes that a room may have outputs.
    fn attend(&mut self, id: RoomId) {
        if self.rooms.get_mut(&id).is_some_and(|room| !std::mem::replace(&mut room.is_busy, true)) {
            self.busy.push_back(id);
        }
    }

    fn on_message(&mut self, member: Member, channel: Channel, bytes: &[u8]) {
        let Some(door) = self.doors.get(&member).filter(|door| !door.is_closed) else { return };
        if let Some(id) = door.room.filter(|id| self.rooms.contains_key(id)) {
            return self.on_member(id, member, channel, bytes);
        }
        let turned = match self.keeping.filter(|_| door.assignment.is_none()) {
            Some(_) => self.ask(member, channel, bytes),
            None => join_of(channel, bytes).and_then(|join| self.come_in(member, join)),
        };
        if let Err(turned) = turned {
            self.turn_away(member, &turned);
        }
    }

    /// Handles a message of a member that has a room.
    fn on_member(&mut self, id: RoomId, member: Member, channel: Channel, bytes: &[u8]) {
        let said = (channel == Channel::Control).then(|| control::from_bytes(bytes).ok()).flatten();
        match said {
            Some(ToHost::Character(name)) => self.recast(member, name),
            // A member that was refused may join again as another player.
            Some(ToHost::Join(_)) if self.is_introduced(member) && !self.takes_part(id, member) => {
                if let Some(door) = self.doors.get_mut(&member) {
                    (door.room, door.player) = (None, None);
                }
                self.on_message(member, channel, bytes);
            }
            _ => self.tell(id, Input::Message(member, channel, bytes)),
        }
    }

    fn takes_part(&self, id: RoomId, member: Member) -> bool {
        self.rooms.get(&id).is_some_and(|room| room.participants().any(|who| who.member == member))
    }

    fn turn_away(&mut self, member: Member, turned: &Turned) {
        let (why, bad_token) = match turned {
            Turned::Away(why) | Turned::Limited(why) => (*why, false),
            Turned::BadToken(why) => (*why, true),
            Turned::Out => return self.close(member, host::JOIN_FIRST),
            Turned::Broke(malformed) => return self.close(member, malformed.rule()),
        };
        self.say(member, &ToView::Refused { why: why.into(), bad_token });
    }

    /// Sends a member a message of its room.
    fn say(&mut self, member: Member, message: &ToView) {
        if is_local(member) {
            let tag = ToLocal::Message(member, Channel::Control);
            self.locals.push(tag, |out| control::put(out, message));
        } else {
            let tag = Output::Send(member, Channel::Control);
            self.outbox.push(tag, |out| control::put(out, message));
        }
    }

    fn finish(&mut self, id: RoomId, why: Ending) {
        let Some(room) = self.rooms.remove(&id) else { return };
        self.names.remove(&room.key);
        self.budget.close(id);
        let Times { ticks, p50_us, p99_us, max_us } = room.times();
        let (code, tick) = (&room.key.name, room.tick().0);
        match why {
            Ending::Empty | Ending::Told(_) => {
                tracing::info!(code, tick, ticks, p50_us, p99_us, max_us, "a room is over");
            }
            Ending::Failed => {
                tracing::error!(code, tick, "the game of a room has panicked; the room is over");
                self.outbox.push_bare(Output::Crashed(id));
            }
        }
        let there = self.doors.iter().filter(|(_, door)| door.room == Some(id));
        let there: Vec<Member> = there.map(|(member, _)| *member).collect();
        let last_words = match why {
            Ending::Empty => None,
            Ending::Failed => Some(FAILED),
            Ending::Told(why) => Some(why),
        };
        last_words.iter().for_each(|why| there.iter().for_each(|member| self.close(*member, why)));
        if self.finds && why != Ending::Failed && room.tick() >= LEAST_SAVED {
            self.outbox.push_bare(Output::SaveRoom(id));
        }
        self.over.insert(id, room);
        self.outbox.push_bare(Output::Ended(id));
    }

    fn close(&mut self, member: Member, why: &'static str) {
        let Some(door) = self.doors.get_mut(&member).filter(|door| !door.is_closed) else { return };
        door.is_closed = true;
        if is_local(member) {
            self.doors.remove(&member);
            self.locals.push_bare(ToLocal::Closed(member, why));
        } else {
            self.outbox.push_bare(Output::Close(member, why));
        }
    }
}

/// Why a first message is refused.
enum Turned {
    /// The join is refused for this reason.
    Away(&'static str),
    /// The member or its address has reached a limit; it is told so.
    Limited(&'static str),
    /// The token is invalid for this reason.
    BadToken(&'static str),
    /// The first message is no `Join`.
    Out,
    /// The `Join` violates a rule.
    Broke(sametick_wire::Malformed),
}

/// Whether a member is local: a script.
pub(crate) fn is_local(member: Member) -> bool {
    member.0 >= FIRST_LOCAL
}
