//! The state of a taken seat: queued inputs, and estimates of when they were made.

use alloc::collections::VecDeque;

use sametick_sim::record::Leaving;
use sametick_sim::replica::Hosted;
use sametick_sim::{Tick, TickRate, Time, from_canonical};
use sametick_wire::Member;
use sametick_wire::identity::PlayerId;
use sametick_wire::inputs::Opaque;

use crate::message::{PaceHead, RTT_UNIT_US, Report};

/// The member id of an absent player of before a restart: no link has this number.
pub(super) const ABSENT: Member = Member(u64::MAX);

/// Inputs further ahead of the present tick than this are dropped: more than two seconds at 30 Hz.
const MAX_AHEAD: u32 = 64;

/// The greatest age of an input for ordering, whatever the player's clock says.
const MAX_AGE_US: i64 = 250_000;

/// The estimate of the shortest transit is discarded after one to two spans of this length: clocks drift.
const REMEMBERED_US: u64 = 10_000_000;

/// The unit of slack in reports.
const SLACK_UNIT_US: i64 = 32;

/// An estimate of a player's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    last: Option<Reading>,
    /// The quickest report of the current span, and of the one before.
    quickest: [Option<Quickest>; 2],
    span_began: Time,
}

/// The report with the shortest transit: network jitter blurs its clock difference least.
#[derive(Clone, Copy, Debug)]
struct Quickest {
    /// Host clock on arrival minus player clock on sending.
    taken_us: i64,
    /// The same without the transit time measured then: a later change of the path's length does not affect it.
    apart_us: i64,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    /// The player's clock, with the high bits that reports leave out.
    clock_us: i64,
    low: u32,
    tick: Tick,
    ago_us: i64,
}

impl Clock {
    pub fn on_report(&mut self, now: Time, report: &Report) {
        let clock_us = match self.last {
            Some(last) => last.clock_us + i64::from(report.clock_us.wrapping_sub(last.low) as i32),
            None => i64::from(report.clock_us),
        };
        let (ago_us, transit_us) = (report.ago_us.into(), (u64::from(report.rtt) * RTT_UNIT_US / 2) as i64);
        self.last = Some(Reading { clock_us, low: report.clock_us, tick: report.tick, ago_us });
        if now.micros_since(self.span_began) >= REMEMBERED_US {
            self.quickest = [None, self.quickest[0]];
            self.span_began = now;
        }
        let taken_us = now.as_micros() as i64 - clock_us;
        let report = Quickest { taken_us, apart_us: taken_us - transit_us };
        let quickest = self.quickest[0].get_or_insert(report);
        if taken_us <= quickest.taken_us {
            *quickest = report;
        }
    }

    /// The estimated time on the host clock at which the input of a tick was made; never in the future, nor long ago.
    pub fn made_us(&self, now: Time, rate: TickRate, tick: Tick) -> i64 {
        let now_us = now.as_micros() as i64;
        let quickest = self.quickest.iter().flatten().min_by_key(|quickest| quickest.taken_us);
        let (Some(last), Some(quickest)) = (self.last, quickest) else { return now_us };
        let later = (i64::from(tick.0) - i64::from(last.tick.0)) * rate.tick_micros() as i64;
        (last.clock_us + quickest.apart_us - last.ago_us + later).clamp(now_us - MAX_AGE_US, now_us)
    }
}

/// The state of a taken seat.
pub(crate) struct SeatSlot {
    pub member: Member,
    /// The player, if known.
    pub player: Option<PlayerId>,
    /// The player has just joined: the next tick is the first.
    pub joined: bool,
    /// The player leaves after the next tick.
    pub leaving: Option<Leaving>,
    queue: VecDeque<(Tick, Opaque)>,
    /// The newest tick that an input came for.
    newest: Tick,
    least_slack_us: Option<i64>,
    omissions: u32,
}

impl SeatSlot {
    pub fn new(member: Member, player: Option<PlayerId>) -> SeatSlot {
        SeatSlot {
            member,
            player,
            joined: true,
            leaving: None,
            queue: VecDeque::new(),
            newest: Tick::ZERO,
            least_slack_us: None,
            omissions: 0,
        }
    }

    /// The slot of a player from before a restart who has not come back yet.
    pub fn absent() -> SeatSlot {
        SeatSlot { joined: false, ..SeatSlot::new(ABSENT, None) }
    }

    /// Whether the player was there before a restart and has not come back yet.
    pub fn is_absent(&self) -> bool {
        self.member == ABSENT
    }

    /// Whether the player can take the seat again as if never gone: the game has not been told of the departure. A
    /// player who left before the first tick is excluded: the log has that player's join and departure already.
    pub fn can_be_taken_again(&self) -> bool {
        !self.joined && (self.leaving.is_some() || self.is_absent())
    }

    /// Queues an input for a tick; `present` is the last stepped tick, `slack_us` how early the input arrived.
    pub fn push(&mut self, present: Tick, tick: Tick, input: Opaque, slack_us: i64) {
        if tick <= self.newest || tick.ticks_since(present) > MAX_AHEAD {
            return;
        }
        self.newest = tick;
        self.queue.push_back((tick, input));
        let least = self.least_slack_us.get_or_insert(slack_us);
        *least = slack_us.min(*least);
    }

    /// The seat's input in a tick, and the tick it was meant for. An input that came too late for its tick is used now.
    pub fn take<G: Hosted>(&mut self, tick: Tick) -> Option<(Tick, G::Input)> {
        let mut taken: Option<(Tick, G::Input)> = None;
        while let Some((meant, input)) = self.queue.pop_front_if(|(meant, _)| *meant <= tick) {
            let Ok(input) = from_canonical::<G::Input>(input.as_bytes()) else { continue };
            let merged = match &taken {
                Some((_, earlier)) => G::merge(earlier, &input),
                None => input,
            };
            taken = Some((meant, merged));
        }
        if taken.is_none() && self.newest > Tick::ZERO && !self.joined {
            self.omissions += 1;
        }
        taken
    }

    /// How inputs have arrived since the last call.
    pub fn pace(&mut self) -> PaceHead {
        let slack = self
            .least_slack_us
            .take()
            .map(|slack_us| (slack_us / SLACK_UNIT_US).clamp(i16::MIN.into(), i16::MAX.into()) as i16);
        PaceHead { slack, omissions: self.omissions }
    }

    /// The number of missing inputs so far.
    pub fn omissions(&self) -> u32 {
        self.omissions
    }
}

/// A report's slack in microseconds.
pub(crate) fn slack_us(slack: i16) -> i32 {
    i32::from(slack) * SLACK_UNIT_US as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A player whose network path becomes longer gains no earlier place in the order.
    #[test]
    fn input_order_does_not_depend_on_path_length() {
        let rate = TickRate::hz(30);
        let mut clock = Clock::default();
        for (sent_ms, one_way_ms) in [(0, 10), (100, 12), (200, 10), (5_000, 110), (5_100, 110)] {
            let rtt = (2 * one_way_ms * 1_000 / RTT_UNIT_US) as u16;
            let (clock_us, tick) = (sent_ms as u32 * 1_000 + 77, Tick(sent_ms as u32 * 3 / 100));
            let report = Report { clock_us, tick, rtt, ..Report::default() };
            let now = Time::from_micros((sent_ms + one_way_ms) * 1_000);
            clock.on_report(now, &report);
            let made_us = clock.made_us(now, rate, tick);
            assert!(made_us.abs_diff(sent_ms as i64 * 1_000) < 3_000, "{made_us} at {sent_ms} ms");
        }
    }
}
