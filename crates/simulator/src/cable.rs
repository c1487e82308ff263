//! The connection between one client and the relay: a link at each end, and a bad network in each direction.

use sametick_lockstep::rows::Opaque;
use sametick_lockstep::session::{Member, SessionId};
use sametick_sim::{Seat, Tick, Time};
use sametick_wire::link::{Input, Output};
use sametick_wire::netem::{self, Netem, Profile, Stats};
use sametick_wire::{Carrier, Channel, Closed, Link};

/// How many inputs of a client are kept: more than can be in flight.
const HANDED: usize = 1_024;

/// How many packets in a row a network must lose before a time-out counts as explained.
const SWALLOWED: u64 = 8;

/// An output of one end.
pub enum Heard<'a> {
    /// A message for the owner of this end.
    Message(Channel, &'a [u8]),
    /// The link of this end is closed.
    Closed(Closed),
}

/// One end of a cable, in the time of its machine.
pub struct End {
    link: Link,
    wake_at: Option<Time>,
}

impl End {
    fn new(now: Time) -> End {
        End { link: Link::new(now, Carrier::Datagrams), wake_at: Some(now) }
    }

    /// The link.
    pub fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// The next wake-up, in its machine's time.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// Handles arrived packets and due timers. `now` is the time of the world, `local` that of the machine.
    pub fn run(
        &mut self,
        (now, local): (Time, Time),
        (incoming, outgoing): (&mut Netem, &mut Netem),
        bufs: &mut Bufs,
        mut hear: impl FnMut(Heard<'_>),
    ) {
        let mut packet = std::mem::take(&mut bufs.packet);
        while incoming.poll(now, &mut packet).is_some() {
            if let Some(intact) = netem::intact(&packet) {
                // An error also comes out as `Closed`.
                let _ = self.link.handle(local, Input::Datagram(intact));
                self.drain(now, outgoing, bufs, &mut hear);
            }
        }
        bufs.packet = packet;
        if self.wake_at.is_some_and(|at| at <= local) {
            let _ = self.link.handle(local, Input::Timeout);
            self.drain(now, outgoing, bufs, &mut hear);
        }
    }

    /// Sends all ready packets, and passes on all ready messages.
    pub fn drain(
        &mut self,
        now: Time,
        outgoing: &mut Netem,
        bufs: &mut Bufs,
        hear: &mut impl FnMut(Heard<'_>),
    ) {
        let buf = &mut bufs.out;
        loop {
            match self.link.poll_output(buf) {
                Output::Datagram => {
                    netem::put_check(buf);
                    outgoing.send(now, (), buf);
                }
                Output::Stream(_) => {}
                Output::Message(channel) => hear(Heard::Message(channel, buf)),
                Output::Closed(closed) => hear(Heard::Closed(closed)),
                Output::WakeAt(at) => {
                    self.wake_at = Some(at);
                    return;
                }
                Output::Done => {
                    self.wake_at = None;
                    return;
                }
            }
        }
    }
}

/// Packet buffers for reuse.
#[derive(Default)]
pub struct Bufs {
    packet: Vec<u8>,
    out: Vec<u8>,
}

/// A client's inputs by tick, as it sent them: perhaps several for one tick, over successive links.
#[derive(Clone)]
pub struct Handed(Vec<(Tick, Vec<Opaque>)>);

impl Default for Handed {
    fn default() -> Handed {
        Handed(vec![(Tick::ZERO, Vec::new()); HANDED])
    }
}

impl Handed {
    /// Notes that the client sent this.
    pub fn note(&mut self, tick: Tick, input: Opaque) {
        let (at, inputs) = &mut self.0[tick.0 as usize % HANDED];
        if std::mem::replace(at, tick) != tick {
            inputs.clear();
        }
        inputs.push(input);
    }

    /// Whether the client sent this.
    pub fn has(&self, tick: Tick, input: Opaque) -> bool {
        let (at, inputs) = &self.0[tick.0 as usize % HANDED];
        *at == tick && inputs.contains(&input)
    }
}

/// What a resuming client has.
#[derive(Clone, Copy, Debug)]
pub struct Resumed {
    /// Its session.
    pub session: SessionId,
    /// Its member id in its last welcome there.
    pub member: Member,
    /// The tick of its state.
    pub have: Tick,
}

/// The connection between one client and the relay.
pub struct Cable {
    /// The member id of the relay.
    pub member: Member,
    /// The client that opened it.
    pub client: usize,
    /// When it was opened.
    pub opened_at: Time,
    /// The client's end, while the client uses it.
    pub here: Option<End>,
    /// The relay's end, until it is closed.
    pub there: Option<End>,
    /// The network to the relay.
    pub up: Netem,
    /// The network to the client.
    pub down: Netem,
    /// The client's seat, by the records of the session.
    pub place: Option<(SessionId, Seat)>,
    /// The session that it takes part in.
    pub session: Option<SessionId>,
    /// What the client had when it opened this.
    pub resumed: Option<Resumed>,
    /// The first tick that the client is sent, if it takes part.
    pub first: Option<Tick>,
    /// Since which tick the state that the client has brought is wrong, until it goes on from there.
    pub carried: Option<Tick>,
    /// Whether the relay has answered the client's join.
    pub answered: bool,
    /// The inputs that the client sent.
    pub handed: Handed,
    /// The last time of an event that explains silence on it.
    pub troubled_at: Time,
    /// The counters of each network, up and down, when it last delivered a packet.
    came_out: [Stats; 2],
    /// Whether the relay's end has something to send.
    pub dirty: bool,
    /// Whether the relay has closed it.
    pub thrown_out: bool,
}

impl Cable {
    /// A cable that has just opened; `local` is the client's time.
    pub fn new(now: Time, local: Time, member: Member, client: usize, profile: Profile, seed: u64) -> Cable {
        Cable {
            member,
            client,
            opened_at: now,
            here: Some(End::new(local)),
            there: Some(End::new(now)),
            up: Netem::new(profile, seed),
            down: Netem::new(profile, seed ^ 1),
            place: None,
            session: None,
            resumed: None,
            first: None,
            carried: None,
            answered: false,
            handed: Handed::default(),
            troubled_at: Time::ZERO,
            came_out: [Stats::default(); 2],
            dirty: false,
            thrown_out: false,
        }
    }

    /// Updates the counters after deliveries.
    pub fn note_deliveries(&mut self) {
        for (network, came_out) in [&self.up, &self.down].into_iter().zip(&mut self.came_out) {
            if network.stats().delivered > came_out.delivered {
                *came_out = network.stats();
            }
        }
    }

    /// Whether the network has lost several packets in a row since its last delivery; `up` is to the relay. The length
    /// of a burst of losses is random.
    pub fn has_swallowed(&self, up: bool) -> bool {
        let (network, before) =
            if up { (&self.up, &self.came_out[0]) } else { (&self.down, &self.came_out[1]) };
        let stats = network.stats();
        stats.delivered == before.delivered && stats.sent >= before.sent + SWALLOWED
    }

    /// Whether the client has just gone back to a tick before the wrong state that it had brought.
    pub fn take_left_behind(&mut self) -> bool {
        let have = self.resumed.map_or(Tick::ZERO, |resumed| resumed.have);
        let goes_back = |bad: Tick| self.first.is_some_and(|first| first <= bad.min(have));
        self.carried.take().is_some_and(goes_back)
    }

    /// The next event at the relay's end.
    pub fn next_there(&self) -> Option<Time> {
        let there = self.there.as_ref()?;
        [there.wake_at(), self.up.next_delivery()].into_iter().flatten().min()
    }
}
