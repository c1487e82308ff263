//! The host of a room: steps the game on its own clock with the inputs that have arrived, and sends every view its
//! updates.
//!
//! The driver calls [`Host::poll_output`] after each [`Host::handle`], until it returns [`Output::WakeAt`].

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
use sametick_sim::{Inputs, Owner, Seat, StateHash, Tick, Time};
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
pub use joining::{CAME_BACK, MAX_SPECTATORS, NOT_RESUMED, ROOM_IS_FULL};
use keeping::Keeping;
pub use keeping::{Keepable, KnownPlayer};
use scenery::Scenery;
pub(crate) use seat_slot::slack_us;
use seat_slot::{Clock, SeatSlot};

/// The most ticks that are stepped at once after a delay. Further delay is dropped, and the schedule continues from
/// there.
pub const MAX_CATCH_UP: u32 = 5;

/// The state is hashed for the log after every tick that is a multiple of this.
pub const CHECK_EVERY: u32 = 30;

/// The reason given to a member whose first message is not `Join`.
pub const JOIN_FIRST: &str = "the first message to a room is Join, on the channel for control";

/// How long the players of a [resumed](Host::resume) host may come back without having left: as long as play may be
/// interrupted when a server is killed and started again (L12). Their seats have no input meanwhile.
pub const RETURN_US: u64 = 5_000_000;

/// The longest message on the control channel.
const MAX_CONTROL: usize = 16 << 10;

/// Configuration of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostConfig {
    /// The number of seats.
    pub seats: u16,
    /// The most bytes of an update.
    pub budget_bytes: usize,
    /// Key for resume claims: 256 random bits, different for each room.
    pub secret: [u8; 32],
    /// How long the seat of a disconnected player is reserved (B9).
    pub hold_us: u64,
}

impl Default for HostConfig {
    fn default() -> HostConfig {
        HostConfig { seats: 16, budget_bytes: DEFAULT_BUDGET, secret: [0; 32], hold_us: HOLD_US }
    }
}

/// The default byte budget of an update: together with the headers of update, link and carrier, one datagram.
pub const DEFAULT_BUDGET: usize = 900;

