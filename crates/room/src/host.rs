//! The host of a room: steps the game on its own clock, with whatever inputs are there, and tells every view what concerns it.
//!
//! After each [`Host::handle`], [`Host::poll_output`] is called until it says [`Output::WakeAt`].

mod assigning;
mod choice;
mod cost;
mod crew;
mod gathering;
mod grid;
mod in_flight;
mod joining;
mod keeping;
mod refresh;
mod scenery;
mod seat_slot;
mod telling;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use sametick_sim::record::{Leaving, Record, TickInputs};
use sametick_sim::replica::{Events, Hosted, Kind, ViewId};
use sametick_sim::{Inputs, Seat, StateHash, Tick, Time, Whose};
use sametick_wire::claims::{Claim, Claims, HOLD_US};
use sametick_wire::control;
use sametick_wire::identity::PlayerId;
use sametick_wire::inputs::read_inputs;
use sametick_wire::outbox::Outbox;
use sametick_wire::{Channel, Malformed, Member};

use crate::message::{Join, MAX_SEATS, Report, Seated, ToHost};
use crate::models::Family;
use crate::snapshot::Layout;
pub use assigning::SEAT_GIVEN;
use choice::Cadence;
use crew::Crew;
use gathering::Arrived;
use grid::Grid;
pub use joining::{CAME_BACK, MAX_WATCHERS, NOT_RESUMED, ROOM_IS_FULL};
use keeping::Keeping;
pub use keeping::{Keepable, KnownPlayer};
use scenery::Scenery;
pub(crate) use seat_slot::slack_us;
use seat_slot::{Clock, SeatSlot};

/// Ticks that are made up for at once after a delay; what is more is lost, and time goes on from there.
pub const MAX_CATCH_UP: u32 = 5;

/// The state is hashed for the log after every tick that is a multiple of this.
pub const CHECK_EVERY: u32 = 30;

/// The first rule of the protocol.
pub const JOIN_FIRST: &str = "the first message to a room is Join, on the channel for control";

/// For so long the players of a host that [goes on](Host::resume) may come back without having left: as long as play may be
/// interrupted when a server is killed and started again (L12). Meanwhile they do nothing.
pub const RETURN_US: u64 = 5_000_000;

/// The longest message on the control channel.
const MAX_CONTROL: usize = 16 << 10;

/// How a host behaves.
#[derive(Clone, Copy, Debug)]
pub struct HostConfig {
    /// How many seats there are.
    pub seats: u16,
    /// The most bytes of an update.
    pub budget_bytes: usize,
    /// What claims to come back are made from: 256 random bits, other ones for each room.
    pub secret: [u8; 32],
    /// For how long a seat waits for whoever was cut off (B9).
    pub hold_us: u64,
}

impl Default for HostConfig {
    fn default() -> HostConfig {
        HostConfig { seats: 16, budget_bytes: DEFAULT_BUDGET, secret: [0; 32], hold_us: HOLD_US }
    }
}

/// What an update may have if nothing else is said: with the heads of update, link and carrier, a datagram.
pub const DEFAULT_BUDGET: usize = 900;

