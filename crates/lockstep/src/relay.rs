//! Many sessions behind one door: which link belongs to which session, and what each is sent. Sessions are split by
//! build (L10); no game is known here (L1).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sametick_sim::{BuildId, TickRate, Time};
use sametick_wire::{Channel, Malformed};

use crate::message::{self, MAX_SETUP, ToPeer, ToRelay, read_inputs};
use crate::session::{Member, Send, Session};

/// Sessions of one relay at once.
pub const MAX_SESSIONS: usize = 4_096;

/// A session that everybody has left is kept for this long, for those who come back.
pub const LINGER_US: u64 = 10_000_000;

/// The tick rates that a session may have.
const RATES: core::ops::RangeInclusive<u16> = 1..=240;

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
    /// A link has opened; its hello named a session.
    Opened(Member, SessionKey),
    /// A message has arrived on a link.
    Message(Member, Channel, &'a [u8]),
    /// A link has ended.
    Closed(Member),
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
    /// Nothing more before this time.
    WakeAt(Time),
    /// Nothing more until something arrives.
    Wait,
}

/// How a relay behaves.
#[derive(Clone, Copy, Debug)]
pub struct RelayConfig {
    /// How many closed ticks are sent together: more cost fewer bytes, and as many ticks of latency.
    pub ticks_per_packet: u32,
}

impl Default for RelayConfig {
    fn default() -> RelayConfig {
        RelayConfig { ticks_per_packet: 1 }
    }
}

enum Wanted {
    Send(Member, Channel, Vec<u8>),
    Close(Member, &'static str),
}

struct Room {
    session: Session,
    /// Since when nobody is there.
    empty_since: Option<Time>,
}

/// A relay.
pub struct Relay {
    config: RelayConfig,
    rooms: BTreeMap<SessionKey, Room>,
    links: BTreeMap<Member, SessionKey>,
    wanted: VecDeque<Wanted>,
}

impl Relay {
    /// A relay without sessions.
    pub fn new(config: RelayConfig) -> Relay {
        Relay { config, rooms: BTreeMap::new(), links: BTreeMap::new(), wanted: VecDeque::new() }
    }

    /// A session.
    pub fn session(&self, key: &SessionKey) -> Option<&Session> {
        self.rooms.get(key).map(|room| &room.session)
    }

    /// The sessions there are.
    pub fn sessions(&self) -> impl Iterator<Item = (&SessionKey, &Session)> {
        self.rooms.iter().map(|(key, room)| (key, &room.session))
    }

    /// Takes what happened. A peer that does not speak the protocol is closed; the others do not notice.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Opened(member, key) => {
                self.links.insert(member, key);
            }
            Input::Message(member, channel, bytes) => {
                if self.on_message(now, member, channel, bytes).is_err() {
                    self.drop_member(now, member);
                    self.wanted.push_back(Wanted::Close(member, "this is not the lockstep protocol"));
                }
            }
            Input::Closed(member) => self.drop_member(now, member),
            Input::Timeout => self.on_time(now),
        }
    }

    /// What the relay wants next.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        match self.wanted.pop_front() {
            Some(Wanted::Send(member, channel, bytes)) => {
                buf.clear();
                buf.extend_from_slice(&bytes);
                Output::Send(member, channel)
            }
            Some(Wanted::Close(member, why)) => Output::Close(member, why),
            None => self.rooms.values().map(Room::wake_at).min().map_or(Output::Wait, Output::WakeAt),
        }
    }

    fn on_message(
        &mut self,
        now: Time,
        member: Member,
        channel: Channel,
        bytes: &[u8],
    ) -> Result<(), Malformed> {
        let key = self.links.get(&member).ok_or(Malformed::Forbidden)?.clone();
        match channel {
            Channel::Input => {
                let Some(room) = self.rooms.get_mut(&key) else { return Err(Malformed::Forbidden) };
                let (session, mut result) = (&mut room.session, Ok(()));
                read_inputs(bytes, session.history().last(), |tick, input| {
                    result = result.and(session.input(now, member, tick, input));
                })?;
                result
            }
            Channel::Control => self.on_control(now, member, key, message::from_bytes(bytes)?),
            _ => Err(Malformed::Forbidden),
        }
    }

    fn on_control(
        &mut self,
        now: Time,
        member: Member,
        key: SessionKey,
        message: ToRelay,
    ) -> Result<(), Malformed> {
        match message {
            ToRelay::Join { setup, rate, seats, watch, .. } => {
                if setup.len() > MAX_SETUP || !RATES.contains(&rate) {
                    return Err(Malformed::Forbidden);
                }
                let begin =
                    || Session::new(now, TickRate::hz(rate), setup, seats, self.config.ticks_per_packet);
                if self.rooms.len() < MAX_SESSIONS || self.rooms.contains_key(&key) {
                    let room =
                        self.rooms.entry(key).or_insert_with(|| Room { session: begin(), empty_since: None });
                    return room.join(now, member, rate, watch, &mut self.wanted);
                }
                refuse(member, "the relay has no room for another session", &mut self.wanted);
            }
            ToRelay::Resend { from } => {
                if let Some(room) = self.rooms.get_mut(&key) {
                    let mut out = Vec::new();
                    room.session.resend(member, from, &mut out);
                    room.queue(out, &mut self.wanted);
                }
            }
        }
        Ok(())
    }

    fn drop_member(&mut self, now: Time, member: Member) {
        let Some(key) = self.links.remove(&member) else { return };
        if let Some(room) = self.rooms.get_mut(&key) {
            room.session.leave(member);
            if room.session.members() == 0 {
                room.empty_since.get_or_insert(now);
            }
        }
    }

    fn on_time(&mut self, now: Time) {
        let Relay { rooms, wanted, .. } = self;
        rooms.retain(|_, room| {
            let mut out = Vec::new();
            room.session.on_time(now, &mut out);
            room.queue(out, wanted);
            room.empty_since.is_none_or(|since| now.micros_since(since) < LINGER_US)
        });
    }
}

impl Room {
    fn join(
        &mut self,
        now: Time,
        member: Member,
        rate: u16,
        watch: bool,
        wanted: &mut VecDeque<Wanted>,
    ) -> Result<(), Malformed> {
        if self.session.is_member(member) {
            return Err(Malformed::Forbidden);
        }
        let mut out = Vec::new();
        match self.session.join(now, member, rate, watch, &mut out) {
            Ok(()) => self.empty_since = None,
            Err(error) => refuse(member, error.text(), wanted),
        }
        self.queue(out, wanted);
        Ok(())
    }

    /// When the next tick closes, or the room is given up.
    fn wake_at(&self) -> Time {
        self.session.wake_at()
    }

    fn queue(&self, out: Vec<Send>, wanted: &mut VecDeque<Wanted>) {
        for send in out {
            match send {
                Send::Control(to, message) => {
                    wanted.push_back(Wanted::Send(to, Channel::Control, message::to_bytes(&message)));
                }
                Send::Pace(to, pace) => {
                    wanted.push_back(Wanted::Send(to, Channel::State, message::to_bytes(&pace)));
                }
                Send::Ticks(to, bytes) => {
                    wanted.extend(to.into_iter().map(|to| Wanted::Send(to, Channel::Input, bytes.clone())));
                }
            }
        }
    }
}

fn refuse(member: Member, why: &str, wanted: &mut VecDeque<Wanted>) {
    let refused = ToPeer::Refused { why: why.to_string() };
    wanted.push_back(Wanted::Send(member, Channel::Control, message::to_bytes(&refused)));
}