/// Input to a host.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A message has arrived. The first one of a member has to be `Join`.
    Message(Member, Channel, &'a [u8]),
    /// A member's link has ended.
    Closed(Member, Leaving),
    /// A member is to be kicked, with this reason.
    Kick(Member, &'static str),
    /// The identity of a member that has not joined yet, and the saved state of that player.
    KnownPlayer(Member, KnownPlayer<'a>),
    /// Saved state enters the game. The parts of the place come in the order of their numbers, before the first tick.
    Bring(Owner, &'a [u8]),
    /// The member's state is to be saved now.
    Keep(Member),
    /// A seat is reserved for a player for this many microseconds: the player was there before this host started.
    Hold(Seat, PlayerId, u64),
    /// The saved parts of the place, in a [resumed](Host::resume) host: they are only remembered and do not enter the
    /// game.
    Remembered(&'a [u8]),
    /// The time of `WakeAt` has been reached.
    Timeout,
}

/// Output of a host. Bytes are in the buffer passed to [`Host::poll_output`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes to a member.
    Send(Member, Channel),
    /// Close a link, with this reason.
    Close(Member, &'static str),
    /// Write this record to the log.
    Record(Record),
    /// A tick was stepped: the driver writes its inputs to the log, see [`Host::inputs`].
    Stepped(Tick),
    /// Save this; it replaces what was saved before under the same key.
    Keep(Keepable),
    /// All state to be saved has been output, as of this tick.
    Kept(Tick),
    /// No more output before this time.
    WakeAt(Time),
}

/// A member of the room.
#[derive(Clone, Copy, Debug)]
pub struct Participant<'a> {
    /// The link.
    pub member: Member,
    /// The seat; `None` for a spectator.
    pub seat: Option<Seat>,
    /// The player, if known.
    pub player: Option<PlayerId>,
    /// The display name.
    pub name: &'a str,
    /// Inputs of this member that did not come in time.
    pub omissions: u32,
}

/// A member of the room.
struct Who {
    name: String,
    commit: String,
    seat: Option<Seat>,
    player: Option<PlayerId>,
    /// The crew the member belongs to.
    crew: CrewId,
    clock: Clock,
    /// When the member was last told how its inputs arrive.
    paced: Tick,
}

/// A view, and the number of the crew within it: one crew may not have enough places.
type CrewId = (ViewId, u8);

/// Cumulative cost of running a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Updates encoded: one for each crew.
    pub updates: u64,
    /// Bytes of those updates, counted once for each crew.
    pub update_bytes: u64,
    /// Updates sent: one for each member.
    pub sent: u64,
    /// Time that was dropped instead of caught up.
    pub lost_us: u64,
}

/// The host of a room.
pub struct Host<G: Hosted> {
    config: HostConfig,
    now: Time,
    /// The time of the tick from which this host started.
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
    /// Members that wait until the seat they were assigned is left, and their requests. At most one per seat is let in.
    deferred: Vec<(Member, Join)>,
    /// Until then, players from before a restart count as still present.
    absent_until: Time,
    keeping: Keeping,
    crews: BTreeMap<CrewId, Crew>,
    scenery: Scenery,
    grids: Vec<Grid>,
    cadences: Vec<Cadence>,
    inputs: Inputs<G::Input>,
    arrived: Vec<Arrived<G::Input>>,
    /// The inputs of the last ticks: as many as may be stepped before the output is polled.
    rows: [TickInputs; MAX_CATCH_UP as usize],
    /// The last tick that was output as `Stepped`.
    said: Tick,
    events: Events<G::Event>,
    outbox: Outbox<Output>,
    stats: HostStats,
    /// How many times views were updated: decides which views have their turn.
    tellings: Tick,
    /// Where each crew hears events from in this tick.
    ears: Vec<(CrewId, Option<[f32; 3]>)>,
    bytes: Vec<u8>,
    delta: Vec<u8>,
    own: Vec<i32>,
    lossy: Vec<u8>,
}

impl<G: Hosted> Host<G> {
    /// A new room whose first tick is one tick away.
    ///
    /// # Panics
    /// If the game updates more often than it steps.
    pub fn new(now: Time, setup: &G::Setup, config: HostConfig) -> Host<G> {
        Host::resume(now, config, (Tick::ZERO, G::new(setup)), &[])
    }

    /// A room that resumes after a tick, with the state of that tick. Players sat on the `taken` seats: they leave
    /// after [`RETURN_US`] unless they come back before.
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

    /// The inputs of the tick that was last output as [`Output::Stepped`], as the log has them.
    pub fn inputs(&self) -> &TickInputs {
        &self.rows[row_of(self.said)]
    }

    /// The seats that are taken, as of the last tick.
    pub fn taken(&self) -> impl Iterator<Item = Seat> {
        let seat_slots = (0..).map(Seat).zip(&self.seat_slots);
        seat_slots
            .filter(|(_, seat_slot)| seat_slot.as_ref().is_some_and(|seat_slot| !seat_slot.joined))
            .map(|(seat, _)| seat)
    }

    /// The number of seats.
    pub fn seats(&self) -> u16 {
        self.seat_slots.len() as u16
    }

    /// All members, spectators included.
    pub fn participants(&self) -> impl Iterator<Item = Participant<'_>> {
        self.who.iter().map(|(member, who)| {
            let seat_slot = who.seat.and_then(|seat| self.seat_slots[seat.index()].as_ref());
            let omissions = seat_slot.map_or(0, |seat_slot| seat_slot.omissions());
            Participant { member: *member, seat: who.seat, player: who.player, name: &who.name, omissions }
        })
    }

    /// The player to whom a claim belongs, if known: one who sits, or sat, on the claim's seat.
    pub fn player_of(&self, claim: &Claim) -> Option<PlayerId> {
        let is_claimed = |member: Member| self.claims.is_good(claim, member);
        let there = self.who.iter().find(|(member, _)| is_claimed(**member)).map(|(_, who)| who.player);
        there.unwrap_or_else(|| self.keeping.holds.claimed_by(is_claimed)?.player)
    }

    /// Whether the room has no members.
    pub fn is_empty(&self) -> bool {
        self.who.is_empty() && self.deferred.is_empty()
    }

    /// The cumulative cost.
    pub fn stats(&self) -> HostStats {
        self.stats
    }

    /// Handles an input. A member that violates the protocol is closed; the others are not affected.
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

    /// The next output.
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
            .ok_or(Malformed::Forbidden("only seated players send inputs"))?;
        let seat_slot = self.seat_slots[seat.index()]
            .as_mut()
            .ok_or(Malformed::Forbidden("only seated players send inputs"))?;
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

    /// Steps all due ticks that may be caught up. Views are updated only after the last one: a host that is too slow
    /// for its load updates less often, but keeps running.
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

    /// The driver had no time for this host: of the due ticks one is kept, the others are dropped and not caught up.
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

    /// The name of each seated player.
    fn seated(&self) -> Vec<Seated> {
        let seated =
            self.who.values().filter_map(|who| Some(Seated { seat: who.seat?, name: who.name.clone() }));
        let mut seated: Vec<Seated> = seated.collect();
        seated.sort_by_key(|seated| seated.seat);
        seated
    }
}

/// When a tick is due in a room that was at tick `began` at `start`.
fn due<G: Hosted>(start: Time, began: Tick, tick: Tick) -> Time {
    start.plus_micros(G::RATE.due_micros(tick).saturating_sub(G::RATE.due_micros(began)))
}

/// The index of a tick's inputs in the ring of recent ticks.
fn row_of(tick: Tick) -> usize {
    (tick.0 % MAX_CATCH_UP) as usize
}