/// What happens to a host.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A message has arrived. The first one of a member asks to take part.
    Message(Member, Channel, &'a [u8]),
    /// A member's link has ended.
    Closed(Member, Leaving),
    /// Somebody is to be thrown out, and told why.
    Kick(Member, &'static str),
    /// Who somebody is that has not joined yet, and what is known of them.
    KnownPlayer(Member, KnownPlayer<'a>),
    /// Something that was kept comes into the game; of the place all parts in the order of their numbers, before the first tick.
    Bring(Whose, &'a [u8]),
    /// What is kept of somebody is to be said now.
    Keep(Member),
    /// A seat waits for a player for so long: they were there before the host was.
    Hold(Seat, PlayerId, u64),
    /// What is kept of the place so far, in a host that [goes on](Host::resume): nothing of it comes into the game.
    Remembered(&'a [u8]),
    /// The time of `WakeAt` has come.
    Timeout,
}

/// What a host wants. Bytes are in the buffer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes to a member.
    Send(Member, Channel),
    /// End a link, and say why.
    Close(Member, &'static str),
    /// Write this down.
    Record(Record),
    /// A tick was stepped: write its inputs down, see [`Host::inputs`].
    Stepped(Tick),
    /// Keep this, in place of what was kept of the same before.
    Keep(Keepable),
    /// Everything that is kept was said, as it was after this tick.
    Kept(Tick),
    /// Nothing more before this time.
    WakeAt(Time),
}

/// Somebody who takes part.
#[derive(Clone, Copy, Debug)]
pub struct Participant<'a> {
    /// By which link.
    pub member: Member,
    /// Where they sit; nowhere if they only look.
    pub seat: Option<Seat>,
    /// Who, if that is known.
    pub player: Option<PlayerId>,
    /// Who, for people.
    pub name: &'a str,
    /// Their inputs that did not come in time.
    pub omissions: u32,
}

/// Somebody who takes part.
struct Who {
    name: String,
    commit: String,
    seat: Option<Seat>,
    player: Option<PlayerId>,
    /// The crew they belong to.
    crew: CrewId,
    clock: Clock,
    /// When they were last told how their inputs arrive.
    paced: Tick,
}

/// A view, and the number of its crew where one is not enough.
type CrewId = (ViewId, u8);

/// What it costs to run a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Updates made: one for each crew.
    pub updates: u64,
    /// Their bytes, once for each crew.
    pub update_bytes: u64,
    /// Updates sent: one for each member.
    pub sent: u64,
    /// Time that could not be made up for.
    pub lost_us: u64,
}

/// The host of a room.
pub struct Host<G: Hosted> {
    config: HostConfig,
    now: Time,
    /// When the tick was that it began after.
    start: Time,
    /// That tick.
    began: Tick,
    tick: Tick,
    state: G,
    layout: Layout,
    family: Family,
    claims: Claims,
    seat_slots: Vec<Option<Box<SeatSlot>>>,
    who: BTreeMap<Member, Who>,
    /// Those whose seat has to be left first, and what they want. At most one a seat is let in.
    deferred: Vec<(Member, Join)>,
    /// Until when players who were there before the host was have not left.
    absent_until: Time,
    keeping: Keeping,
    crews: BTreeMap<CrewId, Crew>,
    scenery: Scenery,
    grids: Vec<Grid>,
    cadences: Vec<Cadence>,
    inputs: Inputs<G::Input>,
    arrived: Vec<Arrived<G::Input>>,
    /// What happened in the last ticks: as many as may be stepped before the output is looked at.
    rows: [TickInputs; MAX_CATCH_UP as usize],
    /// The last tick that was said to be stepped.
    said: Tick,
    events: Events<G::Event>,
    outbox: Outbox<Output>,
    stats: HostStats,
    /// How many times views were told: whose turn it is goes by that.
    tellings: Tick,
    /// Where every crew hears from in this tick.
    ears: Vec<(CrewId, Option<[f32; 3]>)>,
    bytes: Vec<u8>,
    delta: Vec<u8>,
    own: Vec<i32>,
    lossy: Vec<u8>,
}

impl<G: Hosted> Host<G> {
    /// A room whose first tick is a tick away.
    ///
    /// # Panics
    /// If the game updates more often than it steps.
    pub fn new(now: Time, setup: &G::Setup, config: HostConfig) -> Host<G> {
        Host::resume(now, config, (Tick::ZERO, G::new(setup)), &[])
    }

    /// A room that goes on after a tick, in the state it had then. On these seats players sat: they leave after [`RETURN_US`], unless
    /// they have come back by then.
    ///
    /// # Panics
    /// If the game updates more often than it steps.
    pub fn resume(now: Time, config: HostConfig, (tick, state): (Tick, G), taken: &[Seat]) -> Host<G> {
        assert!(G::UPDATES.per_second() <= G::RATE.per_second(), "updates are made of steps");
        let layout = Layout::of::<G>();
        let seats = usize::from(config.seats).min(MAX_SEATS);
        let seat_slot = |seat| taken.contains(&seat).then(|| Box::new(SeatSlot::absent()));
        let mut host = Host {
            config,
            now,
            start: now,
            began: tick,
            tick,
            state,
            claims: Claims::new(&config.secret, 0),
            seat_slots: (0..seats as u16).map(Seat).map(seat_slot).collect(),
            who: BTreeMap::new(),
            deferred: Vec::new(),
            absent_until: now.plus_micros(RETURN_US),
            keeping: Keeping::new(seats),
            crews: BTreeMap::new(),
            scenery: Scenery::of::<G>(),
            grids: G::KINDS.iter().map(|_| Grid::default()).collect(),
            cadences: G::KINDS.iter().map(|kind| Cadence::of(kind, G::RATE, G::UPDATES)).collect(),
            own: alloc::vec![0; layout.kinds().last().map_or(0, Kind::width)],
            family: Family::new(&layout),
            layout,
            inputs: Inputs::new(),
            arrived: Vec::new(),
            rows: [const { TickInputs::new() }; MAX_CATCH_UP as usize],
            said: tick,
            events: Events::default(),
            outbox: Outbox::default(),
            stats: HostStats::default(),
            tellings: Tick::ZERO,
            ears: Vec::new(),
            bytes: Vec::new(),
            delta: Vec::new(),
            lossy: Vec::new(),
        };
        host.keep_absent(taken);
        host
    }

    /// The last tick that was stepped.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// The state after it.
    pub fn state(&self) -> &G {
        &self.state
    }

    /// What happened on every seat in the tick that [`Output::Stepped`] said last, as the log has it.
    pub fn inputs(&self) -> &TickInputs {
        &self.rows[row_of(self.said)]
    }

    /// On which seats somebody sits in the game, as far as it was stepped.
    pub fn taken(&self) -> impl Iterator<Item = Seat> {
        let seat_slots = (0..).map(Seat).zip(&self.seat_slots);
        seat_slots
            .filter(|(_, seat_slot)| seat_slot.as_ref().is_some_and(|seat_slot| !seat_slot.joined))
            .map(|(seat, _)| seat)
    }

    /// How many seats there are.
    pub fn seats(&self) -> u16 {
        self.seat_slots.len() as u16
    }

    /// Everybody who takes part.
    pub fn participants(&self) -> impl Iterator<Item = Participant<'_>> {
        self.who.iter().map(|(member, who)| {
            let seat_slot = who.seat.and_then(|seat| self.seat_slots[seat.index()].as_ref());
            let omissions = seat_slot.map_or(0, |seat_slot| seat_slot.omissions());
            Participant { member: *member, seat: who.seat, player: who.player, name: &who.name, omissions }
        })
    }

    /// Who has a claim, if it is known who that is: somebody who sits there, or sat there.
    pub fn player_of(&self, claim: &Claim) -> Option<PlayerId> {
        let is_claimed = |member: Member| self.claims.is_good(claim, member);
        let there = self.who.iter().find(|(member, _)| is_claimed(**member)).map(|(_, who)| who.player);
        there.unwrap_or_else(|| self.keeping.holds.claimed_by(is_claimed)?.player)
    }

    /// Whether nobody takes part.
    pub fn is_empty(&self) -> bool {
        self.who.is_empty() && self.deferred.is_empty()
    }

    /// What it has cost so far.
    pub fn stats(&self) -> HostStats {
        self.stats
    }

    /// Takes what happened. Who does not speak the protocol is closed; the others do not notice.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.now = self.now.max(now);
        match input {
            Input::Message(member, channel, bytes) => {
                if let Err(broken) = self.on_message(member, channel, bytes) {
                    self.kick(member, broken.rule());
                }
            }
            Input::Closed(member, why) => self.remove(member, why),
            Input::Kick(member, why) => self.kick(member, why),
            Input::KnownPlayer(member, known) => self.keeping.expect(member, &known),
            Input::Bring(whose, bytes) => self.keeping.bring(whose, bytes),
            Input::Keep(member) => self.keep_member(member),
            Input::Hold(seat, player, for_us) => self.hold(seat, player, for_us),
            Input::Remembered(parts) => self.keeping.remember(parts),
            Input::Timeout => self.on_time(),
        }
    }

    /// What the host wants next.
    pub fn poll_output(&mut self, buf: &mut Vec<u8>) -> Output {
        let output = self.outbox.pop(buf).unwrap_or(Output::WakeAt(self.due(self.tick.next())));
        if let Output::Stepped(tick) = output {
            self.said = tick;
        }
        output
    }

    fn due(&self, tick: Tick) -> Time {
        due::<G>(self.start, self.began, tick)
    }

    fn on_message(&mut self, member: Member, channel: Channel, bytes: &[u8]) -> Result<(), Malformed> {
        if bytes.len() > MAX_CONTROL {
            return Err(Malformed::TooLong);
        }
        match (channel, self.who.contains_key(&member)) {
            (Channel::Control, false) => {
                let ToHost::Join(join) = control::from_bytes(bytes)? else {
                    return Err(Malformed::Forbidden(JOIN_FIRST));
                };
                self.join(member, &join)
            }
            (Channel::Input, true) => self.on_inputs(member, bytes),
            (Channel::State, true) => {
                let report = Report::read(bytes)?;
                self.on_report(member, &report);
                Ok(())
            }
            (Channel::Control, true) => Err(Malformed::Forbidden("Join is sent once")),
            (_, false) => Err(Malformed::Forbidden(JOIN_FIRST)),
            _ => Err(Malformed::Forbidden("a room hears on the channels for control, input and state")),
        }
    }

    fn on_inputs(&mut self, member: Member, bytes: &[u8]) -> Result<(), Malformed> {
        let (now, start, began, present) = (self.now, self.start, self.began, self.tick);
        let seat = self
            .who
            .get(&member)
            .and_then(|who| who.seat)
            .ok_or(Malformed::Forbidden("inputs are of those who sit"))?;
        let seat_slot = self.seat_slots[seat.index()]
            .as_mut()
            .ok_or(Malformed::Forbidden("inputs are of those who sit"))?;
        read_inputs(bytes, present, |tick, input| {
            let due = due::<G>(start, began, tick);
            seat_slot.push(present, tick, input, due.as_micros() as i64 - now.as_micros() as i64);
        })
    }

    fn on_report(&mut self, member: Member, report: &Report) {
        let Some(who) = self.who.get_mut(&member) else { return };
        who.clock.on_report(self.now, report);
        if let Some(crew) = self.crews.get_mut(&who.crew) {
            crew.on_report(member, report);
        }
    }

    /// Steps what is due, as far as it can be made up for. Views are told after the last of it only: a host that is too slow for
    /// its crowd tells less often, and goes on.
    fn on_time(&mut self) {
        for _ in 0..MAX_CATCH_UP {
            if self.due(self.tick.next()) > self.now {
                return;
            }
            self.step();
            if self.due(self.tick.next()) > self.now {
                return self.tell_views();
            }
        }
        self.tell_views();
        if self.due(self.tick.next()) <= self.now {
            let lost_us = self.now.micros_since(self.due(self.tick.next())) + G::RATE.tick_micros();
            self.start = self.start.plus_micros(lost_us);
            self.stats.lost_us += lost_us;
        }
    }

    /// Whoever runs this host has had no time for it: of the ticks that are due one is left, the others are lost, not made up for.
    pub fn lose_time(&mut self, now: Time) {
        let late_us = now.micros_since(self.due(self.tick.next()));
        self.start = self.start.plus_micros(late_us);
        self.stats.lost_us += late_us;
    }

    fn step(&mut self) {
        let tick = self.tick.next();
        self.let_absent_go();
        self.record_comings_and_goings(tick);
        self.gather(tick);
        self.state.step(&self.inputs);
        self.tick = tick;
        self.write_rows(tick);
        self.outbox.push_bare(Output::Stepped(tick));
        if tick.0.is_multiple_of(CHECK_EVERY) {
            let hash = StateHash::of(&self.state);
            self.outbox.push_bare(Output::Record(Record::Check { tick, hash }));
        }
        self.clear_seat_slots();
        self.let_in_deferred();
        self.keep();
        self.follow_views();
        self.tell_events();
    }

    /// The name of whoever sits somewhere, by seat.
    fn seated(&self) -> Vec<Seated> {
        let seated =
            self.who.values().filter_map(|who| Some(Seated { seat: who.seat?, name: who.name.clone() }));
        let mut seated: Vec<Seated> = seated.collect();
        seated.sort_by_key(|seated| seated.seat);
        seated
    }
}

/// When a tick is due, of a room that stood at a tick at its start.
fn due<G: Hosted>(start: Time, began: Tick, tick: Tick) -> Time {
    start.plus_micros(G::RATE.due_micros(tick).saturating_sub(G::RATE.due_micros(began)))
}

/// Where the inputs of a tick are kept for a while.
fn row_of(tick: Tick) -> usize {
    (tick.0 % MAX_CATCH_UP) as usize
}
