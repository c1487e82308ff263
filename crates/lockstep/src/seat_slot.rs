//! A seat of a session on the relay: its player, inputs that wait for their tick, and how they arrive.

use alloc::boxed::Box;

use sametick_sim::record::Leaving;
use sametick_sim::{Inputs, Seat, Tick, Time};
use sametick_wire::Malformed;
use sametick_wire::identity::PlayerId;

use crate::planted::{self, Bug};
use crate::rows::Opaque;
use crate::session::{MAX_AHEAD, Member};

/// Inputs that have arrived for ticks that are still open.
#[derive(Clone, Debug)]
struct Waiting {
    slots: [Option<Opaque>; MAX_AHEAD as usize],
}

impl Waiting {
    const EMPTY: Waiting = Waiting { slots: [None; MAX_AHEAD as usize] };

    fn slot(&mut self, tick: Tick) -> &mut Option<Opaque> {
        &mut self.slots[tick.0 as usize % MAX_AHEAD as usize]
    }
}

/// Statistics of a player's arriving inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Inputs that were missing when their tick closed, since the first input.
    pub omissions: u32,
    /// Inputs that arrived after their tick was closed.
    pub late: u32,
    /// Inputs that arrived more than once.
    pub repeated: u32,
    /// The least time by which a fresh input arrived before its tick closed, in the last second or so.
    pub least_slack_us: Option<i64>,
}

/// A taken seat.
#[derive(Clone, Debug)]
pub struct SeatSlot {
    /// The member on the seat.
    pub member: Member,
    /// The player, if the driver assigned one: a claim then does not suffice to take the seat.
    pub player: Option<PlayerId>,
    /// The member's earlier id, until an input shows that the welcome with the new claim has arrived.
    pub before: Option<Member>,
    /// No member has resumed this seat since the relay was restarted: it waits for a peer with a claim to it.
    pub vacant: bool,
    /// The join is not yet part of a closed tick.
    pub joining: bool,
    /// The first tick on whose state it votes.
    since: Tick,
    /// The tick in which the seat was taken, if that is known.
    pub sat: Option<Tick>,
    /// The member is leaving, for this reason.
    pub leaving: Option<Leaving>,
    waiting: Waiting,
    /// Statistics of its inputs.
    pub arrivals: Arrivals,
    /// An input has arrived; before the first none counts as missing.
    began: bool,
    least_slack_us: Option<i64>,
    /// When the newest input arrived, and how long before its tick closes. If another arrives at the same moment, this
    /// one had only been waiting for a packet that was not lost.
    newest: Option<(Time, i64)>,
}

impl SeatSlot {
    /// A seat that a member has just taken.
    pub fn new(member: Member, player: Option<PlayerId>) -> Box<SeatSlot> {
        Box::new(SeatSlot {
            member,
            player,
            before: None,
            vacant: false,
            joining: true,
            since: Tick::ZERO,
            sat: None,
            leaving: None,
            waiting: Waiting::EMPTY,
            arrivals: Arrivals::default(),
            began: false,
            least_slack_us: None,
            newest: None,
        })
    }

    /// A seat that was taken before the relay was restarted.
    pub fn vacated(sat: Option<Tick>) -> Box<SeatSlot> {
        let mut seat_slot = SeatSlot::new(Member(0), None);
        (seat_slot.vacant, seat_slot.joining, seat_slot.sat) = (true, false, sat);
        seat_slot
    }

    /// Whether the member is seated, and was at that tick.
    pub fn was_there(&self, tick: Tick) -> bool {
        !self.joining && !self.vacant && self.leaving.is_none() && self.since <= tick
    }

    /// The member has come back over another link: for the game it never left.
    pub fn hand_over(&mut self, from: Member, to: Member, closed: Tick) {
        self.member = to;
        self.before = Some(from);
        self.vacant = false;
        self.leaving = None;
        if planted::has(Bug::HandedInLost) {
            self.waiting = Waiting::EMPTY;
        }
        // Its votes on earlier states went with the old link, and no input counts as missing before the first.
        self.since = self.since.max(closed);
        self.began = false;
        self.arrivals = Arrivals::default();
        self.least_slack_us = None;
        self.newest = None;
    }

    fn note_slack(&mut self, now: Time, slack_us: i64) {
        match self.newest {
            Some((at, before_us)) if at == now => self.newest = Some((at, before_us.max(slack_us))),
            before => {
                self.newest = Some((now, slack_us));
                if let Some((_, fresh_us)) = before {
                    let least_us = self.least_slack_us.map_or(fresh_us, |least_us| least_us.min(fresh_us));
                    self.least_slack_us = Some(least_us);
                }
            }
        }
    }

    /// The least slack since the last call.
    pub fn take_least_slack(&mut self) -> Option<i64> {
        let least_us = self.least_slack_us.take();
        self.arrivals.least_slack_us = least_us.or(self.arrivals.least_slack_us);
        least_us
    }

    /// Takes an input for a tick, which closes in `slack_us`, if that is known.
    pub fn take(
        &mut self,
        now: Time,
        tick: Tick,
        closed: Tick,
        slack_us: Option<i64>,
        input: Opaque,
    ) -> Result<(), Malformed> {
        self.before = None;
        if tick <= closed {
            self.arrivals.late += 1;
            if planted::has(Bug::LateIntoNext) {
                self.waiting.slot(closed.next()).get_or_insert(input);
            }
        } else if tick.ticks_since(closed) >= MAX_AHEAD {
            return Err(Malformed::Forbidden(
                "an input is less than 128 ticks ahead of the last closed tick",
            ));
        } else if let slot @ None = self.waiting.slot(tick) {
            *slot = Some(input);
            if planted::has(Bug::AcceptedTwice) {
                self.waiting.slot(tick.next()).get_or_insert(input);
            }
        } else {
            self.arrivals.repeated += 1;
            return Ok(());
        }
        if let Some(slack_us) = slack_us {
            self.note_slack(now, slack_us);
        }
        Ok(())
    }

    /// Adds this seat's row to a tick that is being closed.
    pub fn close(&mut self, rows: &mut Inputs<Opaque>, seat: Seat, tick: Tick) {
        let joined = core::mem::take(&mut self.joining);
        if joined {
            (self.since, self.sat) = (tick, Some(tick));
            rows.join(seat);
        }
        let missing = planted::has(Bug::OmissionForgotten).then_some(Opaque::EMPTY);
        match self.waiting.slot(tick).take().or(missing) {
            Some(input) => {
                self.began = true;
                rows.set(seat, input);
            }
            None => {
                rows.omit(seat);
                // No input is due before the first one or while leaving.
                self.arrivals.omissions += u32::from(self.began && self.leaving.is_none());
            }
        }
        if self.leaving.is_some() {
            rows.leave(seat);
        }
    }
}
