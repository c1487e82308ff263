//! The way between one client and the relay: a link at each end, and a bad network in each direction.

use sametick_lockstep::rows::Opaque;
use sametick_lockstep::session::{Member, SessionId};
use sametick_sim::{Seat, Tick, Time};
use sametick_wire::link::{Input, Output};
use sametick_wire::netem::{self, Netem, Profile, Stats};
use sametick_wire::{Carrier, Channel, Closed, Link};

/// More ticks than an input can be under way for.
const HANDED: usize = 1_024;

/// So many packets a side sends at least before the other may call it silent.
const SWALLOWED: u64 = 8;

/// What comes out of one end.
pub enum Heard<'a> {
    /// A message for whoever has this end.
    Message(Channel, &'a [u8]),
    /// This end is over.
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

    /// When it wants to be woken, in its machine's time.
    pub fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// Takes what has arrived and does what is due. `now` is the time of the world, `local` that of the machine.
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

    /// Sends and hands over everything that is ready.
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

/// Memory for packets, used again and again.
#[derive(Default)]
pub struct Bufs {
    packet: Vec<u8>,
    out: Vec<u8>,
}

/// A client's inputs, by tick, as it handed them in: perhaps several for one tick, over one link after the other.
#[derive(Clone)]
pub struct Handed(Vec<(Tick, Vec<Opaque>)>);

impl Default for Handed {
    fn default() -> Handed {
        Handed(vec![(Tick::ZERO, Vec::new()); HANDED])
    }
}

impl Handed {
    /// The client does this.
    pub fn note(&mut self, tick: Tick, input: Opaque) {
        let (at, inputs) = &mut self.0[tick.0 as usize % HANDED];
        if std::mem::replace(at, tick) != tick {
            inputs.clear();
        }
        inputs.push(input);
    }

    /// Whether the client did this.
    pub fn has(&self, tick: Tick, input: Opaque) -> bool {
        let (at, inputs) = &self.0[tick.0 as usize % HANDED];
        *at == tick && inputs.contains(&input)
    }
}

/// What a client that comes back has.
#[derive(Clone, Copy, Debug)]
pub struct Resumed {
    /// Of which session.
    pub session: SessionId,
    /// Who it was when it was last welcome there.
    pub member: Member,
    /// The tick of its state.
    pub have: Tick,
}

/// The way between one client and the relay.
pub struct Cable {
    /// What the relay calls it.
    pub member: Member,
    /// Which client made it.
    pub client: usize,
    /// When.
    pub opened_at: Time,
    /// The client's end, while the client has it.
    pub here: Option<End>,
    /// The relay's end, until it is over.
    pub there: Option<End>,
    /// To the relay.
    pub up: Netem,
    /// To the client.
    pub down: Netem,
    /// Where the client sits, by the records of the session.
    pub place: Option<(SessionId, Seat)>,
    /// Which session it takes part in.
    pub session: Option<SessionId>,
    /// What the client had when it made this.
    pub resumed: Option<Resumed>,
    /// The first tick that the client is sent, if it takes part.
    pub first: Option<Tick>,
    /// Since which tick the state is wrong that the client has brought along, until it goes on from there.
    pub carried: Option<Tick>,
    /// The relay has said whether the client takes part.
    pub answered: bool,
    /// What the client handed in.
    pub handed: Handed,
    /// When something last happened that explains silence on it.
    pub troubled_at: Time,
    /// What each network had done, up and down, when a packet last came out of it.
    came_out: [Stats; 2],
    /// Something is waiting at the relay's end to be sent.
    pub dirty: bool,
    /// The relay does not want to hear of it any more.
    pub thrown_out: bool,
}

impl Cable {
    /// A way that has just opened; `local` is the client's time.
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

    /// Looks at what has come out of the networks.
    pub fn note_deliveries(&mut self) {
        for (network, came_out) in [&self.up, &self.down].into_iter().zip(&mut self.came_out) {
            if network.stats().delivered > came_out.delivered {
                *came_out = network.stats();
            }
        }
    }

    /// Whether the network lost everything, several packets, since one last came out; `up` is to the relay. A burst of losses is as
    /// long as it happens to be.
    pub fn has_swallowed(&self, up: bool) -> bool {
        let (network, before) =
            if up { (&self.up, &self.came_out[0]) } else { (&self.down, &self.came_out[1]) };
        let stats = network.stats();
        stats.delivered == before.delivered && stats.sent >= before.sent + SWALLOWED
    }

    /// Whether the client has just left a wrong state behind that it had brought along: it goes back to before that.
    pub fn take_left_behind(&mut self) -> bool {
        let have = self.resumed.map_or(Tick::ZERO, |resumed| resumed.have);
        let goes_back = |bad: Tick| self.first.is_some_and(|first| first <= bad.min(have));
        self.carried.take().is_some_and(goes_back)
    }

    /// When something happens next at the relay's end.
    pub fn next_there(&self) -> Option<Time> {
        let there = self.there.as_ref()?;
        [there.wake_at(), self.up.next_delivery()].into_iter().flatten().min()
    }
}
